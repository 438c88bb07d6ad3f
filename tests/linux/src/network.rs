//! The cases over a network: each rank has its own memory, and reaches the others' by libfabric.
//!
//! The ranks use one network for all cases. Between two cases each waits until all that any of them
//! has begun is done, and fills its memory with garbage.

use std::process::ExitCode;
use std::time::Instant;

use flagpost_fabric::{Apart, Network};
use flagpost_hal::fabric::Fabric as _;
use flagpost_linux::fabric;
use flagpost_network::Networked;
use flagpost_tests::{Args, Case, Context, Platform, Refusal, Ring, Session, link_cases};

use crate::limit::Limit;
use crate::rank::{Plan, Tally, mix, select, skip, tell, verdict};

/// A network, as the cases see it.
struct OverFabric;

impl Platform for OverFabric {
    type Machine = Network;
    type Link = Networked<Network>;
    const PROGRAMS: bool = true;

    fn link(
        network: &Network,
        _session: Session,
        ring: Option<Ring>,
    ) -> Result<Self::Link, Refusal> {
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
    network.write(0, &line.repeat(network.memory_size() / line.len()));
    let mut arena = vec![garbage; Context::<OverFabric>::arena_words(network.cores())];
    network.meet()?;
    let start = Instant::now();
    let result = (case.run)(&mut Context {
        machine: network.clone(),
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
