//! Operations: how they begin, and how they end. An operation is in flight from
//! [`begin`](Networked::begin) until an event tells its end. Answers are kept until the call that
//! began it asks for them.

use flagpost_hal::CoreId;
use flagpost_hal::fabric::{Event, Fabric, SendQueueFull, Work};
use flagpost_link::{Amo, Op, Rank, Refusal};

use crate::{
    Networked,
    answers::{Answer, Purpose},
    control::Said,
    link::{Peer, count},
};

impl<F: Fabric> Networked<F> {
    /// Posts `work`, whose end an event will tell. Its number.
    pub(crate) fn begin(&self, to: Rank, work: Work<'_>, purpose: Purpose) -> Result<u32, Refusal> {
        let peer = self.peer(to)?;
        let id = self.answers.next()?;
        self.looks.mark();
        self.post(to, peer, id, work)?;
        self.answers.begin(id, to, purpose);
        count(&peer.under_way, 1);
        Ok(id)
    }

    #[inline(always)]
    fn post(&self, to: Rank, peer: &Peer, id: u32, work: Work<'_>) -> Result<(), Refusal> {
        if peer.lost.get() {
            return Err(Refusal::PeerLost(to));
        }
        match self.fabric.post(id, CoreId::new(to.get()), work) {
            Ok(()) => Ok(()),
            Err(SendQueueFull) => Err(self.full(to)),
        }
    }

    /// The network has no room for an operation to `to`.
    #[cold]
    fn full(&self, to: Rank) -> Refusal {
        // ROOM: what is done takes it until its event is taken; who only begins again would wait
        // for ever.
        self.looks.mark();
        self.poll();
        Refusal::Busy(to)
    }

    /// Posts a put. Where the network orders puts, only a later
    /// [`begin_confirmed`](Self::begin_confirmed) tells of its end.
    #[inline(always)]
    pub(crate) fn begin_put(
        &self,
        to: Rank,
        peer: &Peer,
        at: usize,
        data: &[u8],
        immediate: Option<u32>,
    ) -> Result<(), Refusal> {
        self.begin_untold(to, peer, at, data, immediate)?;
        if self.fabric.orders_puts() {
            peer.unconfirmed.set(true);
        }
        Ok(())
    }

    /// Posts a put of which nobody asks whether it is in place. Only where puts are not ordered an
    /// event tells of it.
    #[inline(always)]
    fn begin_untold(
        &self,
        to: Rank,
        peer: &Peer,
        at: usize,
        data: &[u8],
        immediate: Option<u32>,
    ) -> Result<(), Refusal> {
        let confirmed = !self.fabric.orders_puts();
        let work = Work::Put {
            at,
            data,
            immediate,
            confirmed,
        };
        if confirmed {
            return self.begin(to, work, Purpose::Place).map(|_| ());
        }
        self.post(to, peer, 0, work)
    }

    /// Posts a put without data. It confirms all puts before it where the network orders them.
    pub(crate) fn begin_confirmed(&self, to: Rank, immediate: Option<u32>) -> Result<(), Refusal> {
        let work = Work::Put {
            at: 0,
            data: &[],
            immediate,
            confirmed: true,
        };
        self.begin(to, work, Purpose::Place)?;
        self.peer(to)?.unconfirmed.set(false);
        Ok(())
    }

    /// Has the puts to a peer confirmed, if nothing does yet.
    fn confirm(&self, to: Rank) -> Result<(), Refusal> {
        let peer = self.peer(to)?;
        if !peer.unconfirmed.get() {
            return Ok(());
        }
        if peer.lost.get() {
            peer.unconfirmed.set(false);
            return Ok(());
        }
        point!(CHECK "no event says that an unconfirmed put has arrived":
            "network.confirm", self.begin_confirmed(to, None)?; else peer.unconfirmed.set(false));
        Ok(())
    }

    /// True if the heap has room for another immediate.
    pub(crate) fn has_room(&self) -> bool {
        self.arrived.with(|arrived| arrived.try_reserve(1).is_ok())
    }

