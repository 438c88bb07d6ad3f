//! How operations begin.

use std::ffi::c_void;
use std::ptr::{null_mut, slice_from_raw_parts};
use std::sync::atomic::{Ordering, fence};

use flagpost_hal::Amo;
use flagpost_hal::fabric::SendQueueFull;

use super::slots::{Flight, Kind, SMALL};
use super::staging::Buffer;
use super::{Completion, End, Peer};
use crate::bindings::*;

/// Something to store at a rank.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Put<'a> {
    pub(crate) id: u32,
    pub(crate) to: usize,
    /// Where, in its memory.
    pub(crate) at: usize,
    pub(crate) data: &'a [u8],
    /// Arrives after the data.
    pub(crate) told: Option<u64>,
    /// Whether a completion tells when it is in place. Where puts are not ordered, all are
    /// confirmed.
    pub(crate) confirmed: bool,
}

/// Bytes in a slot or in a buffer that an operation uses.
struct Staged {
    start: *mut c_void,
    desc: *mut c_void,
    buffer: Option<Buffer>,
}

impl End {
    /// Begins to store data, and to tell something after, without a completion.
    #[inline(always)]
    pub(crate) fn send(
        &self,
        to: usize,
        at: usize,
        data: &[u8],
        told: Option<u64>,
    ) -> Result<(), SendQueueFull> {
        let peer = self.peer(to);
        if data.len() <= self.inject && peer.credits.inject() {
            return self.inject(peer, at, data, told);
        }
        if data.len() > self.inject && told.is_none() && self.store(peer, at, data) {
            return Ok(());
        }
        let put = Put {
            id: 0,
            to,
            at,
            data,
            told,
            confirmed: false,
        };
        if data.len() <= self.inject {
            return self.mark(peer, put);
        }
        self.put(put)
    }

    /// Stores `data` at `at` of `peer`'s memory, if the system copies there.
    ///
    /// # Panics
    /// As [`Attached::write`](crate::attach::Attached::write).
    #[cold]
    fn store(&self, peer: &Peer, at: usize, data: &[u8]) -> bool {
        let stored = peer.attached().is_some_and(|peer| peer.write(at, data));
        self.copies.set(self.copies.get() + u64::from(stored));
        stored
    }

    /// Loads the bytes at `at` of `to`'s memory, if the system copies from there.
    ///
    /// # Panics
    /// As [`Attached::read`](crate::attach::Attached::read).
    pub(crate) fn load(&self, to: usize, at: usize, into: &mut [u8]) -> bool {
        let attached = self.peer(to).attached();
        let loaded = attached.is_some_and(|peer| peer.read(at, into));
        self.copies.set(self.copies.get() + u64::from(loaded));
        loaded
    }

    /// A small put that has a completion. Those of the marked puts before it are read: a stream of
    /// puts goes on as long as they come.
    #[cold]
    fn mark(&self, peer: &Peer, put: Put<'_>) -> Result<(), SendQueueFull> {
        self.pump();
        if peer.credits.are_spent() && !peer.failed.get() {
            return Err(SendQueueFull);
        }
        self.put(put)?;
        peer.credits.spend();
        Ok(())
    }

