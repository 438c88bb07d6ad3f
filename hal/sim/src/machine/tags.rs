//! Which lines are message data.

use std::collections::HashSet;

/// Which lines which cores map as message data, as far as they have loaded them.
#[derive(Clone)]
pub(super) struct Tags(HashSet<(u16, u32)>);

impl Tags {
    pub(super) fn new() -> Self {
        Self(HashSet::new())
    }

    /// `core` maps `line` so.
    pub(super) fn insert(&mut self, core: u16, line: u32) {
        self.0.insert((core, line));
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Whether nobody maps anything as message data: so it is on most chips, which ask at every
    /// arrival.
    pub(super) fn none(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn has(&self, core: u16, line: u32) -> bool {
        !self.none() && self.0.contains(&(core, line))
    }
}
