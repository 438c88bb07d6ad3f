//! Two-sided communication over message buffers: what notified access is measured against.
//!
//! Blocking send and receive between two cores, without the kernel, as lean as the SCC's buffers
//! allow: no matching, no headers but a number, both sides know the length, a line is announced by
//! its own last word. Only flags and buffers of one pair, so that nobody else is asked or locked.
//!
//! # Two ways
//! ```text
//!   push (remote put, local get)              pull (local put, remote get: RCCE's)
//!
//!   sender            receiver's buffer       sender's buffer        receiver
//!     │ data, number ───► [cell]                [cell] ◄─── data │      │
//!     │                     │ read              number ───────────┼────► │ polls its own buffer
//!     │ ◄─── taken ─────────┘                   [cell] ─── fetched ────► │
//!                                                  ◄───── taken ─────────┘
//! ```
//! `push` needs no flag of its own: a cell's last word is its number, and lines leave the
//! write-combining buffer whole and in order. It is faster at every size and distance
//! (`tests/two_sided.rs`), so [`Channel::open`] takes it; `pull` is kept for the comparison.
//!
//! # Eager and pipelined
//! A message goes in chunks, each into a cell of the ring. What fits the ring is *eager*: the
//! sender does not wait for the receiver. A longer message is *pipelined*: the sender fills cells
//! while the receiver empties those before, and waits when the ring is full. That is the
//! rendezvous: none of it needs memory behind a controller.
//!
//! # Layout of an area (one per peer, in its owner's message buffer)
//! ```text
//!   line 0: ready (owner) | taken, full (peer)         then: cells x lines
//!   push: a chunk lies at the end of its cell, its last word is  number << 16 | taken
//! ```
//! `taken` travels with messages the other way; alone only if half of the ring is due. Its numbers,
//! and those of cells, are taken modulo 2^16.
//!
//! # Bounds
//! One message under way per direction and call; at most 2^15 - 1 cells. Whoever sends waits for
//! ever for a peer that does not receive.
//!
//! # Source
//! RCCE (flags and chunks in message buffers; pull), iRCCE (push; flags that carry payload), SCC: a
//! full line leaves the write-combining buffer as one packet, accesses complete in program order.

mod pull;
mod push;

use std::cell::Cell;

use flagpost_hal::{Address, CoreId, Lines, Machine, Region, Watch};

/// Bytes of a line of the SCC.
pub const LINE: usize = 32;

/// Most lines of a cell.
pub const LINES_MAX: u16 = 64;

/// What a core announces itself with: memory may hold anything at power-on.
const READY: u32 = 0x7405_1DED;

/// Where words are in an area's first line.
const READY_AT: u32 = 0;
const TAKEN_AT: u32 = 4;
const FULL_AT: u32 = 8;

/// Who moves data between the cores.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// The sender, into the receiver's buffer.
    Push,
    /// The receiver, out of the sender's.
    Pull,
}

/// An area's ring. The same at both ends.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// How many cells: a power of two.
    pub cells: u16,
    /// Lines of a cell: 1 to [`LINES_MAX`].
    pub lines: u16,
}

impl Shape {
    /// The ring that two cores use who have their buffers to themselves: 4 KiB of 8. Of the shapes
    /// tried the fastest from 256 bytes on, and as fast as any below.
    pub const PAIR: Self = Self {
        cells: 32,
        lines: 4,
    };

    /// Two large cells, for [`Way::Pull`].
    pub const DOUBLE: Self = Self {
        cells: 2,
        lines: 60,
    };

    /// A few lines, for short messages to each of many peers.
    pub const LINES: Self = Self { cells: 4, lines: 1 };

    /// Bytes of an area.
    pub const fn bytes(self) -> u32 {
        (1 + self.cells as u32 * self.lines as u32) * LINE as u32
    }
}

/// One end of a pair: two rings, one for each direction.
#[derive(Debug)]
pub struct Channel<'m, M> {
    machine: &'m M,
    way: Way,
    shape: Shape,
    /// The own area and the peer's.
    own: Address,
    peer: Address,
    /// Cells sent, and how many of them the peer has told to be taken.
    sent: Cell<u16>,
    freed: Cell<u16>,
    /// Cells received, and how many of them the peer has been told of.
    received: Cell<u16>,
    told: Cell<u16>,
}

impl<'m, M: Machine> Channel<'m, M> {
    /// The channel to `peer`, by the faster way. Waits until the peer has opened its end.
    ///
    /// `places` are the numbers of the own area in the own buffer, and of the peer's in the peer's:
    /// who talks to one peer only has area 0.
    ///
    /// # Panics
    /// If the areas do not fit the message buffers.
    pub fn open(machine: &'m M, peer: CoreId, shape: Shape, places: [u32; 2]) -> Self {
        Self::open_way(machine, peer, Way::Push, shape, places)
    }

