//! A simulated network with remote memory access, beside the chip or instead of it.
//!
//! Ranks post operations to their end of the network, a [`Nic`]; each then is *in flight*, and what
//! becomes of it, part by part, happens on the network's own account at any later time, in any
//! order with all others: like a late store of a weak profile, and with the same consequences for
//! schedules, searches and timelines. [`Nic`] is a [`Fabric`](flagpost_hal::fabric::Fabric).
//!
//! # What is modelled (`machine/network/mod.rs`)
//! * Put: a part per line. Each part is placed any time later, in any order with all others.
//!   On an [ordered](crate::Wire::ordered) network the parts of a put that has an immediate, or is
//!   confirmed, wait until all earlier puts to the same target have arrived, immediates included. A
//!   put that is not confirmed has no event, and takes no place in the send queue.
//! * Get: a part per line. Each is loaded any time later, and stored at the origin any time after.
//! * Operation on a cell: done any time later. Its answer arrives any time after.
//! * Immediate: it arrives any time after the data of its own operation, before or after those of
//!   others. It waits while the target's completion queue is full, or the target has not opened its
//!   end.
//! * Send queue: bounded. It refuses.
//! * A target that has [dropped out](Nic::drop_out): what is in flight to it fails, any time later.
//!
//! The memory of a core is its registered memory; no cache lies over it. The knobs are a
//! [`Wire`](crate::Wire).
//!
//! # Which call is how many steps
//! | call | steps |
//! |---|---|
//! | `post` | 1, and 1 per 32 bytes to be put |
//! | `poll`, `open`, `drop_out` | 1 |
//! | `read`, `write` | 1 per line touched |
//! | `relax`, `pause` | 1; `relax` may wait after it |

use std::cell::Cell;
use std::fmt;
use std::panic::Location;
use std::rc::Rc;

use flagpost_hal::fabric::{Event, Fabric, SendQueueFull, Watched, Work};
use flagpost_hal::{Address, Amo, Clock as _, CoreId, Region, Relax as _, Topology as _};

use crate::handle::{SimCore, pieces};
use crate::machine::network::asked::{Wanted, unpack};
use crate::op::{Access, Bytes, CHUNK, PostKind, Posted, Request};

/// A core's end of the network. Clones are the same core's.
#[derive(Clone)]
pub struct Nic {
    core: SimCore,
    /// How many events there had been when this end was polled last.
    events: Rc<Cell<u32>>,
}

impl fmt::Debug for Nic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Nic({})", self.core.core())
    }
}

impl Nic {
    /// Opens `core`'s end: what peers have sent before waits for this.
    ///
    /// # Panics
    /// If the chip has no [network](crate::Config::network).
    #[track_caller]
    pub fn open(core: SimCore) -> Self {
        assert!(core.shape().networked, "this chip is on no network");
        let events = core.ask(Access::Network(Request::Open)) as u32;
        let events = Rc::new(Cell::new(events));
        Self { core, events }
    }

    /// This core falls silent: what is in flight to it fails, and so does all that is sent to it
    /// later. What it has sent itself may still arrive.
    #[track_caller]
    pub fn drop_out(&self) {
        self.core.ask(Access::Network(Request::DropOut));
    }

    fn own(&self, at: usize) -> Address {
        Region::memory(self.core.core()).at(at)
    }
}

impl Fabric for Nic {
    const LISTENS: bool = true;

    fn core(&self) -> CoreId {
        self.core.core()
    }

    fn cores(&self) -> u16 {
        self.core.cores()
    }

    fn memory_size(&self) -> usize {
        self.core.memory_size()
    }

    fn orders_puts(&self) -> bool {
        self.core.shape().orders_puts
    }

    /// None while the run goes on, see [`SimCore`]: operations fail.
    #[inline(always)]
    fn called(&self, place: &'static Location<'static>) {
        self.core.called(place);
    }

    fn waits(&self, what: fmt::Arguments<'_>) {
        self.core.say_if_asked(what);
    }

    fn lost(&self) -> Option<CoreId> {
        self.core.lost()
    }

    #[track_caller]
    fn read(&self, at: usize, into: &mut [u8]) {
        for (here, len, start) in pieces(self.own(at), into.len(), CHUNK) {
            let read = Access::Network(Request::Read { len: len as u8 });
            self.core.ask_at(read, here, len);
            into[start..start + len].copy_from_slice(&self.core.found()[..len]);
        }
    }

    #[track_caller]
    fn write(&self, at: usize, from: &[u8]) {
        for (here, len, start) in pieces(self.own(at), from.len(), CHUNK) {
            self.core.bring(padded(&from[start..start + len]));
            let write = Access::Network(Request::Write { len: len as u8 });
            self.core.ask_at(write, here, len);
        }
    }

    #[track_caller]
    fn post(&self, id: u32, to: CoreId, work: Work<'_>) -> Result<(), SendQueueFull> {
        let (kind, at, len, wanted) = match work {
            Work::Put {
                at,
                data,
                immediate,
                confirmed,
            } => {
                for chunk in data.chunks(CHUNK) {
                    self.core.bring(padded(chunk));
                    let len = chunk.len() as u8;
                    self.core.ask(Access::Network(Request::Stage { len }));
                }
                {
                    let wanted = Wanted::put(immediate, confirmed);
                    (PostKind::Put, at, data.len(), wanted)
                }
            }
            Work::Get { at, into, len } => (PostKind::Get, at, len, Wanted::get(into, len)),
            Work::Amo { at, amo } => (PostKind::Amo, at, 8, Wanted::amo(amo)),
        };
        self.core.bring(wanted.pack());
        let post = Access::Network(Request::Post(Posted {
            id,
            to: to.get(),
            kind,
        }));
        let target = Region::memory(to).at(at);
        match self.core.ask_at(post, target, len) {
            0 => Ok(()),
            _ => Err(SendQueueFull),
        }
    }

    #[track_caller]
    fn poll(&self) -> Option<Event> {
        let reply = self.core.ask(Access::Network(Request::Poll));
        self.events.set(reply as u32);
        (reply >> 32 != 0).then(|| unpack(&self.core.found()))
    }

    #[track_caller]
    fn relax(&self, watched: &[Watched]) {
        let events = Region::message_buffer(self.core.core()).at(0);
        let seen = self.events.get();
        self.core.ask_at(Access::Watch { seen }, events, 4);
        for &Watched { at, seen } in watched {
            self.core.ask_at(Access::Watch { seen }, self.own(at), 4);
        }
        self.core.ask(Access::Relax);
    }

    #[track_caller]
    fn pause(&self) {
        self.core.relax(&[]);
    }

    #[track_caller]
    fn now(&self) -> u64 {
        self.core.cycles()
    }

    fn ticks_per_second(&self) -> u64 {
        self.core.hertz()
    }
}

/// Up to 32 bytes, and zeros behind them.
fn padded(from: &[u8]) -> Bytes {
    let mut bytes = [0; CHUNK];
    bytes[..from.len()].copy_from_slice(from);
    bytes
}

impl Wanted {
    fn put(immediate: Option<u32>, confirmed: bool) -> Self {
        Self {
            immediate,
            confirmed,
            ..Self::default()
        }
    }

    fn get(into: usize, len: usize) -> Self {
        Self {
            // Inside of a region, whose lengths fit 32 bits.
            into: into as u32,
            len: len as u32,
            ..Self::default()
        }
    }

    fn amo(amo: Amo) -> Self {
        Self {
            amo: Some(amo),
            ..Self::default()
        }
    }
}
