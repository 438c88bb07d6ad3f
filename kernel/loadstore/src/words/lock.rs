//! The lock that guards the words of one owner, for a read-modify-write of them.

use flagpost_hal::{CoreId, Held, Machine};
use flagpost_link::{Rank, Refusal};
use flagpost_points::{Guard, Site};

use crate::{Atomics, Base};

impl<M: Machine, A: Atomics<M>> Base<M, A> {
    /// Takes `owner`'s lock, for one read-modify-write of words that `owner` owns.
    pub fn lock(&self, owner: Rank, site: Site) -> Result<Guard<Held<'_, M>>, Refusal> {
        let core = CoreId::new(owner.get());
        let held = point!(ORDER "the acquire comes after the lock": "loadstore.lock.take<acquire", {
            let held = lock_point!(site, self.machine.try_lock(core));
            if held.is_some() {
                point!(ACQUIRE "words are not loaded earlier than the lock was taken":
                    "loadstore.lock.acquire", self.machine.acquire());
            }
            held
        }; else self.acquired_before_lock(core, site));
        held.ok_or_else(|| {
            self.polled.note_unknown();
            Refusal::Locked(owner)
        })
    }

    /// Frees a lock after the stores it protects.
    pub fn unlock(&self, held: Guard<Held<'_, M>>, drain: Site) {
        // `retire` and `post` also promise that what came before is ordered before what comes
        // after; this is where it is.
        order!("the next holder loads what this one stored": "loadstore.unlock.drain<release",
            point!(drain, self.machine.drain()),
            drop(held));
    }

    /// Wakes `rank`, if it sleeps until words of its own change: this rank has changed some.
    #[inline(always)]
    pub fn told(&self, rank: Rank) {
        if rank != self.rank() {
            point!(NOTIFY "the owner may sleep until it is told":
                "loadstore.told", self.machine.told(CoreId::new(rank.get())));
        }
    }
}
