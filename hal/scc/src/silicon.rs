//! The bus of the chip itself: volatile accesses, and the four instructions that no compiler knows.
//!
//! # How far this has been brought
//! It *compiles and links*, with the kernel above it (`examples/scc/silicon.rs`), for bare-metal
//! cores of this kind: target `linker/i586-scc-none.json` (cpu `pentium`, soft float), `core` built
//! from source; `cargo xtask ci`, step "SCC image". That step decodes every instruction of the
//! image, and fails on one that a Pentium lacks (`cmov`, MMX, SSE, fences), on x87, on a `lock`
//! prefix, which would help nobody there, and where `0F 0A`, `wbinvd` or `rdtsc` are missing.
//!
//! It *runs under emulation*: that image, unchanged, and the conformance cases, on 2 to 48 Pentium
//! cores of QEMU, whose page tables are filled from [`views::entry`] (`scc-monitor`; `cargo
//! xtask qemu --board scc`). It has **not run on the chip**: docs/verification.md says what that
//! leaves open.
//!
//! # What an image must do before [`Silicon::new`]
//! 1. Page tables filled from [`views::entry`], for one [`Mapping`](crate::Mapping), and that same
//!    mapping given to [`Scc::start`](crate::Scc::start).
//! 2. [`enable_message_type`], then paging on. CR0.CD and CR0.NW clear, so that the caches are on.
//! 3. No handler of an interrupt uses the port.

use core::arch::asm;
use core::ptr::NonNull;

use volatile::VolatilePtr;

use crate::bus::{Attribute, Bus, Fault, Physical, Processor, State};
use crate::map::Map;
use crate::registers::{self, Clocks};
use crate::views;

/// This core, as a bus.
///
/// Neither `Send` nor `Sync`: it names the core that runs the code that holds it.
#[derive(Copy, Clone, Debug)]
pub struct Silicon {
    hertz: u64,
    stays_here: core::marker::PhantomData<*mut ()>,
}

/// What the port remembers. Statics of an image lie in private memory, of which every core has its
/// own.
struct Own(State);

// SAFETY: an image runs on one core at a time, in private memory (see `Silicon::new`, 2), and its
// handlers of interrupts do not come here (3): no two threads of execution ever reach this.
unsafe impl Sync for Own {}

static OWN: Own = Own(State::new());

impl Silicon {
    /// The core that calls this.
    ///
    /// # Safety
    /// 1. Paging is on, with the entries of [`views::entry`]: what [`views::address`] returns is
    ///    mapped, as it says, and nothing of this program is there, but for private memory.
    /// 2. This program, its statics included, lies in private memory.
    /// 3. No handler of an interrupt uses the port.
    pub unsafe fn new() -> Self {
        let mut silicon = Self {
            hertz: 533_000_000,
            stays_here: core::marker::PhantomData,
        };
        let clocks = Map::own_registers().plus(registers::CLOCKS);
        let clocks = silicon.load_u32(clocks, Attribute::Uncached);
        if let Some(rate) = Clocks::from_bits_retain(clocks).tile_megahertz() {
            silicon.hertz = u64::from(rate) * 1_000_000;
        }
        silicon
    }

    /// The byte or word at `at`, to be touched with this memory type.
    #[inline]
    fn place<T>(at: Physical, attribute: Attribute) -> VolatilePtr<'static, T> {
        let address = views::address(at, attribute).unwrap_or(0) as usize;
        let pointer = core::ptr::with_exposed_provenance_mut::<T>(address);
        let Some(pointer) = NonNull::new(pointer) else {
            // The port asks for its map's addresses only, and all of those are mapped (`views`,
            // tests).
            panic!("{at:x?} is not mapped {attribute:?}");
        };
        // SAFETY: what `address` returns is mapped for good (`new`, 1), aligned by the contract of
        // `Bus`, and belongs to no object of this program but the displacement area, which is only
        // read. Plain integers have no invalid values.
        unsafe { VolatilePtr::new(pointer) }
    }
}

/// Turns the MPBT memory type on: CR4.MPE; and large pages off, whose bit it uses: CR4.PSE.
///
/// # Safety
/// Paging is off, or no entry in use has bit 7 set.
pub unsafe fn enable_message_type() {
    const PSE: u32 = 1 << 4;
    const MPE: u32 = 1 << 11;
    // SAFETY: changes how bit 7 of page table entries is read, and by the caller's word none is
    // set.
    unsafe {
        asm!(
            "mov {control}, cr4",
            "and {control}, {clear}",
            "or {control}, {set}",
            "mov cr4, {control}",
            control = out(reg) _,
            clear = const !PSE as i32,
            set = const MPE as i32,
            options(nostack),
        );
    }
}

// None of the blocks below is `nomem` or `pure`: the compiler moves no access across them.
impl Processor for Silicon {
    #[inline]
    fn cl1invmb(&self) {
        // SAFETY: drops lines of L1 that the port alone makes, and that hold no unsaved store
        // (`message`).
        unsafe { asm!(".byte 0x0F, 0x0A", options(nostack, preserves_flags)) };
    }

    fn wbinvd(&self) {
        // SAFETY: writes back all that it drops.
        unsafe { asm!("wbinvd", options(nostack, preserves_flags)) };
    }

    #[inline]
    fn rdtsc(&self) -> u64 {
        let (low, high): (u32, u32);
        // SAFETY: reads a counter.
        unsafe {
            asm!("rdtsc", out("eax") low, out("edx") high, options(nostack, preserves_flags))
        };
        u64::from(high) << 32 | u64::from(low)
    }

    fn hertz(&self) -> u64 {
        self.hertz
    }

    #[track_caller]
    fn stop(&self, fault: Fault) -> ! {
        panic!("{fault}")
    }

    fn set_interrupts(&self, admitted: bool) -> bool {
        const IF: u32 = 1 << 9;
        let flags: u32;
        // SAFETY: pushes and pops its own word.
        unsafe { asm!("pushfd", "pop {}", out(reg) flags) };
        // SAFETY: whether interrupts are taken is the port's to say, between two calls of this.
        unsafe {
            match admitted {
                true => asm!("sti", options(nostack)),
                false => asm!("cli", options(nostack)),
            }
        }
        flags & IF != 0
    }
}

impl Bus for Silicon {
    #[inline]
    fn load_u8(&self, at: Physical, attribute: Attribute) -> u8 {
        Self::place(at, attribute).read()
    }

    #[inline]
    fn load_u32(&self, at: Physical, attribute: Attribute) -> u32 {
        Self::place(at, attribute).read()
    }

    #[inline]
    fn store_u8(&self, at: Physical, attribute: Attribute, value: u8) {
        Self::place(at, attribute).write(value);
    }

    #[inline]
    fn store_u32(&self, at: Physical, attribute: Attribute, value: u32) {
        Self::place(at, attribute).write(value);
    }

    fn state(&self) -> &State {
        &OWN.0
    }

    /// A random number of idle turns, as RCCE's locks do it: cores that poll the same word do not
    /// stay in step. Then one `pause`: the chip's cores do nothing there, and an emulator that runs
    /// cores in turns ends this one's. More of them would cost it more than all else.
    fn relax(&self, _: impl Iterator<Item = (Physical, u32)> + Clone) {
        for turn in 0..8 + self.rdtsc() as u32 % 64 {
            core::hint::black_box(turn);
        }
        core::hint::spin_loop();
    }
}
