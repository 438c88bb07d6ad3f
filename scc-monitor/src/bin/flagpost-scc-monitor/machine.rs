//! Instructions and memory of the PC: all that the other modules reach only by way of here.

use core::arch::asm;
use core::ptr::with_exposed_provenance;
use core::sync::atomic::{
    AtomicU8, AtomicU16, AtomicU32,
    Ordering::{Relaxed, SeqCst},
};

use flagpost_hal::CoreId;
use flagpost_scc::{Attribute, Physical, views};
use flagpost_scc_monitor::decode::LONGEST;
use flagpost_scc_monitor::lines::Memory;
use flagpost_scc_monitor::mesh::PRIVATE;

/// The task register of core 0. In `start.s`, too.
const FIRST_TASK: u32 = 24;
/// How many cores there are.
static CORES: AtomicU16 = AtomicU16::new(0);

/// Ports.
pub(crate) const DEBUG: u16 = 0xE9;
pub(crate) const EXIT: u16 = 0xF4;

/// Where the interrupt controller of each core is, in both address spaces.
pub(crate) const LOCAL_APIC: u32 = 0xFEE0_0000;
const END_OF_INTERRUPT: u32 = 0xB0;
const SPURIOUS: u32 = 0xF0;
const COMMAND: u32 = 0x300;
const COMMAND_TO: u32 = 0x310;
const TIMER: u32 = 0x320;
const TIMER_COUNT: u32 = 0x380;
const TIMER_DIVIDE: u32 = 0x3E0;

pub(crate) fn out8(port: u16, value: u8) {
    // SAFETY: no device of this machine that is written to here touches memory.
    unsafe { asm!("out dx, al", in("dx") port, in("al") value, options(nostack)) };
}

pub(crate) fn out16(port: u16, value: u16) {
    // SAFETY: as `out8`.
    unsafe { asm!("out dx, ax", in("dx") port, in("ax") value, options(nostack)) };
}

pub(crate) fn in8(port: u16) -> u8 {
    let value;
    // SAFETY: as `out8`.
    unsafe { asm!("in al, dx", in("dx") port, out("al") value, options(nostack)) };
    value
}

/// The number of the core that runs this: its task register, which `start` loads by it.
pub(crate) fn core() -> CoreId {
    let task: u32;
    // SAFETY: reads a register.
    unsafe { asm!("str {:e}", out(reg) task, options(nomem, nostack, preserves_flags)) };
    CoreId::new((task.saturating_sub(FIRST_TASK) / 8) as u16)
}

/// How many cores there are.
pub(crate) fn cores() -> u16 {
    CORES.load(SeqCst)
}

/// Says how many cores there are, before any other starts.
pub(crate) fn set_cores(cores: u16) {
    CORES.store(cores, SeqCst);
}

/// The address that a page fault is about.
pub(crate) fn fault_address() -> u32 {
    let address;
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, cr2", out(reg) address, options(nomem, nostack, preserves_flags)) };
    address
}

/// Cycles of this core.
pub(crate) fn cycles() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: reads a counter.
    unsafe { asm!("rdtsc", out("eax") low, out("edx") high, options(nomem, nostack)) };
    u64::from(high) << 32 | u64::from(low)
}

/// Stops this core, for the moment between the end of a run and that of QEMU.
pub(crate) fn halt() {
    // SAFETY: waits; interrupts are masked.
    unsafe { asm!("hlt", options(nomem, nostack)) };
}

fn apic(register: u32) -> &'static AtomicU32 {
    let address = with_exposed_provenance(LOCAL_APIC.wrapping_add(register & 0xFFC) as usize);
    // SAFETY: the page is mapped in all page tables, holds registers of a word each, and no object
    // of Rust.
    unsafe { &*address }
}

