//! The start of both cores, and how they end: traps and panics.
#![expect(unsafe_code, reason = "names for the linker, and instructions")]

use core::cell::Cell;
use core::fmt::{Arguments, Write as _};
use core::sync::atomic::AtomicU32;

use critical_section::Mutex;
use flagpost_cortex_m::{Section, Stack, Vectors, entry};

use crate::chip::An521;
use crate::devices::{self, Register, Uart};

critical_section::set_impl!(Section<An521>);

/// 128 KiB for each core.
const STACK: usize = 32 << 10;

static STACKS: [Stack<STACK>; 2] = [const { Stack::new() }; 2];

/// For a trap: the core's own stack may be at its end.
static TRAP_STACKS: [Stack<1024>; 2] = [const { Stack::new() }; 2];

/// Core 0 finds it at the start of memory.
// SAFETY (`link_section`): a table of vectors is what the linker script expects there.
#[used]
#[unsafe(link_section = ".vectors")]
static VECTORS: Vectors = Vectors::new(&STACKS[0], first, trap);

/// Core 1 finds it by a register.
static VECTORS_1: Vectors = Vectors::new(&STACKS[1], second, trap);

entry!(first, first_main);
entry!(second, second_main);

extern "C" fn first_main() -> ! {
    STACKS[0].guard();
    devices::start();
    Register::Vectors1.store(VECTORS_1.address());
    Register::CpuWait.store(0);
    crate::run()
}

extern "C" fn second_main() -> ! {
    STACKS[1].guard();
    crate::run()
}

/// The words of core `core`'s stack that lie below all that is in use now.
pub(crate) fn free_stack(core: usize) -> &'static [AtomicU32] {
    /// The frames between here and the cases.
    const IN_USE: usize = 4096;
    let words = STACKS.get(core).map_or(&[][..], Stack::words);
    let here = 0_u32;
    let here = core::ptr::from_ref(&here).addr();
    let base = words.as_ptr().addr();
    let free = here.saturating_sub(base).saturating_sub(IN_USE) / 4;
    words.get(..free).unwrap_or_default()
}

/// What runs, for the records of traps and panics.
static CASE: Mutex<Cell<&str>> = Mutex::new(Cell::new("-"));

pub(crate) fn set_case(name: &'static str) {
    critical_section::with(|section| CASE.borrow(section).set(name));
}

/// Prints a line. The other core is kept out meanwhile.
pub(crate) fn print(line: Arguments<'_>) {
    critical_section::with(|_| {
        let _ = writeln!(Uart, "{line}"); // Never fails.
    });
}

/// All exceptions of both cores: on another stack, without a limit.
#[cfg(target_arch = "arm")]
#[unsafe(naked)]
unsafe extern "C" fn trap() -> ! {
    core::arch::naked_asm!(
        "mrs r0, msp",        // where the processor has stored the registers
        "movs r1, #0",
        "msr MSPLIM, r1",
        "movw r1, #0xf000",   // the number of the core
        "movt r1, #0x5001",
        "ldr r1, [r1]",
        "adds r1, r1, #1",
        "lsls r1, r1, #12",   // bytes of a trap stack
        "movw r2, #:lower16:{stacks}",
        "movt r2, #:upper16:{stacks}",
        "add r1, r1, r2",
        "mov sp, r1",
        "b {report}",
        stacks = sym TRAP_STACKS,
        report = sym report,
    )
}

#[cfg(not(target_arch = "arm"))]
unsafe extern "C" fn trap() -> ! {
    let _ = &TRAP_STACKS;
    report(&[0; 8])
}

/// Prints the record of a trap. `frame`: r0 to r3, r12, lr, pc, xpsr of what was interrupted.
extern "C" fn report(frame: &[u32; 8]) -> ! {
    let faults = Register::Faults.load();
    let (what, value) = match faults {
        _ if faults & 1 << 20 != 0 => ("stack overflow", 0),
        _ if faults & 0x8000 != 0 => ("bus fault", Register::BusAddress.load()),
        _ if faults & 0x80 != 0 => ("memory fault", Register::MemoryAddress.load()),
        _ if faults & 0xff00 != 0 => ("bus fault", 0),
        _ if faults & 0xff != 0 => ("memory fault", 0),
        _ if faults != 0 => ("usage fault", 0),
        _ => ("exception", Register::HardFaults.load()),
    };
    let [.., pc, _] = *frame;
    critical_section::with(|section| {
        let (core, case) = (Register::CpuId.load(), CASE.borrow(section).get());
        print(format_args!(
            "@trap core={core} cause={faults:#x} pc={pc:#x} value={value:#x} case={case} what={what}"
        ));
        devices::exit(1)
    })
}

#[cfg(target_os = "none")]
#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    let (file, line) = info.location().map_or(("?", 0), |l| (l.file(), l.line()));
    let what = info.message();
    critical_section::with(|section| {
        let (core, case) = (Register::CpuId.load(), CASE.borrow(section).get());
        print(format_args!(
            "@panic core={core} case={case} at={file}:{line} what={what}"
        ));
        devices::exit(1)
    })
}
