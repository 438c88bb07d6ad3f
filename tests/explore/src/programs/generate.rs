//! Programs from seeds.

use flagpost::{Model, Validation};
use flagpost_common::Dice;

use super::model::{Board, Claim};
use super::{
    Access, Between, Hold, Kind, Locked, Made, Notified, Operation, Phase, Pieces, Program, Scalar,
    Signalling, Store, Told, What,
};

/// Most phases of a program.
const PHASES: usize = 8;

/// Most accesses that are tried in a phase.
const TRIES: usize = 10;

/// Kinds of accesses: those that a notice may follow, all but sums, all.
const NOTIFIED: usize = 8;
const SHARED: usize = 9;
const ALONE: usize = 10;

/// Most notified accesses of a phase.
pub(super) const NOTICES: u32 = 6;

/// The program of `seed`.
pub fn generate(seed: u64) -> Program {
    generate_of(seed, &Scalar::ALL)
}

/// The program of `seed`, whose elements are some of these.
pub(super) fn generate_of(seed: u64, scalars: &[Scalar]) -> Program {
    let mut maker = Maker {
        dice: Dice::new(seed.wrapping_mul(0x2545_F491_4F6C_DD1D)),
        ranks: 1,
        scalar: Scalar::U8,
        attached: false,
    };
    maker.program(seed, scalars)
}

struct Maker {
    dice: Dice,
    ranks: u16,
    scalar: Scalar,
    /// The phase is on a dynamic window.
    attached: bool,
}

impl Maker {
    fn rank(&mut self) -> u16 {
        self.dice.below(usize::from(self.ranks)) as u16
    }

    fn program(&mut self, seed: u64, scalars: &[Scalar]) -> Program {
        self.ranks = [1, 2, 2, 3, 3, 4, 5][self.dice.below(7)];
        self.scalar = scalars[self.dice.below(scalars.len())];
        let all = [Signalling::Slots, Signalling::Vector, Signalling::List];
        let signalling = all[self.dice.below(3)];
        let windows: Vec<Made> = (0..1 + self.dice.below(3))
            .map(|_| Made {
                len: 1 + self.dice.below(20),
                pieces: self.pieces(),
                model: [Model::Separate, Model::Separate, Model::Unified][self.dice.below(3)],
            })
            .collect();
        let mut state: Vec<Vec<Vec<u64>>> = windows
            .iter()
            .map(|made| vec![vec![0; made.len]; usize::from(self.ranks)])
            .collect();
        let phases = (0..1 + self.dice.below(PHASES))
            .map(|_| {
                let window = self.dice.below(windows.len());
                self.attached = matches!(windows[window].pieces, Pieces::Attached { .. });
                let (kind, after) = self.phase(&state[window]);
                state[window].clone_from(&after);
                Phase {
                    window,
                    kind,
                    after,
                }
            })
            .collect();
        Program {
            seed,
            ranks: self.ranks,
            scalar: self.scalar,
            signalling,
            windows,
            phases,
        }
    }

    fn pieces(&mut self) -> Pieces {
        let validation = [Validation::Counter, Validation::Invalidation][self.dice.below(2)];
        let kept = self.dice.below(4) as u16;
        match self.dice.below(5) {
            0 | 1 => Pieces::Allocated,
            2 | 3 => Pieces::Created,
            _ => Pieces::Attached { validation, kept },
        }
    }

    fn phase(&mut self, before: &[Vec<u64>]) -> (Kind, Vec<Vec<u64>>) {
        let mut board = Board::new(before, self.scalar);
        let kind = match self.dice.below(13) {
            0 | 1 => self.local(&mut board),
            2 => Kind::Barrier,
            11 | 12 if self.attached => {
                Kind::Attach((0..self.ranks).map(|_| self.dice.one_in(2)).collect())
            }
            11 | 12 => self.collective(),
            3 | 4 => self.notify(&mut board),
            5 | 6 => self.fences(&mut board),
            7 | 8 => self.locks(&mut board),
            _ => self.pscw(&mut board),
        };
        (kind, board.after)
    }

