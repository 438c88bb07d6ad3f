//! Accesses to peers' pieces of a window, within an epoch.
//!
//! Every kind of access epoch offers the same operations, by the trait [`Rma`]. What differs is
//! which ranks an epoch admits, and when its accesses are done. So does memory that is attached to
//! a dynamic window ([`DynamicWindow::at`](crate::DynamicWindow::at)).
//!
//! # What there is
//! | | blocks | request |
//! |---|---|---|
//! | store | [`Rma::put`] | [`Rma::rput`] |
//! | load | [`Rma::get`] | [`Rma::rget`] |
//! | combine | [`Rma::accumulate`] | [`Rma::raccumulate`] |
//! | combine, and load the old values | [`Rma::get_accumulate`] | [`Rma::rget_accumulate`] |
//! | the same, one element | [`Rma::fetch_and_op`] | [`Rma::rfetch_and_op`] |
//! | store one if it is as expected | [`Rma::compare_and_swap`] | [`Rma::rcompare_and_swap`] |
//!
//! Elements of any layout: [`Rma::put_layout`], [`Rma::get_layout`], [`Rma::accumulate_layout`],
//! [`Rma::get_accumulate_layout`]; and by a request [`Rma::raccumulate_layout`],
//! [`Rma::rget_accumulate_layout`].
//!
//! How elements are changed: [`accumulate`]; when a request is done: [`request`]; what lies where:
//! [`layout`].
//!
//! # Atomicity
//! The calls that combine, swap or compare are atomic per element against each other, from any
//! ranks and epochs, as long as all take the element to be of the same size ([`accumulate`]). Puts
//! and gets are not: an element that one rank combines and another puts at the same time may hold
//! anything.
//!
//! # Cost
//! Remote accesses over `mapped`, with n bytes (w words, l lines touched) that lie together at the
//! target:
//!
//! | call | loads | stores | locks |
//! |---|---|---|---|
//! | `put` | 0 | l | 0 |
//! | `get` | w | 0 | 0 |
//! | accumulates, per piece of 32 bytes | its words | its line, if it changes | 1 |
//! | on one element of up to 4 bytes | 1 | 1, if it changes | 1 |
//! | on one element of 8 bytes | 2 | 1 or 2, if it changes | 1 |
//! | with native atomics, per word | 1 | 1 compare-and-swap, if it changes | 0 |
//!
//! The last row is for elements of up to 4 bytes; or of 8, where the machine's atomics are as wide.
//!
//! A lock is taken and given back: two accesses to a register. Retries come on top.
//!
//! # Budgets
//! Puts and gets that run out of a budget can simply be called again. What combines may have been
//! done in part then, or to its only element: with a budget it is called by its request, which
//! continues where it stopped and does nothing twice ([`Request::wait_within`],
//! [`Fetch::wait_within`]).

#![allow(
    clippy::result_large_err,
    reason = "requests go back to their user, without a heap"
)]

use bytemuck::Pod;
use flagpost_link::{Link, Rank};

use crate::{
    Error,
    window::{fast::declined, reach::Reach},
};

pub mod accumulate;
pub(crate) mod atomic;
mod fast;
pub mod layout;
mod operation;
pub(crate) mod prepare;
pub mod request;
pub(crate) mod telling;
mod transfer;

use self::atomic::Change;
pub use self::{
    atomic::Fetch,
    layout::{BUFFER, Block, Gather, Layout, Scatter},
    operation::{Element, Integer, Operation},
    request::Request,
};

/// A slice as a whole.
pub(crate) const fn all<T>(data: &[T]) -> Layout<'static> {
    Layout::Contiguous { count: data.len() }
}

