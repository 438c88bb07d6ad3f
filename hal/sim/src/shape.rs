//! Which core owns which bytes.
//!
//! Inside the simulator every byte of shared memory has one number, its *flat* index: the `Memory`
//! regions of all cores one after the other, then the `MessageBuffer` regions.
//!
//! ```text
//!   0        m        2m             n·m      n·m+b
//!   ┌────────┬────────┬── ─ ─ ──┬────┬────────┬── ─ ─ ──┐
//!   │memory 0│memory 1│         │    │buffer 0│         │     n cores, m and b bytes each
//!   └────────┴────────┴── ─ ─ ──┴────┴────────┴── ─ ─ ──┘
//! ```
//! Region sizes are multiples of a line, so no line belongs to two cores.

use flagpost_hal::{Address, CoreId, Kind, Region};

use crate::caching::Stores;
use crate::config::{Config, Schedule};
use crate::mask::{LINE_MAX, Mask, span};
use crate::op::CHUNK;
use crate::plan::Plan;

/// Sizes and places of everything; the same on all cores.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) cores: u16,
    pub(crate) memory: u32,
    pub(crate) buffer: u32,
    /// Binary logarithm of the line's size.
    line_shift: u32,
    /// Most bytes of a cached load, and of a cached store, that move in one step: what is in the
    /// cache moves by lines, what is not by words.
    pub(crate) read_piece: u32,
    pub(crate) write_piece: u32,
    /// Bytes that leave the combining buffer in one piece.
    pub(crate) publish: u32,
    /// Whether there are test-and-set registers.
    pub(crate) registers: bool,
    /// Whether cores sleep until they are told.
    pub(crate) sleeps: bool,
    /// Whether there is a network.
    pub(crate) networked: bool,
    /// Whether it orders puts.
    pub(crate) orders_puts: bool,
    /// Where everything is.
    pub(crate) plan: Plan,
    /// Cycles per second of the cores' clocks.
    pub(crate) hertz: u64,
    /// Whether time is virtual time, and software can be charged for.
    pub(crate) timed: bool,
}

impl Shape {
    /// # Panics
    /// If there is no core, a size is not a multiple of a line, all memory together exceeds 4 GiB,
    /// the mesh is too small, or the unit of publishing is none.
    pub(crate) fn new(config: &Config) -> Self {
        let &Config {
            cores,
            memory_size: memory,
            buffer_size: buffer,
            line,
            publish,
            registers,
            ..
        } = config;
        let caching = config.caching;
        assert!(cores > 0, "a chip has at least one core");
        assert!(
            line.is_power_of_two() && (4..=LINE_MAX as u32).contains(&line),
            "a line has 4, 8, 16, 32 or 64 bytes, not {line}"
        );
        assert!(
            memory.is_multiple_of(line) && buffer.is_multiple_of(line),
            "memory_size and buffer_size must be multiples of the line's {line} bytes"
        );
        assert!(
            config.network.is_none() || (buffer >= 4 && line >= 8),
            "a core on a network counts events in its message buffer, and its cells have 8 bytes"
        );
        assert!(
            publish.is_power_of_two() && (4..=line.min(CHUNK as u32)).contains(&publish),
            "what is published at once has 4, 8, 16 or 32 bytes and is no longer than a line, not {publish}"
        );
        let bytes = u64::from(cores) * (u64::from(memory) + u64::from(buffer));
        assert!(bytes < 1 << 32, "more than 4 GiB of simulated memory");
        let timed = config.schedule == Schedule::Timed;
        Self {
            cores,
            memory,
            buffer,
            line_shift: line.trailing_zeros(),
            read_piece: if caching.has_uncached() { 4 } else { line },
            write_piece: match caching.stores {
                Stores::Allocate => line,
                _ => 4,
            },
            publish,
            registers,
            sleeps: config.sleeps,
            networked: config.network.is_some(),
            orders_puts: config.network.is_some_and(|wire| wire.ordered),
            plan: Plan::new(cores, config.mesh, config.controllers.as_ref()),
            hertz: if timed {
                config.latencies.costs().hertz
            } else {
                1_000_000_000
            },
            timed,
        }
    }

