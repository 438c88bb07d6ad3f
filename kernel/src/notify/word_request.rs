//! A request for a word: it waits until the word compares with a value as it should.
//!
//! One kind of request waits for all words at a target: counters, signals and events. It may have
//! lines of this rank's piece, in which the data lie that the word tells of; it publishes them when
//! it starts, and refreshes them when the word is as it should be. It is persistent: made once,
//! started for each use. The owner of an event remembers how many posts it has taken, and the
//! request compares and takes what is left.
//!
//! # Guarantee
//! G1. When a request is complete, the data of the notices whose effect is in the value can be read
//!     in its range; so can earlier puts of the same ranks there, but for data that [travel
//!     inline](super#inline-data) with an earlier tag.
//! G2. A request takes posts of an event when it completes, else none: none is lost or taken twice.
//!
//! # Steps
//! None has remote accesses. `start` publishes the lines; `test` watches the word, and refreshes
//! the lines if it is as it should be; `wait` tests until then; `cancel` refreshes the lines.
//!
//! The life of a request, and the rule for lines, are those of [tag
//! requests](super#rule-for-cached-lines).

use core::{cell::Cell, ops::Range};

use bytemuck::Pod;
use flagpost_link::{Key, Link, Pending, Word};

#[cfg(doc)]
use super::Signal;
use super::{AnyWord, Counter, notice::Kept};
use crate::{
    Budget, DynamicWindow, Error, Missing, Timeout, Unfinished, Waiting, Window, World,
    complete::{Complete, Sealed},
    epoch::Strategy,
    window::{Closed, Core, Lines, counters::CELL},
};

/// How a word is compared with a value: `word … value`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Compare {
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
}

impl Compare {
    /// True if it is true of `word` and `value`, as unsigned numbers.
    pub fn holds<W: Word>(self, word: W, value: W) -> bool {
        match self {
            Self::Eq => word == value,
            Self::Ne => word != value,
            Self::Gt => word > value,
            Self::Ge => word >= value,
            Self::Lt => word < value,
            Self::Le => word <= value,
        }
    }
}

/// A persistent request: completes when a word of this rank compares with a value as it should.
#[derive(Debug)]
#[must_use = "a request does nothing until it is started"]
pub struct WordRequest<'r, 'w, L: Link> {
    world: &'w World<'w, L>,
    /// The lines that the data lie in, and their window. An event may be waited for without one.
    target: Option<(&'r Core<'w, L>, Lines)>,
    word: (Key, usize),
    compare: Compare,
    value: L::Word,
    /// True if each notification adds 1: then it is known how many are missing.
    counts: bool,
    /// Of an event: how many posts have been taken already.
    taken: Option<Kept<'r>>,
    /// Of a counter: the largest number that it has reached for a request since its last change. 0
    /// is none.
    reached: Option<&'r Cell<u32>>,
    /// The value that was compared when the word was last looked at.
    seen: Cell<L::Word>,
    op: Pending<'w, L>,
    started: bool,
}

