//! The owner's side of the rings: see [`ring`](crate::ring).

use core::cell::Cell;

use flagpost_hal::{Address, Machine, Region};
use flagpost_link::{Link as _, point, site};

use crate::{
    Atomics, Mapped, Ring,
    entry::{Entry, WORDS, phase},
};

impl<M: Machine, A: Atomics<M>> Mapped<M, A> {
    /// Takes the next entry of some ring. Rings take turns.
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
                continue;
            }
            let number = self.ring_number(source);
            if let Some(immediate) = self.take_of(rings, number, &peer.taken) {
                self.turn.set(next);
                if peer.hears(source) {
                    self.hear(source);
                }
                return Some(immediate);
            }
        }
        self.place_held();
        None
    }

    /// Takes the next entry of ring `number`.
    fn take_of(&self, rings: Region, number: u32, taken: &Cell<u32>) -> Option<u32> {
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
        // Its head passes what is held.
        self.place_held();
        // No drain is needed: I4.
        self.machine.store_u32(self.head(rings, number), next);
        taken.set(next);
        Some(entry.immediate)
    }

    /// Whether an entry has payload, for own memory.
    fn holds(&self, entry: &Entry) -> bool {
        let payload = entry.payload().len();
        payload > 0 && self.check(entry.place, payload).is_ok()
    }

    /// The entry at `at`, if it is there: a word to look, then those that matter.
    fn look(&self, at: Address, phase: u32) -> Option<Entry> {
        let here = |word: u32| Entry::is_of(word, phase);
        // ACQUIRE: G1: data must not be loaded earlier than the entry that announces them.
        let sites = [
            site!("mapped.ring.take.poll<acquire"),
            site!("mapped.ring.take.acquire"),
        ];
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
        let first = self.poll_with(|| load(0), at, here, sites);
        if !here(first) {
            return None;
        }
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
