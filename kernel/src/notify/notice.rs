//! How a target is told of an access.
//!
//! # Guarantee
//! G1. What a notice names is checked before any byte moves: nothing has happened if it is refused.
//! G2. A target that finds a notice finds what it tells of, and what its sender put there before.
//!     By a counter or a signal it is not told of [data that travel inline](super#inline-data) with
//!     an earlier tag, which may still be on their way: flush these first.
//! G3. A notice is told once, however often the call is repeated.
//!
//! # Steps
//! | notice | of a put | of any other access |
//! |---|---|---|
//! | [`Tag`] | `Telling::put_immediate` with the data | the access; `put_immediate` of nothing |
//! | [`Counter`], [`Signal`] | the put; `Access::fence`; `Access::amo` at the target | the same |
//!
//! An immediate is ordered behind its sender's earlier accesses by the link; a cell's change is
//! not.

use flagpost_link::{Amo, Link, Rank};

use super::Tag;
use crate::{Error, rma::telling::Checked, window::Core};

/// A notification counter of a window, by its number: a notice adds 1. The origin names it in an
/// access, and the target in a request.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Counter(pub u32);

/// A signal of a window, by its number: a word that a notice [sets](Signal::set) or [adds
/// to](Signal::add). The origin names it in an access, and the target in a wait.
///
/// It is the word of the counter with the same number: a program uses a number as one of both.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Signal(pub u32);

/// What becomes of a signal.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Change {
    /// It becomes this.
    Set(u32),
    /// This is added, wrapping around.
    Add(u32),
}

impl Signal {
    /// A notice that sets it to `value`.
    pub const fn set(self, value: u32) -> Notice {
        Notice::Signal(self, Change::Set(value))
    }

    /// A notice that adds `value`, wrapping around.
    pub const fn add(self, value: u32) -> Notice {
        Notice::Signal(self, Change::Add(value))
    }
}

/// How the target of a notified access is told of it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Notice {
    /// By a notification for a request that matches source and tag.
    Tag(Tag),
    /// By 1 more in a counter.
    Counter(Counter),
    /// By a change of a signal.
    Signal(Signal, Change),
}

impl From<Tag> for Notice {
    fn from(tag: Tag) -> Self {
        Self::Tag(tag)
    }
}

impl From<Counter> for Notice {
    fn from(counter: Counter) -> Self {
        Self::Counter(counter)
    }
}

impl<L: Link> Core<'_, L> {
    /// What telling `notice` to `to` comes to. Moves nothing.
    pub(crate) fn check_notice(&self, to: Rank, notice: Notice) -> Result<Checked, Error> {
        let world = self.world;
        world.check_rank(to)?;
        let (index, amo) = match notice {
            Notice::Tag(tag) => {
                return Ok(Checked::Immediate {
                    immediate: self.check_tag(tag)?,
                    inline: self.inline.get(),
                });
            }
            Notice::Counter(Counter(index)) => (index, Amo::Add(1)),
            Notice::Signal(Signal(index), Change::Set(value)) => (index, Amo::Swap(value.into())),
            Notice::Signal(Signal(index), Change::Add(value)) => (index, Amo::Add(value.into())),
        };
        let (key, offset) = self.counter(to, index)?;
        Ok(Checked::Cell { key, offset, amo })
    }
}
