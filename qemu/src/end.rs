//! How the machine ends: all harts returned, or one of them died.
//!
//! # Leaving
//! A hart whose program has returned has *left*: what it has stored is in memory, and it stores
//! nothing more. Calls of others that need it fail then.
//!
//! # Dying
//! A trap or a panic is the end of the whole machine: the core that meets it logs one record and
//! writes the status. *One* core dies; others that meet trouble at the same time are left waiting,
//! so that the first record is whole. See `log` for how the dying core gets at the logger.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use flagpost_hal::CoreId;

use crate::barrier::barrier;
use crate::board::MAX_HARTS;
use crate::entry::Exit;
use crate::hart::Hart;
use crate::{csr, devices};

/// Number of the core that is dying, plus 1; 0 while all is well.
static DYING: AtomicU32 = AtomicU32::new(0);

/// Harts whose program failed.
static FAILED: AtomicU32 = AtomicU32::new(0);

/// Harts that have left: how many, and which.
static LEFT: AtomicU32 = AtomicU32::new(0);
static HAS_LEFT: [AtomicBool; MAX_HARTS] = [const { AtomicBool::new(false) }; MAX_HARTS];

/// Ends this hart's program; ends the machine once all harts are here.
pub(crate) fn hart_returned(hart: Hart, exit: Exit) -> ! {
    leave(hart, exit);
    barrier(hart);
    if hart.core().get() == 0 {
        match failed() {
            0 => finish(Exit::Pass),
            _ => finish(Exit::Fail),
        }
    }
    park()
}

/// The program of this hart makes no more calls: those of others that need it fail. A program that
/// returns does so by itself. The machine's exit status is 1 then if `exit` is [`Exit::Fail`].
pub fn leave(hart: Hart, exit: Exit) {
    if exit == Exit::Fail {
        // ORDERING: Relaxed: the barrier shows it to core 0.
        FAILED.fetch_add(1, Ordering::Relaxed);
    }
    hart.empty();
    // ORDERING: Release: a hart that sees that this one has left finds what it has stored.
    HAS_LEFT[hart.core().index()].store(true, Ordering::Release);
    LEFT.fetch_add(1, Ordering::Release);
}

/// How many programs have failed.
pub(crate) fn failed() -> u32 {
    FAILED.load(Ordering::Relaxed)
}

/// Whether `core` has left; whether any has, if none is named.
#[inline]
pub(crate) fn has_left(core: Option<CoreId>) -> bool {
    match core {
        None => LEFT.load(Ordering::Acquire) != 0,
        Some(core) => HAS_LEFT[core.index()].load(Ordering::Acquire),
    }
}

/// Ends the machine now, from any hart: exit status 0 for `Pass`, 1 for `Fail`.
pub fn finish(exit: Exit) -> ! {
    devices::finish(exit);
    park() // QEMU ends a little later
}

/// Makes this core the one that dies. Returns only on the core that may log its last record.
pub(crate) fn die() {
    let me = u32::from(csr::core_number()) + 1;
    // ORDERING: AcqRel: who dies sees what the log's holder did last.
    match DYING.compare_exchange(0, me, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => {}
        // Trouble while logging the trouble. The record is lost; the status is not.
        Err(dying) if dying == me => finish(Exit::Fail),
        Err(_) => park(),
    }
}

/// Whether this core is the one that dies.
pub(crate) fn is_dying_here() -> bool {
    DYING.load(Ordering::Acquire) == u32::from(csr::core_number()) + 1
}

/// Yields for ever.
pub(crate) fn park() -> ! {
    loop {
        csr::yield_core();
    }
}
