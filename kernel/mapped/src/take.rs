//! The owner's side of the rings: see [`ring`](crate::ring).

use core::cell::Cell;

use flagpost_hal::{Address, Machine, Region};
use flagpost_link::{Link as _, Rank, point, site};

use crate::{
    Atomics, Mapped, Ring,
    entry::{self, BODY, Entry, WORDS, phase},
};

impl<M: Machine, A: Atomics<M>> Mapped<M, A> {
    /// Which ring is looked at behind which, and where they are.
    pub(crate) fn take_turns(&self) {
        let (me, count) = (self.rank(), self.size());
        let ring = |number: u16| {
            let before = u32::from(number).wrapping_mul(self.layout.ring.entries());
            self.layout.first.wrapping_add(before)
        };
        for (number, peer) in (0..count).zip(&self.peers) {
            let next = Rank::new(number).next(count);
            let other = if next == me { next.next(count) } else { next };
            peer.next.set(other);
            peer.ring.set(ring(number));
            peer.head
                .set((self.layout.heads >> 2).wrapping_add(number.into()));
            if M::COHERENT && Rank::new(number) == me {
                self.turn.set(other);
            }
        }
        self.out.set(ring(me.get()));
    }

    /// Takes the next entry of the ring whose turn it is, if it is a pair's on a coherent machine, has immediate `wanted`, and
    /// an element of 8 bytes. False if it takes more; then nothing has happened.
    #[inline(always)]
    pub(crate) fn take_at_once(&self, wanted: u32, looks: u32) -> bool {
        let (true, Some(peer)) = (
            M::COHERENT && self.at_once.get(),
            self.peer(self.turn.get()),
        ) else {
            return false;
        };
        let ticket = peer.taken.get();
        let at = self.record(self.rank(), peer.ring.get(), ticket).offset;
        let announcing = entry::announcing(wanted, ticket.wrapping_shl(self.layout.to_top));
        let next = ticket.wrapping_add(1);
        // I4: the body is loaded before the payload is stored, and that before the entry is given back.
        let taken = self
            .machine
            .take_record(at, announcing, looks, |[head, one]| {
                let (place, len) = entry::of_body(head);
                let given_back = (peer.head.get().wrapping_mul(4), next);
                (len == size_of_val(&one)).then_some(((place, one), given_back))
            });
        if taken {
            peer.taken.set(next);
            self.turn.set(peer.next.get());
        }
        taken
    }

    /// Takes the next entry of some ring. Rings take turns.
    #[inline(never)]
    pub(crate) fn take(&self) -> Option<u32> {
        let rings = self.rings_of(self.rank()).ok()?;
        if let Ring::Shared { .. } = self.layout.ring {
            return self.take_of(rings, 0, &self.peers.first()?.taken);
        }
        let count = self.size();
        let mut next = self.turn.get();
        for _ in 0..count {
            let source = next;
            next = source.next(count);
            let peer = self.peer(source)?;
            // What this rank has sent to itself, it knows. (One that is alone has nothing else to look at.)
            if count > 1 && source == self.rank() && peer.sent == peer.taken {
                self.at_once.set(true);
                continue;
            }
            let number = self.ring_number(source);
            if let Some(immediate) = self.take_of(rings, number, &peer.taken) {
                let at_once = M::COHERENT && self.at_once.get();
                self.turn.set(if at_once { peer.next.get() } else { next });
                if !M::COHERENT && peer.hears() {
                    self.hear(source);
                }
                return Some(immediate);
            }
        }
        // PLACE: a flush waits for it.
        point!("mapped.ring.take.idle", self.place_held());
        None
    }

    /// Takes the next entry of ring `number`.
    #[inline]
    fn take_of(&self, rings: Region, number: u32, taken: &Cell<u32>) -> Option<u32> {
        if M::COHERENT {
            return self.take_announced(rings, number, taken);
        }
        let ticket = taken.get();
        let at = self.entry(rings, number, ticket);
        let phase = phase(self.lap(ticket));
        let entry = self.look(at, phase)?;
        let next = ticket.wrapping_add(1);
        if self.holds(&entry) {
            self.hold(entry, number, next);
            taken.set(next);
            return Some(entry.immediate);
        }
        // PLACE: its head passes what is held.
        point!("mapped.ring.take.passes", self.place_held());
        // No drain is needed: I4.
        self.machine.store_u32(self.head(rings, number), next);
        taken.set(next);
        Some(entry.immediate)
    }

    /// Takes the next entry of ring `number` on a coherent machine: its payload is placed at once.
    fn take_announced(&self, rings: Region, number: u32, taken: &Cell<u32>) -> Option<u32> {
        let ticket = taken.get();
        let at = self.entry(rings, number, ticket);
        let first = self.look_first(|| self.machine.load_u32(at), at, phase(self.lap(ticket)))?;
        let mut body = [[0; 8]; 3];
        if let Ring::Pairs { .. } = self.layout.ring {
            self.machine
                .load_bytes(at.plus(BODY), body.as_flattened_mut());
        }
        let [head, payload @ ..] = body;
        let (place, len) = entry::of_body(u64::from_le_bytes(head));
        let payload = payload.as_flattened().get(..len).unwrap_or(&[]);
        let fits = self.check(place, payload.len()).is_ok();
        let next = ticket.wrapping_add(1);
        // I4: whether the entry is given back depends on its length; and payload is stored before that.
        self.place(place, if fits { payload } else { &[] }, number, next);
        taken.set(next);
        Some(entry::immediate(first))
    }

    /// The first word of the entry at `at`, if that is there.
    #[inline(always)]
    fn look_first(&self, load: impl FnOnce() -> u32, at: Address, phase: u32) -> Option<u32> {
        let here = |word: u32| Entry::is_of(word, phase);
        // ACQUIRE: G1: data must not be loaded earlier than the entry that announces them.
        let sites = [
            site!("mapped.ring.take.poll<acquire"),
            site!("mapped.ring.take.acquire"),
        ];
        let first = self.poll_with(load, at, here, sites);
        here(first).then_some(first)
    }

    /// Whether an entry has payload, for own memory.
    fn holds(&self, entry: &Entry) -> bool {
        let payload = entry.payload().len();
        payload > 0 && self.check(entry.place, payload).is_ok()
    }

    /// The entry at `at`, if it is there: a word to look, then those that matter.
    fn look(&self, at: Address, phase: u32) -> Option<Entry> {
        let here = |word: u32| Entry::is_of(word, phase);
        // Where a line takes no longer than a word: all of it, at once.
        let whole =
            matches!(self.layout.ring, Ring::Pairs { .. }) && self.machine.loads_lines(at.region);
        let line = Cell::new([[0; 4]; WORDS]);
        let load = |number: u32| {
            if !whole {
                return self.machine.load_u32(at.plus(number.wrapping_mul(4)));
            }
            let mut words = line.get();
            if number == 0 {
                self.machine.load_bytes(at, words.as_flattened_mut());
                line.set(words);
            }
            let word = words.get(number as usize).copied().unwrap_or_default();
            u32::from_le_bytes(word)
        };
        let first = self.look_first(|| load(0), at, phase)?;
        if let Ring::Shared { .. } = self.layout.ring {
            return Some(Entry::of_word(first));
        }
        let word = |number: u32| {
            let at = at.plus(number.wrapping_mul(4));
            let word = load(number);
            if point!("mapped.ring.take.whole", here(word); else true) {
                return Some(word);
            }
            // Not here yet: it is what a waiting loop looks at.
            self.polled.note(at, word);
            None
        };
        // What is late of an entry comes before its producer's next one.
        Entry::unpack(first, word)
    }
}
