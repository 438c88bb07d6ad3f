//! The private caches of all cores, as one table.
//!
//! A cache here is fully associative and unbounded; it loses lines only when the environment evicts
//! them, at random. That covers every geometry and replacement policy. What a protocol can stumble
//! over is kept: *whole* lines are fetched and written back, with *one* dirty bit.
//!
//! The oracles' view of a line is kept beside it: which bytes the core stored to, and which store's
//! stamp each byte shows. A chip has neither; nothing but oracles and notes in timelines may look
//! at them.
//!
//! One dense table for all cores makes "evict any line" one draw; a hash index finds (core, line).

use crate::mask::{Bytes, LINE_MAX, Mask};
use crate::rng::mix;

/// A line in a core's cache.
#[derive(Copy, Clone)]
pub(crate) struct Cached {
    pub(crate) core: u16,
    pub(crate) line: u32,
    pub(crate) dirty: bool,
    /// Bytes the core stored to since the last write-back. For oracles only: a chip has no such
    /// mask.
    pub(crate) stored: Mask,
    pub(crate) bytes: Bytes,
    /// Stamp of the store that each byte shows (see `memory.rs`).
    pub(crate) seen: [u32; LINE_MAX],
    /// The line's newest stamp when all bytes were known to be fresh: spares the byte-wise
    /// comparison.
    pub(crate) fresh: u32,
}

impl Cached {
    /// Bytes that memory has newer, those that the core stored over included.
    pub(crate) fn older(&self, stamps: &[u32; LINE_MAX]) -> Mask {
        let newer = (0..LINE_MAX).filter(|&b| stamps[b] > self.seen[b]);
        newer.fold(0, |mask, b| mask | 1 << b)
    }

    /// Bytes that memory has newer, given the line's stamps and its newest there.
    #[inline]
    pub(crate) fn stale(&self, stamps: &[u32; LINE_MAX], newest: u32) -> Mask {
        if self.fresh == newest {
            return 0;
        }
        self.older(stamps) & !self.stored
    }
}

/// All lines in all caches.
#[derive(Clone)]
pub(crate) struct Caches {
    lines: Vec<Cached>,
    index: Index,
    /// How many lines each core holds, as far as any did.
    held: Vec<u32>,
}

impl Caches {
    pub(crate) fn new() -> Self {
        Self {
            lines: Vec::new(),
            index: Index::new(),
            held: Vec::new(),
        }
    }

    pub(crate) fn clear(&mut self) {
        self.held.fill(0);
        self.lines.clear();
        self.index.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }

    /// Where `core` holds `line`.
    #[inline]
    pub(crate) fn find(&self, core: u16, line: u32) -> Option<usize> {
        self.index.find(core, line)
    }

    /// Whether `core` holds any line.
    pub(crate) fn holds_any(&self, core: u16) -> bool {
        self.held.get(usize::from(core)).is_some_and(|&n| n > 0)
    }

    /// All lines, in no order.
    pub(crate) fn all(&self) -> &[Cached] {
        &self.lines
    }

    #[inline]
    pub(crate) fn get(&self, slot: usize) -> &Cached {
        &self.lines[slot]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, slot: usize) -> &mut Cached {
        &mut self.lines[slot]
    }

    /// Adds a line that its core does not hold yet.
    pub(crate) fn insert(&mut self, cached: Cached) -> usize {
        let (slot, core) = (self.lines.len(), usize::from(cached.core));
        if core >= self.held.len() {
            self.held.resize(core + 1, 0);
        }
        self.held[core] += 1;
        self.index.insert(cached.core, cached.line, slot);
        self.lines.push(cached);
        slot
    }

    /// Takes a line out. The last line moves to its slot.
    pub(crate) fn remove(&mut self, slot: usize) -> Cached {
        let gone = self.lines.swap_remove(slot);
        self.held[usize::from(gone.core)] -= 1;
        self.index.remove(gone.core, gone.line);
        if let Some(moved) = self.lines.get(slot) {
            self.index.set(moved.core, moved.line, slot);
        }
        gone
    }
}

