//! [`LocalMemory`]: this rank's own memory.

#[cfg(doc)]
use crate::Link;
use crate::{Given, Key, Place, Refusal, Slot, Slots};

/// This rank's own memory: the pieces and slots that it exposes to peers, and its cache.
///
/// Offsets and lengths are in bytes. An offset counts from the start of the memory that its key
/// names.
///
/// # Contract
/// 1. [Symmetric](Place::Symmetric) pieces and slots have the same key or number on every rank, if
///    all ranks ask for the same ones in the same order.
/// 2. A piece has its cache lines for itself, and keeps its place until it is withdrawn.
/// 3. Only the owner caches a piece. `read_local` and `write_local` go through the owner's cache.
///    All other calls of a link go past all caches.
/// 4. This rank's writes are in memory after `publish`, before all that this rank signals later.
/// 5. This rank's reads find what peers put after `refresh`, if this rank saw what announced the
///    puts before that call.
/// 6. The owner does not write a line between its `publish` and its `refresh`: the cache would
///    carry the whole line over what peers stored. The kernel keeps to this.
///
/// # Refusals
/// `OutOfRange`: the bytes are not in shared memory. `NoMemory`, `TooManyPieces`: there is no room.
/// The kernel keeps offsets inside of the memory of a key. No call of this trait waits for a peer.
pub trait LocalMemory {
    /// Exposes `bytes` of this rank's shared memory, starting at a line and at a multiple of
    /// [`Link::UPDATE`]. Its contents are undefined. All of its last line is in shared memory.
    ///
    /// # Errors
    /// [`Refusal::NoMemory`], [`Refusal::TooManyPieces`].
    fn allocate(&self, bytes: usize, place: Place) -> Result<Key, Refusal>;

    /// Makes bytes of a new piece zeros, in memory and as this rank reads them, if the link has a
    /// way that costs less than stores do. False if nothing has happened: the default has no way.
    ///
    /// # Errors
    /// [`Refusal::OutOfRange`].
    fn zero(&self, key: Key, offset: usize, bytes: usize) -> Result<bool, Refusal> {
        let _ = (key, offset, bytes);
        Ok(false)
    }

    /// Gives the slots that are `wanted`, which are [symmetric](Place::Symmetric). None of them has
    /// been signalled.
    ///
    /// # Errors
    /// [`Refusal::NoMemory`], [`Refusal::TooManyPieces`].
    fn allocate_slots(&self, wanted: Slots) -> Result<Slot, Refusal>;

    /// Brings `count` of this rank's slots, from `first` on, into the state of slots that have not
    /// been signalled. No peer signals them meanwhile.
    ///
    /// # Errors
    /// [`Refusal::NoSuchSlot`].
    fn renew_slots(&self, first: Slot, count: u32) -> Result<(), Refusal>;

    /// Takes back what [`allocate`](Self::allocate) or [`allocate_slots`](Self::allocate_slots)
    /// gave, named by its key or first slot. Peers must not access the memory, or signal the slots,
    /// any more.
    fn withdraw(&self, given: impl Into<Given>);

    /// A small piece of memory that every rank exposes from the start under the same key, and its
    /// size in bytes: at least 56 per rank. The kernel's collectives use it, always past the
    /// caches.
    fn scratch(&self) -> (Key, usize);

    /// Reads this rank's memory through the cache.
    ///
    /// # Errors
    /// [`Refusal::OutOfRange`].
    fn read_local(&self, key: Key, offset: usize, into: &mut [u8]) -> Result<(), Refusal>;

    /// Writes this rank's memory through the cache. Peers see it after [`publish`](Self::publish).
    ///
    /// # Errors
    /// [`Refusal::OutOfRange`].
    fn write_local(&self, key: Key, offset: usize, from: &[u8]) -> Result<(), Refusal>;

    /// Makes this rank's writes to these bytes visible to peers, before all that it signals later.
    ///
    /// # Errors
    /// [`Refusal::OutOfRange`].
    fn publish(&self, key: Key, offset: usize, bytes: usize) -> Result<(), Refusal>;

    /// Makes peers' puts to these bytes visible to this rank's reads, if this rank saw what
    /// announced them before this call. Its own unpublished writes there may be lost.
    ///
    /// # Errors
    /// [`Refusal::OutOfRange`].
    fn refresh(&self, key: Key, offset: usize, bytes: usize) -> Result<(), Refusal>;
}
