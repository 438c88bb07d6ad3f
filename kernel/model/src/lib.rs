//! Which synchronization is faster: a fence of all ranks, or an epoch with some neighbours.
//!
//! A fence takes ceil(log2 p) rounds of messages among p ranks. An epoch of post, start, complete
//! and wait takes a few accesses for each of k neighbours. So a fence has a cost per number of
//! rounds, an epoch is a line, and a program that knows p and k can choose. The costs of a machine
//! are measured and fitted by `cargo xtask bench model`. Everything here is whole numbers: a rank
//! may call it anywhere.
//!
//! | call | cost |
//! |---|---|
//! | [`Costs::fence`] | that of ceil(log2 p) rounds |
//! | [`Costs::epoch`] | the epoch's line at k |
//! | [`Costs::faster`] | the kind that costs less |
//!
//! # Source
//! [foMPI] section 6: "if P_fence(p) > P_post(k) + P_complete(k) + P_start + P_wait", then PSCW.
//!
//! [foMPI]: https://doi.org/10.1145/2503210.2503286
#![no_std]

/// How ranks synchronize.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// A fence of all ranks.
    Fence,
    /// Post, start, complete and wait among neighbours.
    Pscw,
}

/// A cost that grows evenly, in any unit of time.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// At 0. It may lie below 0, as long as the line does not where it is used.
    pub base: i32,
    /// By how much it grows per step.
    pub slope: i32,
}

impl Line {
    /// The cost at `x`: at least 0.
    pub const fn at(self, x: u16) -> u64 {
        let grown = (self.slope as i64).saturating_mul(x as i64);
        let cost = grown.saturating_add(self.base as i64);
        if cost < 0 { 0 } else { cost.unsigned_abs() }
    }
}

/// Rounds of a fence whose costs are known.
pub const ROUNDS: usize = 6;

/// Costs of synchronization on a machine.
///
/// # Example
/// ```
/// use flagpost_model::{Costs, Scheme};
///
/// // A ring among 48 cores: two neighbours. All with all: 47.
/// assert_eq!(Costs::SCC.faster(48, 2), Scheme::Pscw);
/// assert_eq!(Costs::SCC.faster(48, 47), Scheme::Fence);
/// ```
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Costs {
    /// A fence of 1 round, of 2, and so on. Each further round costs as much more as the last one.
    pub fence: [u32; ROUNDS],
    /// An epoch of which a rank is origin and target, over the neighbours on each side.
    pub epoch: Line,
}

impl Costs {
    /// Core cycles of the simulated SCC, 2 to 48 cores. `cargo xtask bench model` prints both.
    pub const SCC: Self = Self {
        fence: [174, 491, 1133, 1951, 3889, 4741],
        epoch: Line {
            base: 105,
            slope: 244,
        },
    };

    /// The cost of a fence of `ranks`.
    pub const fn fence(&self, ranks: u16) -> u64 {
        let [.., before, last] = self.fence;
        let rounds = rounds(ranks) as usize;
        let step = last.saturating_sub(before) as u64;
        match self.fence.split_at_checked(rounds) {
            Some(([.., cost], _)) => *cost as u64,
            Some(([], _)) => 0,
            None => {
                let further = rounds.saturating_sub(ROUNDS) as u64;
                step.saturating_mul(further).saturating_add(last as u64)
            }
        }
    }

    /// The cost of an epoch with `neighbours` on each side.
    pub const fn epoch(&self, neighbours: u16) -> u64 {
        self.epoch.at(neighbours)
    }

    /// The faster way to synchronize with `neighbours` on each side, in a world of `ranks`.
    pub const fn faster(&self, ranks: u16, neighbours: u16) -> Scheme {
        if self.epoch(neighbours) <= self.fence(ranks) {
            Scheme::Pscw
        } else {
            Scheme::Fence
        }
    }
}

/// Rounds of a fence: ceil(log2 `ranks`).
pub const fn rounds(ranks: u16) -> u16 {
    let last = ranks.saturating_sub(1);
    u16::BITS.saturating_sub(last.leading_zeros()) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_logarithms_rounded_up() {
        let expected = [
            (0, 0),
            (1, 0),
            (2, 1),
            (3, 2),
            (4, 2),
            (5, 3),
            (48, 6),
            (64, 6),
            (65, 7),
        ];
        for (ranks, found) in expected {
            assert_eq!(rounds(ranks), found, "{ranks}");
        }
        assert_eq!(rounds(u16::MAX), 16);
    }

    #[test]
    fn fences_of_more_rounds_go_on_as_the_last_ones() {
        let costs = Costs {
            fence: [1, 2, 3, 4, 5, 10],
            ..Costs::SCC
        };
        let fences = [1, 2, 3, 64, 65, 256].map(|ranks| costs.fence(ranks));
        assert_eq!(fences, [0, 1, 2, 10, 15, 20]);
    }

    #[test]
    fn a_line_has_no_cost_below_nothing() {
        let line = Line { base: -5, slope: 2 };
        assert_eq!([0, 2, 3].map(|x| line.at(x)), [0, 0, 1]);
    }
}
