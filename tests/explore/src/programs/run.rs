//! One rank's part of a program.

use std::ops::Range;
use std::slice;

use flagpost::{
    Config, EpochSlots, Error, Link, MatchVector, MatchingList, Memory, Options, Rank, Rma, Source,
    Tag, Unfinished, VectorLink, Window, World,
    epoch::{Assert, Strategy},
    rma::{self, Block, Gather, Integer, Layout},
};

use super::{
    Access, Between, Hold, Kind, Locked, Made, Notified, Operation, Phase, Program, Signalling,
    Store, What, Width,
};

/// Why a rank's part did not come out as it must.
#[derive(Debug)]
pub enum Wrong {
    /// A call failed that must not.
    Call(Error),
    /// An element was not what it must be.
    Element {
        /// In which phase.
        phase: usize,
        /// Which one.
        index: usize,
        /// What it was.
        found: u64,
        /// What it must be.
        expected: u64,
    },
    /// A notification came from somebody else.
    Source(Rank),
}

impl From<Error> for Wrong {
    fn from(error: Error) -> Self {
        Self::Call(error)
    }
}

impl<H> From<Unfinished<H>> for Wrong {
    fn from(unfinished: Unfinished<H>) -> Self {
        Self::Call(unfinished.error)
    }
}

/// Elements of a width.
trait Element: Integer {
    fn of(value: u64) -> Self;
    fn value(self) -> u64;

    fn operation(operation: Operation) -> rma::Operation<Self> {
        match operation {
            Operation::Sum => rma::Operation::SUM,
            Operation::Xor => rma::Operation::XOR,
            Operation::Max => rma::Operation::MAX,
        }
    }
}

macro_rules! elements {
    ($($of:ty)*) => {
        $(impl Element for $of {
            fn of(value: u64) -> Self {
                value as Self
            }

            fn value(self) -> u64 {
                u64::from(self)
            }
        })*
    };
}

elements!(u8 u16 u32 u64);

/// Carries out the part of `link`'s rank.
///
/// # Errors
/// [`Wrong`].
pub fn run<L: VectorLink>(program: &Program, link: L) -> Result<(), Wrong> {
    let mut arena = [0; 1024];
    let world = World::start(link, &mut arena, Config::default())?;
    let memories = memories(program, &world)?;
    match program.signalling {
        Signalling::Vector => with_strategy::<L, MatchVector<'_>>(program, &world, &memories, ()),
        _ => without_vectors(program, &world, &memories),
    }
}

/// [`run`] on a link without match vectors: slots stand for them.
///
/// # Errors
/// [`Wrong`].
pub fn run_without_vectors<L: Link>(program: &Program, link: L) -> Result<(), Wrong> {
    let mut arena = [0; 1024];
    let world = World::start(link, &mut arena, Config::default())?;
    let memories = memories(program, &world)?;
    without_vectors(program, &world, &memories)
}

fn without_vectors<'w, L: Link>(
    program: &Program,
    world: &'w World<'w, L>,
    memories: &'w [Memory<'w, L>],
) -> Result<(), Wrong> {
    match program.signalling {
        Signalling::List => {
            with_strategy::<L, MatchingList<'_>>(program, world, memories, program.ranks)
        }
        _ => with_strategy::<L, EpochSlots<'_>>(program, world, memories, ()),
    }
}

/// Where the own piece of a created window begins.
fn base<L: Link>(world: &World<'_, L>) -> usize {
    L::LINE as usize * (world.rank().index() % 3)
}

/// For each window that is created, memory of its own.
fn memories<'w, L: Link>(
    program: &Program,
    world: &'w World<'w, L>,
) -> Result<Vec<Memory<'w, L>>, Error> {
    let created = program.windows.iter().filter(|made| made.created);
    let bytes = created.map(|made| base(world) + made.len * size_of::<u64>());
    bytes.map(|bytes| world.reserve(bytes)).collect()
}

fn with_strategy<'w, L: Link, S: Strategy<'w, L>>(
    program: &Program,
    world: &'w World<'w, L>,
    memories: &'w [Memory<'w, L>],
    options: S::Options,
) -> Result<(), Wrong> {
    match program.width {
        Width::W8 => with_elements::<u8, L, S>(program, world, memories, options),
        Width::W16 => with_elements::<u16, L, S>(program, world, memories, options),
        Width::W32 => with_elements::<u32, L, S>(program, world, memories, options),
        Width::W64 => with_elements::<u64, L, S>(program, world, memories, options),
    }
}

fn with_elements<'w, T: Element, L: Link, S: Strategy<'w, L>>(
    program: &Program,
    world: &'w World<'w, L>,
    memories: &'w [Memory<'w, L>],
    strategy: S::Options,
) -> Result<(), Wrong> {
    let mut memories = memories.iter();
    let mut windows = Vec::new();
    for &Made {
        len,
        created,
        model,
    } in &program.windows
    {
        let options = Options { strategy, model };
        let memory = created.then(|| memories.next()).flatten();
        windows.push(match memory {
            Some(memory) => {
                let (base, unit) = (base(world), size_of::<T>());
                world.create_with::<T, S>(memory, base..base + len * unit, unit, options)?
            }
            None => world.allocate_with::<T, S>(len, options)?,
        });
    }
    for (number, phase) in program.phases.iter().enumerate() {
        let part = Part {
            world,
            window: &windows[phase.window],
            number,
            phase,
        };
        part.run()?;
    }
    world.barrier()?;
    for window in windows {
        window.free()?;
    }
    Ok(())
}

