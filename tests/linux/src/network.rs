//! The cases over a network: each rank has its own memory, and reaches the others' by libfabric.
//!
//! The budgets that cases give to calls are meant for links that answer within a microsecond; a
//! round trip over TCP takes longer than 20 of them. So the cases' clock is slower than the host's,
//! see [`Slow`].
//!
//! The ranks use one network for all cases. Between two cases each waits until all that any of them
//! has begun is done, and fills its memory with garbage.

use std::process::ExitCode;
use std::time::Instant;

use flagpost_fabric::{Apart, Network};
use flagpost_hal::CoreId;
use flagpost_hal::fabric::{Event, Fabric, SendQueueFull, Watched, Work};
use flagpost_linux::fabric;
use flagpost_network::Networked;
use flagpost_tests::{Args, Case, Context, Platform, Refusal, Ring, Session, link_cases};

use crate::limit::Limit;
use crate::rank::{Plan, Tally, mix, select, skip, tell, verdict};

/// How many times slower the cases' clock is.
const SLOWER: u64 = 500;

/// A network whose clock is slow: it has more ticks per second than there are.
#[derive(Clone)]
struct Slow(Network);

impl Fabric for Slow {
    fn core(&self) -> CoreId {
        self.0.core()
    }

    fn cores(&self) -> u16 {
        self.0.cores()
    }

    fn memory_size(&self) -> u32 {
        self.0.memory_size()
    }

    fn orders_puts(&self) -> bool {
        self.0.orders_puts()
    }

    fn read(&self, at: u32, into: &mut [u8]) {
        self.0.read(at, into);
    }

    fn write(&self, at: u32, from: &[u8]) {
        self.0.write(at, from);
    }

    fn post(&self, id: u32, to: CoreId, work: Work<'_>) -> Result<(), SendQueueFull> {
        self.0.post(id, to, work)
    }

    fn poll(&self) -> Option<Event> {
        self.0.poll()
    }

    fn lost(&self) -> Option<CoreId> {
        self.0.lost()
    }

    fn has_left(&self, core: Option<CoreId>) -> bool {
        self.0.has_left(core)
    }

    fn relax(&self, watched: &[Watched]) {
        self.0.relax(watched);
    }

    fn pause(&self) {
        self.0.pause();
    }

    fn now(&self) -> u64 {
        self.0.now()
    }

    fn ticks_per_second(&self) -> u64 {
        SLOWER * self.0.ticks_per_second()
    }
}

/// A network, as the cases see it.
struct OverFabric;

impl Platform for OverFabric {
    type Machine = Slow;
    type Link = Networked<Slow>;

    fn link(network: &Slow, _session: Session, ring: Option<Ring>) -> Result<Self::Link, Refusal> {
        match ring {
            Some(ring) => Networked::start_with_queue(network.clone(), ring.entries()),
            None => Networked::start(network.clone()),
        }
    }
}

/// Goes through the plan.
pub(crate) fn go(plan: &Plan<'_>) -> ExitCode {
    let Some((admitted, skipped)) = select(plan, link_cases::<OverFabric>().collect()) else {
        return ExitCode::SUCCESS;
    };
    let joined = match fabric::join() {
        Ok(joined) => joined,
        Err(why) => {
            println!("        {why}");
            return ExitCode::from(2);
        }
    };
    let network = &joined.network;
    let (rank, mut tally) = (network.core().get(), Tally::new(skipped.len()));
    if rank == 0 {
        println!("ok      over {}", network.abilities());
        skipped.iter().for_each(|case| skip(case));
    }
    let limit = Limit::start(rank);
    let mut session = Session::FIRST;
    for case in admitted {
        limit.begin(case.name);
        match one(network, case, session, &limit) {
            Ok(passed) => tally.add(passed),
            Err(why) => {
                let failure = network.failure().unwrap_or_default();
                println!("        {}: rank {rank}: {why} {failure}", case.name);
                return ExitCode::FAILURE;
            }
        }
        session = session.next();
    }
    if rank == 0 {
        println!("{tally}");
    }
    match joined.leave() {
        Ok(()) if tally.is_well() => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// Runs one case. True on all ranks, if it passed on all.
fn one(
    network: &Network,
    case: &Case<OverFabric>,
    session: Session,
    limit: &Limit,
) -> Result<bool, Apart> {
    let rank = network.core().get();
    network.clear()?;
    let garbage = mix([session.get(), rank.into(), !0]);
    let line: Vec<u8> = (0..32)
        .map(|at| garbage.rotate_left(at) as u8 | 1)
        .collect();
    network.write(0, &line.repeat(network.memory_size() as usize / line.len()));
    let mut arena = vec![garbage; Context::<OverFabric>::arena_words(network.cores())];
    network.meet()?;
    let start = Instant::now();
    let result = (case.run)(&mut Context {
        machine: Slow(network.clone()),
        session,
        args: Args::default(),
        arena: &mut arena,
        report: &mut |_, _| (),
    });
    if let Err(why) = &result {
        tell(case, rank, why);
    }
    limit.end(case.name, result.is_ok());
    let results = network.gather(&[u8::from(result.is_ok())])?;
    let passed = results.iter().all(|result| *result == [1]);
    if rank == 0 {
        verdict(case, passed, start.elapsed());
    }
    Ok(passed)
}
