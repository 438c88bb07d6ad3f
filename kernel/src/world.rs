//! The world: all ranks, and what they share. A program starts one on each rank, over a link, and
//! makes its windows there. The world keeps the queue of notifications that no request has matched,
//! and takes notifications from the link while its rank waits.
//!
//! # Guarantee
//! G1. When [`World::start`] returns, every rank has started, with the same [`Config`], and may be
//!     accessed.
//! G2. While a rank that has started waits in any call, it takes notifications from its link as
//!     long as its unexpected queue has room, so that two ranks that wait for each other's rings
//!     both continue. Without room it [attends](flagpost_link::Telling::attend): the data of
//!     notifications that it cannot take are placed all the same.
//! G3. A notification that no rank of this world sends is dropped, and nobody is told: of a window
//!     that there is not, or in the name of a rank that there is not, or, where the link knows its
//!     sender, in that of another one. (Where the machine is coherent, a request that takes its
//!     notification immediately takes that name on trust: a rank that may store to one ring there
//!     may store to all.)
//!
//! # Bounds
//! Words of the arena: the unexpected queue, and per window what its strategy says
//! ([`Strategy`](crate::epoch::Strategy)).

use core::{cell::Cell, panic::Location};

use flagpost_link::{Gone, Link, Rank, Refusal, Wants};

use crate::{
    Budget, Error, Group, Limits,
    arena::Arena,
    budget::Limit,
    caller::Caller,
    collective::{Agreement, Collectives},
    epoch::EpochSlots,
    notify::queue::UnexpectedQueue,
    part::Spares,
};

/// One in this many calls that give a value asks the link for ranks that are lost: see
/// [`World::note_poll`].
const POLLS: u8 = 64;

/// How a world is set up: the same on all ranks. If not, none starts: [`Error::Asymmetric`] says
/// so on each ([`Differs::Config`](crate::Differs::Config)). Working memory may differ.
#[derive(Copy, Clone, Debug)]
pub struct Config {
    /// How many notifications that no request has matched yet are kept, up to 65,534; beyond that
    /// senders wait.
    pub unexpected: u16,
}

impl Default for Config {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Config {
    /// All of it, as a number that ranks compare when they start.
    fn offer(self) -> u64 {
        let Self { unexpected } = self;
        unexpected.into()
    }

    /// The default, for constants: 64 notifications are kept.
    pub const DEFAULT: Self = Self { unexpected: 64 };

    /// How many words of working memory [`World::start`] and [`World::run`] need for `ranks`, of
    /// which each has up to `windows` windows by [`World::allocate`] at a time.
    ///
    /// Windows of other kinds and strategies, events and counters take words of their own: add as
    /// many as [`Error::ArenaFull`] says, or count such a window as several.
    ///
    /// # Example
    /// ```
    /// use flagpost::Config;
    ///
    /// const WORDS: usize = Config::DEFAULT.words(8, 2);
    /// let mut words = [0; WORDS];
    /// assert_eq!(words.len(), 99); // 63 for notifications, and 18 per window
    /// # words[0] = 1;
    /// ```
    pub const fn words(&self, ranks: u16, windows: usize) -> usize {
        let of_queue = Arena::words(UnexpectedQueue::words(self.unexpected));
        let of_windows = Arena::words(EpochSlots::words(ranks)).saturating_mul(windows);
        of_queue.saturating_add(of_windows)
    }
}

/// One rank's view of all ranks. Not `Sync`: a world belongs to one core.
#[derive(Debug)]
pub struct World<'a, L> {
    link: L,
    /// When waits end.
    pub(crate) limit: Cell<Limit>,
    pub(crate) limits: Limits,
    pub(crate) arena: Arena<'a>,
    pub(crate) queue: UnexpectedQueue<'a>,
    pub(crate) collectives: Collectives,
    /// One bit per window that there is.
    pub(crate) windows: Cell<u64>,
    /// How many locks this rank has or waits for, of all windows.
    pub(crate) locks: Cell<u32>,
    /// A call waits.
    pub(crate) waiting: Cell<bool>,
    /// All ranks have started.
    pub(crate) started: Cell<bool>,
    /// The ranks that are left agree which they are: no loss ends a wait.
    pub(crate) surviving: Cell<bool>,
    pub(crate) spares: Cell<Spares>,
    /// Calls that give a value, until one of them asks for ranks that are lost.
    polls: Cell<u8>,
    /// Calls since this rank has looked for notifications.
    pub(crate) calls: Cell<u8>,
    /// Where the program has called last.
    pub(crate) place: Cell<Caller>,
}

