//! This board as a bus of the SCC port: its physical addresses, in RAM.
//!
//! | the port's access | here |
//! |---|---|
//! | uncached | the word in memory, or a register |
//! | MPBT | the hart's image, tagged; stores by its write-combining buffer |
//! | normal | the hart's image |
//! | write-back, invalidate of normal lines | line by line, and no more than was asked |
//!
//! Displacement on the chip writes back and drops at once. Here lines that are written back stay,
//! and dirty ones that are dropped are lost: the least that the contract allows.
//!
//! The address map is the SCC's own up to 48 harts. More tiles than 24 have smaller slots, at the
//! same addresses: see [`Map::mesh`](flagpost_scc::Map::mesh).

use core::fmt;
use core::panic::Location;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use flagpost_hal::{Address, CoreId};
use flagpost_scc::map::TILE_CORES;
use flagpost_scc::registers::TileId;
use flagpost_scc::{Attribute, Bus, Physical, Place, State};

use crate::hart::Hart;
use crate::registers::Register;
use crate::{csr, end};

/// Turns that a relaxing hart gives away before it returns for no reason (R3).
const TURNS: u32 = 64;

/// Words that a relaxing hart looks at, at most; if there are more, the others end its wait by R3.
const WATCHED: usize = 24;

/// What an uncached access reaches.
enum Behind {
    Memory(Address),
    Register(Register),
}

impl Hart {
    #[track_caller]
    #[inline]
    fn shared(&self, at: Physical) -> Address {
        match self.map.place(self.core(), at) {
            Place::Shared(address) => address,
            other => panic!("{at:x?} is no memory: {other:?}"),
        }
    }

    #[track_caller]
    #[inline]
    fn behind(&self, at: Physical) -> Behind {
        let register = match self.map.place(self.core(), at) {
            Place::Shared(address) => return Behind::Memory(address),
            Place::Registers { tile, offset } => Register::of_tile(tile, offset),
            Place::Fpga { offset } => Register::of_fpga(offset),
            Place::Private | Place::Nothing => None,
        };
        match register {
            Some(register) => Behind::Register(register),
            None => panic!("nothing is at {at:x?}"),
        }
    }

    fn tile_id(&self) -> u32 {
        let id = TileId {
            tile: self.map.position(self.core()),
            z: self.core().get() % TILE_CORES,
        };
        id.encode()
    }

    /// The word to look at while waiting, if it is one.
    fn watched(&self, at: Physical) -> Option<&'static AtomicU32> {
        match self.behind(at) {
            Behind::Memory(address) => Some(self.word(address)),
            Behind::Register(Register::Word(word)) => Some(word),
            Behind::Register(_) => None,
        }
    }
}

impl Bus for Hart {
    const LISTENS: bool = true;

    #[inline(always)]
    fn called(&self, place: &'static Location<'static>) {
        self.silence().called(place);
    }

    #[inline]
    fn waits(&self, what: fmt::Arguments<'_>) {
        self.silence().waits(self, what);
    }

    #[inline]
    fn has_left(&self, core: Option<CoreId>) -> bool {
        end::has_left(core)
    }

    #[track_caller]
    fn load_u8(&self, at: Physical, attribute: Attribute) -> u8 {
        let mut byte = [0];
        self.load_bytes(at, attribute, &mut byte);
        byte[0]
    }

    #[track_caller]
    #[inline]
    fn load_u32(&self, at: Physical, attribute: Attribute) -> u32 {
        if attribute == Attribute::Uncached {
            return match self.behind(at) {
                Behind::Memory(address) => self.word(address).load(Relaxed),
                Behind::Register(register) => register.load(self.tile_id(), self.cycles()),
            };
        }
        let mut bytes = [0; 4];
        self.load_bytes(at, attribute, &mut bytes);
        u32::from_le_bytes(bytes)
    }

    #[track_caller]
    fn store_u8(&self, at: Physical, attribute: Attribute, value: u8) {
        self.store_bytes(at, attribute, &[value]);
    }

    #[track_caller]
    #[inline]
    fn store_u32(&self, at: Physical, attribute: Attribute, value: u32) {
        if attribute != Attribute::Uncached {
            return self.store_bytes(at, attribute, &value.to_le_bytes());
        }
        match self.behind(at) {
            Behind::Memory(address) => self.word(address).store(value, Relaxed),
            Behind::Register(register) => {
                assert!(register.store(value), "{at:x?} is for loads");
            }
        }
    }

    fn state(&self) -> &State {
        self.port_state()
    }

    #[track_caller]
    fn load_bytes(&self, at: Physical, attribute: Attribute, into: &mut [u8]) {
        if into.is_empty() {
            return; // `at` may lie behind everything
        }
        let at = self.shared(at);
        match attribute {
            Attribute::Uncached => self.load_words(at, into),
            Attribute::Normal => self.read(at, into, false),
            Attribute::Mpbt | Attribute::MpbtWriteThrough => self.read(at, into, true),
        }
    }

    #[track_caller]
    fn store_bytes(&self, at: Physical, attribute: Attribute, from: &[u8]) {
        if from.is_empty() {
            return;
        }
        let at = self.shared(at);
        match attribute {
            Attribute::Uncached => {
                let bytes = (0..).zip(from);
                bytes.for_each(|(offset, byte)| self.store_byte(at.plus(offset), *byte));
            }
            Attribute::Normal => self.write(at, from),
            Attribute::Mpbt => self.write_message(at, from, false),
            Attribute::MpbtWriteThrough => self.write_message(at, from, true),
        }
    }

    #[track_caller]
    fn write_back(&self, spans: impl Iterator<Item = (Physical, u32)> + Clone) -> bool {
        for (start, len) in spans.filter(|(_, len)| *len > 0) {
            self.write_back_lines(self.shared(start), len);
        }
        true
    }

    #[track_caller]
    fn invalidate(&self, spans: impl Iterator<Item = (Physical, u32)> + Clone) -> bool {
        for (start, len) in spans.filter(|(_, len)| *len > 0) {
            self.drop_lines(self.shared(start), len);
        }
        true
    }

    /// Gives turns away until a watched word differs, or there have been enough of them. Looking at
    /// the words here costs a waiting hart some twenty instructions per turn, going back to the
    /// caller's loop several hundred: with 512 harts, nearly all of them waiting, that is what a
    /// run consists of.
    fn relax(&self, watched: impl Iterator<Item = (Physical, u32)> + Clone) {
        csr::yield_core();
        let mut words = [None; WATCHED];
        let mut count = 0;
        for (place, (at, seen)) in words.iter_mut().zip(watched) {
            *place = self.watched(at).map(|word| (word, seen));
            count += 1;
        }
        let words = &words[..count];
        let same = |word: &Option<(&AtomicU32, u32)>| {
            word.is_some_and(|(word, seen)| word.load(Relaxed) == seen)
        };
        for _ in 1..TURNS {
            if words.is_empty() || !words.iter().all(same) {
                return;
            }
            csr::yield_core();
        }
    }
}
