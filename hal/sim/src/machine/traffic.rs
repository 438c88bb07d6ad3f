//! What an access will move between its core and memory, told before it happens.
//!
//! Only the core itself changes its cache and its combining buffer in timed mode, so what is told
//! when the core asks still holds when the access arrives.

use super::Machine;
use crate::caching::Stores;
use crate::op::{Access, Op};

/// What has to travel for an access.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Traffic {
    /// Nothing.
    None,
    /// A word from or to this flat index.
    Word(u32),
    /// A line into the cache.
    Fetch(u32),
    /// A line, or part of one, to memory.
    Line(u32),
    /// A core's register.
    Register(u16),
    /// A core's bell.
    Bell(u16),
}

impl Machine {
    /// What has to travel for `op` of `core`; not for weak profiles.
    #[inline]
    pub(crate) fn traffic(&self, core: u16, op: &Op) -> Traffic {
        let (line, _) = self.shape.split(op.at);
        match op.access {
            Access::Load { .. } | Access::Store { .. } | Access::Atomic(_) => Traffic::Word(op.at),
            Access::Write { .. } if self.passes_the_cache(core, line) => Traffic::Word(op.at),
            Access::Read { .. } if self.caching.stores_of(core) == Stores::Uncached => {
                Traffic::Word(op.at)
            }
            Access::Write { .. } if self.passes_the_cache(core, line) => Traffic::Line(op.at),
            Access::Read { .. } | Access::Write { .. } => match self.caches.find(core, line) {
                Some(_) => Traffic::None,
                None => Traffic::Fetch(op.at),
            },
            Access::Combine { .. } => self.pushed_out(core, |buffered| buffered != line),
            Access::Empty | Access::Drain => self.pushed_out(core, |_| true),
            Access::WriteBack { len } => self.saved(self.to_write_back(core, op.at, len)),
            // What it saves of lines that were not named is not told.
            Access::Invalidate { len } if self.caching.invalidate_saves => {
                self.saved(self.first(core, op.at, len, |_| true))
            }
            Access::Message(ref message) => self.traffic_of(core, op.at, message),
            Access::TestAndSet(of) | Access::Clear(of) => Traffic::Register(of),
            Access::Ring(of) => Traffic::Bell(of),
            Access::Invalidate { .. }
            | Access::Acquire
            | Access::Early { .. }
            | Access::Cycles
            | Access::Watch { .. }
            | Access::Relax
            | Access::WaitForRing
            | Access::Spend(_)
            | Access::Network(_)
            | Access::Mark(_) => Traffic::None,
        }
    }

    /// Whether the core's cache has it.
    pub(crate) fn has_line(&self, core: u16, line: u32) -> bool {
        self.caches.find(core, line).is_some()
    }

    /// The line that an action found first, if it is dirty.
    fn saved(&self, found: Option<(usize, u32)>) -> Traffic {
        let line = found.map(|(slot, _)| self.caches.get(slot));
        let dirty = line.filter(|cached| cached.dirty);
        dirty.map_or(Traffic::None, |cached| {
            Traffic::Line(self.shape.start(cached.line))
        })
    }

    /// The combining buffer's line, if there is one and it has to go.
    pub(super) fn pushed_out(&self, core: u16, goes: impl Fn(u32) -> bool) -> Traffic {
        let combining = &self.cores[usize::from(core)].combining;
        if combining.mask != 0 && goes(combining.line) {
            Traffic::Line(self.shape.start(combining.line))
        } else {
            Traffic::None
        }
    }
}
