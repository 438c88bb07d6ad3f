//! Passive target: an origin locks a piece, accesses it, and unlocks it; the piece's owner does
//! nothing. An exclusive lock lets nobody else in. Shared ones, and locks of all pieces, let each
//! other in. Words in shared memory say what is locked: each rank changes them by atomic
//! operations, and reads them while it must wait. [`Lock`] has a drawing of a lock's life.
//!
//! # Guarantee
//! G1. While a piece is locked exclusively nobody else has it locked, neither by itself nor among
//!     all.
//! G2. A rank that locks a piece finds all that ranks did which unlocked it before.
//! G3. All that an origin did before [`Lock::flush`] is placed when that returns: others that may
//!     access it find it.
//!
//! # Steps
//! Two words, as in [foMPI]. The *local* one, at each rank, says which rank is the writer, and
//! counts readers. The *global* one, at rank 0, counts locks of all pieces, and ranks that have
//! locked some piece exclusively. Both have a bit that says that a writer waits.
//!
//! * [`lock_shared`](Window::lock_shared), [`lock_all`](Window::lock_all): the rank counts itself
//!   in, at the local or at the global word. While the word has a writer, the rank reads it. For a
//!   writer that waits it [stands aside](self#fairness), once.
//! * [`lock_exclusive`](Window::lock_exclusive): the rank counts itself in at the global word, once
//!   for all its exclusive locks. Then it changes the local word from 0 to writer. If a word is in
//!   the way, the rank sets that word's bit, if readers have it; counts itself out; reads the word
//!   until it is free; and begins again.
//! * [`lock_queued`](Window::lock_queued): the rank lines up at the target. Then it does as
//!   `lock_exclusive`.
//! * [`unlock`](Lock::unlock): the rank flushes. It takes back what it has counted: at the local
//!   word, then, after its last exclusive lock, at the global word. In a queue it passes the turn
//!   on.
//! * A rank that locks its own piece publishes and refreshes it, and publishes it at `unlock`.
//!
//! # Cost
//! `docs/costs.md` counts the accesses of locks that no other rank wants. A look at a word that is
//! taken is one access. A writer that waits adds, per word that readers have: 2, or 3 for the
//! global word; for each reader that stands aside 3, and looks at the count of turns.
//!
//! Under contention an exclusive lock costs as many remote looks as it has to wait. A queued one
//! waits at its own memory: it takes at most 8 remote atomic operations from lock to unlock, plus 3
//! for each rank that gave up waiting while it was next; provided that all lock the piece in this
//! way. (Others are excluded as well; but then the first of the queue looks at the words as they
//! do.) A rank that has an exclusive lock of the window already lines up in no queue: the first of
//! the queue may wait for a lock of all, and that for this rank.
//!
//! # Fairness
//! Queued locks come in the order of the queue. Readers and writers take turns:
//! * A writer that finds readers sets the word's bit, and waits until they have gone. A reader that
//!   counts in and finds the bit asks how many turns writers had, counts out, waits until that
//!   number has changed, and counts in again. While it is counted in the writer's turn cannot come,
//!   so it misses none. So a writer waits for each rank once.
//! * The writer adds 1 to the number after it has cleared the bit. One that gives up does so, too.
//! * One writer at a time sets a word's bit. Writers have no turns among each other. After an
//!   attempt that failed a writer pauses for a time that it draws, and that gets shorter with each
//!   failure: the rank that has waited longest looks most often.
//! * A rank that already holds a lock, in whatever window, never stands aside, and passes by a bit
//!   that another has set: a rank may be waiting for that lock, and both would wait for ever. So
//!   ranks that share pieces all the time, and lock others meanwhile, can leave out a writer.
//! * A rank that shares a piece must not wait, by other means than locks, for one that is about to
//!   share it too: a writer may stand between them. One that asks for another piece exclusively
//!   waits for locks of all that wait: it must not have what these wait for.
//!
//! `tests/host/locks.rs` counts how often others come first, of n ranks that lock again
//! immediately: n - 1 times at most for a queued lock, 10 n times for an exclusive one, 4 n times
//! for a writer among readers. Where a change takes a lock of the machine, that comes by chance.
//!
//! # This rank's own piece
//! In windows of the separate [model](crate::Model) the owner of a piece that peers access under
//! locks may use it through [`Local`](crate::Local) only
//! * while the owner has locked it (by itself or among all): loads see what was there when it was
//!   locked; stores are published at unlock. Stores under a shared lock, and under one of all: to
//!   lines that no peer puts to until then;
//! * between two collective synchronizations without epochs of peers, with [`Window::sync`] before
//!   the one that lets peers in, and after the one that locks them out.
//!
//! Otherwise the owner's cache holds old lines, or dirty ones that are written back over peers'
//! puts; nothing refuses that. And a peer that polls for a store by gets may find it before the
//! unlock, in a line that has left the cache on the chip's account, without older stores. A word
//! that peers are to poll is put ([`Rma::put`] to this rank itself), or in a window of the unified
//! model: there the owner may always load and store, as a peer may put and get.
//!
//! A rank may lock its own piece while it has posted it, and post it while it holds that lock (MPI
//! forbids both): its stores to lines that are exposed stay refused.
//!
//! # Bounds
//! A rank has at most 8 locks of a window. The words count up to 32,767 ranks with exclusive locks.
//! A lock whose target is lost gives back what it has at other ranks. In
//! [`World::within`](crate::World::within) a [`Locking`] that is dropped has the scope's time to
//! give back what it has taken: what it cannot (on a network whose answers take longer) stays taken
//! for ever, and the window is abandoned here. [`cancelling`](Locking::cancelling) gives a handle
//! that can continue.
//!
//! # Source
//! [foMPI] 2.3 and Fig. 3. A lock there goes back to the start if the local word is taken, as here.
//!
//! [foMPI]: crate#sources

