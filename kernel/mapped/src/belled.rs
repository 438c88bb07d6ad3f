//! Taking from rings with [`bells`](mod@crate::bells).

use flagpost_hal::{Machine, Region};
use flagpost_link::Rank;
use flagpost_loadstore::Atomics;

use crate::{
    LineMail,
    bells::{bit, first},
    peer::Peer,
};

impl<M: Machine, A: Atomics<M>, const PEERS: usize> LineMail<M, A, PEERS> {
    /// Takes the next entry of a ring that has one, as its bell says. Rings take turns; and lines
    /// of bells do, if this is done `aside`.
    pub(crate) fn take_rung(&self, rings: Region, aside: bool) -> Option<u32> {
        // Those that were heard before come first: that costs no look at the others.
        if let Some(immediate) = self.take_heard(rings) {
            return Some(immediate);
        }
        let early = !aside && self.bells.is_early();
        if early && let Some(immediate) = self.take_early(rings) {
            return Some(immediate);
        }
        self.bells.listen(&self.base, aside);
        let heard = self.take_heard(rings);
        if heard.is_none() && !aside && !early {
            return self.take_early(rings);
        }
        heard
    }

    /// Takes the next entry of the ring that was taken from last. Its producer may still be
    /// sending, and stores each entry before its bell.
    fn take_early(&self, rings: Region) -> Option<u32> {
        if !self.bells.is_warm() {
            return None;
        }
        let immediate = self.take_from(rings, self.sender.get())?;
        self.bells.was_early();
        Some(immediate)
    }

    /// Takes the next entry of a ring whose bell was heard.
    fn take_heard(&self, rings: Region) -> Option<u32> {
        let mut rung = self.bells.rung(self.base.size());
        while let Some(source) = first(rung, self.turn.get()) {
            if let Some(immediate) = self.take_from(rings, source) {
                return Some(immediate);
            }
            rung &= !bit(source);
        }
        None
    }

    /// Takes the next entry of `source`, if there is one.
    fn take_from(&self, rings: Region, source: Rank) -> Option<u32> {
        let Peer { out, inbox } = self.peers.get(source.index())?;
        let before = inbox.next();
        let immediate = self.take_lines(rings, source, inbox);
        // Parts may have been taken, and no notification.
        if inbox.next() != before {
            self.bells.answer(source, inbox.next());
        }
        if immediate.is_some() {
            self.took(source, out, source.next(self.base.size()));
        }
        immediate
    }

    /// Reads all entries whose bells have rung, taken or not.
    pub(crate) fn read_rung(&self, rings: Region) {
        self.bells.listen(&self.base, false);
        let ranks = (0..self.base.size()).map(Rank::new);
        for (source, Peer { inbox, .. }) in ranks.zip(&self.peers) {
            let (seen, _) = inbox.reading();
            if self.bells.is_ahead(source, seen) {
                self.read_ring(rings, source.get().into(), inbox);
            }
        }
    }
}
