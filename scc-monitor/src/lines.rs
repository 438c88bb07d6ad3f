//! What a core keeps of message data: lines in its L1, and one line in its write-combining buffer.
//!
//! QEMU has no caches: each load finds what was stored last, so a missing CL1INVMB or drain would
//! not show. Here 64 lines are kept, each in the one place that its address says, and one buffer of
//! 32 bytes with a bit per byte. It is a model of what the documents say (docs/hardware.md A4),
//! made to keep old lines and unsent bytes for as long as they allow.
//!
//! | access | a line is there | no line is there |
//! |---|---|---|
//! | load | from the line | the line is fetched |
//! | store, MPBT | into the line, and nowhere else (H2) | into the buffer |
//! | store, MPBT write through | into the line and the buffer | into the buffer |
//! | CL1INVMB | all lines are dropped | |
//!
//! The buffer sends its bytes when it is full, and when a byte of another line comes (H4).

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use flagpost_scc::{LINE, Physical};

const KEPT: usize = 64;
const WORDS: usize = LINE as usize / 4;
const NONE: u32 = !0;
const FULL: u32 = !0;

/// Memory, past all that a core keeps.
pub trait Memory {
    /// The aligned word there.
    fn load(&self, at: Physical) -> u32;
    /// Stores an aligned word.
    fn store(&self, at: Physical, value: u32);
    /// Stores a byte.
    fn store_byte(&self, at: Physical, value: u8);
}

/// Of one core, which alone uses it.
pub struct Lines {
    /// The address of each line, or [`NONE`].
    tags: [AtomicU32; KEPT],
    words: [[AtomicU32; WORDS]; KEPT],
    buffer: [AtomicU32; WORDS],
    buffer_tag: AtomicU32,
    /// Which bytes of the buffer are there.
    mask: AtomicU32,
}

impl Default for Lines {
    fn default() -> Self {
        Self::new()
    }
}

fn index(at: Physical) -> usize {
    (at.get() / LINE) as usize % KEPT
}

fn word(at: Physical) -> usize {
    (at.get() % LINE / 4) as usize
}

/// Replaces the bytes of `mask` at the place of `at` in its word.
fn change(word: &AtomicU32, at: Physical, value: u32, bytes: u32) {
    let shift = 8 * (at.get() % 4);
    let mask = match bytes {
        1 => 0xFF << shift,
        _ => !0,
    };
    let old = word.load(Relaxed);
    word.store(old & !mask | value << shift & mask, Relaxed);
}

// ORDERING: Relaxed: only one core comes here, and its handler is not interrupted.
impl Lines {
    /// Nothing is kept.
    pub const fn new() -> Self {
        Self {
            tags: [const { AtomicU32::new(NONE) }; _],
            words: [const { [const { AtomicU32::new(0) }; _] }; _],
            buffer: [const { AtomicU32::new(0) }; _],
            buffer_tag: AtomicU32::new(NONE),
            mask: AtomicU32::new(0),
        }
    }

    /// The line of `at`, if it is kept.
    fn kept(&self, at: Physical) -> Option<&[AtomicU32; WORDS]> {
        let index = index(at);
        let is = self.tags[index].load(Relaxed) == at.line().get();
        is.then(|| &self.words[index])
    }

    /// Loads the word that `at` is in.
    pub fn load(&self, at: Physical, memory: &impl Memory) -> u32 {
        if let Some(line) = self.kept(at) {
            return line[word(at)].load(Relaxed);
        }
        let (index, first) = (index(at), at.line());
        for (number, kept) in self.words[index].iter().enumerate() {
            kept.store(memory.load(first.plus(4 * number as u32)), Relaxed);
        }
        self.tags[index].store(first.get(), Relaxed);
        self.words[index][word(at)].load(Relaxed)
    }

    /// Stores `bytes`, 1 or 4, at `at`.
    pub fn store(&self, at: Physical, value: u32, bytes: u32, through: bool, memory: &impl Memory) {
        if let Some(line) = self.kept(at) {
            change(&line[word(at)], at, value, bytes);
            if !through {
                return;
            }
        }
        if self.buffer_tag.load(Relaxed) != at.line().get() {
            self.send(memory);
            self.buffer_tag.store(at.line().get(), Relaxed);
        }
        change(&self.buffer[word(at)], at, value, bytes);
        let bits = (1 << bytes) - 1;
        let mask = self.mask.load(Relaxed) | bits << (at.get() % LINE);
        self.mask.store(mask, Relaxed);
        if mask == FULL {
            self.send(memory);
        }
    }