/// A world that not all ranks have joined yet.
///
/// If it is dropped after the first wait, all ranks must start again, with new links of another
/// session.
#[derive(Debug)]
#[must_use = "a world starts when its handle is waited for"]
pub struct Starting<'a, L> {
    world: World<'a, L>,
    agreement: Agreement,
}

impl<'a, L: Link> Starting<'a, L> {
    /// Waits until all ranks have started, as long as `budget` says. May be called again: a world
    /// is large, and stays where it is.
    ///
    /// # Errors
    /// [`Error::Timeout`] naming a rank that has not started, [`Error::PeerLost`],
    /// [`Error::Asymmetric`].
    #[track_caller]
    pub fn meet_within(&self, budget: Budget) -> Result<(), Error> {
        called!(self.world);
        self.world
            .within(budget, || self.world.begin(&self.agreement))
    }

    /// The world, once all ranks have started.
    ///
    /// # Errors
    /// [`Error::PeerLost`], [`Error::Asymmetric`].
    #[track_caller]
    pub fn wait(self) -> Result<World<'a, L>, Error> {
        called!(self.world);
        self.world.begin(&self.agreement)?;
        Ok(self.world)
    }

    /// [`wait`](Self::wait), as long as `budget` says; then this start is given up. Later calls
    /// have no budget.
    ///
    /// # Errors
    /// Those of [`meet_within`](Self::meet_within).
    #[track_caller]
    pub fn wait_within(self, budget: Budget) -> Result<World<'a, L>, Error> {
        called!(self.world);
        self.world
            .within(budget, || self.world.begin(&self.agreement))?;
        Ok(self.world)
    }
}

impl<'a, L: Link> World<'a, L> {
    /// Joins the world: collective over all ranks. Waits until all have joined.
    ///
    /// `arena` is working memory: `config.unexpected - 1` words, and per window
    /// `2 p + ceil(p / 32) + 1` (with the default strategy): see [`Config::words`].
    ///
    /// # Errors
    /// [`Error::ArenaFull`], [`Error::PeerLost`]. [`Error::Asymmetric`] on all ranks together, if
    /// `config` differs: the rank that it names has another one.
    ///
    /// # Example
    /// ```
    /// use flagpost::{Config, Error, Session, World};
    /// use flagpost_mapped::Mapped;
    /// use flagpost_sim::{Sim, SimCore};
    ///
    /// let report = Sim::new(flagpost_sim::Config::default()).run(|core: SimCore| {
    ///     let mut words = [0; 128];
    ///     let link = Mapped::start(core, Session::FIRST)?;
    ///     let world = World::start(link, &mut words, Config::default())?;
    ///     assert!(world.rank().get() < world.size());
    ///     Ok::<(), Error>(())
    /// });
    /// report.assert_done();
    /// ```
    #[track_caller]
    pub fn start(link: L, arena: &'a mut [u32], config: Config) -> Result<Self, Error> {
        let mut world = Self::new(link, arena);
        called!(world);
        world.take_queue(config)?;
        world.join(config)?;
        Ok(world)
    }

