//! The pieces of a window, as a program accesses them: elements of an allocated or a created one,
//! or memory attached to a dynamic one.

use std::cell::Cell;
use std::marker::PhantomData;

use flagpost::{
    Displacement, DynamicWindow, Error, Link, Memory, Rank, Rma, Window, World,
    epoch::Strategy,
    rma::{self, Block, Bool, Complex, Gather, Layout, Placed, Scatter},
};

use super::wrong::Wrong;
use super::{Access, Operation, Scalar, What};

/// What elements are.
pub(super) trait Element: rma::Element {
    const SCALAR: Scalar;

    fn of(value: u64) -> Self;
    fn value(self) -> u64;
    fn operation(operation: Operation) -> rma::Operation<Self>;

    /// Swaps an integer.
    fn swap<'w, L: Link + 'w>(
        epoch: &impl Rma<'w, Self, L>,
        place: (Rank, usize),
        expected: Self,
        new: Self,
    ) -> Result<Self, Wrong>;
}

macro_rules! elements {
    ($($of:ty: $scalar:ident, $bits:ty, $kind:ident;)*) => {
        $(impl Element for $of {
            const SCALAR: Scalar = Scalar::$scalar;

            $kind!($bits);
        })*
    };
}

/// The operations of some elements.
macro_rules! operations {
    ($($of:ident: $constant:ident),*) => {
        fn operation(operation: Operation) -> rma::Operation<Self> {
            match operation {
                $(Operation::$of => rma::Operation::$constant,)*
                Operation::Replace => rma::Operation::REPLACE,
                Operation::NoOp => rma::Operation::NO_OP,
                #[allow(unreachable_patterns, reason = "some have all")]
                other => unreachable!("{other:?}"),
            }
        }
    };
}

/// Elements that are not compared.
macro_rules! not_swapped {
    () => {
        fn swap<'w, L: Link + 'w>(
            _: &impl Rma<'w, Self, L>,
            _: (Rank, usize),
            _: Self,
            _: Self,
        ) -> Result<Self, Wrong> {
            unreachable!("only integers are swapped")
        }
    };
}

macro_rules! integer {
    ($bits:ty) => {
        fn of(value: u64) -> Self {
            value as Self
        }

        fn value(self) -> u64 {
            u64::from(self as $bits)
        }

        operations! {
            Sum: SUM, Prod: PROD, Min: MIN, Max: MAX, And: AND, Or: OR, Xor: XOR,
            LogicalAnd: LOGICAL_AND, LogicalOr: LOGICAL_OR, LogicalXor: LOGICAL_XOR
        }

        fn swap<'w, L: Link + 'w>(
            epoch: &impl Rma<'w, Self, L>,
            (target, index): (Rank, usize),
            expected: Self,
            new: Self,
        ) -> Result<Self, Wrong> {
            Ok(epoch.compare_and_swap(target, index, expected, new)?)
        }
    };
}

macro_rules! float {
    ($bits:ty) => {
        fn of(value: u64) -> Self {
            Self::from_bits(value as $bits)
        }

        fn value(self) -> u64 {
            u64::from(self.to_bits())
        }

        operations! { Sum: SUM, Prod: PROD, Min: MIN, Max: MAX }

        not_swapped! {}
    };
}

macro_rules! boolean {
    ($bits:ty) => {
        fn of(value: u64) -> Self {
            Self::from(value != 0)
        }

        fn value(self) -> u64 {
            bool::from(self).into()
        }

        operations! { LogicalAnd: LOGICAL_AND, LogicalOr: LOGICAL_OR, LogicalXor: LOGICAL_XOR }

        not_swapped! {}
    };
}

macro_rules! complex {
    ($bits:ty) => {
        fn of(value: u64) -> Self {
            Self([value as u32, (value >> 32) as u32].map(f32::from_bits))
        }

        fn value(self) -> u64 {
            let [re, im] = self.0.map(|part| u64::from(part.to_bits()));
            im << 32 | re
        }

        operations! { Sum: SUM, Prod: PROD }

        not_swapped! {}
    };
}

