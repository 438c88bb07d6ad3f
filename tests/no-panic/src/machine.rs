//! A machine of which the optimizer knows nothing.

use flagpost_hal::{
    Address, Amo, CachedMemory, Clock, Coherence, CoreId, Lines, MessageBuffer, NativeAtomics,
    Relax, TestAndSet, Topology, UncachedMemory, Watch,
};

use crate::{bytes, unknown};

/// A machine of which nothing is known.
pub(crate) struct Unknown<const COHERENT: bool>;

impl<const COHERENT: bool> UncachedMemory for Unknown<COHERENT> {
    fn load_u8(&self, at: Address) -> u8 {
        unknown(at.offset as u32, 0) as u8
    }

    fn store_u8(&self, at: Address, value: u8) {
        unknown(at.offset as u32, value.into());
    }

    fn load_u32(&self, at: Address) -> u32 {
        unknown(at.offset as u32, 1) as u32
    }

    fn store_u32(&self, at: Address, value: u32) {
        unknown(at.offset as u32, value);
    }

    fn store_bytes(&self, at: Address, from: &[u8]) {
        bytes(from.as_ptr(), from.len(), at.offset as u32);
    }
}

impl<const COHERENT: bool> CachedMemory for Unknown<COHERENT> {
    fn read(&self, at: Address, into: &mut [u8]) {
        bytes(into.as_ptr(), into.len(), at.offset as u32);
    }

    fn write(&self, at: Address, from: &[u8]) {
        bytes(from.as_ptr(), from.len(), at.offset as u32);
    }
}

// SAFETY: nothing runs.
unsafe impl<const COHERENT: bool> Coherence for Unknown<COHERENT> {
    const LINE: usize = 32;
    const COHERENT: bool = COHERENT;

    fn write_back(&self, spans: &[Lines]) {
        for lines in spans {
            unknown(lines.start() as u32, lines.end() as u32);
        }
    }

    fn invalidate(&self, spans: &[Lines]) {
        self.write_back(spans);
    }

    fn drain(&self) {
        unknown(0, 2);
    }

    fn acquire(&self) {
        unknown(0, 3);
    }
}

impl<const COHERENT: bool> TestAndSet for Unknown<COHERENT> {
    fn test_and_set(&self, of: CoreId) -> bool {
        unknown(of.get().into(), 4) != 0
    }

    fn clear(&self, of: CoreId) {
        unknown(of.get().into(), 5);
    }
}

impl<const COHERENT: bool> MessageBuffer for Unknown<COHERENT> {
    fn message_buffer_size(&self) -> usize {
        unknown(0, 6) as usize
    }
}

impl<const COHERENT: bool> Topology for Unknown<COHERENT> {
    fn cores(&self) -> u16 {
        unknown(0, 7) as u16
    }

    fn core(&self) -> CoreId {
        CoreId::new(unknown(0, 8) as u16)
    }

    fn memory_size(&self) -> usize {
        unknown(0, 9) as usize
    }
}

impl<const COHERENT: bool> Clock for Unknown<COHERENT> {
    fn cycles(&self) -> u64 {
        unknown(0, 10)
    }

    fn hertz(&self) -> u64 {
        unknown(0, 11)
    }
}

impl<const COHERENT: bool> Relax for Unknown<COHERENT> {
    fn relax(&self, watched: &[Watch]) {
        for watch in watched {
            unknown(watch.at.offset as u32, watch.seen);
        }
    }
}

impl flagpost_coherent::Records for Unknown<true> {}

impl NativeAtomics for Unknown<false> {
    type Word = u32;

    fn atomic_u32(&self, at: Address, _: Amo<u32>) -> u32 {
        unknown(at.offset as u32, 14) as u32
    }
}

impl NativeAtomics for Unknown<true> {
    type Word = u64;

    fn atomic_u32(&self, at: Address, _: Amo<u32>) -> u32 {
        unknown(at.offset as u32, 14) as u32
    }

    fn atomic_u64(&self, at: Address, _: Amo<u64>) -> u64 {
        unknown(at.offset as u32, 15)
    }
}