    /// Begins to store data, and to tell something after.
    #[inline(never)]
    pub(crate) fn put(&self, put: Put<'_>) -> Result<(), SendQueueFull> {
        let peer = self.peer(put.to);
        let confirmed = put.confirmed || !self.ordered.get();
        if peer.failed.get() {
            if confirmed {
                self.fail(put.id);
            }
            return Ok(());
        }
        let number = self.slots.take()?;
        let staged = self.stage(number, put.data.len(), Some(put.data))?;
        let from = iovec {
            iov_base: staged.start,
            iov_len: put.data.len(),
        };
        let place = fi_rma_iov {
            addr: peer.base + put.at as u64,
            len: put.data.len(),
            key: peer.key,
        };
        let mut desc = staged.desc;
        let message = fi_msg_rma {
            msg_iov: &from,
            desc: &mut desc,
            iov_count: 1,
            addr: peer.address,
            rma_iov: &place,
            rma_iov_count: 1,
            context: self.slots.get(number).cast(),
            data: put.told.unwrap_or(0),
        };
        let with_data = put.told.map_or(0, |_| FI_REMOTE_CQ_DATA);
        let in_place = if confirmed { FI_DELIVERY_COMPLETE } else { 0 };
        let flags = FI_COMPLETION | in_place | with_data;
        let endpoint = self.first.endpoint.as_ptr();
        // M3: what was stored to own memory and to the slot is seen by whatever does this.
        fence(Ordering::Release);
        // SAFETY: the endpoint is open. The message and its parts live until the call returns; the
        // data and the context until the completion is read (E2).
        let result = unsafe { ((*(*endpoint).rma).writemsg)(endpoint, &message, flags) };
        let flight = Flight {
            id: put.id,
            to: put.to,
            kind: Kind::Put,
            buffer: staged.buffer,
            silent: !confirmed,
        };
        let begun = self.begun(number, result, flight);
        if begun.is_ok() {
            peer.unconfirmed.set(!confirmed);
        }
        begun
    }

    /// Stores data that are so few that the provider keeps a copy.
    #[inline(always)]
    fn inject(
        &self,
        peer: &Peer,
        at: usize,
        data: &[u8],
        told: Option<u64>,
    ) -> Result<(), SendQueueFull> {
        let endpoint = self.first.endpoint.as_ptr();
        let (start, len) = (data.as_ptr().cast(), data.len());
        let (address, at, key) = (peer.address, peer.base + at as u64, peer.key);
        // M3: what was stored to own memory is seen by whatever does this.
        fence(Ordering::Release);
        // SAFETY: the endpoint is open. The data are not used after the call returns.
        let result = unsafe {
            let table = &*(*endpoint).rma;
            match told {
                Some(told) => (table.injectdata)(endpoint, start, len, told, address, at, key),
                None => (table.inject)(endpoint, start, len, address, at, key),
            }
        };
        if result != 0 {
            return self.refused(peer, None, result);
        }
        peer.credits.spend();
        peer.unconfirmed.set(true);
        Ok(())
    }

    /// Begins to load `len` bytes at `at` of `to`'s memory, to `into` in own memory.
    ///
    /// # Panics
    /// Unless they fit there.
    pub(crate) fn get(
        &self,
        id: u32,
        to: usize,
        at: usize,
        into: usize,
        len: usize,
    ) -> Result<(), SendQueueFull> {
        self.memory.inside(into, len);
        let peer = self.peer(to);
        if peer.lost.get() {
            self.fail(id);
            return Ok(());
        }
        let number = self.slots.take()?;
        let staged = self.stage(number, len, None)?;
        let (endpoint, from) = (self.first.endpoint.as_ptr(), peer.base + at as u64);
        fence(Ordering::Release);
        // SAFETY: the endpoint is open. The staged bytes and the context live until the completion
        // is read (E2); nothing else uses the bytes before.
        let result = unsafe {
            ((*(*endpoint).rma).read)(
                endpoint,
                staged.start,
                len,
                staged.desc,
                peer.address,
                from,
                peer.key,
                self.slots.get(number).cast(),
            )
        };
        let flight = Flight {
            id,
            to,
            kind: Kind::Get { into, len },
            buffer: staged.buffer,
            silent: false,
        };
        self.begun(number, result, flight)
    }

