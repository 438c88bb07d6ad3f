//! Requests: accesses that are begun now and waited for later. A request owns the state of its
//! access: which pieces are done, and whether the target was told. So it may stop at any point and
//! continue, and does nothing twice. [`Request`] has a drawing of its life.
//!
//! # When a request is done
//! * A put: its data have left, and the slice may be changed. The epoch places them.
//! * A get: the slice is filled. A call that combines: the elements are changed, and a slice that
//!   takes their old values is filled.
//! * With a notice the target has been told as well.
//!
//! A request borrows its slices, and its epoch (its window, if it needs none), until it is gone:
//! nothing is read before it is there, and no epoch ends before its requests.
//!
//! Requests that are not done are in no order, neither with each other nor with what is called
//! meanwhile: a rank that combines with an element by a request, and wants to combine with it again
//! after that, waits for the request first. (MPI orders accumulates of one origin to one element;
//! calls without a request are in order here, too.)
//!
//! Where peers' memory is reached by loads and stores ([`Link::DIRECT`]), a request is done when
//! the call returns, at no cost beyond that of the call that blocks, unless an accumulate has found
//! a lock taken. On other links each `test` and `wait` continues piece by piece.
//!
//! # Programs that do not compile
//! Reading what a request fills, before it is done:
//! ```compile_fail
//! # use flagpost::*;
//! # fn f<L: Link>(window: &Window<'_, u64, L>, to: Rank, all: &Group<'_>) -> Result<(), Error> {
//! # let access = window.start(all)?;
//! let mut into = [0];
//! let request = access.to(to, 0).get(&mut into)?;
//! let early = into[0];
//! request.wait()?;
//! # access.complete()
//! # }
//! ```
//! ```
//! # use flagpost::*;
//! # fn f<L: Link>(window: &Window<'_, u64, L>, to: Rank, all: &Group<'_>) -> Result<(), Error> {
//! # let access = window.start(all)?;
//! let mut into = [0];
//! let request = access.to(to, 0).get(&mut into)?;
//! request.wait()?;
//! let value = into[0];
//! # access.complete()
//! # }
//! ```
//! Ending an epoch before its requests:
//! ```compile_fail
//! # use flagpost::*;
//! # fn f<L: Link>(window: &Window<'_, u64, L>, to: Rank, all: &Group<'_>) -> Result<(), Error> {
//! let access = window.start(all)?;
//! let request = access.to(to, 0).put(&[1])?;
//! access.complete()?;
//! request.wait()
//! # }
//! ```
//! ```
//! # use flagpost::*;
//! # fn f<L: Link>(window: &Window<'_, u64, L>, to: Rank, all: &Group<'_>) -> Result<(), Error> {
//! let access = window.start(all)?;
//! let request = access.to(to, 0).put(&[1])?;
//! request.wait()?;
//! access.complete()
//! # }
//! ```

use flagpost_link::{Link, Pending, Refusal};

use super::{
    layout::BUFFER,
    telling::{Checked, Telling},
    transfer::{Remote, Sides, Work, step},
};
use crate::{
    Budget, Error, Missing, Timeout, Unfinished, Waiting, World,
    complete::{Complete, Sealed},
};

/// An access that may not be done yet.
///
/// # Life
/// ```text
///   Rma::to, Window::to ──► Target ─── put, get, accumulate, … ───┐ begins
///                                                                 ▼
///                          test: false;                        ┌─────────┐
///                          the budget of wait_within ran out ┌─│ Request │
///                                                            └►└─────────┘
///                                     test: true; wait, wait_within │
///                                     test_any, wait_any, wait_all  ▼
///                                              the access is done, and its target is told
/// ```
/// Dropping it leaves the access as it is: pieces that are done are done, the one that is in flight
/// will be (a notified put's data perhaps in part, and nothing is told), and the others will not.
#[derive(Debug)]
#[must_use = "an access goes on when its request is tested or waited for"]
pub struct Request<'r, 'w, L: Link> {
    remote: Remote<'r, 'w, L>,
    sides: Sides<'r>,
    work: Work<'r>,
    buffer: [u8; BUFFER],
    /// That of the piece that is in flight, or of the notice after the last one.
    op: Pending<'w, L>,
    /// A piece is done.
    moved: bool,
    /// All pieces are.
    done: bool,
    telling: Option<Telling<'r>>,
    /// A call for several requests has given it.
    told: bool,
    /// Why it was not done at the last attempt.
    waiting: Waiting,
}

