//! A queue of work: ranks take numbers from a counter, as they come, until none are left; the fast
//! ones take more.
//!
//! ```sh
//! cargo build --release -p flagpost-linux --bins --examples
//! target/release/flagpost-run -n 4 target/release/examples/workqueue
//! ```
//!
//! Over a network (`--link fabric`) add `--helper 50`: rank 0 has the counter and computes itself,
//! and without a helper the others wait for its next call.
use std::process::ExitCode;

use flagpost::prelude::*;

/// Pieces of work,
const PIECES: u32 = 200;
/// and how many numbers each has.
const NUMBERS: u32 = 1000;
/// Primes below their product.
const PRIMES: u32 = 17_984;

/// Elements of rank 0's piece.
const NEXT: usize = 0;
const FOUND: usize = 1;

fn workqueue<L: Link>(world: &World<'_, L>) -> Result<(), Error> {
    const OWNER: Rank = Rank::new(0);
    let window = world.allocate::<u32>(2)?;
    let queue = window.lock_shared(OWNER)?;
    let mut taken = 0;
    loop {
        let piece = queue.fetch_and_op(OWNER, NEXT, 1, Operation::SUM)?;
        if piece >= PIECES {
            break;
        }
        let numbers = piece * NUMBERS..(piece + 1) * NUMBERS;
        let primes = numbers.filter(|number| is_prime(*number)).count() as u32;
        queue.accumulate(OWNER, FOUND, &[primes], Operation::SUM)?;
        taken += 1;
    }
    queue.unlock()?;
    world.barrier()?;
    if world.rank() == OWNER {
        let queue = window.lock_exclusive(OWNER)?;
        let mut found = [0];
        queue.get(OWNER, FOUND, &mut found)?;
        queue.unlock()?;
        assert_eq!(found[0], PRIMES);
        println!("{} primes below {}", found[0], PIECES * NUMBERS);
    }
    let mut all = [taken];
    world.allreduce(&mut all, |a, b| a + b)?;
    assert_eq!(all[0], PIECES, "each piece was taken once");
    println!("rank {} did {taken} of {PIECES} pieces", world.rank());
    Ok(())
}

fn is_prime(number: u32) -> bool {
    let mut divisors = (2..).take_while(|divisor| divisor * divisor <= number);
    number >= 2 && divisors.all(|divisor| !number.is_multiple_of(divisor))
}

fn main() -> ExitCode {
    flagpost_linux::run_in_mode!(workqueue)
}