    /// A shape for tests.
    #[cfg(test)]
    pub(crate) fn of(cores: u16, memory_size: u32, buffer_size: u32, line: u32) -> Self {
        Self::new(&Config {
            cores,
            memory_size,
            buffer_size,
            line,
            ..Config::default()
        })
    }

    /// How many lines the chip's memory has.
    pub(crate) fn lines(&self) -> usize {
        (usize::from(self.cores) * (self.memory as usize + self.buffer as usize)) >> self.line_shift
    }

    /// Bytes per line.
    #[inline]
    pub(crate) const fn line(&self) -> u32 {
        1 << self.line_shift
    }

    /// The line of a flat index, and the byte in it.
    #[inline]
    pub(crate) const fn split(&self, flat: u32) -> (u32, usize) {
        (flat >> self.line_shift, (flat & (self.line() - 1)) as usize)
    }

    /// Flat index of a line's first byte.
    #[inline]
    pub(crate) const fn start(&self, line: u32) -> u32 {
        line << self.line_shift
    }

    /// The mask of all bytes of a line.
    #[inline]
    pub(crate) const fn whole(&self) -> u64 {
        u64::MAX >> (LINE_MAX as u32 - self.line())
    }

    /// Words per line.
    #[inline]
    pub(crate) const fn words(&self) -> usize {
        self.line() as usize / 4
    }

    /// The bytes of unit of publishing `number` of a line.
    #[inline]
    pub(crate) const fn unit(&self, number: usize) -> Mask {
        let publish = self.publish as usize;
        span(number * publish, publish)
    }

    /// Units of publishing per line.
    #[inline]
    pub(crate) const fn units(&self) -> usize {
        (self.line() / self.publish) as usize
    }

    /// Flat index of the `len` bytes at `at`, if they are all inside its region (U1).
    #[inline]
    pub(crate) fn flat(&self, at: Address, len: usize) -> Option<u32> {
        let (start, size) = match at.region.kind {
            Kind::Memory => (0, self.memory),
            Kind::MessageBuffer => (u32::from(self.cores) * self.memory, self.buffer),
        };
        let owner = at.region.owner.get();
        let inside = owner < self.cores && at.offset.saturating_add(len) <= size as usize;
        inside.then(|| start + u32::from(owner) * size + at.offset as u32)
    }

    /// The address of a flat index: the inverse of [`flat`](Self::flat).
    pub(crate) fn address(&self, flat: u32) -> Address {
        let memories = u32::from(self.cores) * self.memory;
        if flat < memories {
            let owner = CoreId::new((flat / self.memory) as u16);
            Region::memory(owner).at((flat % self.memory) as usize)
        } else {
            let rest = flat - memories;
            let owner = CoreId::new((rest / self.buffer) as u16);
            Region::message_buffer(owner).at((rest % self.buffer) as usize)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flat_and_address_are_inverse() {
        let shape = Shape::of(3, 64, 32, 32);
        for flat in 0..3 * 96 {
            assert_eq!(shape.flat(shape.address(flat), 1), Some(flat));
        }
    }

    #[test]
    fn nothing_outside_a_region_has_an_index() {
        let shape = Shape::of(3, 64, 32, 32);
        let last = Region::memory(CoreId::new(2)).at(60);
        assert!(shape.flat(last, 4).is_some());
        assert!(shape.flat(last, 5).is_none());
        assert!(shape.flat(last.plus(5), 0).is_none());
        assert!(shape.flat(last, usize::MAX).is_none());
        let nobody = Region::memory(CoreId::new(3)).at(0);
        assert!(shape.flat(nobody, 1).is_none());
    }
}
