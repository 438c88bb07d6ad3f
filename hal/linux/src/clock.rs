//! The cycle clock: the time-stamp counter where it runs evenly, else the system's monotonic clock
//! in nanoseconds.
//!
//! Counters of different cores agree closely enough where the kernel uses them as its own clock;
//! but a process may move between cores, so a clock also remembers the last time it told, and never
//! goes back.

use std::cell::Cell;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// How long the counter is compared with the system's clock, once per process.
const CALIBRATION: Duration = Duration::from_millis(2);

/// A clock of one rank.
#[derive(Debug)]
pub(crate) struct Clock {
    /// Ticks per second of the counter, if it is used.
    counter: Option<u64>,
    last: Cell<u64>,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self {
            counter: counter_rate(),
            last: Cell::new(0),
        }
    }

    /// Ticks since some moment.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        let now = match self.counter {
            Some(_) => counter(),
            None => nanoseconds(),
        };
        let now = now.max(self.last.get());
        self.last.set(now);
        now
    }

    /// Ticks per second.
    pub(crate) fn hertz(&self) -> u64 {
        self.counter.unwrap_or(1_000_000_000)
    }
}

fn nanoseconds() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    (time.tv_sec as u64).wrapping_mul(1_000_000_000) + time.tv_nsec as u64
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn counter() -> u64 {
    // SAFETY: reads a counter. Every x86_64 processor has it; where the system forbids it, the
    // process is stopped.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn counter() -> u64 {
    nanoseconds()
}

/// The counter's rate, if it ticks evenly whatever the core does (the processor says so).
fn counter_rate() -> Option<u64> {
    static RATE: OnceLock<Option<u64>> = OnceLock::new();
    *RATE.get_or_init(|| is_invariant().then(measure).filter(|rate| *rate > 0))
}

#[cfg(target_arch = "x86_64")]
fn is_invariant() -> bool {
    use std::arch::x86_64::__cpuid;

    const POWER: u32 = 0x8000_0007;
    const INVARIANT: u32 = 1 << 8;
    __cpuid(0x8000_0000).eax >= POWER && __cpuid(POWER).edx & INVARIANT != 0
}

#[cfg(not(target_arch = "x86_64"))]
fn is_invariant() -> bool {
    false
}

/// Both clocks at one moment: of several attempts the one with the fewest ticks between two looks
/// at the counter. A process that loses its processor between the looks would otherwise take the
/// rate for another one, and with it all budgets.
fn both(counter: impl Fn() -> u64) -> (Instant, u64) {
    const ATTEMPTS: u32 = 10;
    let attempt = || {
        let (before, moment, after) = (counter(), Instant::now(), counter());
        (after.wrapping_sub(before), moment, before)
    };
    let first = attempt();
    let others = (1..ATTEMPTS).map(|_| attempt());
    let (_, moment, ticks) = others.fold(
        first,
        |best, next| if next.0 < best.0 { next } else { best },
    );
    (moment, ticks)
}

fn measure() -> u64 {
    let (start, from) = both(counter);
    while start.elapsed() < CALIBRATION {
        std::hint::spin_loop();
    }
    let (end, to) = both(counter);
    let ticks = u128::from(to.wrapping_sub(from));
    let nanoseconds = end.duration_since(start).as_nanos().max(1);
    u64::try_from(ticks * 1_000_000_000 / nanoseconds).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ticks per nanosecond agree with the system's clock, however often this thread loses its
    /// processor.
    #[test]
    fn a_clock_keeps_time_and_never_goes_back() {
        let clock = Clock::new();
        let (start, from) = both(|| clock.now());
        let mut last = from;
        while start.elapsed() < Duration::from_millis(20) {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
        let (end, to) = both(|| clock.now());
        let passed = end.duration_since(start).as_secs_f64();
        let told = (to - from) as f64 / clock.hertz() as f64;
        assert!((0.9..1.1).contains(&(told / passed)), "{told} {passed}");
        clock.last.set(u64::MAX - 1);
        assert_eq!(clock.now(), u64::MAX - 1);
    }

    /// A look at the counter that took long, because the thread was not running, is not the one
    /// that counts.
    #[test]
    fn a_pair_of_looks_that_were_interrupted_is_not_used() {
        let looks = Cell::new(0_u64);
        // The first attempt's looks are far apart, the others' are 1 apart.
        let counter = || {
            let look = looks.replace(looks.get() + 1);
            if look == 0 { 0 } else { 1_000_000 + look }
        };
        let (_, ticks) = both(counter);
        assert_eq!(ticks, 1_000_002);
    }
}
