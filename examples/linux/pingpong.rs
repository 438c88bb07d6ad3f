//! Two ranks throw a ball: notified puts, there and back.
//!
//! ```sh
//! cargo build --release -p flagpost-linux --bins --examples
//! target/release/flagpost-run -n 2 target/release/examples/pingpong
//! ```
use std::process::ExitCode;
use std::time::Instant;

use flagpost::prelude::*;

const ROUNDS: u64 = 20_000;

fn pingpong<L: Link>(world: &World<'_, L>) -> Result<(), Error> {
    let window = world.allocate::<u64>(1)?;
    let (me, size) = (world.rank(), world.size());
    // Ranks beyond the first pair only take part in what is collective.
    if me.get() < 2 && size >= 2 {
        let peer = Rank::new(1 - me.get());
        let mut ball = window.expect(0..1, Tag(1))?.from(peer)?;
        let start = Instant::now();
        for round in 0..ROUNDS {
            ball.start()?;
            if me.get() == 0 {
                window.put_notify(peer, 0, &[2 * round], Tag(1))?;
            }
            ball.wait()?;
            let found = window.local().get(0)?;
            assert_eq!(found, 2 * round + u64::from(me.get() == 0), "round {round}");
            if me.get() == 1 {
                window.put_notify(peer, 0, &[found + 1], Tag(1))?;
            }
        }
        if me.get() == 0 {
            let half = start.elapsed().as_nanos() as f64 / (2 * ROUNDS) as f64;
            println!("{ROUNDS} round trips, {half:.0} ns each way");
        }
    }
    world.barrier()
}

fn main() -> ExitCode {
    flagpost_linux::run_in_mode!(pingpong)
}
