//! The trait that every link implements.

use core::panic::Location;

use crate::{Amo, Key, Op, Place, Rank, Refusal, Slot, Width};

/// One rank's connection to all ranks.
///
/// See the [crate documentation](crate) for the rules. Offsets and lengths are in bytes; an offset
/// counts from the start of the memory that its key names. The kernel keeps them inside of that; a
/// link refuses what would leave the memory that ranks share at all.
///
/// # Coherence
/// Only the owner of exposed memory may cache it. [`read_local`](Self::read_local) and
/// [`write_local`](Self::write_local) go through the owner's cache, everything else goes past all
/// caches. So each line has one caching core, and two calls keep it in step with memory:
/// [`publish`](Self::publish) before peers may access the memory, [`refresh`](Self::refresh) after
/// they have. In between the owner must not write it: its whole lines would travel over what peers
/// stored.
pub trait Link {
    /// How many slots every rank has from the start; at least 32.
    const SLOTS: u32;

    /// Size of a cache line in bytes: ranges given to `publish` and `refresh` are rounded out to
    /// it.
    const LINE: u32;

    /// The most bytes that one [`update`](Self::update) may change, a power of two, at least 8:
    /// they lie between two multiples of it.
    const UPDATE: u32;

    /// The same for elements of up to 4 bytes, where these are changed by other means than longer
    /// ones: bytes that one rank takes for the one and another for the other are not changed as a
    /// whole. At least 4.
    const UPDATE_SMALL: u32 = Self::UPDATE;

    /// Whether peers' memory is reached by plain loads and stores, so that a put or get of one
    /// aligned element is done when the call returns.
    const DIRECT: bool;

    /// Whether own memory is read and written past all caches, or as if it were:
    /// [`refresh`](Self::refresh) does nothing then, and [`publish`](Self::publish) of any bytes,
    /// none included, orders all own writes.
    const COHERENT: bool = false;

    /// How often a loop [looks](Self::look) at once, before it begins a [wait](Self::begin_wait).
    const LOOKS: u32 = 0;

    /// Whether [`called`](Self::called) does anything.
    const LISTENS: bool = false;

    /// Whether others never wait for a call of this rank, but for the notifications that it takes:
    /// then [`attend`](Self::attend) does nothing.
    const PASSIVE: bool = true;

    /// This rank.
    fn rank(&self) -> Rank;

    /// How many ranks there are; at least 1.
    fn size(&self) -> u16;

    /// Whether `to` has started up and may be accessed. Needed once per peer that is accessed
    /// before the first barrier; who has passed a barrier knows that everybody is up.
    ///
    /// # Errors
    /// [`Refusal::NotReady`] until then.
    fn connect(&self, to: Rank) -> Result<(), Refusal>;

    // ---- Memory ----

    /// Exposes `bytes` of this rank's shared memory, starting at a line and at a multiple of
    /// [`UPDATE`](Self::UPDATE), in lines of their own. What it holds is undefined.
    ///
    /// # Errors
    /// [`Refusal::NoMemory`], [`Refusal::TooManyPieces`].
    fn allocate(&self, bytes: u32, place: Place) -> Result<Key, Refusal>;

    /// Takes back the memory that [`allocate`](Self::allocate) gave as `key`. Peers must not access
    /// it any more.
    fn withdraw(&self, key: Key);

    /// Gives `count` slots, [symmetric](Place::Symmetric), none of which has been signalled.
    ///
    /// # Errors
    /// [`Refusal::NoMemory`], [`Refusal::TooManyPieces`].
    fn allocate_slots(&self, count: u32) -> Result<Slot, Refusal>;

    /// Gives two [`slots`](Self::allocate_slots) for every rank: `rank` signals the one that is
    /// `rank` behind the first, and the one that is [`size`](Self::size) behind that. A link may
    /// place what two ranks signal to each other in one line.
    ///
    /// # Errors
    /// [`Refusal::NoMemory`], [`Refusal::TooManyPieces`].
    fn allocate_slots_of_pairs(&self) -> Result<Slot, Refusal> {
        self.allocate_slots(u32::from(self.size()).saturating_mul(2))
    }

