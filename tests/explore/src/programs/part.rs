//! One rank's part of one phase, whatever kind of window it is on.

use std::ops::Range;
use std::slice;

use flagpost::{
    Budget, Complete, Counter, Error, Events, Link, Notice, Rank, Rma, Signal, Status, Tag, World,
    epoch::{Assert, Fence},
    notify::AnyWord,
    wait_all, wait_any,
};

use super::element::{Element, elements, values_of};
use super::pieces::Windowed;
use super::wrong::Wrong;
use super::{Access, Between, Hold, Kind, Locked, Notified, Phase, Store, Told, What};

/// One rank in one phase.
pub(super) struct Part<'a, 'w, W, L> {
    world: &'w World<'w, L>,
    events: &'a Events<'w, L>,
    pieces: &'a W,
    number: usize,
    phase: &'a Phase,
}

impl<'a, 'w, W, L> Part<'a, 'w, W, L> {
    pub(super) fn new(
        (world, events): (&'w World<'w, L>, &'a Events<'w, L>),
        pieces: &'a W,
        number: usize,
        phase: &'a Phase,
    ) -> Self {
        Self {
            world,
            events,
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
            Kind::Notify { all, any, late } => self.notify(all, *any, *late)?,
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
        self.brought(accesses, &found)
    }

    /// Compares what accesses have brought.
    fn brought<'p>(
        &self,
        accesses: impl IntoIterator<Item = &'p Access>,
        found: &[Vec<u64>],
    ) -> Result<(), Wrong> {
        for (Access { index, what, .. }, found) in accesses.into_iter().zip(found) {
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

    fn notify(&self, all: &[Notified], any: bool, late: u32) -> Result<(), Wrong> {
        let own = self.world.rank().get();
        let window = self.pieces.window();
        let (mut tagged, mut words) = (Vec::new(), Vec::new());
        for Notified {
            origin,
            access,
            number,
            notice,
        } in all.iter().filter(|one| one.access.target == own)
        {
            let range = access.index..access.index + access.what.count();
            let origin = Rank::new(*origin);
            let word: AnyWord<'_> = match notice {
                Told::Tag | Told::Named => {
                    let mut request = self.pieces.expect(range, Tag(*number))?;
                    if *notice == Told::Named {
                        request = request.from(origin)?;
                    }
                    request.start()?;
                    tagged.push((request, origin));
                    continue;
                }
                Told::Count => Counter(*number).into(),
                Told::Set => Signal(*number).into(),
                Told::Event => self.events.event(*number)?.into(),
            };
            if *notice != Told::Event {
                window.reset_notify_value(Counter(*number))?;
            }
            let mut request = self.pieces.expect_word(range, word)?;
            request.start()?;
            words.push(request);
        }
        // Nobody accesses anything before the lines are ready for it.
        self.world.barrier()?;
        let mut accesses = Vec::new();
        for one in all.iter().filter(|one| one.origin == own) {
            let notice: Notice<'_, L::Word> = match one.notice {
                Told::Tag | Told::Named => Tag(one.number).into(),
                Told::Count => Counter(one.number).into(),
                Told::Set => Signal(one.number).set(1.into()),
                Told::Event => self.events.event(one.number)?.into(),
            };
            accesses.push((&one.access, notice));
        }
        let found = self.pieces.notified(&accesses, |requests| {
            let mut open: Vec<&mut dyn Complete<'_, L>> = Vec::new();
            open.extend(words.iter_mut().map(|one| one as &mut dyn Complete<'_, L>));
            open.extend(requests.iter_mut().map(|one| one as _));
            open.extend(tagged.iter_mut().map(|(one, _)| one as _));
            self.wait(&mut open, any, late)
        })?;
        self.brought(accesses.iter().map(|(access, _)| *access), &found)?;
        for (request, origin) in tagged {
            if let Some(Status { source, .. }) = request.status()
                && source != origin
            {
                return Err(Wrong::Source(source));
            }
        }
        Ok(())
    }

    /// Waits for requests of all kinds.
    fn wait<'s>(
        &self,
        open: &mut [&mut dyn Complete<'s, L>],
        any: bool,
        mut late: u32,
    ) -> Result<(), Wrong>
    where
        L: 's,
    {
        loop {
            let mut wait = || match any {
                true => wait_any(open),
                false => wait_all(open).map(|()| None),
            };
            let done = match late {
                0 => wait(),
                _ => self.world.within(Budget::microseconds(0), wait),
            };
            match done {
                Ok(None) => return Ok(()),
                Ok(Some(_)) => {}
                Err(Error::Timeout(_)) if late > 0 => {}
                Err(error) => return Err(error.into()),
            }
            late = late.saturating_sub(1);
        }
    }
}
