//! How the machine ends: all harts returned, or one of them died.
//!
//! # Dying
//! A trap or a panic is the end of the whole machine: the core that meets it logs one record and
//! writes the status. *One* core dies; others that meet trouble at the same time are left waiting,
//! so that the first record is whole. See `log` for how the dying core gets at the logger.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::barrier::barrier;
use crate::entry::Exit;
use crate::hart::Hart;
use crate::{csr, devices};

/// Number of the core that is dying, plus 1; 0 while all is well.
static DYING: AtomicU32 = AtomicU32::new(0);

/// Harts whose program failed.
static FAILED: AtomicU32 = AtomicU32::new(0);

/// Ends this hart's program; ends the machine once all harts are here.
pub(crate) fn hart_returned(hart: Hart, exit: Exit) -> ! {
    if exit == Exit::Fail {
        // ORDERING: Relaxed: the barrier shows it to core 0.
        FAILED.fetch_add(1, Ordering::Relaxed);
    }
    barrier(hart);
    if hart.core().get() == 0 {
        match FAILED.load(Ordering::Relaxed) {
            0 => finish(Exit::Pass),
            _ => finish(Exit::Fail),
        }
    }
    park()
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
