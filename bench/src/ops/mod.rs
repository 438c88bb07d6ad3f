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
    EpochSlots, MatchVector, MatchingList, Rank, Session, Source, TagFilter, Window, World,
};
use flagpost_mapped::{Mapped, MappedNative};
use flagpost_sim::{Config, Counters, Marked, Mesh, Report, SimCore};

use crate::micro::Row;
use crate::{Chip, Failure, in_world, run, timed};

/// Sizes of calls that move data, in bytes.
pub const SIZES: [usize; 5] = [8, 32, 64, 256, 4096];

/// All calls, in the order in which they are printed: their sizes, the group, the names in it.
const GROUPS: [(&[usize], &str, &str); 24] = [
    (
        &SIZES,
        "rma",
        "put get accumulate get_accumulate \
         put_request get_request accumulate_request get_accumulate_request \
         put_layout get_layout accumulate_layout get_accumulate_layout",
    ),
    (
        &SIZES,
        "dynamic",
        "put put_told get get_told get_unkept get_unkept_told accumulate get_accumulate \
         put_request get_request accumulate_request get_accumulate_request \
         put_layout get_layout accumulate_layout get_accumulate_layout read write",
    ),
    (&SIZES, "local", "copy_out copy_in"),
    (
        &SIZES,
        "notify",
        "put_notify put_request get_notify get_request accumulate_request get_accumulate_request",
    ),
    (&SIZES, "counter", "put_notify by_hand"),
    (&ONE, "rma", "fetch_and_op compare_and_swap test wait_any"),
    (&ONE, "dynamic", "fetch_and_op compare_and_swap"),
    (&ONE, "local", "get set"),
    (
        &ONE,
        "notify",
        "fetch_and_op_request compare_and_swap_request",
    ),
    (&ONE, "counter", "put_signal"),
    (&ONE, "event", "put"),
    (&ONE, "peer", "set get"),
    (&BOTH, "locked", "accumulate fetch_and_op compare_and_swap"),
    (&BOTH, "native", "accumulate fetch_and_op compare_and_swap"),
    (
        &NONE,
        "notify",
        "notify start cancel test wait wait_any probe discard",
    ),
    (
        &NONE,
        "counter",
        "value fetch set reset test cancel wait_until",
    ),
    (&NONE, "event", "make post query wait sync free"),
    (
        &NONE,
        "pscw",
        "slots.post slots.post_range slots.start slots.has_posted slots.await_posts \
         slots.complete slots.wait slots.test \
         vector.post vector.start vector.has_posted vector.await_posts \
         vector.complete vector.wait vector.test \
         list.post list.start list.has_posted list.await_posts list.complete list.wait list.test",
    ),
    (
        &NONE,
        "fence",
        "open fence no_put no_store no_precede no_succeed end",
    ),
    (
        &NONE,
        "lock",
        "lock_shared lock_exclusive lock_further lock_queued lock_all \
         unlock_shared unlock_exclusive unlock_further unlock_queued unlock_all \
         cancel_shared cancel_exclusive cancel_queued cancel_all",
    ),
    (&NONE, "flush", "flush flush_all window sync"),
    (
        &NONE,
        "collective",
        "barrier allgather broadcast reduce allreduce alltoall alltoall_uneven \
         gather scatter reduce_scatter scan exscan",
    ),
    (
        &NONE,
        "window",
        "allocate allocate_vector allocate_list create dynamic \
         set_num_notify free reserve release",
    ),
    (&NONE, "dynamic", "attach detach detach_told free"),
];

/// Sizes of calls that move one element, of atomic ones, which elements of 4 bytes have, too, and
/// of those that move none.
const ONE: [usize; 1] = [ELEMENT];
const BOTH: [usize; 2] = [4, ELEMENT];
const NONE: [usize; 1] = [0];

/// All calls, each with its sizes.
pub fn all() -> impl Iterator<Item = (String, usize)> {
    let calls = |&(sizes, group, names): &(&'static [usize], &'static str, &'static str)| {
        let named = names
            .split_whitespace()
            .map(move |name| format!("{group}.{name}"));
        named.flat_map(move |call| sizes.iter().map(move |&bytes| (call.clone(), bytes)))
    };
    GROUPS.iter().flat_map(calls)
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

/// Measures one call that moves `bytes` bytes, if it moves any: the figures, in their order.
///
/// # Errors
/// The account of the run if it did not come to its end.
pub fn measure(call: &str, bytes: usize) -> Result<Row, Box<Report>> {
    let empty = cycles(&marks("nothing", 0)?);
    let marks = marks(call, bytes)?;
    let less = |count: fn(&Counters) -> u64| count(&marks[1].counters) - count(&marks[0].counters);
    Ok(vec![
        ("remote_reads", less(|c| c.loads_remote)),
        ("remote_writes", less(|c| c.stores_remote + c.lines_remote)),
        (
            "local_accesses",
            less(|c| c.loads_local + c.stores_local + c.lines_local),
        ),
        ("locks", less(|c| c.locks)),
        ("atomics", less(|c| c.atomics)),
        ("misses", less(|c| c.misses)),
        ("cycles", cycles(&marks) - empty),
    ])
}

fn cycles([begin, end]: &[Marked; 2]) -> u64 {
    end.cycles - begin.cycles
}

/// Runs the call, and gives the marks round its last time.
fn marks(call: &str, bytes: usize) -> Result<[Marked; 2], Box<Report>> {
    let config = Config {
        cores: 2,
        memory_size: 64 << 10,
        mesh: Some(MESH),
        ..timed()
    };
    let mut report = run(config, |core| match call.split_once('.') {
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
        _ => in_world(core.clone(), |world| program(&core, world, call, bytes)),
    })?;
    let last = report.marks.len() - 2;
    let mut marks = report.marks.split_off(last).into_iter();
    let mut next = || marks.next().expect("two are left");
    Ok([next(), next()])
}

fn program<'w>(
    core: &SimCore,
    world: &'w World<'w, Chip>,
    call: &str,
    bytes: usize,
) -> Result<(), Failure> {
    let stripes = if call.ends_with("_layout") { 2 } else { 1 };
    let mut window = world.allocate::<u64>(stripes * ELEMENTS)?;
    if call.starts_with("counter.") {
        window.set_num_notify(1)?;
    }
    let stage = Stage {
        core,
        world,
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
        let (world, add) = (self.world, u64::wrapping_add);
        let (mut one, mut all) = ([7_u64], [0_u64; 2]);
        let (block, [mut first, mut second]) = ([7_u64; 2], [[0; 2]; 2]);
        let (from, mut into) = ([&block[..]; 2], [&mut first[..], &mut second]);
        self.mark(true, || {
            match part {
                "barrier" => world.barrier()?,
                "allgather" => world.allgather(7_u64, &mut all)?,
                "broadcast" => world.broadcast(OWN, &mut one)?,
                "reduce" => world.reduce(OWN, &mut one, add)?,
                "allreduce" => world.allreduce(&mut one, add)?,
                "alltoall" => world.alltoall(&[7, 8], &mut all)?,
                "alltoall_uneven" => world.alltoall_uneven(&from, &mut into)?,
                "gather" => world.gather(OWN, &[7], &mut all)?,
                "scatter" => world.scatter(OWN, &[7, 8], &mut one)?,
                "reduce_scatter" => world.reduce_scatter(&[7, 8], &mut one, add)?,
                "scan" => world.scan(&mut one, add)?,
                "exscan" => world.exscan(&mut one, add)?,
                _ => return Err(Failure::Data),
            }
            Ok(())
        })
    }
}
