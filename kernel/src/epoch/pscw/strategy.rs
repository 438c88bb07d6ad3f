//! The ways of signalling, as the epochs see them. [`super`] decides when a rank tells another that
//! it has posted or completed. A strategy decides how, and what it costs.

use core::{cell::Cell, fmt::Debug};

use flagpost_link::{Link, Rank, Refusal};

use crate::{Error, Group, Missing, Waiting, World};

/// How posts and completions travel: the state of one window at one rank. The epochs of
/// [`pscw`](super) call it; users only choose one ([`World::allocate_with`]).
///
/// Calls that are refused for the moment have changed nothing and are repeated.
pub trait Strategy<'w, L: Link>: Sized + Debug {
    /// The user's choices.
    type Options: Copy;

    /// The wait of a post that is refused as [`Refusal::Full`].
    const FULL: Waiting = Waiting::RingSpace;

    /// Takes what the window needs. Does not wait. On failure nothing is taken.
    ///
    /// # Errors
    /// Of memory: see [`World::allocate`].
    fn prepare(world: &'w World<'w, L>, options: Self::Options) -> Result<Self, Error>;

    /// Clears it, where that may have to wait: repeated, if a budget runs out, before any peer
    /// accesses it.
    ///
    /// # Errors
    /// [`Error::Timeout`].
    fn clear(&self, world: &World<'w, L>) -> Result<(), Error>;

    /// Gives back what [`Strategy::prepare`] took.
    fn discard(&self, world: &World<'w, L>);

    /// A number that must be the same on all ranks.
    fn offer(&self) -> u32;

    // ---- The origin's side ----

    /// True if [`Strategy::posted`] has found `target`'s post since it was last retired.
    fn admitted(&self, target: Rank) -> bool;

    /// Looks for `target`'s post. If it is there, what `target` published before can be read.
    ///
    /// # Errors
    /// The link's.
    fn posted(&self, link: &L, target: Rank) -> Result<bool, Refusal>;

    /// Forgets `target`'s post, which was found: the next epoch waits for the next one.
    ///
    /// # Errors
    /// The link's.
    fn retire(&self, link: &L, target: Rank) -> Result<(), Refusal>;

    /// Orders this rank's earlier puts before the completions that follow.
    ///
    /// # Errors
    /// The link's.
    fn order(&self, link: &L) -> Result<(), Refusal>;

    /// Tells `target`, whose post was retired, that this rank has completed.
    ///
    /// # Errors
    /// The link's.
    fn complete(&self, link: &L, target: Rank) -> Result<(), Refusal>;

    // ---- The target's side ----

    /// Prepares for the completions of `origins`, before any of them is told of the post.
    ///
    /// # Errors
    /// The link's.
    fn expect(&self, link: &L, origins: &Group<'_>) -> Result<(), Refusal>;

    /// Tells `origin`, the `nth` of the group, that this rank has posted.
    ///
    /// # Errors
    /// The link's; [`Refusal::Full`] (transient) if there is no room for the post.
    fn post(&self, link: &L, origin: Rank, nth: u16) -> Result<(), Refusal>;

    /// True if all of `origins` have completed. `done` is how many of them were found to have, so
    /// far.
    ///
    /// # Errors
    /// The link's.
    fn completed(&self, link: &L, origins: &Group<'_>, done: &Cell<u16>) -> Result<bool, Refusal>;

    /// The ranks that have not completed, as far as it can be told.
    fn missing(&self, link: &L, origins: &Group<'_>, done: u16) -> Missing;
}
