//! Mutation points: the proof that every cache action, lock and ordering step matters.
//!
//! Each such step in the kernel and its links stands in a *point* with a name. In an ordinary build
//! a point is the bare code. Built with `--cfg mutants`, one point can be broken by its name, and
//! some case must then fail: `cargo xtask mutants`.
//!
//! | macro | the step | broken |
//! |---|---|---|
//! | [`point!`](crate::point) | `point!("a.b.drain", { drain })` | left out |
//! | | `point!("a.b.room", is_there_room(); else true)` | replaced |
//! | [`order!`](crate::order) | `order!("a.b.data<flag", { data }, { flag })` | swapped |
//! | [`lock_point!`](crate::lock_point) | `lock_point!(site, try_lock(core))` | granted, but free |
//! | [`site!`](crate::site) | a name for a function that holds its callers' point | as there |
//!
//! Names are `<module>.<operation>.<step>`, unique, and literal: `cargo xtask` finds them in the
//! sources, and refuses a cache action, lock or ordering call outside of a point. A step that can
//! be broken without any case failing is removed, unless `docs/equivalent-mutants.md` argues why
//! not.
//!
//! On a host the broken point belongs to the thread (all cores of a simulated chip share one); on a
//! board it is the same for all harts.

/// The type that [`lock_point!`](crate::lock_point) makes of a lock's guard `G`.
#[cfg(not(mutants))]
pub type Guard<G> = G;

/// The type that [`lock_point!`](crate::lock_point) makes of a lock's guard `G`: none if the lock
/// was broken, so that nobody else's lock is freed.
#[cfg(mutants)]
pub type Guard<G> = Option<G>;

/// The name of a point, for a function that holds the point for its callers.
#[derive(Copy, Clone, Debug)]
pub struct Site {
    #[cfg(mutants)]
    name: &'static str,
    #[cfg(mutants)]
    hash: u64,
}

impl Site {
    /// The point called `name`. Use [`site!`](crate::site).
    #[cfg(not(mutants))]
    pub const fn new(_name: &'static str) -> Self {
        Self {}
    }
}

#[cfg(mutants)]
pub use on::{break_point, broken, reached, record};

#[cfg(mutants)]
mod on {
    use super::Site;

    impl Site {
        /// The point called `name`. Use [`site!`](crate::site).
        pub const fn new(name: &'static str) -> Self {
            let hash = hash(name);
            Self { name, hash }
        }
    }

    /// FNV-1a: names are compared by it at every step of every run.
    const fn hash(name: &str) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut bytes = name.as_bytes();
        while let [first, rest @ ..] = bytes {
            hash = (hash ^ *first as u64).wrapping_mul(0x0100_0000_01b3);
            bytes = rest;
        }
        hash
    }

    /// Stands for no point.
    const NONE: u64 = 0;

    /// Breaks the point called `name`, or none.
    pub fn break_point(name: Option<&str>) {
        state::select(name.map_or(NONE, hash));
    }

    /// True if the point is broken. Notes that it was reached, if that is recorded.
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
            static SELECTED: Cell<u64> = const { Cell::new(super::NONE) };
            static RECORDS: Cell<bool> = const { Cell::new(false) };
            static REACHED: RefCell<BTreeSet<&'static str>> = const { RefCell::new(BTreeSet::new()) };
        }

        pub(super) fn select(hash: u64) {
            SELECTED.set(hash);
        }

        #[inline]
        pub(super) fn selected() -> u64 {
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
        use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

        // ORDERING: Relaxed: every hart selects the same point itself, before its first step.
        static SELECTED: AtomicU64 = AtomicU64::new(super::NONE);

        pub(super) fn select(hash: u64) {
            SELECTED.store(hash, Relaxed);
        }

        #[inline]
        pub(super) fn selected() -> u64 {
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
}

/// A name to hand to a function that holds the point for its callers.
#[macro_export]
macro_rules! site {
    ($name:literal) => {
        $crate::mutant::Site::new($name)
    };
}

/// A step that is left out when the point is broken, or replaced by what follows `else`.
#[cfg(not(mutants))]
#[macro_export]
macro_rules! point {
    ($name:literal, $step:expr $(; else $instead:expr)?) => {
        $step
    };
    ($site:ident, $step:expr $(; else $instead:expr)?) => {{
        let _: $crate::mutant::Site = $site;
        $step
    }};
}

/// A step that is left out when the point is broken, or replaced by what follows `else`.
#[cfg(mutants)]
#[macro_export]
macro_rules! point {
    ($name:literal, $step:expr; else $instead:expr) => {
        if $crate::mutant::broken(const { $crate::mutant::Site::new($name) }) {
            $instead
        } else {
            $step
        }
    };
    ($name:literal, $step:expr) => {
        if !$crate::mutant::broken(const { $crate::mutant::Site::new($name) }) {
            $step
        }
    };
    ($site:ident, $step:expr; else $instead:expr) => {
        if $crate::mutant::broken($site) {
            $instead
        } else {
            $step
        }
    };
    ($site:ident, $step:expr) => {
        if !$crate::mutant::broken($site) {
            $step
        }
    };
}

/// Two steps that are done the other way round when the point is broken. Its value is that of the
/// first.
#[cfg(not(mutants))]
#[macro_export]
macro_rules! order {
    ($name:literal, $first:expr, $second:expr $(,)?) => {{
        let first = $first;
        $second;
        first
    }};
}

/// Two steps that are done the other way round when the point is broken. Its value is that of the
/// first.
#[cfg(mutants)]
#[macro_export]
macro_rules! order {
    ($name:literal, $first:expr, $second:expr $(,)?) => {
        if $crate::mutant::broken(const { $crate::mutant::Site::new($name) }) {
            $second;
            $first
        } else {
            let first = $first;
            $second;
            first
        }
    };
}

/// Takes a lock, `Option<G>`, as an `Option<`[`Guard`](crate::mutant::Guard)`<G>>`: when the point
/// is broken, the lock counts as taken, and nothing is.
#[cfg(not(mutants))]
#[macro_export]
macro_rules! lock_point {
    ($site:ident, $lock:expr) => {{
        let _: $crate::mutant::Site = $site;
        $lock
    }};
}

/// Takes a lock, `Option<G>`, as an `Option<`[`Guard`](crate::mutant::Guard)`<G>>`: when the point
/// is broken, the lock counts as taken, and nothing is.
#[cfg(mutants)]
#[macro_export]
macro_rules! lock_point {
    ($site:ident, $lock:expr) => {
        if $crate::mutant::broken($site) {
            Some(None)
        } else {
            $lock.map(Some)
        }
    };
}
