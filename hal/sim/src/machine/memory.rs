//! Memory itself: bytes, and what the oracles and early loads must know of each byte's past.
//!
//! # Lazy garbage
//! Memory starts as seeded garbage, because real memory does, and because zeroes hide missing
//! initialisation. A line gets its garbage at its first touch in a run: runs that touch little of a
//! large memory start at once. `run` stamps tell lines of this run from leftovers of earlier ones.
//!
//! # Tickets
//! Every arrival of a store in memory takes the next *ticket*. A byte's stamp is the ticket of the
//! last arrival that *intended* to change it. The write-back of a line also rewrites bytes that its
//! core never stored to: their stamps stay, so the oracles see that something older lies there now.

use std::ops::{Index, IndexMut};

use crate::digest::Digest;
use crate::mask::{Bytes, LINE_MAX, Mask, WORDS, bits, blend, span, word};
use crate::rng::mix;
use crate::shape::Shape;

/// Bytes on their way to memory.
#[derive(Copy, Clone)]
pub(crate) struct Parcel {
    pub(crate) line: u32,
    /// The bytes that will be written.
    pub(crate) mask: Mask,
    /// Those of them that the program stored: all, except in a write-back.
    pub(crate) intended: Mask,
    /// Whether it is a whole dirty line.
    pub(crate) write_back: bool,
    /// Whether cached stores made it: a write-back, or a store that passed the cache.
    pub(crate) cached: bool,
    pub(crate) bytes: Bytes,
}

/// The parcel of a word store.
pub(super) fn word_parcel(line: u32, byte: usize, width: usize, value: u32) -> Parcel {
    let mut bytes = [0; LINE_MAX];
    bytes[byte..byte + width].copy_from_slice(&value.to_le_bytes()[..width]);
    plain(line, span(byte, width), bytes)
}

/// A parcel of bytes that the program stored.
pub(super) fn plain(line: u32, mask: Mask, bytes: Bytes) -> Parcel {
    debug_assert!(bits(mask).count() > 0, "a parcel holds at least one byte");
    Parcel {
        line,
        mask,
        intended: mask,
        write_back: false,
        cached: false,
        bytes,
    }
}

/// The run that a line was first touched in.
const RUN: usize = 0;
/// Largest stamp of a line.
const NEWEST: usize = 1;
/// Core whose store bears it.
const WRITER: usize = 2;
/// How many caches (and write-backs under way) hold a line dirty.
const DIRTY: usize = 3;

/// An array for each line, all of zeros. The host makes it when a line is first touched.
///
/// `vec![[0; N]; lines]` would write all of it at the start if `N` is more than 16.
struct Table<T, const N: usize>(Vec<T>);

impl<T: Copy + Default, const N: usize> Table<T, N> {
    fn new(lines: usize) -> Self {
        Self(vec![T::default(); lines * N])
    }
}

impl<T, const N: usize> Index<usize> for Table<T, N> {
    type Output = [T; N];

    #[inline]
    fn index(&self, line: usize) -> &[T; N] {
        &self.0.as_chunks().0[line]
    }
}

impl<T, const N: usize> IndexMut<usize> for Table<T, N> {
    #[inline]
    fn index_mut(&mut self, line: usize) -> &mut [T; N] {
        &mut self.0.as_chunks_mut().0[line]
    }
}

/// All lines of the chip. Separate tables, zeroed by the host on first touch, not one table of
/// structs: a large memory then costs only what is used of it.
pub(crate) struct Memory {
    shape: Shape,
    run: u32,
    seed: u64,
    ticket: u32,
    /// What is known of each line: see `RUN` and the others. In one place, as most accesses want
    /// all of it.
    about: Vec<[u32; 4]>,
    /// Lines that were touched in this run, and those of them that were written.
    touched: Vec<u32>,
    written: Vec<u32>,
    bytes: Table<u8, LINE_MAX>,
    stamps: Table<u32, LINE_MAX>,
    /// Former values of words; only in weak profiles.
    past: Option<Past>,
}

/// What early loads may return: each word's value before its latest change.
struct Past {
    value: Vec<[u32; WORDS]>,
    /// Ticket of the latest change.
    changed: Vec<[u32; WORDS]>,
    /// Who made it.
    by: Vec<[u16; WORDS]>,
    /// All changes: ticket, line, word.
    log: Vec<(u32, u32, u8)>,
}

/// A memory at some point of a run.
pub(super) struct Kept {
    ticket: u32,
    written: Vec<u32>,
    log: Vec<(u32, u32, u8)>,
    lines: Vec<KeptLine>,
}

/// A line that had been touched by then.
struct KeptLine {
    line: u32,
    about: [u32; 4],
    bytes: Bytes,
    stamps: [u32; LINE_MAX],
    past: Option<([u32; WORDS], [u32; WORDS], [u16; WORDS])>,
}

