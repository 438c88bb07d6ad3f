//! Going on after a loss: ranks count primes together, block by block. If one of them is lost, the
//! others make a smaller world, and count on from the last block that one of them knows.
//!
//! ```sh
//! cargo build --release -p flagpost-linux --bins --examples
//! target/release/flagpost-run -n 3 target/release/examples/going-on
//! ```
//!
//! Kill a rank meanwhile; `cargo xtask kills --example going-on --ranks 3` does so.
use std::process::ExitCode;

use flagpost::prelude::*;
use flagpost::{Config, Room};

/// Blocks of numbers,
const BLOCKS: u32 = 250;
/// and how many each has.
const NUMBERS: u32 = 1200;
/// Primes below their product.
const PRIMES: u32 = 25_997;

/// What a rank knows: so many blocks are counted, and have so many primes.
#[derive(Clone, Copy, Default)]
struct Known {
    blocks: u32,
    primes: u32,
}

fn going_on<L: Link>(world: &World<'_, L>) -> Result<(), Error> {
    // Set aside while all ranks are there.
    let room = Room {
        bytes: 8192,
        windows: 1,
    };
    let spare = world.spare(room)?;
    let mut known = Known::default();
    let size = match count(world, &mut known) {
        Err(Error::PeerLost(_)) => {
            let mut words = [0; Config::DEFAULT.words(64, 1)];
            let link = spare.survivors()?.link().expect("it is taken once");
            World::run(link, &mut words, Config::default(), |smaller| {
                count(smaller, &mut known)
            })?
        }
        size => size?,
    };
    println!(
        "rank {}: {} primes, in a world of {size}",
        world.rank(),
        known.primes
    );
    Ok(())
}

/// Counts all blocks that are left; each rank knows the sum after each block. How many ranks did
/// so.
fn count<L: Link>(world: &World<'_, L>, known: &mut Known) -> Result<u16, Error> {
    const FIRST: Rank = Rank::new(0);
    let (me, size) = (world.rank(), world.size());
    let window = world.allocate::<u32>(usize::from(size))?;
    // One may be a block ahead.
    let mut all = [u64::from(known.blocks) << 32 | u64::from(known.primes)];
    world.allreduce(&mut all, u64::max)?;
    let [last] = all;
    *known = Known {
        blocks: (last >> 32) as u32,
        primes: last as u32,
    };
    let mut counts = window.expect(0..usize::from(size), Tag(1))?.times(size)?;
    while known.blocks < BLOCKS {
        if me == FIRST {
            counts.start()?;
        }
        world.barrier()?;
        let numbers = known.blocks * NUMBERS..(known.blocks + 1) * NUMBERS;
        let mine = numbers.skip(me.index()).step_by(size.into());
        let primes = mine.filter(|number| is_prime(*number)).count() as u32;
        window.put_notify(FIRST, me.index(), &[primes], Tag(1))?;
        let mut sum = [0];
        if me == FIRST {
            counts.wait()?;
            for rank in 0..size.into() {
                sum[0] += window.local().get(rank)?;
            }
        }
        world.broadcast(FIRST, &mut sum)?;
        *known = Known {
            blocks: known.blocks + 1,
            primes: known.primes + sum[0],
        };
    }
    assert_eq!(known.primes, PRIMES);
    world.barrier()?; // none ends before all know it
    Ok(size)
}

fn is_prime(number: u32) -> bool {
    let mut divisors = (2..).take_while(|divisor| divisor * divisor <= number);
    number >= 2 && divisors.all(|divisor| !number.is_multiple_of(divisor))
}

fn main() -> ExitCode {
    flagpost_linux::run_in_mode!(going_on)
}
