//! A machine on which nobody can go on ends.
//!
//! A program that returns an error leaves, and calls that need its hart fail. A hart may still wait
//! for one that waits itself, and so for ever. Each hart that has waited for long notes the time at
//! each turn. Once a program has failed, and all harts that have not left have noted the time of
//! late, the hart that sees it ends the machine, and says what it waits for.

use core::fmt;
use core::panic::Location;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use flagpost_hal::CoreId;

use crate::board::MAX_HARTS;
use crate::hart::Hart;
use crate::{end, trap};

/// When each hart has last waited, of those whose wait is long; 0 for never.
static WAITED: [AtomicU64; MAX_HARTS] = [const { AtomicU64::new(0) }; MAX_HARTS];

/// This hart waits for `what`, in the call at `place`, and has for `long` cycles.
#[cold]
pub(crate) fn waits(
    hart: &Hart,
    what: fmt::Arguments<'_>,
    place: Option<&'static Location<'static>>,
    long: u64,
) {
    let now = hart.cycles();
    // ORDERING: Relaxed: nothing but the times is read, and late ones end the machine later.
    WAITED[hart.core().index()].store(now, Relaxed);
    let failed = end::failed();
    if failed == 0 {
        return;
    }
    let stands = |core: CoreId| {
        let waited = WAITED[core.index()].load(Relaxed);
        end::has_left(Some(core)) || waited != 0 && now.saturating_sub(waited) < long
    };
    if { 0..hart.cores() }.map(CoreId::new).all(stands) {
        trap::report(
            place,
            format_args!("{what}: for ever, since {failed} have failed and no other core goes on"),
        );
    }
}
