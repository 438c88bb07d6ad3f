//! What caches do where the HAL's contract leaves room.
//!
//! [`Coherence`](flagpost_hal::Coherence) promises little: `invalidate` may save or lose what is
//! dirty in the lines named, `write_back` may drop lines, and both may act on more than was named.
//! [`CachedMemory`] does not say whether a store stays in the cache at all. Chips differ in all of
//! it (docs/hardware.md B1), so each is a knob, in any combination; protocols must be right with
//! every one.
//!
//! One combination does not exist: an `invalidate` that loses dirty bytes of lines that nobody
//! *named*. No caller could keep his side of that contract (promise S6).
//!
//! [`CachedMemory`]: flagpost_hal::CachedMemory

use serde::{Deserialize, Serialize};

/// Where a cached store goes.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stores {
    /// Into the cache: a line that is missing is fetched. The line is dirty then.
    #[default]
    Allocate,
    /// Into the cache if the line is there; else past it, as words. P54C.
    Around,
    /// To memory, as words, and into the line too if it is there: no line is ever dirty. Blackhole.
    Through,
    /// There are no caches: to memory, as words; and loads come from there. RP2040.
    Uncached,
}

/// What caches do where the HAL's contract leaves room.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Caching {
    /// `invalidate` writes dirty bytes of the lines named back. Else it loses them.
    pub invalidate_saves: bool,
    /// `write_back` also drops the lines, clean ones too. Else it keeps them.
    pub write_back_drops: bool,
    /// `invalidate` drops all lines of the core. It saves what is dirty in those not named.
    pub invalidate_all: bool,
    /// `write_back` acts on all lines of the core.
    pub write_back_all: bool,
    /// Where a cached store goes.
    pub stores: Stores,
    /// Cores with odd numbers have no caches, as [`Stores::Uncached`] says.
    pub half: bool,
}

impl Caching {
    /// Where a cached store of `core` goes.
    #[inline]
    pub(crate) fn stores_of(&self, core: u16) -> Stores {
        match self.half && core % 2 == 1 {
            true => Stores::Uncached,
            false => self.stores,
        }
    }

    /// True if some core has no cache.
    pub(crate) fn has_uncached(&self) -> bool {
        self.half || self.stores == Stores::Uncached
    }

    /// All combinations that differ, with all cores alike; and one in which they are not.
    pub fn all() -> impl Iterator<Item = Self> {
        let stores = [Stores::Allocate, Stores::Around, Stores::Through];
        let of = move |bits: u32| {
            stores.map(|stores| Self {
                invalidate_saves: bits & 1 != 0,
                write_back_drops: bits & 2 != 0,
                invalidate_all: bits & 4 != 0,
                write_back_all: bits & 8 != 0,
                stores,
                half: false,
            })
        };
        let none = Self {
            stores: Stores::Uncached,
            ..Self::default()
        };
        let half = Self {
            half: true,
            ..Self::default()
        };
        (0..16).flat_map(of).chain([none, half])
    }
}
