//! The sequential model: what windows hold, and which accesses of one epoch go together.

use super::{Access, What, Width};

/// How an accumulate combines.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Adds, wrapping around.
    Sum,
    /// Multiplies, wrapping around.
    Prod,
    /// The smaller one.
    Min,
    /// The larger one.
    Max,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
}

impl Operation {
    /// All: those for which the order does not count.
    pub const ALL: [Self; 7] = [
        Self::Sum,
        Self::Prod,
        Self::Min,
        Self::Max,
        Self::And,
        Self::Or,
        Self::Xor,
    ];

    /// What `old` and `new` come to.
    pub fn apply(self, old: u64, new: u64, width: Width) -> u64 {
        match self {
            Self::Sum => old.wrapping_add(new) & width.mask(),
            Self::Prod => old.wrapping_mul(new) & width.mask(),
            Self::Min => old.min(new),
            Self::Max => old.max(new),
            Self::And => old & new,
            Self::Or => old | new,
            Self::Xor => old ^ new,
        }
    }
}

/// What has been done to an element in the current phase.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// Nothing.
    Free,
    /// Somebody puts to it: nobody else may touch it.
    Put,
    /// Some read it.
    Read,
    /// Some accumulate to it.
    Accumulate(Operation),
}

impl Claim {
    /// Whether an access that claims `new` goes together with what was done before.
    pub(super) fn admits(self, new: Self) -> bool {
        match (self, new) {
            (Self::Free, _) | (Self::Read, Self::Read) => true,
            (Self::Accumulate(old), Self::Accumulate(new)) => old == new,
            _ => false,
        }
    }
}

/// One window in one phase.
pub(super) struct Board {
    /// What every element of every rank holds at the start of the phase.
    pub(super) before: Vec<Vec<u64>>,
    /// And at its end.
    pub(super) after: Vec<Vec<u64>>,
    claims: Vec<Vec<Claim>>,
}

impl Board {
    pub(super) fn new(before: &[Vec<u64>]) -> Self {
        Self {
            before: before.to_vec(),
            after: before.to_vec(),
            claims: before
                .iter()
                .map(|piece| vec![Claim::Free; piece.len()])
                .collect(),
        }
    }

    /// Claims a run of elements of `rank`'s piece, if that goes together with all before.
    pub(super) fn claim(&mut self, rank: u16, index: usize, count: usize, claim: Claim) -> bool {
        let run = &mut self.claims[usize::from(rank)][index..index + count];
        let admits = run.iter().all(|old| old.admits(claim));
        if admits {
            run.fill(claim);
        }
        admits
    }

    /// Stores to the end of the phase.
    pub(super) fn store(&mut self, rank: u16, index: usize, values: &[u64]) {
        self.after[usize::from(rank)][index..index + values.len()].copy_from_slice(values);
    }

    /// Combines the end of the phase with `values`.
    pub(super) fn combine(
        &mut self,
        rank: u16,
        index: usize,
        operation: Operation,
        values: &[u64],
        width: Width,
    ) {
        let run = &mut self.after[usize::from(rank)][index..index + values.len()];
        for (place, &value) in run.iter_mut().zip(values) {
            *place = operation.apply(*place, value, width);
        }
    }

    /// Notes in the accesses of an epoch, of each rank in its order, what those that fetch may find.
    pub(super) fn note_fetched(&self, all: &mut [Vec<&mut Access>], width: Width) {
        for rank in 0..all.len() {
            for number in 0..all[rank].len() {
                let access = &*all[rank][number];
                let What::Fetch(operation, values, _) = &access.what else {
                    continue;
                };
                let run = access.index..access.index + values.len();
                let possible = run
                    .map(|index| self.fetched(all, (rank, number), *operation, index, width))
                    .collect();
                if let What::Fetch(_, _, noted) = &mut all[rank][number].what {
                    *noted = possible;
                }
            }
        }
    }

    /// What access `number` of `rank` may find at an element; nothing, if that are too many values.
    fn fetched(
        &self,
        all: &[Vec<&mut Access>],
        (rank, number): (usize, usize),
        operation: Operation,
        index: usize,
        width: Width,
    ) -> Vec<u64> {
        const MOST: usize = 1 << 10;
        let target = all[rank][number].target;
        let mut possible = vec![self.before[usize::from(target)][index]];
        for (other, accesses) in all.iter().enumerate() {
            let to = accesses.iter().enumerate();
            for (_, access) in to.filter(|(at, _)| other != rank || *at < number) {
                let Some(value) = access.accumulates(target, index) else {
                    continue;
                };
                let then = possible
                    .iter()
                    .map(|&old| operation.apply(old, value, width));
                let then: Vec<u64> = then.collect();
                if other == rank {
                    // Its own are in order.
                    possible = then;
                } else {
                    possible.extend(then);
                }
                possible.sort_unstable();
                possible.dedup();
                if possible.len() > MOST {
                    return Vec::new();
                }
            }
        }
        possible
    }

    /// What a run holds before the phase.
    pub(super) fn read(&self, rank: u16, index: usize, count: usize) -> Vec<u64> {
        self.before[usize::from(rank)][index..index + count].to_vec()
    }
}

impl What {
    /// How many elements it is about.
    pub fn count(&self) -> usize {
        match self {
            Self::Swap(..) => 1,
            Self::Put(values)
            | Self::Get(values)
            | Self::Sieve(values)
            | Self::Accumulate(_, values)
            | Self::Fetch(_, values, _)
            | Self::Add(values)
            | Self::Stripes(values)
            | Self::Scattered(values) => values.len(),
        }
    }
}

impl Access {
    /// Whether both are about some element of the same piece.
    pub(super) fn meets(&self, other: &Self) -> bool {
        let run = |access: &Self| access.index..access.index + access.what.count();
        let (own, others) = (run(self), run(other));
        self.target == other.target && own.start < others.end && others.start < own.end
    }

    /// What it accumulates to element `index` of `target`.
    fn accumulates(&self, target: u16, index: usize) -> Option<u64> {
        let (What::Accumulate(_, values) | What::Fetch(_, values, _) | What::Add(values)) =
            &self.what
        else {
            return None;
        };
        let place = index.checked_sub(self.index)?;
        values.get(place).copied().filter(|_| self.target == target)
    }
}