    /// Takes back what [`allocate_slots`](Self::allocate_slots) gave as `first`. Peers must not
    /// signal them any more.
    fn withdraw_slots(&self, first: Slot);

    /// A small piece of memory that every rank exposes from the start under the same key, and its
    /// size in bytes (at least 32 per rank). The kernel's collectives use it, always past the
    /// caches.
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

    /// Makes peers' puts to these bytes visible to own reads, if what announced them was seen
    /// before this call. Own unpublished writes there may be lost.
    ///
    /// # Errors
    /// [`Refusal::OutOfRange`].
    fn refresh(&self, key: Key, offset: u32, bytes: u32) -> Result<(), Refusal>;

    // ---- Remote access ----

    /// Stores `data` in `to`'s memory. Arrives in any order with other puts, before what follows a
    /// [`fence`](Self::fence). To own memory: past the cache, at once.
    ///
    /// # Errors
    /// [`Refusal::Busy`] (transient); [`Refusal::OutOfRange`], [`Refusal::NoSuchRank`],
    /// [`Refusal::PeerLost`].
    fn put(&self, to: Rank, key: Key, offset: u32, data: &[u8]) -> Result<(), Refusal>;

    /// Loads from `from`'s memory; `into` is filled once the answer is `Ok`. From own memory: past
    /// the cache, at once.
    ///
    /// # Errors
    /// [`Refusal::Busy`] (transient); [`Refusal::OutOfRange`], [`Refusal::NoSuchRank`],
    /// [`Refusal::PeerLost`].
    fn get(
        &self,
        from: Rank,
        key: Key,
        offset: u32,
        into: &mut [u8],
        op: &Op,
    ) -> Result<(), Refusal>;

    /// Does `amo` to the element of 4 bytes at `offset`, and gives its former value: where that is
    /// one operation of the machine, which other `amo_word`s and [`update`](Self::update)s see as a
    /// whole. None where it is not, or where something is wrong: then nothing has happened, and
    /// `update` tells.
    #[inline]
    fn amo_word(&self, to: Rank, key: Key, offset: u32, amo: Amo) -> Option<u32> {
        let _ = (to, key, offset, amo);
        None
    }

    /// The same, to the element of 8 bytes at `offset`.
    #[inline]
    fn amo_long(&self, to: Rank, key: Key, offset: u32, amo: Amo) -> Option<u64> {
        let _ = (to, key, offset, amo);
        None
    }

    /// Does `amo` to the cell of 8 bytes at `offset`, at once as far as other `amo`s and
    /// [`update`](Self::update)s can see, and gives its former value. Cells that peers change are
    /// only read by this and by [`watch`](Self::watch), their owner's included. What is begun after
    /// the answer comes behind it; it orders nothing else. For waiting loops: one that reads
    /// [half](Width::Half) a cell notes what it looked at.
    ///
    /// # Errors
    /// [`Refusal::Busy`] and [`Refusal::Locked`] (transient); [`Refusal::OutOfRange`],
    /// [`Refusal::BadCell`], [`Refusal::NoSuchRank`], [`Refusal::PeerLost`].
    fn amo(
        &self,
        to: Rank,
        key: Key,
        offset: u32,
        amo: Amo,
        width: Width,
        op: &Op,
    ) -> Result<u64, Refusal>;

    /// Loads `len` bytes, lets `change` change them, and stores them, at once as far as others'
    /// [`amo`](Self::amo)s and `update`s of these bytes can see. `change` may be called several
    /// times; the last call counts.
    ///
    /// # Errors
    /// [`Refusal::Busy`] and [`Refusal::Locked`] (transient); [`Refusal::OutOfRange`],
    /// [`Refusal::BadCell`], [`Refusal::NoSuchRank`], [`Refusal::PeerLost`].
    fn update(
        &self,
        to: Rank,
        key: Key,
        offset: u32,
        len: usize,
        change: &mut dyn FnMut(&mut [u8]),
        op: &Op,
    ) -> Result<(), Refusal>;

