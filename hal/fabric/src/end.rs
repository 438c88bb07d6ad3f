//! One end of a libfabric network: an endpoint, its completion queue, the ranks it knows.
//!
//! This module makes all calls of libfabric's tables of functions. What it offers is safe: places
//! are checked, and what an operation uses stays where it is until its completion has come.
//!
//! # Invariants
//! * E1. The objects behind the handles are open until their handle is dropped, and each is closed
//!   before those that it was made from: the fields of [`End`] are in that order.
//! * E2. An operation owns its slot, and the bytes it stages, from the call that begins it until
//!   its completion is read. A slot never moves. No reference to a slot is made: libfabric stores
//!   there.
//! * E3. If the endpoint or a registration cannot be closed, the memory they know is leaked.
//! * E4. Only this module's thread calls libfabric for this end, except a [`Helper`], for which the
//!   domain is opened as safe for threads.
//!
//! # Bounds
//! [`SLOTS`] operations in flight, or as many as the provider takes.

use std::cell::{Cell, OnceCell, RefCell, UnsafeCell};
use std::collections::VecDeque;
use std::ffi::{c_int, c_void};
use std::mem::{ManuallyDrop, MaybeUninit};
use std::net::IpAddr;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::thread::JoinHandle;
use std::time::Duration;

use flagpost_hal::Amo;
use flagpost_hal::fabric::SendQueueFull;

use crate::bindings::*;
use crate::library::{Info, Library};
use crate::memory::Memory;

/// Operations in flight at most.
const SLOTS: usize = 256;

/// Bytes of data that fit into a slot.
const SMALL: usize = 256;

/// Completions that are read in one call.
const BATCH: usize = 16;

/// Bytes of an endpoint's name at most.
const NAME: usize = 512;

/// Entries of the completion queue for each peer's immediates.
const ENTRIES: usize = 128;

/// The key asked for own memory, and for the slots; those of staged data follow.
const MEMORY_KEY: u64 = 0;
const SLOTS_KEY: u64 = 1;
const STAGED_KEY: u64 = 2;

/// What a peer needs to know of an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Card {
    pub(crate) name: Vec<u8>,
    pub(crate) key: u64,
    pub(crate) base: u64,
}

/// What has happened.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Completion {
    /// Operation `id` is done; the former value of a cell.
    Done { id: u32, value: u64 },
    /// Operation `id` has failed.
    Failed { id: u32 },
    /// A peer's 64 bits.
    Told(u64),
}

/// What an end was opened with, and what its provider can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// The provider's name, as libfabric has it.
    pub provider: String,
    /// Major and minor version of libfabric.
    pub version: (u32, u32),
    /// Bytes that travel with an immediate.
    pub immediate_bytes: usize,
    /// Writes to one target take effect in order. Flagpost does not need it.
    pub ordered_writes: bool,
    /// Local buffers are registered, too.
    pub local_registration: bool,
    /// Operations in flight at most.
    pub operations: usize,
}

impl std::fmt::Display for Abilities {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (major, minor) = self.version;
        write!(
            f,
            "{} of libfabric {major}.{minor}, immediates of {} bytes, writes {}, {} operations",
            self.provider,
            self.immediate_bytes,
            if self.ordered_writes {
                "in order"
            } else {
                "in any order"
            },
            self.operations,
        )
    }
}

/// An object of libfabric's, closed when this is dropped. Each begins with a `fid`.
struct Handle<T>(Option<NonNull<T>>);

impl<T> std::fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl<T> Handle<T> {
    /// The object that a call has made: the call's result, and what it has stored.
    fn made(library: &Library, what: &str, result: c_int, object: *mut T) -> Result<Self, String> {
        match (result, NonNull::new(object)) {
            (0, Some(object)) => Ok(Self(Some(object))),
            (error, _) => Err(format!("{what}: {}", library.error(error.into()))),
        }
    }

