//! Waiting: the one loop in which a call waits.
//!
//! A call that must wait polls until it has its answer. Meanwhile this rank takes the notifications
//! that arrive, so that no other rank waits for room here. The wait ends with an error if a rank is
//! gone without which it cannot end, or if the budget is used up. [`World::wait`] begins it.
//!
//! | | waits until |
//! |---|---|
//! | [`until`](Wait::until) | a poll finds the answer |
//! | [`retry`](Wait::retry) | the link does not refuse an operation for the moment |
//! | [`ask`](Wait::ask) | the same, for an operation that takes an [`Op`] |
//! | [`once`](Wait::once) | not at all: for calls that do not wait |
//!
//! # Steps
//! 1. Where a look costs next to nothing ([`Link::LOOKS`]): poll, look, poll. As a rule the awaited
//!    event is near.
//! 2. Turn by turn: poll; take notifications; ask the link for ranks that are gone; look at the
//!    clock, if there is a budget; relax.
//!
//! Rare steps of a wait (to repeat, to say its purpose, to look which ranks have left) are compiled
//! once, and not for each of the kernel's waits: it takes `dyn` functions.
//!
//! # Invariants
//! I1. `poll` looks at everything that it waits for, each time: what was polled since the last
//!     relaxing is what wakes this rank.
//! I2. That a rank is gone ends the wait only after one more poll: what the rank
//!     did before may have come since.

use core::{cell::Cell, fmt, panic::Location};

use flagpost_link::{Gone, Link, Op, Pending, Rank, Refusal, Step, Wants};

use crate::{
    Budget, Error, Missing, Timeout, Waiting, World,
    caller::Caller,
    immediate::{Notification, Tag, unpack},
    window::bit,
};

/// A wait drops at most this many invalid notifications between two checks of its budget.
const STRANGE: u32 = 16;

/// At most this many calls in a row look for no notifications, on links that are not passive.
const CALLS: u8 = 15;

/// How a call waits.
#[derive(Debug)]
#[must_use = "nothing is waited for before a method says for what"]
pub(crate) struct Wait<'a, 'w, L> {
    world: &'a World<'w, L>,
    /// The wait of a link that has no room.
    full: Waiting,
    /// It begins with step 1.
    near: bool,
    /// The loop takes notifications.
    takes: bool,
    /// The first turn reads the clock, whether there is a budget or not: so a budget changes
    /// nothing in what that turn costs.
    clock: bool,
}

impl<'w, L: Link> World<'w, L> {
    /// A wait that begins now, and ends with the budgets of the scopes that it is in.
    #[inline(always)]
    pub(crate) fn wait(&self) -> Wait<'_, 'w, L> {
        Wait {
            world: self,
            full: Waiting::RingSpace,
            near: L::LOOKS > 0,
            takes: true,
            clock: true,
        }
    }
}

impl<L: Link> World<'_, L> {
    /// Makes `calls`, all of which together may wait as long as `budget` says.
    ///
    /// Whatever waits for another rank ends by then, with no exception: calls on handles with
    /// longer budgets or none, and what a handle still does when it is dropped. The budget begins
    /// with the first turn that has to wait; when it is used up, each further call polls once. Of
    /// scopes inside of scopes the earliest end counts.
    ///
    /// A call that ends so gives [`Error::Timeout`], and is repeated to continue:
    ///
    /// * Barriers and other collectives, flushes, puts without a notice, waits for requests,
    ///   counters and events, and reads of this rank's counters and events get through with any
    ///   budget.
    /// * Gets, operations that fetch or combine, and puts that tell by a counter or an event begin
    ///   anew: over a network no budget below a round trip is enough, and the attempt before may
    ///   have had its effect. The same call [by a request](crate::rma::Target) continues.
    /// * The short form of a call with a handle has dropped it, which abandons an epoch, a window
    ///   that was to be made, or the like. The handle (`posting`, `fencing`, `locking_shared`,
    ///   `allocating`, ...) continues.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::{Budget, Error, Rank, Waiting};
    ///
    /// let first = Rank::new(0);
    /// if world.rank() == first {
    ///     let soon = world.within(Budget::microseconds(0), || world.barrier()); // polls once
    ///     match soon {
    ///         Ok(()) => return Ok(()),
    ///         Err(Error::Timeout(late)) => assert_eq!(late.waiting, Waiting::Collective),
    ///         Err(other) => return Err(other),
    ///     }
    /// }
    /// world.barrier()?; // the same one
    /// # Ok(())
    /// # });
    /// ```
    #[inline]
    pub fn within<R>(&self, budget: Budget, calls: impl FnOnce() -> R) -> R {
        let before = self.limit.get();
        self.limit.set(before.and(budget));
        let result = calls();
        self.limit.set(before.after(self.limit.get()));
        result
    }
}

