//! The switch of the points, in a build with `--cfg mutants` only. One point is broken, or none: it
//! is known by the hash of its name, which the compiler works out, so that a step asks for one
//! comparison. On a host, the names of the points that were reached are kept, if that is asked for.

use crate::Site;

impl Site {
    /// The point called `name`. Use [`site!`](crate::site).
    pub const fn new(name: &'static str) -> Self {
        let hash = hash(name);
        Self { name, hash }
    }
}

/// FNV-1a: names are compared by it at every step of every run. Of 32 bits: not all boards have
/// atomic words of 64.
const fn hash(name: &str) -> u32 {
    let mut hash = 0x811c_9dc5_u32;
    let mut bytes = name.as_bytes();
    while let [first, rest @ ..] = bytes {
        hash = (hash ^ *first as u32).wrapping_mul(0x0100_0193);
        bytes = rest;
    }
    hash
}

/// Stands for no point.
const NONE: u32 = 0;

/// Breaks the point called `name`, or none.
pub fn break_point(name: Option<&str>) {
    state::select(name.map_or(NONE, hash));
}

/// Is the point broken? Notes that it was reached, if that is recorded.
#[inline]
pub fn broken(site: Site) -> bool {
    state::reach(site.name);
    state::selected() == site.hash
}

pub use state::{reached, record};

/// On a host: per thread.
#[cfg(not(target_os = "none"))]
mod state {
    extern crate std;
    use core::cell::{Cell, RefCell};
    use std::collections::BTreeSet;

    std::thread_local! {
        static SELECTED: Cell<u32> = const { Cell::new(super::NONE) };
        static RECORDS: Cell<bool> = const { Cell::new(false) };
        static REACHED: RefCell<BTreeSet<&'static str>> = const { RefCell::new(BTreeSet::new()) };
    }

    pub(super) fn select(hash: u32) {
        SELECTED.set(hash);
    }

    #[inline]
    pub(super) fn selected() -> u32 {
        SELECTED.get()
    }

    #[inline]
    pub(super) fn reach(name: &'static str) {
        if RECORDS.get() {
            REACHED.with_borrow_mut(|names| names.insert(name));
        }
    }

    /// Begins or ends to record which points this thread reaches.
    pub fn record(on: bool) {
        RECORDS.set(on);
    }

    /// The points that this thread has reached since the last call, while that was recorded, in
    /// alphabetical order.
    pub fn reached() -> std::vec::Vec<&'static str> {
        REACHED.take().into_iter().collect()
    }
}

/// On a board: one for all harts. Nothing is recorded.
#[cfg(target_os = "none")]
mod state {
    use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

    // ORDERING: Relaxed: every hart selects the same point itself, before its first step.
    static SELECTED: AtomicU32 = AtomicU32::new(super::NONE);

    pub(super) fn select(hash: u32) {
        SELECTED.store(hash, Relaxed);
    }

    #[inline]
    pub(super) fn selected() -> u32 {
        SELECTED.load(Relaxed)
    }

    pub(super) fn reach(_: &'static str) {}

    /// Nothing on a board.
    pub fn record(_: bool) {}

    /// Nothing on a board.
    pub fn reached() -> &'static [&'static str] {
        &[]
    }
}