    /// Sends what is in the buffer.
    fn send(&self, memory: &impl Memory) {
        let first = Physical::new(self.buffer_tag.swap(NONE, Relaxed));
        let mask = self.mask.swap(0, Relaxed);
        for (number, word) in self.buffer.iter().enumerate() {
            let at = first.plus(4 * number as u32);
            let word = word.load(Relaxed);
            match mask >> (4 * number) & 0xF {
                0 => {}
                0xF => memory.store(at, word),
                some => {
                    for (byte, value) in word.to_le_bytes().into_iter().enumerate() {
                        if some >> byte & 1 != 0 {
                            memory.store_byte(at.plus(byte as u32), value);
                        }
                    }
                }
            }
        }
    }

    /// CL1INVMB.
    pub fn drop_lines(&self) {
        self.tags.iter().for_each(|tag| tag.store(NONE, Relaxed));
    }

    /// After a reset, nothing is kept, and nothing is sent.
    pub fn reset(&self) {
        self.drop_lines();
        self.buffer_tag.store(NONE, Relaxed);
        self.mask.store(0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::RefCell;
    use std::collections::BTreeMap;

    /// Bytes by their address.
    #[derive(Default)]
    struct Bytes(RefCell<BTreeMap<u32, u8>>);

    impl Memory for Bytes {
        fn load(&self, at: Physical) -> u32 {
            let byte = |i| self.0.borrow().get(&(at.get() + i)).copied().unwrap_or(0);
            u32::from_le_bytes([byte(0), byte(1), byte(2), byte(3)])
        }

        fn store(&self, at: Physical, value: u32) {
            for (i, byte) in (0..).zip(value.to_le_bytes()) {
                self.store_byte(at.plus(i), byte);
            }
        }

        fn store_byte(&self, at: Physical, value: u8) {
            self.0.borrow_mut().insert(at.get(), value);
        }
    }

    const AT: Physical = Physical::new(0x8000_0044);
    const ELSEWHERE: Physical = Physical::new(0x8000_0060);

    #[test]
    fn a_line_stays_old_until_it_is_dropped_or_another_needs_its_place() {
        let (memory, lines) = (Bytes::default(), Lines::new());
        memory.store(AT, 1);
        assert_eq!(lines.load(AT, &memory), 1);
        memory.store(AT, 2);
        memory.store(AT.plus(4), 2);
        assert_eq!(
            (lines.load(AT, &memory), lines.load(AT.plus(4), &memory)),
            (1, 0)
        );
        lines.drop_lines();
        assert_eq!(lines.load(AT, &memory), 2);
        memory.store(AT, 3);
        lines.load(AT.plus(LINE * KEPT as u32), &memory);
        assert_eq!(lines.load(AT, &memory), 3);
    }

    #[test]
    fn the_buffer_sends_when_another_line_comes_and_when_it_is_full() {
        let (memory, lines) = (Bytes::default(), Lines::new());
        memory.store(AT, 0x0101_0101);
        lines.store(AT.plus(1), 0x77, 1, true, &memory);
        lines.drop_lines();
        assert_eq!(memory.load(AT), 0x0101_0101, "kept");
        assert_eq!(
            lines.load(AT, &memory),
            0x0101_0101,
            "no load looks into the buffer"
        );
        lines.store(ELSEWHERE, 5, 4, true, &memory);
        assert_eq!((memory.load(AT), memory.load(ELSEWHERE)), (0x0101_7701, 0));
        for word in 1..8 {
            lines.store(ELSEWHERE.plus(4 * word), 6, 4, true, &memory);
        }
        assert_eq!(
            (memory.load(ELSEWHERE), memory.load(ELSEWHERE.plus(28))),
            (5, 6)
        );
        lines.store(AT, 9, 4, true, &memory);
        lines.reset();
        lines.store(ELSEWHERE, 9, 4, true, &memory);
        assert_eq!(memory.load(AT), 0x0101_7701, "lost by the reset");
    }

    /// H2.
    #[test]
    fn a_store_that_hits_stays_unless_it_is_written_through() {
        for through in [false, true] {
            let (memory, lines) = (Bytes::default(), Lines::new());
            lines.load(AT, &memory);
            lines.store(AT, 7, 4, through, &memory);
            assert_eq!(lines.load(AT, &memory), 7);
            lines.store(ELSEWHERE, 0, 4, through, &memory);
            lines.drop_lines();
            let expected = if through { 7 } else { 0 };
            assert_eq!(lines.load(AT, &memory), expected);
        }
    }
}
