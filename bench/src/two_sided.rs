//! Two-sided communication over message buffers: what notified access is measured against.
//!
//! Blocking send and receive between two cores, without the kernel, as lean as the SCC's buffers
//! allow: no matching, no headers but a number, both sides know the length, a line is announced by
//! its own last word. Only flags and buffers of one pair, so that nobody else is asked or locked.
//!
//! # The way
//! ```text
//!   sender            receiver's buffer
//!     │ data, number ───► [cell]
//!     │                     │ read
//!     │ ◄─── taken ─────────┘
//! ```
//! The sender puts, and the receiver polls its own buffer. There is no flag beside the data: a
//! cell's last word is its number, and lines leave the write-combining buffer whole and in order.
//! RCCE's way, where the receiver gets, was slower at every size and distance
//! (`docs/log/notified.md`).
//!
//! # Eager and pipelined
//! A message goes in chunks, each into a cell of the ring. What fits the ring is *eager*: the
//! sender does not wait for the receiver. A longer message is *pipelined*: the sender fills cells
//! while the receiver empties those before, and waits when the ring is full. That is the
//! rendezvous: none of it needs memory behind a controller.
//!
//! # Layout of an area (one per peer, in its owner's message buffer)
//! ```text
//!   line 0: ready (owner) | taken (peer)         then: cells x lines
//!   a chunk lies at the end of its cell, its last word is  number << 16 | taken
//! ```
//! `taken` travels with messages the other way; alone only if half of the ring is due. Its numbers,
//! and those of cells, are taken modulo 2^16.
//!
//! # Bounds
//! One message under way per direction and call; at most 2^15 - 1 cells. Whoever sends waits for
//! ever for a peer that does not receive.
//!
//! # Source
//! RCCE (flags and chunks in message buffers), iRCCE (remote put; flags that carry payload), SCC: a
//! full line leaves the write-combining buffer as one packet, accesses complete in program order.

use std::cell::Cell;

use flagpost_hal::{Address, CoreId, Lines, Machine, Region, Watch};

/// Bytes of a line of the SCC.
pub const LINE: usize = 32;

/// Most lines of a cell.
pub const LINES_MAX: u16 = 64;

/// What a core announces itself with: memory may hold anything at power-on.
const READY: u32 = 0x7405_1DED;

/// Where words are in an area's first line.
const READY_AT: usize = 0;
const TAKEN_AT: usize = 4;

/// Bytes of a cell's number, at its end.
const NUMBER: usize = size_of::<u32>();

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

    /// A few lines, for short messages to each of many peers.
    pub const LINES: Self = Self { cells: 4, lines: 1 };

    /// The ring that each of `cores` has with each other one, if they share buffers of `bytes`.
    pub fn share(cores: u16, bytes: usize) -> Self {
        let lines = bytes / LINE / usize::from(cores);
        let cells = lines
            .saturating_sub(1)
            .checked_ilog2()
            .map_or(1, |log| 1 << log);
        Self {
            cells: cells.min(32),
            lines: 1,
        }
    }

    /// Bytes of an area.
    pub const fn bytes(self) -> usize {
        (1 + self.cells as usize * self.lines as usize) * LINE
    }
}

