//! A core's handle of its chip: the HAL's traits, as values for the engine.
//!
//! # Which call is how many steps
//! Other cores may run between any two steps, and the chip may evict a line; within one step
//! nothing happens.
//!
//! | call | steps |
//! |---|---|
//! | word load or store, atomic, register, bell, clock | 1 |
//! | `load_bytes` | 1 per word, and per byte at unaligned ends; see below |
//! | `store_bytes` | 1 per line touched, and 1 per group that leaves the combining buffer |
//! | `read`, `write` | 1 per line touched; or 1 per word, see below |
//! | `write_back`, `invalidate` | 1 per line that is dirty, or cached; see below |
//! | `drain` | 1, and 1 per further parcel or group that is placed |
//! | `relax` | 1; it may wait after it |
//! | `spend` | 1 in timed mode, else 0 |
//! | `cores`, `core`, sizes, `hertz`, `called` | 0: they are known |
//!
//! * `load_bytes` in timed mode: 2 steps per whole line of a message buffer.
//! * `read`, `write`: 1 step per word where [`Caching::stores`](crate::Caching::stores) goes past
//!   the cache.
//! * `write_back`, `invalidate`: at least 1 step per span that is not empty. `invalidate` of
//!   everything is 1 step.
//!
//! Every method is `#[track_caller]`, so that timelines name the line of the kernel or test that
//! asked, not this file. (Calls that go through the HAL's own code, `try_lock` and the drop of
//! `Held`, name that.) The program's own line, which called the kernel, is told by `called`.

use std::fmt;
use std::panic::Location;

use flagpost_hal::{
    Address, Amo, CachedMemory, Clock, Coherence, CoreId, Expected, Kind, Lines, MessageBuffer,
    NativeAtomics, Region, Relax, TestAndSet, Topology, UncachedMemory, Watch, is_library,
};

use crate::op::{Access, Bytes, CHUNK, Op};
use crate::shape::Shape;
use crate::strand::Port;

/// What a program gets on each core: a handle of the core it runs on. Clones are handles of the
/// same core.
///
/// `LINE` is the size of the chip's cache lines, [`Config::line`](crate::Config::line).
///
/// An access outside its region, or a misaligned one, panics in the core that made it (U1), as does
/// the use of another core's handle.
#[derive(Clone)]
pub struct SimCore<const LINE: usize = 32> {
    port: Port,
    core: CoreId,
    shape: Shape,
}

impl<const LINE: usize> fmt::Debug for SimCore<LINE> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimCore({})", self.core)
    }
}

impl<const LINE: usize> SimCore<LINE> {
    pub(crate) const fn new(port: Port, core: CoreId, shape: Shape) -> Self {
        Self { port, core, shape }
    }

    pub(crate) const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Puts a remark into the timeline. Takes a step.
    #[track_caller]
    pub fn mark(&self, label: &'static str) {
        self.ask(Access::Mark(label));
    }

    /// Charges so many cycles of this core's clock for software that the simulator does not
    /// execute. Under other schedules than [`Schedule::Timed`](crate::Schedule), nothing, and no
    /// step.
    #[track_caller]
    pub fn spend(&self, cycles: u32) {
        if self.shape.timed {
            self.ask(Access::Spend(cycles));
        }
    }

    /// Says what this core waits for, if the engine wants to know: see the account of a run.
    #[inline]
    pub(crate) fn say_if_asked(&self, what: fmt::Arguments<'_>) {
        let desk = self.port.desk();
        if desk.asked.get() {
            // To find the words may take accesses: who holds a lock.
            desk.waits.set(Some(what.to_string()));
            desk.asked.set(false);
        }
    }

    /// Lays the bytes out that the next access brings.
    #[inline]
    pub(crate) fn bring(&self, bytes: Bytes) {
        self.port.desk().bytes.set(bytes);
    }

    /// The bytes that the last access found.
    #[inline]
    pub(crate) fn found(&self) -> Bytes {
        self.port.desk().bytes.get()
    }

