//! Which synchronization is faster: a fence of all ranks, or an epoch with some neighbours.
//!
//! A fence takes ceil(log2 p) rounds of messages among p ranks. The last round costs less if few
//! ranks more than a power of two take part. An epoch of post, start, complete and wait takes a few
//! accesses for each of k neighbours. So a fence has a cost per half round, an epoch is a line, and
//! a program that knows p and k can choose. The costs of a machine are measured and fitted by
//! `cargo xtask bench model`. Everything here is whole numbers: a rank may call it anywhere.
//!
//! | call | cost |
//! |---|---|
//! | [`Costs::fence`] | that of as many [half rounds](steps) |
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

/// Half rounds of a fence whose costs are known: up to 48 ranks.
pub const STEPS: usize = 10;

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
    /// A fence of up to 2 ranks, 3, 4, 6, 8, 12, 16 and so on: by half rounds. Further ones cost as
    /// much more as the last one.
    pub fence: [u32; STEPS],
    /// An epoch of which a rank is origin and target, over the neighbours on each side.
    pub epoch: Line,
}

impl Costs {
    /// Core cycles of the simulated SCC, 2 to 48 cores. `cargo xtask bench model` prints both.
    pub const SCC: Self = Self {
        fence: [174, 394, 617, 1110, 1162, 1520, 2376, 3814, 3975, 4769],
        epoch: Line {
            base: 108,
            slope: 235,
        },
    };

    /// The cost of a fence of `ranks`.
    pub const fn fence(&self, ranks: u16) -> u64 {
        let [.., before, last] = self.fence;
        let steps = steps(ranks) as usize;
        match self.fence.split_at_checked(steps) {
            Some(([.., cost], _)) => *cost as u64,
            Some(([], _)) => 0,
            None => {
                let further = steps.saturating_sub(STEPS) as u64;
                let step = last.saturating_sub(before) as u64;
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

/// Half rounds of a fence of `ranks`. A round counts as two; but the first one, which only two
/// ranks need, as one. So does the last one, if it brings no more than half as many ranks again.
pub const fn steps(ranks: u16) -> u16 {
    let last = ranks.saturating_sub(1);
    match last.checked_ilog2() {
        None => 0,
        Some(0) => 1,
        Some(whole) => {
            // The bit after the highest one: set if it brings more.
            let half = last.wrapping_shr(whole.saturating_sub(1)) & 1;
            (whole as u16).saturating_mul(2).saturating_add(half)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_rounds_end_at_powers_of_two_and_half_as_much_again() {
        let ends = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96];
        for (step, two) in (1..).zip(ends.windows(2)) {
            for ranks in two[0] + 1..=two[1] {
                assert_eq!(steps(ranks), step, "{ranks}");
            }
        }
        assert_eq!([0, 1, u16::MAX].map(steps), [0, 0, 31]);
    }

    #[test]
    fn fences_of_more_rounds_go_on_as_the_last_ones() {
        let costs = Costs {
            fence: [1, 2, 3, 4, 5, 6, 7, 8, 9, 12],
            ..Costs::SCC
        };
        let fences = [1, 2, 3, 48, 64, 96].map(|ranks| costs.fence(ranks));
        assert_eq!(fences, [0, 1, 2, 12, 15, 18]);
    }

    #[test]
    fn a_line_has_no_cost_below_nothing() {
        let line = Line { base: -5, slope: 2 };
        assert_eq!([0, 2, 3].map(|x| line.at(x)), [0, 0, 1]);
    }
}
