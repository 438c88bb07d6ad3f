//! Memory that several hosts share without coherence between them: a CXL pool, a DAX device.
//!
//! Inside of a host caches are coherent; between hosts only what is written back arrives, and only
//! who drops a line sees what did. So every uncached access drops its lines first:
//!
//! | call | instructions, in order (x86_64) |
//! |---|---|
//! | load a word | `clflushopt`, `mfence`, load |
//! | store a word | `clflushopt`, `sfence`, `movnti`, `sfence` |
//! | bulk store | `clflushopt` per line, `sfence`, `movnti` per 8 bytes, `maskmovdqu` at the ends |
//! | bulk load | `clflushopt` per line, `mfence`, loads |
//! | `write_back`; `invalidate` | `clwb` per line; `clflushopt` per line, `mfence` |
//! | `drain` | `sfence` |
//! | `acquire`, `settle` | `mfence` |
//!
//! `movnti` sends the bytes that it stores and no others, so that words of different writers may
//! share a line. A load leaves a clean copy of its line behind, hence the drop in front of each
//! store: a store to a line that is held would stay there, and travel with the whole line.
//!
//! CPU atomics act in one host's caches. So this machine has neither
//! [`TestAndSet`](flagpost_hal::TestAndSet) nor [`NativeAtomics`](flagpost_hal::NativeAtomics):
//! locks are those of [`WithSoftwareLock`](flagpost_hal::WithSoftwareLock), which are plain words.
//! A program that asks for either does not compile:
//! ```
//! # use flagpost_hal::{NativeAtomics, TestAndSet, WithSoftwareLock};
//! # use flagpost_hal_linux::{Coherent, Linux, SoftwareCoherent};
//! # fn locks<M: TestAndSet>() {}
//! # fn atomics<M: NativeAtomics>() {}
//! locks::<WithSoftwareLock<Linux<SoftwareCoherent>>>();
//! atomics::<Linux<Coherent>>();
//! ```
//! ```compile_fail
//! # use flagpost_hal::{NativeAtomics, TestAndSet, WithSoftwareLock};
//! # use flagpost_hal_linux::{Coherent, Linux, SoftwareCoherent};
//! # fn locks<M: TestAndSet>() {}
//! locks::<Linux<SoftwareCoherent>>();
//! ```
//! ```compile_fail
//! # use flagpost_hal::{NativeAtomics, TestAndSet, WithSoftwareLock};
//! # use flagpost_hal_linux::{Coherent, Linux, SoftwareCoherent};
//! # fn atomics<M: NativeAtomics>() {}
//! atomics::<Linux<SoftwareCoherent>>();
//! ```
//!
//! # Source
//! The sequences are those of cMPI (SC'25), but for its compare-and-swap, which is not one between
//! hosts.

use std::cell::Cell;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::Ordering::Relaxed;

use flagpost_hal::{Address, CachedMemory, Coherence, Lines, UncachedMemory};

use crate::bytes::Bytes;
use crate::cache::{self, Instructions};
use crate::machine::sealed::Sealed;
use crate::machine::{Linux, Mode};
use crate::shape::PAGE;

/// The mode for memory that hosts share without coherence: cache instructions, and no atomics.
#[derive(Debug)]
pub struct SoftwareCoherent {
    instructions: Instructions,
    /// Lines written back or dropped so far.
    lines: Cell<u64>,
}

impl Sealed for SoftwareCoherent {}

impl Mode for SoftwareCoherent {
    const NAME: &'static str = "software-coherent";

    fn new() -> Self {
        Self {
            instructions: Instructions::detect(),
            lines: Cell::new(0),
        }
    }
}

impl SoftwareCoherent {
    /// How many cache instructions this rank has executed: one per line that was written back or
    /// dropped.
    pub fn cache_instructions(&self) -> u64 {
        self.lines.get()
    }

    /// What lines are written back by, and what they are dropped by, on this processor.
    pub fn names(&self) -> [&'static str; 2] {
        [
            self.instructions.write_back_name(),
            self.instructions.discard_name(),
        ]
    }

    fn count(&self, lines: u64) {
        self.lines.set(self.lines.get().wrapping_add(lines));
    }

    /// Drops the lines of these bytes, before they are loaded.
    fn refetch(&self, bytes: Bytes<'_>) {
        self.count(self.instructions.discard(bytes));
        cache::settled();
    }

    /// Stores past the cache.
    fn stream(&self, to: Bytes<'_>, from: &[u8]) {
        self.count(self.instructions.stream(to, from));
    }
}

impl UncachedMemory for Linux<SoftwareCoherent> {
    #[track_caller]
    fn load_u8(&self, at: Address) -> u8 {
        self.mode().refetch(self.regions().bytes(at, 1));
        self.regions().byte(at).load(Relaxed)
    }

    #[track_caller]
    fn store_u8(&self, at: Address, value: u8) {
        self.mode().stream(self.regions().bytes(at, 1), &[value]);
        cache::stored();
    }

    #[track_caller]
    fn load_u32(&self, at: Address) -> u32 {
        let word = self.regions().word(at);
        self.mode().refetch(self.regions().bytes(at, 4));
        word.load(Relaxed)
    }