    fn values(&mut self, count: usize) -> Vec<u64> {
        (0..count).map(|_| self.value()).collect()
    }

    /// Integers of all bits, floats that are small whole numbers.
    fn value(&mut self) -> u64 {
        match self.scalar.is_float() {
            true => {
                let mut part = || self.scalar.whole(self.dice.below(17) as i16 - 8);
                match self.scalar {
                    Scalar::Complex => part() << 32 | part(),
                    _ => part(),
                }
            }
            false => self.dice.roll() & self.scalar.mask(),
        }
    }

    /// Operands: floats are multiplied by positive ones, so that no zero gets a sign.
    fn operands(&mut self, operation: Operation, count: usize) -> Vec<u64> {
        if !(self.scalar.is_float() && operation == Operation::Prod) {
            return self.values(count);
        }
        (0..count)
            .map(|_| self.scalar.whole(1 + self.dice.below(3) as i16))
            .collect()
    }

    /// A run of elements of a piece of `len`: first and count.
    fn run(&mut self, len: usize) -> (usize, usize) {
        let index = self.dice.below(len);
        (index, 1 + self.dice.below(len - index))
    }

    fn local(&mut self, board: &mut Board) -> Kind {
        let stores = (0..self.ranks).map(|rank| {
            let mut own = Vec::new();
            for _ in 0..self.dice.below(3) {
                let (index, count) = self.run(board.before[0].len());
                let values = self.values(count);
                board.store(rank, index, &values);
                own.push(Store { index, values });
            }
            own
        });
        Kind::Local(stores.collect())
    }

