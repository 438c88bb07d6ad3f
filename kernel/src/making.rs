//! What all ranks make together: windows and events.
//!
//! Each rank prepares its part, and hears whether all have prepared the same. Only then may any
//! peer access it; and if some rank could not, all take back what they have prepared.

#![allow(
    clippy::result_large_err,
    reason = "what is made goes back to its user, without a heap"
)]

use flagpost_link::{Link, Rank, point};

use crate::{
    Budget, Error, Unfinished, World,
    collective::{Agreement, Call},
    rma::atomic::nothing,
};

/// What a call with a budget gives that makes something together with all other ranks: it, or why
/// there is none.
///
/// With a [`Making`] ([`Error::Timeout`], [`Error::PeerLost`]) it continues where it stopped.
/// Without one it has failed on all ranks together, or has not begun on this one, since another
/// collective call is [unfinished](Error::CollectiveUnfinished); and everything is as before.
pub type Made<'w, L, M> = Result<M, Unfinished<Option<Making<'w, L, M>>>>;

/// A window, or events, that not all ranks have come to make yet.
///
/// Other collective calls of the world come behind it, and are
/// [refused](Error::CollectiveUnfinished) until then: [go on](Self::go_on) first. It cannot be
/// given up, since other ranks may have begun to use what is made: dropped, or with a rank that is
/// [lost](Error::PeerLost), it keeps all that it has taken, and this world refuses all other
/// collective calls for ever.
#[derive(Debug)]
#[must_use = "dropped, it can never be made"]
pub struct Making<'w, L, M> {
    world: &'w World<'w, L>,
    /// Which one it is.
    call: Call,
    /// This rank's part, or why there is none.
    part: Result<M, Error>,
    ways: Ways<M>,
    /// It is clear.
    cleared: bool,
    hearing: Hearing<M>,
}

/// What is done to a part.
#[derive(Debug)]
pub(crate) struct Ways<M> {
    /// Clears it, past the cache: again, if a budget ran out.
    pub(crate) clear: fn(&M) -> Result<(), Error>,
    /// Takes it back.
    pub(crate) discard: fn(&M),
}

/// What ranks tell each other, and what this one has heard.
#[derive(Debug)]
enum Hearing<M> {
    /// Whether they have the same.
    Agreement(Agreement),
    /// The same; and each a row of its own.
    Rows {
        mine: Row,
        /// Keeps another rank's own.
        note: fn(&M, Rank, &[u32]),
        /// The first rank that has something else, or nothing.
        differs: Option<Rank>,
    },
}

/// What is to be the same, then what is each rank's own.
pub(crate) type Row = [u32; 8];

/// How many words of a row are to be the same.
pub(crate) const SAME: usize = 4;

impl<'w, L: Link, M> Making<'w, L, M> {
    /// Makes what `prepare` prepares a part of; `offer`, 48 bits, tells what must be the same on
    /// all ranks.
    #[track_caller]
    pub(crate) fn same(
        world: &'w World<'w, L>,
        prepare: impl FnOnce() -> Result<M, Error>,
        offer: impl FnOnce(&M) -> u64,
        ways: Ways<M>,
        budget: Budget,
    ) -> Made<'w, L, M> {
        Self::begin(world, prepare, ways, budget, |part| {
            let offer = part.map(offer);
            Hearing::Agreement(Agreement::new(world.rank(), offer))
        })
    }

    /// Makes what `prepare` prepares a part of; `row` tells what must be the same (not all 0), and
    /// what is this rank's own, and `note` keeps what others have.
    #[track_caller]
    pub(crate) fn rows(
        world: &'w World<'w, L>,
        prepare: impl FnOnce() -> Result<M, Error>,
        row: impl FnOnce(&M) -> Row,
        note: fn(&M, Rank, &[u32]),
        ways: Ways<M>,
        budget: Budget,
    ) -> Made<'w, L, M> {
        Self::begin(world, prepare, ways, budget, |part| Hearing::Rows {
            mine: part.map_or(Row::default(), row),
            note,
            differs: None,
        })
    }

    /// Prepares this rank's part, and tells others, unless another call is under way: then nothing
    /// is taken.
    #[track_caller]
    fn begin(
        world: &'w World<'w, L>,
        prepare: impl FnOnce() -> Result<M, Error>,
        ways: Ways<M>,
        budget: Budget,
        hearing: impl FnOnce(Option<&M>) -> Hearing<M>,
    ) -> Made<'w, L, M> {
        world.check_no_collective().map_err(nothing)?;
        let part = prepare();
        let hearing = hearing(part.as_ref().ok());
        let making = Self {
            world,
            call: world.collectives.make(),
            part,
            ways,
            cleared: false,
            hearing,
        };
        making.go_on_within(budget)
    }

    /// Continues where the last attempt stopped, and waits for all ranks.
    ///
    /// # Errors
    /// As the call that began it, but for [`Error::Timeout`].
    #[track_caller]
    pub fn go_on(self) -> Result<M, Error> {
        called!(self.world);
        self.go_on_within(Budget::UNLIMITED)
            .map_err(Unfinished::last)
    }

    /// [`go_on`](Self::go_on), as long as `budget` says.
    ///
    /// # Errors
    /// As the call that began it.
    #[track_caller]
    pub fn go_on_within(mut self, budget: Budget) -> Made<'w, L, M> {
        called!(self.world);
        let (world, call) = (self.world, self.call);
        let heard = world.within(budget, || world.attempt(call, || self.hear()));
        let differs = match heard {
            Ok(differs) => differs,
            Err(error) => {
                return Err(Unfinished {
                    handle: Some(self),
                    error,
                });
            }
        };
        let error = match (self.part, differs) {
            (Ok(made), None) => return Ok(made),
            (Ok(part), Some(rank)) => {
                (self.ways.discard)(&part);
                Error::Asymmetric(rank)
            }
            (Err(error), _) => error,
        };
        Err(Unfinished {
            handle: None,
            error,
        })
    }

    /// Clears this rank's part, and waits for all ranks. The first that has something else, or
    /// nothing.
    fn hear(&mut self) -> Result<Option<Rank>, Error> {
        if let (Ok(part), false) = (&self.part, self.cleared) {
            (self.ways.clear)(part)?;
        }
        // BUDGET: once others have heard of it, they may use it.
        point!("making.cleared", self.cleared = true);
        match &mut self.hearing {
            // ORDER: no peer accesses it before all have prepared theirs.
            Hearing::Agreement(agreement) => {
                point!("making.agree", self.world.agree(agreement); else Ok(None))
            }
            Hearing::Rows {
                mine,
                note,
                differs,
            } => {
                let (part, mine) = (&self.part, *mine);
                self.world.tell_all(mine, |rank, theirs| {
                    let ((same, own), (mine, _)) = (theirs.split_at(SAME), mine.split_at(SAME));
                    if same != mine {
                        *differs = differs.or(Some(rank));
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
