//! How much of a stack is used: it is painted, and what has lost its paint was used.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The words of a stack that were free at the start, lowest first.
#[derive(Copy, Clone)]
pub(crate) struct Stack(&'static [AtomicU32]);

/// Not a number that programs leave on a stack.
const PAINT: u32 = 0x5AFE_57AC;

/// Words that must keep their paint: a function that used the last of them may have gone on below.
const CANARY: usize = 8;

impl Stack {
    pub(crate) fn paint(words: &'static [AtomicU32]) -> Self {
        words.iter().for_each(|word| word.store(PAINT, Relaxed));
        Self(words)
    }

    /// Bytes that were used, at most.
    pub(crate) fn used(self) -> usize {
        let painted = self.0.iter().take_while(|word| word.load(Relaxed) == PAINT);
        self.size().saturating_sub(4 * painted.count())
    }

    /// Bytes there are.
    pub(crate) fn size(self) -> usize {
        4 * self.0.len()
    }

    /// Whether the lowest words have kept their paint. They have it again after that, for the next
    /// case.
    pub(crate) fn was_whole(self) -> bool {
        let lowest = || self.0.iter().take(CANARY);
        let whole = lowest().all(|word| word.load(Relaxed) == PAINT);
        lowest().for_each(|word| word.store(PAINT, Relaxed));
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static WORDS: [AtomicU32; 64] = [const { AtomicU32::new(0) }; 64];

    #[test]
    fn what_was_used_is_what_has_lost_its_paint() {
        let stack = Stack::paint(&WORDS);
        assert_eq!((stack.used(), stack.size()), (0, 256));
        WORDS[40].store(1, Relaxed);
        WORDS[50].store(1, Relaxed);
        assert_eq!(stack.used(), 24 * 4);
        assert!(stack.was_whole());
        WORDS[7].store(1, Relaxed);
        assert_eq!([stack.was_whole(), stack.was_whole()], [false, true]);
        let unknown = Stack::paint(&[]);
        assert!(unknown.was_whole() && unknown.used() == 0);
    }
}
