//! The last accesses of every core, and a hash of all accesses.
//!
//! Recording costs one store into a ring per step; text is made only for the account of a failure.
//!
//! The hash covers what happened, in order: core, kind of access, address, value; also evictions,
//! arrivals, prefetches and wake-ups. It leaves out source places and labels: their addresses
//! change from build to build. Equal hashes mean that every access of two runs had the same result.

use std::fmt::Write;
use std::panic::Location;

use flagpost_hal::is_library;

use crate::op::{Access, Message, PostKind, Request};
use crate::place::Places;
use crate::shape::Shape;

/// Lines per core whose last store is remembered.
const STORES: usize = 64;

/// What became of an access, for the reader of a timeline.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) enum Note {
    None,
    /// From the cache; memory has nothing newer.
    Hit,
    /// From the cache, though memory has newer bytes.
    Stale,
    /// Fetched a line.
    Miss,
    /// Still in the core's store or combining buffer.
    Buffered,
    /// Bytes came from the core's own store buffer.
    Forwarded,
    /// An early load: the word's former value.
    Early,
    /// The line held unsaved stores.
    Dirty,
    /// There was nothing to do.
    Nothing,
    /// It concerned other lines than those named.
    Others,
    /// More steps of this access follow.
    More,
    /// The core waits.
    Waits,
    /// An own operation is done.
    Done,
    /// An own operation has failed.
    Fails,
    /// A peer's immediate.
    Told,
    /// There is no room for it.
    Full,
}

/// An access, or something the chip did on its own account (from `Evict` on).
#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) enum Verb {
    Load8,
    Load32,
    Store8,
    Store32,
    Combine,
    Empty,
    Atomic,
    Read,
    Write,
    WriteBack,
    Invalidate,
    Drain,
    Acquire,
    Early,
    TestAndSet,
    Clear,
    Cycles,
    Watch,
    Relax,
    Ring,
    WaitForRing,
    Mark,
    Evict,
    Prefetch,
    Arrive,
    Wake,
    BudgetsExpire,
    Spend,
    LoadMessage,
    StoreMessage,
    InvalidateMessages,
    OpenNic,
    DropOut,
    ReadRegistered,
    WriteRegistered,
    Stage,
    PostPut,
    PostGet,
    PostAmo,
    Poll,
    Deliver,
    Fetch,
    Change,
    Answer,
    Tell,
    Fails,
}

/// What a timeline shows of a verb's `at` and `value`.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Shows {
    Nothing,
    Address,
    Value,
    AddressAndValue,
    Core,
    CoreAndValue,
    Label,
}

/// One line of a timeline.
#[derive(Copy, Clone)]
pub(crate) struct Event {
    pub(crate) step: u64,
    pub(crate) at: u32,
    pub(crate) value: u32,
    /// Number of the event, for their order within a step; given by [`Trace::record`].
    pub(crate) number: u32,
    pub(crate) core: u16,
    pub(crate) verb: Verb,
    pub(crate) note: Note,
    /// Of a mark; else empty.
    pub(crate) label: &'static str,
    /// Where the program asked for it; none for the chip's own doings.
    pub(crate) place: Option<&'static Location<'static>>,
}

/// Rings of the last events, and the hash of all.
#[derive(Clone)]
pub(crate) struct Trace {
    rings: Vec<Vec<Event>>,
    /// Where each ring goes on.
    next: Vec<usize>,
    depth: usize,
    /// Each core's last stores, by line: see [`Trace::stored`].
    stores: Vec<Option<(u32, Places)>>,
    /// Events so far, modulo 2^32.
    count: u32,
    hash: u64,
}

impl Trace {
    pub(crate) fn new(cores: u16, depth: u16) -> Self {
        let cores = usize::from(cores);
        Self {
            rings: (0..cores).map(|_| Vec::new()).collect(),
            next: vec![0; cores],
            depth: usize::from(depth).max(1),
            stores: vec![None; cores * STORES],
            count: 0,
            hash: 0,
        }
    }

    pub(crate) fn reset(&mut self) {
        self.rings.iter_mut().for_each(Vec::clear);
        self.next.fill(0);
        self.stores.fill(None);
        self.count = 0;
        self.hash = 0;
    }

    /// Remembers `event`, and mixes it into the hash.
    #[inline]
    pub(crate) fn record(&mut self, mut event: Event) {
        self.count = self.count.wrapping_add(1);
        event.number = self.count;
        let what = u64::from(event.at) << 32 | u64::from(event.value);
        let who = u64::from(event.core) << 8 | event.verb as u64;
        // Each event goes through a multiplication by an odd number and a rotation: order counts.
        self.hash = (self.hash ^ what).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.hash = (self.hash.rotate_left(29) ^ who).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let core = usize::from(event.core);
        let (ring, next) = (&mut self.rings[core], &mut self.next[core]);
        match ring.get_mut(*next) {
            Some(old) => *old = event,
            None => ring.push(event),
        }
        *next += 1;
        if *next == self.depth {
            *next = 0;
        }
    }

