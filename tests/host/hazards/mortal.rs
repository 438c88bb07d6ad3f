//! A machine that stops in the middle of a program, at an access of one's choice.

use std::cell::Cell;
use std::panic::{Location, resume_unwind};
use std::rc::Rc;
use std::thread::panicking;

use flagpost_hal::{
    Address, CachedMemory, Clock, Coherence, CoreId, Lines, MessageBuffer, Relax, TestAndSet,
    Topology, UncachedMemory, Watch,
};

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

impl UncachedMemory for Mortal {
    fn load_u8(&self, at: Address) -> u8 {
        self.lives();
        self.core.load_u8(at)
    }

    fn store_u8(&self, at: Address, value: u8) {
        self.lives();
        self.core.store_u8(at, value);
    }

    fn load_u32(&self, at: Address) -> u32 {
        self.lives();
        self.core.load_u32(at)
    }

    fn store_u32(&self, at: Address, value: u32) {
        self.lives();
        self.core.store_u32(at, value);
    }

    fn store_bytes(&self, at: Address, from: &[u8]) {
        self.lives();
        self.core.store_bytes(at, from);
    }
}

impl CachedMemory for Mortal {
    fn read(&self, at: Address, into: &mut [u8]) {
        self.lives();
        self.core.read(at, into);
    }

    fn write(&self, at: Address, from: &[u8]) {
        self.lives();
        self.core.write(at, from);
    }
}

// SAFETY: `SimCore` keeps the promises; each call here is one of its own, or none because the core
// has stopped.
#[expect(unsafe_code, reason = "the trait is unsafe to implement")]
unsafe impl Coherence for Mortal {
    const LINE: usize = Core::LINE;

    fn write_back(&self, spans: &[Lines]) {
        self.lives();
        self.core.write_back(spans);
    }

    fn invalidate(&self, spans: &[Lines]) {
        self.lives();
        self.core.invalidate(spans);
    }

    fn drain(&self) {
        self.lives();
        self.core.drain();
    }

    fn acquire(&self) {
        self.core.acquire();
    }
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

impl MessageBuffer for Mortal {
    fn message_buffer_size(&self) -> u32 {
        self.core.message_buffer_size()
    }
}

impl Topology for Mortal {
    const LISTENS: bool = true;

    fn cores(&self) -> u16 {
        self.core.cores()
    }

    fn core(&self) -> CoreId {
        self.core.core()
    }

    fn memory_size(&self) -> u32 {
        self.core.memory_size()
    }

    #[inline(always)]
    fn called(&self, place: &'static Location<'static>) {
        self.core.called(place);
    }

    fn lost(&self) -> Option<CoreId> {
        self.core.lost()
    }
}

impl Clock for Mortal {
    fn cycles(&self) -> u64 {
        self.core.cycles()
    }

    fn hertz(&self) -> u64 {
        self.core.hertz()
    }
}

impl Relax for Mortal {
    fn relax(&self, watched: &[Watch]) {
        self.core.relax(watched);
    }
}
