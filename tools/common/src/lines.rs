//! What hardware takes to move a line: the state of a machine on which times are real.

use std::hint::spin_loop;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::thread::yield_now;

/// Loads before a thread yields: its peer may share its processor.
const LOOKS: u32 = 1000;

/// One line there and back between threads 0 and 1, `rounds` times, from a `ball` that is 0: a load
/// until it has the value, a store of the next.
pub fn line(ball: &AtomicU64, me: usize, rounds: u64) {
    for round in 0..rounds {
        let mine = 2 * round + me as u64;
        let mut looks = 0;
        while ball.load(Acquire) != mine {
            looks += 1;
            if looks < LOOKS {
                spin_loop();
            } else {
                yield_now();
            }
        }
        ball.store(mine + 1, Release);
    }
}