mod hold;
mod queue;
mod words;

use core::marker::PhantomData;

use bytemuck::Pod;
use flagpost_link::{Link, Rank};

use crate::{
    Budget, Error, Unfinished, Window,
    rma::{Rma, Silent},
    window::{Core, reach::Reach},
};
use hold::Hold;
use words::Kind;

impl<'w, T: Pod, L: Link, S> Window<'w, T, L, S> {
    /// Locks `target`'s piece, which others may share. Waits while it is locked exclusively, and
    /// for the turn of a rank that waits to lock it so already.
    ///
    /// Cost and order: see the [module](crate::epoch::lock).
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::LockedTwice`], [`Error::EpochOpen`] (this rank has another
    /// access epoch, or a lock it still waits for), [`Error::TooManyLocks`],
    /// [`Error::EpochAbandoned`], [`Error::PeerLost`], [`Error::PeerLeft`].
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(3, |world| {
    /// use flagpost::{Rank, Rma as _, rma::Operation};
    ///
    /// let window = world.allocate::<u32>(1)?;
    /// let owner = Rank::new(0);
    /// let lock = window.lock_shared(owner)?; // others may hold it, too
    /// lock.fetch_and_op(owner, 0, 1, Operation::SUM)?;
    /// lock.unlock()?;
    /// world.barrier()?;
    /// assert_eq!(window.peer(owner)?.get(0)?, 3);
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn lock_shared(&self, target: Rank) -> Result<Lock<'_, 'w, T, L>, Error> {
        called!(self.core.world);
        self.locking(Kind::Shared, target)?.wait()
    }

    /// [`lock_shared`](Window::lock_shared), with a handle: for programs that do not wait for ever.
    /// Nothing happens before it is waited for.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`].
    #[track_caller]
    pub fn locking_shared(&self, target: Rank) -> Result<Locking<'_, 'w, T, L>, Error> {
        called!(self.core.world);
        self.locking(Kind::Shared, target)
    }

    /// Locks `target`'s piece for this rank alone. Waits while it is locked by others, or all
    /// pieces are.
    ///
    /// # Errors
    /// Those of [`lock_shared`](Window::lock_shared).
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(3, |world| {
    /// use flagpost::{Rank, Rma as _};
    ///
    /// let window = world.allocate::<u32>(1)?;
    /// let owner = Rank::new(0);
    /// let lock = window.lock_exclusive(owner)?;
    /// let mut count = [0];
    /// lock.get(owner, 0, &mut count)?;
    /// lock.put(owner, 0, &[count[0] + 1])?; // no other rank has changed it in between
    /// lock.unlock()?;
    /// world.barrier()?;
    /// assert_eq!(window.peer(owner)?.get(0)?, 3);
    /// # Ok(())
    /// # });
    /// ```
    #[inline(always)]
    #[track_caller]
    pub fn lock_exclusive(&self, target: Rank) -> Result<Lock<'_, 'w, T, L>, Error> {
        tries!(self.core.world);
        let mut hold = Hold::new(&self.core, Kind::Exclusive, target);
        if hold::lock_exclusive(&mut hold) {
            return Ok(Lock {
                hold,
                element: PhantomData,
            });
        }
        Locking::new(hold).wait_for(target)
    }

    /// [`lock_exclusive`](Window::lock_exclusive), with a handle: for programs that do not wait for
    /// ever. Nothing happens before it is waited for.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`].
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(3, |world| {
    /// use flagpost::{Budget, Rank};
    ///
    /// let (window, owner) = (world.allocate::<u32>(1)?, Rank::new(0));
    /// let mut locking = window.locking_exclusive(owner)?;
    /// let lock = loop {
    ///     match locking.wait_within(Budget::microseconds(20)) {
    ///         Ok(lock) => break lock,
    ///         Err(late) => locking = late.handle, // something else is done here
    ///     }
    /// };
    /// lock.unlock()?;
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn locking_exclusive(&self, target: Rank) -> Result<Locking<'_, 'w, T, L>, Error> {
        called!(self.core.world);
        self.locking(Kind::Exclusive, target)
    }

    /// [`lock_exclusive`](Window::lock_exclusive), in turn: for pieces that many want.
    ///
    /// # Errors
    /// Those of [`lock_shared`](Window::lock_shared); [`Error::EpochOpen`] also if this rank has
    /// another queued lock of the window.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(3, |world| {
    /// use flagpost::{Rank, Rma as _};
    ///
    /// let window = world.allocate::<u32>(1)?;
    /// let owner = Rank::new(0);
    /// for _ in 0..10 {
    ///     let lock = window.lock_queued(owner)?; // each rank waits at its own memory for its turn
    ///     let mut count = [0];
    ///     lock.get(owner, 0, &mut count)?;
    ///     lock.put(owner, 0, &[count[0] + 1])?;
    ///     lock.unlock()?;
    /// }
    /// world.barrier()?;
    /// assert_eq!(window.peer(owner)?.get(0)?, 30);
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn lock_queued(&self, target: Rank) -> Result<Lock<'_, 'w, T, L>, Error> {
        called!(self.core.world);
        self.locking(Kind::Queued, target)?.wait()
    }

    /// [`lock_queued`](Window::lock_queued), with a handle: for programs that do not wait for ever.
    /// Nothing happens before it is waited for.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`].
    #[track_caller]
    pub fn locking_queued(&self, target: Rank) -> Result<Locking<'_, 'w, T, L>, Error> {
        called!(self.core.world);
        self.locking(Kind::Queued, target)
    }

    /// Locks all pieces, which others may share. Waits while any is locked exclusively, and for the
    /// turn of a rank that waits already until all have unlocked all pieces.
    ///
    /// # Errors
    /// [`Error::EpochOpen`] (this rank has another access epoch, or a lock it still waits for),
    /// [`Error::EpochAbandoned`], [`Error::PeerLost`].
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(3, |world| {
    /// use flagpost::{Rank, Rma as _};
    ///
    /// let window = world.allocate::<u32>(3)?;
    /// let me = world.rank();
    /// let lock = window.lock_all()?;
    /// for target in [0, 1, 2].map(Rank::new) {
    ///     lock.put(target, me.index(), &[7])?;
    /// }
    /// lock.unlock()?;
    /// world.barrier()?;
    /// assert_eq!(window.peer(me)?.get(2)?, 7); // of rank 2
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn lock_all(&self) -> Result<Lock<'_, 'w, T, L>, Error> {
        called!(self.core.world);
        self.locking_all().wait()
    }

    /// [`lock_all`](Window::lock_all), with a handle: for programs that do not wait for ever.
    /// Nothing happens before it is waited for.
    #[track_caller]
    pub fn locking_all(&self) -> Locking<'_, 'w, T, L> {
        called!(self.core.world);
        Locking::new(Hold::new(&self.core, Kind::All, Rank::new(0)))
    }

    fn locking(&self, kind: Kind, target: Rank) -> Result<Locking<'_, 'w, T, L>, Error> {
        self.core.world.check_rank(target)?;
        Ok(Locking::new(Hold::new(&self.core, kind, target)))
    }
}

/// The result of a call for a lock with a budget.
pub type Locked<'e, 'w, T, L> = Result<Lock<'e, 'w, T, L>, Unfinished<Locking<'e, 'w, T, L>>>;

/// A lock that is not there yet.
#[derive(Debug)]
#[must_use = "a lock is taken when its handle is waited for"]
pub struct Locking<'e, 'w, T, L: Link> {
    hold: Hold<'e, 'w, L>,
    element: PhantomData<T>,
}

impl<'e, 'w, T: Pod, L: Link> Locking<'e, 'w, T, L> {
    #[inline(always)]
    fn new(hold: Hold<'e, 'w, L>) -> Self {
        Self {
            hold,
            element: PhantomData,
        }
    }

    /// [`wait`](Self::wait), if there is such a rank as `target`: the full path of
    /// [`Window::lock_exclusive`].
    #[inline(never)]
    #[track_caller]
    fn wait_for(self, target: Rank) -> Result<Lock<'e, 'w, T, L>, Error> {
        called!(self.hold.words.core.world);
        self.hold.words.core.world.check_rank(target)?;
        self.wait()
    }

    /// Gives back all that was taken: it is as if the lock had not been asked for. Waits for nobody
    /// but for the words' own locks, and for a rank that is just joining the same queue.
    ///
    /// # Errors
    /// [`Error::PeerLost`].
    #[track_caller]
    pub fn cancel(self) -> Result<(), Error> {
        called!(self.hold.words.core.world);
        self.cancelling().wait()
    }

    /// [`cancel`](Self::cancel), with a handle: for programs that do not wait for ever.
    #[track_caller]
    pub fn cancelling(self) -> Unlocking<'e, 'w, L> {
        called!(self.hold.words.core.world);
        Unlocking { hold: self.hold }
    }

    fn held(self) -> Lock<'e, 'w, T, L> {
        let Self { hold, element } = self;
        Lock { hold, element }
    }
}

ends! {
    impl['e, 'w, T: Pod, L: Link] Locking<'e, 'w, T, L>,
    in hold.words.core.world, by hold.obtain then held;
    /// Waits for the lock. Words that were taken stay taken. A call that was refused begins anew,
    /// and may be refused again.
    ///
    /// # Errors
    /// Those of the call for the lock. Words that were taken are given back.
    wait -> Lock<'e, 'w, T, L>;
    /// # Errors
    /// Those of the call for the lock; [`Error::Timeout`] naming the rank that has the piece
    /// exclusively, or its owner while others share it. Of all pieces it says how many ranks have
    /// exclusive locks (they are counted, not recorded: no rank is named). In the queue it may name
    /// the rank before this one ([`Waiting::Queue`](crate::Waiting::Queue)). All with the handle
    /// again.
    wait_within;
    /// The lock, if it is there:
    test;
}

/// A piece, or all, locked. Its accesses: [`Rma`]; [`flush`](Lock::flush) places them,
/// [`unlock`](Lock::unlock) too.
///
/// # Life
/// ```text
///   Window ──── lock_* ─────────────────────────────────┐
///      │ locking_*                                      │
///      ▼                                                ▼
///   ┌─────────┐ wait, wait_within, test             ┌───────┐ put, get, flush
///   │ Locking │────────────────────────────────────►│ Lock  │──┐
///   └─────────┘──┐ the budget ran out               └───────┘◄─┘
///      │  ▲──────┘                                      │ unlock, unlocking
///      │ cancel, cancelling                             ▼
///      │                                          ┌───────────┐ the budget ran out
///      └─────────────────────────────────────────►│ Unlocking │──┐
///                                                 └───────────┘◄─┘
///                                                       │ wait, wait_within, test
///                                                       ▼
///                                                   nothing is taken
/// ```
/// A `Locking` whose budget ran out keeps its place: of a shared or queued lock in line; of an
/// exclusive one it keeps new readers out. Dropped, or after an error of [`wait`](Locking::wait),
/// it gives back all that it has taken. `unlock` and `cancel` do both steps. A `Lock` that is
/// dropped, or its `Unlocking`, gives the lock back, too; but then the window starts no other
/// epoch: [`Error::EpochAbandoned`].
#[derive(Debug)]
#[must_use = "a lock is given back by `unlock`"]
pub struct Lock<'e, 'w, T, L: Link> {
    hold: Hold<'e, 'w, L>,
    element: PhantomData<T>,
}

impl<'w, T: Pod, L: Link> Reach<'w, L> for Lock<'_, 'w, T, L> {
    type Told = Silent;

    fn core(&self) -> &Core<'w, L> {
        self.hold.words.core
    }

    #[inline]
    fn admits(&self, target: Rank) -> bool {
        self.is_of(target) || self.hold.words.kind == Kind::All
    }

    fn admit(&self, target: Rank) -> Result<(), Error> {
        if self.admits(target) {
            Ok(())
        } else {
            Err(Error::NotInGroup(target))
        }
    }
}

impl<'w, T: Pod, L: Link> Rma<'w, T, L> for Lock<'_, 'w, T, L> {}

impl<T, L: Link> Lock<'_, '_, T, L> {
    /// True if `target`'s piece is locked, and that is known immediately: else it may be one of
    /// all.
    #[inline]
    pub(crate) fn is_of(&self, target: Rank) -> bool {
        self.hold.words.usual == target
    }
}

impl<'e, 'w, T: Pod, L: Link> Lock<'e, 'w, T, L> {
    /// Places all that was put, and lets others have the piece.
    ///
    /// On chips without coherence it may wait for a target that computes: data that travelled
    /// inside of a notified put are placed by the target, in its next call that waits or tests.
    /// After [`Window::set_inline(false)`](crate::Window::set_inline) it waits for no call of the
    /// target.
    ///
    /// # Errors
    /// [`Error::PeerLost`].
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::{Rank, Rma as _};
    ///
    /// let window = world.allocate::<u32>(1)?;
    /// let owner = Rank::new(0);
    /// for step in 1..=2 {
    ///     let lock = window.lock_exclusive(owner)?;
    ///     let mut count = [0];
    ///     lock.get(owner, 0, &mut count)?;
    ///     lock.put(owner, 0, &[count[0] + step])?;
    ///     lock.unlock()?; // the element is in memory, and other ranks may lock
    /// }
    /// world.barrier()?;
    /// assert_eq!(window.peer(owner)?.get(0)?, 6);
    /// # Ok(())
    /// # });
    /// ```
    #[inline(always)]
    #[track_caller]
    pub fn unlock(mut self) -> Result<(), Error> {
        tries!(self.hold.words.core.world);
        if hold::unlock_exclusive(&mut self.hold) {
            return Ok(());
        }
        let rest = Unlocking { hold: self.hold };
        rest.wait()
    }

    /// [`unlock`](Self::unlock), with a handle: for programs that do not wait for ever.
    #[track_caller]
    pub fn unlocking(self) -> Unlocking<'e, 'w, L> {
        called!(self.hold.words.core.world);
        Unlocking { hold: self.hold }
    }
}

/// A lock that is being given back.
#[derive(Debug)]
#[must_use = "others wait for the lock"]
pub struct Unlocking<'e, 'w, L: Link> {
    hold: Hold<'e, 'w, L>,
}

ends! {
    impl['e, 'w, L: Link] Unlocking<'e, 'w, L>,
    in hold.words.core.world, by hold.release;
    /// Waits until the lock is given back. Earlier steps are not repeated.
    ///
    /// # Errors
    /// [`Error::PeerLost`].
    #[inline(never)]
    wait -> ();
    /// # Errors
    /// [`Error::PeerLost`]; [`Error::Timeout`] (of a queued lock: naming the rank that comes next,
    /// as far as is known, [`Waiting::Queue`](crate::Waiting::Queue)): with the handle again.
    wait_within;
    /// Gives the lock back as far as that takes no waiting:
    test;
}