    /// Asks for something without an address.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn ask(&self, access: Access) -> u64 {
        self.port.call(Op {
            access,
            at: 0,
            local: true,
            place: Location::caller(),
        })
    }

    /// Asks for something at `len` bytes from `at`, which do not cross a line.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn ask_at(&self, access: Access, at: Address, len: usize) -> u64 {
        let Some(flat) = self.shape.flat(at, len) else {
            panic!("{len} bytes at {at} are outside of the region (U1)");
        };
        self.port.call(Op {
            access,
            at: flat,
            local: at.region.owner == self.core,
            place: Location::caller(),
        })
    }

    /// Asks for something at an aligned word.
    #[inline(always)]
    #[track_caller]
    fn ask_at_word(&self, access: Access, at: Address) -> u64 {
        assert!(at.offset.is_multiple_of(4), "{at} is not aligned (U1)");
        self.ask_at(access, at, 4)
    }

    /// Asks for something at each of the lines that are in the cache.
    #[track_caller]
    fn ask_at_lines(&self, access: fn(u32) -> Access, spans: &[Lines]) {
        for lines in spans {
            // Regions are whole lines, so rounding outwards cannot leave them.
            let mut len = lines.end() - lines.start();
            // An empty span takes no step.
            while len > 0 {
                let end = lines.end() - len;
                // A region's lengths fit 32 bits.
                let access = access(len as u32);
                len = self.ask_at(access, lines.region().at(end), len) as usize;
            }
        }
    }

    /// A core's number, checked.
    #[track_caller]
    fn number(&self, core: CoreId) -> u16 {
        assert!(core.get() < self.shape.cores, "there is no {core}");
        core.get()
    }

    /// The number of a core's register, if there are any.
    #[track_caller]
    fn register(&self, of: CoreId) -> u16 {
        assert!(
            self.shape.registers,
            "this chip has no test-and-set registers"
        );
        self.number(of)
    }
}

/// Cuts `len` bytes at `at` at multiples of `room`: the address and length of each piece, and where
/// it starts in the whole.
pub(crate) fn pieces(
    at: Address,
    len: usize,
    room: usize,
) -> impl Iterator<Item = (Address, usize, usize)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let (start, here) = (done, at.plus(done));
        let room = room.min(CHUNK);
        let room = room - here.offset % room;
        let piece = room.min(len - done);
        done += piece;
        (piece > 0).then_some((here, piece, start))
    })
}

impl<const LINE: usize> UncachedMemory for SimCore<LINE> {
    #[inline]
    #[track_caller]
    fn load_u8(&self, at: Address) -> u8 {
        self.ask_at(Access::Load { width: 1 }, at, 1) as u8
    }

    #[inline]
    #[track_caller]
    fn store_u8(&self, at: Address, value: u8) {
        let value = u32::from(value);
        self.ask_at(Access::Store { width: 1, value }, at, 1);
    }

    #[inline]
    #[track_caller]
    fn load_u32(&self, at: Address) -> u32 {
        self.ask_at_word(Access::Load { width: 4 }, at) as u32
    }

    #[inline]
    #[track_caller]
    fn store_u32(&self, at: Address, value: u32) {
        self.ask_at_word(Access::Store { width: 4, value }, at);
    }

    #[track_caller]
    fn store_bytes(&self, at: Address, from: &[u8]) {
        for (here, piece, start) in pieces(at, from.len(), LINE) {
            let mut bytes = [0; CHUNK];
            bytes[..piece].copy_from_slice(&from[start..start + piece]);
            let len = piece as u8;
            self.bring(bytes);
            let answer = loop {
                // 1: the buffer is still busy with another line.
                match self.ask_at(Access::Combine { len }, here, len.into()) {
                    1 => continue,
                    answer => break answer,
                }
            };
            if answer == 2 {
                while self.ask(Access::Empty) != 0 {}
            }
        }
    }

