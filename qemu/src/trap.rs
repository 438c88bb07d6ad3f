//! Traps and panics: one record, then the end.
//!
//! No trap is expected: interrupts are off, and nothing here is emulated. So a trap is reported
//! from a stack of its own and never returned from.

use core::fmt;
use core::panic::Location;

#[cfg(target_os = "none")]
use crate::Hart;
use crate::{Exit, boot, csr, end, status};

/// Called by `boot.s` on the trap stack, for the first trap of a hart.
// SAFETY (`no_mangle`): `boot.s` calls it by this name, and nothing else bears it.
#[unsafe(no_mangle)]
extern "C" fn _flagpost_report_trap() -> ! {
    let cause = csr::trap_cause();
    end::die();
    let what = if boot::guards(cause.value) {
        "stack overflow"
    } else {
        name(cause.code)
    };
    defmt::println!(
        "@trap core={=u16} cause={=usize} pc={=usize:#x} value={=usize:#x} case={=str} what={=str}",
        csr::core_number(),
        cause.code,
        cause.pc,
        cause.value,
        status::case(),
        what
    );
    end::finish(Exit::Fail)
}

/// What the privileged specification calls exception `code`.
fn name(code: usize) -> &'static str {
    match code {
        0 => "instruction address misaligned",
        1 => "instruction access fault",
        2 => "illegal instruction",
        3 => "breakpoint",
        4 => "load address misaligned",
        5 => "load access fault",
        6 => "store address misaligned",
        7 => "store access fault",
        8..=11 => "environment call",
        12 | 13 | 15 => "page fault",
        _ => "interrupt or reserved",
    }
}

#[cfg(target_os = "none")]
#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    report(info.location(), format_args!("{}", info.message()))
}

/// After the record of an assertion of defmt's, which does not say where it stands.
#[cfg(target_os = "none")]
#[defmt::panic_handler]
fn asserted() -> ! {
    let place = Hart::current().silence().last_call();
    report(
        place,
        format_args!("an assertion after this call; see the record before"),
    )
}

/// Ends the machine for `what`, which happens `at` a place in the program.
pub(crate) fn report(at: Option<&Location<'_>>, what: fmt::Arguments<'_>) -> ! {
    end::die();
    let (file, line) = at.map_or(("?", 0), |at| (at.file(), at.line()));
    defmt::println!(
        "@panic core={=u16} case={=str} at={=str}:{=u32} what={}",
        csr::core_number(),
        status::case(),
        file,
        line,
        defmt::Display2Format(&what)
    );
    end::finish(Exit::Fail)
}
