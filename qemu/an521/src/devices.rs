//! What is on the board beside its cores: registers, and the host behind them.
#![expect(unsafe_code, reason = "registers and semihosting")]

use core::fmt;
use core::ptr::{self, NonNull};

use volatile::VolatilePtr;

/// The registers that the image uses, at their secure addresses.
#[derive(Copy, Clone)]
#[repr(u32)]
pub(crate) enum Register {
    /// Number of the core that asks.
    CpuId = 0x5001_f000,
    /// Where core 1 finds its vectors.
    Vectors1 = 0x5002_1114,
    /// Bit n: core n does not start.
    CpuWait = 0x5002_1118,
    /// The UART: a byte to send; bit 0: no room; bit 0: sends; clocks per bit.
    UartData = 0x5020_0000,
    UartState = 0x5020_0004,
    UartControl = 0x5020_0008,
    UartDivider = 0x5020_0010,
    /// No register, and no memory.
    Nowhere = 0x1f00_0000,
    /// Counts at 20 MHz, for both cores.
    Counter = 0x5030_2018,
    /// Of each core: the table of vectors; which faults there were; addresses of them.
    Faults = 0xe000_ed28,
    HardFaults = 0xe000_ed2c,
    MemoryAddress = 0xe000_ed34,
    BusAddress = 0xe000_ed38,
}

impl Register {
    fn pointer(self) -> VolatilePtr<'static, u32> {
        let at = ptr::with_exposed_provenance_mut(self as usize);
        // SAFETY: a register of the board, which only this image runs on, and no memory of Rust's;
        // none has address 0. None of those that are stored to makes the board access memory.
        unsafe { VolatilePtr::new(NonNull::new_unchecked(at)) }
    }

    pub(crate) fn load(self) -> u32 {
        self.pointer().read()
    }

    pub(crate) fn store(self, value: u32) {
        self.pointer().write(value);
    }
}

/// Traps: nothing is at this address.
pub(crate) fn load_from_nowhere() {
    Register::Nowhere.load();
}

/// Sets the board's devices up. For core 0, before any other uses them.
pub(crate) fn start() {
    Register::UartDivider.store(16);
    Register::UartControl.store(1);
}

/// The UART, to write to.
pub(crate) struct Uart;

impl fmt::Write for Uart {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            while Register::UartState.load() & 1 != 0 {}
            Register::UartData.store(byte.into());
        }
        Ok(())
    }
}

/// Asks the host, by semihosting.
#[cfg(target_arch = "arm")]
fn ask(operation: u32, block: &mut [u32]) -> u32 {
    let answer;
    // SAFETY: QEMU takes BKPT 0xAB for a call: the operation in r0, the address of its block in r1,
    // the answer in r0. The two operations of this module change no other memory than the block and
    // what the block names.
    unsafe {
        core::arch::asm!(
            "bkpt #0xab",
            inlateout("r0") operation => answer,
            in("r1") block.as_mut_ptr(),
            options(nostack, preserves_flags),
        );
    }
    answer
}

#[cfg(not(target_arch = "arm"))]
fn ask(_: u32, _: &mut [u32]) -> u32 {
    u32::MAX
}

/// Ends QEMU with this status.
pub(crate) fn exit(status: u32) -> ! {
    const EXTENDED: u32 = 0x20;
    const APPLICATION_EXIT: u32 = 0x2_0026;
    ask(EXTENDED, &mut [APPLICATION_EXIT, status]);
    loop {
        flagpost_cortex_m::instructions::wfe();
    }
}

/// The words behind the image's name on its command line, in `buffer`.
pub(crate) fn arguments(buffer: &mut [u8]) -> &str {
    const COMMAND_LINE: u32 = 0x15;
    let mut block = [
        buffer.as_mut_ptr().expose_provenance() as u32,
        buffer.len() as u32,
    ];
    if ask(COMMAND_LINE, &mut block) != 0 {
        return "";
    }
    let [_, length] = block;
    let line = buffer.get(..length as usize).unwrap_or_default();
    let line = str::from_utf8(line).unwrap_or_default();
    line.split_once(' ').map_or("", |(_, words)| words)
}
