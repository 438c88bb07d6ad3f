//! How long a test waits until a hang is one.

use std::num::NonZero;
use std::thread::available_parallelism;
use std::time::Duration;

/// A limit for what takes much less than `at_rest` on a machine at rest: more, the more processes
/// there are for each processor. So a hang is told soon, and a busy machine has its time.
pub fn patience(at_rest: Duration) -> Duration {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: f64 = load
        .split(' ')
        .next()
        .map_or(0.0, |load| load.parse().unwrap_or(0.0));
    let processors = available_parallelism().map_or(1, NonZero::get);
    at_rest.mul_f64(1.0 + load / processors as f64)
}