impl<L: Link> Wait<'_, '_, L> {
    /// The loop takes no notifications from the link: `poll` does so by itself, or nothing is to be
    /// taken yet.
    pub(crate) fn taking(self) -> Self {
        Self {
            near: false,
            takes: false,
            ..self
        }
    }

    /// It is one of several in a call, and begins with step 2. Only the first of them reads the
    /// clock if there is no budget.
    pub(crate) fn one_of_several(self, first: bool) -> Self {
        Self {
            near: false,
            clock: first,
            ..self
        }
    }

    /// Where the link has no room, it is `full` that is waited for.
    #[inline(always)]
    pub(crate) fn for_room(self, full: Waiting) -> Self {
        Self { full, ..self }
    }

    /// Polls until there is an answer. `missing` says what is waited for, if there is none.
    pub(crate) fn until<T>(
        self,
        mut poll: impl FnMut() -> Result<Option<T>, Error>,
        missing: impl Fn() -> Timeout,
    ) -> Result<T, Error> {
        if L::LOOKS > 0 && self.near {
            if let Some(answer) = poll()? {
                return Ok(answer);
            }
            self.world.link().step(Step::Look);
            if let Some(answer) = poll()? {
                return Ok(answer);
            }
        }
        turns(self.world, [self.takes, self.clock], poll, &missing)
    }

    /// Repeats `operation` until the link does not refuse it for the moment.
    #[inline(always)]
    pub(crate) fn retry<T>(
        self,
        mut operation: impl FnMut() -> Result<T, Refusal>,
    ) -> Result<T, Error> {
        let (world, full) = (self.world, self.full);
        // As a rule the first attempt is the only one.
        if L::LOOKS > 0 {
            // Where a look costs next to nothing, what is refused is asked for again.
            return match operation() {
                Err(refusal) if refusal.is_transient() => {
                    let mut operation = operation;
                    world.repeat(full, None, &mut operation)
                }
                result => result.map_err(Error::from),
            };
        }
        let inside = world.begin_wait();
        let result = match operation() {
            Err(refusal) if refusal.is_transient() => {
                let mut operation = operation;
                world.repeat(full, Some(refusal), &mut operation)
            }
            result => result.map_err(Error::from),
        };
        world.end_wait(inside);
        result
    }

    /// [`retry`](Self::retry) of an operation that a repeated call begins anew: an answer that has
    /// not come is not kept.
    pub(crate) fn ask<T>(
        self,
        mut operation: impl FnMut(&Op) -> Result<T, Refusal>,
    ) -> Result<T, Error> {
        let op = Pending::new(self.world.link());
        self.retry(|| operation(&op))
    }

    /// The result of `poll`, if it finds something. Else it fails, as a wait for `missing` does, if
    /// a rank is gone.
    pub(crate) fn once<S: ?Sized, T>(
        self,
        on: &mut S,
        mut poll: impl FnMut(&mut S) -> Result<Option<T>, Error>,
        missing: impl Fn(&S) -> Timeout,
    ) -> Result<Option<T>, Error> {
        if let Some(found) = poll(on)? {
            return Ok(Some(found));
        }
        say_waits(self.world, &|| missing(on));
        // Of any rank's notifications one more may come: this rank's own.
        let Some((_, gone)) = self.world.gone(&|| missing(on), false) else {
            return Ok(None);
        };
        match poll(on)? {
            None => Err(gone),
            found => Ok(found),
        }
    }
}

// ---- Work for other ranks meanwhile ----

