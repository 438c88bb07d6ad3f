//! Cycles, and what they are in microseconds: whole numbers only, so that every host prints the
//! same digits. And how long the host worked.

use std::fmt;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// So many cycles of a clock of so many hertz. Prints as microseconds with three decimals.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Cycles {
    /// How many.
    pub count: u64,
    /// Of how many a second.
    pub hertz: u64,
}

impl Cycles {
    /// Nanoseconds, rounded to the nearest.
    pub fn nanoseconds(self) -> u64 {
        let hertz = u128::from(self.hertz);
        ((u128::from(self.count) * 1_000_000_000 + hertz / 2) / hertz) as u64
    }
}

impl fmt::Display for Cycles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanoseconds = self.nanoseconds();
        let text = format!("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
        f.pad(&text)
    }
}

/// How much processor time this thread has had. Another program on the same processor does not
/// count; where the host does not tell, it does: then this is elapsed time.
pub fn processor_time() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    // The first number is nanoseconds on a processor.
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = told.and_then(|text| text.split_whitespace().next()?.parse().ok());
    nanoseconds.map_or_else(
        || START.get_or_init(Instant::now).elapsed(),
        Duration::from_nanos,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_print_as_microseconds() {
        let cycles = |count| Cycles {
            count,
            hertz: 533_000_000,
        };
        assert_eq!(cycles(533).to_string(), "1.000");
        assert_eq!(cycles(13_751).to_string(), "25.799");
        assert_eq!(format!("{:>8}", cycles(1)), "   0.002");
    }
}
