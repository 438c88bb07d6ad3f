//! Ranks that die, and that end first: what the others are told.

use flagpost::{Error, Link, Rank, Rma as _, Tag, World};

use super::needed::needed_calls_fail;
use super::{command_of, job, left_in_shared_memory, limit, lines, lost};

/// The rank that dies.
const DIES: Rank = Rank::new(1);

/// A rank's part in the tests below.
pub(super) fn rank<L: Link>(world: &World<'_, L>, part: &str) -> Result<(), Error> {
    match part {
        "barrier" => survives(world, |_| world.barrier()),
        "get" => survives(world, |target| {
            let window = world.allocate::<u32>(1)?;
            let lock = window.lock_shared(target)?;
            let gone = loop {
                if let Err(gone) = lock.get(target, 0, &mut [0]) {
                    break gone;
                }
                die(world);
            };
            std::mem::forget(lock);
            Err(gone)
        }),
        "test" => survives(world, |_| {
            let window = world.allocate::<u32>(1)?;
            let mut arrived = window.expect(0..1, Tag(0))?;
            arrived.start()?;
            while arrived.test()?.is_none() {
                die(world);
            }
            unreachable!("nobody puts")
        }),
        "leaver" => leaver(world),
        _ => panic!("no such part: {part}"),
    }
}

/// The rank that dies does so, without a chance to tell anybody.
fn die<L: Link>(world: &World<'_, L>) {
    if world.rank() == DIES {
        lost::die();
    }
}

/// Calls until a rank is lost, which is [`DIES`].
fn survives<L: Link>(
    world: &World<'_, L>,
    call: impl Fn(Rank) -> Result<(), Error>,
) -> Result<(), Error> {
    world.barrier()?;
    let gone = loop {
        if let Err(gone) = call(DIES) {
            break gone;
        }
        die(world);
    };
    assert_eq!(gone, Error::PeerLost(DIES));
    println!("rank {} has lost rank {DIES}", world.rank());
    Ok(())
}

/// One rank ends its program first. What calls of the others say that need it, although no budget
/// runs out.
fn leaver<L: Link>(world: &World<'_, L>) -> Result<(), Error> {
    let (me, gone) = (world.rank(), DIES);
    let window = world.allocate::<u32>(2)?;
    let mut last = window.expect(0..1, Tag(2))?.from(gone)?;
    last.start()?;
    let mut request = window.expect(0..1, Tag(1))?.from(gone)?;
    request.start()?;
    world.barrier()?;
    if me == gone {
        for other in [0, 2].map(Rank::new) {
            window.put_notify(other, 0, &[7], Tag(2))?;
        }
        return Ok(());
    }
    let left = Err(Error::PeerLeft(gone));
    assert_eq!(world.barrier(), left);
    // What it has sent comes before, and its memory is there.
    last.wait()?;
    assert_eq!(window.local().get(0)?, 7);
    let lock = window.lock_shared(gone)?;
    let mut found = [0; 2];
    (0..100).try_for_each(|_| lock.get(gone, 0, &mut found))?;
    lock.unlock()?;
    needed_calls_fail(world, &window, &mut request, gone)?;
    println!("rank {me} was left by rank {gone}");
    Ok(())
}

/// A rank that dies ends the others' calls: those that wait for it, those that need its memory, and
/// those that poll.
#[test]
#[ignore = "needs libfabric: cargo xtask fabric --headers"]
fn a_rank_that_dies_ends_the_calls_of_the_others() {
    for provider in ["tcp", "shm"] {
        for part in ["barrier", "get", "test"] {
            let output = job(provider, part);
            // Signal 9.
            assert_eq!(
                output.status.code(),
                Some(137),
                "{provider} {part} {output:?}"
            );
            assert_eq!(
                lines(&output, "has lost rank 1"),
                2,
                "{provider} {part} {output:?}"
            );
            assert_eq!(left_in_shared_memory(&output), [""; 0]);
        }
    }
}

#[test]
#[ignore = "needs libfabric: cargo xtask fabric --headers"]
fn waits_for_a_rank_that_has_ended_end_with_its_name() {
    for provider in ["tcp", "shm"] {
        let output = job(provider, "leaver");
        assert!(output.status.success(), "{provider} {output:?}");
        assert_eq!(lines(&output, "was left by rank 1"), 2, "{output:?}");
    }
}

#[test]
#[ignore = "needs libfabric: cargo xtask fabric --headers"]
fn all_lost_ranks_are_named() {
    let arguments = ["--link", "fabric", "--provider", "tcp"];
    lost::are_named(&limit::output(&mut command_of(
        lost::RANKS,
        &arguments,
        "lost",
    )));
}
