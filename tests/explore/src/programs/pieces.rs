//! The pieces of a window, as a program accesses them: elements of an allocated or a created one,
//! or memory attached to a dynamic one.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::Range;

use flagpost::{
    Compare, Displacement, DynamicWindow, Error, Link, Memory, Notice, Rank, Request, Rma, Tag,
    Window, WordRequest, World,
    epoch::Strategy,
    notify::AnyWord,
    rma::{self, Block, Gather, Layout, Scatter},
    wait_all,
};

use super::element::{Element, elements, values_of};
use super::wrong::Wrong;
use super::{Access, Operation, What};

/// An access, and its elements at this rank.
struct Own<'a, T> {
    access: &'a Access,
    /// Where they lie in the target's piece, and here.
    there: Vec<Block>,
    here: Vec<Block>,
    values: Vec<T>,
    found: Vec<T>,
}

impl<'a, T: Element> Own<'a, T> {
    fn new(access: &'a Access) -> Self {
        let count = access.what.count();
        let (values, there): (_, Vec<usize>) = match &access.what {
            What::Put(values)
            | What::Accumulate(_, values)
            | What::Fetch(_, values, _)
            | What::Add(values) => (values.as_slice(), (0..count).collect()),
            What::Stripes(values) => (values, (0..count).step_by(2).collect()),
            What::Scattered(values) => (values, (0..count).step_by(2).rev().collect()),
            What::Sieve(_) => (&[], (0..count).step_by(2).collect()),
            What::Get(_) | What::Swap(..) => (&[], (0..count).collect()),
        };
        let apart = if there.len() == count { 2 } else { 1 };
        let plain = matches!(access.what, What::Swap(..) | What::Add(_));
        let here = match access.turned && !plain {
            true => (0..there.len()).map(|at| at * apart).collect(),
            false => there.clone(),
        };
        let len = here.iter().max().map_or(0, |last| last + 1).max(count);
        let mut own = vec![T::of(0); len];
        for (here, there) in here.iter().zip(&there) {
            own[*here] = T::of(values.get(*there).copied().unwrap_or_default());
        }
        let blocks = |all: Vec<usize>| all.into_iter().map(|at| Block { at, len: 1 }).collect();
        Self {
            access,
            there: blocks(there),
            here: blocks(here),
            values: own,
            found: vec![T::of(0); len],
        }
    }

    /// What it has brought, as the elements lie in the piece.
    fn found(&self) -> Vec<u64> {
        let mut all = vec![0; self.access.what.count()];
        for (there, here) in self.there.iter().zip(&self.here) {
            all[there.at] = self.found[here.at].value();
        }
        all
    }
}

/// The simplest layout of blocks of one element.
fn layout(blocks: &[Block]) -> Layout<'_> {
    let count = blocks.len();
    let are = |stride: usize| {
        (0_usize..)
            .zip(blocks)
            .all(|(at, block)| block.at == at * stride)
    };
    if are(1) {
        Layout::Contiguous { count }
    } else if are(2) {
        Layout::Vector {
            blocks: count,
            block_len: 1,
            stride: 2,
        }
    } else {
        Layout::Indexed { blocks }
    }
}

/// Begins an access in full.
macro_rules! begin {
    ($target:expr, $own:expr) => {{
        let Own {
            access,
            there,
            here,
            values,
            found,
        } = $own;
        let target = match layout(there) {
            Layout::Contiguous { .. } => $target,
            layout => $target.layout(layout),
        };
        let from = Gather::new(values, layout(here));
        let into = Scatter::new(found, layout(here));
        match &access.what {
            What::Put(_) | What::Stripes(_) | What::Scattered(_) => target.put(from),
            What::Get(_) | What::Sieve(_) => target.get(into),
            What::Accumulate(operation, _) => target.accumulate(from, T::operation(*operation)),
            What::Fetch(operation, ..) => {
                target.get_accumulate(from, T::operation(*operation), into)
            }
            other => unreachable!("{other:?}"),
        }
    }};
}

