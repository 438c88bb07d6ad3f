//! Things that all ranks make together, and give back together: windows and events. Each rank
//! prepares its part, and hears whether all have prepared the same. Only then may any peer access
//! it. If some rank could not, all give their parts back. At the end parts are given back once all
//! ranks have called for it.

#![allow(
    clippy::result_large_err,
    reason = "what is made goes back to its user, without a heap"
)]

use flagpost_link::{Link, Rank};

use crate::{
    Budget, Differs, Error, Unfinished, World,
    collective::{Agreement, Call},
};

/// The result of a [`Making`] with a budget: the thing that was made, or the reason that there is
/// none.
///
/// With a [`Making`] ([`Error::Timeout`], [`Error::PeerLost`], [`Error::CollectiveUnfinished`]) it
/// continues where it stopped. Without one it has failed on all ranks together, and everything is
/// as before.
pub type Made<'w, L, M> = Result<M, Unfinished<Option<Making<'w, L, M>>>>;

/// A window, or events, that not all ranks have called for yet.
///
/// Other collective calls of the world come after it, and are
/// [refused](Error::CollectiveUnfinished) from the first wait until then. After that wait it cannot
/// be given up, since other ranks may have begun to use the thing: dropped, or with a rank that is
/// [lost](Error::PeerLost), it keeps all that it has taken, and this world refuses all other
/// collective calls for ever. Dropped before, it gives back what it has taken.
#[derive(Debug)]
#[must_use = "it is made when its handle is waited for"]
pub struct Making<'w, L, M> {
    world: &'w World<'w, L>,
    /// Which one it is.
    call: Call,
    /// This rank's part, or why there is none.
    part: Result<M, Error>,
    /// Other ranks may have heard of it.
    begun: bool,
    ways: Ways<M>,
    /// It is clear.
    cleared: bool,
    hearing: Hearing<M>,
}

/// The steps that make a part, and give it back.
#[derive(Debug)]
pub(crate) struct Ways<M> {
    /// Clears it, past the cache: again, if a budget ran out.
    pub(crate) clear: fn(&M) -> Result<(), Error>,
    /// Takes it back.
    pub(crate) discard: fn(&M),
}

/// The messages of ranks to each other, and those that this one has heard.
#[derive(Debug)]
enum Hearing<M> {
    /// Have all the same? This much was heard.
    Agreement(Agreement),
    /// The same; and each a row of its own.
    Rows {
        mine: Row,
        /// Keeps another rank's own.
        note: fn(&M, Rank, &[u32]),
        /// The first rank that has something else, or nothing.
        differs: Option<(Rank, Differs)>,
    },
}

/// Words that must be the same on all ranks, then each rank's own.
pub(crate) type Row = [u32; 8];

/// How many words of a row are to be the same.
pub(crate) const SAME: usize = 2;

/// 48 bits that must be the same on all ranks: of the size of an element and of a length 8 and 16,
/// and 24 of a [`digest`](crate::window::digest) of all.
pub(crate) fn offer(element: usize, len: usize, digest: u64) -> u64 {
    let (element, len) = (element.min(u8::MAX.into()) as u64, len as u64);
    let len = len ^ len.wrapping_shr(u16::BITS) ^ len.wrapping_shr(u32::BITS);
    let len = len & u64::from(u16::MAX);
    element.wrapping_shl(40) | len.wrapping_shl(24) | digest & 0xff_ffff
}

/// The first thing that two offers have different.
pub(crate) const fn differs(one: u64, other: u64) -> Differs {
    match (one ^ other).leading_zeros() {
        16..24 => Differs::Element,
        24..40 => Differs::Length,
        _ => Differs::Other,
    }
}

/// The same words of a row, of an [`offer`]: never both 0.
pub(crate) const fn same_of(offer: u64) -> [u32; SAME] {
    halves(offer | 1_u64.wrapping_shl(48))
}

/// The low and the high half.
pub(crate) const fn halves(number: u64) -> [u32; 2] {
    [number as u32, number.wrapping_shr(u32::BITS) as u32]
}

/// The inverse of [`halves`].
const fn whole(low: u32, high: u32) -> u64 {
    (high as u64).wrapping_shl(u32::BITS) | low as u64
}

impl<'w, L: Link, M> Making<'w, L, M> {
    /// Makes what `prepare` prepares a part of; `offer`, 48 bits, tells what must be the same on
    /// all ranks.
    pub(crate) fn same(
        world: &'w World<'w, L>,
        prepare: impl FnOnce() -> Result<M, Error>,
        offer: impl FnOnce(&M) -> u64,
        ways: Ways<M>,
    ) -> Result<Self, Error> {
        Self::begin(world, prepare, ways, |part| {
            let offer = part.map(offer);
            Hearing::Agreement(Agreement::new(world.rank(), offer))
        })
    }

    /// Makes what `prepare` prepares a part of; `row` tells what must be the same (not all 0), and
    /// what is this rank's own, and `note` keeps what others have.
    pub(crate) fn rows(
        world: &'w World<'w, L>,
        prepare: impl FnOnce() -> Result<M, Error>,
        row: impl FnOnce(&M) -> Row,
        note: fn(&M, Rank, &[u32]),
        ways: Ways<M>,
    ) -> Result<Self, Error> {
        Self::begin(world, prepare, ways, |part| Hearing::Rows {
            mine: part.map_or(Row::default(), row),
            note,
            differs: None,
        })
    }

