//! Credits: how many small puts to a rank go before the completion of one is read.
//!
//! A small put may be *injected*: the provider keeps a copy, and no completion tells of it. One of
//! [`MARKED`] is not: it has a completion, and once that is read all puts before it have left. So
//! the rank has all its credits again.
//!
//! # Bounds
//! [`CREDITS`] small puts after the last one whose completion was read.

use std::cell::Cell;

/// Of how many small puts to a rank one has a completion.
const MARKED: u32 = 256;

/// How many small puts follow the last one whose completion was read, at most.
const CREDITS: u32 = 4 * MARKED - 1;

/// What a rank may put to another before a completion is read.
#[derive(Debug)]
pub(super) struct Credits(Cell<u32>);

impl Credits {
    pub(super) const fn new() -> Self {
        Self(Cell::new(CREDITS))
    }

    /// Whether the next small put may be injected. Else it has a completion, if there
    /// [`are any`](Self::are_spent) credits.
    #[inline(always)]
    pub(super) fn inject(&self) -> bool {
        !self.0.get().is_multiple_of(MARKED)
    }

    /// Whether no small put may go before a completion is read.
    pub(super) fn are_spent(&self) -> bool {
        self.0.get() == 0
    }

    /// A small put has gone.
    #[inline(always)]
    pub(super) fn spend(&self) {
        self.0.set(self.0.get().saturating_sub(1));
    }

    /// The completion of a put was read.
    pub(super) fn come_back(&self) {
        self.0.set(CREDITS);
    }

    /// There are none from now on.
    pub(super) fn end(&self) {
        self.0.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Small puts until no more may go: how many are injected, and how many have a completion.
    fn puts(credits: &Credits) -> (u32, u32) {
        let (mut injected, mut marked) = (0, 0);
        while !credits.are_spent() && injected + marked < 10_000 {
            match credits.inject() {
                true => injected += 1,
                false => marked += 1,
            }
            credits.spend();
        }
        assert!(!credits.inject(), "nor may one be injected");
        (injected, marked)
    }

    #[test]
    fn there_are_as_many_also_after_they_came_back() {
        let credits = Credits::new();
        for _ in 0..3 {
            assert_eq!(puts(&credits), (1020, 3));
            credits.come_back();
        }
        // Not more than all, though not all were spent.
        credits.spend();
        credits.come_back();
        credits.come_back();
        assert_eq!(puts(&credits), (1020, 3));
    }

    #[test]
    fn a_rank_to_which_puts_fail_has_none() {
        let credits = Credits::new();
        credits.end();
        assert_eq!(puts(&credits), (0, 0));
        credits.spend();
        assert_eq!(puts(&credits), (0, 0));
    }
}