    /// Keeps an immediate for the kernel. There [is room](Self::has_room).
    pub(crate) fn keep(&self, from: Rank, immediate: u32) {
        self.arrived.with(|arrived| {
            if arrived.len() < arrived.capacity() {
                arrived.push_back((from, immediate));
            }
        });
    }

    /// Takes all events there are, as long as an immediate finds room.
    pub(crate) fn poll(&self) {
        while self.has_room()
            && let Some(event) = self.fabric.poll()
        {
            self.looks.handled();
            match event {
                Event::Done { id, value } => self.ended(id, Some(value)),
                Event::Failed { id } => self.ended(id, None),
                Event::Immediate { from, immediate } => self.hear(Rank::new(from.get()), immediate),
            }
        }
    }

    /// [`poll`](Self::poll), before something is looked at that a loop may wait for. Peers get what
    /// the network had no room for.
    pub(crate) fn look(&self) {
        self.poll();
        if self.owed.take() {
            for (rank, peer) in (0..self.fabric.cores()).map(Rank::new).zip(&self.peers) {
                self.give_back(rank, peer);
            }
        }
        self.looks.mark();
    }

    /// Gives its credits back to `to`, if that is due: else they are added to.
    pub(crate) fn give_back(&self, to: Rank, peer: &Peer) {
        let taken = peer.taken.get();
        // Half of what it may send at a time: it continues while the other half is taken.
        if taken.saturating_mul(2) < self.credits || peer.lost.get() {
            return;
        }
        let immediate = Some(Said::Credits(taken).pack());
        let told = point!(NOTIFY "the peer may wait for it": "network.progress.credit",
            self.begin_untold(to, peer, 0, &[], immediate).is_ok(); else true);
        if told {
            peer.taken.set(0);
        } else {
            self.owed.set(true);
        }
    }

    pub(crate) fn ended(&self, id: u32, answer: Option<u64>) {
        let to = self.answers.end(id, answer);
        let Some(Ok(peer)) = to.map(|to| self.peer(to)) else {
            return;
        };
        count(&peer.under_way, -1);
        if answer.is_none() {
            peer.lost.set(true);
            peer.untold.to_all.set(true);
            peer.untold.to_one.set(true);
        }
    }

    pub(crate) fn hear(&self, from: Rank, immediate: u32) {
        match Said::unpack(immediate) {
            Said::User(immediate) => self.keep(from, immediate),
            Said::Signal(slot) => self.bump(slot as usize),
            Said::Credits(credits) => {
                if let Ok(peer) = self.peer(from) {
                    peer.sent.set(peer.sent.get().saturating_sub(credits));
                }
            }
        }
    }

    pub(crate) fn bump(&self, slot: usize) {
        self.slots.with(|slots| {
            if let Some(count) = slots.get_mut(slot) {
                *count = count.wrapping_add(1);
            }
        });
    }

    /// A rank at which something is in flight: the named one, or any.
    pub(crate) fn unsettled(&self, at: Option<Rank>) -> Option<Rank> {
        let under_way = |rank: &Rank| {
            let peer = self.peers.get(rank.index());
            peer.is_some_and(|peer| peer.under_way.get() > 0)
        };
        let mut all = (0..self.fabric.cores()).map(Rank::new);
        match at {
            Some(rank) => Some(rank).filter(under_way),
            None => all.find(under_way),
        }
    }

    /// `Ok` if all that was begun at a rank, or anywhere, is done.
    pub(crate) fn settled(&self, at: Option<Rank>) -> Result<(), Refusal> {
        match at {
            Some(rank) => self.confirm(rank)?,
            None => {
                let mut all = (0..self.fabric.cores()).map(Rank::new);
                all.try_for_each(|rank| self.confirm(rank))?;
            }
        }
        if self.unsettled(at).is_some() {
            self.look();
        }
        self.unsettled(at)
            .map_or(Ok(()), |rank| Err(Refusal::Busy(rank)))
    }