/// Notified accesses, each to what `$to` gives.
macro_rules! notified {
    ($accesses:ident, $wait:ident, $to:expr) => {{
        let own = $accesses.iter().map(|&(access, _)| Own::new(access));
        let mut own: Vec<Own<'_, T>> = own.collect();
        let mut requests = Vec::new();
        for (number, (own, (access, notice))) in own.iter_mut().zip($accesses).enumerate() {
            let mut earlier = $accesses[..number].iter();
            if earlier.any(|(earlier, _)| earlier.meets(access)) {
                wait_all(&mut requests)?;
            }
            let target = ($to)(Rank::new(access.target), access.index);
            requests.push(begin!(target.notify(*notice), own)?);
        }
        $wait(&mut requests)?;
        drop(requests);
        Ok(own.iter().map(Own::found).collect())
    }};
}

/// A window, and how its pieces are reached.
pub(super) trait Windowed<'w, L: Link> {
    /// What the window is made of.
    type Unit: Element;
    /// What the program's elements are.
    type Element: Element;
    /// How its epochs are signalled.
    type Strategy: Strategy<'w, L>;

    /// For epochs.
    fn window(&self) -> &Window<'w, Self::Unit, L, Self::Strategy>;

    /// Stores to the own piece.
    fn store(&self, index: usize, values: &[u64]) -> Result<(), Wrong>;

    /// What the own piece holds: its first `count` elements.
    fn load(&self, count: usize) -> Result<Vec<u64>, Wrong>;

    /// Carries out accesses of an epoch; what each has brought.
    fn accesses<R>(&self, epoch: &R, accesses: &[Access]) -> Result<Vec<Vec<u64>>, Wrong>
    where
        R: Rma<'w, Self::Unit, L>,
        L: 'w;

    /// A request for a tag, whose data arrive in this range.
    fn expect(&self, range: Range<usize>, tag: Tag) -> Result<Request<'_, L>, Error>;

    /// A request for a word to be at least 1, or for one post.
    fn expect_word<'r>(
        &'r self,
        range: Range<usize>,
        word: AnyWord<'r>,
    ) -> Result<WordRequest<'r, 'w, L>, Error>;

    /// Begins notified accesses, and gives their requests to `wait`; what each has brought.
    fn notified(
        &self,
        accesses: &[(&Access, Notice<'_, L::Word>)],
        wait: impl FnOnce(&mut [rma::Request<'_, 'w, L>]) -> Result<(), Wrong>,
    ) -> Result<Vec<Vec<u64>>, Wrong>
    where
        L: 'w;

    /// Some ranks detach their memory and attach it again; nobody has an epoch.
    fn attach_again(&self, world: &World<'_, L>, again: &[bool]) -> Result<(), Wrong>;
}

/// A window of elements.
pub(super) struct Elements<'w, T, L, S>(pub(super) Window<'w, T, L, S>);

impl<'w, T: Element, L: Link, S: Strategy<'w, L>> Windowed<'w, L> for Elements<'w, T, L, S> {
    type Unit = T;
    type Element = T;
    type Strategy = S;

    fn window(&self) -> &Window<'w, T, L, S> {
        &self.0
    }

    fn store(&self, index: usize, values: &[u64]) -> Result<(), Wrong> {
        Ok(self.0.local().copy_in(index, &elements::<T>(values))?)
    }

    fn load(&self, count: usize) -> Result<Vec<u64>, Wrong> {
        let mut found = vec![T::of(0); count];
        self.0.local().copy_out(0, &mut found)?;
        Ok(values_of(&found))
    }

    fn accesses<R: Rma<'w, T, L>>(
        &self,
        epoch: &R,
        accesses: &[Access],
    ) -> Result<Vec<Vec<u64>>, Wrong>
    where
        L: 'w,
    {
        access_all(|_| epoch, accesses)
    }

    fn expect(&self, range: Range<usize>, tag: Tag) -> Result<Request<'_, L>, Error> {
        self.0.expect(range, tag)
    }

    fn expect_word<'r>(
        &'r self,
        range: Range<usize>,
        word: AnyWord<'r>,
    ) -> Result<WordRequest<'r, 'w, L>, Error> {
        self.0.expect_word(range, word, Compare::Ge, 1.into())
    }

    fn notified(
        &self,
        accesses: &[(&Access, Notice<'_, L::Word>)],
        wait: impl FnOnce(&mut [rma::Request<'_, 'w, L>]) -> Result<(), Wrong>,
    ) -> Result<Vec<Vec<u64>>, Wrong>
    where
        L: 'w,
    {
        notified!(accesses, wait, |rank, index| self.0.to(rank, index))
    }

    fn attach_again(&self, _: &World<'_, L>, _: &[bool]) -> Result<(), Wrong> {
        Ok(())
    }
}

/// Accesses, behind each other but for requests; `at` is what reaches a rank's piece.
fn access_all<'e, 'w, T: Element, L: Link + 'w, R: Rma<'w, T, L> + 'e>(
    at: impl Fn(u16) -> &'e R,
    accesses: &[Access],
) -> Result<Vec<Vec<u64>>, Wrong> {
    let mut all: Vec<Own<'_, T>> = accesses.iter().map(Own::new).collect();
    let mut requests: Vec<rma::Request<'_, 'w, L>> = Vec::new();
    for (number, own) in all.iter_mut().enumerate() {
        let access = own.access;
        // Requests are in no order with what follows.
        let earlier = &accesses[..number];
        if earlier.iter().any(|earlier| earlier.meets(access)) {
            for request in requests.drain(..) {
                request.wait()?;
            }
        }
        let (target, epoch) = (Rank::new(access.target), at(access.target));
        match &access.what {
            What::Swap(..) | What::Add(_) => access_once(epoch, own)?,
            What::Put(_) | What::Get(_) | What::Accumulate(..) | What::Fetch(..)
                if !access.request && !access.turned =>
            {
                access_once(epoch, own)?;
            }
            _ => {
                let request = begin!(epoch.to(target, access.index), own)?;
                if access.request {
                    requests.push(request);
                } else {
                    request.wait()?;
                }
            }
        }
    }
    for request in requests {
        request.wait()?;
    }
    Ok(all.iter().map(Own::found).collect())
}

