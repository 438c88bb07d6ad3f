//! Accesses through the cache, and what moves lines between caches and memory.
//!
//! # What happens to a line (I = not cached, C = clean, D = dirty)
//! | event | I | C | D |
//! |---|---|---|---|
//! | `read` | fetch: C | from the copy, however old | from the copy |
//! | `write` | fetch, store: D | store: D | store: D |
//! | `write_back` | nothing | nothing | whole line to memory: C |
//! | `invalidate` | nothing | dropped: I | dropped, stores lost: I (O4) |
//! | eviction | | dropped: I | whole line to memory: I |
//! | prefetch (`+fill`) | fetch: C | | |
//! | peer's store arrives | | copy is stale from now on | will be destroyed (O1) |
//!
//! No event of another core changes a core's copy: that is what "no coherence" means. And a line
//! goes to memory *whole*: bytes that this core never stored to go back to what they were when it
//! was fetched.
//!
//! That is a chip with plain caches. [`Caching`](crate::Caching) knows others:
//!
//! * `saves`: `invalidate` in D writes the whole line to memory: I. (O4 all the same: the caller
//!   must not rely on either.)
//! * `drops`: after `write_back` in C and D: I.
//! * `writes-back-all`: `write_back` writes the core's other lines back as well, before those
//!   named.
//! * `invalidates-all`: `invalidate` takes all the core's lines, in one step. Lines in D that were
//!   not named go to memory.
//! * `around`: `write` in I stores the bytes to memory: still I.
//! * `through`: `write` stores the bytes to memory, and into the copy if there is one: C, never D.
//! * `uncached`: `write` stores the bytes to memory. `read` fetches the line, and forgets it.
//!   Always I.
//!
//! # Oracles here
//! A byte is stale if memory bears a younger stamp for it than the copy has seen. Stale bytes that
//! are read are O2; stale bytes *beside* those that are written are O3, because the write-back will
//! carry them. Stale bytes that are overwritten are nobody's problem.

use std::cell::Cell;

use super::caches::Cached;
use super::memory::Parcel;

use super::{DROPPED, Machine, Outcome, own_account};
use crate::caching::Stores;
use crate::mask::{LINE_MAX, Mask, blend, span, word};
use crate::op::{Bytes, CHUNK};
use crate::report::Oracle;
use crate::trace::{Note, Trace, Verb};

impl Machine {
    /// The slot of `core`'s copy of the line, fetched now if it has none; and whether it had.
    #[inline]
    fn slot(&mut self, core: u16, line: u32) -> (usize, bool) {
        match self.caches.find(core, line) {
            Some(slot) => (slot, true),
            None => (self.fetch(core, line), false),
        }
    }

    /// Fetches a line. In weak profiles each word may be early, that is, old.
    fn fetch(&mut self, core: u16, line: u32) -> usize {
        let mut cached = Cached {
            core,
            line,
            dirty: false,
            stored: 0,
            bytes: *self.memory.line(line),
            seen: *self.memory.stamps(line),
            fresh: self.memory.newest(line),
        };
        if self.profile.weak() {
            self.fetch_early(&mut cached);
        }
        // Own cached stores under way: else a core could lose them.
        let stores = &self.cores[usize::from(core)].stores;
        for parcel in stores.iter().filter(|p| p.cached && p.line == line) {
            blend(&mut cached.bytes, &parcel.bytes, parcel.mask);
        }
        self.caches.insert(cached)
    }

    /// Replaces words by their former values where an early load may return those.
    fn fetch_early(&mut self, cached: &mut Cached) {
        for index in 0..self.shape.words() {
            let (value, early) = self.observe(cached.core, cached.line, index);
            if early {
                let bytes = index * 4..index * 4 + 4;
                cached.bytes[bytes.clone()].copy_from_slice(&value.to_le_bytes());
                // Whatever memory has there counts as newer, if it was ever stored to.
                cached.seen[bytes].fill(0);
                cached.fresh = 0;
            }
        }
    }

    /// Bytes of the cached line that memory has newer.
    #[inline]
    fn stale(&self, slot: usize) -> Mask {
        let cached = self.caches.get(slot);
        let newest = self.memory.newest(cached.line);
        cached.stale(self.memory.stamps(cached.line), newest)
    }

    /// Cached load.
    pub(super) fn read(
        &mut self,
        core: u16,
        line: u32,
        byte: usize,
        len: u8,
        desk: &Cell<Bytes>,
    ) -> Outcome {
        let (slot, hit) = self.slot(core, line);
        let counters = self.count(core);
        counters.reads += 1;
        counters.misses += u64::from(!hit);
        let stale = self.stale(slot) & span(byte, len.into());
        if stale != 0 {
            self.report(Oracle::StaleRead, core, line, stale, None);
        }
        if *self.memory.dirty(line) != 0 {
            self.check_hidden(core, line, span(byte, len.into()), false);
        }
        let note = match (stale != 0, hit) {
            (true, _) => Note::Stale,
            (false, true) => Note::Hit,
            (false, false) => Note::Miss,
        };
        let bytes = &self.caches.get(slot).bytes;
        let mut found = [0; CHUNK];
        found[..len.into()].copy_from_slice(&bytes[byte..byte + usize::from(len)]);
        desk.set(found);
        let value = word(bytes, byte / 4);
        if self.caching.stores_of(core) == Stores::Uncached {
            self.caches.remove(slot);
        }
        Outcome {
            reply: 0,
            value,
            note,
        }
    }

