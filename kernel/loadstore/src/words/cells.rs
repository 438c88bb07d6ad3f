//! Cells and other bytes that are read, changed and written by many. Locks, counters and events are
//! such words. A change is a load and a store under the owner's lock, or a native atomic operation;
//! [`atomics`](super::atomics) decides which.
//!
//! # Guarantee
//! G1. Two changes of the same bytes never overlap: one finds what the other stored.
//! G2. A rank that finds its value in a [watched](flagpost_link::Telling::watch) cell finds
//!     everything that the writer fenced before.
//! G3. All that this core does after an `amo` comes after it: it finds what was placed before the
//!     change that the `amo` found.
//!
//! # Steps
//! | call | core | memory actions, in order |
//! |---|---|---|
//! | `amo` | origin | lock(owner), acquire; load the cell; store it if it changes; drain; unlock |
//! | `update` | origin | the same with bytes |
//! | `watch` | owner | load the low half, or all; acquire if it is what was waited for |
//! | `amo` that only reads | origin | load it; acquire |
//!
//! Remote accesses: lock, load, store, unlock: 4 for half a cell; a whole one takes 2 loads and 2
//! stores. An update takes a load per word, and a store of one line. To read half a cell: 1.
//!
//! Half cells, and updates of up to 4 bytes, are changed without a lock if the machine can, and so
//! are whole cells and updates of 8: [`atomics`](crate::words::atomics).
//!
//! # Invariants
//! I1. The owner's lock is held for one change, never while another lock is held.
//! I2. Polls and reads without the lock are of the low half of a cell, where 8 bytes may tear.
//!
//! # Source
//! [foMPI] 2.3 builds its protocols on such operations of the network; the SCC has none, so each
//! core's test-and-set register guards the words that it owns.
//!
//! [foMPI]: crate#sources

use flagpost_hal::{Address, Coherence as _, UncachedMemory as _};
use flagpost_link::{Amo, Rank, Refusal, Width, Word};

use crate::{Atomics as _, LoadStore, Mail, layout::UPDATE};

impl<W: Mail, const PIECES: usize> LoadStore<W, PIECES> {
    fn load_cell(&self, at: Address, width: Width) -> u64 {
        let low = u64::from(self.machine().load_u32(at));
        match width {
            Width::Half => low,
            Width::Whole => {
                let high = u64::from(self.machine().load_u32(at.plus(4)));
                high.wrapping_shl(u32::BITS) | low
            }
        }
    }

    fn store_cell(&self, at: Address, width: Width, value: u64) {
        self.machine().store_u32(at, value as u32);
        if width == Width::Whole {
            let high = value.wrapping_shr(u32::BITS) as u32;
            self.machine().store_u32(at.plus(4), high);
        }
    }

    /// `amo` was done in one step on a cell of `to`, which held `old`.
    #[inline(always)]
    pub(crate) fn changed(&self, to: Rank, amo: Amo, old: u64) -> u64 {
        point!(ACQUIRE "G3; where there is a lock, taking it has done so":
            "loadstore.cells.change.acquire", self.machine().acquire());
        if amo.apply(old) != old {
            self.base().told(to);
        }
        old
    }

    /// Before a cell is changed, by whichever means: somebody may wait for it.
    #[inline(always)]
    pub(crate) fn before_changing(&self) -> Result<(), Refusal> {
        point!(PLACE "D2 of `deferred`: a rank may wait for the cell":
            "loadstore.cells.change.told", self.mail.before_telling(None)?);
        Ok(())
    }