impl<'w, T: Pod, L: Link, S> Window<'w, T, L, S> {
    /// A request that completes when this rank's `word` compares with `value` as `compare` says:
    /// then the data that came before can be read in the elements `range` of this rank's piece (an
    /// empty range: no data, or data that are never cached). The word is a [`Counter`], a
    /// [`Signal`], or an [`Event`](super::Event).
    ///
    /// A counter or signal keeps its value. A counter begins a new round when its owner changes it
    /// ([`reset_notify_value`](Window::reset_notify_value)): before, no second request for a number
    /// that it has reached can be started. A signal stays as it is for any number of them. Of an
    /// event, the posts are compared that this rank has
    /// not taken; with [`Compare::Ge`] the request takes `value` of them when it completes. A
    /// request for at least 0 is complete immediately.
    ///
    /// # Errors
    /// [`Error::NoSuchCounter`]; [`Error::WrongWindow`]: the event is another world's;
    /// [`Error::OutOfRange`].
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::Compare;
    ///
    /// let (events, window) = (world.events(1)?, world.allocate::<u32>(1)?);
    /// let next = world.rank().next(world.size());
    /// let mut posted = window.expect_word(0..1, events.event(0)?, Compare::Ge, 1)?;
    /// posted.start()?;
    /// window.put_notify(next, 0, &[7], events.event(0)?)?; // the data, then a post
    /// posted.wait()?;
    /// assert_eq!((window.local().get(0)?, events.query(0)?), (7, 0)); // the post is taken
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn expect_word<'r>(
        &'r self,
        range: Range<usize>,
        word: impl Into<AnyWord<'r>>,
        compare: Compare,
        value: L::Word,
    ) -> Result<WordRequest<'r, 'w, L>, Error> {
        called!(self.core.world);
        self.word_request(self.lines(range)?, word.into(), compare, value)
    }

    /// A request that completes when this rank's `counter` reaches or exceeds `threshold`:
    /// [`expect_word`](Self::expect_word) with [`Compare::Ge`]. The counter keeps its value:
    /// [reset](Window::reset_notify_value) it before the next use. A threshold beyond 32 bits:
    /// [`expect_word`](Self::expect_word).
    ///
    /// # Errors
    /// [`Error::NoSuchCounter`], [`Error::OutOfRange`].
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(3, |world| {
    /// use flagpost::{Counter, Rank};
    ///
    /// let mut window = world.allocate::<u32>(3)?;
    /// window.set_num_notify(1)?;
    /// let mut all = window.expect_count(0..3, Counter(0), 3)?; // when counter 0 has come to 3
    /// all.start()?;
    /// for to in [0, 1, 2].map(Rank::new) {
    ///     window.put_notify(to, world.rank().index(), &[7], Counter(0))?;
    /// }
    /// all.wait()?;
    /// assert!((0..3).all(|rank| window.local().get(rank) == Ok(7)));
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn expect_count(
        &self,
        range: Range<usize>,
        counter: Counter,
        threshold: u32,
    ) -> Result<WordRequest<'_, 'w, L>, Error> {
        called!(self.core.world);
        let (lines, threshold) = (self.lines(range)?, threshold.into());
        self.word_request(lines, counter.into(), Compare::Ge, threshold)
    }

    /// Waits until this rank's `word` compares with `value` as `compare` says, and gives the word's
    /// value: an [`expect_word`](Self::expect_word) for one use, which is started, waited for and
    /// gone.
    ///
    /// # Errors
    /// [`Error::NoSuchCounter`], [`Error::WrongWindow`], [`Error::OutOfRange`]; those of
    /// [`WordRequest::start`]; [`Error::Timeout`], which names no rank, as any may tell the word:
    /// call again.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::{Compare, Signal};
    ///
    /// let mut window = world.allocate::<u32>(1)?;
    /// let peer = world.rank().next(world.size());
    /// window.set_num_notify(1)?;
    /// window.put_notify(peer, 0, &[7], Signal(0).set(3))?;
    /// assert_eq!(window.wait_until(0..1, Signal(0), Compare::Ge, 2)?, 3);
    /// assert_eq!(window.local().get(0)?, 7);
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn wait_until<'r>(
        &'r self,
        range: Range<usize>,
        word: impl Into<AnyWord<'r>>,
        compare: Compare,
        value: L::Word,
    ) -> Result<L::Word, Error> {
        called!(self.core.world);
        self.word_request(self.lines(range)?, word.into(), compare, value)?
            .run()
    }

    fn word_request<'r>(
        &'r self,
        lines: Lines,
        word: AnyWord<'r>,
        compare: Compare,
        value: L::Word,
    ) -> Result<WordRequest<'r, 'w, L>, Error> {
        let core = &self.core;
        let place = core.word(core.world.rank(), word)?;
        let target = Some((core, lines));
        let request = WordRequest::new(core.world, target, (word, place), compare, value)?;
        let reached = match word {
            AnyWord::Counter(Counter(index)) => core.reached(index),
            _ => None,
        };
        Ok(WordRequest { reached, ..request })
    }
}

impl<'w, L: Link, S: Strategy<'w, L>> DynamicWindow<'w, L, S> {
    /// A request for a word, as [`Window::expect_word`]. The data arrive in attached memory: all
    /// that is attached is published when it starts, and refreshed when it is complete.
    ///
    /// # Errors
    /// [`Error::NoSuchCounter`]; [`Error::WrongWindow`]: the event is another world's.
    #[track_caller]
    pub fn expect_word<'r>(
        &'r self,
        word: impl Into<AnyWord<'r>>,
        compare: Compare,
        value: L::Word,
    ) -> Result<WordRequest<'r, 'w, L>, Error> {
        let window = self.window();
        called!(window.core.world);
        window.word_request(window.core.all(), word.into(), compare, value)
    }
}

