//! How long a delay takes, by clocks of several rates. The conformance cases turn the feature on.
#![cfg(feature = "embedded-hal")]

use std::cell::Cell;

use embedded_hal::delay::DelayNs as _;
use flagpost_hal::{Clock, Delay};

/// Each look takes `step` cycles.
struct Steps {
    hertz: u64,
    step: u64,
    now: Cell<u64>,
}

impl Clock for Steps {
    fn cycles(&self) -> u64 {
        self.now.replace(self.now.get() + self.step)
    }

    fn hertz(&self) -> u64 {
        self.hertz
    }
}

/// The cycles from the first look at the clock to the last.
fn taken(hertz: u64, step: u64, delay: impl FnOnce(&mut Delay<'_, Steps>)) -> u64 {
    let now = Cell::new(7);
    let clock = Steps { hertz, step, now };
    delay(&mut Delay::new(&clock));
    clock.now.get() - step - 7
}

#[test]
fn a_delay_is_never_shorter_and_at_most_two_cycles_longer() {
    // A whole cycle more: the first one may have been nearly over.
    assert_eq!(taken(1_000_000, 1, |delay| delay.delay_us(10)), 11);
    assert_eq!(taken(1_000_000, 1, |delay| delay.delay_ns(1)), 2);
    assert_eq!(taken(1_000_000, 1, |delay| delay.delay_ns(1000)), 2);
    assert_eq!(taken(1_000_000, 1, |delay| delay.delay_ns(1001)), 3);
    assert_eq!(taken(2_500_000_000, 1, |delay| delay.delay_ns(3)), 9);
    assert_eq!(taken(1_000_000, 1, |delay| delay.delay_ns(0)), 1);
    // The longest of one call, by fast clocks: no product is too large.
    let (longest, fast) = (u64::from(u32::MAX), 999_999_999);
    let expected = (longest * fast).div_ceil(1_000_000_000);
    let once = |hertz| taken(hertz, 1 << 20, |delay| delay.delay_ns(u32::MAX));
    assert_eq!(once(fast), ((expected >> 20) + 1) << 20);
    let expected = 9 * longest + expected;
    assert_eq!(once(9_999_999_999), ((expected >> 20) + 1) << 20);
}
