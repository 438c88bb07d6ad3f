//! Two cores of no chip in particular, with their regions in one memory.

use core::sync::atomic::{Ordering, fence};

use flagpost_hal::{
    Address, CachedMemory, Clock, Coherence, CoreId, Lines, MessageBuffer, Relax, TestAndSet,
    Topology, UncachedMemory, Watch,
};

use crate::REGION;

/// Where the regions lie; a lock per core; a clock; this core's number.
const REGIONS: usize = 0x2008_0000;
const LOCKS: usize = 0xD000_0100;
const CLOCK: usize = 0x400B_000C;
const CORE: usize = 0xD000_0000;

/// A core, with `COHERENT` caches or none.
#[derive(Debug)]
pub struct Core<const COHERENT: bool>;

/// The bytes of `at`, if they are in a region.
#[inline(always)]
fn place(at: Address, len: usize) -> Option<*mut u8> {
    let end = at.offset.checked_add(len)?;
    let owner = at.region.owner.index();
    (owner < 2 && end <= REGION)
        .then(|| core::ptr::with_exposed_provenance_mut(REGIONS + owner * REGION + at.offset))
}

/// A register.
fn register(at: usize) -> *mut u32 {
    core::ptr::with_exposed_provenance_mut(at)
}

impl<const COHERENT: bool> UncachedMemory for Core<COHERENT> {
    fn load_u8(&self, at: Address) -> u8 {
        // SAFETY: inside of a region.
        place(at, 1).map_or(0, |byte| unsafe { byte.read_volatile() })
    }

    fn store_u8(&self, at: Address, value: u8) {
        if let Some(byte) = place(at, 1) {
            // SAFETY: inside of a region.
            unsafe { byte.write_volatile(value) };
        }
    }

    fn load_u32(&self, at: Address) -> u32 {
        // SAFETY: inside of a region, and aligned, as U1 says.
        place(at, 4).map_or(0, |word| unsafe { word.cast::<u32>().read_volatile() })
    }

    fn store_u32(&self, at: Address, value: u32) {
        if let Some(word) = place(at, 4) {
            // SAFETY: inside of a region, and aligned, as U1 says.
            unsafe { word.cast::<u32>().write_volatile(value) };
        }
    }

    fn store_bytes(&self, at: Address, from: &[u8]) {
        if let Some(to) = place(at, from.len()) {
            for (index, byte) in from.iter().enumerate() {
                // SAFETY: inside of a region.
                unsafe { to.add(index).write_volatile(*byte) };
            }
        }
    }
}

impl<const COHERENT: bool> CachedMemory for Core<COHERENT> {
    fn read(&self, at: Address, into: &mut [u8]) {
        if let Some(from) = place(at, into.len()) {
            for (index, byte) in into.iter_mut().enumerate() {
                // SAFETY: inside of a region.
                *byte = unsafe { from.add(index).read_volatile() };
            }
        }
    }

    fn write(&self, at: Address, from: &[u8]) {
        self.store_bytes(at, from);
    }
}

// SAFETY: nothing runs.
unsafe impl<const COHERENT: bool> Coherence for Core<COHERENT> {
    const LINE: usize = 32;
    const COHERENT: bool = COHERENT;

    fn write_back(&self, spans: &[Lines]) {
        if !COHERENT {
            let by = register(0xE000_EF68);
            for lines in spans {
                let mut at = lines.start();
                while at < lines.end() {
                    // SAFETY: a register.
                    unsafe { by.write_volatile(at as u32) };
                    at += Self::LINE;
                }
            }
        }
    }

    fn invalidate(&self, spans: &[Lines]) {
        self.write_back(spans);
    }

    fn drain(&self) {
        fence(Ordering::SeqCst);
    }

    fn acquire(&self) {
        fence(Ordering::SeqCst);
    }
}

impl<const COHERENT: bool> TestAndSet for Core<COHERENT> {
    fn test_and_set(&self, of: CoreId) -> bool {
        // SAFETY: a register.
        unsafe { register(LOCKS + 4 * (of.index() & 1)).read_volatile() != 0 }
    }

    fn clear(&self, of: CoreId) {
        // SAFETY: a register.
        unsafe { register(LOCKS + 4 * (of.index() & 1)).write_volatile(1) };
    }
}

impl<const COHERENT: bool> MessageBuffer for Core<COHERENT> {
    fn message_buffer_size(&self) -> usize {
        0
    }
}

impl<const COHERENT: bool> Topology for Core<COHERENT> {
    fn cores(&self) -> u16 {
        2
    }

    fn core(&self) -> CoreId {
        // SAFETY: a register.
        CoreId::new(unsafe { register(CORE).read_volatile() } as u16 & 1)
    }

    fn memory_size(&self) -> usize {
        REGION
    }
}

impl<const COHERENT: bool> Clock for Core<COHERENT> {
    fn cycles(&self) -> u64 {
        let [low, high] = [CLOCK, CLOCK - 4].map(|at| {
            // SAFETY: a register.
            u64::from(unsafe { register(at).read_volatile() })
        });
        high << 32 | low
    }

    fn hertz(&self) -> u64 {
        1_000_000
    }
}

impl<const COHERENT: bool> Relax for Core<COHERENT> {
    fn relax(&self, _: &[Watch]) {
        core::hint::spin_loop();
    }
}
