//! Moving bytes between private caches and memory, on purpose.

use crate::{Address, Region};

/// Whole cache lines of one region.
///
/// Made only by [`Lines::covering`], which rounds outwards: a part of a line can be neither written
/// back nor invalidated alone, and invalidating it would discard its neighbour's unsaved stores.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Lines {
    region: Region,
    start: usize,
    end: usize,
}

impl Lines {
    /// The lines that hold the `len` bytes at `at`, as large as machine `C`'s lines. Empty if `len`
    /// is 0.
    pub const fn covering<C: Coherence + ?Sized>(at: Address, len: usize) -> Self {
        const { assert!(C::LINE.is_power_of_two()) };
        let line = C::LINE;
        let start = at.offset & !(line - 1);
        let end = match len {
            0 => start,
            // Saturates below the top line: no region reaches that far (U1).
            _ => (at.offset.saturating_add(len - 1) & !(line - 1)).saturating_add(line),
        };
        Self {
            region: at.region,
            start,
            end,
        }
    }

    /// The region they lie in.
    pub const fn region(self) -> Region {
        self.region
    }

    /// Offset of the first byte.
    pub const fn start(self) -> usize {
        self.start
    }

    /// Offset of the byte after the last one.
    pub const fn end(self) -> usize {
        self.end
    }

    /// The offset of each line's first byte, `line` bytes apart: [`Coherence::LINE`], or the true
    /// line size of the machine where that is a run-time value and smaller.
    pub fn starts(self, line: usize) -> impl Iterator<Item = usize> {
        (self.start..self.end).step_by(line.max(1))
    }
}

/// Moves bytes between this core's cache and memory, and orders its accesses.
///
/// # Safety
/// The protocols' guarantees rest on these promises of the implementor:
/// * S1. When `write_back(spans)` **and a following `drain()`** have returned, this core's earlier
///   cached stores to the lines are in memory.
/// * S2. After `invalidate(spans)`, cached loads of the lines do not return values fetched earlier.
/// * S3. `drain()` orders this core's earlier accesses ahead of its later stores: earlier loads
///   have their values, and earlier stores (uncached, bulk, written back) are in memory, before a
///   later store is.
/// * S4. Loads after `acquire()` (cached or not) are not satisfied earlier than loads before it.
/// * S5. None of these is moved across other memory accesses by the compiler.
/// * S6. An `invalidate` that drops more lines than those named loses nothing that is dirty in the
///   others: it writes them back, or they are never dirty.
/// * S7. `settle()`: this core's earlier stores are in memory before its later loads are satisfied.
///   (`drain` and `acquire` alone do not promise it. Locks made of plain words need it.)
/// * S8. Where [`COHERENT`](Self::COHERENT) is true: a cached load or store is one past the caches,
///   of the same bytes in the same memory. S1 and S2 hold without `write_back` and `invalidate`,
///   which no core needs to call.
///
/// # Contract for the caller
/// * The lines given to `invalidate` hold no dirty byte: some chips save
///   it, over what others stored, and some lose it.
/// * `write_back` may also drop the lines, and either call may act on the whole cache instead of
///   the lines named. So calls are batched: hence the slice.
/// * After a flag was seen: `acquire`, then `invalidate`, in this order. A core may prefetch at any
///   time, so an earlier `invalidate` is in vain.
#[expect(unsafe_code, reason = "the trait is unsafe to implement")]
pub unsafe trait Coherence {
    /// Line size in bytes, a power of two up to 256. Where it is known only at run time: an upper
    /// bound, used for layout. A region begins at a multiple of it, and has its lines for itself.
    /// All cores of a machine have the same, one without a cache too.
    const LINE: usize;

    /// True if the hardware keeps all caches in step, or if no cache holds a region: see S8. Then
    /// nothing is to be gained from keeping data out of memory, and a `drain` should cost less than
    /// a few stores: links announce data by one word, after a `drain`. All cores of a machine have
    /// the same, as links lay out their memory by it.
    const COHERENT: bool = false;

    /// Writes dirty bytes in these lines back to memory. May drop the lines from the cache.
    fn write_back(&self, spans: &[Lines]);

    /// Drops this core's copies of these lines.
    fn invalidate(&self, spans: &[Lines]);

    /// Orders this core's earlier accesses ahead of its later stores: see S3. Call it between data
    /// and the flag that announces them, and between reading a record and giving its place back.
    ///
    /// On Arm it is a DMB where [`write_back`](Self::write_back) does nothing, else a DSB: a cache
    /// operation has to be completed, for S1. It orders stores to all regions, in whichever memory
    /// each lies.
    fn drain(&self);

    /// Orders this core's loads: see S4. Call it between seeing a flag and reading the data that it
    /// announces.
    fn acquire(&self);

    /// `drain` and `acquire` in one, and this core's earlier stores ahead of its later loads:
    /// see S7. The default calls both: for machines where that is enough.
    #[track_caller]
    fn settle(&self) {
        self.drain();
        self.acquire();
    }
}
