//! The trait that every link implements.

use crate::{Key, Rank, Refusal, Slot};

/// One rank's connection to all ranks.
///
/// See the [crate documentation](crate) for the rules. Offsets and lengths are in bytes; an offset counts
/// from the start of the memory that its key names. The kernel keeps them inside of that; a link refuses
/// what would leave the memory that ranks share at all.
///
/// # Coherence
/// Only the owner of exposed memory may cache it. [`read_local`](Self::read_local) and
/// [`write_local`](Self::write_local) go through the owner's cache, everything else goes past all caches.
/// So each line has one caching core, and two calls keep it in step with memory:
/// [`publish`](Self::publish) before peers may access the memory, [`refresh`](Self::refresh) after they
/// have. In between the owner must not write it: its whole lines would travel over what peers stored.
pub trait Link {
    /// How many slots every rank has.
    const SLOTS: u8;

    /// Size of a cache line in bytes: ranges given to `publish` and `refresh` are rounded out to it.
    const LINE: u32;

    /// This rank.
    fn rank(&self) -> Rank;

    /// How many ranks there are; at least 1.
    fn size(&self) -> u16;

    /// Whether `to` has started up and may be accessed. Needed once per peer that is accessed before
    /// the first barrier; who has passed a barrier knows that everybody is up.
    ///
    /// # Errors
    /// [`Refusal::NotReady`] until then.
    fn connect(&self, to: Rank) -> Result<(), Refusal>;

    // ---- Memory ----

    /// Exposes `bytes` of this rank's shared memory, starting at a line, in lines of their own. What
    /// it holds is undefined.
    ///
    /// # Errors
    /// [`Refusal::NoMemory`].
    fn allocate(&self, bytes: u32) -> Result<Key, Refusal>;

    /// Takes back `key`'s memory and all that was allocated after it. Peers must not access it any more.
    fn withdraw(&self, key: Key);

    /// A small piece of memory that every rank exposes from the start under the same key, and its size
    /// in bytes (at least 32 per rank). The kernel's collectives use it, always past the caches.
    fn scratch(&self) -> (Key, u32);

    /// Reads own memory through the cache.
    ///
    /// # Errors
    /// [`Refusal::OutOfRange`].
    fn read_local(&self, key: Key, offset: u32, into: &mut [u8]) -> Result<(), Refusal>;

    /// Writes own memory through the cache. Peers see it after [`publish`](Self::publish).
    ///
    /// # Errors
    /// [`Refusal::OutOfRange`].
    fn write_local(&self, key: Key, offset: u32, from: &[u8]) -> Result<(), Refusal>;

    /// Makes own writes to these bytes visible to peers, before anything that is signalled later.
    ///
    /// # Errors
    /// [`Refusal::OutOfRange`].
    fn publish(&self, key: Key, offset: u32, bytes: u32) -> Result<(), Refusal>;

    /// Makes peers' puts to these bytes visible to own reads, if what announced them was seen before
    /// this call. Own unpublished writes there may be lost.
    ///
    /// # Errors
    /// [`Refusal::OutOfRange`].
    fn refresh(&self, key: Key, offset: u32, bytes: u32) -> Result<(), Refusal>;

    // ---- Remote access ----

    /// Stores `data` in `to`'s memory. Arrives in any order with other puts, before what follows a
    /// [`fence`](Self::fence).
    ///
    /// # Errors
    /// [`Refusal::OutOfRange`], [`Refusal::NoSuchRank`].
    fn put(&self, to: Rank, key: Key, offset: u32, data: &[u8]) -> Result<(), Refusal>;

    /// Loads from `from`'s memory; `into` is filled on return.
    ///
    /// # Errors
    /// [`Refusal::OutOfRange`], [`Refusal::NoSuchRank`].
    fn get(&self, from: Rank, key: Key, offset: u32, into: &mut [u8]) -> Result<(), Refusal>;

    /// [`put`](Self::put), and appends `immediate` to `to`'s queue. Who takes it from the queue finds the
    /// data, and all earlier puts of this rank to `to`, in memory.
    ///
    /// # Errors
    /// [`Refusal::Full`], [`Refusal::Locked`] (transient); [`Refusal::OutOfRange`],
    /// [`Refusal::NoSuchRank`].
    fn put_immediate(
        &self,
        to: Rank,
        key: Key,
        offset: u32,
        data: &[u8],
        immediate: u32,
    ) -> Result<(), Refusal>;

    /// Orders this rank's earlier puts before its later signals, immediates and puts, to all ranks.
    fn fence(&self);

    // ---- Telling, and being told ----

    /// Sets `to`'s slot to `value`, one more (wrapping) than the last value this rank gave it; the first
    /// is 1. Each slot of each rank has one writer at a time. Ordered after this rank's earlier puts
    /// only by a [`fence`](Self::fence) in between.
    ///
    /// # Errors
    /// [`Refusal::NoSuchRank`], [`Refusal::NoSuchSlot`].
    fn signal(&self, to: Rank, slot: Slot, value: u32) -> Result<(), Refusal>;

    /// Whether own `slot` has come to `value` or further. If so, what its writer fenced before the signal
    /// can be read.
    ///
    /// # Errors
    /// [`Refusal::NoSuchSlot`].
    fn reached(&self, slot: Slot, value: u32) -> Result<bool, Refusal>;

    /// Takes the oldest immediate from this rank's queue, with its data in place.
    fn progress(&self) -> Option<u32>;

    // ---- Waiting ----

    /// Gives time to others between two polls. Returns when something that was polled since the last
    /// call may have changed, or for no reason.
    fn relax(&self);

    /// A clock, in ticks that never go back.
    fn now(&self) -> u64;

    /// Ticks of [`now`](Self::now) per second.
    fn ticks_per_second(&self) -> u64;
}