    /// [`settled`](Self::settled), and whether nobody was lost on the way: of each rank once, so
    /// that what does not need it can be gone on with.
    pub(crate) fn kept(&self, at: Option<Rank>) -> Result<(), Refusal> {
        self.settled(at)?;
        let lost = match at {
            Some(rank) => self.peer(rank)?.untold.to_one.take().then_some(rank),
            None => {
                let mut all = (0..self.fabric.cores()).map(Rank::new).zip(&self.peers);
                let lost = all.find(|(_, peer)| peer.untold.to_all.take());
                lost.map(|(rank, _)| rank)
            }
        };
        lost.map_or(Ok(()), |rank| Err(Refusal::PeerLost(rank)))
    }

    /// The answer of `op`.
    pub(crate) fn answer(&self, op: &Op) -> Answer {
        let answer = self.answers.of(op.begun.get() as u32);
        if !matches!(answer, Answer::Waiting) {
            return answer;
        }
        self.look();
        self.answers.of(op.begun.get() as u32)
    }

    /// `op`'s answer was taken, or there is none. Next it waits for the next piece.
    pub(crate) fn forget(&self, op: &Op) {
        op.begun
            .set(self.answers.take(op.begun.get() as u32) as usize);
    }

    /// The rank was told the contents of a peer's memory: nothing wakes it up when these change.
    pub(crate) fn tell<T>(&self, found: T) -> Result<T, Refusal> {
        self.looks.unwatched();
        Ok(found)
    }

    /// Begins to get a piece of `op`, if there is a place for it.
    pub(crate) fn begin_piece(
        &self,
        from: Rank,
        at: usize,
        len: usize,
        op: &Op,
    ) -> Result<(), Refusal> {
        let first = op.begun.get() as u32;
        let Some(place) = self.answers.place(first != 0) else {
            // As in `full`; and no event tells that a get has taken its answer.
            self.look();
            self.looks.unwatched();
            return Err(Refusal::Busy(from));
        };
        let into = self.piece_at(place);
        let id = self.begin(from, Work::Get { at, into, len }, Purpose::Piece(place))?;
        if first == 0 {
            op.begun.set(id as usize);
        } else {
            self.answers.append(first, id);
        }
        Ok(())
    }

    /// An operation on a cell that the network does by itself.
    pub(crate) fn change_at_once(
        &self,
        to: Rank,
        at: usize,
        amo: Amo,
        op: &Op,
    ) -> Result<u64, Refusal> {
        if let Answer::Cell(old, _) = self.answer(op) {
            self.forget(op);
            return self.tell(old);
        }
        if !matches!(self.answers.of(op.begun.get() as u32), Answer::Waiting) {
            let id = self.begin(to, Work::Amo { at, amo }, Purpose::Cell(None))?;
            op.begun.set(id as usize);
        }
        Err(Refusal::Busy(to))
    }

    /// Any other: load, compare and swap.
    pub(crate) fn change_by_swaps(
        &self,
        to: Rank,
        at: usize,
        change: &mut dyn FnMut(u64) -> u64,
        op: &Op,
    ) -> Result<u64, Refusal> {
        let begin = |amo, expected| {
            let id = self.begin(to, Work::Amo { at, amo }, Purpose::Cell(expected))?;
            op.begun.set(id as usize);
            Err(Refusal::Busy(to))
        };
        match self.answer(op) {
            Answer::Waiting => Err(Refusal::Busy(to)),
            Answer::Cell(old, expected) => {
                self.forget(op);
                let swapped = point!(CHECK "another rank may have changed it in between":
                    "network.update.compare", expected == Some(old); else expected.is_some());
                if swapped {
                    return self.tell(old);
                }
                let new = change(old);
                let swap = Amo::CompareSwap { expected: old, new };
                begin(swap, Some(old))
            }
            _ => begin(Amo::Read, None),
        }
    }
}
