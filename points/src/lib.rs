//! Mutation points: the proof that every cache action, lock and ordering step matters.
//!
//! Each such step in the kernel and its links stands in a *point*, which has a name and says why
//! the step is there. In an ordinary build a point is the bare code. Built with `--cfg mutants`,
//! one point can be broken by its name, and some case must then fail: `cargo xtask mutants`.
//!
//! | macro | the step | broken |
//! |---|---|---|
//! | [`point!`] | `point!(DRAIN "the data are in memory": "a.b.drain", m.drain());` | left out |
//! | | `point!(ROOM "no entry is lost": "a.b.room", is_full(); else false)` | replaced |
//! | [`order!`] | `order!("the flag says so": "a.b.data<flag", data(), flag());` | swapped |
//! | [`site!`] | `self.lock(site!(LOCK "one rank at a time": "a.b.lock"));` | as there |
//! | [`lock_point!`] | `lock_point!(site, try_lock(core))` | granted, but free |
//!
//! Names are `<module>.<operation>.<step>`, unique, and literal. On a host, a program that holds
//! all mutants has them in a list, and `cargo xtask mutants` judges it. The same command refuses a
//! cache action, lock or ordering call outside of a point. A step that can be broken without any
//! case failing is removed, unless `docs/equivalent-mutants.md` argues why not.
//!
//! The reason is plain English. After `else` stands one expression on one line: a wrong copy of a
//! protocol is a function in a file `wrong.rs`, which only `--cfg mutants` compiles.
//!
//! On a host the broken point belongs to the thread (all cores of a simulated chip share one); on a
//! board it is the same for all harts.
//!
//! # Tags
//! | tag | the step |
//! |---|---|
//! | `PUBLISH` | writes this rank's stores back, so that peers find them |
//! | `REFRESH` | drops old copies, so that this rank finds what peers have stored |
//! | `WRITE_BACK`, `INVALIDATE`, `DRAIN`, `ACQUIRE` | is the machine's action of this name |
//! | `FLUSH` | completes this rank's accesses |
//! | `ORDER` | keeps what comes before in front of what comes after |
//! | `PLACE` | brings data of notifications to their place |
//! | `WAIT` | waits for what another rank does |
//! | `PROGRESS` | does what another rank may wait for |
//! | `NOTIFY` | says something to another rank |
//! | `POLL` | sees to it that a change is noticed |
//! | `ROOM` | asks whether there is room |
//! | `CHECK` | asks whether something holds |
//! | `CLAIM` | is done by one of several ranks |
//! | `LOCK` | takes, keeps or frees a lock |
//! | `CLEAR` | removes what memory was used for before |
//! | `ONCE` | notes what is done, so that a call that continues does not do it again |
#![no_std]

#[cfg(all(mutants, not(target_os = "none")))]
mod list;
#[cfg(mutants)]
mod on;

#[cfg(all(mutants, not(target_os = "none")))]
pub use list::{POINTS, Point, linkme};
#[cfg(mutants)]
pub use on::{break_point, broken, reached, record};

/// The type that [`lock_point!`] makes of a lock's guard `G`.
#[cfg(not(mutants))]
pub type Guard<G> = G;

/// The type that [`lock_point!`] makes of a lock's guard `G`: none if the lock was broken, so that
/// nobody else's lock is freed.
#[cfg(mutants)]
pub type Guard<G> = Option<G>;

/// A lock that was really taken, for [`lock_point!`].
#[doc(hidden)]
#[cfg(not(mutants))]
#[inline(always)]
pub fn guard<G>(lock: Option<G>) -> Option<Guard<G>> {
    lock
}

/// A lock that was really taken, for [`lock_point!`].
#[doc(hidden)]
#[cfg(mutants)]
pub fn guard<G>(lock: Option<G>) -> Option<Guard<G>> {
    lock.map(Some)
}

/// The name of a point, for a function that holds the point for its callers.
#[derive(Copy, Clone, Debug)]
pub struct Site {
    #[cfg(mutants)]
    name: &'static str,
    #[cfg(mutants)]
    hash: u32,
}

impl Site {
    /// The point called `name`. Use [`site!`].
    #[cfg(not(mutants))]
    pub const fn new(_name: &'static str) -> Self {
        Self {}
    }
}

/// A step that is left out when the point is broken, or replaced by what follows `else`.
///
/// # Example
/// ```
/// # use flagpost_points::point;
/// # let (full, drain) = (false, || ());
/// point!(DRAIN "the data are in memory before the flag": "a.b.drain", drain());
/// assert!(!point!(ROOM "no entry is written over": "a.b.room", full; else false));
/// ```
/// The tag is one of the list:
/// ```compile_fail
/// # use flagpost_points::point;
/// # let drain = || ();
/// point!(FLOW "the data are in memory before the flag": "a.b.drain", drain());
/// ```
#[macro_export]
macro_rules! point {
    ($site:ident, $step:expr) => {
        $crate::if_broken!($site, (), $step)
    };
    ($site:ident, $step:expr; else $instead:expr) => {
        $crate::if_broken!($site, $instead, $step)
    };
    ($($tagged:tt)+) => {
        $crate::tagged!(step $($tagged)+)
    };
}