    /// Whether a cached store to the line goes to memory at once.
    #[inline]
    pub(super) fn passes_the_cache(&self, core: u16, line: u32) -> bool {
        match self.caching.stores_of(core) {
            Stores::Allocate => false,
            Stores::Around => self.caches.find(core, line).is_none(),
            Stores::Through | Stores::Uncached => true,
        }
    }

    /// Cached store that goes to memory at once; a copy of the line gets it as well.
    fn write_past(&mut self, core: u16, line: u32, byte: usize, from: &[u8]) -> Outcome {
        let mask = span(byte, from.len());
        let mut bytes = [0; LINE_MAX];
        bytes[byte..byte + from.len()].copy_from_slice(from);
        let value = word(&bytes, byte / 4);
        let combining = &mut self.cores[usize::from(core)].combining;
        if combining.line == line {
            // I2: as a word store does.
            combining.mask &= !mask;
        }
        if let Some(slot) = self.caches.find(core, line) {
            let cached = self.caches.get_mut(slot);
            blend(&mut cached.bytes, &bytes, mask);
            // Until it arrives: no older store of a peer makes these bytes stale.
            cached.stored |= mask;
        }
        let parcel = Parcel {
            line,
            mask,
            intended: mask,
            write_back: false,
            cached: true,
            bytes,
        };
        let note = self.send(core, parcel);
        Outcome::shown(value, note)
    }

    /// Cached store: allocates, and makes the whole line dirty, unless it passes the cache.
    pub(super) fn write(
        &mut self,
        core: u16,
        line: u32,
        byte: usize,
        len: u8,
        bytes: &Bytes,
    ) -> Outcome {
        if self.passes_the_cache(core, line) {
            self.count(core).writes += 1;
            return self.write_past(core, line, byte, &bytes[..len.into()]);
        }
        let (slot, hit) = self.slot(core, line);
        let counters = self.count(core);
        counters.writes += 1;
        counters.misses += u64::from(!hit);
        self.progress = true;
        let len = usize::from(len);
        // Before the store: bytes that are about to be replaced cannot be carried back old.
        let stale = self.stale(slot) & !span(byte, len);
        if stale != 0 {
            self.report(Oracle::StaleMerge, core, line, stale, None);
        }
        let cached = self.caches.get_mut(slot);
        cached.bytes[byte..byte + len].copy_from_slice(&bytes[..len]);
        cached.stored |= span(byte, len);
        let value = word(&cached.bytes, byte / 4);
        if !std::mem::replace(&mut cached.dirty, true) {
            *self.memory.dirty(line) += 1;
        }
        Outcome::shown(value, if hit { Note::Hit } else { Note::Miss })
    }

    /// The first line among `len` bytes from `at` that `core` has cached as `wanted` says; and how
    /// many of the bytes lie behind it.
    pub(super) fn first(
        &self,
        core: u16,
        at: u32,
        len: u32,
        wanted: impl Fn(&Cached) -> bool,
    ) -> Option<(usize, u32)> {
        if !self.caches.holds_any(core) {
            // Start-up writes back whole regions.
            return None;
        }
        let lines = self.shape.split(at).0..self.shape.split(at + (len - 1)).0 + 1;
        let cached = |line| self.caches.find(core, line);
        lines.clone().find_map(|line| {
            let slot = cached(line).filter(|&slot| wanted(self.caches.get(slot)))?;
            Some((slot, self.shape.start(lines.end - line - 1)))
        })
    }

    /// The lines that `core` has cached, in ascending order: the table's order differs from path to
    /// path.
    pub(super) fn all_lines(&self, core: u16) -> impl Iterator<Item = u32> + use<> {
        let own = self.caches.all().iter().filter(|line| line.core == core);
        let mut lines: Vec<_> = own.map(|cached| cached.line).collect();
        lines.sort_unstable();
        lines.into_iter()
    }

    /// Whether the line is among `len` bytes from `at`.
    fn named(&self, line: u32, at: u32, len: u32) -> bool {
        (self.shape.split(at).0..=self.shape.split(at + (len - 1)).0).contains(&line)
    }

    /// The line that a `write_back` of `len` bytes from `at` works on next, and how many of the
    /// bytes are left to look at then: all of them while it works on others.
    pub(super) fn to_write_back(&self, core: u16, at: u32, len: u32) -> Option<(usize, u32)> {
        let drops = self.caching.write_back_drops;
        let wanted = |cached: &Cached| cached.dirty || drops;
        if self.caching.write_back_all {
            let others = self.all_lines(core).filter(|&l| !self.named(l, at, len));
            let mut slots = others.filter_map(|line| self.caches.find(core, line));
            if let Some(slot) = slots.find(|&slot| wanted(self.caches.get(slot))) {
                return Some((slot, len));
            }
        }
        self.first(core, at, len, wanted)
    }

