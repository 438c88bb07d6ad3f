//! Test-and-set registers: one lock bit per core.

use crate::CoreId;

/// One test-and-set register per core, reachable by every core.
///
/// # Contract
/// * T1. A register is free or held; it does not tell who holds it. Where cores can be lost, one
///   that a lost core holds is free, or becomes so.
/// * T2. [`test_and_set`](Self::test_and_set) may fail any number of times and be repeated; a
///   failed attempt harms no holder.
/// * T3. Not re-entrant: a core that holds a register fails to take it again. A core that
///   takes one in an interrupt handler must mask that interrupt while it holds the register
///   elsewhere.
/// * T4. The register orders nothing: before releasing, [`drain`](crate::Coherence::drain); after
///   taking, [`acquire`](crate::Coherence::acquire).
/// * T5. After reset the state is undefined: each core calls
///   [`release_at_start`](Self::release_at_start) before any peer may use its register.
///
/// Register `n` guards words that core `n` owns; hold it for one read-modify-write, no longer. A
/// core that needs two takes them in ascending order of their owners.
pub trait TestAndSet {
    /// Tries to take `of`'s register; true if this core holds it now. Use
    /// [`try_lock`](Self::try_lock), which cannot forget to free it.
    fn test_and_set(&self, of: CoreId) -> bool;

    /// Frees `of`'s register, held or not. Only [`Held`] and `release_at_start` call this: a stray
    /// call breaks another core's critical section.
    fn clear(&self, of: CoreId);

    /// Tries to take `of`'s register. Does not wait.
    #[track_caller] // so that a simulator's account names who locks
    fn try_lock(&self, of: CoreId) -> Option<Held<'_, Self>> {
        // Made only on success: dropping a `Held` frees the register, whichever core holds it.
        self.test_and_set(of).then(|| Held { lock: self, of })
    }

    /// Frees this core's register, at start-up only (T5).
    fn release_at_start(&self, own: CoreId) {
        self.clear(own);
    }
}

/// A held test-and-set register; freed on drop.
#[must_use = "the register is freed as soon as this is dropped"]
pub struct Held<'m, M: TestAndSet + ?Sized> {
    lock: &'m M,
    of: CoreId,
}

impl<M: TestAndSet + ?Sized> Drop for Held<'_, M> {
    fn drop(&mut self) {
        self.lock.clear(self.of);
    }
}