    pub(crate) fn change_cell(
        &self,
        to: Rank,
        place: usize,
        amo: Amo,
        width: Width,
    ) -> Result<u64, Refusal> {
        let at = self.base().region_of(to)?.at(place);
        if !place.is_multiple_of(8) {
            return Err(Refusal::BadCell { offset: place });
        }
        self.before_changing()?;
        let without_lock = match (amo, width) {
            (Amo::Read, Width::Half) => Some(self.base().poll(at).into()),
            (Amo::Read, Width::Whole) if W::Atomics::WIDE => self.base().poll_long(at),
            (_, Width::Half) if W::Atomics::NATIVE => {
                self.base().looked();
                self.mail.stored();
                let new = |old: u32| amo.apply(old.into()) as u32;
                let old = match amo {
                    // The cell never holds as much.
                    Amo::CompareSwap { expected, .. } if expected > u32::MAX.into() => {
                        self.base().change_short(at, Amo::Read)
                    }
                    _ => self.base().change_short(at, amo),
                };
                Some(
                    old.map_or_else(|| self.base().change_word(to, at, new), Ok)?
                        .into(),
                )
            }
            (_, Width::Whole) if W::Atomics::WIDE => {
                self.base().looked();
                self.mail.stored();
                let new = |old| amo.apply(old);
                let old = self.base().change_long(at, amo);
                Some(old.map_or_else(|| self.base().change_two_words(to, at, new), Ok)?)
            }
            _ => None,
        };
        if let Some(old) = without_lock {
            return Ok(self.changed(to, amo, old));
        }
        self.base().looked();
        let site = site!(LOCK "nobody else changes the cell": "loadstore.cells.change.lock");
        let held = self.base().lock(to, site)?;
        let old = self.load_cell(at, width);
        let new = amo.apply(old);
        if new != old {
            self.store_cell(at, width, new);
        }
        let site =
            site!(DRAIN "the next holder loads the new value": "loadstore.cells.change.drain");
        self.base().unlock(held, site);
        if new != old {
            self.base().told(to);
        }
        Ok(old)
    }

    pub(crate) fn change_bytes(
        &self,
        to: Rank,
        place: usize,
        len: usize,
        change: &mut dyn FnMut(&mut [u8]),
    ) -> Result<(), Refusal> {
        let region = self.base().region_of(to)?;
        let bad = Refusal::BadCell { offset: place };
        let start = place & (UPDATE.wrapping_sub(1));
        let mut buffer = [0; UPDATE];
        let end = start.saturating_add(len);
        if end > buffer.len() {
            return Err(bad);
        }
        let bytes = buffer.get_mut(..len).ok_or(bad)?;
        point!(PLACE "D2 of `deferred`: a rank may poll these bytes":
            "loadstore.cells.bytes.told", self.mail.before_telling(None)?);
        self.base().looked();
        if W::Atomics::NATIVE && (place & 3).saturating_add(len) <= 4 {
            let (word, at) = (place & !3, place & 3);
            let new = |old: u32| {
                let mut bytes = old.to_le_bytes();
                let range = at..at.saturating_add(len);
                change(bytes.get_mut(range).unwrap_or_default());
                u32::from_le_bytes(bytes)
            };
            self.mail.stored();
            self.base().change_word(to, region.at(word), new)?;
            self.base().told(to);
            return Ok(());
        }
        if W::Atomics::WIDE {
            // They lie between two multiples of 8: see `Link::UPDATE`.
            let (long, at) = (place & !7, place & 7);
            let range = at..at.saturating_add(len);
            if range.end > 8 {
                return Err(bad);
            }
            let new = |old: u64| {
                let mut bytes = old.to_le_bytes();
                change(bytes.get_mut(range.clone()).unwrap_or_default());
                u64::from_le_bytes(bytes)
            };
            self.mail.stored();
            self.base().change_two_words(to, region.at(long), new)?;
            self.base().told(to);
            return Ok(());
        }
        let site = site!(LOCK "nobody else changes the bytes": "loadstore.cells.update.lock");
        let held = self.base().lock(to, site)?;
        self.machine().load_bytes(region.at(place), bytes);
        let mut changed = buffer;
        let changed = changed.get_mut(..len).ok_or(bad)?;
        change(changed);
        if changed != buffer.get(..len).ok_or(bad)? {
            self.machine().store_bytes(region.at(place), changed);
        }
        let site =
            site!(DRAIN "the next holder loads the new bytes": "loadstore.cells.update.drain");
        self.base().unlock(held, site);
        self.base().told(to);
        Ok(())
    }

    pub(crate) fn watch_cell<V: Word>(
        &self,
        place: usize,
        arrived: impl Fn(V) -> bool,
    ) -> Result<Option<V>, Refusal> {
        let sites = [
            site!(ORDER "loaded before the acquire": "loadstore.cells.watch.poll<acquire"),
            site!(ACQUIRE "G2: what it announces comes after it": "loadstore.cells.watch.acquire"),
        ];
        let (base, at) = (self.base(), self.base().own(place));
        let value = base.poll_with(|| base.load(at), at, &arrived, sites);
        Ok(arrived(value).then_some(value))
    }
}
