//! Shared memory: words past the caches, bulk data through the write-combining buffer, cached data.
//!
//! # Which access is mapped how
//! | call | memory type |
//! |---|---|
//! | `load_u8`, `load_u32`, `store_u8`, `store_u32` | uncached |
//! | `store_bytes` | MPBT, write through |
//! | `load_bytes`, a line or more | MPBT, after CL1INVMB: a line per packet |
//! | `load_bytes` of less, or where lines are prefetched | uncached: keeps message lines in L1 |
//! | `read`, `write` | as [`Mapping`] says |
//!
//! * `store_bytes`: 32 bytes leave as one packet. It takes 122 cycles to memory. Word by word it
//!   would take 779.
//! * `loads_lines` is true of message buffers that are message data, where no line is prefetched. A
//!   poll of a line takes 59 cycles, of a word 50. The price: each poll drops the message lines in
//!   L1.
//! * `read` after message stores drains, and drops message lines, where lines are prefetched.
//!
//! With [`Mapping::Mpbt`] all of these are MPBT without write-through, and every store is preceded
//! by CL1INVMB: a store that misses goes out, one that hits would stay in L1 until the next
//! CL1INVMB discards it (H2).
//!
//! # The write-combining buffer
//! It holds one line, and lets go of it when the line is full or a store to another line comes.
//! Nothing else empties it: not CL1INVMB, not time, not an uncached access (docs/hardware.md A4).
//! Hence:
//! * W1. [`drain`](Coherence::drain) stores to a line of the own message buffer that is kept free
//!   for this. Then that line is what the buffer holds, and nobody reads it.
//! * W2. No load looks into the buffer, and an uncached store passes it by. So the port remembers
//!   the line that it stored to last, and drains before it touches that line in any other way (U5).
//!   The memory is one word per core, and may say "pending" where nothing is; never the reverse.
//! * W3. What is less than a line may leave in several packets. Only words are promised whole
//!   although a full line is one packet.
//!
//! # Which coherence action does what
//! | | `Mpbt`, `MpbtWriteThrough` | `Normal`, own memory |
//! |---|---|---|
//! | `write_back` | nothing: no store stays | [displacement](crate::displace), drops lines |
//! | `invalidate` | CL1INVMB: all message lines | the same: it writes back, too |
//! | `drain` | W1 | W1 |
//! | `acquire` | nothing: one access at a time | nothing |
//!
//! # Doubt
//! Whether an uncached load that finds its line in L1 is served from there is not known
//! (docs/hardware.md A4 says it passes the caches; the core's ancestors looked). The kernel's
//! polled words share no line with cached data, so it does not ask.

use flagpost_hal::{Address, CachedMemory, Coherence, Kind, Lines, Region, UncachedMemory};
use flagpost_points::point;

use crate::Scc;
use crate::bus::{Attribute, Bus, LINE, Physical};
use crate::displace;
use crate::scc::Mapping;

impl<B: Bus> Scc<B> {
    /// Notes that the write-combining buffer may now hold the line of `at`.
    fn note_pending(&self, at: Physical) {
        self.bus.state().pending.set(at.line().get() + 1);
    }

    /// Drains if the write-combining buffer may hold one of these bytes (W2).
    #[inline]
    #[track_caller]
    fn let_go(&self, at: Physical, len: usize) {
        let pending = self.bus.state().pending.get();
        let from = at.line().get();
        // A line's number, plus 1, lies in here exactly if the line overlaps the bytes.
        if pending > from && u64::from(pending) <= u64::from(at.get()) + len as u64 {
            point!(DRAIN "W2: this access comes after own stores to the line":
                "scc.let_go.drain", self.drain());
        }
    }

    /// Stores message data, and notes what the write-combining buffer holds then.
    #[track_caller]
    fn send(&self, at: Physical, from: &[u8]) {
        if let Some(last) = from.len().checked_sub(1) {
            self.bus.store_bytes(at, self.message_type(), from);
            point!(DRAIN "a drain finds out that the buffer holds a line": "scc.send.note",
                self.note_pending(at.plus(last as u32)));
        }
    }

    /// The memory type of message data. A store of it must miss in L1 where it is `Mpbt`: H2.
    #[track_caller]
    fn message_type(&self) -> Attribute {
        match self.mapping {
            Mapping::Mpbt => {
                // FLUSH: nothing is lost: no store has ever stayed in L1, because of this line.
                point!(INVALIDATE "H2: a store that hits would stay in L1": "scc.send.cl1invmb",
                    self.bus.cl1invmb());
                Attribute::Mpbt
            }
            Mapping::Normal | Mapping::MpbtWriteThrough => Attribute::MpbtWriteThrough,
        }
    }

    /// The lines of `spans` that are mapped normal, as physical spans.
    fn normal<'s>(
        &'s self,
        spans: &'s [Lines],
    ) -> impl Iterator<Item = (Physical, u32)> + Clone + 's {
        let normal = |lines: &&Lines| self.mapped(lines.region()) == Attribute::Normal;
        spans.iter().filter(normal).map(|lines| {
            let len = lines.end() - lines.start();
            let at = self.locate(lines.region().at(lines.start()), len);
            (at, len as u32)
        })
    }
}

impl<B: Bus> UncachedMemory for Scc<B> {
    #[inline]
    #[track_caller]
    fn load_u8(&self, at: Address) -> u8 {
        let at = self.locate(at, 1);
        self.let_go(at, 1);
        self.bus.load_u8(at, Attribute::Uncached)
    }

