//! What ranks' caches in software have newer than memory: for an oracle of mode `emulated`.
//!
//! A rank notes in the job's memory which lines of its own region it holds dirty, which of their
//! bytes, and the line of the program that stored there last. A peer that loads past all caches
//! looks there. Other ranks are processes, so the name of the file is noted as text.
//!
//! # Memory layout
//! A rank has a place for each line of an image of [`LINES`] lines, in which two lines of its
//! region are in one place if they are in one place of the image:
//! ```text
//!   0        4              12       16
//!   ┌────────┬──────────────┬────────┬──────────────────────────────┐
//!   │ 1+line │ bytes, a bit │ number │ the end of the file's name,  │
//!   │        │ each         │        │ filled up with zeros         │
//!   └────────┴──────────────┴────────┴──────────────────────────────┘
//! ```
//! # Bounds
//! Only ranks that access the same bytes without any order find a place half written: what they
//! read is numbers, and text that is taken for what it is.

use std::ops::Range;
use std::panic::Location;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use crate::segment::Segment;
use crate::shape::HIDDEN;

/// Bytes of a line.
pub(crate) const LINE: usize = 64;

/// Lines of an image: few enough that programs see evictions.
pub(crate) const LINES: usize = 256;

const PLACE: usize = 64;

const _: () = assert!(LINES * PLACE == HIDDEN);

const BITS: usize = 4;
const NUMBER: usize = 12;
const NAME: usize = 16;

impl Segment {
    /// Word `word` of the place of `line` of `rank`'s region.
    fn place(&self, rank: u16, line: usize, word: usize) -> &AtomicU32 {
        let place = self.shape().hidden_of(rank) + line % LINES * PLACE;
        self.control(place + word)
    }

    /// What the first word of the place says if it is that of `line`.
    fn tag(line: usize) -> u32 {
        // 64 GiB are 2^30 lines.
        line as u32 + 1
    }

    /// `rank` has stored to `bytes` of a line of its region, and they are in its cache.
    pub(crate) fn hide(&self, rank: u16, line: usize, bytes: u64, by: Option<&Location<'_>>) {
        let word = |word| self.place(rank, line, word);
        let is_new = word(0).load(Relaxed) != Self::tag(line);
        let number = by.map_or(0, Location::line);
        for (half, bits) in [(BITS, bytes as u32), (BITS + 4, (bytes >> 32) as u32)] {
            let old = if is_new { 0 } else { word(half).load(Relaxed) };
            word(half).store(old | bits, Relaxed);
        }
        if is_new || word(NUMBER).load(Relaxed) != number {
            let name = by.map_or("", Location::file).as_bytes();
            let end = &name[name.len().saturating_sub(PLACE - NAME)..];
            for at in (NAME..PLACE).step_by(4) {
                let mut part = [0; 4];
                let rest = end.get(at - NAME..).unwrap_or_default();
                part.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
                word(at).store(u32::from_le_bytes(part), Relaxed);
            }
            word(NUMBER).store(number, Relaxed);
        }
        word(0).store(Self::tag(line), Relaxed);
    }

    /// What `rank`'s cache has of these lines is in memory, or dropped.
    pub(crate) fn unhide(&self, rank: u16, lines: Range<usize>) {
        for place in 0..LINES.min(lines.len()) {
            let word = self.place(rank, lines.start + place, 0);
            let line = (word.load(Relaxed) as usize).wrapping_sub(1);
            if lines.contains(&line) {
                word.store(0, Relaxed);
            }
        }
    }

    /// The bytes of the line that `rank`'s cache has newer.
    pub(crate) fn hidden(&self, rank: u16, line: usize) -> u64 {
        let half = |half| u64::from(self.place(rank, line, half).load(Relaxed));
        match self.place(rank, line, 0).load(Relaxed) == Self::tag(line) {
            true => half(BITS) | half(BITS + 4) << 32,
            false => 0,
        }
    }

    /// The line of the program that has stored to the line last, for people.
    pub(crate) fn hidden_by(&self, rank: u16, line: usize) -> String {
        let words = (NAME..PLACE).step_by(4);
        let name = words.flat_map(|at| self.place(rank, line, at).load(Relaxed).to_le_bytes());
        let name: Vec<u8> = name.take_while(|&byte| byte != 0).collect();
        let number = self.place(rank, line, NUMBER).load(Relaxed);
        match number {
            0 => "?".to_owned(),
            _ => format!("{}:{number}", String::from_utf8_lossy(&name)),
        }
    }
}
