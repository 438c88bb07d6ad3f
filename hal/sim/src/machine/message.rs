//! Message data: what the SCC's MPBT memory type adds to caches and combining buffer.
//!
//! | access | the line is not cached | the line is cached |
//! |---|---|---|
//! | load | fetched, tagged | from the copy, however old |
//! | store, written through | into the combining buffer | also into the copy, which stays clean |
//! | store | into the combining buffer | into the copy *only*, which is dirty now |
//! | CL1INVMB | | all tagged lines of the core are dropped, unsaved stores and all (O4) |
//!
//! Loads never look into the combining buffer, as nobody promises that they do: who wants to read
//! what is in it drains first.
//!
//! A core maps a line in one way, so the tag is kept per core and line, not per copy: a copy that a
//! prefetch brings back is tagged again.

use std::cell::Cell;

use super::memory::Parcel;
use super::traffic::Traffic;
use super::{Machine, Outcome};
use crate::mask::bits;
use crate::op::{Bytes, Message};
use crate::report::Oracle;
use crate::trace::Note;

impl Machine {
    pub(super) fn message(
        &mut self,
        core: u16,
        line: u32,
        byte: usize,
        message: &Message,
        desk: &Cell<Bytes>,
    ) -> Outcome {
        match *message {
            Message::Load { len } => {
                self.tags.insert(core, line);
                self.read(core, line, byte, len, desk)
            }
            Message::Store { len, through } => {
                self.store_message(core, line, byte, len, &desk.get(), through)
            }
            Message::Invalidate => self.invalidate_messages(core),
        }
    }

    fn store_message(
        &mut self,
        core: u16,
        line: u32,
        byte: usize,
        len: u8,
        bytes: &Bytes,
        through: bool,
    ) -> Outcome {
        let hit = self.caches.find(core, line);
        if hit.is_some() && !through {
            return self.write(core, line, byte, len, bytes);
        }
        let outcome = self.combine(core, line, byte, len, bytes);
        // 1: not yet; it will ask again.
        if outcome.reply != 1
            && let Some(slot) = hit
        {
            let len = usize::from(len);
            self.caches.get_mut(slot).bytes[byte..byte + len].copy_from_slice(&bytes[..len]);
        }
        outcome
    }

    /// Drops all tagged lines of `core`.
    fn invalidate_messages(&mut self, core: u16) -> Outcome {
        let mut any = Note::Nothing;
        for slot in (0..self.caches.len()).rev() {
            // From behind: what is taken out is replaced by what has been looked at.
            let cached = self.caches.get(slot);
            if cached.core != core || !self.tags.has(core, cached.line) {
                continue;
            }
            let gone = self.caches.remove(slot);
            self.count(core).invalidations += 1;
            self.remember(core, gone.line);
            if any == Note::Nothing {
                any = Note::None;
            }
            if gone.dirty {
                any = Note::Dirty;
                *self.memory.dirty(gone.line) -= 1;
                self.report(Oracle::LostStore, core, gone.line, gone.stored, None);
            }
        }
        Outcome::new(0, any)
    }

    /// After own bytes that were written through have arrived: a copy that shows them shows what
    /// memory has. For oracles only.
    pub(super) fn shown(&mut self, core: u16, parcel: &Parcel, ticket: u32) {
        if !self.tags.has(core, parcel.line) {
            return;
        }
        if let Some(slot) = self.caches.find(core, parcel.line) {
            let cached = self.caches.get_mut(slot);
            bits(parcel.intended)
                .filter(|&bit| cached.bytes[bit] == parcel.bytes[bit])
                .for_each(|bit| cached.seen[bit] = ticket);
        }
    }

    /// What has to travel for it: see [`Traffic`].
    pub(super) fn traffic_of(&self, core: u16, at: u32, message: &Message) -> Traffic {
        let (line, _) = self.shape.split(at);
        let hit = self.caches.find(core, line).is_some();
        match message {
            Message::Load { .. } if !hit => Traffic::Fetch(at),
            Message::Store { through, .. } if *through || !hit => {
                self.pushed_out(core, |buffered| buffered != line)
            }
            _ => Traffic::None,
        }
    }
}