/// [`Rma::put`].
#[inline(never)]
fn put<'w, T: Pod, L: Link + 'w>(
    epoch: &(impl Reach<'w, L> + ?Sized),
    to: Rank,
    index: usize,
    data: &[T],
) -> Result<(), Error> {
    let piece = epoch.piece(to)?;
    let (key, offset) = (piece.key, piece.inside::<T>(index, data.len())?);
    epoch.admit(to)?;
    let (world, bytes) = (epoch.core().world, bytemuck::cast_slice(data));
    world
        .wait()
        .retry(|| world.link().put(to, key, offset, bytes))
}

/// [`Rma::fetch_and_op`] and [`Rma::compare_and_swap`].
#[inline(never)]
fn fetch<'w, T: Element, L: Link + 'w>(
    epoch: &(impl Reach<'w, L> + ?Sized),
    to: Rank,
    index: usize,
    change: Change<T>,
) -> Result<T, Error> {
    prepare::fetch(epoch, to, index, change)?.wait()
}

/// The operations of an access epoch on elements `T`.
///
/// Unless a call says otherwise, it blocks only until the epoch admits the target, bad arguments
/// change nothing, and what it puts is seen by others when its epoch says so. Costs: see the
/// [module](self).
pub trait Rma<'w, T: Pod, L: Link + 'w>: Reach<'w, L> {
    /// Stores `data` at `index` of `to`'s piece.
    ///
    /// `data` may be reused at once. Cost: the stores.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::NotInGroup`], [`Error::OutOfRange`]; [`Error::Timeout`] if
    /// the epoch does not come to admit `to`.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::{Rma as _, epoch::Assert};
    ///
    /// let next = world.rank().next(world.size());
    /// let window = world.allocate::<u32>(4)?;
    /// let epoch = window.fence(Assert::NO_PRECEDE)?;
    /// epoch.put(next, 1, &[7, 8])?; // elements 1 and 2 of `next`
    /// epoch.end()?;
    /// assert_eq!((window.local().get(1)?, window.local().get(2)?), (7, 8));
    /// # Ok(())
    /// # });
    /// ```
    #[inline]
    #[track_caller]
    fn put(&self, to: Rank, index: usize, data: &[T]) -> Result<(), Error> {
        tries!(self.core().world);
        if fast::put(self, to, index, data) {
            return Ok(());
        }
        self.core().world.note_place();
        declined(move || put(self, to, index, data))
    }

    /// Loads elements from `index` of `from`'s piece into `into`, which is filled on return.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::NotInGroup`], [`Error::OutOfRange`]; [`Error::Timeout`] if
    /// the epoch does not admit `from` in time; [`Error::PeerLost`] in one of 64 calls, if a rank
    /// is lost.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::{Rma as _, epoch::Assert};
    ///
    /// let next = world.rank().next(world.size());
    /// let window = world.allocate::<u32>(2)?;
    /// window.local().copy_in(0, &[7, 8])?;
    /// let epoch = window.fence(Assert::empty())?; // peers see what was set before
    /// let mut got = [0; 2];
    /// epoch.get(next, 0, &mut got)?;
    /// epoch.end()?;
    /// assert_eq!(got, [7, 8]);
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    fn get(&self, from: Rank, index: usize, into: &mut [T]) -> Result<(), Error> {
        called!(self.core().world);
        let piece = self.piece(from)?;
        let (key, offset) = (piece.key, piece.inside::<T>(index, into.len())?);
        self.admit(from)?;
        let (world, bytes) = (self.core().world, bytemuck::cast_slice_mut(into));
        world.note_poll()?;
        world
            .wait()
            .ask(|op| world.link().get(from, key, offset, bytes, op))
    }

    /// [`put`](Self::put) to and from any places: what `data` names goes to what `layout` names,
    /// counted from `index` of `to`'s piece.
    ///
    /// Elements may be of different types on both sides, as long as they are as many bytes. Cost: a
    /// put per piece, see [`layout`].
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::NotInGroup`], [`Error::LengthsDiffer`];
    /// [`Error::OutOfRange`], also of `data`; [`Error::Timeout`] if the epoch does not admit `to`
    /// in time. After a timeout some pieces may have been put.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::{Rma as _, epoch::Assert, rma::Layout};
    ///
    /// let window = world.allocate::<u32>(8)?;
    /// let next = world.rank().next(world.size());
    /// let column = Layout::Vector { blocks: 2, block_len: 1, stride: 4 };
    /// let epoch = window.fence(Assert::NO_PRECEDE)?;
    /// epoch.put_layout(next, 1, column, [7, 8].as_slice().into())?; // to elements 1 and 5
    /// epoch.end()?;
    /// assert_eq!((window.local().get(1)?, window.local().get(5)?), (7, 8));
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    fn put_layout<U: Pod>(
        &self,
        to: Rank,
        index: usize,
        layout: Layout<'_>,
        data: Gather<'_, U>,
    ) -> Result<(), Error> {
        called!(self.core().world);
        prepare::put::<T, U, L>(self, to, index, layout, data)?.wait()
    }

    /// [`get`](Self::get) from and to any places.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::NotInGroup`], [`Error::LengthsDiffer`];
    /// [`Error::OutOfRange`], also of `into`; [`Error::Timeout`] if the epoch does not admit `from`
    /// in time. After a timeout some pieces may have been loaded.
    #[track_caller]
    fn get_layout<U: Pod>(
        &self,
        from: Rank,
        index: usize,
        layout: Layout<'_>,
        into: Scatter<'_, U>,
    ) -> Result<(), Error> {
        called!(self.core().world);
        prepare::get::<T, U, L>(self, from, index, layout, into)?.wait()
    }

    /// Combines the elements from `index` of `to`'s piece with `data`.
    ///
    /// Waits for the locks of `to`, if the link has any, or for answers.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::NotInGroup`], [`Error::OutOfRange`],
    /// [`Error::UnitUnaligned`]: nothing has happened. [`Error::PeerLost`].
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(3, |world| {
    /// use flagpost::{Rank, Rma as _, rma::Operation};
    ///
    /// let window = world.allocate::<u32>(2)?;
    /// let owner = Rank::new(0);
    /// let lock = window.lock_shared(owner)?;
    /// lock.accumulate(owner, 0, &[1, 10], Operation::SUM)?;
    /// lock.unlock()?;
    /// world.barrier()?;
    /// assert_eq!(window.peer(owner)?.get(1)?, 30); // of three ranks
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    fn accumulate(
        &self,
        to: Rank,
        index: usize,
        data: &[T],
        operation: Operation<T>,
    ) -> Result<(), Error>
    where
        T: Element,
    {
        called!(self.core().world);
        self.accumulate_layout(to, index, all(data), data.into(), operation)
    }

    /// [`accumulate`](Self::accumulate) to and from any places.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::NotInGroup`], [`Error::OutOfRange`] (also of `data`),
    /// [`Error::UnitUnaligned`], [`Error::LengthsDiffer`], [`Error::FieldsAccumulated`]: nothing
    /// has happened. [`Error::PeerLost`].
    #[track_caller]
    fn accumulate_layout(
        &self,
        to: Rank,
        index: usize,
        layout: Layout<'_>,
        data: Gather<'_, T>,
        operation: Operation<T>,
    ) -> Result<(), Error>
    where
        T: Element,
    {
        called!(self.core().world);
        prepare::accumulate(self, (to, index), layout, data, operation, None)?.wait()
    }

    /// [`accumulate`](Self::accumulate), and what the elements held before goes to `fetched`.
    ///
    /// With [`Operation::NO_OP`] `data` does not matter and may be empty: elements are only loaded,
    /// each as a whole.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::NotInGroup`], [`Error::OutOfRange`],
    /// [`Error::UnitUnaligned`], [`Error::LengthsDiffer`]: nothing has happened.
    /// [`Error::PeerLost`].
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::{Rank, Rma as _, rma::Operation};
    ///
    /// let window = world.allocate::<u32>(2)?;
    /// let owner = Rank::new(0);
    /// let lock = window.lock_shared(owner)?;
    /// let mut before = [0; 2];
    /// lock.get_accumulate(owner, 0, &[1, 10], Operation::SUM, &mut before)?;
    /// lock.unlock()?;
    /// world.allreduce(&mut before, |a, b| a + b)?;
    /// assert_eq!(before, [0 + 1, 0 + 10]); // one rank has found what the other one has added
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    fn get_accumulate(
        &self,
        to: Rank,
        index: usize,
        data: &[T],
        operation: Operation<T>,
        fetched: &mut [T],
    ) -> Result<(), Error>
    where
        T: Element,
    {
        called!(self.core().world);
        let layout = all(fetched);
        self.get_accumulate_layout((to, index), layout, data.into(), operation, fetched.into())
    }

    /// [`get_accumulate`](Self::get_accumulate) to and from any places, from an element of a rank
    /// on.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::NotInGroup`], [`Error::OutOfRange`] (also of `data` and
    /// `fetched`), [`Error::UnitUnaligned`], [`Error::LengthsDiffer`],
    /// [`Error::FieldsAccumulated`]: nothing has happened. [`Error::PeerLost`].
    #[track_caller]
    fn get_accumulate_layout(
        &self,
        at: (Rank, usize),
        layout: Layout<'_>,
        data: Gather<'_, T>,
        operation: Operation<T>,
        fetched: Scatter<'_, T>,
    ) -> Result<(), Error>
    where
        T: Element,
    {
        called!(self.core().world);
        prepare::accumulate(self, at, layout, data, operation, Some(fetched))?.wait()
    }

    /// Combines element `index` of `to`'s piece with `operand`, and gives what it held before.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::NotInGroup`], [`Error::OutOfRange`],
    /// [`Error::UnitUnaligned`]: nothing has happened. [`Error::PeerLost`], where that rank is lost
    /// or there is no answer, and else in one of 64 calls.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(3, |world| {
    /// use flagpost::{Rank, Rma as _, rma::Operation};
    ///
    /// let window = world.allocate::<u32>(2)?;
    /// let owner = Rank::new(0);
    /// let lock = window.lock_shared(owner)?;
    /// let ticket = lock.fetch_and_op(owner, 0, 1, Operation::SUM)?; // what it was
    /// lock.unlock()?;
    /// let mut sum = [ticket];
    /// world.allreduce(&mut sum, |a, b| a + b)?;
    /// assert_eq!(sum, [0 + 1 + 2]);
    /// # Ok(())
    /// # });
    /// ```
    #[inline]
    #[track_caller]
    fn fetch_and_op(
        &self,
        to: Rank,
        index: usize,
        operand: T,
        operation: Operation<T>,
    ) -> Result<T, Error>
    where
        T: Element,
    {
        tries!(self.core().world);
        if let Some(old) = fast::fetch_and_op(self, to, index, operand, operation) {
            return Ok(old);
        }
        self.core().world.note_place();
        let change = Change::new(operand, operation);
        declined(move || fetch(self, to, index, change))
    }

    /// Stores `new` in element `index` of `to`'s piece if it holds `expected`, and gives what it
    /// held before.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::NotInGroup`], [`Error::OutOfRange`],
    /// [`Error::UnitUnaligned`]: nothing has happened. [`Error::PeerLost`], where that rank is lost
    /// or there is no answer, and else in one of 64 calls.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(3, |world| {
    /// use flagpost::{Rank, Rma as _};
    ///
    /// let window = world.allocate::<u32>(2)?;
    /// let owner = Rank::new(0);
    /// let lock = window.lock_shared(owner)?;
    /// let found = lock.compare_and_swap(owner, 0, 0, 7)?;
    /// lock.unlock()?;
    /// let mut winners = [u32::from(found == 0)]; // the element was 0, and is 7 now
    /// world.allreduce(&mut winners, |a, b| a + b)?;
    /// assert_eq!(winners, [1]); // all others have found 7
    /// # Ok(())
    /// # });
    /// ```
    #[inline]
    #[track_caller]
    fn compare_and_swap(&self, to: Rank, index: usize, expected: T, new: T) -> Result<T, Error>
    where
        T: Integer,
    {
        tries!(self.core().world);
        if let Some(old) = fast::compare_and_swap(self, to, index, expected, new) {
            return Ok(old);
        }
        self.core().world.note_place();
        let change = Change::CompareSwap { expected, new };
        declined(move || fetch(self, to, index, change))
    }

    /// Begins a [`put`](Self::put). Blocks only until the epoch admits `to`.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::NotInGroup`], [`Error::OutOfRange`]; [`Error::Timeout`] if
    /// the epoch does not admit `to` in time.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::{Rma as _, epoch::Assert};
    ///
    /// let next = world.rank().next(world.size());
    /// let window = world.allocate::<u32>(1)?;
    /// let epoch = window.fence(Assert::NO_PRECEDE)?;
    /// let request = epoch.rput(next, 0, &[7])?;
    /// request.wait()?; // the slice may be changed now
    /// epoch.end()?;
    /// assert_eq!(window.local().get(0)?, 7);
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    fn rput<'r>(
        &'r self,
        to: Rank,
        index: usize,
        data: &'r [T],
    ) -> Result<Request<'r, 'w, L>, Error> {
        called!(self.core().world);
        prepare::put::<T, T, L>(self, to, index, all(data), data.into())?.begin()
    }

    /// Begins a [`get`](Self::get). Blocks only until the epoch admits `from`.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::NotInGroup`], [`Error::OutOfRange`]; [`Error::Timeout`] if
    /// the epoch does not admit `from` in time.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::{Rma as _, epoch::Assert};
    ///
    /// let next = world.rank().next(world.size());
    /// let window = world.allocate::<u32>(1)?;
    /// window.local().set(0, 7)?;
    /// let epoch = window.fence(Assert::empty())?;
    /// let mut got = [0];
    /// let request = epoch.rget(next, 0, &mut got)?;
    /// request.wait()?;
    /// assert_eq!(got, [7]);
    /// epoch.end()?;
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    fn rget<'r>(
        &'r self,
        from: Rank,
        index: usize,
        into: &'r mut [T],
    ) -> Result<Request<'r, 'w, L>, Error> {
        called!(self.core().world);
        let layout = all(into);
        prepare::get::<T, T, L>(self, from, index, layout, into.into())?.begin()
    }

    /// Begins a [`fetch_and_op`](Self::fetch_and_op). Blocks only until the epoch admits `to`.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::NotInGroup`], [`Error::OutOfRange`],
    /// [`Error::UnitUnaligned`]; [`Error::Timeout`] if the epoch does not admit `to` in time;
    /// [`Error::PeerLost`], where that rank is lost, and else in one of 64 calls.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::{Budget, Rma as _, rma::Operation};
    ///
    /// let window = world.allocate::<u32>(1)?;
    /// let me = world.rank();
    /// let lock = window.lock_shared(me)?;
    /// let request = lock.rfetch_and_op(me, 0, 5, Operation::SUM)?;
    /// let before = match request.wait_within(Budget::microseconds(20)) {
    ///     Ok(before) => before,
    ///     Err(late) => late.handle.wait()?, // the same operation
    /// };
    /// lock.unlock()?;
    /// assert_eq!(before, 0);
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    fn rfetch_and_op(
        &self,
        to: Rank,
        index: usize,
        operand: T,
        operation: Operation<T>,
    ) -> Result<Fetch<'_, 'w, T, L>, Error>
    where
        T: Element,
    {
        called!(self.core().world);
        prepare::fetch(self, to, index, Change::new(operand, operation))?.begin()
    }

    /// Begins a [`compare_and_swap`](Self::compare_and_swap). Blocks only until the epoch admits
    /// `to`.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::NotInGroup`], [`Error::OutOfRange`],
    /// [`Error::UnitUnaligned`]; [`Error::Timeout`] if the epoch does not admit `to` in time;
    /// [`Error::PeerLost`], where that rank is lost, and else in one of 64 calls.
    #[track_caller]
    fn rcompare_and_swap(
        &self,
        to: Rank,
        index: usize,
        expected: T,
        new: T,
    ) -> Result<Fetch<'_, 'w, T, L>, Error>
    where
        T: Integer,
    {
        called!(self.core().world);
        prepare::fetch(self, to, index, Change::CompareSwap { expected, new })?.begin()
    }

    /// Begins an [`accumulate`](Self::accumulate). Blocks only until the epoch admits `to`.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::NotInGroup`], [`Error::OutOfRange`],
    /// [`Error::UnitUnaligned`]; [`Error::Timeout`] if the epoch does not admit `to` in time.
    #[track_caller]
    fn raccumulate<'r>(
        &'r self,
        to: Rank,
        index: usize,
        data: &'r [T],
        operation: Operation<T>,
    ) -> Result<Request<'r, 'w, L>, Error>
    where
        T: Element,
    {
        called!(self.core().world);
        self.raccumulate_layout(to, index, all(data), data.into(), operation)
    }

    /// Begins an [`accumulate_layout`](Self::accumulate_layout). Blocks only until the epoch admits
    /// `to`.
    ///
    /// # Errors
    /// Those of [`accumulate_layout`](Self::accumulate_layout); [`Error::Timeout`] if the epoch
    /// does not admit `to` in time.
    #[track_caller]
    fn raccumulate_layout<'r>(
        &'r self,
        to: Rank,
        index: usize,
        layout: Layout<'r>,
        data: Gather<'r, T>,
        operation: Operation<T>,
    ) -> Result<Request<'r, 'w, L>, Error>
    where
        T: Element,
    {
        called!(self.core().world);
        prepare::accumulate(self, (to, index), layout, data, operation, None)?.begin()
    }

    /// Begins a [`get_accumulate`](Self::get_accumulate). Blocks only until the epoch admits `to`.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::NotInGroup`], [`Error::OutOfRange`],
    /// [`Error::UnitUnaligned`], [`Error::LengthsDiffer`]; [`Error::Timeout`] if the epoch does not
    /// admit `to` in time.
    #[track_caller]
    fn rget_accumulate<'r>(
        &'r self,
        to: Rank,
        index: usize,
        data: &'r [T],
        operation: Operation<T>,
        fetched: &'r mut [T],
    ) -> Result<Request<'r, 'w, L>, Error>
    where
        T: Element,
    {
        called!(self.core().world);
        let layout = all(fetched);
        self.rget_accumulate_layout((to, index), layout, data.into(), operation, fetched.into())
    }

    /// Begins a [`get_accumulate_layout`](Self::get_accumulate_layout). Blocks only until the epoch
    /// admits the target.
    ///
    /// # Errors
    /// Those of [`get_accumulate_layout`](Self::get_accumulate_layout); [`Error::Timeout`] if the
    /// epoch does not admit the target in time.
    #[track_caller]
    fn rget_accumulate_layout<'r>(
        &'r self,
        at: (Rank, usize),
        layout: Layout<'r>,
        data: Gather<'r, T>,
        operation: Operation<T>,
        fetched: Scatter<'r, T>,
    ) -> Result<Request<'r, 'w, L>, Error>
    where
        T: Element,
    {
        called!(self.core().world);
        prepare::accumulate(self, at, layout, data, operation, Some(fetched))?.begin()
    }
}
