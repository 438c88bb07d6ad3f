//! How an entry is packed into a line, so that the line may arrive in pieces.
//!
//! A line has eight words. Each word arrives whole, and they arrive in any order. So each word
//! carries a bit, the *phase*, that changes with each lap of the ring. A reader that finds the
//! phase of its lap in a word knows that the word has come.
//!
//! ```text
//!   word   0 … 6                          7
//!        ┌─────────────────────────────┬──────────────────────────────────────────┐
//!   bit31│ phase                       │ phase                                    │
//!   30…0 │ bits 30…0 of the word       │ 24…30: bits 31 of words 0…6; 0…23: below │
//!        └─────────────────────────────┴──────────────────────────────────────────┘
//! ```
//! In the first line of an entry, word 0 is the place of the data, word 1 the immediate, and words
//! 2 to 6 the first `DATA` bytes. Word 7 has the length of the data (bits 0 to 15), the high bits
//! of the place (17 to 23), and bit 16 if the entry is a part: then word 1 has data as well. A line
//! that follows has `LINE_DATA` bytes: words 0 to 6 and the three low bytes of word 7.

use flagpost_loadstore::phase::{WORDS, announcing, immediate};

/// The bytes of a line, by words.
pub(crate) type Line = [[u8; 4]; WORDS];

/// Bytes of data in the first line of an entry, in that of a part, and in each line that follows.
pub(crate) const DATA: usize = 20;
pub(crate) const PART_DATA: usize = 24;
pub(crate) const LINE_DATA: usize = 31;

/// Most lines that follow the first.
pub(crate) const MOST_LINES: u32 = 63;

/// Where bits 31 of the other words begin in word 7.
const TOPS: u32 = 24;

/// The bit of a part, in the last word.
const PART: u32 = 1 << 16;

/// Where the high bits of a place begin in the last word. They name 512 GiB, together with word 0:
/// more than keys do.
const HIGH: u32 = 17;

/// How many lines follow the first one of an entry with `len` bytes, of which that one has `first`.
pub(crate) const fn lines_of(len: usize, first: usize) -> u32 {
    len.saturating_sub(first).div_ceil(LINE_DATA) as u32
}

/// How many bytes an entry has room for, of which its first line has `first`.
pub(crate) const fn room(first: usize, lines: u32) -> usize {
    first.saturating_add((lines as usize).saturating_mul(LINE_DATA))
}

/// The most data that travel in rings of `entries` lines: as many as fit together, or, where a part
/// and its head leave room for others, any number.
pub(crate) const fn most_inline(entries: u32) -> usize {
    match entries {
        0..LEAST_FOR_PARTS => room(DATA, entries.saturating_sub(1)),
        _ => usize::MAX,
    }
}

/// Least lines of rings in which data travel in parts.
const LEAST_FOR_PARTS: u32 = 4;

/// An entry but for its data.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// 31 bits; of a part, none.
    pub(crate) immediate: u32,
    /// Where the data belong, from the start of the memory region.
    pub(crate) place: usize,
    /// How many bytes there are.
    pub(crate) len: usize,
    /// More entries of the same put follow: nobody is notified by this one.
    pub(crate) part: bool,
}

impl Head {
    /// How many bytes its first line has.
    pub(crate) const fn first(&self) -> usize {
        if self.part { PART_DATA } else { DATA }
    }

    /// True if more of a message follows this entry, where that was so before it or not: an entry
    /// that only asks belongs to none.
    pub(crate) const fn leaves_open(&self, open: bool) -> bool {
        match self.part {
            true if self.len == 0 => open,
            part => part,
        }
    }

    /// The first line of the entry, in a lap of this phase.
    pub(crate) fn pack(&self, data: &[u8], phase: u32) -> Line {
        let mut line = [[0; 4]; WORDS];
        let [place, words @ .., rest] = &mut line;
        *place = (self.place as u32).to_le_bytes();
        let immediate = self.immediate.to_le_bytes();
        let before = if self.part { &[][..] } else { &immediate };
        let bytes = words.as_flattened_mut().iter_mut();
        for (to, from) in bytes.zip(before.iter().chain(data)) {
            *to = *from;
        }
        let part = if self.part { PART } else { 0 };
        let high = (self.place as u64).wrapping_shr(u32::BITS) as u32;
        *rest = ((self.len as u32 & 0xFFFF) | part | high.wrapping_shl(HIGH)).to_le_bytes();
        seal(line, phase)
    }

    /// The head of an entry, and the data of its first line, after [`unseal`].
    pub(crate) fn unpack(line: &Line) -> (Self, &[u8]) {
        let [place, words @ .., rest] = line;
        let [first, data @ ..] = words;
        let rest = u32::from_le_bytes(*rest);
        let part = rest & PART != 0;
        let (told, data) = match part {
            true => (0, words.as_flattened()),
            false => (u32::from_le_bytes(*first), data.as_flattened()),
        };
        let high = u64::from((rest & 0xFF_FFFF).wrapping_shr(HIGH)).wrapping_shl(u32::BITS);
        let mut head = Self {
            immediate: immediate(told),
            place: (high | u64::from(u32::from_le_bytes(*place))) as usize,
            len: (rest & 0xFFFF) as usize,
            part,
        };
        if head.lines() > MOST_LINES {
            // No producer of this library sends as many.
            head.len = 0;
        }
        (head, data)
    }

