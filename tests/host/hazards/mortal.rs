//! A machine that stops in the middle of a program, at an access of one's choice.

use std::cell::Cell;
use std::panic::resume_unwind;
use std::rc::Rc;
use std::thread::panicking;

use flagpost_explore::forward;
use flagpost_hal::{Address, Coherence, CoreId, Lines, Relax, TestAndSet, UncachedMemory, Watch};

use crate::hazards::bench::Core;

/// A core that stops for good at its `left`-th access from now.
#[derive(Clone)]
pub struct Mortal {
    pub core: Core,
    pub left: Rc<Cell<u32>>,
    /// A bit for each register that it holds: its owner's.
    pub held: Rc<Cell<u32>>,
}

/// What unwinds a core that stops.
pub struct Stopped;

/// In a set of ranks, this one.
pub const fn bit(rank: u16) -> u32 {
    1 << rank
}

/// It does not stop.
pub const NEVER: u32 = u32::MAX;

impl Mortal {
    /// Counts an access. False: it must not happen, the core has stopped.
    fn lives(&self) -> bool {
        match self.left.get() {
            NEVER => return true,
            0 if panicking() => return false,
            0 => resume_unwind(Box::new(Stopped)),
            left => self.left.set(left - 1),
        }
        true
    }
}

// SAFETY: `SimCore` keeps the promises; each call here is one of its own, or none because the core
// has stopped.
#[expect(unsafe_code, reason = "the trait is unsafe to implement")]
unsafe impl Coherence for Mortal {
    const LINE: usize = Core::LINE;

    forward!(in Coherence => core [lives]:
        write_back(spans: &[Lines]); invalidate(spans: &[Lines]); drain());
    forward!(in Coherence => core: acquire());
}

impl TestAndSet for Mortal {
    fn test_and_set(&self, of: CoreId) -> bool {
        self.lives();
        let taken = self.core.test_and_set(of);
        if taken {
            self.held.set(self.held.get() | bit(of.get()));
        }
        taken
    }

    fn clear(&self, of: CoreId) {
        // On the way out of a core that has stopped, locks stay taken.
        if self.lives() {
            self.held.set(self.held.get() & !bit(of.get()));
            self.core.clear(of);
        }
    }
}

impl UncachedMemory for Mortal {
    // Bulk loads by the default: it may stop at each word.
    forward!(in UncachedMemory => core [lives]:
        load_u8(at: Address) -> u8;
        store_u8(at: Address, value: u8);
        load_u32(at: Address) -> u32;
        store_u32(at: Address, value: u32);
        store_bytes(at: Address, from: &[u8]));
}

forward!(CachedMemory for Mortal => core [lives]);
forward!(MessageBuffer, Clock for Mortal => core);

forward!(Topology for Mortal => core {
    fn lost(&self) -> Option<CoreId> {
        self.core.lost()
    }
});

impl Relax for Mortal {
    forward!(in Relax => core: relax(watched: &[Watch]));
}
