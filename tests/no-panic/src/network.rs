//! A network, and a heap, of which the optimizer knows nothing.

use core::alloc::{GlobalAlloc, Layout};

use flagpost_hal::CoreId;
use flagpost_hal::fabric::{Event, Fabric, SendQueueFull, Watched, Work};

use crate::{bytes, unknown};

// SAFETY: nobody links or calls these: the library is only looked at.
unsafe extern "C" {
    /// Memory, or null.
    safe fn taken(bytes: usize, align: usize) -> *mut u8;
    /// Memory that is not used any more.
    safe fn given_back(start: *mut u8);
}

struct Heap;

#[global_allocator]
static HEAP: Heap = Heap;

// SAFETY: nothing runs.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        taken(layout.size(), layout.align())
    }

    unsafe fn dealloc(&self, start: *mut u8, _: Layout) {
        given_back(start);
    }
}

/// A network of which nothing is known.
pub(crate) struct Net;

impl Fabric for Net {
    fn core(&self) -> CoreId {
        CoreId::new(unknown(0, 20) as u16)
    }

    fn cores(&self) -> u16 {
        unknown(0, 21) as u16
    }

    fn memory_size(&self) -> usize {
        unknown(0, 22) as usize
    }

    fn orders_puts(&self) -> bool {
        unknown(0, 23) != 0
    }

    fn read(&self, at: usize, into: &mut [u8]) {
        bytes(into.as_ptr(), into.len(), at as u32);
    }

    fn write(&self, at: usize, from: &[u8]) {
        bytes(from.as_ptr(), from.len(), at as u32);
    }

    fn load(&self, from: CoreId, at: usize, into: &mut [u8]) -> bool {
        self.read(at, into);
        unknown(from.get().into(), 24) != 0
    }

    fn post(&self, id: u32, to: CoreId, work: Work<'_>) -> Result<(), SendQueueFull> {
        if let Work::Put { at, data, .. } = work {
            self.write(at, data);
        }
        match unknown(id, to.get().into()) {
            0 => Ok(()),
            _ => Err(SendQueueFull),
        }
    }

    fn poll(&self) -> Option<Event> {
        let id = unknown(0, 25) as u32;
        match unknown(0, 26) {
            0 => None,
            1 => Some(Event::Failed { id }),
            2 => Some(Event::Immediate {
                from: CoreId::new(unknown(0, 27) as u16),
                immediate: id,
            }),
            value => Some(Event::Done { id, value }),
        }
    }

    fn lost(&self) -> Option<CoreId> {
        (unknown(0, 28) != 0).then(|| CoreId::new(unknown(0, 29) as u16))
    }

    fn is_lost(&self, core: CoreId) -> bool {
        unknown(core.get().into(), 30) != 0
    }

    fn has_left(&self, core: Option<CoreId>) -> bool {
        unknown(core.map_or(0, CoreId::get).into(), 31) != 0
    }

    fn relax(&self, watched: &[Watched]) {
        for watch in watched {
            unknown(watch.at as u32, watch.seen);
        }
    }

    fn pause(&self) {
        unknown(0, 32);
    }

    fn now(&self) -> u64 {
        unknown(0, 33)
    }

    fn ticks_per_second(&self) -> u64 {
        unknown(0, 34)
    }
}
