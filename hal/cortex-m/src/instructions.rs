//! The instructions that a port needs, by name. On other processors, for tests: a fence.
#![allow(unsafe_code, reason = "instructions; none on other processors")]

#[cfg(target_arch = "arm")]
use core::arch::asm;

macro_rules! instruction {
    ($($(#[$doc:meta])* $name:ident $text:literal)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub fn $name() {
            #[cfg(target_arch = "arm")]
            // SAFETY: the instruction changes no register. Without `nomem` it is, for the compiler,
            // an access to any memory: nothing is moved across it.
            unsafe {
                asm!($text, options(nostack, preserves_flags));
            }
            #[cfg(not(target_arch = "arm"))]
            core::sync::atomic::fence(core::sync::atomic::Ordering::SeqCst);
        }
    )*};
}

instruction! {
    /// Orders all earlier accesses to memory ahead of all later ones.
    dmb "dmb"
    /// Completes all earlier accesses before any later instruction.
    dsb "dsb"
    /// Later instructions are fetched anew.
    isb "isb"
    /// An event for all cores: ends their [`wfe`].
    sev "sev"
    /// Sleeps until an event or an interrupt. Returns immediately if there was an event since the
    /// last one.
    wfe "wfe"
    /// Says that this core only waits. Under QEMU, with all cores on one thread of the host, the
    /// next core gets its turn; silicon does nothing.
    yield_turn "yield"
    /// Masks interrupts.
    mask "cpsid i"
    /// Allows interrupts.
    unmask "cpsie i"
}

/// True if interrupts are masked.
#[inline(always)]
pub fn is_masked() -> bool {
    #[cfg(target_arch = "arm")]
    {
        let masked: u32;
        // SAFETY: reads PRIMASK.
        unsafe {
            asm!("mrs {}, PRIMASK", out(reg) masked, options(nomem, nostack, preserves_flags))
        };
        masked & 1 == 1
    }
    #[cfg(not(target_arch = "arm"))]
    true
}