    /// Remembers where `core` stored to `line`, instead of one other line.
    #[inline]
    pub(crate) fn stored(&mut self, core: u16, line: u32, places: Places) {
        self.stores[store_of(core, line)] = Some((line, places));
    }

    /// Where `core` stored to `line` last, if that is still known.
    pub(crate) fn last_store(&self, core: u16, line: u32) -> Option<Places> {
        let (_, places) =
            self.stores[store_of(core, line)].filter(|(stored, _)| *stored == line)?;
        Some(places)
    }

    /// Hash of the run so far.
    pub(crate) fn hash(&self) -> u64 {
        crate::rng::mix(self.hash)
    }

    /// The remembered events of `cores`, in order of steps, as text: all, or those that lines of
    /// the program have asked for.
    pub(crate) fn render(&self, cores: &[u16], shape: &Shape, whole: bool) -> String {
        let rings = cores.iter().map(|&core| &self.rings[usize::from(core)]);
        let of_program = |event: &Event| event.place.is_some_and(|place| !is_library(place));
        let shown = rings.flatten().filter(|event| whole || of_program(event));
        let mut events: Vec<&Event> = shown.collect();
        events.sort_by_key(|event| (event.step, event.number));
        if events.is_empty() {
            return String::new();
        }
        let mut text = String::from("    step core access                value      note\n");
        for event in events {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}", event.render(shape));
        }
        text
    }
}

/// Where the last store of `core` to `line` is remembered. Lines in the same place of several
/// regions, which programs store to in turn, are spread.
const fn store_of(core: u16, line: u32) -> usize {
    let spread = line.wrapping_mul(0x9E37_79B1) >> (32 - STORES.trailing_zeros());
    core as usize * STORES + spread as usize
}

impl Event {
    fn render(&self, shape: &Shape) -> String {
        let (name, shows) = self.verb.name();
        let target = match shows {
            Shows::Nothing | Shows::Value => String::new(),
            Shows::Label => self.label.to_string(),
            Shows::Core | Shows::CoreAndValue => format!("core {}", self.at),
            Shows::Address | Shows::AddressAndValue => shape.address(self.at).to_string(),
        };
        let value = match shows {
            Shows::AddressAndValue | Shows::Value => format!("{:#010x}", self.value),
            Shows::CoreAndValue => self.value.to_string(),
            _ => String::new(),
        };
        let place = self
            .place
            .map_or(String::new(), |p| format!("  {}:{}", p.file(), p.line()));
        let text = format!(
            "{:8} {:4} {name:<14} {target:<17} {value:<10} {}{place}",
            self.step,
            self.core,
            self.note.text()
        );
        text.trim_end().to_string()
    }
}

impl Note {
    const fn text(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Hit => "hit",
            Self::Stale => "HIT, STALE: memory is newer",
            Self::Miss => "miss",
            Self::Buffered => "buffered",
            Self::Forwarded => "own buffered store",
            Self::Early => "EARLY: the former value",
            Self::Dirty => "dirty",
            Self::Nothing => "nothing to do",
            Self::Others => "other lines",
            Self::More => "...",
            Self::Waits => "waits",
            Self::Done => "done",
            Self::Fails => "FAILED: its target is gone",
            Self::Told => "immediate",
            Self::Full => "no room",
        }
    }
}

impl Verb {
    /// The verb of a core's access.
    #[inline]
    pub(crate) const fn of(access: &Access) -> Self {
        match access {
            Access::Load { width: 1 } => Self::Load8,
            Access::Load { .. } => Self::Load32,
            Access::Store { width: 1, .. } => Self::Store8,
            Access::Store { .. } => Self::Store32,
            Access::Combine { .. } => Self::Combine,
            Access::Empty => Self::Empty,
            Access::Atomic(_) => Self::Atomic,
            Access::Read { .. } => Self::Read,
            Access::Write { .. } => Self::Write,
            Access::WriteBack { .. } => Self::WriteBack,
            Access::Invalidate { .. } => Self::Invalidate,
            Access::Message(Message::Load { .. }) => Self::LoadMessage,
            Access::Message(Message::Store { .. }) => Self::StoreMessage,
            Access::Message(Message::Invalidate) => Self::InvalidateMessages,
            Access::Network(request) => Self::of_request(request),
            Access::Drain => Self::Drain,
            Access::Acquire => Self::Acquire,
            Access::Early { .. } => Self::Early,
            Access::TestAndSet(_) => Self::TestAndSet,
            Access::Clear(_) => Self::Clear,
            Access::Cycles => Self::Cycles,
            Access::Watch { .. } => Self::Watch,
            Access::Relax => Self::Relax,
            Access::Ring(_) => Self::Ring,
            Access::WaitForRing => Self::WaitForRing,
            Access::Mark(_) => Self::Mark,
            Access::Spend(_) => Self::Spend,
        }
    }

