//! Taking from rings with [`bells`](mod@crate::bells).

use flagpost_hal::{Machine, Region};
use flagpost_link::{Rank, Wants};
use flagpost_loadstore::Atomics;

use crate::{
    LineMail,
    bells::{bit, first},
    peer::Peer,
};

impl<M: Machine, A: Atomics<M>, const PEERS: usize> LineMail<M, A, PEERS> {
    /// Takes the next entry of a ring that has one, as its bell says, or of the one that is wanted.
    /// Rings take turns; and lines of bells do, if nobody's is wanted.
    pub(crate) fn take_rung(&self, rings: Region, wants: Wants) -> Option<u32> {
        if let Wants::Of(source) = wants
            && !self.bells.have_turn()
        {
            let wanted = self.take_from(rings, source);
            // Those that were heard before cost no look at the others.
            return wanted.or_else(|| self.take_heard(rings));
        }
        if let Some(immediate) = self.take_heard(rings) {
            return Some(immediate);
        }
        self.bells.listen(&self.base, wants == Wants::Other);
        self.take_heard(rings)
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
        self.bells.keep(source, inbox.is_open());
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
            if self.bells.is_ahead(source, seen) || inbox.is_open() {
                self.read_ring(rings, source.get().into(), inbox);
                self.bells.keep(source, inbox.is_open());
            }
        }
    }
}
