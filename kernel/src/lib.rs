//! Flagpost: one-sided communication for many-core chips whose caches the hardware does not keep
//! coherent.
//!
//! Each rank, a core or a process, exposes *windows* of its memory. Other ranks put, get and
//! accumulate there without the owner's help. Ranks synchronize by *epochs*, or by *notified
//! accesses*: one message brings the data and tells the target. The library writes caches back and
//! invalidates them where that is needed. This crate and its links do not
//! panic. They have no heap, but for the link for networks.
//!
//! ```text
//!   rank 0                               rank 1
//!   ┌────────────────────────┐           ┌────────────────────────┐
//!   │ program                │           │ program                │
//!   │   put_notify ──────────┼─────┐     │   wait ◄── source, tag │
//!   ├────────────────────────┤     │     ├───────────────▲────────┤
//!   │ private cache          │     │     │ private cache │        │
//!   ├────────────────────────┤     │     ├───────────────┼────────┤
//!   │ window, piece 0        │     └─────┼► window, piece 1       │
//!   └────────────────────────┘  past the └────────────────────────┘
//!                                caches
//! ```
//!
//! # A program
//! Each core puts a number into its neighbour's memory, first by a notified put, then in an epoch.
//! The function `ring` is the same on the simulator, on bare metal and on Linux.
//!
//! ```
//! use flagpost::prelude::*;
//! use flagpost_mapped::Mapped;
//! use flagpost_sim::Sim;
//!
//! fn ring<L: Link>(world: &World<'_, L>) -> Result<(), Error> {
//!     let (me, size) = (world.rank(), world.size());
//!     let (left, right) = (me.prev(size), me.next(size));
//!     let window = world.allocate::<u64>(2)?; // 2 elements on each rank, all zero
//!
//!     // A notified put: the data and their notification are one message.
//!     let mut arrived = window.expect(0..1, Tag(7))?;
//!     arrived.start()?;
//!     world.barrier()?; // every rank is ready to receive
//!     window.put_notify(right, 0, &[42], Tag(7))?;
//!     assert_eq!(arrived.wait()?.source, left);
//!     assert_eq!(window.local().get(0)?, 42);
//!
//!     // An epoch: the target opens its piece, the origin says when its accesses are done.
//!     let exposure = window.post([left])?;
//!     let access = window.start([right])?;
//!     access.put(right, 1, &[u64::from(me.get())])?;
//!     access.complete()?;
//!     exposure.wait()?;
//!     assert_eq!(window.local().get(1)?, u64::from(left.get()));
//!     Ok(())
//! }
//!
//! let chip = flagpost_sim::Config { cores: 8, memory_size: 16 << 10, ..Default::default() };
//! let report = Sim::new(chip).run(|core| {
//!     let mut words = [0; 128]; // the world's working memory
//!     let link = Mapped::start(core, Session::FIRST)?;
//!     ring(&World::start(link, &mut words, Config::default())?)
//! });
//! report.assert_done();
//! ```
//!
//! # The calls
//! ```text
//!   World ── one per rank, over a Link: who I am, who else is there, barrier, broadcast, reduce, …
//!    ├─ Memory ── own shared memory, reserved without the others
//!    ├─ DynamicWindow ── Memory that ranks attach and detach on their own
//!    ├─ Events ── post, query, wait; event → Event: the notice of an access that posts
//!    ├─ Part ── some of the ranks, and memory of theirs; link → a World of them alone
//!    ├─ Spare ── memory for a world of the ranks that a loss leaves; survivors → their Part
//!    └─ Window<T> ── collectively allocated, or created over Memory; each rank owns one piece
//!        ├─ local()                own piece, through accessors
//!        ├─ post → Exposure → wait           "these origins may access my piece"
//!        ├─ start → Access → put, get, accumulate → complete   "I access these targets' pieces"
//!        ├─ fence → Fence → put, get → fence → … → end   all ranks together
//!        ├─ lock_shared, lock_exclusive, lock_all → Lock → put, get, flush → unlock
//!        ├─ put_notify                       data and <source, tag>, one message, no epoch
//!        ├─ get_notify, notify               the same of a get, and of nothing
//!        ├─ to → layout, notify → put, …     any access in full; → Request: test, wait
//!        ├─ expect → Request: start, test, wait     matching notifications
//!        └─ set_num_notify → notify_value, expect_word → WordRequest     counters, signals
//!
//!   test_any, wait_any, wait_all ── several requests, of any kinds: Complete
//! ```
//!
//! # Rules
//! * **Coherence.** Only a piece's owner caches it (nobody, in a window of the
//!   [unified](Model::Unified) model). Peers go past the caches. `post` and `Request::start` write
//!   the owner's stores back; `Exposure::wait` and a matched request drop its stale lines. In
//!   between, the owner's own stores there are refused ([`Error::Exposed`]).
//! * **Blocking.** Calls that wait say so. They wait until they are done, or a rank is lost or has
//!   left: `?` is safe. A [`Budget`] bounds the waits of a handle (`posting`, `fencing`,
//!   `locking_shared`, `allocating`, ...; then `wait_within`), or of all calls in
//!   [`World::within`]. A call that runs out of it gives [`Error::Timeout`], with the ranks that
//!   may be missing where the wait knows any: a wait for any source, a counter, an event or
//!   `lock_all` does not. Then the handle ([`Unfinished`]) continues; a short form (`post`,
//!   `fence`, ...) has dropped it; and a call without a handle can be repeated.
//! * **Memory.** No heap. A world works in the words that its user lends it; windows lie in the
//!   shared memory of the link.
//! * **Panics.** None, on any input to worlds, windows, epochs and requests. (Keys made up for
//!   calls of the link itself may stop its machine.)
//!
//! # Sources
//! [PSCW-SCC] Christgau & Schnor, PSCW synchronization on the Intel SCC; [foMPI] Gerstenberger,
//! Besta, Hoefler 2013/14; [NA] Belli & Hoefler, Notified Access 2015; [IntelMPI] Intel MPI Library
//! Developer Guide, notified one-sided communications, 2024; [CAF-NA] notified access for coarray
//! Fortran's events, Elsevier, 2018.
//!
//! [PSCW-SCC]: crate#sources
//! [foMPI]: crate#sources
//! [NA]: crate#sources
//! [IntelMPI]: crate#sources
//! [CAF-NA]: crate#sources
#![no_std]