    #[track_caller]
    fn load_bytes(&self, at: Address, into: &mut [u8]) {
        let mut cursor = at;
        let mut rest = into;
        let lines = self.loads_lines(at.region);
        while !rest.is_empty() {
            // A whole line, as message data: what the cache has of it is dropped.
            if lines && cursor.offset.is_multiple_of(LINE) && rest.len() >= LINE {
                let (line, others) = rest.split_at_mut(LINE);
                self.invalidate(&[Lines::covering::<Self>(cursor, LINE)]);
                self.read(cursor, line);
                cursor = cursor.plus(LINE);
                rest = others;
                continue;
            }
            // Words where the address allows, bytes at the ends.
            let whole = cursor.offset.is_multiple_of(4) && rest.len() >= 4;
            let len = if whole { 4 } else { 1 };
            let (piece, others) = rest.split_at_mut(len);
            if whole {
                piece.copy_from_slice(&self.load_u32(cursor).to_le_bytes());
            } else {
                piece[0] = self.load_u8(cursor);
            }
            cursor = cursor.plus(len);
            rest = others;
        }
    }

    /// Lines of message buffers, as on the SCC; where schedules are explored, bytes may be from
    /// different moments, as the contract has it.
    fn loads_lines(&self, region: Region) -> bool {
        self.shape.timed && region.kind == Kind::MessageBuffer
    }
}

impl<const LINE: usize> CachedMemory for SimCore<LINE> {
    #[track_caller]
    fn read(&self, at: Address, into: &mut [u8]) {
        let room = self.shape.read_piece as usize;
        for (here, piece, start) in pieces(at, into.len(), room) {
            let len = piece as u8;
            self.ask_at(Access::Read { len }, here, len.into());
            into[start..start + piece].copy_from_slice(&self.found()[..piece]);
        }
    }

    #[track_caller]
    fn write(&self, at: Address, from: &[u8]) {
        let room = self.shape.write_piece as usize;
        for (here, piece, start) in pieces(at, from.len(), room) {
            let mut bytes = [0; CHUNK];
            bytes[..piece].copy_from_slice(&from[start..start + piece]);
            let len = piece as u8;
            self.bring(bytes);
            self.ask_at(Access::Write { len }, here, len.into());
        }
    }
}

// The chip is a data structure of ours, so the promises are properties of the engine, kept by
// `machine/` and checked by `tests/`:
// S1. `WriteBack` sends the whole dirty line; `Drain` repeats until the core's store buffer is
//     empty.
// S2. `Invalidate` removes the line; the next read fetches it from memory.
// S3. `Drain` returns only when the combining buffer and the store buffer are empty.
// S4. `Acquire` ends the time from which loads may take former values.
// S5. Each access is a call through an opaque stack switch; the compiler moves nothing across it,
//     and simulated memory is not this program's memory in any case.
// S6. `Invalidate` of everything writes what is dirty in other lines than those named back.
// S7. When `Drain` has returned, stores are in memory; `Acquire` ends the time from which later
//     loads may take former values.
//
// SAFETY: S1 to S7 hold, for the reasons above.
#[expect(unsafe_code, reason = "the trait is unsafe to implement")]
unsafe impl<const LINE: usize> Coherence for SimCore<LINE> {
    const LINE: usize = LINE;

    #[track_caller]
    fn write_back(&self, spans: &[Lines]) {
        self.ask_at_lines(|len| Access::WriteBack { len }, spans);
    }

    #[track_caller]
    fn invalidate(&self, spans: &[Lines]) {
        let desk = self.port.desk();
        for lines in spans {
            let (at, len) = (
                lines.region().at(lines.start()),
                lines.end() - lines.start(),
            );
            let stamp = desk.ticket.get();
            desk.early.borrow_mut().refreshed(at, len, stamp);
        }
        self.ask_at_lines(|len| Access::Invalidate { len }, spans);
    }

    #[track_caller]
    fn drain(&self) {
        while self.ask(Access::Drain) != 0 {}
    }

    #[track_caller]
    fn acquire(&self) {
        self.ask(Access::Acquire);
    }
}

impl<const LINE: usize> TestAndSet for SimCore<LINE> {
    #[track_caller]
    fn test_and_set(&self, of: CoreId) -> bool {
        self.ask(Access::TestAndSet(self.register(of))) != 0
    }

    #[track_caller]
    fn clear(&self, of: CoreId) {
        self.ask(Access::Clear(self.register(of)));
    }
}