/// A name to hand to a function that holds the point for its callers.
#[macro_export]
macro_rules! site {
    ($($tagged:tt)+) => {
        $crate::tagged!(named $($tagged)+)
    };
}

/// Two steps that are done the other way round when the point is broken. Its value is the values of
/// both.
#[macro_export]
macro_rules! order {
    ($why:literal: $name:literal, $first:expr, $second:expr) => {
        $crate::if_broken!(
            [$name, $why, ""],
            {
                let second = $second;
                ($first, second)
            },
            {
                let first = $first;
                (first, $second)
            }
        )
    };
}

/// Takes a lock, `Option<G>`, as an `Option<`[`Guard`]`<G>>`: when the point is broken, the lock
/// counts as taken, and nothing is.
#[macro_export]
macro_rules! lock_point {
    ($site:ident, $lock:expr) => {
        $crate::if_broken!($site, Some(None), $crate::guard($lock))
    };
}

/// All tags. The rest goes to the macro `$then`.
#[doc(hidden)]
#[macro_export]
macro_rules! tagged {
    ($then:ident PUBLISH $($rest:tt)+) => { $crate::$then!($($rest)+) };
    ($then:ident REFRESH $($rest:tt)+) => { $crate::$then!($($rest)+) };
    ($then:ident WRITE_BACK $($rest:tt)+) => { $crate::$then!($($rest)+) };
    ($then:ident INVALIDATE $($rest:tt)+) => { $crate::$then!($($rest)+) };
    ($then:ident DRAIN $($rest:tt)+) => { $crate::$then!($($rest)+) };
    ($then:ident ACQUIRE $($rest:tt)+) => { $crate::$then!($($rest)+) };
    ($then:ident FLUSH $($rest:tt)+) => { $crate::$then!($($rest)+) };
    ($then:ident ORDER $($rest:tt)+) => { $crate::$then!($($rest)+) };
    ($then:ident PLACE $($rest:tt)+) => { $crate::$then!($($rest)+) };
    ($then:ident WAIT $($rest:tt)+) => { $crate::$then!($($rest)+) };
    ($then:ident PROGRESS $($rest:tt)+) => { $crate::$then!($($rest)+) };
    ($then:ident NOTIFY $($rest:tt)+) => { $crate::$then!($($rest)+) };
    ($then:ident POLL $($rest:tt)+) => { $crate::$then!($($rest)+) };
    ($then:ident ROOM $($rest:tt)+) => { $crate::$then!($($rest)+) };
    ($then:ident CHECK $($rest:tt)+) => { $crate::$then!($($rest)+) };
    ($then:ident CLAIM $($rest:tt)+) => { $crate::$then!($($rest)+) };
    ($then:ident LOCK $($rest:tt)+) => { $crate::$then!($($rest)+) };
    ($then:ident CLEAR $($rest:tt)+) => { $crate::$then!($($rest)+) };
    ($then:ident ONCE $($rest:tt)+) => { $crate::$then!($($rest)+) };
}

#[doc(hidden)]
#[macro_export]
macro_rules! step {
    ($why:literal: $name:literal, $step:expr) => {
        $crate::if_broken!([$name, $why, ""], (), $step)
    };
    ($why:literal: $name:literal, $step:expr; else $instead:expr) => {
        $crate::if_broken!([$name, $why, stringify!($instead)], $instead, $step)
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! named {
    ($why:literal: $name:literal) => {
        $crate::listed!([$name, $why, ""])
    };
}

/// The site of a point, which is listed where that is possible.
#[doc(hidden)]
#[cfg(any(not(mutants), target_os = "none"))]
#[macro_export]
macro_rules! listed {
    ([$name:literal, $($told:tt)+]) => {
        const { $crate::Site::new($name) }
    };
}

#[doc(hidden)]
#[cfg(not(mutants))]
#[macro_export]
macro_rules! if_broken {
    ([$($named:tt)+], $instead:expr, $step:expr) => {
        $step
    };
    ($site:ident, $instead:expr, $step:expr) => {{
        let _: $crate::Site = $site;
        $step
    }};
}

#[doc(hidden)]
#[cfg(mutants)]
#[macro_export]
macro_rules! if_broken {
    ([$($named:tt)+], $instead:expr, $step:expr) => {
        $crate::if_broken!(($crate::listed!([$($named)+])), $instead, $step)
    };
    ($site:expr, $instead:expr, $step:expr) => {
        if $crate::broken($site) {
            $instead
        } else {
            $step
        }
    };
}
