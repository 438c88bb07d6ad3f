//! The producer's side of long payload: see [`long`](crate::long).

use flagpost_hal::{Machine, Region};
use flagpost_link::{Link as _, Op, Rank, Refusal, point};

use crate::{
    Atomics, Mapped,
    entry::{self, DATA, Entry, FIRST_DATA, LINE_DATA, Line, MORE_DATA, RUN_MOST},
    peer::Peer,
};

impl<M: Machine, A: Atomics<M>, const PEERS: usize, const PIECES: usize>
    Mapped<M, A, PEERS, PIECES>
{
    /// Whether data for `to` travel in lines: those of a pair that are too long for an entry, where
    /// [`long`](crate::long) says so.
    #[inline]
    pub(crate) fn travels_long(&self, to: Rank, data: &[u8]) -> bool {
        self.takes_long && data.len() > DATA && to != self.rank()
    }

    /// Sends `data` for `place` at `to`, and `immediate` behind them: as much as there is room for.
    /// Refused, `op` knows how far that has come, unless other long payload was sent to `to` since.
    pub(crate) fn append_long(
        &self,
        to: Rank,
        place: u32,
        data: &[u8],
        immediate: u32,
        op: &Op,
    ) -> Result<(), Refusal> {
        let rings = self.rings_of(to)?;
        let Some(peer) = self.peer(to) else {
            return Err(Refusal::NoSuchRank(to));
        };
        let answers = self.answers(to);
        if answers {
            // WAIT: G2 of `held`.
            point!("mapped.long.append.heard", self.await_heard(Some(to))?);
        } else {
            // PLACE, WAIT: G2 of `held`.
            point!("mapped.long.append.told", self.before_telling(Some(to))?);
        }
        if self.unordered.take() {
            // DRAIN: G5 of `ring`, too: what was put, or read, before what announces it.
            point!("mapped.long.append.drain", self.machine.drain());
        }
        // One that others have come before begins anew.
        let mut sent = match op.begun.get() {
            stream if stream == peer.stream() => op.seen.get() as usize,
            _ => 0,
        };
        let end = place.saturating_add(data.len() as u32);
        while sent == 0 || sent < data.len() {
            let rest = data.get(sent..).unwrap_or(&[]);
            let opens = if sent == 0 { FIRST_DATA } else { MORE_DATA };
            let lines = rest.len().saturating_sub(opens).div_ceil(LINE_DATA) as u32;
            // The claim comes first: refused, nothing has changed.
            let (ticket, run) = self.claim_run(to, peer, lines.min(RUN_MOST), sent == 0)?;
            let (opening, behind) = rest.split_at_checked(opens).unwrap_or((rest, &[]));
            if sent == 0 {
                let entry = Entry::long(immediate, place, data, run);
                self.enter_entry(rings, to, ticket, entry);
                peer.begins();
                op.begun.set(peer.stream());
            } else {
                let words = entry::pack_more(opening, run, self.lap(ticket));
                self.enter_line(rings, ticket, words);
            }
            let mut next = ticket;
            for bytes in behind.chunks(LINE_DATA).take(run as usize) {
                next = next.wrapping_add(1);
                let words = entry::pack_line(bytes, self.lap(next));
                self.enter_line(rings, next, words);
            }
            let of_lines = (run as usize).saturating_mul(LINE_DATA);
            sent = sent.saturating_add(opens).saturating_add(of_lines);
            op.seen.set(sent as u64);
            peer.asks.set(true);
            self.leaves(peer, next.wrapping_add(1), place, end);
            peer.goes_on(sent >= data.len());
            self.leave();
        }
        op.begun.set(0);
        op.seen.set(0);
        if answers {
            self.answered();
        }
        Ok(())
    }

    /// Takes a ticket of the ring at `to` that this rank fills, and up to `most` behind it: how
    /// many. What `begins` leaves room to what is under way.
    fn claim_run(
        &self,
        to: Rank,
        peer: &Peer,
        most: u32,
        begins: bool,
    ) -> Result<(u32, u32), Refusal> {
        let ticket = peer.sent.get();
        let entries = self.layout.ring.entries();
        // Not less, if more is to come: lines that open a run have less room.
        let least = most.min(entries.wrapping_shr(3));
        if self.is_full(ticket.wrapping_add(least), peer.credit.get()) {
            self.find_room(to, peer, ticket.wrapping_add(least))?;
        }
        if begins && peer.yields() {
            self.polled.note_unknown();
            return Err(Refusal::Full(to));
        }
        let used = ticket.wrapping_sub(peer.credit.get());
        let free = entries.saturating_sub(used).saturating_sub(1);
        let run = free.min(most).max(least);
        peer.sent.set(ticket.wrapping_add(run).wrapping_add(1));
        Ok((ticket, run))
    }

    fn enter_line(&self, rings: Region, ticket: u32, line: Line) {
        let at = self.entry(rings, self.ring_number(self.rank()), ticket);
        self.machine.store_bytes(at, line.as_flattened());
    }
}
