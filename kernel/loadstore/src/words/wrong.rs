//! Wrong copies of this module's protocols, for their mutation points.

use flagpost_hal::{Address, CoreId, Held, Machine, Word};
use flagpost_points::{Guard, Site};

use crate::{Atomics, Base};

impl<M: Machine, A: Atomics<M>> Base<M, A> {
    /// Acquires, and then takes the lock: another rank may have it in between.
    pub(super) fn acquired_before_lock(
        &self,
        core: CoreId,
        site: Site,
    ) -> Option<Guard<Held<'_, M>>> {
        self.machine.acquire();
        lock_point!(site, self.machine.try_lock(core))
    }

    /// Acquires, and then loads the word: anything may arrive in between.
    pub(super) fn acquired_before_load<V: Word>(&self, load: impl FnOnce() -> V, at: Address) -> V {
        self.machine.acquire();
        let value = load();
        self.note(at, value);
        value
    }
}
