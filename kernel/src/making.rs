//! What all ranks make together: windows and events.
//!
//! Each rank prepares its part, and hears whether all have prepared the same. Only then may any peer access it; and if some rank could
//! not, all take back what they have prepared.

#![allow(
    clippy::result_large_err,
    reason = "what is made goes back to its user, without a heap"
)]

use flagpost_link::{Link, Rank, point};

use crate::{Error, Unfinished, World, collective::Agreement};

/// What a call gives that makes something together with all other ranks: it, or why there is none.
///
/// With a [`Making`] ([`Error::Timeout`], [`Error::PeerLost`]) it goes on where it stopped. Without one it has failed on all ranks together, and
/// everything is as before.
pub type Made<'w, L, M> = Result<M, Unfinished<Option<Making<'w, L, M>>>>;

/// A window, or events, that not all ranks have come to make yet.
///
/// Other collective calls of the world come behind it: [go on](Self::go_on) first. It cannot be given up, since other ranks may have begun
/// to use what is made: dropped, or with a rank that is [lost](Error::PeerLost), it keeps all that it has taken, and no collective call
/// of this world comes right any more.
#[derive(Debug)]
#[must_use = "dropped, it can never be made"]
pub struct Making<'w, L, M> {
    world: &'w World<'w, L>,
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
    /// Of a part of which `offer`, 48 bits, tells what must be the same on all ranks.
    pub(crate) fn same(
        world: &'w World<'w, L>,
        part: Result<M, Error>,
        offer: impl FnOnce(&M) -> u64,
        ways: Ways<M>,
    ) -> Self {
        let offer = part.as_ref().ok().map(offer);
        Self {
            world,
            part,
            ways,
            cleared: false,
            hearing: Hearing::Agreement(Agreement::new(world.rank(), offer)),
        }
    }

    /// Of a part of which `row` tells what must be the same (not all 0), and what is this rank's own; `note` keeps what others have.
    pub(crate) fn rows(
        world: &'w World<'w, L>,
        part: Result<M, Error>,
        row: impl FnOnce(&M) -> Row,
        note: fn(&M, Rank, &[u32]),
        ways: Ways<M>,
    ) -> Self {
        let mine = part.as_ref().map_or(Row::default(), row);
        let differs = None;
        Self {
            world,
            part,
            ways,
            cleared: false,
            hearing: Hearing::Rows {
                mine,
                note,
                differs,
            },
        }
    }

    /// Goes on where the last attempt stopped.
    ///
    /// # Errors
    /// As the call that began it.
    pub fn go_on(mut self) -> Made<'w, L, M> {
        let differs = match self.hear() {
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

    /// Clears this rank's part, and waits for all ranks. The first that has something else, or nothing.
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
                self.world.allgather_with(mine, |rank, theirs| {
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
