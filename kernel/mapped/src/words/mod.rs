//! Shared words: looking at them in a loop that waits, and changing them under a lock.

pub mod atomics;
pub mod cells;
pub mod match_vector;
pub(crate) mod poll;
pub mod slots;

use flagpost_hal::{Address, CoreId, Held, Machine};
use flagpost_link::{
    Rank, Refusal, lock_point,
    mutant::{Guard, Site},
    order, point,
};

use crate::{Atomics, Mapped};

impl<M: Machine, A: Atomics<M>, const PEERS: usize, const PIECES: usize>
    Mapped<M, A, PEERS, PIECES>
{
    /// Loads a word that a waiting loop looks at.
    pub(crate) fn poll(&self, at: Address) -> u32 {
        let value = self.machine.load_u32(at);
        self.polled.note(at, value);
        value
    }

    /// A waiting loop may look at bytes that are not polled word by word: it must not sleep on
    /// other words.
    pub(crate) fn looked(&self) {
        point!("mapped.poll.looked", self.polled.looked());
    }

    /// [`poll`](Self::poll), and acquires if what was waited for has `arrived`: what the word
    /// announces is not loaded earlier than the word.
    pub(crate) fn poll_for(
        &self,
        at: Address,
        arrived: impl FnOnce(u32) -> bool,
        sites: [Site; 2],
    ) -> u32 {
        self.poll_with(|| self.machine.load_u32(at), at, arrived, sites)
    }

    /// [`poll_for`](Self::poll_for) of the word `at`, which `load` loads.
    pub(crate) fn poll_with(
        &self,
        load: impl FnOnce() -> u32,
        at: Address,
        arrived: impl FnOnce(u32) -> bool,
        [order, acquire]: [Site; 2],
    ) -> u32 {
        point!(
            order,
            {
                let value = load();
                let arrived = arrived(value);
                if M::COHERENT && arrived {
                    self.polled.note_arrived(at, value);
                } else {
                    self.polled.note(at, value);
                }
                if arrived {
                    // ACQUIRE: behind the load of the word.
                    point!(acquire, self.machine.acquire());
                }
                value
            };
            // For the proof only: acquired first, whatever arrives in between.
            else {
                self.machine.acquire();
                let value = load();
                self.polled.note(at, value);
                value
            }
        )
    }

    /// Takes `owner`'s lock, for one read-modify-write of words that `owner` owns.
    pub(crate) fn lock(&self, owner: Rank, site: Site) -> Result<Guard<Held<'_, M>>, Refusal> {
        let core = CoreId::new(owner.get());
        let held = point!(
            "mapped.lock.take<acquire",
            {
                let held = lock_point!(site, self.machine.try_lock(core));
                if held.is_some() {
                    // ACQUIRE: the words must not be loaded earlier than the lock was taken.
                    point!("mapped.lock.acquire", self.machine.acquire());
                }
                held
            };
            // For the proof only: acquired first, whoever has the lock in between.
            else {
                self.machine.acquire();
                lock_point!(site, self.machine.try_lock(core))
            }
        );
        held.ok_or_else(|| {
            self.polled.note_unknown();
            Refusal::Locked(owner)
        })
    }

    /// Frees a lock behind the stores it protects.
    pub(crate) fn unlock(&self, held: Guard<Held<'_, M>>, drain: Site) {
        order!(
            "mapped.unlock.drain<release",
            // DRAIN: the next holder must load what this one stored. `retire` and `post` also
            // promise that what came before is ordered before what comes after; this is where it
            // is.
            point!(drain, self.machine.drain()),
            drop(held)
        );
    }
}
