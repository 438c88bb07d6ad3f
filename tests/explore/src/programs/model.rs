//! The sequential model: what windows hold, and which accesses of one epoch go together.

use super::{Access, Operation, Scalar, What};

/// What has been done to an element in the current phase.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// Nothing.
    Free,
    /// Somebody puts to it: nobody else may touch it.
    Put,
    /// Some read it.
    Read,
    /// Some accumulate to it in this way, or only fetch.
    Accumulate(Operation),
    /// This rank replaces it by accumulates; others only fetch.
    Replace(u16),
}

impl Claim {
    /// What stands for both, if an access that claims `new` goes together with what was done
    /// before.
    fn with(self, new: Self) -> Option<Self> {
        const FETCH: Claim = Claim::Accumulate(Operation::NoOp);
        match (self, new) {
            (Self::Free, _) => Some(new),
            (Self::Put, _) | (_, Self::Put) => None,
            (old, new) if old == new => Some(old),
            (FETCH, Self::Accumulate(_) | Self::Replace(_)) => Some(new),
            (Self::Accumulate(_) | Self::Replace(_), FETCH) => Some(self),
            _ => None,
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
    /// How large floats may get on the way, in whatever order.
    sizes: Vec<Vec<f64>>,
    scalar: Scalar,
}

impl Board {
    pub(super) fn new(before: &[Vec<u64>], scalar: Scalar) -> Self {
        let size = |&value: &u64| scalar.size(value);
        let sizes = before.iter().map(|piece| piece.iter().map(size).collect());
        Self {
            before: before.to_vec(),
            after: before.to_vec(),
            claims: before
                .iter()
                .map(|piece| vec![Claim::Free; piece.len()])
                .collect(),
            sizes: sizes.collect(),
            scalar,
        }
    }

    /// Claims a run of elements of `rank`'s piece, if that goes together with all before.
    pub(super) fn claim(&mut self, rank: u16, index: usize, count: usize, claim: Claim) -> bool {
        let run = &mut self.claims[usize::from(rank)][index..index + count];
        let both: Option<Vec<Claim>> = run.iter().map(|old| old.with(claim)).collect();
        if let Some(both) = &both {
            run.copy_from_slice(both);
        }
        both.is_some()
    }

    /// Whether floats stay exact if `values` are combined with them.
    pub(super) fn stays_exact(
        &self,
        rank: u16,
        index: usize,
        operation: Operation,
        values: &[u64],
    ) -> bool {
        let sizes = &self.sizes[usize::from(rank)][index..];
        let mut all = sizes.iter().zip(values);
        all.all(|(&size, &value)| self.grown(size, operation, value) <= self.scalar.exact())
    }

    /// How large a float of at most this size gets.
    fn grown(&self, size: f64, operation: Operation, value: u64) -> f64 {
        let more = self.scalar.size(value);
        match operation {
            Operation::Sum => size + more,
            Operation::Prod => size * more.max(1.0),
            _ => size.max(more),
        }
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
    ) {
        let rank = usize::from(rank);
        for (index, &value) in (index..).zip(values) {
            let place = &mut self.after[rank][index];
            *place = operation.apply(*place, value, self.scalar);
            self.sizes[rank][index] = self.grown(self.sizes[rank][index], operation, value);
        }
    }

    /// Notes in the accesses of an epoch, of each rank in its order, what those that fetch may
    /// find.
    pub(super) fn note_fetched(&self, all: &mut [Vec<&mut Access>]) {
        for rank in 0..all.len() {
            for number in 0..all[rank].len() {
                let access = &*all[rank][number];
                let What::Fetch(_, values, _) = &access.what else {
                    continue;
                };
                let run = access.index..access.index + values.len();
                let possible = run
                    .map(|index| self.fetched(all, (rank, number), index))
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
        index: usize,
    ) -> Vec<u64> {
        const MOST: usize = 1 << 10;
        let target = all[rank][number].target;
        let mut possible = vec![self.before[usize::from(target)][index]];
        for (other, accesses) in all.iter().enumerate() {
            let to = accesses.iter().enumerate();
            for (_, access) in to.filter(|(at, _)| other != rank || *at < number) {
                let Some((operation, value)) = access.accumulates(target, index) else {
                    continue;
                };
                let then = possible
                    .iter()
                    .map(|&old| operation.apply(old, value, self.scalar));
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

    /// What it accumulates to element `index` of `target`, and how.
    fn accumulates(&self, target: u16, index: usize) -> Option<(Operation, u64)> {
        let (operation, values) = match &self.what {
            What::Accumulate(operation, values) | What::Fetch(operation, values, _) => {
                (*operation, values)
            }
            What::Add(values) => (Operation::Sum, values),
            _ => return None,
        };
        let place = index.checked_sub(self.index)?;
        let value = values.get(place).filter(|_| self.target == target)?;
        Some((operation, *value))
    }
}
