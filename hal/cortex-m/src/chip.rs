//! What differs from chip to chip.

use core::sync::atomic::AtomicU32;
#[cfg(target_has_atomic = "32")]
use core::sync::atomic::Ordering::Relaxed;

use crate::instructions;

/// A Cortex-M chip of several cores.
///
/// A type without fields: everything here is a register, or an instruction.
///
/// # Safety
/// The promises of [`Coherence`](flagpost_hal::Coherence) rest on two of the implementor:
/// * The [`Shared`](crate::Shared) that machines of this chip are started with is memory that no
///   core of them caches.
/// * [`barrier`](Self::barrier) orders all earlier loads and stores of this core to that memory
///   ahead of all later ones, as the other cores see them.
#[expect(unsafe_code, reason = "the trait is unsafe to implement")]
pub unsafe trait Chip: Copy + 'static {
    /// How many bits [`counter`](Self::counter) has. It wraps to 0 after these.
    const COUNTER_BITS: u32 = 32;

    /// The number of the core that calls, from 0.
    fn core() -> u16;

    /// A counter that counts up, as fast as [`hertz`](Self::hertz) says: DWT's cycles, or a timer.
    /// 1 MHz is enough. It may be one for all cores.
    fn counter() -> u32;

    /// How often the counter counts in a second.
    fn hertz() -> u64;

    /// Tries to take `lock`; true if it was free. Never asked by a core that holds it. Orders
    /// nothing.
    fn test_and_set(lock: Lock<'_>) -> bool;

    /// Frees `lock`.
    fn clear(lock: Lock<'_>);

    /// Frees this core's own lock after a reset, whichever core held it before. For registers that
    /// only their holder can free: frees all that *this* core has held; each core does so.
    fn release_at_start(lock: Lock<'_>) {
        Self::clear(lock);
    }

    /// Orders accesses to memory: see the trait's safety. The default is DMB.
    #[inline(always)]
    fn barrier() {
        instructions::dmb();
    }

    /// True if cores sleep while they wait for words of their own regions. Then
    /// [`sleep`](Self::sleep) ends after [`wake`](Self::wake) by another core, and every few
    /// milliseconds by itself, for the sake of budgets. Start a timer: with its interrupt enabled
    /// and an empty handler; or masked, with SEVONPEND set, and a `sleep` that clears the pending
    /// bit after WFE, since only an interrupt that *becomes* pending is an event.
    const SLEEPS: bool = false;

    /// Sleeps until an event. One that came since the last sleep counts. The default is WFE.
    #[inline(always)]
    fn sleep() {
        instructions::wfe();
    }

    /// An event for `core`, after all earlier stores. The default is DSB and SEV, for all cores.
    #[inline(always)]
    fn wake(core: u16) {
        let _ = core;
        instructions::dsb();
        instructions::sev();
    }

    /// The time between two polls of a wait that does not sleep. The default is YIELD.
    #[inline(always)]
    fn relax() {
        instructions::yield_turn();
    }
}

/// A chip on which LDREX and STREX of all cores, on the memory of its
/// [`Shared`](crate::Shared), meet in one monitor: a machine with atomic operations.
pub trait Exclusives: Chip {}

/// A lock of the machine.
#[derive(Copy, Clone, Debug)]
pub struct Lock<'a> {
    /// 0: of critical sections; `n + 1`: guards words of core `n`.
    pub number: u16,
    /// A word that all cores reach: for chips whose locks are words.
    pub word: &'a AtomicU32,
}

#[cfg(target_has_atomic = "32")]
impl Lock<'_> {
    /// [`Chip::test_and_set`] by LDREX and STREX on the word. For a chip that is [`Exclusives`].
    #[inline]
    pub fn swap(self) -> bool {
        self.word.swap(1, Relaxed) == 0
    }

    /// [`Chip::clear`] of a lock that [`swap`](Self::swap) takes.
    #[inline]
    pub fn free(self) {
        self.word.store(0, Relaxed);
    }
}