impl<'r, 'w, L: Link> Request<'r, 'w, L> {
    /// An access of `bytes` bytes that has not begun.
    pub(super) fn new(
        remote: Remote<'r, 'w, L>,
        sides: Sides<'r>,
        work: Work<'r>,
        bytes: usize,
    ) -> Self {
        Self {
            op: Pending::new(remote.link()),
            remote,
            sides,
            work,
            buffer: [0; BUFFER],
            moved: false,
            done: bytes == 0,
            telling: None,
            told: false,
            waiting: Waiting::Answer,
        }
    }

    /// The last step tells `notice`, if there is any.
    pub(super) fn telling(mut self, notice: Option<Checked>) -> Self {
        self.telling = notice.map(|notice| self.about(notice, &[]));
        self
    }

    /// [`telling`](Self::telling), of a put whose data lie together on both sides: they travel with
    /// the notice if it can carry them.
    pub(super) fn carrying(mut self, notice: Checked) -> Self {
        let data = match (&self.work, notice) {
            (Work::Put(data), Checked::Immediate { .. }) => data,
            _ => return self.telling(Some(notice)),
        };
        self.telling = Some(self.about(notice, data));
        self.done = true;
        self
    }

    fn about(&self, notice: Checked, data: &'r [u8]) -> Telling<'r> {
        let Remote {
            rank, key, offset, ..
        } = self.remote;
        Telling::new(rank, notice, (key, offset), data)
    }

    /// Begins, as far as that goes without waiting.
    pub(super) fn begin(mut self) -> Result<Self, Error> {
        self.try_once()?;
        Ok(self)
    }

    /// True if it is done; continues as far as that is possible now. Does not wait. A loop of tests
    /// keeps the processor: where ranks share one, wait as [`test_any`](crate::test_any) says.
    ///
    /// # Errors
    /// [`Error::PeerLost`], also where it is not done and the link knows another rank to be lost.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::{Rma as _, epoch::Assert};
    ///
    /// let next = world.rank().next(world.size());
    /// let window = world.allocate::<u32>(1)?;
    /// window.local().set(0, 7)?;
    /// let epoch = window.fence(Assert::empty())?;
    /// let mut got = [0];
    /// let mut request = epoch.to(next, 0).get(&mut got)?;
    /// while !request.test()? {
    ///     // Something else is done here.
    /// }
    /// drop(request);
    /// assert_eq!(got, [7]);
    /// epoch.end()?;
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn test(&mut self) -> Result<bool, Error> {
        called!(self.remote.core.world);
        let world = self.remote.core.world;
        let done = world.wait().once(self, Self::try_once, Self::late)?;
        Ok(done.is_some())
    }

    /// Does what can be done now.
    fn try_once(&mut self) -> Result<Option<()>, Error> {
        if is_done(self.attempt(), &mut self.waiting)? {
            return Ok(Some(()));
        }
        let world = self.remote.core.world;
        point!(PROGRESS "the peer may be in the same way":
            "rma.request.test.progress", world.progress(); else false);
        Ok(None)
    }

    /// True if anything has, or may have, been done already.
    pub fn has_begun(&self) -> bool {
        let told = self.telling.as_ref().is_some_and(Telling::is_done);
        self.moved || self.op.is_under_way() || told
    }

    fn finish(&mut self) -> Result<(), Error> {
        let world = self.remote.core.world;
        world.wait().retry(|| self.attempt())
    }

    fn attempt(&mut self) -> Result<(), Refusal> {
        order!("the access comes before what notifies of it": "rma.request.access<tell",
            self.transfer()?, self.tell()?);
        Ok(())
    }

    /// Tells of what was done, if anything is to be told.
    fn tell(&mut self) -> Result<(), Refusal> {
        let link = self.remote.link();
        let (telling, op) = (self.telling.as_mut(), &self.op);
        telling.map_or(Ok(()), |telling| telling.attempt(link, op))
    }

    fn transfer(&mut self) -> Result<(), Refusal> {
        while !self.done {
            let Self {
                remote,
                sides,
                work,
                ..
            } = self;
            let more = step(remote, sides, work, &mut self.buffer, &self.op)?;
            self.moved |= more;
            self.done = !more;
        }
        Ok(())
    }
}

ends! {
    impl['b, 'w, L: Link] Request<'b, 'w, L>,
    in remote.core.world, by finish;
    /// Waits until it is done.
    ///
    /// # Errors
    /// [`Error::PeerLost`].
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::{Rma as _, epoch::Assert};
    ///
    /// let next = world.rank().next(world.size());
    /// let window = world.allocate::<u32>(1)?;
    /// window.local().set(0, 7)?;
    /// let epoch = window.fence(Assert::empty())?;
    /// let mut got = [0];
    /// epoch.to(next, 0).get(&mut got)?.wait()?;
    /// assert_eq!(got, [7]);
    /// epoch.end()?;
    /// # Ok(())
    /// # });
    /// ```
    wait -> ();
    /// # Errors
    /// [`Error::Timeout`] naming the peer, [`Error::PeerLost`]: with the request, to continue with.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::{Budget, Rma as _, epoch::Assert, rma::Operation};
    ///
    /// let next = world.rank().next(world.size());
    /// let window = world.allocate::<u32>(1)?;
    /// let epoch = window.fence(Assert::NO_PRECEDE)?;
    /// let request = epoch.to(next, 0).accumulate(&[7], Operation::SUM)?;
    /// if let Err(late) = request.wait_within(Budget::microseconds(20)) {
    ///     // Something else is done here.
    ///     late.handle.wait()?;
    /// }
    /// epoch.end()?;
    /// assert_eq!(window.local().get(0)?, 7);
    /// # Ok(())
    /// # });
    /// ```
    wait_within;
}

impl<L: Link> Sealed for Request<'_, '_, L> {}

impl<'s, 'w: 's, L: Link> Complete<'s, L> for Request<'_, 'w, L> {
    fn world(&self) -> &'s World<'s, L> {
        self.remote.core.world
    }

    fn is_open(&self) -> bool {
        !self.told
    }

    fn poll(&mut self) -> Result<bool, Error> {
        let done = self.attempt();
        self.told = done.is_ok();
        is_done(done, &mut self.waiting)
    }

    fn late(&self) -> Timeout {
        late(self.waiting, &self.remote)
    }
}

/// True if an access is done; else notes in `waiting` what it waits for.
pub(super) fn is_done<T>(
    attempt: Result<T, Refusal>,
    waiting: &mut Waiting,
) -> Result<bool, Error> {
    match attempt {
        Ok(_) => Ok(true),
        Err(refusal) if refusal.is_transient() => {
            *waiting = match refusal {
                Refusal::Locked(_) => Waiting::Lock,
                Refusal::Full(_) => Waiting::RingSpace,
                _ => Waiting::Answer,
            };
            Ok(false)
        }
        Err(refusal) => Err(refusal.into()),
    }
}

/// The peer's memory has not done what it is `waiting` for.
pub(super) fn late<L>(waiting: Waiting, remote: &Remote<'_, '_, L>) -> Timeout {
    Timeout {
        waiting,
        missing: Missing::one(remote.rank),
    }
}
