//! A machine that stands still says why, and so does a program that fails.
//!
//! Each hart notes where its program has called Flagpost last, and since when it waits in that
//! call. A call that waits for long logs once what it waits for, and where. The time is counted in
//! cycles, which are instructions of all harts: the same run says the same.

use core::cell::Cell;
use core::fmt;
use core::panic::Location;

use crate::hart::Hart;
use crate::standing;

/// Cycles per hart after which a wait is long: on 8 harts all of the longest case takes less.
const LONG: u64 = 50_000_000;

/// In [`Silence::since`]: it does not wait, or has said so.
const NOT: u64 = 0;
const SAID: u64 = u64::MAX;

/// What is known of a hart's last call.
pub(crate) struct Silence {
    called: Cell<Option<&'static Location<'static>>>,
    /// When it has begun to wait.
    since: Cell<u64>,
}

impl Silence {
    pub(crate) const fn new() -> Self {
        Self {
            called: Cell::new(None),
            since: Cell::new(NOT),
        }
    }

    /// The program calls.
    #[inline(always)]
    pub(crate) fn called(&self, place: &'static Location<'static>) {
        self.called.set(Some(place));
        self.since.set(NOT);
    }

    /// Where it has called last.
    pub(crate) fn last_call(&self) -> Option<&'static Location<'static>> {
        self.called.get()
    }

    /// The call waits for `what`.
    #[inline]
    pub(crate) fn waits(&self, hart: &Hart, what: fmt::Arguments<'_>) {
        let long = LONG * u64::from(hart.cores());
        match self.since.get() {
            NOT => self.since.set(hart.cycles().max(1)),
            SAID => standing::waits(hart, what, self.called.get(), long),
            since if hart.cycles().wrapping_sub(since) < long => {}
            _ => self.say(what),
        }
    }

    #[cold]
    fn say(&self, what: fmt::Arguments<'_>) {
        self.since.set(SAID);
        // Each record bears the core's number.
        defmt::warn!("{}", defmt::Display2Format(&what));
    }
}
