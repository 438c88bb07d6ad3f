//! How a target is told of an access: by a tag, or by the change of a word.
//!
//! A [`Tag`] goes through the target's queue, and a request matches it. A *word* is a cell at the
//! target that a notice adds to, or sets. It has three names, for three ways to use it: a
//! [`Counter`] and a [`Signal`] belong to a window, an [`Event`] to the world. All of them are the
//! same here: a key, an offset, and an operation on the cell.
//!
//! # Guarantee
//! G1. The target of a notice is checked before any byte moves: nothing has happened if it is
//!     refused.
//! G2. A target that finds a notice finds the data of its access, and what its sender put there
//!     before. A word does not tell of [data that travel inline](super#inline-data) with an earlier
//!     tag, which may still be in flight: flush these first.
//! G3. A notice is told once, however often the call is repeated.
//!
//! # Steps
//! | notice | of a put | of any other access |
//! |---|---|---|
//! | [`Tag`] | `Telling::put_immediate` with the data | the access; `put_immediate` of nothing |
//! | a word | the put; `Access::fence`; `Access::amo` at the target | the same |
//!
//! The link orders an immediate after its sender's earlier accesses; it does not order the change
//! of a cell.

use core::cell::Cell;

use flagpost_link::{Amo, Key, Link, Rank, Word};

use super::Tag;
use crate::{Error, World, rma::telling::Checked, window::Core};

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

/// One of the [events](super::Events) of a world, by its number: a notice posts it at the target of
/// an access, and a request waits for posts of this rank's.
///
/// It borrows its events: none is posted that has been freed.
#[derive(Copy, Clone, Debug)]
pub struct Event<'e> {
    /// Where the world lies: the events of another one have other cells.
    world: usize,
    key: Key,
    offset: usize,
    /// How many posts this rank has taken.
    pub(super) taken: Kept<'e>,
}

/// A number that is kept in words of the arena, the low one first.
#[derive(Copy, Clone, Debug)]
pub(super) struct Kept<'e>(pub(super) &'e [Cell<u32>]);

impl Kept<'_> {
    /// How many words one takes.
    pub(super) const fn words<W: Word>() -> usize {
        if W::WIDE { 2 } else { 1 }
    }

    pub(super) fn get<W: Word>(self) -> W {
        let words = self.0.iter().rev().map(Cell::get);
        W::low(words.fold(0, |high, word| {
            high.wrapping_shl(u32::BITS) | u64::from(word)
        }))
    }

    pub(super) fn set<W: Word>(self, value: W) {
        let mut rest: u64 = value.into();
        for word in self.0 {
            word.set(rest as u32);
            rest = rest.wrapping_shr(u32::BITS);
        }
    }
}

impl PartialEq for Event<'_> {
    fn eq(&self, other: &Self) -> bool {
        let place = |event: &Event<'_>| (event.world, event.key, event.offset);
        place(self) == place(other)
    }
}

impl Eq for Event<'_> {}

impl<'e> Event<'e> {
    /// The event at `place` of every rank of `world`.
    pub(super) fn new<L: Link>(
        world: &World<'_, L>,
        (key, offset): (Key, usize),
        taken: Kept<'e>,
    ) -> Self {
        Self {
            world: address(world),
            key,
            offset,
            taken,
        }
    }

    /// Where it lies at every rank of `world`.
    pub(super) fn place<L: Link>(self, world: &World<'_, L>) -> Result<(Key, usize), Error> {
        if self.world == address(world) {
            Ok((self.key, self.offset))
        } else {
            Err(Error::WrongWindow)
        }
    }
}

/// Tells one world from another, as long as it is there.
fn address<L: Link>(world: &World<'_, L>) -> usize {
    core::ptr::from_ref(world).addr()
}

#[cfg(feature = "defmt")]
impl defmt::Format for Event<'_> {
    fn format(&self, to: defmt::Formatter<'_>) {
        defmt::write!(to, "Event({}, {})", self.key, self.offset);
    }
}

