//! The board's FPGA: counters that count when they are read, and a clock that all cores share.
//!
//! ```text
//!   0xF900_8224, 8228          time: low word, high word; 125 MHz
//!   0xF900_E000 + 8 i          counter i, i < 48        read: value, and then one more
//!   0xF900_F000 + 8 (i - 48)   counter i, 48 <= i < 96
//!               …  + 4         the same counter         read: value; write: set
//! ```
//! docs/hardware.md A6: sccKit 1.4 and later. The FPGA is off the chip, behind tile (3, 0): expect
//! far more than a mesh trip. An increment is all that these counters can do atomically, so they
//! are no [`NativeAtomics`](flagpost_hal::NativeAtomics). That a store to the first word decrements
//! is unverified, so there is no such method.

use crate::bus::{Attribute::Uncached, Bus, Physical};
use crate::map::Map;

/// Offset of the low word of the shared clock.
pub const TIME_LOW: u32 = 0x8224;
/// Offset of its high word.
pub const TIME_HIGH: u32 = 0x8228;

/// Ticks of the shared clock per second.
pub const HERTZ: u64 = 125_000_000;

/// One of the 96 counters. Only made for one that exists: an access to an undefined register of the
/// FPGA can hang the whole chip.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Counter(u32);

impl Counter {
    /// How many there are: two per core.
    pub const COUNT: u32 = 96;

    /// Counter `number`, if it exists.
    pub const fn new(number: u32) -> Option<Self> {
        match number {
            0..48 => Some(Self(0xE000 + 8 * number)),
            48..Self::COUNT => Some(Self(0xF000 + 8 * (number - 48))),
            _ => None,
        }
    }

    /// Offset of its counting register; the other one is 4 bytes further on.
    pub const fn offset(self) -> u32 {
        self.0
    }
}

/// The FPGA, by way of a bus.
#[derive(Copy, Clone, Debug)]
pub struct Fpga<'b, B>(pub &'b B);

impl<B: Bus> Fpga<'_, B> {
    /// Returns the counter's value and adds one to it, in one indivisible step.
    #[track_caller]
    pub fn increment(&self, counter: Counter) -> u32 {
        self.load(counter.offset())
    }

    /// The counter's value.
    #[track_caller]
    pub fn get(&self, counter: Counter) -> u32 {
        self.load(counter.offset() + 4)
    }

    /// Sets the counter.
    #[track_caller]
    pub fn set(&self, counter: Counter, value: u32) {
        self.0.store_u32(at(counter.offset() + 4), Uncached, value);
    }

    /// Ticks of the clock that all cores share.
    ///
    /// Its two words are two accesses (H10): if the high one changes between two looks, the low one
    /// in between may belong to either. It changes every 34 seconds, so a second round is the last.
    #[track_caller]
    pub fn time(&self) -> u64 {
        let mut high = self.load(TIME_HIGH);
        loop {
            let low = self.load(TIME_LOW);
            let again = self.load(TIME_HIGH);
            if again == high {
                return u64::from(high) << 32 | u64::from(low);
            }
            high = again;
        }
    }

    #[track_caller]
    fn load(&self, offset: u32) -> u32 {
        self.0.load_u32(at(offset), Uncached)
    }
}

const fn at(offset: u32) -> Physical {
    Map::fpga().plus(offset)
}