/// Turns this core's interrupt controller on. With a period, in its clock's ticks, a timer
/// interrupts again and again.
pub(crate) fn enable_apic(timer: Option<(u8, u32)>) {
    apic(SPURIOUS).store(0x13F, Relaxed);
    if let Some((vector, period)) = timer {
        apic(TIMER_DIVIDE).store(0b1011, Relaxed); // by 1
        apic(TIMER).store(1 << 17 | u32::from(vector), Relaxed); // periodic
        apic(TIMER_COUNT).store(period, Relaxed);
    }
}

/// Says that the interrupt has been handled.
pub(crate) fn end_of_interrupt() {
    apic(END_OF_INTERRUPT).store(0, Relaxed);
}

/// Starts all other cores at this page of the PC's memory.
pub(crate) fn start_others(page: u8) {
    apic(COMMAND).store(0x000C_4500, Relaxed); // INIT, to all others
    let since = cycles();
    while cycles().wrapping_sub(since) < 20_000 {}
    apic(COMMAND).store(0x000C_4600 | u32::from(page), Relaxed);
}

/// Interrupts `core`.
pub(crate) fn interrupt(core: CoreId, vector: u8) {
    apic(COMMAND_TO).store(u32::from(core.get()) << 24, Relaxed);
    apic(COMMAND).store(0x4000 | u32::from(vector), Relaxed);
}

/// The bytes at `address` of this core's private memory, the first [`LONGEST`] of them.
pub(crate) fn code(address: u32) -> Option<[u8; LONGEST]> {
    let bytes = private(address, LONGEST as u32)?;
    Some(core::array::from_fn(|i| {
        bytes.get(i).map_or(0, |byte| byte.load(Relaxed))
    }))
}

/// `len` bytes at `address` of this core's private memory, if they are there.
pub(crate) fn private(address: u32, len: u32) -> Option<&'static [AtomicU8]> {
    let end = address.checked_add(len)?;
    if address < 4096 || end > PRIVATE {
        return None;
    }
    let start = with_exposed_provenance(address as usize);
    // SAFETY: all pages of private memory but the first are mapped, and not the monitor's: it has
    // no object there. Bytes have no invalid values.
    Some(unsafe { core::slice::from_raw_parts(start, len as usize) })
}

/// Shared memory, by this core's uncached view of it.
pub(crate) struct Shared;

/// The uncached byte at `at`.
fn uncached(at: Physical) -> usize {
    match views::address(at, Attribute::Uncached) {
        Some(address) => address as usize,
        None => panic!("{at:x?} is not mapped uncached"),
    }
}

impl Memory for Shared {
    fn load(&self, at: Physical) -> u32 {
        let word = with_exposed_provenance::<AtomicU32>(uncached(at) & !3);
        // SAFETY: message pages are entered into the tables only where memory is (`tables`), and so
        // are the uncached pages of the same memory. No object of Rust is there.
        unsafe { &*word }.load(Relaxed)
    }

    fn store(&self, at: Physical, value: u32) {
        let word = with_exposed_provenance::<AtomicU32>(uncached(at) & !3);
        // SAFETY: as in `load`.
        unsafe { &*word }.store(value, Relaxed);
    }

    fn store_byte(&self, at: Physical, value: u8) {
        let byte = with_exposed_provenance::<AtomicU8>(uncached(at));
        // SAFETY: as in `load`.
        unsafe { &*byte }.store(value, Relaxed);
    }
}

/// Fills `words` of shared memory, side by side in the uncached view, with numbers that are made of
/// `garbage`, of which no byte is 0.
pub(crate) fn fill(at: Physical, words: usize, garbage: u32) {
    let first = with_exposed_provenance::<AtomicU32>(uncached(at) & !3);
    // SAFETY: as in `Shared::load`: a region of one core is mapped as one piece.
    let words = unsafe { core::slice::from_raw_parts(first, words) };
    for (number, word) in words.iter().enumerate() {
        word.store(
            garbage.rotate_left(4 * number as u32) | 0x0101_0101,
            Relaxed,
        );
    }
}