impl Memory {
    pub(crate) fn new(shape: Shape, weak: bool) -> Self {
        let lines = shape.lines();
        Self {
            shape,
            run: 0,
            seed: 0,
            ticket: 0,
            about: vec![[0; 4]; lines],
            touched: Vec::new(),
            written: Vec::new(),
            bytes: Table::new(lines),
            stamps: Table::new(lines),
            past: weak.then(|| Past {
                value: vec![[0; WORDS]; lines],
                changed: vec![[0; WORDS]; lines],
                by: vec![[0; WORDS]; lines],
                log: Vec::new(),
            }),
        }
    }

    /// Forgets everything and starts the next run with the garbage of `seed`.
    pub(crate) fn reset(&mut self, seed: u64) {
        self.seed = mix(seed ^ 0x6761_7262_6167_6521);
        self.ticket = 0;
        self.touched.clear();
        self.written.clear();
        if let Some(past) = &mut self.past {
            past.log.clear();
        }
        self.run = self.run.checked_add(1).unwrap_or_else(|| {
            self.about.fill([0; 4]);
            1
        });
    }

    /// Makes sure that the line has its garbage. Every accessor's first act.
    #[inline]
    fn touch(&mut self, line: u32) -> usize {
        let index = line as usize;
        if self.about[index][RUN] != self.run {
            self.fill_with_garbage(index);
        }
        index
    }

    #[cold]
    fn fill_with_garbage(&mut self, index: usize) {
        self.about[index] = [0; 4];
        self.about[index][RUN] = self.run;
        self.touched.push(index as u32);
        let line = self.shape.line() as usize;
        for (number, chunk) in self.bytes[index][..line].chunks_mut(8).enumerate() {
            let garbage = mix(self.seed.wrapping_add((index * line + number) as u64));
            chunk.copy_from_slice(&garbage.to_le_bytes()[..chunk.len()]);
        }
        self.stamps[index] = [0; LINE_MAX];
        if let Some(past) = &mut self.past {
            past.changed[index] = [0; WORDS];
        }
    }

    /// The line's bytes.
    #[inline]
    pub(crate) fn line(&mut self, line: u32) -> &Bytes {
        let index = self.touch(line);
        &self.bytes[index]
    }

    /// The bytes' stamps.
    #[inline]
    pub(crate) fn stamps(&self, line: u32) -> &[u32; LINE_MAX] {
        &self.stamps[line as usize]
    }

    /// The largest stamp in the line.
    #[inline]
    pub(crate) fn newest(&self, line: u32) -> u32 {
        self.about[line as usize][NEWEST]
    }

    /// The core that stored last to the line.
    pub(crate) fn last_writer(&self, line: u32) -> Option<u16> {
        (self.newest(line) != 0).then(|| self.about[line as usize][WRITER] as u16)
    }

    /// The ticket of the last arrival anywhere.
    #[inline]
    pub(crate) fn now(&self) -> u32 {
        self.ticket
    }

    /// How many hold the line dirty.
    #[inline]
    pub(crate) fn dirty(&mut self, line: u32) -> &mut u32 {
        let index = self.touch(line);
        &mut self.about[index][DIRTY]
    }

    /// The word's former value and the ticket of its latest change, if another core made that
    /// change after ticket `since`.
    #[inline]
    pub(crate) fn before(
        &self,
        core: u16,
        line: u32,
        index: usize,
        since: u32,
    ) -> Option<(u32, u32)> {
        let (past, line) = (self.past.as_ref()?, line as usize);
        let changed = past.changed[line][index];
        let other = changed > since && past.by[line][index] != core;
        other.then(|| (past.value[line][index], changed))
    }

    /// Words that changed after ticket `since`, each once: line and index.
    pub(crate) fn changes_since(&self, since: u32) -> impl Iterator<Item = (u32, usize)> {
        let log = self.past.as_ref().map_or(&[][..], |past| &past.log);
        let recent = log
            .iter()
            .rev()
            .take_while(move |(ticket, ..)| *ticket > since);
        let latest = |&&(ticket, line, index): &&(u32, u32, u8)| {
            let changed = self
                .past
                .as_ref()
                .map(|past| past.changed[line as usize][usize::from(index)]);
            changed == Some(ticket)
        };
        recent
            .filter(latest)
            .map(|&(_, line, index)| (line, usize::from(index)))
    }

    /// What makes another run's memory what this one is now.
    pub(super) fn keep(&self) -> Kept {
        let past = |line: usize| {
            let past = self.past.as_ref()?;
            Some((past.value[line], past.changed[line], past.by[line]))
        };
        let lines = self.touched.iter().map(|&line| {
            let index = line as usize;
            KeptLine {
                line,
                about: self.about[index],
                bytes: self.bytes[index],
                stamps: self.stamps[index],
                past: past(index),
            }
        });
        Kept {
            ticket: self.ticket,
            written: self.written.clone(),
            log: self
                .past
                .as_ref()
                .map_or(Vec::new(), |past| past.log.clone()),
            lines: lines.collect(),
        }
    }

