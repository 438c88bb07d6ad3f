//! The board's devices: UART, software interrupts, finisher.
//!
//! The only file with addresses of `virt`'s devices. A register is a `VolatilePtr` made on the
//! spot.

use core::num::NonZero;
use core::ptr::NonNull;

use volatile::VolatilePtr;

use crate::Exit;

/// 16550 UART: byte registers.
const UART_TRANSMIT: Address = address(0x1000_0000);
const UART_LINE_STATUS: Address = address(0x1000_0005);

/// Line status: the transmit register takes a byte; the last byte has gone.
const TRANSMIT_READY: u8 = 1 << 5;
const TRANSMIT_IDLE: u8 = 1 << 6;

/// Core-local interruptor: one 32-bit `msip` register per hart.
const SOFTWARE_INTERRUPTS: Address = address(0x0200_0000);

/// SiFive's test finisher: a 32-bit register that ends the machine.
const FINISHER: Address = address(0x0010_0000);
const FINISHER_PASS: u32 = 0x5555;
const FINISHER_FAIL: u32 = 0x3333;

/// Polls until a UART that takes no more bytes is given up.
const PATIENCE: u32 = 100_000_000;

type Address = NonZero<usize>;

const fn address(at: usize) -> Address {
    match NonZero::new(at) {
        Some(at) => at,
        None => panic!("no device has address 0"),
    }
}

/// The register at `at`.
///
/// # Safety
/// 1. `at` is the address of one of `virt`'s registers, and `T` is as wide as that register.
/// 2. Reading it has no effect that other code depends on.
unsafe fn register<T: Copy>(at: Address) -> VolatilePtr<'static, T> {
    let pointer = NonNull::with_exposed_provenance(at);
    // SAFETY: (1) the address is aligned and always mapped, outside of all memory that Rust
    // manages; volatile accesses of the register's own width are what it is for.
    unsafe { VolatilePtr::new(pointer) }
}

/// Sends `bytes`. Callers take turns: see `log`.
pub(crate) fn send(bytes: &[u8]) {
    // SAFETY: (1) a byte register of the UART; (2) it is only written.
    let transmit = unsafe { register::<u8>(UART_TRANSMIT) };
    for byte in bytes {
        wait_for(TRANSMIT_READY);
        transmit.write(*byte);
    }
}

/// Waits until the host has taken all bytes.
pub(crate) fn wait_until_sent() {
    wait_for(TRANSMIT_IDLE);
}

/// Polls without yielding: the host empties the register in its own time, not in ours, and the
/// fewer turns change hands the less a slow host disturbs the order of harts.
fn wait_for(bits: u8) {
    // SAFETY: (1) a byte register of the UART; (2) reading clears error bits, which nobody reads.
    let status = unsafe { register::<u8>(UART_LINE_STATUS) };
    for _ in 0..PATIENCE {
        if status.read() & bits != 0 {
            return;
        }
    }
}

/// Makes `hart`'s software interrupt pending, for ever: nobody takes it, but `wfi` then returns at
/// once.
pub(crate) fn raise_software_interrupt(hart: usize) {
    let at = SOFTWARE_INTERRUPTS.saturating_add(4 * hart);
    // SAFETY: (1) `msip` registers are 32 bits wide and 4 bytes apart, one per hart of the board,
    // and `hart` is one of them; (2) it is only written.
    unsafe { register::<u32>(at) }.write(1);
}

/// Ends the machine, a few instructions later, once the log has gone out.
pub(crate) fn finish(exit: Exit) {
    wait_until_sent();
    let value = match exit {
        Exit::Pass => FINISHER_PASS,
        Exit::Fail => 1 << 16 | FINISHER_FAIL, // exit status 1
    };
    // SAFETY: (1) the finisher's only register, 32 bits wide; (2) it is only written.
    unsafe { register::<u32>(FINISHER) }.write(value);
}