impl<L: Link> World<'_, L> {
    /// Takes what has arrived from the link, as long as there is room. True if anything came.
    pub(crate) fn progress(&self) -> bool {
        self.take_all(Wants::Any)
    }

    /// [`progress`](Self::progress) of a rank that waits for such a notification.
    pub(crate) fn take_all(&self, wants: Wants) -> bool {
        let mut any = false;
        while point!(ROOM "what is taken from the link must be kept":
            "world.progress.room", !self.queue.is_full(); else true)
        {
            let Some(immediate) = self.next_notification(None, wants) else {
                return any;
            };
            self.queue.push(immediate);
            any = true;
        }
        point!(PROGRESS "others may wait for what has come and cannot be taken":
            "world.progress.attend", self.link().attend());
        any
    }

    /// The next notification of the link, for which the caller has room. Drops strange ones. `like`
    /// is one of a window that there is, if the caller `wants` such: then matching touches nothing
    /// to find that out.
    pub(crate) fn next_notification(&self, like: Option<u32>, wants: Wants) -> Option<u32> {
        if !L::PASSIVE {
            self.calls.set(0);
        }
        for _ in 0..STRANGE {
            let arrival = point!(PROGRESS "the next notification comes by way of the link":
                "world.next.progress", self.link().progress(wants); else None)?;
            let told = unpack(self.queue.tag_bits(), arrival.immediate);
            if !self.is_strange(told, arrival.sender, like) {
                return Some(arrival.immediate);
            }
        }
        // More may have arrived, so the next relax must not sleep.
        self.link().step(Step::End);
        None
    }

    /// True if no rank of this world sends such a notification: of a window that there is not, or
    /// in the name of a rank that there is not, or of another one.
    fn is_strange(&self, told: Notification, sender: Option<Rank>, like: Option<u32>) -> bool {
        like.is_none_or(|like| unpack(self.queue.tag_bits(), like).window != told.window)
            && self.windows.get() & bit(told.window) == 0
            || self.check_rank(told.source).is_err()
            || sender.is_some_and(|sender| sender != told.source)
    }

    /// Notes where the program has called, and tells the link. Each call that may access memory
    /// begins with this, or with [`tries`](Self::tries).
    #[inline(always)]
    #[track_caller]
    pub(crate) fn called(&self) {
        self.note_place();
        self.tries();
    }

    /// Notes the caller's place as that of the program's last call.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn note_place(&self) {
        self.place.set(Caller::place());
    }

    /// Hands `result` on; if it is an error, the caller's place is noted.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn noted<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        if result.is_err() {
            self.note_place();
        }
        result
    }

    /// Tells the link that the program has called, and where.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn tries(&self) {
        if L::LISTENS {
            self.link().step(Step::Called(Location::caller()));
        }
        if !L::PASSIVE {
            self.attend();
        }
    }

    /// [`tries`](Self::tries), in a call that tells other ranks nothing.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn looks(&self) {
        if L::LISTENS {
            self.link().step(Step::Looks(Location::caller()));
        }
        if !L::PASSIVE {
            self.attend();
        }
    }

    /// Makes progress for others, if the last [`CALLS`] calls have made none.
    fn attend(&self) {
        let calls = self.calls.get();
        self.calls.set(calls.saturating_add(1));
        if calls >= CALLS {
            self.calls.set(0);
            point!(PROGRESS "a program may poll by calls that take no notifications":
                "world.called.attend", self.link().attend());
        }
    }
}

impl<L: Link> World<'_, L> {
    /// The link's part of a wait begins, unless this wait is inside of another one's poll. Returns
    /// whether it is.
    #[inline(always)]
    fn begin_wait(&self) -> bool {
        let inside = self.waiting.replace(true);
        if !inside {
            self.link().step(Step::Begin);
        }
        inside
    }

    #[inline(always)]
    fn end_wait(&self, inside: bool) {
        self.waiting.set(inside);
        if !inside {
            point!(POLL "it does not sleep on words of this wait":
                "world.wait.end", self.link().step(Step::End));
        }
    }

    /// [`Wait::retry`], waiting. If an attempt of this wait was made before, and `refused`, the
    /// first turn uses that refusal.
    #[inline(never)]
    fn repeat<T>(
        &self,
        full: Waiting,
        mut refused: Option<Refusal>,
        operation: &mut dyn FnMut() -> Result<T, Refusal>,
    ) -> Result<T, Error> {
        let last = Cell::new(None);
        self.wait().until(
            || match refused.take().map_or_else(&mut *operation, Err) {
                Ok(done) => Ok(Some(done)),
                Err(refusal) => {
                    let waiting = match refusal {
                        Refusal::NotReady(rank) => (Waiting::StartUp, rank),
                        Refusal::Full(rank) => (full, rank),
                        Refusal::Locked(rank) => (Waiting::Lock, rank),
                        Refusal::Busy(rank) => (Waiting::Answer, rank),
                        other => return Err(other.into()),
                    };
                    // While an answer is in flight, the last one tells more.
                    if last.get().is_none() || waiting.0 != Waiting::Answer {
                        last.set(Some(waiting));
                    }
                    Ok(None)
                }
            },
            || {
                let (waiting, rank) = last.get().unwrap_or((Waiting::Answer, self.rank()));
                Timeout {
                    waiting,
                    missing: Missing::one(rank),
                }
            },
        )
    }

    /// True if the time of the scopes that this rank is in is over. Where they have budgets that
    /// have not begun, these begin now.
    #[inline(always)]
    pub(crate) fn is_late(&self) -> bool {
        self.limit.get().is_set() && self.look_at_clock()
    }

    /// [`is_late`](Self::is_late), which reads the clock in any case.
    #[inline(never)]
    pub(crate) fn look_at_clock(&self) -> bool {
        let now = self.link().now();
        let limit = self.limit.get().begin(now);
        self.limit.set(limit);
        limit.has_passed(now)
    }

    /// Why a wait for `missing` cannot end: a rank that is lost, or has left. A rank that
    /// has left an earlier world may join this one: while it starts, no such rank counts.
    fn gone(&self, missing: &dyn Fn() -> Timeout, waits: bool) -> Option<(Rank, Error)> {
        match self.link().gone(None)? {
            Gone::Revoked => Some((self.rank(), Error::Revoked)),
            _ if self.surviving.get() => None,
            Gone::Lost(rank) => Some((rank, Error::PeerLost(rank))),
            Gone::Left if self.started.get() => {
                let rank = self.left(missing(), waits)?;
                Some((rank, Error::PeerLeft(rank)))
            }
            Gone::Left => None,
        }
    }

    /// Why a wait for `late` cannot end: a rank has left. A wait for a notification of any rank
    /// cannot end once all others have left, if this rank `waits`.
    #[inline(never)]
    fn left(&self, late: Timeout, waits: bool) -> Option<Rank> {
        let Timeout { waiting, missing } = late;
        let has_left = |rank| self.link().gone(Some(rank)) == Some(Gone::Left);
        let others = || {
            (0..self.size())
                .map(Rank::new)
                .filter(|rank| *rank != self.rank())
        };
        match waiting {
            // Others have what is waited for, or pass it on.
            Waiting::StartUp | Waiting::Lock | Waiting::Unlock | Waiting::Queue => None,
            // A network answers for the memory of a rank that has left.
            Waiting::Answer if !L::DIRECT => None,
            // Any rank's would do.
            Waiting::Notification if missing.ranks().next().is_none() => {
                others().next().filter(|_| waits && others().all(has_left))
            }
            _ => missing.ended(has_left),
        }
    }
}

