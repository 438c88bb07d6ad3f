//! What one call costs: remote accesses, locks, line misses, cycles.
//!
//! Two ranks on neighbouring tiles of an SCC, in simulated time. Rank 0 makes the call; rank 1 does
//! what belongs to it. Each call is made several times, with a barrier before, and the last one
//! counts: what is cached stays cached. Figures are differences between two marks of rank 0
//! ([`Marked`]); for cycles, less what two marks with nothing in between take.
//!
//! | figure | what it counts at rank 0 |
//! |---|---|
//! | `remote_reads` | words loaded from the peer's regions |
//! | `remote_writes` | words, and lines of bulk stores, that went to the peer's regions |
//! | `local_accesses` | the same two in its own regions: past the cache, polls included |
//! | `locks` | test-and-set registers taken, its own included |
//! | `atomics` | the machine's own atomic operations: none but in calls named `native` |
//! | `misses` | lines fetched into its cache |
//! | `cycles` | of its clock, waiting included |

mod accesses;
mod atomic;
mod epochs;
mod notify;
mod windows;

use flagpost::{
    Config as WorldConfig, EpochSlots, MatchVector, MatchingList, Rank, Session, Source, TagFilter,
    Window, World,
};
use flagpost_mapped::{Mapped, MappedNative};
use flagpost_sim::{Config, Marked, Mesh, Oracles, Report, Schedule, Sim, SimCore};

use crate::Failure;

/// What a call costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    /// The call.
    pub call: &'static str,
    /// Bytes that it moves; 0 if it moves none.
    pub bytes: usize,
    /// See the module.
    pub remote_reads: u64,
    /// See the module.
    pub remote_writes: u64,
    /// See the module.
    pub local_accesses: u64,
    /// See the module.
    pub locks: u64,
    /// See the module.
    pub atomics: u64,
    /// See the module.
    pub misses: u64,
    /// See the module.
    pub cycles: u64,
}

/// Sizes of calls that move data, in bytes.
pub const SIZES: [usize; 5] = [8, 32, 64, 256, 4096];

/// Calls that move data, in the order in which they are printed.
pub const SIZED: [&str; 40] = [
    "rma.put",
    "rma.get",
    "rma.accumulate",
    "rma.get_accumulate",
    "rma.put_request",
    "rma.get_request",
    "rma.accumulate_request",
    "rma.get_accumulate_request",
    "rma.put_layout",
    "rma.get_layout",
    "rma.accumulate_layout",
    "rma.get_accumulate_layout",
    "dynamic.put",
    "dynamic.put_told",
    "dynamic.get",
    "dynamic.get_told",
    "dynamic.get_unkept",
    "dynamic.get_unkept_told",
    "dynamic.accumulate",
    "dynamic.get_accumulate",
    "dynamic.put_request",
    "dynamic.get_request",
    "dynamic.accumulate_request",
    "dynamic.get_accumulate_request",
    "dynamic.put_layout",
    "dynamic.get_layout",
    "dynamic.accumulate_layout",
    "dynamic.get_accumulate_layout",
    "dynamic.read",
    "dynamic.write",
    "local.copy_out",
    "local.copy_in",
    "notify.put_notify",
    "notify.put_request",
    "notify.get_notify",
    "notify.get_request",
    "notify.accumulate_request",
    "notify.get_accumulate_request",
    "counter.put_notify",
    "counter.by_hand",
];

/// Calls that move one element.
pub const SINGLE: [&str; 14] = [
    "rma.fetch_and_op",
    "rma.compare_and_swap",
    "rma.test",
    "rma.wait_any",
    "dynamic.fetch_and_op",
    "dynamic.compare_and_swap",
    "local.get",
    "local.set",
    "notify.fetch_and_op_request",
    "notify.compare_and_swap_request",
    "counter.put_signal",
    "event.put",
    "peer.set",
    "peer.get",
];

/// Atomic accesses to elements of 4 and of 8 bytes: under the owner's lock, and by atomics of 4
/// bytes.
pub const ATOMIC: [&str; 6] = [
    "locked.accumulate",
    "locked.fetch_and_op",
    "locked.compare_and_swap",
    "native.accumulate",
    "native.fetch_and_op",
    "native.compare_and_swap",
];

