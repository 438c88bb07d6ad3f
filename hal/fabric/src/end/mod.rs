//! One end of a libfabric network: endpoints, their completion queues, the ranks they know.
//!
//! The modules below make all calls of libfabric's tables of functions. What an end offers is safe:
//! places are checked, and what an operation uses stays where it is until its completion has come.
//!
//! An end has one endpoint; or two in one domain, where the provider orders puts on an endpoint
//! without atomics only. Then the first one does puts, immediates and gets, the second one changes
//! of cells. A look at a queue is work for the provider, so the second one's is looked at less
//! often while none of this rank's own operations is in flight there.
//!
//! # Invariants
//! * E1. The objects behind the handles are open until their handle is dropped, and each is closed
//!   before those that it was made from: the fields of [`End`] are in that order.
//! * E2. An operation owns its slot, and the bytes it stages, from the call that begins it until
//!   its completion is read. A slot never moves. No reference to a slot is made: libfabric stores
//!   there. Peers' data come to own memory from peers' operations only: what a get loads is staged,
//!   and copied when it is done. So a late answer of a lost rank changes nothing.
//! * E3. If the endpoints or a registration cannot be closed, the memory they know is leaked.
//! * E4. Only this module's thread calls libfabric for this end, except a [`Helper`], for which the
//!   domain is opened as safe for threads.
//! * E5. Where puts are ordered, a put whose completion is read has left after all that were posted
//!   before it to the same rank.
//!
//! # Rests
//! Providers in software have a lock for a rank's queue. The rank's looks take it, and so do its
//! peers' puts. A rank that looks without a rest keeps its peers from storing. So a rank rests
//! before a look if its last look has brought several completions: for some turns of a spin loop
//! per completion. The next look then brings about as many. A rank in a long wait rests before each
//! look.
//!
//! # Bounds
//! [`SLOTS`] operations in flight, or as many as the provider takes; and twice as many puts to each
//! rank that the provider keeps a copy of as there are [`Credits`].

mod completions;
mod credits;
mod handle;
mod helper;
mod operations;
mod slots;
mod staging;

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::net::IpAddr;
use std::ptr::null_mut;
use std::time::Duration;

use credits::Credits;
use handle::{Domain, Handle, Port};
use helper::Helper;
use slots::Slots;
use staging::Pool;

use crate::attach::{Attached, Place};
use crate::bindings::*;
use crate::card::Card;
use crate::library::{Asked, Library, Ways};
use crate::memory::Memory;

pub(crate) use completions::Completion;
pub(crate) use operations::Put;

/// Operations in flight at most.
const SLOTS: usize = 256;

/// Bytes of an endpoint's name at most.
const NAME: usize = 512;

/// Entries of the completion queue for each peer's immediates. The provider holds back what does
/// not fit.
const ENTRIES: usize = 512;

/// What an end was opened with, and what its provider can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// The provider's name, as libfabric has it.
    pub provider: String,
    /// Major and minor version of libfabric.
    pub version: (u32, u32),
    /// Bytes that travel with an immediate.
    pub immediate_bytes: usize,
    /// Puts to one target take effect in order.
    pub ordered_puts: bool,
    /// Endpoints: two where atomics need one of their own.
    pub endpoints: usize,
    /// Local buffers are registered, too.
    pub local_registration: bool,
    /// Ranks to whose memory the system copies large puts, and from whose memory gets.
    pub attached: usize,
    /// Operations in flight at most.
    pub operations: usize,
}

impl std::fmt::Display for Abilities {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (major, minor) = self.version;
        write!(
            f,
            "{} of libfabric {major}.{minor}, immediates of {} bytes, puts {}, {} endpoint{}, \
             {} operations, {} ranks attached",
            self.provider,
            self.immediate_bytes,
            if self.ordered_puts {
                "in order"
            } else {
                "in any order"
            },
            self.endpoints,
            if self.endpoints == 1 { "" } else { "s" },
            self.operations,
            self.attached,
        )
    }
}

