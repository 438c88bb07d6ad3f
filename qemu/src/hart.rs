//! The handle that a hart holds of the machine: where it is, what time it is, how it waits.

use core::marker::PhantomData;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use flagpost_hal::{Clock, CoreId, Doorbell, Position, Relax, Topology, UncachedMemory, Watch};

use crate::boot;

/// Most harts that an image can have: as many as QEMU's board.
pub const MAX_HARTS: usize = 512;

/// Tiles per row of the mesh, as on the SCC.
const COLUMNS: u16 = 6;

/// Cores per tile, as on the SCC.
const TILE: u16 = 2;

/// Bells: 1 = rung. A bell is a word that its owner polls; the yielding poll is what makes it cheap.
static BELLS: [AtomicU32; MAX_HARTS] = [const { AtomicU32::new(0) }; MAX_HARTS];

/// This hart's handle of the machine.
///
/// It is neither `Send` nor `Sync`: it names the hart that runs the code that holds it, and the private
/// image of that hart is reached through it without a lock.
#[derive(Copy, Clone)]
pub struct Hart {
    core: u16,
    cores: u16,
    stays_here: PhantomData<*mut ()>,
}

impl Hart {
    /// The handle of the hart that calls this. Waits until the device tree has been read.
    pub fn current() -> Self {
        Self {
            core: boot::core_number(),
            cores: boot::board().harts,
            stays_here: PhantomData,
        }
    }

    /// Takes back a ring that nobody has waited for.
    pub(crate) fn silence_bell(self) {
        BELLS[usize::from(self.core)].store(0, Relaxed);
    }
}

impl Topology for Hart {
    fn cores(&self) -> u16 {
        self.cores
    }

    fn core(&self) -> CoreId {
        CoreId::new(self.core)
    }

    fn position(&self, core: CoreId) -> Position {
        let tile = core.get() / TILE;
        Position {
            x: tile % COLUMNS,
            y: tile / COLUMNS,
        }
    }

    fn memory_size(&self) -> u32 {
        crate::memory::MEMORY_SIZE
    }
}

impl Clock for Hart {
    /// With `-icount` this counts the instructions of *all* harts, since they share one virtual time.
    fn cycles(&self) -> u64 {
        boot::cycles()
    }

    /// True under `-icount shift=0`: one instruction per virtual nanosecond.
    fn hertz(&self) -> u64 {
        1_000_000_000
    }
}

/// Turns that a relaxing hart gives away before it returns for no reason (R3).
const TURNS: u32 = 64;

impl Relax for Hart {
    /// Gives turns away until a watched word differs, or there have been enough of them. Looking at the
    /// words here costs a waiting hart some twenty instructions per turn, going back to the caller's loop
    /// several hundred: with 512 harts, nearly all of them waiting, that is what a run consists of.
    fn relax(&self, watched: &[Watch]) {
        boot::yield_core();
        let same = |watch: &Watch| self.load_u32(watch.at) == watch.seen;
        for _ in 1..TURNS {
            if watched.is_empty() || !watched.iter().all(same) {
                return;
            }
            boot::yield_core();
        }
    }
}

impl Doorbell for Hart {
    #[track_caller]
    fn ring(&self, core: CoreId) {
        assert!(core.get() < self.cores, "{core}: no such core");
        // ORDERING: Relaxed: a ring orders nothing; the caller drains first.
        BELLS[core.index()].store(1, Relaxed);
    }

    fn wait_for_ring(&self) {
        // A swap, not a load and a store: a ring between the two would be lost.
        while BELLS[usize::from(self.core)].swap(0, Relaxed) == 0 {
            boot::yield_core();
        }
    }
}