    /// Prepares this rank's part, unless another call is in flight: then nothing is taken.
    fn begin(
        world: &'w World<'w, L>,
        prepare: impl FnOnce() -> Result<M, Error>,
        ways: Ways<M>,
        hearing: impl FnOnce(Option<&M>) -> Hearing<M>,
    ) -> Result<Self, Error> {
        world.check_no_collective()?;
        let part = prepare();
        let hearing = hearing(part.as_ref().ok());
        Ok(Self {
            world,
            call: world.collectives.make(),
            part,
            begun: false,
            ways,
            cleared: false,
            hearing,
        })
    }

    /// Waits for all ranks. Earlier steps are not repeated.
    ///
    /// # Errors
    /// Those of the call for what is made.
    #[track_caller]
    pub fn wait(mut self) -> Result<M, Error> {
        called!(self.world);
        self.go_on().map_err(Error::dropped)
    }

    /// [`wait`](Self::wait) for one that stays where it was made: it is large.
    #[track_caller]
    pub(crate) fn made(making: &mut Result<Self, Error>) -> Result<M, Error> {
        match making {
            Ok(making) => {
                called!(making.world);
                making.go_on().map_err(Error::dropped)
            }
            Err(error) => Err(*error),
        }
    }

    fn go_on(&mut self) -> Result<M, Error> {
        let heard = self.hear()?;
        self.end(heard)
    }

    /// [`wait`](Self::wait), as long as `budget` says.
    ///
    /// # Errors
    /// Those of the call for what is made; [`Error::Timeout`] naming a rank that has not come, or
    /// did not let this one tell it. That, and [`Error::PeerLost`], with the handle again.
    #[track_caller]
    pub fn wait_within(mut self, budget: Budget) -> Made<'w, L, M> {
        called!(self.world);
        let world = self.world;
        match world.within(budget, || self.hear()) {
            Ok(heard) => self.end(heard).map_err(Unfinished::with(None)),
            Err(error) => Err(Unfinished::with(Some(self))(error)),
        }
    }

    /// The thing, if all ranks have come: [`wait_within`](Self::wait_within) with a budget of 0.
    ///
    /// # Errors
    /// Those of [`wait_within`](Self::wait_within).
    #[track_caller]
    pub fn test(self) -> Made<'w, L, M> {
        self.wait_within(Budget::ZERO)
    }

    /// All ranks have come; `differs` is the first that has something else, or nothing.
    fn end(&mut self, differs: Option<(Rank, Differs)>) -> Result<M, Error> {
        if let (Ok(part), Some((rank, differs))) = (&self.part, differs) {
            (self.ways.discard)(part);
            self.part = Err(Error::Asymmetric { rank, differs });
        }
        core::mem::replace(&mut self.part, Err(Error::CollectiveUnfinished))
    }

    #[inline(never)]
    fn hear(&mut self) -> Result<Option<(Rank, Differs)>, Error> {
        let (world, call) = (self.world, self.call);
        world.check_collective(call)?;
        self.begun = true;
        world.attempt(call, || self.attempt())
    }

    /// Clears this rank's part, and waits for all ranks. The first that has something else, or
    /// nothing.
    fn attempt(&mut self) -> Result<Option<(Rank, Differs)>, Error> {
        if let (Ok(part), false) = (&self.part, self.cleared) {
            (self.ways.clear)(part)?;
        }
        point!(ONCE "others may use it once they have heard of it":
            "making.cleared", self.cleared = true);
        match &mut self.hearing {
            Hearing::Agreement(agreement) => {
                point!(WAIT "no peer accesses it before all have prepared theirs":
                    "making.agree", self.world.agree(agreement); else Ok(None))
            }
            Hearing::Rows {
                mine,
                note,
                differs,
            } => {
                let (part, mine) = (&self.part, *mine);
                self.world.tell_all(mine, |rank, theirs| {
                    let ((same, own), (mine, _)) = (theirs.split_at(SAME), mine.split_at(SAME));
                    if let ([low, high], [my_low, my_high]) = (same, mine)
                        && same != mine
                    {
                        let (one, other) = (whole(*low, *high), whole(*my_low, *my_high));
                        *differs = differs.or(Some((rank, self::differs(one, other))));
                    }
                    if let Ok(part) = part {
                        note(part, rank, own);
                    }
                })?;
                Ok(*differs)
            }
        }
    }
}

impl<L, M> Drop for Making<'_, L, M> {
    fn drop(&mut self) {
        if let (Ok(part), false) = (&self.part, self.begun) {
            (self.ways.discard)(part);
        }
    }
}

/// A window, or events, that is being given back: not all ranks have called for that yet.
///
/// Dropping it keeps taken what it has.
#[derive(Debug)]
#[must_use = "it is given back when its handle is waited for"]
pub struct Freeing<'w, L, M> {
    pub(crate) world: &'w World<'w, L>,
    pub(crate) made: M,
    /// Waits until no rank uses it any more. Earlier steps are not repeated.
    pub(crate) leave: fn(&M) -> Result<(), Error>,
    /// Gives back what it took.
    pub(crate) discard: fn(&M),
}

impl<L: Link, M> Freeing<'_, L, M> {
    /// The thing that was to be given back, to use it further: to match its notifications, say.
    /// Where other ranks have given theirs back, it has no epochs any more.
    pub fn keep(self) -> M {
        self.made
    }

    fn free(&mut self) -> Result<(), Error> {
        (self.leave)(&self.made)?;
        (self.discard)(&self.made);
        Ok(())
    }
}

ends! {
    impl['w, L: Link, M] Freeing<'w, L, M>,
    in world, by free;
    /// Waits for all ranks, and gives it back.
    ///
    /// # Errors
    /// Those of the call that gives it back. It is dropped then.
    wait -> ();
    /// # Errors
    /// Those of the call that gives it back, also for reasons that the program can mend;
    /// [`Error::Timeout`] naming a rank that has not come. All with the handle again.
    wait_within;
    /// Gives it back if all ranks have called for that:
    test;
}