/// The account of a rank that waits: for which event, in which collective call, and where.
struct Waits<'w, 'a, L>(&'w World<'a, L>, &'w dyn Fn() -> Timeout);

impl<L> fmt::Display for Waits<'_, '_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(world, missing) = self;
        let late = missing();
        f.write_str("waits for ")?;
        late.tell(f)?;
        if let (Waiting::Collective, Some(call)) = (late.waiting, world.collectives.begun()) {
            write!(f, ", in {call}")?;
        }
        let oldest = world.queue.find(|_| true);
        if let (Waiting::Notification, Some(oldest)) = (late.waiting, oldest) {
            let other = unpack(world.queue.tag_bits(), oldest);
            let (rank, Tag(tag), window) = (other.source.get(), other.tag, other.window);
            write!(
                f,
                "; one by {rank} with tag {tag} has come that it does not match, in window {window}"
            )?;
        }
        match world.place.get().location() {
            Some(place) => write!(f, " (call at {place})"),
            None => Ok(()),
        }
    }
}

/// Tells the link what this rank waits for. A function of its own: what is in registers stays there
/// where nothing has to be waited for.
#[inline(never)]
fn say_waits<L: Link>(world: &World<'_, L>, missing: &dyn Fn() -> Timeout) {
    let waits = Waits(world, missing);
    world.link().step(Step::Waits(format_args!("{waits}")));
}

/// Step 2 of a wait.
#[inline(never)]
fn turns<L: Link, T>(
    world: &World<'_, L>,
    [takes, clock]: [bool; 2],
    mut poll: impl FnMut() -> Result<Option<T>, Error>,
    missing: &dyn Fn() -> Timeout,
) -> Result<T, Error> {
    let mut turn = Turn {
        takes,
        clock,
        gone: None,
    };
    let inside = world.begin_wait();
    let answer = loop {
        match poll() {
            Ok(None) => (),
            Ok(Some(answer)) => break Ok(answer),
            Err(error) => break Err(error),
        }
        if let Err(error) = turn.ends(world, missing) {
            break Err(error);
        }
    };
    world.end_wait(inside);
    answer
}

/// The part of a turn that comes after a poll that has found nothing.
struct Turn {
    /// It takes notifications.
    takes: bool,
    /// It reads the clock.
    clock: bool,
    /// The rank that was gone after the last poll, without which the wait cannot end.
    gone: Option<Rank>,
}

impl Turn {
    /// All but the poll. An error ends the wait.
    #[inline(never)]
    fn ends<L: Link>(
        &mut self,
        world: &World<'_, L>,
        missing: &dyn Fn() -> Timeout,
    ) -> Result<(), Error> {
        let take = || {
            point!(PROGRESS "G2 of `world`: a rank that waits takes what comes":
            "world.wait.progress", world.take_all(Wants::Other); else false)
        };
        if self.takes && take() {
            return Ok(());
        }
        if let Some((rank, error)) = world.gone(missing, true) {
            // Notifications that it sent before may have come since that poll.
            return match self.gone.replace(rank) {
                Some(before) if before == rank => Err(error),
                _ => Ok(()),
            };
        }
        let late = match core::mem::take(&mut self.clock) {
            true => world.look_at_clock(),
            false => world.is_late(),
        };
        if late {
            return Err(Error::Timeout(missing()));
        }
        say_waits(world, missing);
        world.link().relax();
        Ok(())
    }
}
