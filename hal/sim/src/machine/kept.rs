//! The chip at some point of a run, for other runs to go on from.

use super::caches::Caches;
use super::network::flights::Network;
use super::tags::Tags;
use super::{Core, Machine, memory};

/// A chip without a hazard, on which nobody waits and no store is under way to memory.
pub(crate) struct Kept {
    memory: memory::Kept,
    caches: Caches,
    tags: Tags,
    cores: Vec<Core>,
    registers: Vec<bool>,
    bells: Vec<bool>,
    dropped: Vec<(u16, u32)>,
    network: Option<Network>,
    progress: bool,
}

impl Machine {
    /// The chip as it is.
    pub(crate) fn keep(&self) -> Kept {
        let Self {
            shape: _,
            profile: _,
            caching: _,
            rates: _,
            oracles: _,
            memory,
            caches,
            tags,
            cores,
            registers,
            bells,
            chance: _,
            dropped,
            // Nothing is under way to memory: `catch_up`.
            draining: _,
            waits: _,
            network,
            hazard: _,
            progress,
        } = self;
        Kept {
            memory: memory.keep(),
            caches: caches.clone(),
            tags: tags.clone(),
            cores: cores.clone(),
            registers: registers.clone(),
            bells: bells.clone(),
            dropped: dropped.clone(),
            network: network.clone(),
            progress: *progress,
        }
    }

    /// Makes this chip, fresh from a reset with the same seed, what `kept` says. Where its
    /// decisions come from is left.
    pub(crate) fn restore(&mut self, kept: &Kept) {
        self.memory.restore(&kept.memory);
        self.caches.clone_from(&kept.caches);
        self.tags.clone_from(&kept.tags);
        self.cores.clone_from(&kept.cores);
        self.registers.clone_from(&kept.registers);
        self.bells.clone_from(&kept.bells);
        self.dropped.clone_from(&kept.dropped);
        self.network.clone_from(&kept.network);
        self.progress = kept.progress;
    }
}