    /// Nobody asks for `op`'s answer any more: what was begun has its effect all the same (of a
    /// [`put_immediate`](Self::put_immediate) that left in part, perhaps that part), and `op` is as
    /// a new one.
    #[inline]
    fn abandon(&self, op: &Op) {
        op.begun.set(0);
        op.seen.set(0);
    }

    /// [`put`](Self::put), and appends `immediate` to `to`'s queue. Who takes it from the queue
    /// finds the data, and all earlier puts of this rank to `to`, in memory, and may store to what
    /// this rank has got or read before.
    ///
    /// If `inline`, a link may send the data with the immediate, and leave it to `to`'s
    /// [`progress`](Self::progress) to put them in place, before it gives the immediate: until then
    /// later puts of the same bytes may come before them, and a [`flush`](Self::flush) waits. Long
    /// ones may be sent in parts: `op` is under way when some have left, and no rank is told before
    /// all have.
    ///
    /// # Errors
    /// [`Refusal::Busy`], [`Refusal::Full`] and [`Refusal::Locked`] (transient);
    /// [`Refusal::OutOfRange`], [`Refusal::NoSuchRank`], [`Refusal::PeerLost`].
    fn put_immediate(
        &self,
        to: Rank,
        place: (Key, u32),
        data: &[u8],
        immediate: u32,
        inline: bool,
        op: &Op,
    ) -> Result<(), Refusal>;

    /// [`put_immediate`](Self::put_immediate), inline, where that is short; false where it takes
    /// more, or something is wrong: then nothing has happened.
    #[inline]
    fn put_at_once(&self, to: Rank, place: (Key, u32), data: &[u8], immediate: u32) -> bool {
        let _ = (to, place, data, immediate);
        false
    }

    /// Orders this rank's earlier puts and cells' changes before its later signals, immediates,
    /// puts and cells' changes, to all ranks.
    ///
    /// # Errors
    /// [`Refusal::Busy`] (transient), [`Refusal::PeerLost`]: once for each rank at which something
    /// came to nothing.
    fn fence(&self) -> Result<(), Refusal>;

    /// Whether all that this rank has begun at `to` (at all ranks, if none is named) is done there:
    /// whoever looks now finds it. What this rank gets afterwards is not older than what it got
    /// before. Waits for `to`'s [`progress`](Self::progress) if data of a
    /// [`put_immediate`](Self::put_immediate) are inline.
    ///
    /// # Errors
    /// [`Refusal::Busy`] (transient) until then; [`Refusal::NoSuchRank`]; [`Refusal::PeerLost`] as
    /// a fence, and once if the rank is named, whatever fences have told.
    fn flush(&self, to: Option<Rank>) -> Result<(), Refusal>;

    /// [`flush`](Self::flush), where nothing is under way that takes more to find out; else false,
    /// and nothing has happened that calling `flush` does not do.
    #[inline]
    fn flush_at_once(&self) -> bool {
        false
    }

    /// [`flush_at_once`](Self::flush_at_once), where an [`amo_word`](Self::amo_word) follows whose
    /// effect nobody finds before what has been put: that comes to its place by then.
    #[inline]
    fn flush_at_once_before_amo(&self) -> bool {
        false
    }

    // ---- Telling, and being told ----

    /// Sets `to`'s slot to `value`, one more (wrapping) than the last value this rank gave it; the
    /// first is 1. Each slot of each rank has one writer at a time. Ordered after this rank's
    /// earlier puts only by a [`fence`](Self::fence) in between.
    ///
    /// # Errors
    /// [`Refusal::Busy`] (transient); [`Refusal::NoSuchSlot`], [`Refusal::NoSuchRank`],
    /// [`Refusal::PeerLost`].
    fn signal(&self, to: Rank, slot: Slot, value: u32) -> Result<(), Refusal>;

