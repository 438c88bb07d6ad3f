//! The log: defmt frames of many cores on one UART.
//!
//! # Invariants
//! * L1. Bytes of a frame are sent only by the core in `OWNER`. One core is: the holder of `LOCK`,
//!   or the dying core, which may take the log over.
//! * L2. Each frame is whole, except one that a dying core cuts off. A zero byte (rzcobs' frame
//!   end) follows the cut, so that the decoder drops what was cut and reads on.
//!
//! # Steps
//! | who | acquire | write, release |
//! |---|---|---|
//! | any core | wait for `LOCK`, yielding | while it is `OWNER`; else the log is taken over: park |
//! | the dying core, holding `LOCK` | take over at once | with the encoder `LAST_WORDS` |
//! | the dying core, `LOCK` elsewhere | wait up to `PATIENCE` cycles, then take over | likewise |
//!
//! The dying core's encoder is its own: it has no state of the cut frame, and starts with a zero
//! byte. A core that was in the middle of `send` when the log was taken over may still mix in the
//! rest of that one fragment, if QEMU runs its harts on several host threads.

use core::sync::atomic::{AtomicU32, Ordering};

use defmt::Encoder;
use spin::mutex::{SpinMutex, SpinMutexGuard};

use crate::csr::{self, Yield};
use crate::{devices, end};

/// Guards the UART between harts; holds the state of the frame being sent.
static LOCK: SpinMutex<Encoder, Yield> = SpinMutex::new(Encoder::new());

/// The dying core's encoder. Only one core ever dies, so this lock is always free when it is taken.
static LAST_WORDS: SpinMutex<Encoder, Yield> = SpinMutex::new(Encoder::new());

/// Number of the core that sends, plus 1; 0 if none does.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Cycles that the dying core grants a frame of another core: a thousand times what a long record
/// takes. Not a number of polls: a holder that spins keeps each of its turns for a hundred million
/// cycles.
const PATIENCE: u64 = 100_000_000;

defmt::timestamp!("{=u16}", csr::core_number());

#[defmt::global_logger]
struct Log;

// SAFETY: defmt asks that `acquire` be safe to call on any core at any time, and that a frame have
// one sender. L1: a core that is neither the lock's holder nor the dying one does not get past
// `acquire`; one that loses the log to the dying core does not get past its next `write`.
unsafe impl defmt::Logger for Log {
    fn acquire() {
        if end::is_dying_here() {
            take_over();
        } else {
            // Kept locked over this function's end: `release` unlocks.
            SpinMutexGuard::leak(LOCK.lock());
        }
        OWNER.store(me(), Ordering::Relaxed);
        with_encoder(|encoder| encoder.start_frame(devices::send));
    }

    unsafe fn flush() {
        devices::wait_until_sent();
    }

    unsafe fn release() {
        with_encoder(|encoder| encoder.end_frame(devices::send));
        // The dying core keeps the log; its next step is the end of the machine.
        if !end::is_dying_here() {
            OWNER.store(0, Ordering::Relaxed);
            // SAFETY: `acquire` on this core took the lock and leaked its guard.
            unsafe { LOCK.force_unlock() };
        }
    }

    unsafe fn write(bytes: &[u8]) {
        with_encoder(|encoder| encoder.write(bytes, devices::send));
    }
}

fn me() -> u32 {
    u32::from(csr::core_number()) + 1
}

/// Gets the log for the dying core: see the steps above.
fn take_over() {
    let start = csr::cycles();
    while csr::cycles().wrapping_sub(start) < PATIENCE {
        // Interrupted in the middle of a frame of our own: nobody will ever unlock.
        if OWNER.load(Ordering::Relaxed) == me() {
            return;
        }
        if let Some(guard) = LOCK.try_lock() {
            SpinMutexGuard::leak(guard);
            return;
        }
        csr::yield_core();
    }
}

/// Calls `act` with the encoder of the frame that this core is sending.
fn with_encoder(act: impl FnOnce(&mut Encoder)) {
    if end::is_dying_here() {
        if let Some(mut encoder) = LAST_WORDS.try_lock() {
            act(&mut encoder);
        }
        return;
    }
    if OWNER.load(Ordering::Relaxed) != me() {
        end::park(); // L1
    }
    // SAFETY: this core holds `LOCK` (it is `OWNER` and not dying), so no other core has a
    // reference; and `devices::send`, the only code called by the encoder, does not log.
    act(unsafe { &mut *LOCK.as_mut_ptr() });
}