/// A rank that this end knows.
#[derive(Debug)]
struct Peer {
    rank: u16,
    /// Of its first endpoint, and of the one that does atomics.
    address: u64,
    changes: u64,
    key: u64,
    base: u64,
    /// Its memory, if the system copies there.
    attached: Option<Attached>,
    /// It is gone: nothing is posted to it.
    lost: Cell<bool>,
    /// It is gone, or a put of which nobody is told has failed: so does what is put later.
    failed: Cell<bool>,
    /// For small puts.
    credits: Credits,
    /// There were puts after the last confirmed one.
    unconfirmed: Cell<bool>,
}

impl Peer {
    /// Its memory, if the system copies there and it is not gone.
    fn attached(&self) -> Option<&Attached> {
        self.attached.as_ref().filter(|_| !self.failed.get())
    }
}

/// How an end is opened.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) provider: &'a str,
    pub(crate) source: Option<IpAddr>,
    /// See [`Asked::name`].
    pub(crate) name: &'a str,
    pub(crate) memory: usize,
    pub(crate) ranks: u16,
    pub(crate) helper: Option<Duration>,
}

/// An end that is open.
#[derive(Debug)]
pub(crate) struct End {
    helper: Option<Helper>,
    pool: Pool,
    /// For puts, immediates and gets; and for changes of cells, if there is no second.
    first: Port,
    second: Option<Port>,
    region: Handle<fid_mr>,
    slots_region: Option<Handle<fid_mr>>,
    addresses: Handle<fid_av>,
    domain: Domain,
    ways: Ways,
    library: &'static Library,
    memory: ManuallyDrop<Memory>,
    slots: ManuallyDrop<Slots>,
    completions: RefCell<VecDeque<Completion>>,
    peers: OnceCell<Vec<Peer>>,
    /// Bytes that may be injected.
    inject: usize,
    /// All ranks' providers order puts.
    ordered: Cell<bool>,
    /// Own changes of cells in flight.
    changing: Cell<u32>,
    /// Looks at the first queue.
    looks: Cell<u32>,
    /// A rank to which something has failed of which no completion tells.
    failed: Cell<Option<u16>>,
    /// All that the last look has brought was taken.
    drained: Cell<bool>,
    /// Turns of a spin loop before the next look: see the module's "Rests".
    rest: Cell<u32>,
    /// The last failure, for people.
    failure: RefCell<Option<String>>,
    broken: Cell<bool>,
    /// Puts and gets that the system has copied.
    copies: Cell<u64>,
}

