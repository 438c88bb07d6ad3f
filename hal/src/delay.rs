//! A machine's clock for drivers of devices: the delay of `embedded-hal`.

use embedded_hal::delay::DelayNs;

use crate::Clock;

const NANOSECONDS: u64 = 1_000_000_000;

/// Waits by a [`Clock`], such as a machine, for drivers that take a [`DelayNs`]. The feature
/// `embedded-hal` has it.
///
/// It holds the processor: for the times of a device. A program that waits for another rank calls
/// the kernel, whose waits give the processor away.
///
/// ```
/// use embedded_hal::delay::DelayNs;
/// use flagpost_hal::{Clock, Delay};
///
/// /// A display that needs 40 microseconds between two bytes.
/// fn clear(mut delay: impl DelayNs) {
///     // Here a byte goes to the display.
///     delay.delay_us(40);
/// }
///
/// fn start(machine: &impl Clock) {
///     clear(Delay::new(machine));
/// }
/// ```
#[derive(Copy, Clone, Debug)]
pub struct Delay<'c, C: ?Sized>(&'c C);

impl<'c, C: Clock + ?Sized> Delay<'c, C> {
    /// Delays by `clock`.
    pub const fn new(clock: &'c C) -> Self {
        Self(clock)
    }
}

impl<C: Clock + ?Sized> DelayNs for Delay<'_, C> {
    /// At least `ns` nanoseconds, and up to two cycles of the clock and a look at it more.
    fn delay_ns(&mut self, ns: u32) {
        let (begin, hertz, ns) = (self.0.cycles(), self.0.hertz(), u64::from(ns));
        // In two parts, neither of which is too large for 64 bits.
        let part = (hertz % NANOSECONDS * ns).div_ceil(NANOSECONDS);
        let cycles = (hertz / NANOSECONDS)
            .saturating_mul(ns)
            .saturating_add(part);
        // The first cycle may have been nearly over.
        while self.0.cycles().wrapping_sub(begin) <= cycles {
            core::hint::spin_loop();
        }
    }
}
