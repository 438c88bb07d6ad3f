//! What runs, for the records of traps and panics.

use spin::mutex::Mutex;

use crate::csr::Yield;

static CASE: Mutex<&'static str, Yield> = Mutex::new("-");

/// Names what runs now.
pub fn set_case(name: &'static str) {
    *CASE.lock() = name;
}

/// What [`set_case`] named. Does not wait: the core that asks may hold the name itself.
pub(crate) fn case() -> &'static str {
    CASE.try_lock().map_or("?", |name| *name)
}