    /// [`open`](Self::open), by the given way.
    ///
    /// # Panics
    /// As there.
    pub fn open_way(
        machine: &'m M,
        peer: CoreId,
        way: Way,
        shape: Shape,
        places: [u32; 2],
    ) -> Self {
        assert_eq!(M::LINE, LINE, "the SCC's lines");
        assert!(shape.cells.is_power_of_two() && (1..=LINES_MAX).contains(&shape.lines));
        let [own, its] = places;
        let end = shape.bytes() * (1 + own.max(its));
        assert!(end <= machine.message_buffer_size(), "areas do not fit");
        let at = |core, place| Region::message_buffer(core).at(place * shape.bytes());
        let channel = Self {
            machine,
            way,
            shape,
            own: at(machine.core(), own),
            peer: at(peer, its),
            sent: Cell::new(0),
            freed: Cell::new(0),
            received: Cell::new(0),
            told: Cell::new(0),
        };
        for word in [TAKEN_AT, FULL_AT] {
            machine.store_u32(channel.own.plus(word), 0);
        }
        for cell in 0..shape.cells {
            machine.store_u32(channel.tail(channel.own, cell, size_of::<u32>()), 0);
        }
        machine.drain();
        machine.store_u32(channel.own.plus(READY_AT), READY);
        channel.poll(channel.peer.plus(READY_AT), |word| word == READY);
        channel
    }

    /// Sends a message, of any length. The receiver names the same length.
    pub fn send(&self, data: &[u8]) {
        for (start, len) in chunks(self.way, self.shape, data.len()) {
            let chunk = &data[start..start + len];
            match self.way {
                Way::Push => self.push(chunk),
                Way::Pull => self.offer(chunk),
            }
        }
    }

    /// Receives a message of `len` bytes: `deliver` gets each piece of it, and where it belongs.
    pub fn receive(&self, len: usize, mut deliver: impl FnMut(usize, &[u8])) {
        for (start, len) in chunks(self.way, self.shape, len) {
            let mut buffer = [0; LINE * LINES_MAX as usize];
            match self.way {
                Way::Push => self.take(len, &mut buffer),
                Way::Pull => self.fetch(len, &mut buffer),
            }
            deliver(start, &buffer[..len]);
        }
    }

    /// The first line of a cell of an area.
    fn cell(&self, area: Address, number: u16) -> Address {
        let cell = u32::from(number % self.shape.cells);
        area.plus((1 + cell * u32::from(self.shape.lines)) * LINE as u32)
    }

    /// The last `len` bytes of a cell of an area.
    fn tail(&self, area: Address, number: u16, len: usize) -> Address {
        let whole = u32::from(self.shape.lines) * LINE as u32;
        self.cell(area, number).plus(whole - len as u32)
    }

    /// Polls a word until it is as wanted.
    fn poll(&self, at: Address, wanted: impl Fn(u32) -> bool) -> u32 {
        loop {
            let seen = self.machine.load_u32(at);
            if wanted(seen) {
                self.machine.acquire();
                return seen;
            }
            self.machine.relax(&[Watch { at, seen }]);
        }
    }

    /// Reads a peer's stores through the cache: a line costs one access, not one per word.
    fn read(&self, at: Address, into: &mut [u8]) {
        let lines = Lines::covering::<M>(at, into.len() as u32);
        self.machine.invalidate(&[lines]);
        self.machine.read(at, into);
    }

    /// The peer has taken so many cells, at least.
    fn learn(&self, taken: u16) {
        if taken.wrapping_sub(self.freed.get()) <= u16::MAX / 2 {
            self.freed.set(taken);
        }
    }

    /// Waits until a cell is free.
    fn await_room(&self) {
        let full = || self.sent.get().wrapping_sub(self.freed.get()) >= self.shape.cells;
        if full() {
            self.poll(self.own.plus(TAKEN_AT), |taken| {
                self.learn(taken as u16);
                !full()
            });
        }
    }

    /// Tells the peer what has been taken.
    fn tell(&self) {
        let taken = self.received.get();
        self.machine
            .store_u32(self.peer.plus(TAKEN_AT), taken.into());
        self.told.set(taken);
    }
}

/// How a message of `len` bytes is cut: where each chunk starts, and its bytes. An empty message is
/// an empty chunk.
fn chunks(way: Way, shape: Shape, len: usize) -> impl Iterator<Item = (usize, usize)> {
    let lines = len.div_ceil(LINE);
    // The time is that of the slower side for all lines, that of a flag per chunk, and that of the
    // other side for the last chunk: least where a chunk is about the root of a multiple of the
    // whole.
    let (best, number) = match way {
        Way::Push => (lines / 8, size_of::<u32>()),
        Way::Pull => (2 * lines, 0),
    };
    let lines = best.isqrt().clamp(1, shape.lines.into());
    let room = lines * LINE - number;
    (0..len.div_ceil(room).max(1)).map(move |chunk| {
        let start = chunk * room;
        (start, room.min(len - start))
    })
}