    /// Writes the first dirty line of these back, and keeps it, clean. Replies how many bytes are
    /// left.
    ///
    /// Lines that are not dirty take no step: nobody could tell.
    pub(super) fn write_back(&mut self, core: u16, at: u32, len: u32) -> Outcome {
        let Some((slot, left)) = self.to_write_back(core, at, len) else {
            return Outcome::new(0, Note::Nothing);
        };
        let Cached { line, dirty, .. } = *self.caches.get(slot);
        if dirty {
            self.count(core).write_backs += 1;
            self.clean(slot);
        }
        if self.caching.write_back_drops {
            self.caches.remove(slot);
            self.remember(core, line);
        }
        let note = match (self.named(line, at, len), dirty) {
            (false, _) => Note::Others,
            (true, true) => Note::Dirty,
            (true, false) => Note::None,
        };
        Outcome::new(left, note)
    }

    /// Sends a dirty line off, all of its bytes. It counts as dirty until it arrives (I3).
    fn clean(&mut self, slot: usize) {
        let cached = self.caches.get_mut(slot);
        cached.dirty = false;
        let parcel = Parcel {
            line: cached.line,
            mask: self.shape.whole(),
            intended: std::mem::take(&mut cached.stored),
            write_back: true,
            cached: true,
            bytes: cached.bytes,
        };
        let core = cached.core;
        self.send(core, parcel);
    }

    /// Drops the first of these lines that is cached, unsaved stores and all. Replies how many
    /// bytes are left.
    pub(super) fn invalidate(&mut self, core: u16, at: u32, len: u32) -> Outcome {
        if self.caching.invalidate_all {
            let mut note = Note::Nothing;
            for line in self.all_lines(core) {
                if let Some(slot) = self.caches.find(core, line) {
                    self.discard(slot, self.named(line, at, len));
                    note = Note::Others;
                }
            }
            return Outcome::new(0, note);
        }
        match self.first(core, at, len, |_| true) {
            None => Outcome::new(0, Note::Nothing),
            Some((slot, left)) => match self.discard(slot, true) {
                true => Outcome::new(left, Note::Dirty),
                false => Outcome::new(left, Note::None),
            },
        }
    }

    /// Whether an `invalidate` of `len` bytes from `at` would find no line.
    pub(super) fn nothing_to_invalidate(&self, core: u16, at: u32, len: u32) -> bool {
        match self.caching.invalidate_all {
            true => self.all_lines(core).next().is_none(),
            false => self.first(core, at, len, |_| true).is_none(),
        }
    }

    /// Drops a line by an `invalidate` that named it, or another one. Returns whether it was dirty.
    fn discard(&mut self, slot: usize, named: bool) -> bool {
        let Cached {
            core,
            line,
            dirty,
            stored,
            ..
        } = *self.caches.get(slot);
        self.count(core).invalidations += 1;
        if dirty && named {
            self.report(Oracle::LostStore, core, line, stored, None);
        }
        if dirty && (!named || self.caching.invalidate_saves) {
            self.clean(slot);
        } else if dirty {
            *self.memory.dirty(line) -= 1;
        }
        self.caches.remove(slot);
        self.remember(core, line);
        dirty
    }

    /// A line leaves a cache on the chip's own account. If it is dirty, all of it goes over memory.
    pub(super) fn evict(&mut self, slot: usize, step: u64, trace: &mut Trace) {
        let Cached {
            core, line, dirty, ..
        } = *self.caches.get(slot);
        self.count(core).evictions += 1;
        if dirty {
            self.clean(slot);
        }
        self.caches.remove(slot);
        self.remember(core, line);
        let mut event = own_account(step, core, Verb::Evict, self.shape.start(line), 0);
        if dirty {
            event.note = Note::Dirty;
        }
        trace.record(event);
    }

    /// Remembers that `core` once had the line, in profiles that prefetch.
    pub(super) fn remember(&mut self, core: u16, line: u32) {
        if !self.profile.fills() {
            return;
        }
        if self.dropped.len() < DROPPED {
            self.dropped.push((core, line));
        } else {
            let slot = self.chance.below(DROPPED);
            self.dropped[slot] = (core, line);
        }
    }

    /// Fetches a line that some core had before, if it does not have it now.
    pub(super) fn prefetch(&mut self, step: u64, trace: &mut Trace) {
        let slot = self.chance.below(self.dropped.len());
        let (core, line) = self.dropped.swap_remove(slot);
        if self.caches.find(core, line).is_none() {
            self.fetch_ahead(core, line, step, trace);
        }
    }

    /// Fetches a line that `core` does not have and did not ask for.
    pub(super) fn fetch_ahead(&mut self, core: u16, line: u32, step: u64, trace: &mut Trace) {
        self.count(core).prefetches += 1;
        self.fetch(core, line);
        trace.record(own_account(
            step,
            core,
            Verb::Prefetch,
            self.shape.start(line),
            0,
        ));
    }
}