    /// [`start`](Self::start), with a handle: for programs that do not wait for ever.
    ///
    /// # Errors
    /// [`Error::ArenaFull`].
    ///
    /// # Example
    /// ```
    /// use flagpost::{Budget, Config, Error, Session, World};
    /// use flagpost_mapped::Mapped;
    /// use flagpost_sim::{Sim, SimCore};
    ///
    /// let report = Sim::new(flagpost_sim::Config::default()).run(|core: SimCore| {
    ///     let mut words = [0; 128];
    ///     let link = Mapped::start(core, Session::FIRST)?;
    ///     let starting = World::starting(link, &mut words, Config::default())?;
    ///     let world = starting.wait_within(Budget::seconds(1))?; // names a rank that is missing
    ///     world.barrier()
    /// });
    /// report.assert_done();
    /// ```
    ///
    /// A device, of which each core may be reset alone at any time ([`Session`](crate::Session)):
    /// ```
    /// use flagpost::{Budget, Config, Error, World};
    /// use flagpost_mapped::Mapped;
    /// use flagpost_sim::SimCore;
    ///
    /// const PATIENCE: Budget = Budget::seconds(1);
    ///
    /// /// A device begins here, after a reset too.
    /// fn device(core: SimCore) -> Result<(), Error> {
    ///     loop {
    ///         match session(&core) {
    ///             Ok(()) | Err(Error::Timeout(_)) => (),
    ///             Err(other) => return Err(other),
    ///         }
    ///     }
    /// }
    ///
    /// fn session(core: &SimCore) -> Result<(), Error> {
    ///     let session = Mapped::next_session(core);
    ///     let link = Mapped::start(core.clone(), session)?;
    ///     let mut words = [0; 128];
    ///     let starting = World::starting(link, &mut words, Config::default())?;
    ///     while let Err(error) = starting.meet_within(PATIENCE) {
    ///         let is_over = Mapped::newest_session(core) != Some(session);
    ///         if is_over || !matches!(error, Error::Timeout(_)) {
    ///             return Err(error);
    ///         }
    ///     }
    ///     let world = starting.wait()?;
    ///     world.within(PATIENCE, || world.barrier()) // its work
    /// }
    /// # let _ = device;
    /// # flagpost_sim::Sim::new(Default::default()).run(|core| session(&core)).assert_done();
    /// ```
    #[track_caller]
    pub fn starting(
        link: L,
        arena: &'a mut [u32],
        config: Config,
    ) -> Result<Starting<'a, L>, Error> {
        let mut world = Self::new(link, arena);
        called!(world);
        world.take_queue(config)?;
        let agreement = world.agreement(config);
        Ok(Starting { world, agreement })
    }

    /// [`start`](Self::start), and then `program`, with a world that does not move: this takes less
    /// stack, by the sizes of a link and a world or more.
    ///
    /// # Errors
    /// Those of [`start`](Self::start), and those of `program`.
    ///
    /// # Example
    /// ```
    /// use flagpost::{Config, Error, Link, Session, World};
    /// use flagpost_mapped::Mapped;
    /// use flagpost_sim::{Sim, SimCore};
    ///
    /// fn program<L: Link>(world: &World<'_, L>) -> Result<(), Error> {
    ///     world.barrier()
    /// }
    ///
    /// let report = Sim::new(flagpost_sim::Config::default()).run(|core: SimCore| {
    ///     let mut words = [0; 128];
    ///     let link = Mapped::start(core, Session::FIRST)?;
    ///     World::run(link, &mut words, Config::default(), program)
    /// });
    /// report.assert_done();
    /// ```
    #[track_caller]
    pub fn run<T, E: From<Error>>(
        link: L,
        arena: &'a mut [u32],
        config: Config,
        program: impl FnOnce(&Self) -> Result<T, E>,
    ) -> Result<T, E> {
        Self::run_on(|| Ok(link), arena, config, program)
    }

    /// [`run`](Self::run) over the link that `start` starts: where stack is dear, since that does
    /// not move to the world either.
    ///
    /// # Errors
    /// Those of `start`, of [`World::start`], and of `program`.
    ///
    /// # Example
    /// ```
    /// use flagpost::{Config, Error, Session, World};
    /// use flagpost_mapped::Small;
    /// use flagpost_sim::{Sim, SimCore};
    ///
    /// let chip = flagpost_sim::Config { cores: 2, ..Default::default() };
    /// let report = Sim::new(chip).run(|core: SimCore| {
    ///     let mut words = [0; Config::DEFAULT.words(2, 1)];
    ///     let start = || Small::start(core, Session::FIRST);
    ///     World::run_on(start, &mut words, Config::default(), |world| world.barrier())
    /// });
    /// report.assert_done();
    /// ```
    #[track_caller]
    pub fn run_on<T, E: From<Error>>(
        start: impl FnOnce() -> Result<L, Refusal>,
        arena: &'a mut [u32],
        config: Config,
        program: impl FnOnce(&Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let made = Self::made(start, arena, config);
        let world = made.as_ref().map_err(|error| *error)?; // it does not move
        called!(world);
        world.join(config)?;
        world.lend(program)
    }

    /// [`new`](Self::new), with its queue.
    #[inline(never)]
    fn made(
        start: impl FnOnce() -> Result<L, Refusal>,
        arena: &'a mut [u32],
        config: Config,
    ) -> Result<Self, Error> {
        let mut world = Self::new(start()?, arena);
        world.take_queue(config)?;
        Ok(world)
    }

    /// Calls `program` when the stack that it took to start is free again.
    #[inline(never)]
    fn lend<R>(&self, program: impl FnOnce(&Self) -> R) -> R {
        program(self)
    }

    /// A world of which no other rank knows yet.
    #[inline(always)]
    fn new(link: L, arena: &'a mut [u32]) -> Self {
        Self {
            limits: Limits::new(link.room()),
            link,
            limit: Cell::new(Limit::NONE),
            arena: Arena::new(arena),
            queue: UnexpectedQueue::new(&[], 0, 0),
            collectives: Collectives::new(),
            windows: Cell::new(0),
            locks: Cell::new(0),
            waiting: Cell::new(false),
            started: Cell::new(false),
            surviving: Cell::new(false),
            spares: Cell::new(Spares::NONE),
            polls: Cell::new(POLLS),
            calls: Cell::new(0),
            place: Cell::new(Caller::place()),
        }
    }

    /// Takes what the queue needs.
    fn take_queue(&mut self, config: Config) -> Result<(), Error> {
        let words = self.arena.take(UnexpectedQueue::words(config.unexpected))?;
        self.queue = UnexpectedQueue::new(words, config.unexpected, self.limits.tag_bits());
        Ok(())
    }

    /// The message of this rank to the others: how it is set up.
    fn agreement(&self, config: Config) -> Agreement {
        Agreement::new(self.rank(), Some(config.offer()))
    }

    /// Waits for all ranks.
    #[inline(never)]
    fn join(&self, config: Config) -> Result<(), Error> {
        self.begin(&self.agreement(config))
    }

    /// Waits for all ranks, if they have not started.
    #[inline(never)]
    fn begin(&self, agreement: &Agreement) -> Result<(), Error> {
        if self.started.get() {
            return Ok(());
        }
        point!(WAIT "G1: all ranks are up": "world.start.meet", self.meet(agreement)?);
        self.started.set(true);
        Ok(())
    }

    /// This rank.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(3, |world| {
    /// let (me, size) = (world.rank(), world.size());
    /// let (left, right) = (me.prev(size), me.next(size));
    /// assert_eq!((left.next(size), right.prev(size)), (me, me));
    /// # Ok(())
    /// # });
    /// ```
    pub fn rank(&self) -> Rank {
        self.link.rank()
    }

    /// How many ranks there are.
    pub fn size(&self) -> u16 {
        self.link.size()
    }

    /// The link underneath.
    pub fn link(&self) -> &L {
        &self.link
    }

    /// Where the program has called Flagpost last: the call that has failed, if one has just done
    /// so. Calls that have succeeded in their fast path (a `put`, a `put_notify`, an answer that is
    /// there) are left out. None on bare metal, unless the feature `places` is on.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::Rank;
    ///
    /// let line = line!() + 1;
    /// let error = world.allocate::<u32>(1)?.peer(Rank::new(7)).err();
    /// assert!(error.is_some());
    /// assert_eq!(world.last_call().map(|place| place.line()), Some(line));
    /// # Ok(())
    /// # });
    /// ```
    pub fn last_call(&self) -> Option<&'static Location<'static>> {
        self.place.get().location()
    }

    /// All ranks that are known to be lost, in ascending order. Does not wait.
    ///
    /// A rank is lost if it has ended without having left: its process has died, or its program has
    /// failed or panicked. So has the program of a rank that a loss has ended by
    /// [`Error::PeerLost`]. A rank whose program has ended well is not lost.
    ///
    /// | the ranks share | a loss is known |
    /// |---|---|
    /// | memory, started by `flagpost-run` | to all ranks, once the launcher has noticed it |
    /// | memory, started by others | to all ranks, 20 ms after one of them waits or asks |
    /// | a network | to each rank, once the job's hub has told it, or an access there has failed |
    /// | the QEMU board, the simulator | never: there a core can only leave |
    ///
    /// Over a network whose launcher is gone all other ranks count as lost.
    ///
    /// A call that fails with `PeerLost` names one rank, and others may be lost by then, or later:
    /// a loss that is not known yet is in a later answer.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::Error;
    ///
    /// match world.barrier() {
    ///     Err(Error::PeerLost(_)) => {
    ///         for rank in world.lost() {
    ///             println!("rank {rank} is lost");
    ///         }
    ///     }
    ///     done => done?,
    /// }
    /// assert_eq!(world.lost().count(), 0); // nobody is
    /// # Ok(())
    /// # });
    /// ```
    pub fn lost(&self) -> impl Iterator<Item = Rank> {
        let link = &self.link;
        let has_left = |rank| link.gone(Some(rank)) == Some(Gone::Left);
        let ranks = (0..link.size()).map(Rank::new);
        // Memory of a rank that has ended well may be gone as well.
        ranks.filter(move |rank| link.is_lost(*rank) && !has_left(*rank))
    }

    /// The numbers that notifications of this world can tell apart.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// A group of distinct `ranks`, which it borrows.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::DuplicateRank`].
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::{Error, Rank};
    ///
    /// let ranks = [Rank::new(1), Rank::new(0)];
    /// assert_eq!(world.group(&ranks)?.ranks(), ranks);
    ///
    /// let twice = [Rank::new(1), Rank::new(1)];
    /// assert_eq!(world.group(&twice).err(), Some(Error::DuplicateRank(Rank::new(1))));
    /// # Ok(())
    /// # });
    /// ```
    pub fn group<'g>(&self, ranks: &'g [Rank]) -> Result<Group<'g>, Error> {
        Group::new(ranks, self.size())
    }

    /// Lets `see` see the notifications of window `id` that have arrived, oldest first, and drops
    /// those that it says: all of them, if all ranks have passed a barrier since they sent the last
    /// one.
    ///
    /// # Errors
    /// [`Error::QueueFull`] if others fill the queue: more may have arrived.
    pub(crate) fn sift(&self, id: u16, mut drops: impl FnMut() -> bool) -> Result<(), Error> {
        let mut dropped = |immediate: u32| self.limits.unpack(immediate).window == id && drops();
        self.queue.take_if(&mut dropped);
        while point!(ROOM "what is taken from the link must be kept":
            "world.sift.room", !self.queue.has_no_spare(); else true)
        {
            let Some(immediate) = self.next_notification(None, Wants::Any) else {
                return Ok(());
            };
            if !dropped(immediate) {
                self.queue.push(immediate);
            }
        }
        let capacity = self.queue.capacity();
        Err(Error::QueueFull { capacity })
    }

    /// This rank has a lock more, or waits for it.
    #[inline(always)]
    pub(crate) fn add_lock(&self) {
        self.locks.set(self.locks.get().wrapping_add(1));
    }

    /// One less.
    #[inline(always)]
    pub(crate) fn remove_lock(&self) {
        self.locks.set(self.locks.get().wrapping_sub(1));
    }

    /// Before a call that gives a value: it cannot know which value its caller waits for, so that
    /// the value is no answer for a loop that polls. One in [`POLLS`] calls fails where the link
    /// knows a rank to be lost.
    #[inline]
    pub(crate) fn note_poll(&self) -> Result<(), Error> {
        if self.is_poll_due() {
            return self.poll_long();
        }
        Ok(())
    }

    /// Counts a call that gives a value. True if it is the one that [`World::note_poll`] is for.
    #[inline]
    pub(crate) fn is_poll_due(&self) -> bool {
        match self.polls.get().checked_sub(1) {
            Some(left) => {
                self.polls.set(left);
                false
            }
            None => true,
        }
    }

    #[cold]
    #[inline(never)]
    fn poll_long(&self) -> Result<(), Error> {
        self.polls.set(POLLS);
        match self.link.gone(None) {
            Some(Gone::Lost(rank)) => Err(Error::PeerLost(rank)),
            Some(Gone::Revoked) => Err(Error::Revoked),
            Some(Gone::Left) | None => Ok(()),
        }
    }
}
