//! What each hart is doing, in words that the host can read.
//!
//! A machine that hangs prints nothing more. The host then reads [`FLAGPOST_STATUS`] through QEMU's
//! monitor (`xp`) to learn which harts are still inside a case.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use spin::mutex::Mutex;

use crate::board::MAX_HARTS;
use crate::csr::Yield;
use crate::hart::Hart;

/// Status of a hart in the machine barrier, or behind its end.
pub(crate) const WAITING: u32 = 1;

/// Status per hart: 0 not booted, 1 waiting in the machine barrier or finished, and whatever the
/// program gives to [`set_status`]: the image of cases sets `2 + k` while the hart runs the `k`th
/// case.
// SAFETY (`no_mangle`): no other symbol of an image bears this name.
#[unsafe(no_mangle)]
pub static FLAGPOST_STATUS: [AtomicU32; MAX_HARTS] = [const { AtomicU32::new(0) }; MAX_HARTS];

static CASE: Mutex<&'static str, Yield> = Mutex::new("-");

/// Sets `hart`'s status.
pub fn set_status(hart: Hart, status: u32) {
    FLAGPOST_STATUS[hart.core().index()].store(status, Relaxed);
}

/// Names what runs now, for the records of traps and panics.
pub fn set_case(name: &'static str) {
    *CASE.lock() = name;
}

/// What [`set_case`] named. Does not wait: the core that asks may hold the name itself.
pub(crate) fn case() -> &'static str {
    CASE.try_lock().map_or("?", |name| *name)
}
