//! The wait of a call whose budget ran out: for which event, and from which ranks. A wait knows
//! some ranks by name, or only how many are missing. The first few are listed in a value of fixed
//! size, since there is no heap. The same account says when a wait cannot end: a rank that it needs
//! has left.

use core::fmt;

use flagpost_link::Rank;

/// The wait of a call whose budget ran out: for which event, and from which ranks, as far as this
/// rank can know.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Timeout {
    /// The event that it waited for.
    pub waiting: Waiting,
    /// The ranks that have not done it.
    pub missing: Missing,
}

/// Kinds of waiting.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Waiting {
    /// For a peer to start up.
    StartUp,
    /// For a peer to enter the same collective call; or for a rank that this peer waits for, which
    /// nobody else knows.
    Collective,
    /// For a target to post.
    Post,
    /// For origins to complete.
    Completion,
    /// For the test-and-set register that the named rank owns; somebody holds it.
    Lock,
    /// For room in the named rank's ring of notifications; it makes no progress.
    RingSpace,
    /// For a free entry in the named rank's matching list; it holds as many posts as it has
    /// entries.
    ListSpace,
    /// For notifications that match a request.
    Notification,
    /// For the lock of the named target's piece, which others share; if none is named, for the
    /// exclusive locks of [`Missing::count`] ranks. Such locks do not record which ranks have them.
    Unlock,
    /// For the named rank, which has locked the piece exclusively.
    Holder,
    /// For the named rank in the queue of [`lock_queued`](crate::Window::lock_queued). A lock
    /// stands behind it: it has the lock, or waits for it too, or has given up after one that does.
    /// An unlock waits for the next one to say that it is next: that is the named rank, or, where
    /// several came together, one of those before it.
    Queue,
    /// For an answer from the named rank's memory, or for earlier operations to be placed there.
    Answer,
}

/// Ranks that a call waited for.
///
/// `count` of them are missing. The first few candidates are listed: exactly the missing ones where
/// the protocol can tell, else (a completion counter does not record who) ranks among which they
/// are.
#[derive(Copy, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Numbers of ranks, then [`NOBODY`].
    ranks: [u16; Missing::LISTED],
    count: u32,
    /// One of them alone may bring it.
    any: bool,
    /// The handle with which the call would continue was dropped.
    dropped: bool,
}

/// The number of no rank: worlds have up to 65,535.
const NOBODY: u16 = u16::MAX;

impl Missing {
    /// How many ranks are listed at most.
    pub const LISTED: usize = 8;

    pub(crate) fn one(rank: Rank) -> Self {
        Self::among(core::iter::once(rank), 1)
    }

    /// `count` of `candidates`.
    pub(crate) fn among(candidates: impl Iterator<Item = Rank>, count: u32) -> Self {
        let mut ranks = [NOBODY; Self::LISTED];
        for (place, rank) in ranks.iter_mut().zip(candidates) {
            *place = rank.get();
        }
        Self {
            ranks,
            count,
            any: false,
            dropped: false,
        }
    }

    /// The same, for a call that waits for one of them only, if `any`.
    pub(crate) fn of_any(self, any: bool) -> Self {
        Self { any, ..self }
    }

    /// A rank that has left, without which none of this can come.
    pub(crate) fn ended(&self, has_left: impl Fn(Rank) -> bool) -> Option<Rank> {
        let first = self.ranks().find(|rank| has_left(*rank))?;
        let listed = self.ranks().count();
        let all_left = listed < Self::LISTED && self.ranks().all(has_left);
        // No fewer are missing than are listed: each of those is.
        let each_is_missing = !self.any && listed as u32 <= self.count;
        (each_is_missing || all_left).then_some(first)
    }

    /// How many are missing.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The first [`Missing::LISTED`] candidates. None where any rank would do (requests from any
    /// source, counters, signals, events), and none where ranks are counted only
    /// ([`lock_all`](crate::Window::lock_all)).
    pub fn ranks(&self) -> impl Iterator<Item = Rank> + '_ {
        let listed = self.ranks.iter().filter(|number| **number != NOBODY);
        listed.copied().map(Rank::new)
    }
}

impl Missing {
    /// The numbers of the ranks that are listed.
    fn numbers(&self) -> &[u16] {
        let listed = self.ranks().count();
        self.ranks.get(..listed).unwrap_or_default()
    }
}

impl fmt::Debug for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Missing")
            .field("ranks", &self.numbers())
            .field("count", &self.count)
            .field("any", &self.any)
            .finish()
    }
}

#[cfg(feature = "defmt")]
impl defmt::Format for Missing {
    fn format(&self, f: defmt::Formatter<'_>) {
        let (ranks, count, any) = (self.numbers(), self.count, self.any);
        defmt::write!(
            f,
            "Missing {{ ranks: {}, count: {}, any: {} }}",
            ranks,
            count,
            any
        );
    }
}

impl fmt::Display for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("timed out waiting for ")?;
        self.tell(f)?;
        if self.missing.dropped {
            f.write_str(
                "; the handle of the call is gone: to continue, take it (`posting` for `post`, and \
                 so on), and call wait_within",
            )?;
        }
        Ok(())
    }
}

impl Timeout {
    /// The same wait, of a call whose handle was dropped.
    pub(super) const fn dropped(mut self) -> Self {
        self.missing.dropped = true;
        self
    }

    /// Says what is waited for.
    pub(crate) fn tell(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.waiting {
            Waiting::StartUp => "start-up by",
            Waiting::Collective => "a collective call by",
            Waiting::Post => "a post by",
            Waiting::Completion => "completion by",
            Waiting::Lock => "the lock owned by",
            Waiting::RingSpace => "room in the ring owned by",
            Waiting::ListSpace => "room in the matching list owned by",
            Waiting::Notification => "a notification by",
            Waiting::Unlock => "an unlock of the piece owned by",
            Waiting::Holder => "the exclusive lock that is held by",
            Waiting::Queue => "a turn in the queue before or behind, taken by",
            Waiting::Answer => "an answer by",
        };
        let (unlock, count) = (self.waiting == Waiting::Unlock, self.missing.count());
        let named = self.missing.ranks().next().is_some();
        match (unlock, named) {
            (true, false) => write!(f, "the exclusive locks of {count} ranks")?,
            (false, false) => write!(f, "{what} any rank")?,
            (_, true) => f.write_str(what)?,
        }
        for rank in self.missing.ranks() {
            write!(f, " {rank}")?;
        }
        match (unlock, named) {
            (true, _) => f.write_str(" (which ranks have locked is not recorded)"),
            (false, false) => write!(f, " ({count} missing; nothing says from which)"),
            // A rank is told by few others, and hears of the rest through them.
            (false, true) if self.waiting == Waiting::Collective => {
                f.write_str(", or by a rank that it waits for")
            }
            (false, true) if self.waiting == Waiting::Holder => Ok(()),
            (false, true) => write!(f, " ({count} missing)"),
        }
    }
}