/// One access by a short form, which is done when this returns.
fn access_once<'w, T: Element, L: Link + 'w, R: Rma<'w, T, L>>(
    epoch: &R,
    own: &mut Own<'_, T>,
) -> Result<(), Wrong> {
    let (access, values) = (own.access, own.values.as_slice());
    let found = own.found.as_mut_slice();
    let (target, index) = (Rank::new(access.target), access.index);
    match &access.what {
        What::Put(_) => epoch.put(target, index, values)?,
        What::Get(_) => epoch.get(target, index, found)?,
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
            found[0] = T::swap(epoch, (target, index), expected, new)?;
        }
        What::Add(_) => {
            epoch.get(target, index, found)?;
            for (place, value) in found.iter_mut().zip(values) {
                let sum = Operation::Sum.apply(place.value(), value.value(), T::SCALAR);
                *place = T::of(sum);
            }
            epoch.put(target, index, found)?;
        }
        other => unreachable!("{other:?}"),
    }
    Ok(())
}

/// A dynamic window to which each rank has attached memory. Its elements are bytes; those of the
/// program lie in them.
pub(super) struct Attached<'w, T, L, S> {
    dynamic: DynamicWindow<'w, L, S>,
    memory: &'w Memory<'w, L>,
    /// This rank.
    own: u16,
    /// Where the own piece begins in it, in bytes.
    base: u32,
    /// Where the pieces of all ranks begin.
    places: Vec<Cell<Displacement>>,
    element: PhantomData<T>,
}

