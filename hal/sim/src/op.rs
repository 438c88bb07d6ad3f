//! What a core asks of the chip: one value per step.
//!
//! A core *yields* its `Op` before the op has any effect. So the engine always knows what every
//! core is about to do, and the state between two steps is complete without looking at any stack.

use std::cell::{Cell, RefCell};
use std::panic::Location;

use flagpost_hal::{Amo, Early};

use crate::place::Place;

/// How many bytes an access moves at most.
pub(crate) const CHUNK: usize = 32;

/// Room for the bytes that an access moves.
pub(crate) type Bytes = [u8; CHUNK];

/// One access, and who asked for it.
#[derive(Copy, Clone)]
pub(crate) struct Op {
    pub(crate) access: Access,
    /// Flat index of the first byte; 0 where the access has none.
    pub(crate) at: u32,
    /// Whether `at` belongs to the core itself.
    pub(crate) local: bool,
    /// The source line that called.
    pub(crate) place: &'static Location<'static>,
}

/// Kinds of accesses. None spans more than one line or moves more than [`CHUNK`] bytes; longer ones
/// are split by the handle.
#[derive(Copy, Clone)]
pub(crate) enum Access {
    /// Uncached load of `width` bytes (1 or 4), aligned.
    Load { width: u8 },
    /// Uncached store of the low `width` bytes (1 or 4), aligned.
    Store { width: u8, value: u32 },
    /// Bulk store of part of a line. Replies 0 if the bytes are in the combining buffer now, 1 if
    /// the buffer is still being emptied of another line (ask again), 2 if it is now full
    /// (`Empty`).
    Combine { len: u8 },
    /// Places some of the combining buffer's bytes. Replies 1 while some are left.
    Empty,
    /// Indivisible operation on a word.
    Atomic(Amo<u32>),
    /// Cached load of part of a line.
    Read { len: u8 },
    /// Cached store to part of a line.
    Write { len: u8 },
    /// Writes the first dirty line of these back. Replies how many of the bytes are left to look
    /// at.
    WriteBack { len: u32 },
    /// Drops the first of these lines that is cached. Replies as above.
    Invalidate { len: u32 },
    /// An access of the SCC's message type.
    Message(Message),
    /// Something about the core's end of the network.
    Network(Request),
    /// Places some of what is on its way to memory. Replies 1 while something is left.
    Drain,
    /// Orders loads.
    Acquire,
    /// The program has read these bytes before the wait: they are others now, or another core may
    /// have stored to them since a ticket.
    Early { len: u8, since: Option<u32> },
    /// Tries to take a core's register.
    TestAndSet(u16),
    /// Frees a core's register.
    Clear(u16),
    /// Reads the clock.
    Cycles,
    /// Adds a word to what the next `Relax` waits for. Takes no step.
    Watch { seen: u32 },
    /// Waits until a watched word differs; yields if there is none.
    Relax,
    /// Rings a core's bell.
    Ring(u16),
    /// Waits for the own bell.
    WaitForRing,
    /// Time passes, so many cycles of the core's clock.
    Spend(u32),
    /// Remark in the timeline.
    Mark(&'static str),
}

/// An access of the MPBT memory type.
#[derive(Copy, Clone)]
pub(crate) enum Message {
    /// Load of part of a line.
    Load { len: u8 },
    /// Store of part of a line. Replies as [`Access::Combine`].
    Store { len: u8, through: bool },
    /// CL1INVMB.
    Invalidate,
}

/// What a core asks of its end of the network.
#[derive(Copy, Clone)]
pub(crate) enum Request {
    /// Opens the end. Replies the count of events.
    Open,
    /// No part in anything from now on.
    DropOut,
    /// Loads from own registered memory.
    Read { len: u8 },
    /// Stores to it.
    Write { len: u8 },
    /// Adds bytes to what the next put will bring.
    Stage { len: u8 },
    /// Begins an operation. Replies 1 if there is no room for it.
    Post(Posted),
    /// Takes the oldest event. Replies the count of events, and 1 << 32 if there is one.
    Poll,
}

/// An operation on the network; what else it wants is on the desk.
#[derive(Copy, Clone)]
pub(crate) struct Posted {
    pub(crate) id: u32,
    pub(crate) to: u16,
    pub(crate) kind: PostKind,
}

/// What a posted operation does.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) enum PostKind {
    Put,
    Get,
    Amo,
}

/// Where a core and the engine put what they have for each other. Nothing is copied on the way: it
/// is most of what a step costs.
pub(crate) struct Desk {
    /// What the core wants next, or wanted last.
    pub(crate) op: Cell<Op>,
    /// The bytes that belong to it: those of a `Combine` or `Write`, or what a `Read` found, zeroes
    /// behind it.
    pub(crate) bytes: Cell<Bytes>,
    /// The chip's answer: a value, a flag or a time.
    pub(crate) reply: Cell<u64>,
    /// Where the program has called the kernel last.
    pub(crate) called: Cell<Option<Place>>,
    /// The ticket of the last store that had arrived at the core's last access.
    pub(crate) ticket: Cell<u32>,
    /// The program's requests, and its reads of their bytes.
    pub(crate) early: RefCell<Early>,
    /// A read before the wait, and the start of the request.
    pub(crate) found: Cell<[Option<Place>; 2]>,
    /// The run is over, and the core is to say what it waits for.
    pub(crate) asked: Cell<bool>,
    /// What it has said.
    pub(crate) waits: Cell<Option<String>>,
    /// Accesses made while the core's stack unwinds.
    pub(crate) afterlife: Cell<u64>,
}

impl Desk {
    /// As if a core had just made a remark.
    #[track_caller]
    pub(crate) fn new() -> Self {
        Self {
            op: Cell::new(Op {
                access: Access::Mark(""),
                at: 0,
                local: true,
                place: Location::caller(),
            }),
            bytes: Cell::new([0; CHUNK]),
            reply: Cell::new(0),
            called: Cell::new(None),
            // What was started before the first access has no later ticket.
            ticket: Cell::new(u32::MAX),
            early: RefCell::new(Early::default()),
            found: Cell::new([None; 2]),
            asked: Cell::new(false),
            waits: Cell::new(None),
            afterlife: Cell::new(0),
        }
    }
}