/// Calls that move none.
pub const PLAIN: [&str; 93] = [
    "notify.notify",
    "notify.start",
    "notify.cancel",
    "notify.test",
    "notify.wait",
    "notify.wait_any",
    "notify.probe",
    "notify.discard",
    "counter.value",
    "counter.fetch",
    "counter.set",
    "counter.reset",
    "counter.test",
    "counter.cancel",
    "counter.wait_until",
    "event.make",
    "event.post",
    "event.query",
    "event.wait",
    "event.sync",
    "event.free",
    "pscw.slots.post",
    "pscw.slots.post_range",
    "pscw.slots.start",
    "pscw.slots.has_posted",
    "pscw.slots.await_posts",
    "pscw.slots.complete",
    "pscw.slots.wait",
    "pscw.slots.test",
    "pscw.vector.post",
    "pscw.vector.start",
    "pscw.vector.has_posted",
    "pscw.vector.await_posts",
    "pscw.vector.complete",
    "pscw.vector.wait",
    "pscw.vector.test",
    "pscw.list.post",
    "pscw.list.start",
    "pscw.list.has_posted",
    "pscw.list.await_posts",
    "pscw.list.complete",
    "pscw.list.wait",
    "pscw.list.test",
    "fence.open",
    "fence.fence",
    "fence.no_put",
    "fence.no_store",
    "fence.no_precede",
    "fence.no_succeed",
    "fence.end",
    "lock.lock_shared",
    "lock.lock_exclusive",
    "lock.lock_further",
    "lock.lock_queued",
    "lock.lock_all",
    "lock.unlock_shared",
    "lock.unlock_exclusive",
    "lock.unlock_further",
    "lock.unlock_queued",
    "lock.unlock_all",
    "lock.cancel_shared",
    "lock.cancel_exclusive",
    "lock.cancel_queued",
    "lock.cancel_all",
    "flush.flush",
    "flush.flush_all",
    "flush.window",
    "flush.sync",
    "collective.barrier",
    "collective.allgather",
    "collective.broadcast",
    "collective.reduce",
    "collective.allreduce",
    "collective.alltoall",
    "collective.alltoall_uneven",
    "collective.gather",
    "collective.scatter",
    "collective.reduce_scatter",
    "collective.scan",
    "collective.exscan",
    "window.allocate",
    "window.allocate_vector",
    "window.allocate_list",
    "window.create",
    "window.dynamic",
    "window.set_num_notify",
    "window.free",
    "window.reserve",
    "window.release",
    "dynamic.attach",
    "dynamic.detach",
    "dynamic.detach_told",
    "dynamic.free",
];

/// All calls, each with its sizes.
pub fn all() -> impl Iterator<Item = (&'static str, usize)> {
    let sized = SIZED
        .iter()
        .flat_map(|&call| SIZES.map(|bytes| (call, bytes)));
    let single = SINGLE.iter().map(|&call| (call, ELEMENT));
    let atomic = ATOMIC
        .iter()
        .flat_map(|&call| [4, ELEMENT].map(|bytes| (call, bytes)));
    sized
        .chain(single)
        .chain(atomic)
        .chain(PLAIN.iter().map(|&call| (call, 0)))
}

/// How often each call is made; the last one counts.
const CALLS: usize = 3;

/// Bytes of an element.
const ELEMENT: usize = size_of::<u64>();

/// Elements of the windows: as many as the largest call moves. Layouts take every other one of
/// twice as many.
const ELEMENTS: usize = 512;

/// Two ranks, a tile each.
const MESH: Mesh = Mesh {
    columns: 2,
    rows: 1,
    cores_per_tile: 1,
};

const OWN: Rank = Rank::new(0);
const PEER: Rank = Rank::new(1);

/// Labels of the marks.
const BEGIN: &str = "begin";
const END: &str = "end";

type Chip = Mapped<SimCore>;

/// Measures one call that moves `bytes` bytes, if it moves any.
///
/// # Errors
/// The account of the run if it did not come to its end.
pub fn measure(call: &'static str, bytes: usize) -> Result<Cost, Box<Report>> {
    let empty = cycles(&marks("nothing", 0)?);
    let marks = marks(call, bytes)?;
    let [begin, end] = [&marks[0].counters, &marks[1].counters];
    Ok(Cost {
        call,
        bytes,
        remote_reads: end.loads_remote - begin.loads_remote,
        remote_writes: end.stores_remote + end.lines_remote
            - begin.stores_remote
            - begin.lines_remote,
        local_accesses: end.loads_local + end.stores_local + end.lines_local
            - begin.loads_local
            - begin.stores_local
            - begin.lines_local,
        locks: end.locks - begin.locks,
        atomics: end.atomics - begin.atomics,
        misses: end.misses - begin.misses,
        cycles: cycles(&marks) - empty,
    })
}

fn cycles([begin, end]: &[Marked; 2]) -> u64 {
    end.cycles - begin.cycles
}

/// Runs the call, and gives the marks round its last time.
fn marks(call: &'static str, bytes: usize) -> Result<[Marked; 2], Box<Report>> {
    let config = Config {
        cores: 2,
        memory_size: 64 << 10,
        mesh: Some(MESH),
        schedule: Schedule::Timed,
        oracles: Oracles::ALL,
        max_steps: u64::MAX,
        ..Config::default()
    };
    let mut report = Sim::new(config).run(|core| match call.split_once('.') {
        Some(("locked", part)) => atomic::run(
            &core,
            Mapped::start(core.clone(), Session::FIRST)?,
            part,
            bytes,
        ),
        Some(("native", part)) => {
            let link = MappedNative::start(core.clone(), Session::FIRST)?;
            atomic::run(&core, link, part, bytes)
        }
        _ => program(&core, call, bytes),
    });
    if !report.is_done() {
        return Err(Box::new(report));
    }
    let last = report.marks.len() - 2;
    let mut marks = report.marks.split_off(last).into_iter();
    let mut next = || marks.next().expect("two are left");
    Ok([next(), next()])
}