    /// The verb of what a core asks of its end of the network.
    const fn of_request(request: &Request) -> Self {
        match request {
            Request::Open => Self::OpenNic,
            Request::DropOut => Self::DropOut,
            Request::Read { .. } => Self::ReadRegistered,
            Request::Write { .. } => Self::WriteRegistered,
            Request::Stage { .. } => Self::Stage,
            Request::Post(posted) => match posted.kind {
                PostKind::Put => Self::PostPut,
                PostKind::Get => Self::PostGet,
                PostKind::Amo => Self::PostAmo,
            },
            Request::Poll => Self::Poll,
        }
    }

    /// Whether the core stores to the line, now or later.
    pub(crate) const fn stores(self) -> bool {
        matches!(
            self,
            Self::Store8
                | Self::Store32
                | Self::Combine
                | Self::Atomic
                | Self::Write
                | Self::StoreMessage
        )
    }

    const fn name(self) -> (&'static str, Shows) {
        match self {
            Self::Load8 => ("load u8", Shows::AddressAndValue),
            Self::Load32 => ("load", Shows::AddressAndValue),
            Self::Store8 => ("store u8", Shows::AddressAndValue),
            Self::Store32 => ("store", Shows::AddressAndValue),
            Self::Combine => ("bulk store", Shows::AddressAndValue),
            Self::Empty => ("bulk leaves", Shows::Nothing),
            Self::Atomic => ("atomic", Shows::AddressAndValue),
            Self::Read => ("cached read", Shows::AddressAndValue),
            Self::Write => ("cached write", Shows::AddressAndValue),
            Self::WriteBack => ("write back", Shows::Address),
            Self::Invalidate => ("invalidate", Shows::Address),
            Self::Drain => ("drain", Shows::Nothing),
            Self::Acquire => ("acquire", Shows::Nothing),
            Self::Early => ("was read early", Shows::Address),
            Self::TestAndSet => ("test-and-set", Shows::CoreAndValue),
            Self::Clear => ("clear", Shows::Core),
            Self::Cycles => ("cycles", Shows::Nothing),
            Self::Watch => ("watch", Shows::Address),
            Self::Relax => ("relax", Shows::Nothing),
            Self::Ring => ("ring", Shows::Core),
            Self::WaitForRing => ("wait for ring", Shows::Nothing),
            Self::Mark => ("mark", Shows::Label),
            Self::Spend => ("spend", Shows::Nothing),
            Self::LoadMessage => ("load message", Shows::AddressAndValue),
            Self::StoreMessage => ("store message", Shows::AddressAndValue),
            Self::InvalidateMessages => ("CL1INVMB", Shows::Nothing),
            Self::Evict => ("EVICTION", Shows::Address),
            Self::Prefetch => ("PREFETCH", Shows::Address),
            Self::Arrive => ("store arrives", Shows::AddressAndValue),
            Self::Wake => ("wakes", Shows::Nothing),
            Self::BudgetsExpire => ("TIME JUMPS", Shows::Nothing),
            Self::OpenNic => ("open", Shows::Nothing),
            Self::DropOut => ("DROPS OUT", Shows::Nothing),
            Self::ReadRegistered => ("read", Shows::AddressAndValue),
            Self::WriteRegistered => ("write", Shows::AddressAndValue),
            Self::Stage => ("stage", Shows::Nothing),
            Self::PostPut => ("post put", Shows::AddressAndValue),
            Self::PostGet => ("post get", Shows::AddressAndValue),
            Self::PostAmo => ("post amo", Shows::AddressAndValue),
            Self::Poll => ("poll", Shows::Value),
            Self::Deliver => ("put arrives", Shows::AddressAndValue),
            Self::Fetch => ("get fetches", Shows::AddressAndValue),
            Self::Change => ("amo changes", Shows::AddressAndValue),
            Self::Answer => ("amo answers", Shows::AddressAndValue),
            Self::Tell => ("immediate", Shows::CoreAndValue),
            Self::Fails => ("FAILS", Shows::CoreAndValue),
        }
    }
}
