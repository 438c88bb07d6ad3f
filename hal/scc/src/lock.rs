//! Test-and-set registers.
//!
//! # Semantics (docs/hardware.md A3)
//! ```text
//!            read: returns 1              read: returns 0
//!          ┌─────────────────►  held  ──────────────┐
//!        free                     │  ▲──────────────┘
//!          ◄──────────────────────┘
//!               write, any value                     one bit per core, in its tile's bank
//! ```
//! * The read that returns 1 has taken the register; there is no other way to look at it. A
//!   debugger that reads it takes it.
//! * Any write frees it, whoever holds it; the port, like all software known, writes 0.
//! * Nobody is noted as holder, so it is not re-entrant: a core that asks twice waits for itself
//!   (H6). So does a handler of an interrupt: interrupts are masked from the first register taken
//!   to the last freed.
//! * What it is after reset is not to be trusted (T5).
//! * It orders nothing (T4). The write-combining buffer keeps its line across taking and freeing
//!   (H4).

use flagpost_hal::{CoreId, TestAndSet};
use flagpost_points::point;

use crate::bus::{Attribute::Uncached, Bus};
use crate::scc::Scc;

impl<B: Bus> TestAndSet for Scc<B> {
    #[track_caller]
    fn test_and_set(&self, of: CoreId) -> bool {
        let register = self.lock_register(of);
        // Before it is taken: an interrupt in between would find it held.
        let admitted = point!(LOCK "H6: a handler would wait for this core": "scc.lock.mask",
            self.bus.set_interrupts(false); else true);
        let state = self.bus.state();
        if self.bus.load_u32(register, Uncached) & 1 == 0 {
            self.bus.set_interrupts(admitted);
            return false;
        }
        if state.held.get() == 0 {
            state.interrupts.set(admitted);
        }
        state.held.set(state.held.get().saturating_add(1));
        true
    }

    #[track_caller]
    fn clear(&self, of: CoreId) {
        let register = self.lock_register(of);
        self.bus.store_u32(register, Uncached, 0);
        let state = self.bus.state();
        // Not so for `release_at_start`, which frees what nobody has taken.
        if let Some(others) = state.held.get().checked_sub(1) {
            state.held.set(others);
            if others == 0 {
                self.bus.set_interrupts(state.interrupts.get());
            }
        }
    }
}