/// One rank in one phase.
struct Part<'a, 'w, T, L, S> {
    world: &'w World<'w, L>,
    window: &'a Window<'w, T, L, S>,
    number: usize,
    phase: &'a Phase,
}

/// Elements of `values`.
fn elements<T: Element>(values: &[u64]) -> Vec<T> {
    values.iter().map(|&value| T::of(value)).collect()
}

impl<'w, T: Element, L: Link, S: Strategy<'w, L>> Part<'_, 'w, T, L, S> {
    fn run(&self) -> Result<(), Wrong> {
        let own = self.world.rank().index();
        match &self.phase.kind {
            Kind::Local(stores) => {
                for Store { index, values } in &stores[own] {
                    self.window
                        .local()
                        .copy_in(*index, &elements::<T>(values))?;
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
            Kind::Reduce { .. } | Kind::Broadcast { .. } | Kind::Exchange(_) => {
                self.collective(own)?;
            }
        }
        self.settled(&self.phase.after)
    }

    /// Compares the own piece with what it must hold.
    fn settled(&self, all: &[Vec<u64>]) -> Result<(), Wrong> {
        let expected = &all[self.world.rank().index()];
        let mut found = vec![T::of(0); expected.len()];
        self.window.local().copy_out(0, &mut found)?;
        self.compare(0, &found, expected)
    }

    fn compare(&self, first: usize, found: &[T], expected: &[u64]) -> Result<(), Wrong> {
        self.is_possible(first, found, expected.iter().map(slice::from_ref))
    }

    /// Compares elements with all that each may be; nothing, if that are too many values.
    fn is_possible<'p>(
        &self,
        first: usize,
        found: &[T],
        possible: impl IntoIterator<Item = &'p [u64]>,
    ) -> Result<(), Wrong> {
        for (index, (found, possible)) in found.iter().zip(possible).enumerate() {
            if let Some(&expected) = possible.first()
                && !possible.contains(&found.value())
            {
                return Err(Wrong::Element {
                    phase: self.number,
                    index: first + index,
                    found: found.value(),
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
                let combine = |a: T, b: T| match operation {
                    Operation::Sum => T::of(a.value().wrapping_add(b.value())),
                    Operation::Xor => T::of(a.value() ^ b.value()),
                    Operation::Max => T::of(a.value().max(b.value())),
                };
                let mut data = elements::<T>(&values[own]);
                match root {
                    Some(root) => {
                        self.world.reduce(Rank::new(*root), &mut data, combine)?;
                        if usize::from(*root) != own {
                            return Ok(());
                        }
                    }
                    None => self.world.allreduce(&mut data, combine)?,
                }
                self.compare(0, &data, result)
            }
            Kind::Broadcast { root, values } => {
                let mut data = if usize::from(*root) == own {
                    elements::<T>(values)
                } else {
                    vec![T::of(0); values.len()]
                };
                self.world.broadcast(Rank::new(*root), &mut data)?;
                self.compare(0, &data, values)
            }
            Kind::Exchange(blocks) => {
                let from = elements::<T>(&blocks[own]);
                let mut into = vec![T::of(0); from.len()];
                self.world.alltoall(&from, &mut into)?;
                let count = from.len() / blocks.len();
                let to_this = |all: &Vec<u64>| all[own * count..(own + 1) * count].to_vec();
                let expected: Vec<u64> = blocks.iter().flat_map(to_this).collect();
                self.compare(0, &into, &expected)
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
        let own = self.world.rank().get();
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
                Some(range) => self.window.post_range(range, &origins)?,
                None => self.window.post(&origins)?,
            })
        };
        if !targets.ranks().is_empty() {
            let access = self.window.start(&targets)?;
            self.accesses(&access, accesses)?;
            access.complete()?;
        }
        if let Some(exposure) = exposure {
            exposure.wait()?;
        }
        Ok(())
    }

    fn accesses<R: Rma<'w, T, L>>(&self, epoch: &R, accesses: &[Access]) -> Result<(), Wrong>
    where
        L: 'w,
    {
        let values = |access: &Access| match &access.what {
            What::Put(values)
            | What::Accumulate(_, values)
            | What::Fetch(_, values, _)
            | What::Add(values)
            | What::Stripes(values)
            | What::Scattered(values) => elements::<T>(values),
            What::Get(_) | What::Swap(..) => Vec::new(),
        };
        let values: Vec<Vec<T>> = accesses.iter().map(values).collect();
        let found = |access: &Access| vec![T::of(0); access.what.count()];
        let mut found: Vec<Vec<T>> = accesses.iter().map(found).collect();
        let mut requests: Vec<rma::Request<'_, 'w, L>> = Vec::new();
        for (number, ((access, values), found)) in
            accesses.iter().zip(&values).zip(&mut found).enumerate()
        {
            // Requests are in no order with what follows.
            let earlier = &accesses[..number];
            if earlier.iter().any(|earlier| earlier.meets(access)) {
                for request in requests.drain(..) {
                    request.wait()?;
                }
            }
            let (target, index) = (Rank::new(access.target), access.index);
            match &access.what {
                What::Put(_) if access.request => requests.push(epoch.rput(target, index, values)?),
                What::Get(_) if access.request => requests.push(epoch.rget(target, index, found)?),
                What::Accumulate(operation, _) if access.request => {
                    let operation = T::operation(*operation);
                    requests.push(epoch.raccumulate(target, index, values, operation)?);
                }
                What::Fetch(operation, ..) if access.request => {
                    let operation = T::operation(*operation);
                    let request = epoch.rget_accumulate(target, index, values, operation, found)?;
                    requests.push(request);
                }
                _ => self.access(epoch, access, values, found)?,
            }
        }
        for request in requests {
            request.wait()?;
        }
        for (Access { index, what, .. }, found) in accesses.iter().zip(&found) {
            match what {
                What::Get(expected) => self.compare(*index, found, expected)?,
                What::Fetch(_, _, possible) => {
                    self.is_possible(*index, found, possible.iter().map(Vec::as_slice))?;
                }
                What::Swap(_, _, there) => self.compare(*index, found, slice::from_ref(there))?,
                _ => {}
            }
        }
        Ok(())
    }

    /// One access, which is done when this returns.
    fn access<R: Rma<'w, T, L>>(
        &self,
        epoch: &R,
        access: &Access,
        values: &[T],
        found: &mut [T],
    ) -> Result<(), Wrong>
    where
        L: 'w,
    {
        let (target, index) = (Rank::new(access.target), access.index);
        match &access.what {
            What::Put(_) => epoch.put(target, index, values)?,
            What::Get(_) => epoch.get(target, index, found)?,
            What::Stripes(_) => {
                let stripes = Layout::Vector {
                    blocks: values.len().div_ceil(2),
                    block_len: 1,
                    stride: 2,
                };
                let from = Gather::new(values, stripes);
                epoch.put_layout(target, index, stripes, from)?;
            }
            What::Scattered(_) => {
                let last_first = (0..values.len()).step_by(2).rev();
                let blocks: Vec<Block> = last_first.map(|at| Block { at, len: 1 }).collect();
                let blocks = Layout::Indexed { blocks: &blocks };
                epoch.put_layout(target, index, blocks, Gather::new(values, blocks))?;
            }
            What::Accumulate(operation, _) => {
                epoch.accumulate(target, index, values, T::operation(*operation))?;
            }
            What::Fetch(operation, ..) => {
                let operation = T::operation(*operation);
                match (values, &mut *found) {
                    ([value], [found]) => {
                        *found = epoch.fetch_and_op(target, index, *value, operation)?;
                    }
                    _ => epoch.get_accumulate(target, index, values, operation, found)?,
                }
            }
            What::Swap(expected, new, _) => {
                let (expected, new) = (T::of(*expected), T::of(*new));
                found[0] = epoch.compare_and_swap(target, index, expected, new)?;
            }
            What::Add(_) => {
                epoch.get(target, index, found)?;
                for (place, value) in found.iter_mut().zip(values) {
                    *place = T::of(place.value().wrapping_add(value.value()));
                }
                epoch.put(target, index, found)?;
            }
        }
        Ok(())
    }

    fn fences(&self, all: &[Between]) -> Result<(), Wrong> {
        let own = self.world.rank().index();
        let assert = |between: &Between| match between.no_put[own] {
            true => Assert::NO_PUT,
            false => Assert::empty(),
        };
        let Some((first, rest)) = all.split_first() else {
            return Ok(());
        };
        let mut epoch = self.window.fence(assert(first) | Assert::NO_PRECEDE)?;
        self.accesses(&epoch, &first.accesses[own])?;
        let mut last = first;
        for next in rest {
            epoch = epoch.fence(assert(next) | Assert::NO_STORE)?;
            self.accesses(&epoch, &next.accesses[own])?;
            last = next;
        }
        epoch.end()?;
        self.settled(&last.after)
    }

    fn locks(&self, all: &[Locked]) -> Result<(), Wrong> {
        self.window.sync()?;
        self.world.barrier()?;
        for locked in all {
            let target = Rank::new(locked.target);
            let lock = match locked.hold {
                Hold::Shared => self.window.lock_shared(target)?,
                Hold::Exclusive => self.window.lock_exclusive(target)?,
                Hold::Queued => self.window.lock_queued(target)?,
                Hold::All => self.window.lock_all()?,
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
        Ok(self.window.sync()?)
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
            let mut request = self.window.expect(range, source, Tag(put.tag), 1)?;
            request.start()?;
            requests.push((request, origin));
        }
        // Nobody puts before the lines are ready for it.
        self.world.barrier()?;
        for put in puts.iter().filter(|put| put.origin == own) {
            let values = elements::<T>(&put.store.values);
            let (target, tag) = (Rank::new(put.target), Tag(put.tag));
            self.window
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