fn program(core: &SimCore, call: &'static str, bytes: usize) -> Result<(), Failure> {
    let link = Mapped::start(core.clone(), Session::FIRST)?;
    let mut arena = [0; 512];
    let world = World::start(link, &mut arena, WorldConfig::default())?;
    let stripes = if call.ends_with("_layout") { 2 } else { 1 };
    let mut window = world.allocate::<u64>(stripes * ELEMENTS)?;
    if call.starts_with("counter.") {
        window.set_num_notify(1)?;
    }
    let stage = Stage {
        core,
        world: &world,
        window: &window,
        data: vec![7; stripes * bytes / ELEMENT],
    };
    match call.split_once('.') {
        Some(("pscw", part)) => match part.split_once('.') {
            Some(("slots", part)) => stage.pscw::<EpochSlots<'_>>((), part),
            Some(("vector", part)) => stage.pscw::<MatchVector<'_>>((), part),
            Some(("list", part)) => stage.pscw::<MatchingList<'_>>(1, part),
            _ => Err(Failure::Data),
        },
        Some(("rma", part)) => stage.repeat(|| stage.rma(part)),
        Some(("notify", part)) => stage.repeat(|| stage.notify(part)),
        Some(("counter", part)) => stage.repeat(|| stage.counter(part)),
        Some(("event", part)) => stage.event(part),
        Some(("window", part)) => stage.window(part),
        Some(("dynamic", part)) => stage.dynamic(part),
        Some(("peer", part)) => stage.peer(part),
        Some(("local", part)) => stage.repeat(|| stage.local(part)),
        Some(("lock", part)) => stage.repeat(|| stage.lock(part)),
        Some(("fence", part)) => stage.repeat(|| stage.fence(part)),
        Some(("flush", part)) => stage.repeat(|| stage.flush(part)),
        Some(("collective", part)) => stage.repeat(|| stage.collective(part)),
        _ => stage.repeat(|| {
            stage.mark(true, || ());
            Ok(())
        }),
    }
}

/// What a rank has to measure with.
struct Stage<'a, 'w> {
    core: &'a SimCore,
    world: &'w World<'w, Chip>,
    window: &'a Window<'w, u64, Chip>,
    /// What calls move.
    data: Vec<u64>,
}

impl Stage<'_, '_> {
    fn measures(&self) -> bool {
        self.world.rank() == OWN
    }

    /// Prepares and makes a call several times. One call in 16 works for other ranks: none that is
    /// measured does, since a probe begins to count anew.
    fn repeat(&self, call: impl Fn() -> Result<(), Failure>) -> Result<(), Failure> {
        for _ in 0..CALLS {
            self.world.barrier()?;
            self.window.probe(Source::Any, TagFilter::Any)?;
            call()?;
        }
        Ok(())
    }

    /// Makes a call between two marks, if `part` is what is measured.
    fn mark<T>(&self, is_measured: bool, call: impl FnOnce() -> T) -> T {
        if !(is_measured && self.measures()) {
            return call();
        }
        self.core.mark(BEGIN);
        let done = call();
        self.core.mark(END);
        done
    }

    fn collective(&self, part: &str) -> Result<(), Failure> {
        match part {
            "barrier" => self.mark(true, || self.world.barrier())?,
            "allgather" => {
                let mut all = [0_u64; 2];
                self.mark(true, || self.world.allgather(7_u64, &mut all))?;
            }
            "broadcast" => {
                self.mark(true, || self.world.broadcast(OWN, &mut [7_u64]))?;
            }
            "reduce" => {
                self.mark(true, || {
                    self.world.reduce(OWN, &mut [7_u64], u64::wrapping_add)
                })?;
            }
            "allreduce" => {
                self.mark(true, || {
                    self.world.allreduce(&mut [7_u64], u64::wrapping_add)
                })?;
            }
            "alltoall" => {
                let mut all = [0_u64; 2];
                self.mark(true, || self.world.alltoall(&[7, 8], &mut all))?;
            }
            "alltoall_uneven" => {
                let (block, [mut first, mut second]) = ([7_u64; 2], [[0; 2]; 2]);
                let (from, mut into) = ([&block[..]; 2], [&mut first[..], &mut second]);
                self.mark(true, || self.world.alltoall_uneven(&from, &mut into))?;
            }
            "gather" => {
                let mut all = [0_u64; 2];
                self.mark(true, || self.world.gather(OWN, &[7], &mut all))?;
            }
            "scatter" => {
                let mut own = [0_u64];
                self.mark(true, || self.world.scatter(OWN, &[7, 8], &mut own))?;
            }
            "reduce_scatter" => {
                let mut sum = [0_u64];
                let add = u64::wrapping_add;
                self.mark(true, || self.world.reduce_scatter(&[7, 8], &mut sum, add))?;
            }
            "scan" => {
                self.mark(true, || self.world.scan(&mut [7_u64], u64::wrapping_add))?;
            }
            "exscan" => {
                self.mark(true, || self.world.exscan(&mut [7_u64], u64::wrapping_add))?;
            }
            _ => return Err(Failure::Data),
        }
        Ok(())
    }
}
