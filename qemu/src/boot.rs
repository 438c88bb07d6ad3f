//! From the first Rust instruction of a hart to its program.
//!
//! All harts run this at the same time. Hart 0 reads the device tree; the others wait for it, then
//! all meet in the barrier. The stack's layout is in the linker script,
//! `linker/flagpost-riscv64-virt.x`.
//!
//! # Guard
//! The lowest 4 KiB of each hart's share are closed to that hart itself, by a *locked* entry of its
//! physical memory protection: locked entries bind M mode too, until reset. A function whose frame
//! is larger than 4 KiB can step over the guard, and nothing traps. Below the guard lie the trap
//! stack and the stack of the core before this one; below that of core 0 the end of `.memory`.

#[cfg(target_arch = "riscv64")]
use core::arch::global_asm;
use core::ptr::with_exposed_provenance;
use core::slice;
use core::sync::atomic::AtomicU32;

use hermit_dtb::Dtb;
use riscv::register::{Permission, Range};
use riscv::register::{mhartid, mie, pmpaddr0, pmpcfg0};

use crate::barrier::barrier;
use crate::board::{self, Board, MAX_HARTS};
use crate::entry::Exit;
use crate::hart::Hart;
use crate::{devices, end};

#[cfg(target_arch = "riscv64")]
global_asm!(include_str!("boot.s"));

/// Bytes of the guard below each stack.
const GUARD: usize = 4096;

/// The table that the linker script writes.
#[repr(C)]
struct Layout {
    harts_max: usize,
    stacks: usize,
    stack_size: usize,
    memory: usize,
    memory_size: usize,
}

// SAFETY: `boot.s` defines this; it takes nothing and changes one caller-saved register.
unsafe extern "C" {
    safe fn _flagpost_load_from_zero();
}

// SAFETY: the linker script defines the table with these words in read-only memory; `entry!`
// defines the function with this signature.
unsafe extern "Rust" {
    safe static _flagpost_layout: Layout;
    safe fn flagpost_main(hart: Hart) -> Exit;
}

/// Called by `boot.s` on every hart, on its own stack, with what QEMU left in a0 and a1.
// SAFETY (`no_mangle`): `boot.s` calls it by this name, and nothing else bears it.
#[unsafe(no_mangle)]
extern "C" fn _flagpost_boot(hart: usize, device_tree: *const u8) -> ! {
    // First, since from here on a lock may make us yield.
    devices::raise_software_interrupt(hart);
    // SAFETY: enabled for `wfi` only: `mstatus.MIE` is 0 from reset on and is never set, so that no
    // interrupt is ever taken.
    unsafe { mie::set_msoft() };
    close_guard();
    if hart == 0 {
        board::learn(|| read(device_tree));
    }
    let hart = Hart::current();
    barrier(hart);
    end::hart_returned(hart, flagpost_main(hart))
}

/// Reads the device tree: how many harts there are, and the words of `-append`.
fn read(device_tree: *const u8) -> Board {
    // SAFETY: QEMU has put a device tree there, aligned, into RAM that neither the image nor any
    // hart's stack reaches (checked below), and nobody ever writes to it: it is valid and constant
    // for ever.
    let Some(tree) = (unsafe { Dtb::from_raw(device_tree) }) else {
        panic!("no device tree at {device_tree:p}");
    };
    let nodes = tree.enum_subnodes("/cpus");
    let harts = nodes.filter(|name| name.starts_with("cpu@")).count();
    let boot_args = tree.get_property("/chosen", "bootargs").unwrap_or(&[]);
    let boot_args = boot_args.split(|byte| *byte == 0).next().unwrap_or(&[]);
    let layout = &_flagpost_layout;
    assert!(
        (1..=MAX_HARTS.min(layout.harts_max)).contains(&harts),
        "{harts} harts: the image has room for {}",
        MAX_HARTS.min(layout.harts_max)
    );
    let end = layout.stacks + harts * layout.stack_size;
    assert!(
        end <= device_tree.addr(),
        "the stacks of {harts} harts end at {end:#x}, behind the device tree at {device_tree:p}: \
         start QEMU with more memory (-m), or make _flagpost_memory_size smaller"
    );
    Board {
        harts: harts as u16,
        memory_size: layout.memory_size,
        boot_args: str::from_utf8(boot_args).unwrap_or(""),
    }
}

/// The memory that this core shares, in words. `None` if the image has no room for such a core.
#[inline]
pub(crate) fn memory(core: usize) -> Option<&'static [AtomicU32]> {
    let layout = &_flagpost_layout;
    if core >= layout.harts_max {
        return None;
    }
    let start = with_exposed_provenance(layout.memory + core * layout.memory_size);
    // SAFETY: the linker script sets aside `harts_max` times `memory_size` bytes from `memory` on,
    // multiples of 4 KiB, for nothing else, and the stacks behind them are in RAM (`read`). All
    // references to them are made here, and their words are atomic, for which all bits are valid.
    Some(unsafe { slice::from_raw_parts(start, layout.memory_size / 4) })
}

/// Start of the guard below this hart's stack.
fn guard() -> usize {
    _flagpost_layout.stacks + mhartid::read() * _flagpost_layout.stack_size
}

/// Whether `address` lies in the guard below this hart's stack.
pub(crate) fn guards(address: usize) -> bool {
    (guard()..guard() + GUARD).contains(&address)
}

/// Closes the guard, until reset.
fn close_guard() {
    // A naturally aligned power of two (NAPOT) of 2^(n+3) bytes is written as its address / 4 with
    // the lowest n bits 1.
    let napot = guard() >> 2 | (GUARD / 8 - 1);
    // SAFETY: the entry covers the guard only, which holds nothing: the linker script sets it
    // aside.
    unsafe {
        pmpaddr0::write(napot);
        pmpcfg0::set_pmp(0, Range::NAPOT, Permission::NONE, true);
    }
}

/// Loads from address 0, which traps: for images that try the trap handler.
pub fn load_from_zero() {
    _flagpost_load_from_zero();
}
