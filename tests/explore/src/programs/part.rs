//! One rank's part of one phase, whatever kind of window it is on.

use std::ops::Range;
use std::slice;

use flagpost::{
    Link, Rank, Rma, Source, Tag, World,
    epoch::{Assert, Fence},
};

use super::pieces::{Element, Windowed, elements, values_of};
use super::wrong::Wrong;
use super::{Access, Between, Hold, Kind, Locked, Notified, Phase, Store, What};

/// One rank in one phase.
pub(super) struct Part<'a, 'w, W, L> {
    world: &'w World<'w, L>,
    pieces: &'a W,
    number: usize,
    phase: &'a Phase,
}

impl<'a, 'w, W, L> Part<'a, 'w, W, L> {
    pub(super) fn new(
        world: &'w World<'w, L>,
        pieces: &'a W,
        number: usize,
        phase: &'a Phase,
    ) -> Self {
        Self {
            world,
            pieces,
            number,
            phase,
        }
    }
}

impl<'w, L: Link, W: Windowed<'w, L>> Part<'_, 'w, W, L> {
    pub(super) fn run(&self) -> Result<(), Wrong> {
        let own = self.world.rank().index();
        match &self.phase.kind {
            Kind::Local(stores) => {
                for Store { index, values } in &stores[own] {
                    self.pieces.store(*index, values)?;
                }
            }
            Kind::Pscw {
                edges,
                accesses,
                exposed,
            } => self.pscw(edges, &accesses[own], exposed[own].clone())?,
            Kind::Fences(all) => self.fences(all)?,
            Kind::Locks(all) => self.locks(&all[own])?,
            Kind::Notify(puts) => self.notify(puts)?,
            Kind::Barrier => self.world.barrier()?,
            Kind::Attach(again) => self.pieces.attach_again(self.world, again)?,
            Kind::Reduce { .. } | Kind::Broadcast { .. } | Kind::Exchange(_) => {
                self.collective(own)?;
            }
        }
        self.settled(&self.phase.after)
    }

    /// Compares the own piece with what it must hold.
    fn settled(&self, all: &[Vec<u64>]) -> Result<(), Wrong> {
        let expected = &all[self.world.rank().index()];
        self.compare(0, &self.pieces.load(expected.len())?, expected)
    }

    fn compare(&self, first: usize, found: &[u64], expected: &[u64]) -> Result<(), Wrong> {
        self.is_possible(first, found, expected.iter().map(slice::from_ref))
    }