    /// Makes this memory, fresh from a reset with the same seed, what `kept` says.
    pub(super) fn restore(&mut self, kept: &Kept) {
        self.ticket = kept.ticket;
        self.written.clone_from(&kept.written);
        for line in &kept.lines {
            let index = line.line as usize;
            self.touched.push(line.line);
            self.about[index] = line.about;
            self.about[index][RUN] = self.run;
            self.bytes[index] = line.bytes;
            self.stamps[index] = line.stamps;
            if let (Some(past), Some((value, changed, by))) = (&mut self.past, line.past) {
                past.value[index] = value;
                past.changed[index] = changed;
                past.by[index] = by;
            }
        }
        if let Some(past) = &mut self.past {
            past.log.clone_from(&kept.log);
        }
    }

    /// A digest of all bytes that may differ from the garbage at the start.
    pub(crate) fn digest(&self) -> u128 {
        let line = self.shape.line() as usize;
        self.written.iter().fold(0, |all, &number| {
            let mut one = Digest::new(u64::from(number) << 8);
            one.bytes(&self.bytes[number as usize][..line]);
            all ^ one.value()
        })
    }

    /// Writes what arrives from `core`. Returns the ticket, and whether any byte differs now.
    pub(crate) fn write(&mut self, core: u16, parcel: &Parcel) -> (u32, bool) {
        let line = self.touch(parcel.line);
        self.ticket += 1;
        let ticket = self.ticket;
        let old = self.bytes[line];
        blend(&mut self.bytes[line], &parcel.bytes, parcel.mask);
        let new = &self.bytes[line];
        if let Some(past) = &mut self.past {
            for index in (0..self.shape.words()).filter(|&w| word(&old, w) != word(new, w)) {
                past.value[line][index] = word(&old, index);
                past.changed[line][index] = ticket;
                past.by[line][index] = core;
                past.log.push((ticket, parcel.line, index as u8));
            }
        }
        if parcel.intended != 0 {
            if self.about[line][NEWEST] == 0 {
                self.written.push(parcel.line);
            }
            bits(parcel.intended).for_each(|bit| self.stamps[line][bit] = ticket);
            self.about[line][NEWEST] = ticket;
            self.about[line][WRITER] = core.into();
        }
        (ticket, differ(&old, new))
    }

    /// [`write`](Self::write) of the low `width` bytes of a value, where nobody asks for former
    /// values. Returns whether any byte differs now.
    #[inline]
    pub(crate) fn write_word(
        &mut self,
        core: u16,
        line: u32,
        byte: usize,
        width: usize,
        value: u32,
    ) -> bool {
        debug_assert!(self.past.is_none(), "weak profiles remember");
        let index = self.touch(line);
        self.ticket += 1;
        let about = &mut self.about[index];
        if about[NEWEST] == 0 {
            self.written.push(line);
        }
        about[NEWEST] = self.ticket;
        about[WRITER] = core.into();
        let (bytes, stamps) = (&mut self.bytes[index], &mut self.stamps[index]);
        let mut differs = false;
        let pairs = bytes[byte..byte + width]
            .iter_mut()
            .zip(&mut stamps[byte..byte + width]);
        for ((old, stamp), new) in pairs.zip(value.to_le_bytes()) {
            differs |= *old != new;
            (*old, *stamp) = (new, self.ticket);
        }
        differs
    }
}

/// Whether any byte differs; in place, where `!=` would call a function of the C library.
#[inline]
fn differ(a: &Bytes, b: &Bytes) -> bool {
    let pairs = a.iter().zip(b);
    pairs.fold(0, |all, (a, b)| all | (a ^ b)) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_bits() {
        assert_eq!(span(0, LINE_MAX), Mask::MAX);
        assert_eq!(span(4, 4), 0xf0);
        assert_eq!(span(7, 0), 0);
        assert_eq!(bits(0b1010).collect::<Vec<_>>(), [1, 3]);
    }

    #[test]
    fn garbage_depends_on_seed_and_line_and_comes_back() {
        let mut memory = Memory::new(Shape::of(1, 64, 0, 32), false);
        memory.reset(1);
        let (first, other) = (*memory.line(0), *memory.line(1));
        assert_ne!(first, other);
        memory.reset(2);
        assert_ne!(*memory.line(0), first);
        memory.reset(1);
        assert_eq!(*memory.line(0), first);
    }

    #[test]
    fn only_intended_bytes_are_stamped() {
        let mut memory = Memory::new(Shape::of(1, 32, 0, 32), false);
        memory.reset(1);
        let parcel = Parcel {
            line: 0,
            mask: span(0, 32),
            intended: 0b1,
            write_back: true,
            cached: true,
            bytes: [7; LINE_MAX],
        };
        assert_eq!(memory.write(0, &parcel), (1, true));
        assert_eq!(memory.line(0)[..32], [7; 32]);
        assert_eq!(memory.stamps(0)[..2], [1, 0]);
    }
}