    fn as_ptr(&self) -> *mut T {
        self.0.map_or(null_mut(), NonNull::as_ptr)
    }

    fn fid(&self) -> *mut fid {
        self.as_ptr().cast()
    }

    /// Closes the object; false if that fails.
    fn close(&mut self) -> bool {
        let Some(object) = self.0.take() else {
            return true;
        };
        let fid = object.as_ptr().cast::<fid>();
        // SAFETY: the object is open (E1) and begins with a `fid`, whose table has `close`.
        unsafe { ((*(*fid).ops).close)(fid) == 0 }
    }
}

impl<T> Drop for Handle<T> {
    fn drop(&mut self) {
        self.close();
    }
}

/// What libfabric uses of an operation.
#[repr(C)]
struct Slot {
    context: fi_context2,
    operand: u64,
    compare: u64,
    result: u64,
    bytes: [u8; SMALL],
}

/// An operation in flight.
#[derive(Debug)]
struct Flight {
    id: u32,
    to: usize,
    /// Data that do not fit into the slot, and their registration where one is needed. The
    /// registration goes first.
    _registered: Option<Handle<fid_mr>>,
    _staged: Vec<u8>,
    /// It was reported as failed, and its completion may still come.
    told: bool,
}

/// A rank that this end knows.
#[derive(Copy, Clone, Debug)]
struct Peer {
    address: u64,
    key: u64,
    base: u64,
}

/// A thread that keeps an end's operations moving while its rank computes.
#[derive(Debug)]
struct Helper {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// A completion queue, for a [`Helper`].
struct Queue(NonNull<fid_cq>);

// SAFETY: the domain was opened as safe for threads (E4), and the queue outlives the thread: `End`
// drops its helper, which waits for the thread, before all handles.
unsafe impl Send for Queue {}

impl Helper {
    fn start(queue: Queue, pause: Duration) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let work = move || {
            let queue = queue;
            while !told.load(Ordering::Relaxed) {
                // SAFETY: the queue is open, see `Queue`. Nothing is stored: no entry is asked for.
                unsafe { ((*(*queue.0.as_ptr()).ops).read)(queue.0.as_ptr(), null_mut(), 0) };
                std::thread::sleep(pause);
            }
        };
        let builder = std::thread::Builder::new().name("flagpost-fabric".to_owned());
        let thread = Some(builder.spawn(work)?);
        Ok(Self { stop, thread })
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It does not panic.
            let _ = thread.join();
        }
    }
}

/// How an end is opened.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) provider: &'a str,
    pub(crate) source: Option<IpAddr>,
    pub(crate) memory: u32,
    pub(crate) ranks: u16,
    pub(crate) helper: Option<Duration>,
}

/// An end that is open.
#[derive(Debug)]
pub(crate) struct End {
    helper: Option<Helper>,
    endpoint: Handle<fid_ep>,
    region: Handle<fid_mr>,
    slots_region: Option<Handle<fid_mr>>,
    queue: Handle<fid_cq>,
    addresses: Handle<fid_av>,
    domain: Handle<fid_domain>,
    _fabric: Handle<fid_fabric>,
    info: Info,
    library: &'static Library,
    memory: ManuallyDrop<Memory>,
    slots: ManuallyDrop<Box<[UnsafeCell<Slot>]>>,
    free: RefCell<Vec<usize>>,
    flights: RefCell<Vec<Option<Flight>>>,
    completions: RefCell<VecDeque<Completion>>,
    peers: OnceCell<Vec<Peer>>,
    /// The last failure, for people.
    failure: RefCell<Option<String>>,
    broken: Cell<bool>,
}

