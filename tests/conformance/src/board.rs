//! What the runner needs of a chip.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use flagpost_hal::CoreId;
use flagpost_tests::{MachinePlatform, Platform};

use crate::Record;

/// Most cores of a run.
pub const MAX_CORES: usize = 512;

/// What each core is doing, for a debugger, or for `cargo xtask qemu` when a run hangs: see
/// [`Status`]. Where each core has statics of its own, it stores into its own copy.
// SAFETY (`no_mangle`): no other symbol of an image bears this name.
#[allow(unsafe_code, reason = "a name for the host to look for")]
#[unsafe(no_mangle)]
pub static FLAGPOST_STATUS: [AtomicU32; MAX_CORES] = [const { AtomicU32::new(0) }; MAX_CORES];

/// What a core is doing, as a word of [`FLAGPOST_STATUS`].
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// 1: it waits in the board's barrier, or has finished.
    Waiting,
    /// 2 + k: it runs the k-th case begun, from 0.
    Runs(u32),
}

impl Status {
    /// The word.
    pub const fn word(self) -> u32 {
        match self {
            Self::Waiting => 1,
            Self::Runs(case) => case.saturating_add(2),
        }
    }
}

/// The cores of a chip, as the runner sees them. A value belongs to one core.
pub trait Board: Copy {
    /// The machine and its link, such as [`Plain`](flagpost_tests::Plain).
    type Platform: MachinePlatform;

    /// A new handle of the machine, for the core that calls this. It is asked for at the start, and
    /// once per case behind [`reset`](Self::reset).
    fn machine(&self) -> <Self::Platform as Platform>::Machine;

    /// Waits until all cores have called this. True if all of them said `well`. What a core stored
    /// before, all see afterwards.
    ///
    /// It may use whatever the chip has, but nothing that is tested: no region of the machine. It
    /// has no bound: a core that never comes leaves the others here.
    fn barrier(&self, well: bool) -> bool;

    /// Fills this core's regions with `garbage`, and brings its registers into the state that they
    /// have after a reset. Called by all cores, between two barriers.
    fn reset(&self, garbage: u32);

    /// Prints a record on a line of its own. Cores may call it at the same time.
    fn log(&self, record: &Record<'_>);

    /// A case begins, or none runs any more (`-`). For boards whose records of traps name it.
    fn enters(&self, case: &'static str) {
        let _ = case;
    }

    /// Stores what this core is doing. The default: into [`FLAGPOST_STATUS`].
    fn status(&self, core: CoreId, status: Status) {
        if let Some(word) = FLAGPOST_STATUS.get(core.index()) {
            word.store(status.word(), Relaxed);
        }
    }

    /// Hands the turn to others, where an emulator runs the cores in turns.
    fn give_way(&self) {
        core::hint::spin_loop();
    }

    /// The part of this core's stack that lies below all that is in use now, lowest word first.
    /// The runner paints it, says how much of it was used, and fails the case that used all. The
    /// default: nothing is known of the stack.
    fn stack(&self) -> &'static [AtomicU32] {
        &[]
    }
}
