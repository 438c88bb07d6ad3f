//! Ranks that die, and that end first: what the others are told.

use flagpost::{Error, Link, Rank, World};

use super::waits::{calls, told};
use super::{command_of, job_with, left_in_shared_memory, limit, lines, shared, survivor};

/// The rank that dies.
const GONE: Rank = Rank::new(1);

/// What a rank does below: it polls; or it dies or leaves, and another one waits for it in the call
/// of this number.
pub(super) fn rank<L: Link>(world: &World<'_, L>, part: &str) -> Result<(), Error> {
    let me = world.rank();
    if part == "polls" {
        survivor::polls(world, || shared::die(), || (), u32::MAX)?;
        println!("rank {me} was told");
        return Ok(());
    }
    let (how, row) = part.split_once(' ').expect("a part");
    let (call, dies) = (
        calls()[row.parse::<usize>().expect("a number")],
        how == "dies",
    );
    match told(world, GONE, false, call, || ())? {
        Some(told) => {
            let error = if dies {
                Error::PeerLost(GONE)
            } else {
                Error::PeerLeft(GONE)
            };
            assert_eq!(told, Err(error), "{}", call.0);
            println!("rank {me} was told");
        }
        None if dies && me == GONE => shared::die(),
        None => {}
    }
    Ok(())
}

/// A rank that dies, or leaves, ends the others' calls: those that wait for it, those that need its
/// memory, and those that poll.
#[test]
#[ignore = "needs libfabric: cargo xtask fabric --headers"]
fn a_rank_that_is_gone_ends_the_calls_of_the_others() {
    let rows = 0..calls::<flagpost_linux::fabric::FabricLink>().len();
    for (provider, step) in [("tcp", 1), ("shm", 7)] {
        let rows = rows.clone().step_by(step);
        let parts = rows.flat_map(|row| [(3, format!("dies {row}")), (3, format!("leaves {row}"))]);
        for (ranks, part) in parts.chain([(2, "polls".to_owned())]) {
            let arguments = ["--link", "fabric", "--provider", provider];
            let ended = limit::output(&mut command_of(ranks, &arguments, &part));
            // Signal 9.
            let code = if part.starts_with("leaves") { 0 } else { 137 };
            assert_eq!(ended.codes, [code], "{provider} {part} {ended:?}");
            let told = lines(&ended, " was told");
            assert_eq!(told, 1, "{provider} {part} {ended:?}");
            assert_eq!(left_in_shared_memory(&ended), [""; 0]);
        }
    }
}

/// So does one on another host.
pub(super) fn one_dies(arguments: &[&str]) {
    let ended = job_with(arguments, "dies 0");
    assert_eq!(ended.codes, [137], "{ended:?}");
    assert_eq!(lines(&ended, " was told"), 1, "{ended:?}");
}

#[test]
#[ignore = "needs libfabric: cargo xtask fabric --headers"]
fn all_lost_ranks_are_named() {
    let arguments = ["--link", "fabric", "--provider", "tcp"];
    let ended = limit::output(&mut command_of(shared::LOSERS, &arguments, "lost"));
    shared::are_named(&ended.out);
}