impl<const LINE: usize> MessageBuffer for SimCore<LINE> {
    fn message_buffer_size(&self) -> usize {
        self.shape.buffer as usize
    }
}

impl<const LINE: usize> Topology for SimCore<LINE> {
    const LISTENS: bool = true;

    fn cores(&self) -> u16 {
        self.shape.cores
    }

    fn core(&self) -> CoreId {
        self.core
    }

    /// Only the program's own calls count, not those that the kernel makes of itself.
    fn called(&self, place: &'static Location<'static>) {
        self.port.desk().early.borrow_mut().tells();
        self.looks(place);
    }

    fn looks(&self, place: &'static Location<'static>) {
        if !is_library(place) {
            self.port.desk().called.set(Some(place));
        }
    }

    /// Where time is measured, nothing is watched: it would take some.
    #[track_caller]
    fn expected(&self, at: Address, len: usize, what: Expected<'_>) {
        if self.shape.timed || self.port.is_over() {
            return;
        }
        let desk = self.port.desk();
        let (called, ticket) = (desk.called.get(), desk.ticket.get());
        let found = desk
            .early
            .borrow_mut()
            .note((at, len), what, called, ticket);
        for read in found {
            desk.found.set([read.place, read.started]);
            let since = (!read.changed).then_some(read.since);
            for (here, piece, _) in pieces(read.at, read.len, LINE) {
                let len = piece as u8;
                self.ask_at(Access::Early { len, since }, here, piece);
            }
        }
    }

    fn memory_size(&self) -> usize {
        self.shape.memory as usize
    }

    /// None while the run goes on. Once it is over no core answers, and destructors that wait are
    /// told so.
    fn lost(&self) -> Option<CoreId> {
        self.port.is_over().then_some(self.core)
    }
}

impl<const LINE: usize> Clock for SimCore<LINE> {
    /// Steps of the run so far, and an hour more for each time budget that was made to expire.
    /// Under [`Schedule::Timed`](crate::Schedule): cycles of this core's own clock. Takes a step
    /// itself.
    #[track_caller]
    fn cycles(&self) -> u64 {
        self.ask(Access::Cycles)
    }

    fn hertz(&self) -> u64 {
        self.shape.hertz
    }
}

impl<const LINE: usize> Relax for SimCore<LINE> {
    #[track_caller]
    fn relax(&self, watched: &[Watch]) {
        let own = |watch: &Watch| watch.at.region.owner == self.core();
        if self.shape.sleeps && !watched.is_empty() && watched.iter().all(own) {
            return self.sleep(watched);
        }
        for &Watch { at, seen } in watched {
            self.ask_at_word(Access::Watch { seen }, at);
        }
        self.ask(Access::Relax);
    }

    #[track_caller]
    fn told(&self, core: CoreId) {
        if self.shape.sleeps {
            self.drain();
            self.ring(core);
        }
    }

    fn waits(&self, what: fmt::Arguments<'_>) {
        self.say_if_asked(what);
    }
}

impl<const LINE: usize> NativeAtomics for SimCore<LINE> {
    type Word = u32;

    #[track_caller]
    fn atomic_u32(&self, at: Address, operation: Amo<u32>) -> u32 {
        self.ask_at_word(Access::Atomic(operation), at) as u32
    }
}

impl<const LINE: usize> SimCore<LINE> {
    /// Rings `core`'s bell, which remembers one ring. Orders nothing: [`drain`](Coherence::drain)
    /// first.
    #[track_caller]
    pub fn ring(&self, core: CoreId) {
        self.ask(Access::Ring(self.number(core)));
    }

    /// Sleeps until the bell rings, unless some word differs already. What rings meanwhile is
    /// remembered.
    #[track_caller]
    fn sleep(&self, watched: &[Watch]) {
        if { watched.iter() }.all(|watch| self.load_u32(watch.at) == watch.seen) {
            self.wait_for_ring();
            // No later look is from before the ring.
            self.acquire();
        }
    }

    /// Waits until this core's bell has been rung, and clears it.
    #[track_caller]
    pub fn wait_for_ring(&self) {
        self.ask(Access::WaitForRing);
    }
}