    /// Compares elements with all that each may be; nothing, if that are too many values.
    fn is_possible<'p>(
        &self,
        first: usize,
        found: &[u64],
        possible: impl IntoIterator<Item = &'p [u64]>,
    ) -> Result<(), Wrong> {
        for (index, (found, possible)) in found.iter().zip(possible).enumerate() {
            if let Some(&expected) = possible.first()
                && !possible.contains(found)
            {
                return Err(Wrong::Element {
                    phase: self.number,
                    index: first + index,
                    found: *found,
                    expected,
                });
            }
        }
        Ok(())
    }

    fn collective(&self, own: usize) -> Result<(), Wrong> {
        match &self.phase.kind {
            Kind::Reduce {
                operation,
                root,
                values,
                result,
            } => {
                let operation = W::Element::operation(*operation);
                let combine = |a, b| operation.apply(a, b);
                let mut data = elements::<W::Element>(&values[own]);
                match root {
                    Some(root) => {
                        self.world.reduce(Rank::new(*root), &mut data, combine)?;
                        if usize::from(*root) != own {
                            return Ok(());
                        }
                    }
                    None => {
                        let mut scan = data.clone();
                        self.world.allreduce(&mut data, combine)?;
                        self.world.scan(&mut scan, combine)?;
                        if own + 1 == values.len() {
                            self.compare(0, &values_of(&scan), result)?;
                        }
                    }
                }
                self.compare(0, &values_of(&data), result)
            }
            Kind::Broadcast { root, values } => {
                let mut data = if usize::from(*root) == own {
                    elements::<W::Element>(values)
                } else {
                    vec![W::Element::of(0); values.len()]
                };
                self.world.broadcast(Rank::new(*root), &mut data)?;
                self.compare(0, &values_of(&data), values)
            }
            Kind::Exchange(blocks) => {
                let from = elements::<W::Element>(&blocks[own]);
                let mut into = vec![W::Element::of(0); from.len()];
                let count = from.len() / blocks.len();
                if count.is_multiple_of(2) {
                    self.world.alltoall(&from, &mut into)?;
                } else {
                    let from: Vec<_> = from.chunks(count).collect();
                    let mut into: Vec<_> = into.chunks_mut(count).collect();
                    self.world.alltoall_uneven(&from, &mut into)?;
                }
                let to_this = |all: &Vec<u64>| all[own * count..(own + 1) * count].to_vec();
                let expected: Vec<u64> = blocks.iter().flat_map(to_this).collect();
                self.compare(0, &values_of(&into), &expected)
            }
            _ => Ok(()),
        }
    }

    fn pscw(
        &self,
        edges: &[(u16, u16)],
        accesses: &[Access],
        exposed: Option<Range<usize>>,
    ) -> Result<(), Wrong> {
        let (own, window) = (self.world.rank().get(), self.pieces.window());
        let ranks = |which: &dyn Fn(&(u16, u16)) -> Option<u16>| -> Vec<Rank> {
            edges.iter().filter_map(which).map(Rank::new).collect()
        };
        let origins = ranks(&|&(origin, target)| (target == own).then_some(origin));
        let targets = ranks(&|&(origin, target)| (origin == own).then_some(target));
        let (origins, targets) = (self.world.group(&origins)?, self.world.group(&targets)?);
        let exposure = if origins.ranks().is_empty() {
            None
        } else {
            Some(match exposed {
                Some(range) => window.post_range(range, &origins)?,
                None => window.post(&origins)?,
            })
        };
        if !targets.ranks().is_empty() {
            let access = window.start(&targets)?;
            self.accesses(&access, accesses)?;
            access.complete()?;
        }
        if let Some(exposure) = exposure {
            exposure.wait()?;
        }
        Ok(())
    }

    /// Carries out accesses of an epoch, and compares what they bring.
    fn accesses<R>(&self, epoch: &R, accesses: &[Access]) -> Result<(), Wrong>
    where
        R: Rma<'w, W::Unit, L>,
        L: 'w,
    {
        let found = self.pieces.accesses(epoch, accesses)?;
        for (Access { index, what, .. }, found) in accesses.iter().zip(&found) {
            match what {
                What::Get(expected) | What::Sieve(expected) => {
                    self.compare(*index, found, expected)?
                }
                What::Fetch(_, _, possible) => {
                    self.is_possible(*index, found, possible.iter().map(Vec::as_slice))?;
                }
                What::Swap(_, _, there) => self.compare(*index, found, slice::from_ref(there))?,
                _ => {}
            }
        }
        Ok(())
    }

    fn fences(&self, all: &[Between]) -> Result<(), Wrong> {
        let own = self.world.rank().index();
        let when = |is: bool, assert: Assert| if is { assert } else { Assert::empty() };
        let assert = |between: &Between| {
            when(between.no_put[own], Assert::NO_PUT) | when(between.closed, Assert::NO_SUCCEED)
        };
        let Some((first, rest)) = all.split_first() else {
            return Ok(());
        };
        // Nobody has accessed anything since the last phase: some say so.
        let says_so = self.number.is_multiple_of(2);
        let opening = when(says_so, Assert::NO_PRECEDE);
        let mut epoch = self.pieces.window().fence(assert(first) | opening)?;
        self.between(&epoch, first)?;
        let mut last = first;
        for next in rest {
            let nothing = when(last.stores[own].is_empty(), Assert::NO_STORE)
                | when(last.closed && says_so, Assert::NO_PRECEDE);
            epoch = epoch.fence(assert(next) | nothing)?;
            self.between(&epoch, next)?;
            last = next;
        }
        epoch.end()?;
        self.settled(&last.after)
    }

    fn between(&self, epoch: &Fence<'_, 'w, W::Unit, L>, between: &Between) -> Result<(), Wrong> {
        let own = self.world.rank().index();
        for Store { index, values } in &between.stores[own] {
            self.pieces.store(*index, values)?;
        }
        self.accesses(epoch, &between.accesses[own])
    }

    fn locks(&self, all: &[Locked]) -> Result<(), Wrong> {
        self.pieces.window().sync()?;
        self.world.barrier()?;
        for locked in all {
            let target = Rank::new(locked.target);
            let lock = match locked.hold {
                Hold::Shared => self.pieces.window().lock_shared(target)?,
                Hold::Exclusive => self.pieces.window().lock_exclusive(target)?,
                Hold::Queued => self.pieces.window().lock_queued(target)?,
                Hold::All => self.pieces.window().lock_all()?,
            };
            for access in &locked.accesses {
                self.accesses(&lock, slice::from_ref(access))?;
                // The next one may get what this one has put.
                if matches!(access.what, What::Add(_)) {
                    lock.flush(target)?;
                }
            }
            if locked.flush {
                lock.flush(target)?;
            }
            lock.unlock()?;
        }
        self.world.barrier()?;
        Ok(self.pieces.window().sync()?)
    }

    fn notify(&self, puts: &[Notified]) -> Result<(), Wrong> {
        let own = self.world.rank().get();
        let mut requests = Vec::new();
        for put in puts.iter().filter(|put| put.target == own) {
            let range = put.store.index..put.store.index + put.store.values.len();
            let origin = Rank::new(put.origin);
            let source = if put.named {
                origin.into()
            } else {
                Source::Any
            };
            let mut request = self
                .pieces
                .window()
                .expect(range, Tag(put.tag))?
                .from(source)?;
            request.start()?;
            requests.push((request, origin));
        }
        // Nobody puts before the lines are ready for it.
        self.world.barrier()?;
        for put in puts.iter().filter(|put| put.origin == own) {
            let values = elements::<W::Unit>(&put.store.values);
            let (target, tag) = (Rank::new(put.target), Tag(put.tag));
            self.pieces
                .window()
                .put_notify(target, put.store.index, &values, tag)?;
        }
        for (mut request, origin) in requests {
            let status = request.wait()?;
            if status.source != origin {
                return Err(Wrong::Source(status.source));
            }
        }
        Ok(())
    }
}
