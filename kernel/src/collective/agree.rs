//! Agreement: whether all ranks offer the same.
//!
//! A rank keeps of all that it has heard the smallest and the largest offer, each with the first
//! rank that made it. Hearing the same offer twice, over different ways, changes neither; so
//! dissemination may combine on the way.

use core::cell::Cell;

use bytemuck::{Pod, Zeroable};
use flagpost_link::{Link, Rank};

use super::{Half, Rows, Step, alike::HEAD};
use crate::{Differs, Error, World, making::differs};

/// Bytes between two rounds' places in scratch memory.
const PLACE: usize = HEAD + size_of::<Heard>();

/// The offers that a rank has heard.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct Heard {
    /// The smallest offer above the first rank that made it.
    low: u64,
    /// The largest offer above the *complement* of the first rank that made it.
    high: u64,
    /// The first rank that could make no offer.
    failed: u32,
    unused: u32,
}

/// No rank.
const NOBODY: u32 = u32::MAX;

/// Bits of a rank.
const RANK: u32 = u16::BITS;

impl Heard {
    fn own(rank: Rank, offer: Option<u64>) -> Self {
        let rank = rank.get();
        match offer {
            Some(offer) => Self {
                low: offer.wrapping_shl(RANK) | u64::from(rank),
                high: offer.wrapping_shl(RANK) | u64::from(!rank),
                failed: NOBODY,
                unused: 0,
            },
            None => Self {
                low: u64::MAX,
                high: 0,
                failed: u32::from(rank),
                unused: 0,
            },
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
            failed: self.failed.min(other.failed),
            unused: 0,
        }
    }

    /// The rank to name to one that offered `own`: the first that failed, else one that differs.
    fn odd_one(self, own: Option<u64>) -> Option<(Rank, Differs)> {
        let (low, high) = (self.low.wrapping_shr(RANK), self.high.wrapping_shr(RANK));
        if self.failed != NOBODY {
            Some((Rank::new(self.failed as u16), Differs::Other))
        } else if low == high {
            None
        } else if own == Some(low) {
            Some((Rank::new(!(self.high as u16)), differs(low, high)))
        } else {
            let own = own.unwrap_or(high);
            Some((Rank::new(self.low as u16), differs(low, own)))
        }
    }
}

/// A rank's offer, and what it has heard so far.
#[derive(Debug)]
pub(crate) struct Agreement {
    own: Option<u64>,
    heard: Cell<Heard>,
    /// It has heard of all, and is in the barrier.
    complete: Cell<bool>,
}

impl Agreement {
    /// Of `rank`, which offers up to 48 bits, or has nothing to offer.
    pub(crate) fn new(rank: Rank, own: Option<u64>) -> Self {
        Self {
            own,
            heard: Cell::new(Heard::own(rank, own)),
            complete: Cell::new(false),
        }
    }

    /// All ranks' offers have been heard.
    pub(super) fn is_complete(&self) -> bool {
        self.complete.get()
    }
}

impl<L: Link> World<'_, L> {
    /// Tells all ranks this one's offer, or that it has none. Gives the rank that failed or offered
    /// something else, if any, and the thing that differs.
    ///
    /// # Errors
    /// [`Error::Timeout`]: call again, with the same agreement, to continue.
    pub(crate) fn agree(&self, agreement: &Agreement) -> Result<Option<(Rank, Differs)>, Error> {
        let heard = &agreement.heard;
        let place = |step: Step| PLACE.saturating_mul(step.round.into());
        let exchange = |step: Step, half: Half| {
            if half == Half::Send {
                self.reach(step)?;
                self.tell(step.to, place(step), bytemuck::bytes_of(&heard.get()))?;
                point!(ORDER "G3: what was heard comes before the signal for it":
                    "collective.agree.fence", self.wait().retry(|| self.link().fence())?);
            } else {
                let mut theirs = Heard::zeroed();
                self.heard(step.from, place(step), bytemuck::bytes_of_mut(&mut theirs))?;
                heard.set(heard.get().and(theirs));
            }
            Ok(())
        };
        if !agreement.is_complete() {
            self.collectives.gather.run(self, Rows::All, exchange)?;
        }
        point!(ONCE "a call that continues does not do these rounds again":
            "collective.agree.heard", agreement.complete.set(true));
        point!(WAIT "I2: scratch memory is written again after all have read":
            "collective.agree.barrier", self.order_and_arrive()?);
        Ok(agreement.heard.get().odd_one(agreement.own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_all(offers: &[Option<u64>]) -> Heard {
        let own = |(rank, offer): (u16, &Option<u64>)| Heard::own(Rank::new(rank), *offer);
        (0..).zip(offers).map(own).reduce(Heard::and).unwrap()
    }

    #[test]
    fn equal_offers_agree() {
        let heard = of_all(&[Some(7), Some(7), Some(7)]);
        assert_eq!(heard.odd_one(Some(7)), None);
        assert_eq!(heard.and(heard), heard);
    }

    #[test]
    fn everyone_is_told_of_another() {
        let named = |rank| Some((Rank::new(rank), Differs::Other));
        let heard = of_all(&[Some(9), Some(4), Some(9), Some(4)]);
        assert_eq!(heard.odd_one(Some(9)), named(1));
        assert_eq!(heard.odd_one(Some(4)), named(0));
        let heard = of_all(&[Some(9), Some(4), Some(5)]);
        assert_eq!(heard.odd_one(Some(5)), named(1));
    }

    #[test]
    fn the_first_that_failed_is_named() {
        let heard = of_all(&[Some(0), Some((1 << 48) - 1), None, None]);
        for own in [Some(0), None] {
            assert_eq!(heard.odd_one(own), Some((Rank::new(2), Differs::Other)));
        }
    }
}
