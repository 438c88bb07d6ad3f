//! The owner's side of the rings: see [`ring`](crate::ring).

use core::cell::Cell;

use flagpost_hal::{Address, Machine, Region, Spot};
use flagpost_link::{Link as _, Rank, point, site};

use crate::{
    Atomics, Mapped, Ring,
    entry::{self, BODY, Entry, Line, WORDS, phase},
    facing::{Facing, has_facing},
    long::FEW,
    peer::Peer,
};

impl<M: Machine, A: Atomics<M>, const PEERS: usize, const PIECES: usize>
    Mapped<M, A, PEERS, PIECES>
{
    /// Which ring is looked at behind which.
    pub(crate) fn take_turns(&self) {
        let (me, count) = (self.rank(), self.size());
        for (number, peer) in (0..count).zip(&self.peers) {
            let next = Rank::new(number).next(count);
            let other = if next == me { next.next(count) } else { next };
            peer.next.set(other);
            peer.head
                .set((self.layout.heads >> 2).wrapping_add(number.into()));
            if M::COHERENT && Rank::new(number) == me {
                self.turn.set(other);
            }
        }
    }

    /// Takes the next entry of the ring whose turn it is, if it is a pair's on a coherent machine,
    /// has immediate `wanted`, and an element of 8 bytes. False if it takes more; then nothing has
    /// happened.
    #[inline(always)]
    pub(crate) fn take_at_once(&self, wanted: u32, looks: u32) -> bool {
        if !M::COHERENT || !self.at_once.get() {
            return false;
        }
        // There are no more.
        let turn = self.turn.get().index() % FEW;
        let (Some(facing), Some(peer)) = (self.facing.get(turn), self.peers.get(turn)) else {
            return false;
        };
        let ticket = peer.taken.get();
        let [_, back, _, ring] = &facing.spots;
        let (nth, next) = (facing.ring_back(ticket), ticket.wrapping_add(1));
        for _ in 0..looks {
            let at = (back.get(), wanted, phase(facing.lap()));
            let mut taken = self.take_record(at, (peer, facing, next), || true);
            if taken == Some(true) {
                facing.took();
            } else if taken.is_none() {
                let top = nth.wrapping_shl(self.layout.to_top);
                let at = (self.in_ring(ring.get(), nth), wanted, top);
                // FIRST: I1 of `facing`.
                let is_next = || facing.meets() && !self.has_faced(facing);
                taken = self.take_record(at, (peer, facing, next), is_next);
            }
            match taken {
                None => core::hint::spin_loop(),
                Some(false) => return false,
                Some(true) => {
                    peer.taken.set(next);
                    self.turn.set(peer.next.get());
                    return true;
                }
            }
        }
        false
    }

    /// Takes the entry at an address, if it is the one that is wanted, of a lap whose phase is the
    /// top bit of `top`, has an element of 8 bytes, and `is_next`. None if it is not there; false
    /// if it takes more.
    #[inline(always)]
    fn take_record(
        &self,
        (at, wanted, top): (Spot, u32, u32),
        (peer, facing, next): (&Peer, &Facing, u32),
        is_next: impl FnOnce() -> bool,
    ) -> Option<bool> {
        let announcing = entry::announcing(wanted, top);
        // I4: the body is loaded before the payload is stored, and that before the entry is given
        // back.
        A::take_record(&self.machine, at, announcing, |answered, [head, one]| {
            let (place, _) = entry::of_body(head);
            let given_back = (peer.head.get().wrapping_mul(4), next);
            let takes = entry::is_element(head) && is_next();
            takes.then(|| {
                facing.answered.set(answered);
                ((place, one), given_back)
            })
        })
    }

    /// Takes the next entry of some ring. Rings take turns; and so do lines of bells, if this is
    /// done `aside`.
    #[inline(never)]
    pub(crate) fn take(&self, aside: bool) -> Option<u32> {
        let rings = self.rings_of(self.rank()).ok()?;
        if !self.layout.ring.of_pairs() {
            return self.take_of(rings, 0, &self.peers.first()?.taken);
        }
        if let Ring::Bells { .. } = self.layout.ring {
            let taken = self.take_rung(rings, aside);
            if taken.is_none() {
                self.is_idle();
            }
            return taken;
        }
        let count = self.size();
        let mut next = self.turn.get();
        for _ in 0..count {
            let source = next;
            next = source.next(count);
            let peer = self.peer(source)?;
            // What this rank has sent to itself, it knows. (One that is alone has nothing else to
            // look at.)
            if count > 1 && source == self.rank() && peer.sent == peer.taken {
                self.at_once
                    .set(has_facing(M::COHERENT, self.layout.ring, count));
                continue;
            }
            let number = self.ring_number(source);
            if let Some(immediate) = self.take_of(rings, number, &peer.taken) {
                let at_once = M::COHERENT && self.at_once.get();
                self.took(source, peer, if at_once { peer.next.get() } else { next });
                return Some(immediate);
            }
        }
        self.is_idle();
        if self.takes_long {
            (0..count.into()).for_each(|number| self.tell_idle(rings, number));
        }
        None
    }

    /// An entry of `source` was taken; `next` is whose turn it is.
    #[inline]
    pub(crate) fn took(&self, source: Rank, peer: &Peer, next: Rank) {
        self.sender.set(source);
        self.turn.set(next);
        if !M::COHERENT && peer.hears() {
            self.hear(source);
        }
    }

    /// There is nothing to take.
    fn is_idle(&self) {
        // PLACE: a flush waits for it.
        point!("mapped.ring.take.idle", self.place_entry());
    }

    /// Takes the next entry of ring `number`.
    #[inline]
    pub(crate) fn take_of(&self, rings: Region, number: u32, taken: &Cell<u32>) -> Option<u32> {
        if M::COHERENT {
            return self.take_announced(rings, number, taken);
        }
        // Each turn takes a line at least.
        for _ in 0..self.layout.ring.entries() {
            if let Some(long) = self.long_of(number)
                && let Some(immediate) = self.take_run(rings, number, taken, long)?
            {
                return Some(immediate);
            }
            let ticket = taken.get();
            let at = self.entry(rings, number, ticket);
            let phase = phase(self.lap(ticket));
            let mut words = self.words(at);
            let peer = self.peers.get(number as usize);
            let entries = self.layout.ring.entries();
            let peer = peer.filter(|peer| self.takes_long && peer.wants_room(entries));
            let entry = self.look(&mut words, phase, peer.is_some())?;
            if entry.more {
                match self.take_more(rings, (&words, phase), number, taken)? {
                    Some(immediate) => return Some(immediate),
                    None => continue,
                }
            }
            if let Some(peer) = peer {
                peer.has_room(entry.room);
            }
            let next = ticket.wrapping_add(1);
            if let Some((total, first)) = entry.announced() {
                self.begin_long(&entry, (total, first), number);
                taken.set(next);
                self.tell_room(rings, number);
                continue;
            }
            if self.holds(&entry) {
                self.hold(entry, number, next);
                taken.set(next);
                self.tell_room(rings, number);
                return Some(entry.immediate);
            }
            // Its head passes what is held: and that is what an entry asks for that tells nothing.
            point!("mapped.ring.take.passes", self.place_held());
            taken.set(next);
            // No drain is needed: I4.
            self.give_back(number);
            self.tell_room(rings, number);
            if !entry.asks() {
                return Some(entry.immediate);
            }
        }
        // There may be more.
        self.polled.note_unknown();
        None
    }

    /// Takes the next entry of ring `number` on a coherent machine: its payload is placed at once.
    fn take_announced(&self, rings: Region, number: u32, taken: &Cell<u32>) -> Option<u32> {
        let ticket = taken.get();
        let source = Rank::new(number as u16);
        let facing = self.facing(source);
        let nth = facing.map_or(ticket, |facing| facing.ring_back(ticket));
        let at = self.entry(rings, number, nth);
        let in_ring = self.look_first(|| self.machine.load_u32(at), at, phase(self.lap(nth)));
        if let (Some(facing), Some(_)) = (facing, in_ring) {
            facing.meets();
        }
        // Behind an acquire, if there is anything in the ring: I1 of `facing`: what is here comes
        // first.
        let (at, first) = match facing.map(|facing| (facing, self.look_facing(source, facing))) {
            Some((facing, Some(faced))) => {
                facing.took();
                faced
            }
            _ => (at, in_ring?),
        };
        if let Some(facing) = facing {
            let answered = self.machine.load_u32(at.plus(4));
            facing.answered.set(answered);
        }
        let mut body = [[0; 8]; 3];
        if self.layout.ring.of_pairs() {
            self.machine
                .load_bytes(at.plus(BODY), body.as_flattened_mut());
        }
        let [head, payload @ ..] = body;
        let (place, len) = entry::of_body(u64::from_le_bytes(head));
        let payload = payload.as_flattened().get(..len).unwrap_or(&[]);
        let fits = self.check(place, payload.len()).is_ok();
        let next = ticket.wrapping_add(1);
        // I4: whether the entry is given back depends on its length; and payload is stored before
        // that.
        self.place(place, if fits { payload } else { &[] }, number, next);
        taken.set(next);
        Some(entry::immediate(first))
    }

    /// The first word of the entry at `at`, if that is there.
    #[inline(always)]
    pub(crate) fn look_first(
        &self,
        load: impl FnOnce() -> u32,
        at: Address,
        phase: u32,
    ) -> Option<u32> {
        let here = |word: u32| Entry::is_of(word, phase);
        // ACQUIRE: G1: data must not be loaded earlier than the entry that announces them.
        let sites = [
            site!("mapped.ring.take.poll<acquire"),
            site!("mapped.ring.take.acquire"),
        ];
        let first = self.poll_with(load, at, here, sites);
        if !here(first) {
            return None;
        }
        if !M::COHERENT {
            let _ = self.polled.taken(at);
        }
        Some(first)
    }

    /// Whether an entry has payload, for own memory.
    fn holds(&self, entry: &Entry) -> bool {
        let len = entry.payload().len();
        len > 0 && self.check(entry.place, len).is_ok()
    }

    /// The entry of `words`, if it is there: a word to look, then those that matter, `room` among
    /// them or not.
    fn look(&self, words: &mut Words, phase: u32, room: bool) -> Option<Entry> {
        let here = |word: u32| Entry::is_of(word, phase);
        let at = words.at;
        let first = self.look_first(|| self.load_first(words), at, phase)?;
        if !self.layout.ring.of_pairs() {
            return Some(Entry::of_word(first));
        }
        let word = |number: u32| {
            let word = self.load(words, number);
            if point!("mapped.ring.take.whole", here(word); else true) {
                return Some(word);
            }
            // Not here yet: it is what a waiting loop looks at.
            self.polled.note(words.of(number), word);
            None
        };
        // What is late of an entry comes before its producer's next one.
        let mut entry = Entry::unpack(first, word)?;
        if room && !entry.more {
            entry.room = word(entry::ROOM)?;
        }
        Some(entry)
    }

    /// Those of the line at `at`.
    pub(crate) fn words(&self, at: Address) -> Words {
        let pairs = self.layout.ring.of_pairs();
        Words {
            at,
            at_once: pairs && self.machine.loads_lines(at.region),
            line: [[0; 4]; WORDS],
        }
    }

    /// The first of them.
    pub(crate) fn load_first(&self, words: &mut Words) -> u32 {
        if words.at_once {
            let line = words.line.as_flattened_mut();
            self.machine.load_bytes(words.at, line);
        } else {
            let [first, ..] = &mut words.line;
            *first = self.machine.load_u32(words.at).to_le_bytes();
        }
        self.load(words, 0)
    }

    /// One of them, when the first has been loaded.
    pub(crate) fn load(&self, words: &Words, number: u32) -> u32 {
        if number > 0 && !words.at_once {
            return self.machine.load_u32(words.of(number));
        }
        let word = words.line.get(number as usize).copied().unwrap_or_default();
        u32::from_le_bytes(word)
    }
}

/// The words of a line of a ring, as they are loaded: one by one, or all with the first where that
/// takes no longer.
pub(crate) struct Words {
    pub(crate) at: Address,
    at_once: bool,
    line: Line,
}

impl Words {
    /// Where one of them is.
    pub(crate) const fn of(&self, number: u32) -> Address {
        self.at.plus(number.wrapping_mul(4))
    }
}
