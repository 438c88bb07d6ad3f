//! Data that this rank has sent, that a peer keeps, and has answered.
//!
//! A peer may answer before it has placed the data it answers ([`deferred`](crate::deferred)). Then
//! the producer of these data has *heard* of them: its program knows that they have come. A rank
//! that it tells next may look for them in the peer's memory. So before it tells others, and before
//! it accesses memory of others itself, it waits until the peer says that they are placed. That
//! takes no call of the peer where the data were short: the peer places these just after its
//! answer. Else this rank asks, and the peer places them in its next call that waits, tests or
//! attends.
//!
//! # Invariant
//! I1. Only two ranks can know of data that are kept: their owner, and their producer once the
//! owner has answered it.

use flagpost_hal::{CoreId, Machine};
use flagpost_link::{Rank, Refusal};
use flagpost_loadstore::{Atomics, Mail as _};

use crate::{
    LineMail,
    deferred::{Kept, bit},
};

impl<M: Machine, A: Atomics<M>, const PEERS: usize> LineMail<M, A, PEERS> {
    /// Before a notification for `to`, while data are kept, or heard of. True if it may leave
    /// before they are placed: an answer to the one rank whose data these are.
    #[inline]
    pub(crate) fn may_send(&self, to: Rank) -> Result<bool, Refusal> {
        if self.deferred.rings() == bit(to.get().into()) {
            point!(WAIT "D2: what this rank has heard of is in memory":
                "mapped.heard.answer", self.await_heard(Some(to))?);
            return Ok(true);
        }
        point!(PLACE "D2: the target may read what this rank has taken":
            "mapped.mail.send.told", self.place_before_telling(Some(to))?);
        Ok(false)
    }

    /// Before this rank tells `to` something, or, if nobody is named, changes a word that others
    /// may wait for.
    #[inline]
    pub(crate) fn place_before_telling(&self, to: Option<Rank>) -> Result<(), Refusal> {
        if !self.deferred.is_busy() {
            return Ok(());
        }
        point!(PLACE "D2: the other rank may read what this one has taken":
            "mapped.deferred.tell", self.place_kept(Kept::All));
        point!(WAIT "D2: what this rank has heard of is in memory":
            "mapped.heard.tell", self.await_heard(to)?);
        Ok(())
    }

    /// Before this rank accesses `owner`'s memory directly.
    #[inline]
    pub(crate) fn place_before_access(&self, owner: Rank) -> Result<(), Refusal> {
        if !self.deferred.is_busy() {
            return Ok(());
        }
        point!(PLACE "D1; and no producer waits for a rank that only gets":
            "mapped.deferred.own", self.place_kept(Kept::All));
        if owner != self.base.rank() {
            point!(WAIT "what this rank has heard of is in the owner's memory":
                "mapped.heard.access", self.await_heard(None)?);
        }
        Ok(())
    }

    /// D2, of what this rank has heard of: unless `to` is who told it.
    #[inline(never)]
    fn await_heard(&self, to: Option<Rank>) -> Result<(), Refusal> {
        if !self.deferred.has_heard(to) {
            return Ok(());
        }
        let mut left = None;
        for (number, _) in (0..)
            .zip(&self.peers)
            .filter(|(_, peer)| peer.out.has_heard())
        {
            let rank = Rank::new(number);
            if Some(rank) == to {
                left = to;
            } else if let Err(why) = self.placed(Some(rank))
                && !self.base.machine.is_lost(CoreId::new(number))
            {
                return Err(why);
            }
        }
        self.deferred.has_waited(left);
        Ok(())
    }
}
