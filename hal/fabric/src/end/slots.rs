//! Slots: what libfabric uses of an operation while it is in flight, and what is known of it here.

use std::cell::{RefCell, UnsafeCell};
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use flagpost_hal::fabric::SendQueueFull;

use super::staging::Buffer;
use crate::bindings::*;

/// Bytes of data that fit into a slot.
pub(super) const SMALL: usize = 256;

/// What libfabric uses of an operation.
#[repr(C)]
pub(super) struct Slot {
    context: fi_context2,
    pub(super) operand: u64,
    pub(super) compare: u64,
    pub(super) result: u64,
    pub(super) bytes: [u8; SMALL],
}

/// An operation in flight.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) id: u32,
    pub(super) to: usize,
    pub(super) kind: Kind,
    /// Data that do not fit into the slot.
    pub(super) buffer: Option<Buffer>,
    /// Nobody is told of its end: it is not confirmed, or was reported as failed before.
    pub(super) silent: bool,
}

/// What an operation does.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Put,
    /// Its data go to own memory when they are here.
    Get {
        into: usize,
        len: usize,
    },
    Change,
}

/// The slots of an end. They never move.
pub(super) struct Slots {
    slots: Box<[UnsafeCell<Slot>]>,
    free: RefCell<Vec<usize>>,
    flights: RefCell<Vec<Option<Flight>>>,
}

impl std::fmt::Debug for Slots {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Slots").field(&self.flights).finish()
    }
}

impl Slots {
    pub(super) fn new(count: usize) -> Self {
        let slot = || {
            // SAFETY: numbers and bare pointers, for which zeros are values.
            UnsafeCell::new(unsafe { MaybeUninit::<Slot>::zeroed().assume_init() })
        };
        Self {
            slots: (0..count).map(|_| slot()).collect(),
            free: RefCell::new((0..count).rev().collect()),
            flights: RefCell::new((0..count).map(|_| None).collect()),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Where all slots are, and how many bytes, to register them.
    pub(super) fn place(&self) -> (NonNull<u8>, usize) {
        (
            NonNull::from(&*self.slots).cast(),
            size_of_val(&*self.slots),
        )
    }

    /// Takes a slot.
    pub(super) fn take(&self) -> Result<usize, SendQueueFull> {
        self.free.borrow_mut().pop().ok_or(SendQueueFull)
    }

    /// Slot `number` was taken and is not needed.
    pub(super) fn give_back(&self, number: usize) {
        self.free.borrow_mut().push(number);
    }

    /// Where slot `number` is. Its context and its other parts are libfabric's from the call that
    /// begins an operation until the completion is read.
    pub(super) fn get(&self, number: usize) -> *mut Slot {
        self.slots[number].get()
    }

    /// `flight` is in flight in slot `number`.
    pub(super) fn begun(&self, number: usize, flight: Flight) {
        self.flights.borrow_mut()[number] = Some(flight);
    }

    /// The operation in flight with this context, which is no longer: its slot is to be given back.
    /// None for a context that is none of ours.
    pub(super) fn ended(&self, context: *mut c_void) -> Option<(usize, Flight)> {
        let first = self.slots.as_ptr() as usize;
        let number = (context as usize).wrapping_sub(first) / size_of::<Slot>();
        let flight = self.flights.borrow_mut().get_mut(number)?.take()?;
        Some((number, flight))
    }

    /// How many operations are in flight of which an end is to be told.
    pub(super) fn in_flight(&self) -> usize {
        let flights = self.flights.borrow();
        let told = flights.iter().flatten().filter(|flight| !flight.silent);
        told.count()
    }

    /// Looks at each operation in flight.
    pub(super) fn for_each(&self, with: impl FnMut(&mut Flight)) {
        let mut flights = self.flights.borrow_mut();
        flights.iter_mut().flatten().for_each(with);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: usize = 4;

    fn flight(id: u32, silent: bool) -> Flight {
        Flight {
            id,
            to: 0,
            kind: Kind::Put,
            buffer: None,
            silent,
        }
    }

    #[test]
    fn there_are_as_many_slots_as_asked_for_also_after_they_came_back() {
        let slots = Slots::new(COUNT);
        for _ in 0..3 {
            let mut taken: Vec<_> = (0..COUNT).map(|_| slots.take().unwrap()).collect();
            assert_eq!(slots.take(), Err(SendQueueFull));
            taken.sort_unstable();
            assert_eq!(taken, [0, 1, 2, 3]);
            taken.into_iter().for_each(|number| slots.give_back(number));
        }
    }

    /// Wherever in a slot libfabric's context is, it is that slot's; and each ends once.
    #[test]
    fn an_end_is_that_of_the_operation_with_its_context() {
        let slots = Slots::new(COUNT);
        for number in 0..COUNT {
            slots.begun(number, flight(number as u32 + 10, number == 1));
        }
        assert_eq!(slots.in_flight(), COUNT - 1, "nobody is told of one");
        for number in [2, 0, 3, 1] {
            let context = slots.get(number).cast();
            let (of, ended) = slots.ended(context).unwrap();
            assert_eq!((of, ended.id), (number, number as u32 + 10));
            assert!(slots.ended(context).is_none(), "it has ended");
        }
        assert_eq!(slots.in_flight(), 0);
        slots.begun(0, flight(7, false));
        let behind = slots.get(0).wrapping_add(COUNT).cast();
        let before = slots.get(0).wrapping_sub(1).cast();
        for stranger in [behind, before, std::ptr::null_mut()] {
            assert!(slots.ended(stranger).is_none());
        }
    }
}
