//! Remote words under a lock, which the published PSCW protocol needs beside a [`Link`].

use crate::{Key, Link, Rank, Refusal};

/// The synchronization words of [PSCW-SCC]: per rank and window, a *match vector* with one bit per
/// peer and a *completion counter*.
///
/// Only load/store machines with a test-and-set register per core can offer this; it is an
/// extension of [`Link`] for them, which the kernel's strategy `MatchVector` needs.
///
/// | call | by | at | what |
/// |---|---|---|---|
/// | [`expect`](Self::expect) | target | its counter | = number of origins |
/// | [`post`](Self::post) | target | origin's vector | bit of target = 1, under the origin's lock |
/// | [`posted`](Self::posted) | origin | its vector | polls 32 bits |
/// | [`retire`](Self::retire) | origin | its vector | bit of target = 0, under its own lock |
/// | [`complete`](Self::complete) | origin | target's counter | - 1, under the target's lock |
/// | [`missing`](Self::missing) | target | its counter | polls it |
///
#[diagnostic::on_unimplemented(
    message = "the strategy `MatchVector` does not work over every link: `{Self}` has no words for \
               it",
    note = "`EpochSlots` works over every link, as in `world.allocating::<u32, EpochSlots>(4, ())`"
)]
pub trait VectorLink: Link {
    /// Bytes that the words of one window take, to be allocated by every rank.
    fn sync_bytes(&self) -> usize;

    /// Brings this rank's words into the initial state: no bit set, nothing missing.
    ///
    /// # Errors
    /// [`Refusal::OutOfRange`] if `sync` is too small.
    fn reset(&self, sync: Key) -> Result<(), Refusal>;

    /// Sets this rank's bit in `origin`'s match vector.
    ///
    /// # Errors
    /// [`Refusal::Locked`] (transient), [`Refusal::NoSuchRank`].
    fn post(&self, sync: Key, origin: Rank) -> Result<(), Refusal>;

    /// The bits of ranks `32 * word ..` in this rank's match vector. All that the ranks of set bits
    /// published before their post can be read.
    fn posted(&self, sync: Key, word: u16) -> u32;

    /// Clears `target`'s bit in this rank's match vector, and orders this rank's earlier puts
    /// before its later calls, like a [`fence`](crate::Access::fence).
    ///
    /// # Errors
    /// [`Refusal::Locked`] (transient), [`Refusal::NoSuchRank`].
    fn retire(&self, sync: Key, target: Rank) -> Result<(), Refusal>;

    /// Sets this rank's completion counter. An origin that answers a later post finds it.
    fn expect(&self, sync: Key, origins: u16);

    /// Counts `target`'s completion counter down by one.
    ///
    /// # Errors
    /// [`Refusal::Locked`] (transient), [`Refusal::NoSuchRank`].
    fn complete(&self, sync: Key, target: Rank) -> Result<(), Refusal>;

    /// This rank's completion counter. Once it is 0, all origins' puts can be read (after
    /// [`refresh`](crate::LocalMemory::refresh)).
    fn missing(&self, sync: Key) -> u32;
}