    #[track_caller]
    fn store_u32(&self, at: Address, value: u32) {
        self.regions().word(at);
        let bytes = self.regions().bytes(at, 4);
        self.mode().stream(bytes, &value.to_le_bytes());
        // What is combined leaves at once: who waits for this word must not wait for this rank's
        // next drain.
        cache::stored();
    }

    #[track_caller]
    fn store_bytes(&self, at: Address, from: &[u8]) {
        self.mode()
            .stream(self.regions().bytes(at, from.len()), from);
    }

    #[track_caller]
    fn load_bytes(&self, at: Address, into: &mut [u8]) {
        let bytes = self.regions().bytes(at, into.len());
        // What is on its way to memory from here is there first (U5).
        cache::stored();
        self.mode().refetch(bytes);
        bytes.load(into);
    }

    #[track_caller]
    fn zero(&self, at: Address, len: usize) -> bool {
        self.give_back(at, len)
    }
}

impl CachedMemory for Linux<SoftwareCoherent> {
    #[track_caller]
    fn read(&self, at: Address, into: &mut [u8]) {
        self.regions().bytes(at, into.len()).load(into);
    }

    #[track_caller]
    fn write(&self, at: Address, from: &[u8]) {
        self.regions().bytes(at, from.len()).store(from);
    }
}

// SAFETY: see the table of the module. S1: `clwb` (or what stands in) and `sfence`. S2:
// `clflushopt`, and `mfence` behind it: loads do not pass it. S3: `sfence` orders all stores,
// streamed ones too, and loads are never behind later stores. S4, S7: `mfence`. S5: the fences are
// assembler that may touch memory. S6: lines are written back when dropped, never lost.
unsafe impl Coherence for Linux<SoftwareCoherent> {
    const LINE: usize = cache::LINE;

    fn write_back(&self, spans: &[Lines]) {
        for span in spans {
            let mode = self.mode();
            self.each_used(span, |bytes| {
                mode.count(mode.instructions.write_back(bytes))
            });
        }
    }

    fn invalidate(&self, spans: &[Lines]) {
        for span in spans {
            let mode = self.mode();
            self.each_used(span, |bytes| mode.count(mode.instructions.discard(bytes)));
        }
        cache::settled();
    }

    fn drain(&self) {
        cache::stored();
    }

    fn acquire(&self) {
        cache::settled();
    }

    fn settle(&self) {
        cache::settled();
    }
}

/// The most bytes of a span whose pages are not looked at.
const SHORT: usize = 1 << 20;

impl Linux<SoftwareCoherent> {
    /// Calls `act` with the bytes of a span that this process may have in a cache. Of a long span
    /// these are the pages that it has mapped, as the system says: an instruction for a line of
    /// another page would take memory for that.
    fn each_used(&self, span: &Lines, mut act: impl FnMut(Bytes<'_>)) {
        let (at, len) = (span.region().at(span.start()), self.len_of(span));
        let all = self.regions().bytes(at, len);
        let pages = (len > SHORT).then(|| File::open("/proc/self/pagemap").ok());
        let Some(pages) = pages.flatten() else {
            return act(all);
        };
        let end = at.offset + len;
        let mut start = at.offset;
        let mut entries = [0; 8 * 512];
        while start < end {
            let address = all.as_ptr().addr() + (start - at.offset);
            let place = (address / PAGE * 8) as u64;
            let known = pages.read_exact_at(&mut entries, place).is_ok();
            for entry in entries.as_chunks::<8>().0 {
                let next = (start / PAGE + 1) * PAGE;
                let part = self
                    .regions()
                    .bytes(at.region.at(start), next.min(end) - start);
                // Mapped, or on its way to a disk.
                if !known || u64::from_le_bytes(*entry) >> 62 != 0 {
                    act(part);
                }
                start = next.min(end);
                if start == end {
                    break;
                }
            }
        }
    }

    /// Bytes of a span; lines behind the end of the region are nobody's.
    fn len_of(&self, span: &Lines) -> usize {
        span.end()
            .min(self.regions().memory())
            .saturating_sub(span.start())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::on_ranks;
    use flagpost_hal::{CoreId, Region};

    /// How many cache instructions `act` takes.
    fn instructions(act: impl Fn(&Linux<SoftwareCoherent>, Address) + Sync) -> u64 {
        let counts = on_ranks(1, |machine: Linux<SoftwareCoherent>| {
            let before = machine.mode().cache_instructions();
            act(&machine, Region::memory(CoreId::new(0)).at(0));
            let after = machine.mode().cache_instructions();
            after - before
        });
        counts[0]
    }

    #[test]
    fn each_line_takes_one_instruction() {
        let one = |act: fn(&Linux<SoftwareCoherent>, Address)| instructions(act);
        assert_eq!(one(|machine, at| machine.store_u32(at, 1)), 1);
        assert_eq!(one(|machine, at| assert_eq!(machine.load_u32(at), 0)), 1);
        let line = cache::LINE as u64;
        assert_eq!(
            one(|machine, at| machine.store_bytes(at, &[1; 1024])),
            1024 / line
        );
        assert_eq!(
            one(|machine, at| machine.store_bytes(at.plus(60), &[1; 8])),
            1 + u64::from(line == 64)
        );
        let lines = one(|machine, at| {
            machine.write(at, &[1; 512]);
            machine.write_back(&[Lines::covering::<Linux<SoftwareCoherent>>(at, 512)]);
        });
        assert_eq!(lines, 512 / line);
    }
}