impl End {
    /// Opens an end, with its memory registered.
    ///
    /// # Errors
    /// One line.
    pub(crate) fn open(wanted: &Wanted<'_>) -> Result<Self, String> {
        let library = Library::get()?;
        let ways = library.ways(&Asked {
            provider: wanted.provider,
            source: wanted.source,
            name: wanted.name,
            memory: wanted.memory,
            threads: wanted.helper.is_some(),
        })?;
        let largest = ways.puts().endpoint().max_msg_size;
        if largest < wanted.memory {
            let (provider, memory) = (ways.all.provider(), wanted.memory);
            return Err(format!(
                "{provider} moves {largest} bytes at a time, less than the {memory} bytes of memory"
            ));
        }
        let lacks = || format!("the system has no {} bytes of memory", wanted.memory);
        let memory = Memory::new(wanted.memory).ok_or_else(lacks)?;
        let count = ways.puts().sending().size.clamp(1, SLOTS);
        let slots = Slots::new(count);

        let domain = Domain::open(library, &ways.all)?;
        let ranks = usize::from(wanted.ranks);
        let endpoints = 1 + usize::from(ways.puts.is_some());
        let addresses = domain.addresses(ranks * endpoints)?;
        let entries = count + ENTRIES * ranks;
        let first = domain.port(ways.puts(), &addresses, entries)?;
        let second = ways.puts.as_ref();
        let second = second.map(|_| domain.port(&ways.all, &addresses, count));
        let second = second.transpose()?;

        let local = FI_READ | FI_WRITE;
        let all = local | FI_REMOTE_READ | FI_REMOTE_WRITE;
        let (start, len) = (memory.start(), memory.len());
        // SAFETY: the memory is there until the registration is closed (E3, M1), and bears changes
        // (M2).
        let region = unsafe { domain.register(&first.endpoint, start, len, all)? };
        let slots_region = if domain.mode & FI_MR_LOCAL != 0 {
            let (start, len) = slots.place();
            // SAFETY: the slots are there until the registration is closed (E3), and bear changes
            // (E2).
            let slots = unsafe { domain.register(&first.endpoint, start, len, local)? };
            Some(slots)
        } else {
            None
        };
        let start = |pause| Helper::start([&first].into_iter().chain(&second), pause);
        let helper = wanted.helper.map(start).transpose();
        let inject = ways.puts().sending().inject_size;
        Ok(Self {
            helper: helper.map_err(|why| format!("no thread for the network: {why}"))?,
            pool: Pool::default(),
            first,
            second,
            region,
            slots_region,
            addresses,
            domain,
            ways,
            library,
            memory: ManuallyDrop::new(memory),
            slots: ManuallyDrop::new(slots),
            completions: RefCell::new(VecDeque::new()),
            peers: OnceCell::new(),
            inject,
            ordered: Cell::new(false),
            changing: Cell::new(0),
            looks: Cell::new(0),
            failed: Cell::new(None),
            drained: Cell::new(false),
            rest: Cell::new(0),
            failure: RefCell::new(None),
            broken: Cell::new(false),
            copies: Cell::new(0),
        })
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// [`Memory::zero`], where the provider does not hold the pages.
    pub(crate) fn zero(&self, at: usize, len: usize) -> bool {
        self.domain.mode & FI_MR_ALLOCATED == 0 && self.memory.zero(at, len)
    }

    pub(crate) fn abilities(&self) -> Abilities {
        Abilities {
            provider: self.ways.all.provider(),
            version: self.library.version(),
            immediate_bytes: self.ways.puts().domain().cq_data_size,
            ordered_puts: self.ordered.get(),
            endpoints: self.ports().count(),
            local_registration: self.slots_region.is_some(),
            attached: { self.known().iter() }
                .filter(|peer| peer.attached.is_some())
                .count(),
            operations: self.slots.len(),
        }
    }

    /// Whether puts to one rank take effect in order, at all ranks.
    #[inline]
    pub(crate) fn orders_puts(&self) -> bool {
        self.ordered.get()
    }

    fn ports(&self) -> impl Iterator<Item = &Port> {
        [&self.first].into_iter().chain(&self.second)
    }

    /// Puts and gets that the system has copied.
    pub(crate) fn copies(&self) -> u64 {
        self.copies.get()
    }

    /// What peers need to know.
    ///
    /// # Errors
    /// One line.
    pub(crate) fn card(&self) -> Result<Card, String> {
        let name = |port: &Port| {
            let mut name = vec![0; NAME];
            let mut len = name.len();
            let endpoint = port.endpoint.as_ptr();
            // SAFETY: the endpoint is open and its table has `getname`, which stores up to `len`
            // bytes and the length.
            let result = unsafe {
                let getname = (*(*endpoint).cm).getname;
                getname(port.endpoint.fid(), name.as_mut_ptr().cast(), &mut len)
            };
            if result != 0 || len > name.len() {
                return Err(format!("fi_getname: {}", self.library.error(result.into())));
            }
            name.truncate(len);
            Ok(name)
        };
        let names: Result<Vec<_>, String> = self.ports().map(name).collect();
        let virtual_addresses = self.domain.mode & FI_MR_VIRT_ADDR != 0;
        let place = Place::of(&self.memory).map_err(|why| format!("no random numbers: {why}"))?;
        Ok(Card {
            names: names?,
            key: self.region.key(),
            base: if virtual_addresses { place.start } else { 0 },
            place,
            ordered: self.ways.puts().orders_puts(self.memory.len()),
        })
    }

    /// Makes all ranks known, once. Operations may be begun then.
    ///
    /// # Errors
    /// One line.
    pub(crate) fn know(&self, cards: &[Card]) -> Result<(), String> {
        let (local, own) = (self.ways.local, std::process::id() as i32);
        let know = |(card, rank): (&Card, u16)| {
            let first = card.names.first().ok_or("a rank without a name")?;
            let second = card.names.get(1);
            if second.is_some() != self.second.is_some() {
                return Err("the ranks' providers differ".to_owned());
            }
            let address = self.insert(first)?;
            Ok(Peer {
                rank,
                address,
                changes: second.map_or(Ok(address), |name| self.insert(name))?,
                key: card.key,
                base: card.base,
                // A3.
                attached: (local && card.place.process != own)
                    .then(|| Attached::new(&card.place, self.memory.len()))
                    .flatten(),
                lost: Cell::new(false),
                failed: Cell::new(false),
                credits: Credits::new(),
                unconfirmed: Cell::new(false),
            })
        };
        let peers: Result<Vec<Peer>, String> = cards.iter().zip(0..).map(know).collect();
        self.ordered.set(cards.iter().all(|card| card.ordered));
        self.peers
            .set(peers?)
            .map_err(|_| "the ranks are known already".to_owned())
    }

    /// The address of the endpoint with this name.
    fn insert(&self, name: &[u8]) -> Result<u64, String> {
        let mut address = u64::MAX;
        let addresses = self.addresses.as_ptr();
        // Longer than any address that the provider reads.
        let mut name = name.to_vec();
        name.resize(NAME, 0);
        // SAFETY: the table of addresses is open; the name is followed by zeros up to the longest
        // that there is; one address is stored.
        let inserted = unsafe {
            let (name, flags) = (name.as_ptr().cast(), 0);
            let insert = (*(*addresses).ops).insert;
            insert(addresses, name, 1, &mut address, flags, null_mut())
        };
        if inserted != 1 {
            let why = self.library.error(inserted.into());
            return Err(format!("fi_av_insert: {why}"));
        }
        Ok(address)
    }

    #[inline]
    fn peer(&self, to: usize) -> &Peer {
        &self.known()[to]
    }

    fn known(&self) -> &[Peer] {
        self.peers.get().map_or(&[], Vec::as_slice)
    }

    fn slots_desc(&self) -> *mut c_void {
        self.slots_region.as_ref().map_or(null_mut(), Handle::desc)
    }

    fn note(&self, what: String) {
        self.failure.replace(Some(what));
    }

    /// The last failure, for people.
    pub(crate) fn failure(&self) -> Option<String> {
        self.failure.borrow().clone()
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.helper = None;
        let mut closed = self.pool.close();
        self.slots.for_each(|flight| {
            if let Some(buffer) = flight.buffer.as_mut() {
                closed &= buffer.close();
            }
        });
        closed &= self.slots_region.as_mut().is_none_or(Handle::close);
        // An endpoint may not be closed while memory is bound to it; and no memory is freed that
        // an endpoint still knows.
        closed &= self.region.close();
        closed &= self.first.close();
        closed &= self.second.as_mut().is_none_or(Port::close);
        if closed {
            // SAFETY: neither is used from here on, and each is dropped once. Nothing knows them
            // any more: no registration, no operation of an open endpoint. Else, E3.
            unsafe {
                ManuallyDrop::drop(&mut self.memory);
                ManuallyDrop::drop(&mut self.slots);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "needs libfabric: cargo xtask fabric --headers"]
    fn keys_of_memory_are_not_to_be_foreseen() {
        for provider in ["shm", "tcp;ofi_rxm"] {
            let open = |number: u32| {
                let end = End::open(&Wanted {
                    provider,
                    source: Some(std::net::Ipv4Addr::LOCALHOST.into()),
                    name: &format!("flagpost-keys-{}-{number}", std::process::id()),
                    memory: 4096,
                    ranks: 1,
                    helper: None,
                });
                end.unwrap().card().unwrap().key
            };
            let keys = [0, 1, 2, 3].map(open);
            // Chance does not give such small ones: 2^-30, four times.
            assert!(
                keys.iter().all(|key| *key >> 34 != 0),
                "{provider} {keys:x?}"
            );
            let differ = keys.iter().enumerate();
            assert!(
                { differ }.all(|(index, key)| !keys[..index].contains(key)),
                "{keys:x?}"
            );
        }
    }
}
