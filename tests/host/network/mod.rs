//! The link for networks, on a network with remote memory access that delays and reorders whatever
//! is not fenced.
//!
//! `FLAGPOST_SEEDS=n` changes how many seeds each combination of [`cases`] gets. A failure prints
//! the run's timeline and the line that replays it.

mod answers;
mod cases;
mod locks;
mod lost;
mod pieces;
mod refusals;
mod steps;
mod survivor;
mod tap;

use flagpost::{Budget, Error, Rank, Unfinished, World};
use flagpost_explore::Mock;
use flagpost_link::Waiting as _;
use flagpost_sim::{Config, Nic, Preset, SimCore, Wire, sweep};

/// There is room for one operation of a rank.
const REFUSES: Wire = Wire {
    sends: 1,
    queue: 64,
    deliveries: 192,
    ordered: false,
};

/// Runs `program` on three ranks.
pub(crate) fn runs(
    seeds: u64,
    wire: Wire,
    program: impl Fn(&World<'_, Mock>) -> Result<(), Error> + Send + Sync,
) {
    runs_with_queue(seeds, wire, 64, program);
}

/// [`runs`] with room for so many immediates of each rank.
fn runs_with_queue(
    seeds: u64,
    wire: Wire,
    entries: u32,
    program: impl Fn(&World<'_, Mock>) -> Result<(), Error> + Send + Sync,
) {
    let config = Config {
        cores: 3,
        memory_size: 16 << 10,
        network: Some(wire),
        ..Preset::Network.config()
    };
    let swept = sweep(0..seeds).case("network", config, move |core: SimCore| {
        let mut arena = [0; 256];
        let link = Mock::start_with_queue(Nic::open(core), entries)?;
        let world = World::start(link, &mut arena, Default::default())?;
        program(&world)
    });
    swept.run().assert_done();
}

/// The other two ranks.
fn peers(world: &World<'_, Mock>) -> [Rank; 2] {
    [1, 2].map(|distance| world.rank().ahead(distance, 3))
}

/// A budget that is shorter than any answer takes.
const NONE: Budget = Budget::microseconds(0);

/// Calls until it is done, and counts how often the budget of nothing ran out.
fn in_the_end<T>(
    world: &World<'_, Mock>,
    late: &mut u32,
    mut call: impl FnMut() -> Result<T, Error>,
) -> Result<T, Error> {
    loop {
        match world.within(NONE, &mut call) {
            Err(Error::Timeout(_)) => *late += 1,
            other => return other,
        }
        world.link().relax();
    }
}

/// Waits until it is done, with a budget of nothing each time.
fn by_steps<T, H>(
    world: &World<'_, Mock>,
    handle: H,
    wait: impl Fn(H) -> Result<T, Unfinished<H>>,
) -> Result<T, Error> {
    /// More calls than any answers take.
    const PATIENCE: u32 = 10_000;
    let mut rest = wait(handle);
    for _ in 0..PATIENCE {
        match rest {
            Ok(done) => {
                return Ok(done);
            }
            Err(late) => {
                assert!(matches!(late.error, Error::Timeout(_)));
                world.link().relax();
                rest = wait(late.handle);
            }
        }
    }
    panic!("it does not come to an end")
}
