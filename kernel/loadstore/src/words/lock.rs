//! The lock that guards the words of one owner, for a read-modify-write of them.

use flagpost_hal::{CoreId, Held, Machine};
use flagpost_link::{
    Rank, Refusal, lock_point,
    mutant::{Guard, Site},
    order, point,
};

use crate::{Atomics, Base};

impl<M: Machine, A: Atomics<M>> Base<M, A> {
    /// Takes `owner`'s lock, for one read-modify-write of words that `owner` owns.
    pub fn lock(&self, owner: Rank, site: Site) -> Result<Guard<Held<'_, M>>, Refusal> {
        let core = CoreId::new(owner.get());
        let held = point!(
            "mapped.lock.take<acquire",
            {
                let held = lock_point!(site, self.machine().try_lock(core));
                if held.is_some() {
                    // ACQUIRE: the words must not be loaded earlier than the lock was taken.
                    point!("mapped.lock.acquire", self.machine().acquire());
                }
                held
            };
            // For the proof only: acquired first, and others have the lock in between.
            else {
                self.machine().acquire();
                lock_point!(site, self.machine().try_lock(core))
            }
        );
        held.ok_or_else(|| {
            self.polled().note_unknown();
            Refusal::Locked(owner)
        })
    }

    /// Frees a lock after the stores it protects.
    pub fn unlock(&self, held: Guard<Held<'_, M>>, drain: Site) {
        order!(
            "mapped.unlock.drain<release",
            // DRAIN: the next holder must load what this one stored. `retire` and `post` also
            // promise that what came before is ordered before what comes after; this is where it
            // is.
            point!(drain, self.machine().drain()),
            drop(held)
        );
    }
}