    #[inline]
    #[track_caller]
    fn store_u8(&self, at: Address, value: u8) {
        let at = self.locate(at, 1);
        self.let_go(at, 1);
        self.bus.store_u8(at, Attribute::Uncached, value);
    }

    #[inline]
    #[track_caller]
    fn load_u32(&self, at: Address) -> u32 {
        let at = self.locate_word(at);
        self.let_go(at, 4);
        self.bus.load_u32(at, Attribute::Uncached)
    }

    #[inline]
    #[track_caller]
    fn store_u32(&self, at: Address, value: u32) {
        let at = self.locate_word(at);
        self.let_go(at, 4);
        self.bus.store_u32(at, Attribute::Uncached, value);
    }

    #[track_caller]
    fn store_bytes(&self, at: Address, from: &[u8]) {
        self.send(self.locate(at, from.len()), from);
    }

    #[track_caller]
    fn load_bytes(&self, at: Address, into: &mut [u8]) {
        let region = at.region;
        let at = self.locate(at, into.len());
        self.let_go(at, into.len());
        // Normal lines are not tagged: CL1INVMB would leave an old copy of them in place.
        let normal = self.mapped(region) == Attribute::Normal;
        // A line that comes by itself behind CL1INVMB would be found in L1, old.
        let words = normal || self.bus.prefetches() || into.len() < LINE as usize;
        let attribute = if words {
            Attribute::Uncached
        } else {
            point!(INVALIDATE "U3: what is in L1 may be old": "scc.load.cl1invmb",
                self.bus.cl1invmb());
            self.mapped(region)
        };
        self.bus.load_bytes(at, attribute, into);
    }

    fn loads_lines(&self, region: Region) -> bool {
        // A line that is polled must not come into L1 but by that poll.
        region.kind == Kind::MessageBuffer
            && self.mapped(region) != Attribute::Normal
            && !self.bus.prefetches()
    }
}

impl<B: Bus> CachedMemory for Scc<B> {
    #[track_caller]
    fn read(&self, at: Address, into: &mut [u8]) {
        let attribute = self.mapped(at.region);
        let at = self.locate(at, into.len());
        if attribute != Attribute::Normal && self.bus.state().passed.replace(false) {
            // FLUSH: C4: a line that came by itself before own stores had left the buffer is
            // without them.
            point!(DRAIN "C4: own stores are in memory before the line is fetched anew":
                "scc.read.drain", self.drain());
            point!(INVALIDATE "C4: the line is fetched anew": "scc.read.cl1invmb",
                self.bus.cl1invmb());
        }
        // W2: own stores that are still in the buffer: a load that misses would fetch the line
        // without them.
        self.let_go(at, into.len());
        self.bus.load_bytes(at, attribute, into);
    }

    #[track_caller]
    fn write(&self, at: Address, from: &[u8]) {
        let normal = self.mapped(at.region) == Attribute::Normal;
        let at = self.locate(at, from.len());
        if normal {
            self.let_go(at, from.len());
            self.bus.store_bytes(at, Attribute::Normal, from);
        } else {
            self.send(at, from);
            self.bus.state().passed.set(self.bus.prefetches());
        }
    }
}

// The promises, with the accesses of `Bus` doing what `Attribute` says:
// S1. Message data: no store stays in L1 (written through, or a miss because of `message_type`),
//     and `drain` takes the last line out of the write-combining buffer. Normal lines:
//     `Bus::write_back`.
// S2. CL1INVMB drops all message lines; `Bus::invalidate` drops the normal ones.
// S3. The core completes each access before it starts the next, but for the write-combining buffer:
//     W1, W2.
// S4. Loads complete in program order.
// S5. `Bus` promises that its accesses are kept in order among themselves; `order` keeps all
//     others.
// S6. CL1INVMB drops all message lines, none of which is ever dirty (S1); displacement writes back
//     what it drops.
// S7. As S3 and S4: after `drain`, no store is left in the write-combining buffer.
//
// SAFETY: S1 to S7 hold, for the reasons above.
#[allow(unsafe_code, reason = "the trait is unsafe to implement")]
unsafe impl<B: Bus> Coherence for Scc<B> {
    const LINE: usize = LINE as usize;

    #[track_caller]
    fn write_back(&self, spans: &[Lines]) {
        self.bus.order();
        if !self.bus.write_back(self.normal(spans)) {
            displace::clean(&self.bus, self.normal(spans));
        }
    }

    #[track_caller]
    fn invalidate(&self, spans: &[Lines]) {
        let message = |lines: &Lines| {
            lines.start() < lines.end() && self.mapped(lines.region()) != Attribute::Normal
        };
        if spans.iter().any(message) {
            point!(INVALIDATE "S2: message lines are fetched anew": "scc.invalidate.cl1invmb",
                self.bus.cl1invmb());
        }
        if !self.bus.invalidate(self.normal(spans)) {
            displace::clean(&self.bus, self.normal(spans));
        }
        self.bus.order();
    }

    #[track_caller]
    fn drain(&self) {
        if self.bus.state().pending.replace(0) != 0 {
            // FLUSH: W1. Never loaded, so that this store cannot hit in L1.
            let dummy = self.map.dummy_line(self.core);
            point!(DRAIN "S1, S7: the buffer lets go of the line that it holds": "scc.drain.dummy",
                self.bus.store_u32(dummy, self.dummy_type(), 0));
        }
        self.bus.order();
    }

    #[track_caller]
    fn acquire(&self) {
        self.bus.order();
    }
}

impl<B: Bus> Scc<B> {
    /// The memory type of the own message buffer, and so of its dummy line.
    fn dummy_type(&self) -> Attribute {
        self.mapped(Region::message_buffer(self.core))
    }
}