impl<'r, 'w, L: Link> WordRequest<'r, 'w, L> {
    /// For the word at `place`.
    pub(super) fn new(
        world: &'w World<'w, L>,
        target: Option<(&'r Core<'w, L>, Lines)>,
        (word, place): (AnyWord<'r>, (Key, usize)),
        compare: Compare,
        value: L::Word,
    ) -> Result<Self, Error> {
        let (counts, taken) = match word {
            AnyWord::Counter(_) => (true, None),
            AnyWord::Signal(_) => (false, None),
            AnyWord::Event(event) => (true, Some(event.taken)),
        };
        Ok(Self {
            world,
            target,
            word: place,
            compare,
            value,
            counts,
            taken,
            reached: None,
            seen: Cell::default(),
            op: Pending::new(world.link()),
            started: false,
        })
    }

    /// Starts to wait anew. Writes this rank's dirty lines of the request's range back; until it
    /// completes, this rank's stores there are refused. Notices that were counted before count.
    ///
    /// # Errors
    /// [`Error::RequestActive`]; [`Error::CounterNotReset`] if a request has found its counter at
    /// this number or a larger one, and the counter was not changed since;
    /// [`Error::TooManyRequests`], unless its range is empty.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::{Counter, Error};
    ///
    /// let mut window = world.allocate::<u32>(1)?;
    /// let peer = world.rank().next(world.size());
    /// window.set_num_notify(1)?;
    /// let mut arrived = window.expect_count(0..1, Counter(0), 1)?;
    /// arrived.start()?;
    /// assert_eq!(window.local().set(0, 9), Err(Error::Exposed)); // the peer may be putting there
    /// window.put_notify(peer, 0, &[7], Counter(0))?;
    /// arrived.wait()?;
    /// assert_eq!(window.local().get(0)?, 7);
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn start(&mut self) -> Result<(), Error> {
        called!(self.world);
        if self.started {
            return Err(Error::RequestActive);
        }
        self.begin()
    }

    /// The number that a counter is to reach, if it is one of 32 bits.
    fn number(&self) -> Option<u32> {
        let number: Option<u64> = match (self.compare, self.value.into()) {
            (Compare::Ge | Compare::Eq, number) => Some(number),
            (Compare::Gt, number) => number.checked_add(1),
            (Compare::Ne, 0) => Some(1),
            _ => None,
        };
        number.and_then(|number| u32::try_from(number).ok())
    }

    fn begin(&mut self) -> Result<(), Error> {
        let reached = self.reached.map_or(0, Cell::get);
        if self.number().is_some_and(|it| (1..=reached).contains(&it)) {
            let index = self.word.1.checked_div(CELL).unwrap_or(0) as u32;
            return Err(Error::CounterNotReset { index });
        }
        if let Some((core, lines)) = self.target {
            let place = core.requested.room_for(Closed::silent(lines), 0)?;
            point!(PUBLISH "no dirty line is evicted over what arrives":
                "words.start.publish", core.publish(lines)?);
            if let Some(open) = place {
                open.set(Closed::silent(lines));
            }
        }
        self.started = true;
        Ok(())
    }

    /// Starts, and waits until it is complete. Ends in any case.
    pub(super) fn run(mut self) -> Result<L::Word, Error> {
        self.begin()?;
        loop {
            match self.complete() {
                Err(Error::Timeout(_)) if self.world.answers_alone(&self.op) => (),
                other => break other.map_err(|error| self.end().err().unwrap_or(error)),
            }
        }
    }

    /// The word's value (of an event: how many posts are left), if the request is complete. Does
    /// not wait.
    ///
    /// A complete request is not started any more. Takes notifications from the link, if there is
    /// room. A loop of tests keeps the processor: where ranks share one, wait within a short
    /// budget, by [`wait_within`](Self::wait_within).
    ///
    /// # Errors
    /// [`Error::RequestInactive`]; [`Error::PeerLost`] if it is not complete and a rank is lost (it
    /// stays started).
    #[track_caller]
    pub fn test(&mut self) -> Result<Option<L::Word>, Error> {
        called!(self.world);
        point!(PROGRESS "the rank that is to count may wait for room in this rank's ring":
            "words.test.progress", _ = self.world.progress());
        self.world
            .wait()
            .once(self, Self::attempt, |this| late(this.left()))
    }

    fn attempt(&mut self) -> Result<Option<L::Word>, Error> {
        if !self.started {
            return Err(Error::RequestInactive);
        }
        let (count, ()) = order!("a core may fetch lines ahead before the word is read":
            "words.test.watch<refresh",
            match self.look()? {
                Some(count) => count,
                None => return Ok(None),
            },
            point!(REFRESH "G1: what came before the word": "words.test.refresh", self.refresh()?));
        self.close();
        if let (Some(reached), Some(number)) = (self.reached, self.number()) {
            reached.set(reached.get().max(number));
        }
        let takes = self.taken.filter(|_| self.compare == Compare::Ge);
        let Some(taken) = takes else {
            return Ok(Some(count));
        };
        taken.set(taken.get::<L::Word>().wrapping_add(self.value));
        Ok(Some(count.wrapping_sub(self.value)))
    }

    /// The word's value, less what has been taken, if it is as it should be: then what its writers
    /// fenced before can be read.
    fn look(&self) -> Result<Option<L::Word>, Error> {
        let (key, offset) = self.word;
        let before = self.taken.map(Kept::get).unwrap_or_default();
        let arrived = |found: L::Word| {
            self.seen.set(found.wrapping_sub(before));
            self.compare.holds(self.seen.get(), self.value)
        };
        let link = self.world.link();
        match link.watch(key, offset, arrived, &self.op) {
            Err(refusal) if refusal.is_transient() => Ok(None),
            other => Ok(other?.map(|found| found.wrapping_sub(before))),
        }
    }

    /// Waits until the request is complete.
    ///
    /// # Errors
    /// [`Error::RequestInactive`], [`Error::PeerLost`], [`Error::PeerLeft`]. The request stays
    /// started.
    #[track_caller]
    pub fn wait(&mut self) -> Result<L::Word, Error> {
        called!(self.world);
        self.complete()
    }

    /// [`wait`](Self::wait), as long as `budget` says.
    ///
    /// # Errors
    /// Those of [`wait`](Self::wait); [`Error::Timeout`] with how many notifications are missing,
    /// and no rank, as any may tell the word. The request stays started.
    #[track_caller]
    pub fn wait_within(&mut self, budget: Budget) -> Result<L::Word, Error> {
        called!(self.world);
        self.world.within(budget, || self.complete())
    }

    fn complete(&mut self) -> Result<L::Word, Error> {
        let left = Cell::new(0);
        self.world.wait().until(
            || {
                let answer = self.attempt();
                left.set(self.left());
                answer
            },
            || late(left.get()),
        )
    }

    /// Ends a started request without waiting: this rank's stores to its lines are allowed again.
    /// Only for a program that knows that no peer will put there any more. The word keeps its
    /// value.
    ///
    /// A started request that is dropped instead keeps its lines closed, and its place taken.
    ///
    /// # Errors
    /// [`Error::RequestInactive`].
    #[track_caller]
    pub fn cancel(&mut self) -> Result<(), Error> {
        called!(self.world);
        if !self.started {
            return Err(Error::RequestInactive);
        }
        self.end()
    }

    fn end(&mut self) -> Result<(), Error> {
        point!(REFRESH "peers may have put there: stores do not merge into old lines":
            "words.cancel.refresh", self.refresh()?);
        self.close();
        Ok(())
    }

    /// Gives the request back. (One that is not started may as well be dropped.)
    ///
    /// # Errors
    /// [`Error::RequestActive`] with the request: wait for it, or [cancel](Self::cancel) it.
    #[track_caller]
    pub fn free(self) -> Result<(), Unfinished<Self>> {
        called!(self.world);
        if self.started {
            return Err(Unfinished::with(self)(Error::RequestActive));
        }
        Ok(())
    }

    /// True if it waits.
    pub fn is_started(&self) -> bool {
        self.started
    }

    /// How many notifications were missing when the word was last looked at.
    fn left(&self) -> u32 {
        let (value, seen): (u64, u64) = (self.value.into(), self.seen.get().into());
        match self.compare {
            Compare::Ge if self.counts => {
                u32::try_from(value.saturating_sub(seen)).unwrap_or(u32::MAX)
            }
            _ => 1,
        }
    }

    /// Peers' puts to the lines are seen from now on.
    fn refresh(&self) -> Result<(), Error> {
        match self.target {
            Some((core, lines)) => core.refresh(lines),
            None => Ok(()),
        }
    }

    /// This rank's stores to the lines are allowed again.
    fn close(&mut self) {
        if let Some((core, lines)) = self.target {
            core.requested.close(Closed::silent(lines), 0);
        }
        self.started = false;
    }
}

/// `left` notifications have not come. No rank is named: any may tell a word of this rank.
fn late(left: u32) -> Timeout {
    Timeout {
        waiting: Waiting::Notification,
        missing: Missing::among(core::iter::empty(), left),
    }
}

impl<L: Link> Sealed for WordRequest<'_, '_, L> {}

impl<'s, 'w: 's, L: Link> Complete<'s, L> for WordRequest<'_, 'w, L> {
    fn world(&self) -> &'s World<'s, L> {
        self.world
    }

    fn is_open(&self) -> bool {
        self.started
    }

    fn poll(&mut self) -> Result<bool, Error> {
        Ok(self.attempt()?.is_some())
    }

    fn late(&self) -> Timeout {
        late(self.left())
    }
}

#[cfg(test)]
mod tests {
    use super::Compare;

    #[test]
    fn comparisons_are_of_the_signal_with_the_value() {
        let all = [
            (Compare::Eq, [false, true, false]),
            (Compare::Ne, [true, false, true]),
            (Compare::Gt, [false, false, true]),
            (Compare::Ge, [false, true, true]),
            (Compare::Lt, [true, false, false]),
            (Compare::Le, [true, true, false]),
        ];
        for (compare, expected) in all {
            for value in [1, 7, u32::MAX - 1] {
                let found =
                    [value - 1, value, value + 1].map(|signal| compare.holds(signal, value));
                assert_eq!(found, expected, "{compare:?} {value}");
            }
        }
    }
}