/// One end of a pair: two rings, one for each direction.
#[derive(Debug)]
pub struct Channel<'m, M> {
    machine: &'m M,
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
    /// The channel to `peer`. Waits until the peer has opened its end.
    ///
    /// `places` are the numbers of the own area in the own buffer, and of the peer's in the peer's:
    /// who talks to one peer only has area 0.
    ///
    /// # Panics
    /// If the areas do not fit the message buffers.
    pub fn open(machine: &'m M, peer: CoreId, shape: Shape, places: [usize; 2]) -> Self {
        assert_eq!(M::LINE, LINE, "the SCC's lines");
        assert!(shape.cells.is_power_of_two() && (1..=LINES_MAX).contains(&shape.lines));
        let [own, its] = places;
        let end = shape.bytes() * (1 + own.max(its));
        assert!(end <= machine.message_buffer_size(), "areas do not fit");
        let at = |core, place| Region::message_buffer(core).at(place * shape.bytes());
        let channel = Self {
            machine,
            shape,
            own: at(machine.core(), own),
            peer: at(peer, its),
            sent: Cell::new(0),
            freed: Cell::new(0),
            received: Cell::new(0),
            told: Cell::new(0),
        };
        machine.store_u32(channel.own.plus(TAKEN_AT), 0);
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
        for (start, len) in chunks(self.shape, data.len()) {
            self.push(&data[start..start + len]);
        }
    }

    /// Receives a message of `len` bytes: `deliver` gets each piece of it, and where it belongs.
    pub fn receive(&self, len: usize, mut deliver: impl FnMut(usize, &[u8])) {
        for (start, len) in chunks(self.shape, len) {
            let mut buffer = [0; LINE * LINES_MAX as usize];
            self.take(len, &mut buffer);
            deliver(start, &buffer[..len]);
        }
    }

    /// The last `len` bytes of a cell of an area.
    fn tail(&self, area: Address, number: u16, len: usize) -> Address {
        let cell = usize::from(number % self.shape.cells);
        let end = (1 + (cell + 1) * usize::from(self.shape.lines)) * LINE;
        area.plus(end - len)
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
        let lines = Lines::covering::<M>(at, into.len());
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

    /// Sends a chunk, which with its number fits a cell.
    fn push(&self, chunk: &[u8]) {
        self.await_room();
        let (sent, taken) = (self.sent.get(), self.received.get());
        let next = sent.wrapping_add(1);
        // Whole lines, which leave the write-combining buffer one by one, the one with the number
        // last.
        let mut lines = [0; LINE * LINES_MAX as usize];
        let len = whole(chunk.len());
        let number = u32::from(next) << 16 | u32::from(taken);
        lines[..chunk.len()].copy_from_slice(chunk);
        lines[len - NUMBER..len].copy_from_slice(&number.to_le_bytes());
        let at = self.tail(self.peer, sent, len);
        self.machine.store_bytes(at, &lines[..len]);
        self.sent.set(next);
        self.told.set(taken);
    }

    /// Receives a chunk of `len` bytes into the front of `buffer`.
    fn take(&self, len: usize, buffer: &mut [u8]) {
        let received = self.received.get();
        let next = received.wrapping_add(1);
        let whole = whole(len);
        let at = |bytes| self.tail(self.own, received, bytes);
        let (front, last) = buffer[..whole].split_at_mut(whole - LINE);
        // The last line is polled as a whole: if the number is there, so is its payload.
        let number = loop {
            self.read(at(LINE), last);
            let word = last[LINE - NUMBER..].try_into().map(u32::from_le_bytes);
            let word = word.expect("4 bytes");
            if (word >> 16) as u16 == next {
                break word;
            }
            self.machine.relax(&[Watch {
                at: at(NUMBER),
                seen: word,
            }]);
        };
        self.machine.acquire();
        if !front.is_empty() {
            self.read(at(whole), front);
        }
        self.received.set(next);
        self.learn(number as u16);
        let due = next.wrapping_sub(self.told.get());
        if due > self.shape.cells / 2 {
            self.tell();
        }
    }
}

/// Bytes of the lines that a chunk and its number take.
const fn whole(chunk: usize) -> usize {
    (chunk + NUMBER).next_multiple_of(LINE)
}

/// How a message of `len` bytes is cut: where each chunk starts, and its bytes. An empty message is
/// an empty chunk.
fn chunks(shape: Shape, len: usize) -> impl Iterator<Item = (usize, usize)> {
    let lines = len.div_ceil(LINE);
    // The time is that of the slower side for all lines, that of a flag per chunk, and that of the
    // other side for the last chunk: least where a chunk is about the root of a multiple of the
    // whole.
    let lines = (lines / 8).isqrt().clamp(1, shape.lines.into());
    let room = lines * LINE - NUMBER;
    (0..len.div_ceil(room).max(1)).map(move |chunk| {
        let start = chunk * room;
        (start, room.min(len - start))
    })
}
