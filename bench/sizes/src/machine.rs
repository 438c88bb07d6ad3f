//! Two cores of no chip in particular, with their regions in one memory.

use core::ptr::{self, NonNull};
use core::sync::atomic::{Ordering, fence};

use flagpost_hal::{
    Address, CachedMemory, Clock, Coherence, CoreId, Lines, MessageBuffer, Relax, TestAndSet,
    Topology, UncachedMemory, Watch,
};
use volatile::VolatilePtr;

use crate::REGION;

/// Where the regions lie; a lock per core; a clock; this core's number.
const REGIONS: usize = 0x2008_0000;
const LOCKS: usize = 0xD000_0100;
const CLOCK: usize = 0x400B_000C;
const CORE: usize = 0xD000_0000;

/// A core, with `COHERENT` caches or none.
#[derive(Debug)]
pub struct Core<const COHERENT: bool>;

/// The first of the `count` bytes or words at `at`, if they are in a region.
#[inline(always)]
fn place<T>(at: Address, count: usize) -> Option<VolatilePtr<'static, T>> {
    let end = at.offset.checked_add(count * size_of::<T>())?;
    let owner = at.region.owner.index();
    (owner < 2 && end <= REGION).then(|| {
        let place = ptr::with_exposed_provenance_mut(REGIONS + owner * REGION + at.offset);
        // SAFETY: inside of a region, which is no memory of Rust's, and not at address 0. Words
        // are aligned, as U1 says.
        unsafe { VolatilePtr::new(NonNull::new_unchecked(place)) }
    })
}

/// A byte of those that a place was made for.
#[inline(always)]
fn byte(place: VolatilePtr<'static, u8>, index: usize) -> VolatilePtr<'static, u8> {
    // SAFETY: inside of the region.
    unsafe { place.map(|first| first.add(index)) }
}

/// The register at `at`.
fn register(at: usize) -> VolatilePtr<'static, u32> {
    // SAFETY: one of the registers of this file, which are no memory of Rust's; none has address 0.
    unsafe { VolatilePtr::new(NonNull::new_unchecked(ptr::with_exposed_provenance_mut(at))) }
}

impl<const COHERENT: bool> UncachedMemory for Core<COHERENT> {
    fn load_u8(&self, at: Address) -> u8 {
        place(at, 1).map_or(0, |byte| byte.read())
    }

    fn store_u8(&self, at: Address, value: u8) {
        if let Some(byte) = place(at, 1) {
            byte.write(value);
        }
    }

    fn load_u32(&self, at: Address) -> u32 {
        place(at, 1).map_or(0, |word| word.read())
    }

    fn store_u32(&self, at: Address, value: u32) {
        if let Some(word) = place(at, 1) {
            word.write(value);
        }
    }

    fn store_bytes(&self, at: Address, from: &[u8]) {
        if let Some(to) = place(at, from.len()) {
            for (index, value) in from.iter().enumerate() {
                byte(to, index).write(*value);
            }
        }
    }
}

impl<const COHERENT: bool> CachedMemory for Core<COHERENT> {
    fn read(&self, at: Address, into: &mut [u8]) {
        if let Some(from) = place(at, into.len()) {
            for (index, value) in into.iter_mut().enumerate() {
                *value = byte(from, index).read();
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
                    by.write(at as u32);
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
        register(LOCKS + 4 * (of.index() & 1)).read() != 0
    }

    fn clear(&self, of: CoreId) {
        register(LOCKS + 4 * (of.index() & 1)).write(1);
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
        CoreId::new(register(CORE).read() as u16 & 1)
    }

    fn memory_size(&self) -> usize {
        REGION
    }
}

impl<const COHERENT: bool> Clock for Core<COHERENT> {
    fn cycles(&self) -> u64 {
        let [low, high] = [CLOCK, CLOCK - 4].map(|at| u64::from(register(at).read()));
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
