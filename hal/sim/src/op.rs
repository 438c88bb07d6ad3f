//! What a core asks of the chip: one value per step.
//!
//! A core *yields* its `Op` before the op has any effect. So the engine always knows what every core
//! is about to do, and the state between two steps is complete without looking at any stack.

use std::panic::Location;

use flagpost_hal::Atomic;

use crate::machine::message::Message;

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

/// Kinds of accesses. None spans more than one line or moves more than [`CHUNK`] bytes; longer ones are
/// split by the handle.
#[derive(Copy, Clone)]
pub(crate) enum Access {
    /// Uncached load of `width` bytes (1 or 4), aligned.
    Load { width: u8 },
    /// Uncached store of the low `width` bytes (1 or 4), aligned.
    Store { width: u8, value: u32 },
    /// Bulk store of part of a line. Replies 0 if the bytes are in the combining buffer now, 1 if the
    /// buffer is still being emptied of another line (ask again), 2 if it is now full (`Empty`).
    Combine { len: u8, bytes: Bytes },
    /// Places some of the combining buffer's bytes. Replies 1 while some are left.
    Empty,
    /// Indivisible operation on a word.
    Atomic(Atomic),
    /// Cached load of part of a line.
    Read { len: u8 },
    /// Cached store to part of a line.
    Write { len: u8, bytes: Bytes },
    /// Writes the first dirty line of these back. Replies how many of the bytes are left to look at.
    WriteBack { len: u32 },
    /// Drops the first of these lines that is cached. Replies as above.
    Invalidate { len: u32 },
    /// An access of the SCC's message type.
    Message(Message),
    /// Places some of what is on its way to memory. Replies 1 while something is left.
    Drain,
    /// Orders loads.
    Acquire,
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

/// The chip's answer.
#[derive(Copy, Clone, Default)]
pub(crate) struct Reply {
    /// Value, flag or time.
    pub(crate) word: u64,
    /// Bytes of a cached read.
    pub(crate) bytes: Bytes,
}

impl Reply {
    /// A reply that is one number.
    #[inline]
    pub(crate) const fn word(word: u64) -> Self {
        Self {
            word,
            bytes: [0; CHUNK],
        }
    }
}