    /// Whether own `slot` has come to `value` or further. If so, what its writer fenced before the
    /// signal can be read.
    ///
    /// # Errors
    /// [`Refusal::NoSuchSlot`].
    fn reached(&self, slot: Slot, value: u32) -> Result<bool, Refusal>;

    /// The low half of the own cell at `offset`, if it is what was waited for: then what its
    /// writers fenced before can be read. For waiting loops: notes what was looked at.
    ///
    /// # Errors
    /// [`Refusal::Busy`] and [`Refusal::Locked`] (transient); [`Refusal::OutOfRange`],
    /// [`Refusal::BadCell`], [`Refusal::NoSuchRank`], [`Refusal::PeerLost`].
    fn watch(
        &self,
        key: Key,
        offset: u32,
        arrived: impl Fn(u32) -> bool,
        op: &Op,
    ) -> Result<Option<u32>, Refusal>;

    /// Takes the oldest immediate from this rank's queue, with its data in place.
    fn progress(&self) -> Option<u32>;

    /// [`progress`](Self::progress) of a rank that waits for something else, turn by turn: it may
    /// leave out places where an immediate can be, if each has its turn, and if one that comes
    /// there ends the next [`relax`](Self::relax), too.
    fn progress_aside(&self) -> Option<u32>;

    /// Whose immediate [`progress`](Self::progress) gave last, where the link knows that without a
    /// look at it.
    fn sender(&self) -> Option<Rank> {
        None
    }

    /// Makes progress for others without taking an immediate: what has come is brought to its place
    /// although it cannot be taken, or nobody asks for it. A link that is
    /// [passive](Self::PASSIVE) has nothing to do.
    fn attend(&self) {}

    /// Takes the oldest immediate if it is `wanted`, and comes within so many `looks`, where that
    /// is short; false where it takes more to find out: then nothing has happened. (Of links that
    /// are [coherent](Self::COHERENT): nothing is refreshed behind it.)
    #[inline]
    fn take_at_once(&self, wanted: u32, looks: u32) -> bool {
        let _ = (wanted, looks);
        false
    }

    // ---- Waiting ----

    /// The program has called the kernel at `place`. For links that give an account of a run; the
    /// default ignores it.
    #[inline(always)]
    fn called(&self, place: &'static Location<'static>) {
        let _ = place;
    }

    /// Looks at what was polled last, up to [`LOOKS`](Self::LOOKS) times, until it has changed.
    /// Returns for no reason as well.
    fn look(&self) {}

    /// Gives time to others between two polls. Returns when something that was polled since the
    /// last call may have changed, or for no reason.
    ///
    /// Where something was looked at that cannot be watched (bytes that were got or read, an
    /// [`amo`](Self::amo) or [`update`](Self::update) that had its effect), it only gives time to
    /// others.
    fn relax(&self);

    /// A wait begins that polls all it waits for: what was polled before does not matter to it.
    /// Nothing is to be done where [`relax`](Self::relax) always returns.
    fn begin_wait(&self) {}

    /// That wait is over. What it polled may be what somebody else waits for in a loop of his own,
    /// who looks at other things besides: the next [`relax`](Self::relax) only gives time to
    /// others.
    fn end_wait(&self) {}

    /// A rank that will not answer any more, if that is known: whoever still waits then is told so.
    /// Asked between two polls.
    fn lost(&self) -> Option<Rank> {
        None
    }

    /// Whether `rank` has ended its program in order (any rank, if none is named), if that is
    /// known: what it has sent can be found then, and it does nothing more. Asked between two
    /// polls.
    fn has_left(&self, rank: Option<Rank>) -> bool {
        let _ = rank;
        false
    }

    /// A clock, in ticks that never go back.
    fn now(&self) -> u64;

    /// Ticks of [`now`](Self::now) per second.
    fn ticks_per_second(&self) -> u64;
}
