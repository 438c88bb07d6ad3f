//! The handle that a hart holds of the machine: who it is, what time it is, how it waits.

use core::marker::PhantomData;
use core::sync::atomic::{Ordering::SeqCst, fence};

use flagpost_hal::CoreId;
use flagpost_scc::{Fault, Map, Mapping, Processor, Scc};

use crate::board::{self, MAX_HARTS};
use crate::csr;

/// Cores of the SCC: up to here the board's address map is the chip's own.
const SCC_CORES: u16 = 48;

/// 256 tiles: the largest mesh that the SCC's formats can address, with smaller slots.
const LARGE: Map = match Map::mesh(16, 16) {
    Some(map) => map,
    None => panic!("16 x 16 tiles are a mesh"),
};

const _: () = assert!(LARGE.cores() as usize == MAX_HARTS);

/// This hart's handle of the machine: a bus for the SCC port.
///
/// Programs use the port over it, [`Hart::machine`]. The handle is neither `Send` nor `Sync`: it
/// names the hart that runs the code that holds it, and what is private to that hart is reached
/// through it without a lock.
#[derive(Copy, Clone)]
pub struct Hart {
    core: u16,
    pub(crate) map: Map,
    stays_here: PhantomData<*mut ()>,
}

impl Hart {
    /// The handle of the hart that calls this. Waits until the device tree has been read.
    pub fn current() -> Self {
        let board = board::board();
        let harts = board.harts;
        let map = if harts <= SCC_CORES { Map::SCC } else { LARGE };
        Self {
            core: csr::core_number(),
            // The linker script keeps it below 512 MiB.
            map: map.with_cores(harts).with_memory(board.memory_size as u32),
            stays_here: PhantomData,
        }
    }

    /// The machine that the kernel runs on: the SCC's port, on this hart. Call it once for each
    /// program, before other harts count on this one: it silences the bell.
    #[track_caller]
    pub fn machine(self, mapping: Mapping) -> Scc<Self> {
        Scc::start(self, self.map, mapping)
    }

    /// Number of this core.
    pub const fn core(self) -> CoreId {
        CoreId::new(self.core)
    }

    /// How many cores the machine has.
    pub const fn cores(self) -> u16 {
        self.map.cores()
    }

    /// Cycles so far. With `-icount` these are the instructions of *all* harts, since they share
    /// one virtual time.
    pub fn cycles(self) -> u64 {
        csr::cycles()
    }

    /// Hands the turn to the next hart.
    pub fn give_way(self) {
        csr::yield_core();
    }
}

impl Processor for Hart {
    fn cl1invmb(&self) {
        self.drop_messages();
    }

    /// The port calls it only to displace.
    fn wbinvd(&self) {
        unreachable!("no line is displaced here");
    }

    fn rdtsc(&self) -> u64 {
        self.cycles()
    }

    /// True under `-icount shift=0`: one instruction per virtual nanosecond.
    fn hertz(&self) -> u64 {
        1_000_000_000
    }

    #[track_caller]
    fn stop(&self, fault: Fault) -> ! {
        panic!("{fault}")
    }

    /// The harts' memory is weakly ordered, the chip's is not.
    fn order(&self) {
        fence(SeqCst);
    }
}
