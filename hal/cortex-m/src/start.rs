//! The start of a core, as far as chips have it in common: a stack, a table of vectors, the FPU.

use core::sync::atomic::AtomicU32;

/// A stack of `WORDS` words for a core: a `static`.
#[repr(C, align(8))]
#[derive(Debug)]
pub struct Stack<const WORDS: usize>([AtomicU32; WORDS]);

impl<const WORDS: usize> Stack<WORDS> {
    /// All zero.
    #[expect(clippy::new_without_default, reason = "for a `static`")]
    pub const fn new() -> Self {
        const { assert!(WORDS.is_multiple_of(2), "8 bytes are the unit of a stack") };
        Self([const { AtomicU32::new(0) }; WORDS])
    }

    /// Its words. Words that the core has not reached can be painted, and looked at later.
    pub const fn words(&'static self) -> &'static [AtomicU32] {
        &self.0
    }

    /// Where it begins: it grows downwards from here.
    pub const fn top(&'static self) -> *const u32 {
        self.0.as_ptr_range().end.cast()
    }

    /// Lets the core that calls, whose stack this is, trap before the stack overflows: sets MSPLIM.
    /// Armv8-M only; on others it does not assemble.
    #[inline(always)]
    #[allow(
        unsafe_code,
        reason = "a register of the core; none on other processors"
    )]
    pub fn guard(&'static self) {
        #[cfg(target_arch = "arm")]
        // SAFETY: no memory is touched. If the stack pointer is not in this stack, the core traps.
        unsafe {
            core::arch::asm!(
                "msr MSPLIM, {}",
                in(reg) self.0.as_ptr(),
                options(nostack, preserves_flags),
            );
        }
    }
}

/// The vectors of a core that has no interrupts: its stack, its entry, and one handler for all that
/// goes wrong. A chip whose cores find the table's address in a register starts with it.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct Vectors {
    stack: *const u32,
    entry: unsafe extern "C" fn() -> !,
    trap: [unsafe extern "C" fn() -> !; 14],
}

// SAFETY: never changed; the addresses are of `static`s and of code.
#[expect(unsafe_code, reason = "addresses in a `static`")]
unsafe impl Sync for Vectors {}

impl Vectors {
    /// A core that starts with this table begins with `entry`, on `stack`. What it cannot do ends
    /// in `trap`.
    pub const fn new<const WORDS: usize>(
        stack: &'static Stack<WORDS>,
        entry: unsafe extern "C" fn() -> !,
        trap: unsafe extern "C" fn() -> !,
    ) -> Self {
        Self {
            stack: stack.top(),
            entry,
            trap: [trap; 14],
        }
    }

    /// The address of the table, for the chip's register.
    pub fn address(&'static self) -> u32 {
        core::ptr::from_ref(self).addr() as u32
    }
}

/// Makes `$name`, the first function of a core: turns its FPU on, if the target has one, and calls
/// `$main`, a `extern "C" fn() -> !`. The chip has set the stack pointer.
///
/// ```no_run
/// flagpost_cortex_m::entry!(second, program);
///
/// extern "C" fn program() -> ! {
///     loop {}
/// }
/// ```
#[macro_export]
macro_rules! entry {
    ($name:ident, $main:path) => {
        /// The first function of a core. A Rust function may store registers of the FPU before its
        /// first line.
        #[cfg(target_arch = "arm")]
        #[unsafe(naked)]
        unsafe extern "C" fn $name() -> ! {
            ::core::arch::naked_asm!(
                ".if {fpu}",
                "movw r0, #0xed88", // CPACR
                "movt r0, #0xe000",
                "ldr r1, [r0]",
                "orr r1, r1, #0xf00000",
                "str r1, [r0]",
                "dsb",
                "isb",
                ".endif",
                "bl {main}",
                fpu = const cfg!(target_abi = "eabihf") as u32,
                main = sym $main,
            )
        }
        #[cfg(not(target_arch = "arm"))]
        unsafe extern "C" fn $name() -> ! {
            $main()
        }
    };
}