macro_rules! placed {
    ($bits:ty) => {
        fn of(value: u64) -> Self {
            Self::new(value as i32, (value >> 32) as u32)
        }

        fn value(self) -> u64 {
            u64::from(self.place()) << 32 | u64::from(Self::value(self) as u32)
        }

        operations! { Min: MIN, Max: MAX }

        not_swapped! {}
    };
}

elements! {
    u8: U8, u8, integer;
    u16: U16, u16, integer;
    u32: U32, u32, integer;
    u64: U64, u64, integer;
    i8: I8, u8, integer;
    i16: I16, u16, integer;
    i32: I32, u32, integer;
    i64: I64, u64, integer;
    f32: F32, u32, float;
    f64: F64, u64, float;
    Bool: Bool, u8, boolean;
    Complex<f32>: Complex, u64, complex;
    Placed<i32>: Placed, u64, placed;
}

/// Elements of `values`.
pub(super) fn elements<T: Element>(values: &[u64]) -> Vec<T> {
    values.iter().map(|&value| T::of(value)).collect()
}

/// And back.
pub(super) fn values_of<T: Element>(elements: &[T]) -> Vec<u64> {
    elements.iter().map(|element| element.value()).collect()
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

    fn attach_again(&self, _: &World<'_, L>, _: &[bool]) -> Result<(), Wrong> {
        Ok(())
    }
}

/// Accesses, behind each other but for requests; `at` is what reaches a rank's piece.
fn access_all<'e, 'w, T: Element, L: Link + 'w, R: Rma<'w, T, L> + 'e>(
    at: impl Fn(u16) -> &'e R,
    accesses: &[Access],
) -> Result<Vec<Vec<u64>>, Wrong> {
    let values = |access: &Access| match &access.what {
        What::Put(values)
        | What::Accumulate(_, values)
        | What::Fetch(_, values, _)
        | What::Add(values)
        | What::Stripes(values)
        | What::Scattered(values) => elements::<T>(values),
        What::Get(_) | What::Sieve(_) | What::Swap(..) => Vec::new(),
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
        let epoch = at(access.target);
        match &access.what {
            What::Put(_) if access.request => requests.push(epoch.to(target, index).put(values)?),
            What::Get(_) if access.request => requests.push(epoch.to(target, index).get(found)?),
            What::Accumulate(operation, _) if access.request => {
                let operation = T::operation(*operation);
                requests.push(epoch.to(target, index).accumulate(values, operation)?);
            }
            What::Fetch(operation, ..) if access.request => {
                let operation = T::operation(*operation);
                let request = epoch
                    .to(target, index)
                    .get_accumulate(values, operation, found)?;
                requests.push(request);
            }
            _ => access_once(epoch, access, values, found)?,
        }
    }
    for request in requests {
        request.wait()?;
    }
    Ok(found.iter().map(|found| values_of(found)).collect())
}

/// One access, which is done when this returns.
fn access_once<'w, T: Element, L: Link + 'w, R: Rma<'w, T, L>>(
    epoch: &R,
    access: &Access,
    values: &[T],
    found: &mut [T],
) -> Result<(), Wrong> {
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
            epoch.to(target, index).layout(stripes).put(from)?.wait()?;
        }
        What::Sieve(_) => {
            let every_other = Layout::Vector {
                blocks: found.len().div_ceil(2),
                block_len: 1,
                stride: 2,
            };
            let into = Scatter::new(found, every_other);
            epoch
                .to(target, index)
                .layout(every_other)
                .get(into)?
                .wait()?;
        }
        What::Scattered(_) => {
            let last_first = (0..values.len()).step_by(2).rev();
            let blocks: Vec<Block> = last_first.map(|at| Block { at, len: 1 }).collect();
            let blocks = Layout::Indexed { blocks: &blocks };
            epoch
                .to(target, index)
                .layout(blocks)
                .put(Gather::new(values, blocks))?
                .wait()?;
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

    fn attach_again(&self, world: &World<'_, L>, again: &[bool]) -> Result<(), Wrong> {
        let own = world.rank().index();
        let before: Vec<Displacement> = self.places.iter().map(Cell::get).collect();
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
        Ok(lock.unlock()?)
    }
}
