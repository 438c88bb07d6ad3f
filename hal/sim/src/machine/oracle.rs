//! Shadow oracles: they see a hazard in the schedule where it exists, not only in the unlucky one
//! where an eviction makes it bite.
//!
//! They work on single bytes and have no effect on the run. None of them objects to a correct
//! owner, who alone caches lines of its region, writes back before peers may store there, and
//! invalidates before it reads what they stored: meanwhile it may hold, prefetch and evict clean
//! lines, however stale, and read bytes of them that nobody changed.

use super::hazard::Hazard;
use super::memory::Parcel;
use super::{Machine, Outcome};
use crate::mask::{LINE_MAX, Mask, bits};
use crate::report::Oracle;
use crate::trace::Note;

impl Machine {
    /// Notes a hazard, unless its oracle is off or another came first. `other` is by default the
    /// core that stored last to the line.
    pub(super) fn report(
        &mut self,
        oracle: Oracle,
        core: u16,
        line: u32,
        mask: Mask,
        other: Option<u16>,
    ) {
        let on = match oracle {
            Oracle::PendingClobber => self.oracles.pending_clobber,
            Oracle::StaleRead => self.oracles.stale_read,
            Oracle::StaleMerge => self.oracles.stale_merge,
            Oracle::LostStore => self.oracles.lost_store,
            Oracle::HiddenStore => self.oracles.hidden_store,
            Oracle::EarlyRead => self.oracles.early_read,
        };
        if !on || self.hazard.is_some() {
            return;
        }
        let last = match oracle {
            Oracle::LostStore | Oracle::HiddenStore | Oracle::EarlyRead => None,
            _ => self.memory.last_writer(line),
        };
        self.hazard = Some(Hazard {
            oracle,
            core,
            other: other.or(last).filter(|&other| other != core),
            at: self.shape.start(line) + mask.trailing_zeros() % LINE_MAX as u32,
            bytes: mask.count_ones(),
        });
    }

    /// O1: bytes of `core` arrive in a line that somebody holds dirty, or is writing back.
    ///
    /// The core's own dirty copy counts too (U2), but not against what its own cached stores sent:
    /// the copy has those. Its own write-backs under way do not count: stores to a word keep their
    /// order.
    #[cold]
    pub(super) fn check_clobber(&mut self, core: u16, parcel: &Parcel) {
        let holder = (0..self.shape.cores).find(|&other| {
            let slot = self.caches.find(other, parcel.line);
            let dirty = slot.is_some_and(|slot| self.caches.get(slot).dirty);
            if other == core {
                return dirty && !parcel.cached;
            }
            let mut stores = self.cores[usize::from(other)].stores.iter();
            dirty || stores.any(|p| p.write_back && p.line == parcel.line)
        });
        if let Some(holder) = holder {
            let (line, mask) = (parcel.line, parcel.intended);
            self.report(Oracle::PendingClobber, core, line, mask, Some(holder));
        }
    }

    /// O5: `core` loads `wanted` bytes of a line that somebody holds dirty, or is writing back:
    /// from memory, or from a cache.
    ///
    /// Its own cache counts where it loads past that. Bytes that the holder did not store to do
    /// not: a line may have a word that is polled beside bytes of its owner.
    #[cold]
    pub(super) fn check_hidden(&mut self, core: u16, line: u32, wanted: Mask, past: bool) {
        let hidden = |other: u16| {
            let cached = self
                .caches
                .find(other, line)
                .map(|slot| self.caches.get(slot));
            let mask = cached.map_or(0, |cached| cached.stored);
            if other == core {
                // Its stores under way it sees.
                return if past { mask & wanted } else { 0 };
            }
            let stores = self.cores[usize::from(other)].stores.iter();
            let under_way = stores.filter(|p| p.write_back && p.line == line);
            under_way.fold(mask, |mask, p| mask | p.intended) & wanted
        };
        let found = (0..self.shape.cores).find(|&other| hidden(other) != 0);
        if let Some(holder) = found {
            let mask = hidden(holder);
            self.report(Oracle::HiddenStore, core, line, mask, Some(holder));
        }
    }

    /// O6: `core` has read bytes before the wait. They are others now, or another core has stored
    /// to them after the ticket `since`.
    pub(super) fn check_early(
        &mut self,
        core: u16,
        line: u32,
        bytes: Mask,
        since: Option<u32>,
    ) -> Outcome {
        let stamps = self.memory.stamps(line);
        let newer = |since| bits(bytes).any(|byte| stamps[byte] > since);
        let stored = self.memory.last_writer(line).is_some_and(|by| by != core);
        if since.is_none_or(|since| stored && newer(since)) {
            self.report(Oracle::EarlyRead, core, line, bytes, None);
        }
        Outcome::new(0, Note::None)
    }
}
