//! The registers of the core that runs this, and how it gives its turn away.

use riscv::register::{mcause, mcycle, mepc, mhartid, mtval};

/// Number of the hart that runs this.
pub(crate) fn core_number() -> u16 {
    mhartid::read() as u16
}

/// Cycles of the hart that runs this.
pub(crate) fn cycles() -> u64 {
    mcycle::read64()
}

/// Hands the turn to the next hart: `wfi`, which with an interrupt pending returns when QEMU comes
/// round to this hart again.
pub(crate) fn yield_core() {
    riscv::asm::wfi();
}

/// How `spin`'s locks wait among the harts.
pub(crate) struct Yield;

impl spin::RelaxStrategy for Yield {
    fn relax() {
        yield_core();
    }
}

/// Why this hart is in its trap handler.
pub(crate) struct Cause {
    pub(crate) code: usize,
    pub(crate) pc: usize,
    pub(crate) value: usize,
}

/// Reads why this hart is in its trap handler.
pub(crate) fn trap_cause() -> Cause {
    Cause {
        code: mcause::read().code(),
        pc: mepc::read(),
        value: mtval::read(),
    }
}
