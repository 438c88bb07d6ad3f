//! What the chip can do on its own accord, listed one by one: for a search that tries all of it.

use super::{Machine, own_account};
use crate::choices::{Bounds, Transition};
use crate::mask;
use crate::op::{Access, Request};
use crate::trace::{Trace, Verb};

impl Machine {
    /// Whether the register is held.
    pub(crate) fn held(&self, of: u16) -> bool {
        self.registers[usize::from(of)]
    }

    /// All loads see all that has arrived: the state after a set-up.
    pub(crate) fn catch_up(&mut self, step: u64, trace: &mut Trace) {
        while self.settle(step, trace) {}
        let now = self.memory.now();
        for core in &mut self.cores {
            core.early.acquire(now);
        }
    }

    /// Whether `core`'s `access` has no effect now, and nobody could give it one.
    pub(crate) fn does_nothing(&self, core: u16, access: Access, at: u32, fills: bool) -> bool {
        let own = &self.cores[usize::from(core)];
        match access {
            Access::Acquire => !self.profile.weak(),
            Access::Network(Request::Stage { .. }) => true,
            Access::Drain => own.combining.mask == 0 && own.stores.is_empty(),
            Access::WriteBack { len } => self.to_write_back(core, at, len).is_none(),
            Access::Invalidate { len } => {
                let prefetches = fills && self.profile.fills();
                !prefetches && self.nothing_to_invalidate(core, at, len)
            }
            _ => false,
        }
    }

    /// Adds what can happen without any core's doing.
    pub(crate) fn own_accord(&self, bounds: &Bounds, options: &mut Vec<Transition>) {
        let first = options.len();
        if bounds.evictions > 0 {
            options.extend(self.caches.all().iter().map(|cached| Transition::Evict {
                core: cached.core,
                line: cached.line,
            }));
        }
        if bounds.fills > 0 && self.profile.fills() {
            let absent = |&&(core, line): &&(u16, u32)| self.caches.find(core, line).is_none();
            let dropped = self.dropped.iter().filter(absent);
            options.extend(dropped.map(|&(core, line)| Transition::Fill { core, line }));
        }
        // The tables' orders differ from path to path.
        options[first..].sort_unstable_by_key(|option| match *option {
            Transition::Evict { core, line } => (0, core, line),
            Transition::Fill { core, line } => (1, core, line),
            _ => (2, 0, 0),
        });
        options.dedup();
        for (number, core) in (0..).zip(&self.cores) {
            for parcel in self.free_parcels(number) {
                let parcel = &core.stores[parcel];
                options.push(Transition::Arrive {
                    core: number,
                    line: parcel.line,
                    byte: parcel.mask.trailing_zeros() as u8,
                });
            }
            if bounds.leaves > 0 {
                let units = 0..self.shape.units();
                let filled = units.filter(|&unit| core.combining.mask & self.shape.unit(unit) != 0);
                options.extend(filled.map(|unit| Transition::Leave {
                    core: number,
                    word: (unit as u32 * self.shape.publish / 4) as u8,
                }));
            }
            self.network_options(number, options);
        }
    }

    /// Lets one of those happen.
    pub(crate) fn happen(&mut self, transition: Transition, step: u64, trace: &mut Trace) {
        match transition {
            Transition::Evict { core, line } => {
                if let Some(slot) = self.caches.find(core, line) {
                    self.evict(slot, step, trace);
                }
            }
            Transition::Fill { core, line } => self.fetch_ahead(core, line, step, trace),
            Transition::Arrive { core, line, byte } => {
                let wanted = self.free_parcels(core).into_iter().find(|&number| {
                    let parcel = &self.cores[usize::from(core)].stores[number];
                    parcel.line == line && parcel.mask.trailing_zeros() == u32::from(byte)
                });
                if let Some(number) = wanted {
                    self.arrives(core, number, step, trace);
                }
            }
            Transition::Leave { core, word } => {
                let combining = self.cores[usize::from(core)].combining;
                let group = self
                    .shape
                    .unit(usize::from(word) * 4 / self.shape.publish as usize);
                self.leave(core, group);
                let at = self.shape.start(combining.line) + u32::from(word) * 4;
                let value = mask::word(&combining.bytes, word.into());
                trace.record(own_account(step, core, Verb::Arrive, at, value));
            }
            Transition::Deliver { core, serial, part } => {
                self.delivers(core, serial, part, step, trace);
            }
            Transition::Run(_)
            | Transition::Refuse(_)
            | Transition::Expire(_)
            | Transition::Elapse => {}
        }
    }
}