    /// Begins to change the cell at `at` of `to`'s memory.
    pub(crate) fn change(
        &self,
        id: u32,
        to: usize,
        at: usize,
        amo: Amo,
    ) -> Result<(), SendQueueFull> {
        let peer = self.peer(to);
        if peer.lost.get() {
            self.fail(id);
            return Ok(());
        }
        let number = self.slots.take()?;
        let (is_swap, operation) = operation_of(amo);
        let (operand, compare) = match amo {
            Amo::Read => (0, 0),
            Amo::Add(value) | Amo::And(value) | Amo::Or(value) => (value, 0),
            Amo::Xor(value) | Amo::Swap(value) => (value, 0),
            Amo::CompareSwap { expected, new } => (new, expected),
        };
        let slot = self.slots.get(number);
        let port = self.second.as_ref().unwrap_or(&self.first);
        let endpoint = port.endpoint.as_ptr();
        let cell = fi_rma_ioc {
            addr: peer.base + at as u64,
            count: 1,
            key: peer.key,
        };
        let flags = FI_COMPLETION;
        fence(Ordering::Release);
        // SAFETY: the endpoint is open, and its table of atomics long enough (`does` was asked when
        // the network was opened). The slot is free until here, and its operands and its result are
        // this operation's until the completion is read (E2). The message and its parts live until
        // the call returns.
        let result = unsafe {
            (&raw mut (*slot).operand).write(operand);
            (&raw mut (*slot).compare).write(compare);
            let part = |part: *mut u64| fi_ioc {
                addr: part.cast(),
                count: 1,
            };
            let operand = part(&raw mut (*slot).operand);
            let compare = part(&raw mut (*slot).compare);
            let mut found = part(&raw mut (*slot).result);
            let [mut desc, mut compare_desc, mut found_desc] = [self.slots_desc(); 3];
            let message = fi_msg_atomic {
                msg_iov: &operand,
                desc: &mut desc,
                iov_count: 1,
                addr: peer.changes,
                rma_iov: &cell,
                rma_iov_count: 1,
                datatype: FI_UINT64,
                op: operation,
                context: slot.cast(),
                data: 0,
            };
            let (table, found_desc) = (&*(*endpoint).atomic, &mut found_desc);
            if is_swap {
                let (compare, desc) = (&raw const compare, &mut compare_desc);
                let swap = table.compwritemsg;
                swap(
                    endpoint, &message, compare, desc, 1, &mut found, found_desc, 1, flags,
                )
            } else {
                (table.readwritemsg)(endpoint, &message, &mut found, found_desc, 1, flags)
            }
        };
        let flight = Flight {
            id,
            to,
            kind: Kind::Change,
            buffer: None,
            silent: false,
        };
        self.begun(number, result, flight)
    }

    /// Whether the provider says that it does `amo`.
    pub(crate) fn does(&self, amo: Amo) -> bool {
        let (swap, operation) = operation_of(amo);
        let port = self.second.as_ref().unwrap_or(&self.first);
        let (endpoint, mut count) = (port.endpoint.as_ptr(), 0);
        // SAFETY: the endpoint is open. If it has a table of atomics that is long enough, each
        // function is there; the functions only store the count.
        let result = unsafe {
            let table = (*endpoint).atomic;
            let whole = std::mem::offset_of!(fi_ops_atomic, compwritevalid);
            if table.is_null() || (*table).size <= whole {
                return false;
            }
            let valid = if swap {
                (*table).compwritevalid
            } else {
                (*table).readwritevalid
            };
            valid(endpoint, FI_UINT64, operation, &mut count)
        };
        result == 0 && count > 0
    }