impl<'w, T: Element, L: Link, S: Strategy<'w, L>> Attached<'w, T, L, S> {
    /// Collective.
    pub(super) fn new(
        world: &World<'_, L>,
        dynamic: DynamicWindow<'w, L, S>,
        memory: &'w Memory<'w, L>,
        base: usize,
    ) -> Result<Self, Wrong> {
        let nowhere = Cell::new(Displacement::new(0));
        let attached = Self {
            dynamic,
            memory,
            own: world.rank().get(),
            base: base as u32,
            places: vec![nowhere; usize::from(world.size())],
            element: PhantomData,
        };
        attached.attach(world)?;
        attached.meet(world)?;
        Ok(attached)
    }

    fn attach(&self, world: &World<'_, L>) -> Result<(), Wrong> {
        let begin = self.dynamic.attach(self.memory)?;
        self.places[world.rank().index()].set(begin.plus(self.base));
        Ok(())
    }

    /// Tells all where the own piece is, and learns it of theirs.
    fn meet(&self, world: &World<'_, L>) -> Result<(), Wrong> {
        let own = self.places[world.rank().index()].get();
        let mut all = vec![0; self.places.len()];
        world.allgather(own.get(), &mut all)?;
        for (place, raw) in self.places.iter().zip(all) {
            place.set(Displacement::new(raw));
        }
        Ok(())
    }

    /// Collective.
    pub(super) fn free(self) -> Result<(), Wrong> {
        self.dynamic.detach(self.memory)?;
        Ok(self.dynamic.free()?)
    }

    /// Where an element of `rank`'s piece lies.
    fn place(&self, rank: u16, index: usize) -> Displacement {
        let begin = self.places[usize::from(rank)].get();
        begin.plus((index * size_of::<T>()) as u32)
    }
}

impl<'w, T: Element, L: Link, S: Strategy<'w, L>> Windowed<'w, L> for Attached<'w, T, L, S> {
    type Unit = u8;
    type Element = T;
    type Strategy = S;

    fn window(&self) -> &Window<'w, u8, L, S> {
        self.dynamic.window()
    }

    fn store(&self, index: usize, values: &[u64]) -> Result<(), Wrong> {
        let place = self.place(self.own, index);
        Ok(self.dynamic.write(place, &elements::<T>(values))?)
    }

    fn load(&self, count: usize) -> Result<Vec<u64>, Wrong> {
        let mut found = vec![T::of(0); count];
        self.dynamic.read(self.place(self.own, 0), &mut found)?;
        Ok(values_of(&found))
    }

    fn accesses<R>(&self, epoch: &R, accesses: &[Access]) -> Result<Vec<Vec<u64>>, Wrong>
    where
        R: Rma<'w, u8, L>,
        L: 'w,
    {
        let places = self.places.iter().map(Cell::get);
        let all: Vec<_> = places
            .map(|place| self.dynamic.at::<T, _>(epoch, place))
            .collect();
        access_all(|rank| &all[usize::from(rank)], accesses)
    }

    fn expect(&self, _: Range<usize>, tag: Tag) -> Result<Request<'_, L>, Error> {
        self.dynamic.expect(tag)
    }

    fn expect_word<'r>(
        &'r self,
        _: Range<usize>,
        word: AnyWord<'r>,
    ) -> Result<WordRequest<'r, 'w, L>, Error> {
        self.dynamic.expect_word(word, Compare::Ge, 1.into())
    }

    fn notified(
        &self,
        accesses: &[(&Access, Notice<'_, L::Word>)],
        wait: impl FnOnce(&mut [rma::Request<'_, 'w, L>]) -> Result<(), Wrong>,
    ) -> Result<Vec<Vec<u64>>, Wrong>
    where
        L: 'w,
    {
        let places = self.places.iter().map(Cell::get);
        let all: Vec<_> = places
            .map(|place| self.dynamic.at::<T, _>(self.window(), place))
            .collect();
        notified!(accesses, wait, |rank: Rank, index| all[rank.index()]
            .to(rank, index))
    }

    fn attach_again(&self, world: &World<'_, L>, again: &[bool]) -> Result<(), Wrong> {
        let own = world.rank().index();
        let before: Vec<Displacement> = self.places.iter().map(Cell::get).collect();
        // Peers get a byte of each piece below.
        self.window().sync()?;
        world.barrier()?;
        if again[own] {
            self.dynamic.detach(self.memory)?;
            self.attach(world)?;
        }
        self.meet(world)?;
        // All know of it: who goes to the old place is refused.
        let lock = self.window().lock_all()?;
        for (rank, (before, again)) in (0..).map(Rank::new).zip(before.into_iter().zip(again)) {
            let found = self.dynamic.at(&lock, before).get(rank, 0, &mut [0_u8]);
            let is_right = match found {
                Ok(()) => !again,
                Err(Error::NotAttached) => *again,
                Err(_) => false,
            };
            if !is_right {
                return Err(Wrong::Reached(rank, found));
            }
        }
        lock.unlock()?;
        // No piece is stored to while peers get of it.
        Ok(world.barrier()?)
    }
}