    fn pscw(&mut self, board: &mut Board) -> Kind {
        let mut edges = Vec::new();
        for origin in 0..self.ranks {
            for target in 0..self.ranks {
                if self.dice.one_in(2) {
                    edges.push((origin, target));
                }
            }
        }
        let mut accesses = vec![Vec::new(); usize::from(self.ranks)];
        if !edges.is_empty() {
            for _ in 0..self.dice.below(TRIES) {
                let (origin, target) = edges[self.dice.below(edges.len())];
                if let Some(access) = self.access(board, (origin, target), SHARED) {
                    accesses[usize::from(origin)].push(access);
                }
            }
        }
        self.note_fetched(board, &mut accesses);
        let exposed = (0..self.ranks).map(|rank| {
            let all = accesses.iter().flatten();
            let to = all.filter(|access| access.target == rank);
            let runs = to.map(|access| access.index..access.index + access.what.count());
            let hull = runs.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end));
            (!self.attached && self.dice.one_in(2)).then(|| hull.unwrap_or(0..0))
        });
        let exposed = exposed.collect();
        Kind::Pscw {
            edges,
            accesses,
            exposed,
        }
    }

    /// All ranks, and no window.
    fn collective(&mut self) -> Kind {
        let (ranks, count) = (usize::from(self.ranks), self.dice.below(7));
        match self.dice.below(4) {
            0 => Kind::Broadcast {
                root: self.rank(),
                values: self.values(count),
            },
            1 => Kind::Exchange((0..ranks).map(|_| self.values(count * ranks)).collect()),
            which => {
                let operation = self.operation();
                let values = (0..ranks).map(|_| self.operands(operation, count));
                let values: Vec<Vec<u64>> = values.collect();
                let mut result = values[0].clone();
                for more in &values[1..] {
                    for (all, one) in result.iter_mut().zip(more) {
                        *all = operation.apply(*all, *one, self.scalar);
                    }
                }
                Kind::Reduce {
                    operation,
                    root: (which == 2).then(|| self.rank()),
                    values,
                    result,
                }
            }
        }
    }

    /// One for which the order does not count.
    fn operation(&mut self) -> Operation {
        let all = self.scalar.operations();
        all[self.dice.below(all.len())]
    }

    /// One of these, or one that replaces; or, for what fetches, none.
    fn accumulates(&mut self, fetches: bool) -> Operation {
        match self.dice.below(8) {
            0 => Operation::Replace,
            1 if fetches => Operation::NoOp,
            _ => self.operation(),
        }
    }

    /// An access of `origin` to `target` that goes together with all before.
    fn access(
        &mut self,
        board: &mut Board,
        (origin, target): (u16, u16),
        kinds: usize,
    ) -> Option<Access> {
        let (index, mut count) = self.run(board.before[0].len());
        let (claim, what) = match self.dice.below(kinds) {
            0 => (Claim::Put, What::Put(self.values(count))),
            1 => (Claim::Put, What::Stripes(self.values(count))),
            2 | 3 => (Claim::Read, What::Get(board.read(target, index, count))),
            kind @ (4 | 5) => {
                let fetches = kind == 5;
                let operation = self.accumulates(fetches);
                let values = self.operands(operation, count);
                let claim = match operation {
                    Operation::Replace => Claim::Replace(origin),
                    _ => Claim::Accumulate(operation),
                };
                let what = match fetches {
                    true => What::Fetch(operation, values, Vec::new()),
                    false => What::Accumulate(operation, values),
                };
                (claim, what)
            }
            6 => (Claim::Put, What::Scattered(self.values(count))),
            8 if self.scalar.is_integer() => {
                count = 1;
                let found = board.before[usize::from(target)][index];
                let other = self.values(2);
                let expected = if self.dice.one_in(2) { found } else { other[0] };
                (Claim::Put, What::Swap(expected, other[1], found))
            }
            7 | 8 => {
                let mut found = board.read(target, index, count);
                found
                    .iter_mut()
                    .skip(1)
                    .step_by(2)
                    .for_each(|left| *left = 0);
                (Claim::Read, What::Sieve(found))
            }
            _ if !self.scalar.operations().contains(&Operation::Sum) => return None,
            _ => (
                Claim::Accumulate(Operation::Sum),
                What::Add(self.values(count)),
            ),
        };
        let is_exact = match &what {
            What::Accumulate(operation, values) | What::Fetch(operation, values, _) => {
                board.stays_exact(target, index, *operation, values)
            }
            What::Add(values) => board.stays_exact(target, index, Operation::Sum, values),
            _ => true,
        };
        if !(is_exact && board.claim(target, index, count, claim)) {
            return None;
        }
        match &what {
            What::Get(_) | What::Sieve(_) => {}
            What::Put(values) => board.store(target, index, values),
            What::Swap(expected, new, found) if expected == found => {
                board.store(target, index, &[*new]);
            }
            What::Swap(..) => {}
            What::Stripes(values) | What::Scattered(values) => {
                for (place, value) in values.iter().enumerate().step_by(2) {
                    board.store(target, index + place, &[*value]);
                }
            }
            What::Accumulate(operation, values) | What::Fetch(operation, values, _) => {
                board.combine(target, index, *operation, values);
            }
            What::Add(values) => board.combine(target, index, Operation::Sum, values),
        }
        Some(Access {
            target,
            index,
            what,
            request: self.dice.one_in(2),
            turned: self.dice.one_in(3),
        })
    }

    fn note_fetched(&self, board: &Board, accesses: &mut [Vec<Access>]) {
        let ranks = accesses.iter_mut();
        let mut all: Vec<Vec<&mut Access>> = ranks.map(|own| own.iter_mut().collect()).collect();
        board.note_fetched(&mut all);
    }

    /// Accesses of all ranks to all ranks.
    fn anywhere(&mut self, board: &mut Board) -> Vec<Vec<Access>> {
        let mut accesses = vec![Vec::new(); usize::from(self.ranks)];
        for _ in 0..self.dice.below(TRIES) {
            let (origin, target) = (self.rank(), self.rank());
            if let Some(access) = self.access(board, (origin, target), SHARED) {
                accesses[usize::from(origin)].push(access);
            }
        }
        accesses
    }

    fn fences(&mut self, board: &mut Board) -> Kind {
        let mut all = Vec::new();
        for _ in 0..1 + self.dice.below(3) {
            let mut next = Board::new(&board.after, self.scalar);
            let closed = self.dice.one_in(4);
            let mut accesses = match closed {
                true => vec![Vec::new(); usize::from(self.ranks)],
                false => self.anywhere(&mut next),
            };
            self.note_fetched(&next, &mut accesses);
            let changed = |access: &Access| match access.what {
                What::Get(_) | What::Sieve(_) => None,
                _ => Some(access.target),
            };
            let put: Vec<u16> = accesses.iter().flatten().filter_map(changed).collect();
            let no_put = (0..self.ranks).map(|rank| !put.contains(&rank) && self.dice.one_in(2));
            let no_put: Vec<bool> = no_put.collect();
            let ranks = (0..self.ranks).zip(&no_put);
            let mut stores = vec![Vec::new(); usize::from(self.ranks)];
            for (rank, _) in ranks.filter(|&(_, no_put)| closed || *no_put) {
                let (index, count) = self.run(next.before[0].len());
                if self.dice.one_in(2) && next.claim(rank, index, count, Claim::Put) {
                    let values = self.values(count);
                    next.store(rank, index, &values);
                    stores[usize::from(rank)].push(Store { index, values });
                }
            }
            board.after.clone_from(&next.after);
            all.push(Between {
                accesses,
                after: next.after,
                no_put,
                closed,
                stores,
            });
        }
        Kind::Fences(all)
    }

    fn locks(&mut self, board: &mut Board) -> Kind {
        let mut all = vec![Vec::new(); usize::from(self.ranks)];
        for _ in 0..self.dice.below(TRIES) {
            let (origin, target) = (self.rank(), self.rank());
            let holds = [Hold::Shared, Hold::Exclusive, Hold::Queued, Hold::All];
            let hold = holds[self.dice.below(4)];
            let kinds = match hold {
                Hold::Exclusive | Hold::Queued => ALONE,
                Hold::Shared | Hold::All => SHARED,
            };
            let mut accesses = Vec::new();
            for _ in 0..1 + self.dice.below(2) {
                accesses.extend(self.access(board, (origin, target), kinds));
            }
            let flush = self.dice.one_in(2);
            all[usize::from(origin)].push(Locked {
                target,
                hold,
                accesses,
                flush,
            });
        }
        // The own ones of all its locks, one behind the other.
        let mut accesses: Vec<Vec<&mut Access>> = Vec::new();
        for locks in &mut all {
            accesses.push(
                locks
                    .iter_mut()
                    .flat_map(|locked| &mut locked.accesses)
                    .collect(),
            );
        }
        board.note_fetched(&mut accesses);
        Kind::Locks(all)
    }

    fn notify(&mut self, board: &mut Board) -> Kind {
        let mut all: Vec<Notified> = Vec::new();
        for number in 0..self.dice.below(NOTICES as usize + 1) as u32 {
            let (origin, target) = (self.rank(), self.rank());
            // A window has few places for started requests.
            let taken = all.iter().filter(|one| one.access.target == target);
            if taken.count() < 4
                && let Some(access) = self.access(board, (origin, target), NOTIFIED)
            {
                let notices = [Told::Tag, Told::Named, Told::Count, Told::Set, Told::Event];
                all.push(Notified {
                    origin,
                    access,
                    number,
                    notice: notices[self.dice.below(notices.len())],
                });
            }
        }
        let mut accesses: Vec<Vec<&mut Access>> = (0..self.ranks).map(|_| Vec::new()).collect();
        for Notified { origin, access, .. } in &mut all {
            accesses[usize::from(*origin)].push(access);
        }
        board.note_fetched(&mut accesses);
        Kind::Notify {
            all,
            any: self.dice.one_in(2),
            late: self.dice.below(4) as u32,
        }
    }
}