    /// Room for the `len` bytes of the operation in slot `number`, which was taken; with a copy of
    /// `data`, if there are any. If there is no room, the slot is given back.
    fn stage(
        &self,
        number: usize,
        len: usize,
        data: Option<&[u8]>,
    ) -> Result<Staged, SendQueueFull> {
        if len <= SMALL {
            let slot = self.slots.get(number);
            // SAFETY: the slot is there, and free: nothing else uses it (E2). The copy is at most
            // as long as its room.
            let start = unsafe {
                let bytes = (&raw mut (*slot).bytes).cast::<u8>();
                if let Some(data) = data {
                    bytes.copy_from_nonoverlapping(data.as_ptr(), data.len());
                }
                bytes
            };
            return Ok(Staged {
                start: start.cast(),
                desc: self.slots_desc(),
                buffer: None,
            });
        }
        let mut buffer = self.pool.take(len);
        if let Some(data) = data {
            buffer.fill(data);
        }
        if self.slots_region.is_some() && buffer.region().is_none() {
            let (endpoint, room) = (&self.first.endpoint, buffer.room());
            // SAFETY: the bytes stay until the buffer is dropped, which closes the registration
            // first. Only an operation that the buffer was taken for writes to them (E2).
            let region = unsafe {
                self.domain
                    .register(endpoint, buffer.start(), room, FI_READ | FI_WRITE)
            };
            match region {
                Ok(region) => buffer.set_region(region),
                // Registrations may be scarce: others end.
                Err(why) => {
                    self.note(why);
                    self.slots.give_back(number);
                    return Err(SendQueueFull);
                }
            }
        }
        Ok(Staged {
            start: buffer.start().as_ptr().cast(),
            desc: buffer.region().map_or(null_mut(), |region| region.desc()),
            buffer: Some(buffer),
        })
    }

    /// The operation in slot `number` was begun, with this result.
    fn begun(&self, number: usize, result: isize, flight: Flight) -> Result<(), SendQueueFull> {
        if result == 0 {
            if flight.kind == Kind::Change {
                self.changing.set(self.changing.get() + 1);
            }
            self.slots.begun(number, flight);
            return Ok(());
        }
        self.slots.give_back(number);
        if let Some(buffer) = flight.buffer {
            self.pool.give_back(buffer);
        }
        let id = (!flight.silent).then_some(flight.id);
        self.refused(self.peer(flight.to), id, result)
    }

    /// An operation was not begun, for this reason. If nobody is told of its end, it has no number.
    #[cold]
    fn refused(&self, peer: &Peer, id: Option<u32>, result: isize) -> Result<(), SendQueueFull> {
        if result == -(FI_EAGAIN as isize) {
            return Err(SendQueueFull);
        }
        self.note(self.library.error(result as i64));
        match id {
            Some(id) => self.fail(id),
            None => self.fails(peer),
        }
        Ok(())
    }

    /// The operation of `flight` is done, in slot `number`: what it has brought.
    pub(super) fn landed(&self, number: usize, flight: &mut Flight) -> u64 {
        let slot = self.slots.get(number);
        match flight.kind {
            Kind::Put => 0,
            Kind::Get { into, len } => {
                let start = match flight.buffer.as_mut() {
                    Some(buffer) => buffer.start().as_ptr(),
                    // SAFETY: the slot is there.
                    None => unsafe { (&raw mut (*slot).bytes).cast() },
                };
                // SAFETY: libfabric has stored that many bytes there, and is done with them; nobody
                // else uses them while this reference lives.
                let bytes = unsafe { &*slice_from_raw_parts(start, len) };
                self.memory.write(into, bytes);
                0
            }
            // SAFETY: the slot is there, and libfabric is done with it.
            Kind::Change => unsafe { (&raw const (*slot).result).read() },
        }
    }

    /// Operation `id` fails without having begun.
    fn fail(&self, id: u32) {
        self.tell(Completion::Failed { id });
    }
}

/// Whether it is a compare-and-swap, and libfabric's number for it.
fn operation_of(amo: Amo) -> (bool, Enum) {
    match amo {
        Amo::Read => (false, FI_ATOMIC_READ),
        Amo::Add(_) => (false, FI_SUM),
        Amo::And(_) => (false, FI_BAND),
        Amo::Or(_) => (false, FI_BOR),
        Amo::Xor(_) => (false, FI_BXOR),
        Amo::Swap(_) => (false, FI_ATOMIC_WRITE),
        Amo::CompareSwap { .. } => (true, FI_CSWAP),
    }
}
