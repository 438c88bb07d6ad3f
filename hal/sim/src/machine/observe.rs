//! What a load finds in memory: see [`early`](super::early).

use super::Machine;
use super::early::{NEW, OLD_ANSWERS};
use crate::mask::{WORDS, word};

impl Machine {
    /// The word as a load of `core` may find it in memory, and whether that is its former value.
    #[inline]
    pub(super) fn observe(&mut self, core: u16, line: u32, index: usize) -> (u32, bool) {
        let now = word(self.memory.line(line), index);
        if !self.profile.weak() {
            return (now, false);
        }
        let early = &mut self.cores[usize::from(core)].early;
        let Some((old, changed)) = self.memory.before(core, line, index, early.since()) else {
            return (now, false);
        };
        if early.is_full() {
            early.acquire(self.memory.now());
            return (now, false);
        }
        let most = if self.chance.listed() { 1 } else { OLD_ANSWERS };
        let answers = early.entry(line * WORDS as u32 + index as u32, changed);
        if *answers < most && self.chance.coin() {
            *answers += 1;
            self.count(core).early_loads += 1;
            return (old, true);
        }
        *answers = NEW;
        (now, false)
    }

    /// Notes that `core` has read the word's newest value (E3).
    pub(super) fn know(&mut self, core: u16, line: u32, index: usize) {
        let early = &mut self.cores[usize::from(core)].early;
        if let Some((_, changed)) = self.memory.before(core, line, index, early.since()) {
            *early.entry(line * WORDS as u32 + index as u32, changed) = NEW;
        }
    }
}