impl End {
    /// Opens an end, with its memory registered.
    ///
    /// # Errors
    /// One line.
    pub(crate) fn open(wanted: &Wanted<'_>) -> Result<Self, String> {
        let library = Library::get()?;
        let info = library.info(wanted.provider, wanted.source, wanted.helper.is_some())?;
        let largest = info.endpoint().max_msg_size;
        if largest < wanted.memory as usize {
            let (provider, memory) = (info.provider(), wanted.memory);
            return Err(format!(
                "{provider} moves {largest} bytes at a time, less than the {memory} bytes of memory"
            ));
        }
        let memory = Memory::new(wanted.memory).ok_or("a rank needs memory")?;
        let count = info.sending().size.clamp(1, SLOTS);
        let slot = || {
            // SAFETY: numbers and bare pointers, for which zeros are values.
            UnsafeCell::new(unsafe { MaybeUninit::<Slot>::zeroed().assume_init() })
        };
        let slots: Box<[UnsafeCell<Slot>]> = (0..count).map(|_| slot()).collect();
        let made = |what, result, object| Handle::made(library, what, result, object);

        let mut fabric = null_mut();
        // SAFETY: the attributes are the library's own; it stores the object's address.
        let result =
            unsafe { (library.fabric)((*info.as_ptr()).fabric_attr, &mut fabric, null_mut()) };
        let fabric = Handle::made(library, "fi_fabric", result, fabric)?;
        let mut domain = null_mut();
        // SAFETY: as above; the fabric is open, and its table has `domain`.
        let result = unsafe {
            let fabric = fabric.as_ptr();
            ((*(*fabric).ops).domain)(fabric, info.as_ptr(), &mut domain, null_mut())
        };
        let domain = Handle::made(library, "fi_domain", result, domain)?;
        let addresses = open_addresses(library, &domain, wanted.ranks)?;
        let queue = open_queue(
            library,
            &domain,
            count + ENTRIES * usize::from(wanted.ranks),
        )?;
        let mut endpoint = null_mut();
        // SAFETY: as above, of the domain.
        let result = unsafe {
            let domain = domain.as_ptr();
            ((*(*domain).ops).endpoint)(domain, info.as_ptr(), &mut endpoint, null_mut())
        };
        let endpoint = Handle::made(library, "fi_endpoint", result, endpoint)?;
        bind(library, endpoint.fid(), queue.fid(), FI_TRANSMIT | FI_RECV)?;
        bind(library, endpoint.fid(), addresses.fid(), 0)?;
        enable(library, endpoint.fid())?;

        let mode = info.domain().mr_mode as u32;
        let register = |start: NonNull<u8>, len, access, key| {
            let region = register(&domain, start, len, access, key);
            let region = made("fi_mr_reg", region.0, region.1)?;
            if mode & FI_MR_ENDPOINT != 0 {
                bind(library, region.fid(), endpoint.fid(), 0)?;
                enable(library, region.fid())?;
            }
            Ok::<_, String>(region)
        };
        let local = FI_READ | FI_WRITE;
        let all = local | FI_REMOTE_READ | FI_REMOTE_WRITE;
        let region = register(memory.start(), memory.len() as usize, all, MEMORY_KEY)?;
        let slots_region = if mode & FI_MR_LOCAL != 0 {
            let start = NonNull::from(&*slots).cast();
            Some(register(start, size_of_val(&*slots), local, SLOTS_KEY)?)
        } else {
            None
        };
        let helper = match (wanted.helper, queue.0) {
            (Some(pause), Some(queue)) => {
                let helper = Helper::start(Queue(queue), pause);
                Some(helper.map_err(|why| format!("no thread for the network: {why}"))?)
            }
            _ => None,
        };
        Ok(Self {
            helper,
            endpoint,
            region,
            slots_region,
            queue,
            addresses,
            domain,
            _fabric: fabric,
            info,
            library,
            memory: ManuallyDrop::new(memory),
            slots: ManuallyDrop::new(slots),
            free: RefCell::new((0..count).rev().collect()),
            flights: RefCell::new((0..count).map(|_| None).collect()),
            completions: RefCell::new(VecDeque::new()),
            peers: OnceCell::new(),
            failure: RefCell::new(None),
            broken: Cell::new(false),
        })
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    pub(crate) fn abilities(&self) -> Abilities {
        Abilities {
            provider: self.info.provider(),
            version: self.library.version(),
            immediate_bytes: self.info.domain().cq_data_size,
            ordered_writes: self.info.sending().msg_order & FI_ORDER_WAW != 0,
            local_registration: self.slots_region.is_some(),
            operations: self.slots.len(),
        }
    }

    /// What peers need to know.
    ///
    /// # Errors
    /// One line.
    pub(crate) fn card(&self) -> Result<Card, String> {
        let mut name = vec![0; NAME];
        let mut len = name.len();
        let endpoint = self.endpoint.as_ptr();
        // SAFETY: the endpoint is open and its table has `getname`, which stores up to `len` bytes
        // and the length.
        let result = unsafe {
            ((*(*endpoint).cm).getname)(self.endpoint.fid(), name.as_mut_ptr().cast(), &mut len)
        };
        if result != 0 || len > name.len() {
            return Err(format!("fi_getname: {}", self.library.error(result.into())));
        }
        name.truncate(len);
        let virtual_addresses = self.info.domain().mr_mode as u32 & FI_MR_VIRT_ADDR != 0;
        let start = self.memory.start().as_ptr() as u64;
        // SAFETY: the registration is open.
        let key = unsafe { (*self.region.as_ptr()).key };
        Ok(Card {
            name,
            key,
            base: if virtual_addresses { start } else { 0 },
        })
    }

    /// Makes all ranks known, once. Operations may be begun then.
    ///
    /// # Errors
    /// One line.
    pub(crate) fn know(&self, cards: &[Card]) -> Result<(), String> {
        let know = |card: &Card| {
            let mut address = u64::MAX;
            let addresses = self.addresses.as_ptr();
            // Longer than any address that the provider reads.
            let mut name = card.name.clone();
            name.resize(NAME, 0);
            // SAFETY: the table of addresses is open; the name is followed by zeros up to the
            // longest that there is; one address is stored.
            let inserted = unsafe {
                let (name, flags) = (name.as_ptr().cast(), 0);
                let insert = (*(*addresses).ops).insert;
                insert(addresses, name, 1, &mut address, flags, null_mut())
            };
            if inserted != 1 {
                return Err(format!(
                    "fi_av_insert: {}",
                    self.library.error(inserted.into())
                ));
            }
            Ok(Peer {
                address,
                key: card.key,
                base: card.base,
            })
        };
        let peers: Result<Vec<Peer>, String> = cards.iter().map(know).collect();
        self.peers
            .set(peers?)
            .map_err(|_| "the ranks are known already".to_owned())
    }

    /// Whether the provider says that it does `amo`.
    pub(crate) fn does(&self, amo: Amo) -> bool {
        let (swap, operation) = operation_of(amo);
        let (endpoint, mut count) = (self.endpoint.as_ptr(), 0);
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

    fn peer(&self, to: usize) -> Peer {
        let known = self.peers.get().map_or(&[][..], Vec::as_slice);
        known[to]
    }

    /// Takes a slot.
    fn take_slot(&self) -> Result<usize, SendQueueFull> {
        self.free.borrow_mut().pop().ok_or(SendQueueFull)
    }

    fn slot(&self, number: usize) -> *mut Slot {
        self.slots[number].get()
    }

    fn slots_desc(&self) -> *mut c_void {
        // SAFETY: the registration is open.
        let desc = |region: &Handle<fid_mr>| unsafe { (*region.as_ptr()).mem_desc };
        self.slots_region.as_ref().map_or(null_mut(), desc)
    }

    /// The operation in `slot` was begun, with this result.
    fn begun(&self, slot: usize, result: isize, flight: Flight) -> Result<(), SendQueueFull> {
        if result == 0 {
            self.flights.borrow_mut()[slot] = Some(flight);
            return Ok(());
        }
        self.free.borrow_mut().push(slot);
        if result == -(FI_EAGAIN as isize) {
            return Err(SendQueueFull);
        }
        self.note(format!(
            "rank {}: {}",
            flight.to,
            self.library.error(result as i64)
        ));
        self.fail(flight.id);
        Ok(())
    }

    fn note(&self, what: String) {
        self.failure.replace(Some(what));
    }

    /// The last failure, for people.
    pub(crate) fn failure(&self) -> Option<String> {
        self.failure.borrow().clone()
    }

    /// Begins to store `data` at `at` of `to`'s memory; then `told` arrives, if there is something
    /// to tell. Done when it is in place.
    pub(crate) fn put(
        &self,
        id: u32,
        to: usize,
        at: u32,
        data: &[u8],
        told: Option<u64>,
    ) -> Result<(), SendQueueFull> {
        let (peer, number) = (self.peer(to), self.take_slot()?);
        let slot = self.slot(number);
        let mut staged = Vec::new();
        let (mut registered, mut desc) = (None, self.slots_desc());
        // SAFETY: the slot is there, and free: nothing else uses it (E2). The copy is at most as
        // long as its room.
        let start: *mut u8 = unsafe {
            let bytes = (&raw mut (*slot).bytes).cast::<u8>();
            if data.len() <= SMALL {
                bytes.copy_from_nonoverlapping(data.as_ptr(), data.len());
            }
            bytes
        };
        let start = if data.len() <= SMALL {
            start
        } else {
            staged.extend_from_slice(data);
            let start = NonNull::from(staged.as_mut_slice()).cast::<u8>();
            if self.slots_region.is_some() {
                let key = STAGED_KEY + number as u64;
                let (result, region) = register(&self.domain, start, data.len(), FI_WRITE, key);
                match Handle::made(self.library, "fi_mr_reg", result, region) {
                    Ok(region) => {
                        // SAFETY: the registration is open.
                        desc = unsafe { (*region.as_ptr()).mem_desc };
                        registered = Some(region);
                    }
                    // Registrations may be scarce: others end.
                    Err(why) => {
                        self.note(why);
                        self.free.borrow_mut().push(number);
                        return Err(SendQueueFull);
                    }
                }
            }
            start.as_ptr()
        };
        let from = iovec {
            iov_base: start.cast(),
            iov_len: data.len(),
        };
        let place = fi_rma_iov {
            addr: peer.base + u64::from(at),
            len: data.len(),
            key: peer.key,
        };
        let message = fi_msg_rma {
            msg_iov: &from,
            desc: &mut desc,
            iov_count: 1,
            addr: peer.address,
            rma_iov: &place,
            rma_iov_count: 1,
            context: slot.cast(),
            data: told.unwrap_or(0),
        };
        let with_data = if told.is_some() { FI_REMOTE_CQ_DATA } else { 0 };
        let flags = FI_COMPLETION | FI_DELIVERY_COMPLETE | with_data;
        let endpoint = self.endpoint.as_ptr();
        // M3: what was stored to own memory and to the slot is seen by whatever does this.
        fence(Ordering::Release);
        // SAFETY: the endpoint is open. The message and its parts live until the call returns; the
        // data and the context until the completion is read (E2).
        let result = unsafe { ((*(*endpoint).rma).writemsg)(endpoint, &message, flags) };
        let flight = Flight {
            id,
            to,
            _registered: registered,
            _staged: staged,
            told: false,
        };
        self.begun(number, result, flight)
    }

    /// Begins to load `len` bytes at `at` of `to`'s memory, to `into` in own memory.
    ///
    /// # Panics
    /// Unless they fit there.
    pub(crate) fn get(
        &self,
        id: u32,
        to: usize,
        at: u32,
        into: u32,
        len: u32,
    ) -> Result<(), SendQueueFull> {
        let place = self.memory.inside(into, len as usize);
        let (peer, number) = (self.peer(to), self.take_slot()?);
        let (endpoint, from) = (self.endpoint.as_ptr(), peer.base + u64::from(at));
        fence(Ordering::Release);
        // SAFETY: the endpoint and the registration are open. The place is in registered memory,
        // which outlives the operation (E3) and bears changes at any time (M2); the context lives
        // until the completion is read (E2).
        let result = unsafe {
            let desc = (*self.region.as_ptr()).mem_desc;
            ((*(*endpoint).rma).read)(
                endpoint,
                place.as_ptr().cast(),
                len as usize,
                desc,
                peer.address,
                from,
                peer.key,
                self.slot(number).cast(),
            )
        };
        self.begun(number, result, Flight::bare(id, to))
    }

    /// Begins to change the cell at `at` of `to`'s memory.
    pub(crate) fn change(
        &self,
        id: u32,
        to: usize,
        at: u32,
        amo: Amo,
    ) -> Result<(), SendQueueFull> {
        let (peer, number) = (self.peer(to), self.take_slot()?);
        let (is_swap, operation) = operation_of(amo);
        let (operand, compare) = match amo {
            Amo::Read => (0, 0),
            Amo::Add(value) | Amo::And(value) | Amo::Or(value) => (value, 0),
            Amo::Xor(value) | Amo::Swap(value) => (value, 0),
            Amo::CompareSwap { expected, new } => (new, expected),
        };
        let (slot, desc) = (self.slot(number), self.slots_desc());
        let (endpoint, cell) = (self.endpoint.as_ptr(), peer.base + u64::from(at));
        fence(Ordering::Release);
        // SAFETY: the endpoint is open, and its table of atomics long enough (`does` was asked when
        // the network was opened). The slot is free until here, and its operands and its result are
        // this operation's until the completion is read (E2).
        let result = unsafe {
            (&raw mut (*slot).operand).write(operand);
            (&raw mut (*slot).compare).write(compare);
            let operand = (&raw const (*slot).operand).cast();
            let compare = (&raw const (*slot).compare).cast();
            let result = (&raw mut (*slot).result).cast();
            let table = &*(*endpoint).atomic;
            if is_swap {
                (table.compwrite)(
                    endpoint,
                    operand,
                    1,
                    desc,
                    compare,
                    desc,
                    result,
                    desc,
                    peer.address,
                    cell,
                    peer.key,
                    FI_UINT64,
                    operation,
                    slot.cast(),
                )
            } else {
                (table.readwrite)(
                    endpoint,
                    operand,
                    1,
                    desc,
                    result,
                    desc,
                    peer.address,
                    cell,
                    peer.key,
                    FI_UINT64,
                    operation,
                    slot.cast(),
                )
            }
        };
        self.begun(number, result, Flight::bare(id, to))
    }

    /// The oldest completion that was not taken.
    pub(crate) fn poll(&self) -> Option<Completion> {
        let next = self.completions.borrow_mut().pop_front();
        next.or_else(|| {
            self.pump();
            self.completions.borrow_mut().pop_front()
        })
    }

    /// Whether there is a completion to take. Gives libfabric time.
    pub(crate) fn has_completions(&self) -> bool {
        if self.completions.borrow().is_empty() {
            self.pump();
        }
        !self.completions.borrow().is_empty()
    }

    /// Operations that are not done.
    pub(crate) fn in_flight(&self) -> usize {
        let flights = self.flights.borrow();
        flights
            .iter()
            .flatten()
            .filter(|flight| !flight.told)
            .count()
    }

    /// `to` is gone: what is in flight to it fails.
    pub(crate) fn lose(&self, to: usize) {
        self.fail_all(|flight| flight.to == to);
    }

    /// Operation `id` fails without having begun.
    pub(crate) fn fail(&self, id: u32) {
        let failed = Completion::Failed { id };
        self.completions.borrow_mut().push_back(failed);
    }

    /// The operations that `which` picks have failed. Their slots stay in use: libfabric may still
    /// know them.
    fn fail_all(&self, which: impl Fn(&Flight) -> bool) {
        let mut flights = self.flights.borrow_mut();
        for flight in flights.iter_mut().flatten() {
            if which(flight) && !flight.told {
                flight.told = true;
                let failed = Completion::Failed { id: flight.id };
                self.completions.borrow_mut().push_back(failed);
            }
        }
    }

    /// Gives libfabric time, and reads what its queue has.
    pub(crate) fn pump(&self) {
        if self.broken.get() {
            return;
        }
        loop {
            let mut entries = [const { MaybeUninit::<fi_cq_data_entry>::uninit() }; BATCH];
            let queue = self.queue.as_ptr();
            // SAFETY: the queue is open, and has entries of this format; there is room for as many
            // as are asked for.
            let read = unsafe {
                ((*(*queue).ops).read)(queue, entries.as_mut_ptr().cast(), entries.len())
            };
            // M3: what the network has stored before is seen from here on.
            fence(Ordering::Acquire);
            match usize::try_from(read) {
                Ok(count) => {
                    for entry in &entries[..count.min(BATCH)] {
                        // SAFETY: the call has stored that many entries.
                        let entry = unsafe { entry.assume_init_ref() };
                        if entry.flags & FI_REMOTE_CQ_DATA != 0 {
                            let told = Completion::Told(entry.data);
                            self.completions.borrow_mut().push_back(told);
                        } else {
                            self.ended(entry.op_context, true);
                        }
                    }
                    if count < BATCH {
                        return;
                    }
                }
                Err(_) if read == -(FI_EAGAIN as isize) => return,
                Err(_) if read == -(FI_EAVAIL as isize) => {
                    if !self.take_error() {
                        return;
                    }
                }
                Err(_) => {
                    self.note(format!("fi_cq_read: {}", self.library.error(read as i64)));
                    self.broken.set(true);
                    self.fail_all(|_| true);
                    return;
                }
            }
        }
    }

    /// Takes an operation that has failed from libfabric's queue; false if there is none.
    fn take_error(&self) -> bool {
        // SAFETY: numbers and bare pointers, for which zeros are values: no room for more details.
        let mut entry = unsafe { MaybeUninit::<fi_cq_err_entry>::zeroed().assume_init() };
        let queue = self.queue.as_ptr();
        // SAFETY: the queue is open; there is room for one entry.
        let read = unsafe { ((*(*queue).ops).readerr)(queue, &mut entry, 0) };
        if read != 1 {
            return false;
        }
        let what = self.library.error(entry.err.into());
        self.note(format!(
            "an operation has failed: {what} ({})",
            entry.prov_errno
        ));
        self.ended(entry.op_context, false);
        true
    }

    /// libfabric is done with the operation of this context.
    fn ended(&self, context: *mut c_void, well: bool) {
        let first = self.slots.as_ptr() as usize;
        let distance = (context as usize).wrapping_sub(first);
        let number = distance / size_of::<Slot>();
        let mut flights = self.flights.borrow_mut();
        // None of ours: a peer's operation that has failed here.
        let Some(flight) = flights.get_mut(number).and_then(Option::take) else {
            return;
        };
        // SAFETY: the slot is there, and libfabric is done with it.
        let value = unsafe { (&raw const (*self.slot(number)).result).read() };
        self.free.borrow_mut().push(number);
        let id = flight.id;
        let completion = if well {
            Completion::Done { id, value }
        } else {
            Completion::Failed { id }
        };
        if !flight.told {
            self.completions.borrow_mut().push_back(completion);
        }
    }
}

impl Flight {
    /// One without data of its own.
    fn bare(id: u32, to: usize) -> Self {
        Self {
            id,
            to,
            _registered: None,
            _staged: Vec::new(),
            told: false,
        }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.helper = None;
        let slots = self.slots_region.as_mut().is_none_or(Handle::close);
        // The endpoint may not be closed while memory is bound to it; and no memory is freed that
        // the endpoint still knows.
        let closed = self.region.close() & slots & self.endpoint.close();
        let flights = std::mem::take(&mut *self.flights.borrow_mut());
        if closed {
            // SAFETY: neither is used from here on, and each is dropped once. Nothing knows them
            // any more: no registration, no operation of an open endpoint.
            unsafe {
                ManuallyDrop::drop(&mut self.memory);
                ManuallyDrop::drop(&mut self.slots);
            }
        } else {
            // E3.
            std::mem::forget(flights);
        }
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

fn open_addresses(
    library: &Library,
    domain: &Handle<fid_domain>,
    ranks: u16,
) -> Result<Handle<fid_av>, String> {
    // SAFETY: numbers and bare pointers, for which zeros are values.
    let mut attributes = unsafe { MaybeUninit::<fi_av_attr>::zeroed().assume_init() };
    attributes.r#type = FI_AV_TABLE;
    attributes.count = ranks.into();
    let (domain, mut addresses) = (domain.as_ptr(), null_mut());
    // SAFETY: the domain is open and its table has the function; it stores the object's address.
    let result =
        unsafe { ((*(*domain).ops).av_open)(domain, &mut attributes, &mut addresses, null_mut()) };
    Handle::made(library, "fi_av_open", result, addresses)
}

fn open_queue(
    library: &Library,
    domain: &Handle<fid_domain>,
    size: usize,
) -> Result<Handle<fid_cq>, String> {
    // SAFETY: numbers and bare pointers, for which zeros are values.
    let mut attributes = unsafe { MaybeUninit::<fi_cq_attr>::zeroed().assume_init() };
    attributes.size = size;
    attributes.format = FI_CQ_FORMAT_DATA;
    let (domain, mut queue) = (domain.as_ptr(), null_mut());
    // SAFETY: as for addresses.
    let result =
        unsafe { ((*(*domain).ops).cq_open)(domain, &mut attributes, &mut queue, null_mut()) };
    Handle::made(library, "fi_cq_open", result, queue)
}

/// Asks for a registration; its result, and the object. The memory must stay until the registration
/// is closed, and bear changes if it may be written to.
fn register(
    domain: &Handle<fid_domain>,
    start: NonNull<u8>,
    len: usize,
    access: u64,
    key: u64,
) -> (c_int, *mut fid_mr) {
    let (domain, mut region) = (domain.as_ptr(), null_mut());
    // SAFETY: the domain is open and its table has the function; it stores the object's address.
    // The callers' memory: own memory (M1, M2), the slots (E2), staged data that only leave (E2).
    let result = unsafe {
        let (fid, start) = (domain.cast(), start.as_ptr().cast());
        let register = (*(*domain).mr).reg;
        register(fid, start, len, access, 0, key, 0, &mut region, null_mut())
    };
    (result, region)
}

fn bind(library: &Library, object: *mut fid, to: *mut fid, flags: u64) -> Result<(), String> {
    // SAFETY: both objects are open: the callers hold their handles.
    let result = unsafe { ((*(*object).ops).bind)(object, to, flags) };
    worked(library, "fi_bind", result)
}

fn enable(library: &Library, object: *mut fid) -> Result<(), String> {
    // SAFETY: as for `bind`; the command takes no argument.
    let result = unsafe { ((*(*object).ops).control)(object, FI_ENABLE as c_int, null_mut()) };
    worked(library, "fi_enable", result)
}

fn worked(library: &Library, what: &str, result: c_int) -> Result<(), String> {
    match result {
        0 => Ok(()),
        error => Err(format!("{what}: {}", library.error(error.into()))),
    }
}