/// A word, by whichever name. Made of a [`Counter`], a [`Signal`] or an [`Event`].
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum AnyWord<'e> {
    /// A counter of the window.
    Counter(Counter),
    /// A signal of the window.
    Signal(Signal),
    /// An event.
    Event(Event<'e>),
}

/// How a notice changes a word.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
enum Change<W> {
    /// The word becomes this.
    Set(W),
    /// This is added, wrapping around.
    Add(W),
}

/// A word, and its change by a notice. Only a signal may be set: the owner of an event counts.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Changed<'e, W> {
    word: AnyWord<'e>,
    change: Change<W>,
}

/// How the target of a notified access is told of it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Notice<'e, W> {
    /// By a notification for a request that matches source and tag.
    Tag(Tag),
    /// By the change of a word.
    Word(Changed<'e, W>),
}

impl Signal {
    /// A notice that sets it to `value`.
    pub const fn set<W: Word>(self, value: W) -> Notice<'static, W> {
        Notice::Word(Changed {
            word: AnyWord::Signal(self),
            change: Change::Set(value),
        })
    }

    /// A notice that adds `value`, wrapping around.
    pub const fn add<W: Word>(self, value: W) -> Notice<'static, W> {
        Notice::Word(Changed {
            word: AnyWord::Signal(self),
            change: Change::Add(value),
        })
    }
}

impl From<Counter> for AnyWord<'_> {
    fn from(counter: Counter) -> Self {
        Self::Counter(counter)
    }
}

impl From<Signal> for AnyWord<'_> {
    fn from(signal: Signal) -> Self {
        Self::Signal(signal)
    }
}

impl<'e> From<Event<'e>> for AnyWord<'e> {
    fn from(event: Event<'e>) -> Self {
        Self::Event(event)
    }
}

impl<'e, W: Word> Notice<'e, W> {
    /// Adds 1 to `word`.
    fn one_more(word: impl Into<AnyWord<'e>>) -> Self {
        Self::Word(Changed {
            word: word.into(),
            change: Change::Add(1.into()),
        })
    }
}

impl<W> From<Tag> for Notice<'_, W> {
    fn from(tag: Tag) -> Self {
        Self::Tag(tag)
    }
}

/// Adds 1.
impl<W: Word> From<Counter> for Notice<'_, W> {
    fn from(counter: Counter) -> Self {
        Self::one_more(counter)
    }
}

/// Posts it: adds 1.
impl<'e, W: Word> From<Event<'e>> for Notice<'e, W> {
    fn from(event: Event<'e>) -> Self {
        Self::one_more(event)
    }
}

impl<L: Link> Core<'_, L> {
    /// Where `word` of `rank`'s lies.
    pub(super) fn word(&self, rank: Rank, word: AnyWord<'_>) -> Result<(Key, usize), Error> {
        self.world.check_rank(rank)?;
        match word {
            AnyWord::Counter(Counter(index)) | AnyWord::Signal(Signal(index)) => {
                self.counter(rank, index)
            }
            AnyWord::Event(event) => event.place(self.world),
        }
    }

    /// The steps that tell `notice` to `to`, checked. Moves nothing.
    pub(crate) fn check_notice(
        &self,
        to: Rank,
        notice: Notice<'_, L::Word>,
    ) -> Result<Checked, Error> {
        let changed = match notice {
            Notice::Tag(tag) => {
                self.world.check_rank(to)?;
                return Ok(Checked::Immediate {
                    immediate: self.check_tag(tag)?,
                    inline: self.inline(),
                });
            }
            Notice::Word(changed) => changed,
        };
        let amo = match changed.change {
            Change::Set(value) => Amo::Swap(value.into()),
            Change::Add(value) => Amo::Add(value.into()),
        };
        let (key, offset) = self.word(to, changed.word)?;
        Ok(Checked::Cell { key, offset, amo })
    }
}
