//! The doorbell: bit 1 of a core's configuration register, which raises LINT0 there.
//!
//! # Steps
//! | core | step | reason |
//! |---|---|---|
//! | ringer | takes the target's test-and-set register | several cores write what it guards |
//! | ringer | sets bit 1 if it is clear | an interrupt that is pending already says it all |
//! | target | sees bit 1, by the interrupt or by polling | |
//! | target | clears it, under its own register | |
//! | target | *then* polls what it waits for | a ring in between would be lost otherwise (H8) |
//!
//! The last step is the caller's: [`Scc::wait_for_ring`] returns, and the caller looks. The
//! port polls; an image whose handler of LINT0 clears the bit itself must not use `wait_for_ring`.
//!
//! # Bounds
//! `ring` waits for the target's register, so its caller must not hold that (H6). At least 612
//! cycles until a handler runs (docs/hardware.md A5).

use flagpost_hal::{CoreId, TestAndSet};

use crate::bus::{Attribute::Uncached, Bus};
use crate::registers::{self, CoreConfig};
use crate::scc::{Scc, z};

impl<B: Bus> Scc<B> {
    /// Replaces a core's configuration register by what `change` makes of it, unless that is the
    /// same.
    #[track_caller]
    pub(crate) fn change_config(&self, of: CoreId, change: impl FnOnce(CoreConfig) -> CoreConfig) {
        let register = self.register(of, registers::core_config(z(of)));
        let old = CoreConfig::from_bits_retain(self.bus.load_u32(register, Uncached));
        let new = change(old);
        if new != old {
            self.bus.store_u32(register, Uncached, new.bits());
        }
    }

    /// The same, under the core's test-and-set register. Waits for that.
    #[track_caller]
    fn change_config_locked(&self, of: CoreId, change: impl FnOnce(CoreConfig) -> CoreConfig) {
        let held = loop {
            if let Some(held) = self.try_lock(of) {
                break held;
            }
            self.bus.relax(core::iter::empty());
        };
        self.bus.order();
        self.change_config(of, change);
        self.bus.order();
        drop(held);
    }

    /// Rings `core`'s bell, which remembers one ring. Orders nothing:
    /// [`drain`](flagpost_hal::Coherence::drain) first.
    #[track_caller]
    pub fn ring(&self, core: CoreId) {
        self.change_config_locked(core, |config| config.union(CoreConfig::INTR));
    }

    /// Waits until this core's bell has been rung, and clears it. A bell may ring for any reason.
    #[track_caller]
    pub fn wait_for_ring(&self) {
        let register = self.register(self.core, registers::core_config(z(self.core)));
        loop {
            let seen = self.bus.load_u32(register, Uncached);
            if CoreConfig::from_bits_retain(seen).contains(CoreConfig::INTR) {
                break;
            }
            self.bus.relax(core::iter::once((register, seen)));
        }
        self.change_config_locked(self.core, |config| config.difference(CoreConfig::INTR));
    }
}