#[macro_use]
extern crate flagpost_points;

/// The program has called: notes where, and tells the link. Each public call that may access memory
/// begins with this or with `tries!`, and is `#[track_caller]`.
macro_rules! called {
    ($world:expr) => {
        $world.called();
    };
}

/// `called!`, for a call that tells other ranks nothing.
macro_rules! looks {
    ($world:expr) => {
        $world.note_place();
        $world.looks();
    };
}

/// `called!`, for a call with a fast path: its place is noted ([`World::note_place`]) if that
/// declines. Where the call is nothing to the link, the world is not even looked at.
macro_rules! tries {
    ($world:expr) => {
        tries!($world, tries)
    };
    ($world:expr, $how:ident) => {
        if L::LISTENS || !L::PASSIVE {
            $world.$how();
        }
    };
}

#[macro_use]
mod handle;

mod arena;
mod budget;
mod caller;
mod collective;
mod complete;
pub mod epoch;
mod error;
mod grid;
mod group;
mod immediate;
mod making;
pub mod notify;
pub mod part;
pub mod rma;
mod wait;
mod window;
mod world;

/// The names that nearly every program needs: `use flagpost::prelude::*`.
pub mod prelude {
    pub use crate::{
        Budget, Config, Counter, Error, Link, Rank, Rma, Session, Signal, Source, Tag, Window,
        World, epoch::Assert, rma::Operation,
    };
}

pub use budget::Budget;
/// The crate of [`Pod`](bytemuck::Pod), which the elements of a window are. A program that derives
/// it says where it is:
///
/// ```
/// use flagpost::bytemuck::{Pod, Zeroable};
///
/// #[derive(Copy, Clone, Pod, Zeroable)]
/// #[bytemuck(crate = "flagpost::bytemuck")]
/// #[repr(C)]
/// struct Particle {
///     place: [f32; 2],
///     speed: [f32; 2],
/// }
/// # let _: Particle = Zeroable::zeroed();
/// ```
pub use bytemuck;
pub use collective::Entering;
pub use complete::{Complete, test_any, wait_all, wait_any};
pub use epoch::{EpochSlots, MatchVector, MatchingList};
pub use error::{Differs, Error, Missing, Remedy, Timeout, Unfinished, Waiting};
pub use flagpost_link::{Link, Rank, Session, VectorLink, Word};
pub use grid::{Grid, Neighbours};
pub use group::{Group, Ranks};
pub use making::{Freeing, Made, Making};
pub use notify::{
    Compare, Counter, Event, Events, Limits, Notice, Request, Signal, Source, Status, Tag,
    TagFilter, WordRequest,
};
pub use part::{Part, PartLink, Room, Spare};
pub use rma::Rma;
pub use window::{
    Attached, Displacement, DynamicOptions, DynamicWindow, Kind, Local, Memory, Model, Options,
    Peer, Validation, Window,
};
pub use world::{Config, Starting, World};
