//! Post–start–complete–wait: targets expose their pieces to named origins for one epoch. A target
//! posts: from then on its origins may access its piece. Each origin completes when its accesses
//! are done, and the target waits for all of them. Only ranks that have to do with each other
//! exchange messages, so neighbours need no barrier.
//!
//! # Guarantee
//! G1. A put of an origin before `complete` is seen by the target after `wait`.
//! G2. A store of the target before `post` is seen by the origin's `get`, after `start`.
//! G3. No put or get reaches a target before its `post` or after the origin's `complete`.
//!
//! Nothing else is ordered: two puts within one epoch are not.
//!
//! # Steps
//! ```text
//!   target                                   origin
//!   post(origins) → Exposure                 start(targets) → Access
//!      │  own stores are refused                │  trigger-only: tells nobody, waits for nobody
//!      │                                        ├─ put, get: the first to a target waits
//!      ▼                                        ▼  for its post
//!   wait: until all origins have completed   complete: waits for the posts that no access
//!                                            waited for
//! ```
//! One rank may be origin and target at the same time, also of itself.
//!
//! | call       | core   | in order                                                             |
//! |------------|--------|----------------------------------------------------------------------|
//! | `post`     | target | publish the lines; expect the origins; tell each origin              |
//! | `start`    | origin | nothing                                                              |
//! | first access | origin | until the target has told: poll its own words                      |
//! | `complete` | origin | for each target: until it has told: poll; retire its post. Order the |
//! |            |        | puts. Then tell each target                                          |
//! | `wait`     | target | until all origins have told: poll its own words; refresh the lines   |
//!
//! # Strategies
//! How a rank tells another is the window's [`Strategy`]:
//!
//! | strategy | `post`, per origin | `complete`, per target | memory per rank |
//! |---|---|---|---|
//! | [`EpochSlots`], the default | 1 remote store | 1 remote store | 8 p bytes |
//! | [`MatchVector`], as published | 4 remote accesses | 4 remote, 4 local | p / 8 + 4 bytes |
//! | [`MatchingList`] | 1 remote atomic, at most k | 1 remote atomic, 1 local | 8 k + 8 bytes |
//!
//! [`MatchVector`] needs remote words under locks. [`MatchingList`] is for few neighbours. It needs
//! k: the most posts that are in flight to a rank.
//!
//! `start` and `wait` access no other rank.
//!
//! # Invariants
//! I1. A post is retired before its target is told of the completion. The target may post again
//!     immediately; a retirement that came later would lose that post.
//! I2. The target expects its origins before any of them is told of the post.
//! I3. Between `post` and `wait` the target's cache holds no dirty line of what it has exposed: the
//!     piece, or the range given to `post_range`.
//!
//! # Source
//! [PSCW-SCC] IV-B, Algorithms 1 and 2, trigger-only in its Table I.
//!
//! [PSCW-SCC]: crate#sources

mod access;
mod epoch_slots;
mod exposure;
mod match_vector;
mod matching_list;
mod strategy;

use flagpost_link::{Link, Rank, Refusal};

use crate::{Error, Missing, Timeout, Waiting, Window, window::Core};

pub use access::{Access, Completing};
pub use epoch_slots::EpochSlots;
pub use exposure::{Exposure, Posted, Posting};
pub use match_vector::MatchVector;
pub use matching_list::MatchingList;
pub use strategy::Strategy;

/// One window, as its epochs see it.
#[derive(Debug)]
struct Side<'e, 'w, L, S> {
    core: &'e Core<'w, L>,
    sync: &'e S,
}

impl<L, S> Copy for Side<'_, '_, L, S> {}

impl<L, S> Clone for Side<'_, '_, L, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<'e, 'w, L: Link, S: Strategy<'w, L>> Side<'e, 'w, L, S> {
    fn of<T>(window: &'e Window<'w, T, L, S>) -> Self {
        Self {
            core: &window.core,
            sync: &window.sync,
        }
    }

    /// Waits until `target` has posted to this rank.
    fn await_post(&self, target: Rank) -> Result<(), Error> {
        if self.sync.admitted(target) {
            return Ok(());
        }
        let world = self.core.world;
        world.wait().until(
            || Ok(self.has_posted(target)?.then_some(())),
            move || no_post(target),
        )
    }

    fn has_posted(&self, target: Rank) -> Result<bool, Error> {
        transient(self.sync.posted(self.core.world.link(), target))
    }
}

/// A wait for `target`'s post.
fn no_post(target: Rank) -> Timeout {
    Timeout {
        waiting: Waiting::Post,
        missing: Missing::one(target),
    }
}

/// Not yet, if the link cannot tell yet.
fn transient(answer: Result<bool, Refusal>) -> Result<bool, Error> {
    match answer {
        Err(refusal) if refusal.is_transient() => Ok(false),
        other => Ok(other?),
    }
}
