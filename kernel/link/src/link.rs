//! [`Link`]: all roles together.

#[cfg(doc)]
use crate::Step;
use crate::{Access, Fast, LocalMemory, Rank, Telling, Waiting, Word};

/// One rank's connection to all ranks: what the kernel is generic over.
///
/// A link says who this rank is and what the link is like, and implements five roles. See the
/// [crate documentation](crate) for the rules of all of them.
///
/// | role | what it is about |
/// |---|---|
/// | [`LocalMemory`] | this rank's own memory |
/// | [`Access`] | the memory of all ranks |
/// | [`Telling`] | signals and immediates |
/// | [`Waiting`] | what a loop that waits needs |
/// | [`Fast`] | fast paths; a link may leave all of them out |
///
/// # Contract
/// 1. No constant depends on the rank. Ranks count from 0, and their number does not change.
/// 2. `rank` and `size` access no memory that ranks share.
pub trait Link: LocalMemory + Access + Telling + Waiting + Fast {
    /// The number in a cell that peers change and its owner waits for: `u64` where the link changes
    /// and loads 8 bytes as a whole, else `u32`.
    type Word: Word;

    /// How many slots every rank has from the start; at least 32.
    const SLOTS: u32;

    /// Size of a cache line in bytes: ranges given to `publish` and `refresh` are rounded out to
    /// it.
    const LINE: usize;

    /// The most bytes that one [`update`](Access::update) may change, a power of two, at least 8:
    /// they lie between two multiples of it.
    const UPDATE: usize;

    /// The same for elements of up to 4 bytes, where these are changed by other means than longer
    /// ones: bytes that one rank takes for the one and another for the other are not changed as a
    /// whole. At least 4.
    const UPDATE_SMALL: usize = Self::UPDATE;

    /// True if peers' memory is reached by plain loads and stores, so that a put or get of one
    /// aligned element is done when the call returns.
    const DIRECT: bool;

    /// True if this rank's memory is read and written past all caches, or as if it were:
    /// [`refresh`](LocalMemory::refresh) does nothing then, and [`publish`](LocalMemory::publish)
    /// of any bytes, none included, orders all of this rank's writes.
    const COHERENT: bool = false;

    /// How often a loop looks at what it polls ([`Step::Look`]), before it begins to wait.
    const LOOKS: u32 = 0;

    /// True if the link wants to know [`Step::Called`].
    const LISTENS: bool = false;

    /// True if others never wait for a call of this rank, but for the notifications that it takes:
    /// then [`attend`](Telling::attend) does nothing.
    const PASSIVE: bool = true;

    /// This rank.
    fn rank(&self) -> Rank;

    /// How many ranks there are; at least 1.
    fn size(&self) -> u16;

    /// How many ranks immediates tell apart, at least as many as there are, and how many windows
    /// they may name at most. A link of a part of the ranks has them from the link of all.
    fn room(&self) -> (u16, u16) {
        (self.size(), u16::MAX)
    }
}