/// (core, line) to slot: open addressing with linear probing, never more than half full.
#[derive(Clone)]
struct Index {
    /// `EMPTY`, or core and line.
    keys: Vec<u64>,
    slots: Vec<u32>,
    used: usize,
}

const EMPTY: u64 = u64::MAX;

const fn key(core: u16, line: u32) -> u64 {
    (core as u64) << 32 | line as u64
}

impl Index {
    fn new() -> Self {
        Self {
            keys: vec![EMPTY; 64],
            slots: vec![0; 64],
            used: 0,
        }
    }

    fn clear(&mut self) {
        self.keys.fill(EMPTY);
        self.used = 0;
    }

    #[inline]
    fn home(&self, key: u64) -> usize {
        mix(key) as usize & (self.keys.len() - 1)
    }

    /// Position of `key`, or the hole where it would go.
    #[inline]
    fn probe(&self, key: u64) -> usize {
        let mut at = self.home(key);
        while self.keys[at] != key && self.keys[at] != EMPTY {
            at = (at + 1) & (self.keys.len() - 1);
        }
        at
    }

    #[inline]
    fn find(&self, core: u16, line: u32) -> Option<usize> {
        let key = key(core, line);
        let at = self.probe(key);
        (self.keys[at] == key).then(|| self.slots[at] as usize)
    }

    fn set(&mut self, core: u16, line: u32, slot: usize) {
        let at = self.probe(key(core, line));
        self.slots[at] = slot as u32;
    }

    fn insert(&mut self, core: u16, line: u32, slot: usize) {
        if (self.used + 1) * 2 > self.keys.len() {
            self.grow();
        }
        let at = self.probe(key(core, line));
        self.keys[at] = key(core, line);
        self.slots[at] = slot as u32;
        self.used += 1;
    }

    fn grow(&mut self) {
        let size = self.keys.len() * 2;
        let keys = std::mem::replace(&mut self.keys, vec![EMPTY; size]);
        let slots = std::mem::replace(&mut self.slots, vec![0; size]);
        for (key, slot) in keys.into_iter().zip(slots).filter(|(key, _)| *key != EMPTY) {
            let at = self.probe(key);
            self.keys[at] = key;
            self.slots[at] = slot;
        }
    }

    /// Removes a key and closes the gap: each follower that may not stay behind a hole moves up.
    fn remove(&mut self, core: u16, line: u32) {
        let last = self.keys.len() - 1;
        let mut hole = self.probe(key(core, line));
        if self.keys[hole] == EMPTY {
            return;
        }
        self.used -= 1;
        let mut at = hole;
        loop {
            at = (at + 1) & last;
            if self.keys[at] == EMPTY {
                break;
            }
            // It may move if its home is not behind the hole, counted from where it is now.
            let from_home = at.wrapping_sub(self.home(self.keys[at])) & last;
            if from_home >= (at.wrapping_sub(hole) & last) {
                self.keys[hole] = self.keys[at];
                self.slots[hole] = self.slots[at];
                hole = at;
            }
        }
        self.keys[hole] = EMPTY;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::rng::{Rng, Stream};

    #[test]
    fn index_agrees_with_a_hash_map() {
        let mut rng = Rng::new(1, Stream::Environment);
        let (mut index, mut model) = (Index::new(), HashMap::new());
        for step in 0..20_000 {
            let (core, line) = (rng.below(4) as u16, rng.below(60) as u32);
            match model.remove(&(core, line)) {
                Some(slot) => {
                    assert_eq!(index.find(core, line), Some(slot));
                    index.remove(core, line);
                }
                None => {
                    index.insert(core, line, step);
                    model.insert((core, line), step);
                }
            }
            let (core, line) = (rng.below(4) as u16, rng.below(60) as u32);
            assert_eq!(index.find(core, line), model.get(&(core, line)).copied());
            assert_eq!(index.used, model.len());
        }
    }
}
