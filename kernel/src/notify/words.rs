//! Words at a target: a window's counters and signals, and their owner's calls.
//!
//! Each rank of a window has as many words as it has asked for. A notice of a peer changes one:
//! [`Counter`]`(i)` adds 1 to word `i`, [`Signal`]`(i)` sets it or
//! adds to it. The owner reads, sets and resets its words here, and waits for one by a
//! [`WordRequest`](super::WordRequest). [Events](super::events) are words of the world.
//!
//! # Guarantee
//! G1. Each notified access that names a word changes it once, after the access has taken effect:
//!     the rank that finds `n` from `n` accesses finds all their data in memory (and past the
//!     cache; a [`WordRequest`](super::WordRequest) also refreshes this rank's lines).
//! G2. [`Window::set_num_notify`] takes effect on all ranks or on none. Afterwards all words are 0.
//! G3. An access that names a word which its *target* does not have moves no byte.
//! G4. [`Window::reset_notify_value`] is one atomic swap: each notification is in one of the values
//!     that it returns.
//! G5. A signal that was overwritten by another rank's `set` before it was seen tells nothing.
//!
//! # Values
//! A word is a number in a cell of 8 bytes (see [`Access::amo`](flagpost_link::Access::amo)). Its
//! owner polls it: one load must show all of it. So the link's type says how long it is,
//! [`Link::Word`]: `u64` over networks, and where the machine changes and loads 8 bytes as a whole;
//! else `u32`, in the low half of the cell. On 32-bit buses 8 bytes may tear, and under a lock the
//! whole cell would cost each notification a load and a store more. A program for any link writes
//! `3.into()`: a constant beyond 32 bits does not compile there. Values wrap around, and compare as
//! unsigned numbers.
//!
//! # Steps
//! | call | core | in order | remote accesses |
//! |---|---|---|---|
//! | a notified access | origin | the access; fence; change the cell | its own, 1 atomic |
//! | `set_num_notify` | all | take new cells, clear and tell them | [`allgather_with`] |
//! | `num_notify` | any | look into the table | none |
//! | `notify_value`, `signal_fetch` | target | read the cell | none |
//! | `reset_notify_value`, `set_notify_value` | target | swap the cell | none |
//!
//! # Memory per rank
//! Shared: 8 bytes per word, in whole lines. Private: 2 machine words per rank of the world (where
//! its words are, and how many: numbers may differ, so that O(p) it is), and 1 per word of its own
//! (the number that requests have reached); nothing before the first [`Window::set_num_notify`];
//! twice that during one. [`Window::free`] gives all back.
//!
//! # Programs that do not compile
//! Requests of a window borrow it, and [`Window::set_num_notify`] needs it alone: no request waits
//! for a word that is gone, and no unfinished access tells one.
//! ```compile_fail
//! # use flagpost::*;
//! # fn f<L: Link>(window: &mut Window<'_, u64, L>) -> Result<(), Error> {
//! let mut request = window.expect_count(0..1, Counter(0), 1)?;
//! window.set_num_notify(2)?;
//! request.start()
//! # }
//! ```
//! ```
//! # use flagpost::*;
//! # fn f<L: Link>(window: &mut Window<'_, u64, L>) -> Result<(), Error> {
//! window.set_num_notify(2)?;
//! let mut request = window.expect_count(0..1, Counter(0), 1)?;
//! request.start()
//! # }
//! ```
//!
//! [`allgather_with`]: crate::World::allgather_with

use bytemuck::Pod;
use flagpost_link::{Amo, Key, Link, Op, Pending, Rank, Width, Word as _};

use super::{Counter, Signal};
use crate::{Differs, Error, Window, World, collective::Call, window::counters::Coming};

impl<'w, T: Pod, L: Link, S> Window<'w, T, L, S> {
    /// Gives this rank `count` counters in the place of those that it had, all 0. Collective; the
    /// number is each rank's own.
    ///
    /// All notified accesses to the former ones have ended: they end with their calls, and an
    /// unfinished one keeps its window borrowed.
    ///
    /// Takes 8 bytes of shared memory and a word of the arena per counter, and 2 p words of the
    /// arena, beside those of the former ones until all ranks have answered. Waits for all ranks:
    /// O(log p).
    ///
    /// # Errors
    /// On all ranks together, which then keep the counters and values that they had:
    /// [`Error::MemoryFull`] (also for a number that cannot be), [`Error::ArenaFull`],
    /// [`Error::TooManyPieces`] where the cause is, [`Error::Asymmetric`] naming the first such
    /// rank elsewhere. [`Error::Timeout`] naming a rank that was waited for: call again to
    /// continue, with the number of the first call. [`Error::CollectiveUnfinished`]: nothing was
    /// taken, and the next call may be of any number.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::Counter;
    ///
    /// let mut window = world.allocate::<u32>(1)?;
    /// let peer = world.rank().next(world.size());
    /// window.set_num_notify(2)?; // counters 0 and 1, on each rank
    /// window.put_notify(peer, 0, &[7], Counter(1))?;
    /// world.barrier()?;
    /// assert_eq!((window.notify_value(Counter(0))?, window.notify_value(Counter(1))?), (0, 1));
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn set_num_notify(&mut self, count: u32) -> Result<(), Error> {
        called!(self.core.world);
        let core = &mut self.core;
        let (world, call) = (core.world, Call::SetCounters(core.id));
        // A refusal decides nothing.
        world.check_collective(call)?;
        let mut coming = core.counters.coming.unwrap_or_else(|| Coming {
            taken: world.take_counters(count),
            cleared: false,
            differs: None,
        });
        if let Err(error) = world.attempt(call, || coming.hear(world, core.id)) {
            core.counters.coming = Some(coming);
            return Err(error);
        }
        core.counters.coming = None;
        match (coming.taken, coming.differs) {
            (Ok(taken), None) => {
                world.discard_counters(&core.counters);
                core.counters.table = taken.table;
                core.counters.begun.set(None);
                Ok(())
            }
            (Ok(taken), Some(rank)) => {
                world.give_counters_back(taken);
                {
                    let differs = Differs::Other;
                    Err(Error::Asymmetric { rank, differs })
                }
            }
            (Err(error), _) => Err(error),
        }
    }