    /// How many lines follow.
    pub(crate) const fn lines(&self) -> u32 {
        lines_of(self.len, self.first())
    }
}

/// A line that follows, in a lap of this phase: up to `LINE_DATA` bytes.
pub(crate) fn pack_line(data: &[u8], phase: u32) -> Line {
    let mut line = [[0; 4]; WORDS];
    let bytes = line.as_flattened_mut().iter_mut().take(LINE_DATA);
    for (to, from) in bytes.zip(data) {
        *to = *from;
    }
    seal(line, phase)
}

/// Moves bits 31 to the last word, and sets all phases.
fn seal(mut line: Line, phase: u32) -> Line {
    let [words @ .., rest] = &mut line;
    let mut tops = 0;
    for (number, word) in (TOPS..).zip(words) {
        let plain = u32::from_le_bytes(*word);
        tops |= plain.wrapping_shr(31).wrapping_shl(number);
        *word = announcing(plain, phase).to_le_bytes();
    }
    let all = (u32::from_le_bytes(*rest) & 0xFF_FFFF) | tops;
    *rest = announcing(all, phase).to_le_bytes();
    line
}

/// The line as it was before it was [sealed](seal).
pub(crate) fn unseal(mut line: Line) -> Line {
    let [words @ .., rest] = &mut line;
    let tops = u32::from_le_bytes(*rest);
    for (number, word) in (TOPS..).zip(words) {
        let top = tops.wrapping_shr(number).wrapping_shl(31);
        *word = (immediate(u32::from_le_bytes(*word)) | top).to_le_bytes();
    }
    line
}

#[cfg(test)]
mod tests {
    use flagpost_loadstore::phase::{is_of, phase};

    use super::*;

    const PATTERNS: [fn(u8) -> u8; 4] = [|_| 0, |_| 0xFF, |n| n, |n| 0xFF ^ n.wrapping_mul(83)];
    /// The last place that an entry can name.
    const MOST: usize = usize::MAX >> (usize::BITS - 7 - 32);
    const LAPS: [(u32, u32); 3] = [(0, 1), (1, 2), (u32::MAX, 0)];

    fn some<const N: usize>(pattern: fn(u8) -> u8) -> [u8; N] {
        core::array::from_fn(|n| pattern(n as u8))
    }

    #[test]
    fn each_word_tells_its_lap() {
        for (lap, other) in LAPS {
            for pattern in PATTERNS {
                let head = Head {
                    immediate: u32::MAX >> 1,
                    place: MOST,
                    len: 9,
                    part: true,
                };
                let first = head.pack(&some::<DATA>(pattern), phase(lap));
                let next = pack_line(&some::<LINE_DATA>(pattern), phase(lap));
                for word in first.into_iter().chain(next).map(u32::from_le_bytes) {
                    assert!(is_of(word, phase(lap)) && !is_of(word, phase(other)));
                }
            }
        }
    }

    #[test]
    fn what_is_packed_comes_back() {
        for (lap, _) in LAPS {
            for pattern in PATTERNS {
                for len in 0..=LINE_DATA {
                    let mut data = [0; LINE_DATA];
                    data[..len].copy_from_slice(&some::<LINE_DATA>(pattern)[..len]);
                    let line = unseal(pack_line(&data[..len], phase(lap)));
                    assert_eq!(line.as_flattened()[..LINE_DATA], data);
                }
                let data = some::<PART_DATA>(pattern);
                for (len, part) in [(0, false), (1, true), (DATA, false), (1_800, true)] {
                    for (immediate, place) in [
                        (0, 0),
                        (u32::MAX >> 1, MOST),
                        (7, 1 << 31),
                        (8, MOST / 2 + 1),
                    ] {
                        let immediate = if part { 0 } else { immediate };
                        let head = Head {
                            immediate,
                            place,
                            len,
                            part,
                        };
                        let line = unseal(head.pack(&data, phase(lap)));
                        assert_eq!(Head::unpack(&line), (head, &data[..head.first()]));
                    }
                }
            }
        }
    }

    #[test]
    fn too_many_lines_are_none() {
        let head = Head {
            immediate: 1,
            place: 2,
            len: 0xFFFF,
            part: false,
        };
        let line = unseal(head.pack(&[], 0));
        assert_eq!(Head::unpack(&line).0, Head { len: 0, ..head });
    }

    #[test]
    fn lines_are_counted() {
        for (len, lines) in [(0, 0), (20, 0), (21, 1), (51, 1), (52, 2), (4_096, 132)] {
            assert_eq!(lines_of(len, DATA), lines);
            assert!(room(DATA, lines) >= len);
        }
    }
}