    /// How many counters `rank` has. Asks nobody.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`].
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::Rank;
    ///
    /// let mut window = world.allocate::<u32>(1)?;
    /// window.set_num_notify(world.rank().get().into())?; // each rank may have another number
    /// assert_eq!((window.num_notify(Rank::new(0))?, window.num_notify(Rank::new(1))?), (0, 1));
    /// # Ok(())
    /// # });
    /// ```
    pub fn num_notify(&self, rank: Rank) -> Result<u32, Error> {
        self.core.world.check_rank(rank)?;
        let (_, count) = self.core.counters.row(rank);
        Ok(count)
    }

    /// This rank's `counter`. The data of the notifications that it has counted are in memory, and
    /// reads past the cache from now on find them. This rank's lines are not refreshed: for
    /// [`Local`](crate::Local) in windows of the separate model see [`Window::expect_count`] and
    /// [`Window::sync`].
    ///
    /// Takes notifications from the link, if there is room, so that a loop round this call keeps
    /// nobody waiting.
    ///
    /// # Errors
    /// [`Error::NoSuchCounter`]; [`Error::Timeout`] where a network does not answer for this rank's
    /// memory; [`Error::PeerLost`] in one of 64 calls, if a rank is lost.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::Counter;
    ///
    /// let mut window = world.allocate::<u32>(1)?;
    /// let peer = world.rank().next(world.size());
    /// window.set_num_notify(1)?;
    /// window.put_notify(peer, 0, &[7], Counter(0))?;
    /// while window.notify_value(Counter(0))? < 1 {}
    /// assert_eq!(window.peer(world.rank())?.get(0)?, 7); // past the cache
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn notify_value(&self, counter: Counter) -> Result<L::Word, Error> {
        called!(self.core.world);
        let core = &self.core;
        core.world.value(core.own_counter(counter.0)?)
    }

    /// The value of this rank's `signal`: [`notify_value`](Self::notify_value) of its word.
    ///
    /// # Errors
    /// Those of [`notify_value`](Self::notify_value).
    #[track_caller]
    pub fn signal_fetch(&self, signal: Signal) -> Result<L::Word, Error> {
        called!(self.core.world);
        let core = &self.core;
        core.world.value(core.own_counter(signal.0)?)
    }

    /// Sets this rank's `counter` to 0 and gives the value that it had: one atomic swap, so that no
    /// notification is lost or counted twice. A new round begins: requests for the same number may
    /// be started again.
    ///
    /// # Errors
    /// [`Error::NoSuchCounter`]; [`Error::Timeout`] while this rank's lock is taken or a network
    /// does not answer: call again to continue. The swap is done once. One that is not continued
    /// may have been done, before the next change of a counter of this rank.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::Counter;
    ///
    /// let mut window = world.allocate::<u32>(1)?;
    /// let peer = world.rank().next(world.size());
    /// window.set_num_notify(1)?;
    /// window.put_notify(peer, 0, &[7], Counter(0))?;
    /// world.barrier()?;
    /// assert_eq!(window.reset_notify_value(Counter(0))?, 1); // what it was
    /// assert_eq!(window.notify_value(Counter(0))?, 0);
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn reset_notify_value(&self, counter: Counter) -> Result<L::Word, Error> {
        called!(self.core.world);
        self.core.change_counter(counter.0, Amo::Swap(0))
    }

    /// Sets this rank's `counter` to `value`. Notifications that arrived before are forgotten.
    ///
    /// # Errors
    /// Those of [`reset_notify_value`](Self::reset_notify_value).
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::Counter;
    ///
    /// let mut window = world.allocate::<u32>(1)?;
    /// window.set_num_notify(1)?;
    /// window.set_notify_value(Counter(0), 5)?;
    /// assert_eq!(window.notify_value(Counter(0))?, 5);
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn set_notify_value(&self, counter: Counter, value: L::Word) -> Result<(), Error> {
        called!(self.core.world);
        self.core
            .change_counter(counter.0, Amo::Swap(value.into()))?;
        Ok(())
    }
}

impl<L: Link> World<'_, L> {
    /// The value of a word of this rank. All that its writers fenced before can be read; and
    /// notifications that have arrived are taken, so that a program that only ever asks keeps no
    /// rank waiting.
    pub(super) fn value(&self, (key, offset): (Key, usize)) -> Result<L::Word, Error> {
        point!(PROGRESS "the rank that is asked for may wait for room in this rank's ring":
            "notify.value.progress", _ = self.progress());
        self.note_poll()?;
        let (link, me) = (self.link(), self.rank());
        let op = Pending::new(link);
        let read = || link.amo(me, key, offset, Amo::Read, Width::of::<L::Word>(), &op);
        loop {
            match self.wait().retry(read) {
                Err(Error::Timeout(_)) if self.answers_alone(&op) => (),
                other => return other.map(L::Word::low),
            }
        }
    }

    /// True if `op` has begun at this rank's own memory, over a network, which answers without any
    /// other rank. Passes this rank's turn then: the caller takes the answer, with any budget. A
    /// program that asks again and again with a budget below the way of an answer has one.
    pub(super) fn answers_alone(&self, op: &Op) -> bool {
        let alone = !L::DIRECT && op.is_under_way();
        if alone {
            self.link().relax();
        }
        alone
    }
}
