//! Accesses to peers' pieces of a window, within an epoch.
//!
//! Every kind of access epoch offers the same operations, by the trait [`Rma`]. They differ in
//! which ranks they admit, and when their accesses are done. So does memory that is attached to a
//! dynamic window ([`DynamicWindow::at`](crate::DynamicWindow::at)).
//!
//! # The calls
//! | | blocks | in full, with a request |
//! |---|---|---|
//! | store | [`Rma::put`] | [`Target::put`] |
//! | load | [`Rma::get`] | [`Target::get`] |
//! | combine | [`Rma::accumulate`] | [`Target::accumulate`] |
//! | combine, and load the old values | [`Rma::get_accumulate`] | [`Target::get_accumulate`] |
//! | the same, one element | [`Rma::fetch_and_op`] | [`Target::fetch_and_op`] |
//! | store one if it is as expected | [`Rma::compare_and_swap`] | [`Target::compare_and_swap`] |
//!
//! [`Rma::to`] names the target's elements for a call in full: in any layout, with a notice if
//! their rank is to learn of the access ([`target`]).
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
//! `docs/costs.md` counts the accesses of each call. Over `mapped` a put stores lines, and a get
//! loads words. A call that combines does so in pieces of 32 bytes, each a load and a store under
//! the owner's lock; or word by word by a compare-and-swap, where the machine has atomic operations
//! of the element's size. Retries come on top.
//!
//! # Budgets
//! Puts and gets that run out of a budget can simply be called again. A call that combines may have
//! been done in part then, or to its only element: with a budget it is called by its request, which
//! continues where it stopped and does nothing twice ([`Request::wait_within`],
//! [`Fetch::wait_within`]).

#![allow(
    clippy::result_large_err,
    reason = "requests go back to their user, without a heap"
)]

use bytemuck::Pod;
use flagpost_link::{Amo, Link, Rank, Width};

use crate::{
    Error,
    window::{
        fast::{declined, place},
        reach::Reach,
    },
};

pub mod accumulate;
pub(crate) mod atomic;
mod element;
pub mod layout;
mod operation;
pub mod request;
pub mod target;
pub(crate) mod telling;
mod transfer;

use self::{atomic::Change, operation::word};
pub use self::{
    atomic::Fetch,
    element::{Bool, Complex, Element, Integer, Logical, Number, Ordered, Placed, Value},
    layout::{BUFFER, Block, Gather, Layout, Scatter},
    operation::Operation,
    request::Request,
    target::{Target, Told},
};
pub use crate::window::reach::{Silent, Unsaid};

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
    Target::<T, L, _, _>::new(epoch, to, index, Silent)
        .prepare_fetch(change)?
        .wait()
}

/// The operations of an access epoch on elements `T`.
///
/// Unless a call says otherwise, it blocks only until the epoch admits the target, bad arguments
/// change nothing, and what it puts is seen by others when its epoch says so. Costs: see the
/// [module](self).
pub trait Rma<'w, T: Pod, L: Link + 'w>: Reach<'w, L, Told = Silent> {
    /// The elements of `to`'s piece from `index` on, for an access in full: with a layout, with a
    /// notice, by a request. Does nothing yet.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::{Rma as _, Tag, epoch::Assert};
    ///
    /// let window = world.allocate::<u32>(2)?;
    /// let next = world.rank().next(world.size());
    /// let mut told = window.expect(0..0, Tag(1))?;
    /// told.start()?;
    /// let epoch = window.fence(Assert::NO_PRECEDE)?;
    /// let request = epoch.to(next, 1).notify(Tag(1)).put(&[7])?;
    /// request.wait()?; // the slice may be changed now, and `next` is told
    /// epoch.end()?;
    /// told.wait()?;
    /// assert_eq!(window.local().get(1)?, 7);
    /// # Ok(())
    /// # });
    /// ```
    fn to(&self, to: Rank, index: usize) -> Target<'_, 'w, T, L, Self, Silent> {
        Target::new(self, to, index, Silent)
    }

    /// Stores `data` at `index` of `to`'s piece.
    ///
    /// `data` may be reused immediately. Cost: the stores.
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
        if fast_put(self, to, index, data) {
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
        self.to(to, index)
            .prepare_accumulate(data.into(), operation, None)?
            .wait()
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
        self.to(to, index)
            .prepare_accumulate(data.into(), operation, Some(fetched.into()))?
            .wait()
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
        if let Some(old) = fast_fetch_and_op(self, to, index, operand, operation) {
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
        if let Some(old) = fast_compare_and_swap(self, to, index, expected, new) {
            return Ok(old);
        }
        self.core().world.note_place();
        let change = Change::CompareSwap { expected, new };
        declined(move || fetch(self, to, index, change))
    }
}

// ---- Fast paths: see [`window::fast`](crate::window::fast) ----

/// Stores `data`; false if it declines.
#[inline]
fn fast_put<'w, T: Pod, L: Link + 'w>(
    epoch: &(impl Reach<'w, L> + ?Sized),
    to: Rank,
    index: usize,
    data: &[T],
) -> bool {
    let core = epoch.core();
    let link = core.world.link();
    let Some((key, offset)) = place::<T, L>(core, to, index, data.len()) else {
        return false;
    };
    let bytes = bytemuck::cast_slice(data);
    epoch.admits(to) && link.put(to, key, offset, bytes).is_ok()
}

/// Combines one element with `operand`, and gives what it was.
#[inline]
fn fast_fetch_and_op<'w, T: Element, L: Link + 'w>(
    epoch: &(impl Reach<'w, L> + ?Sized),
    to: Rank,
    index: usize,
    operand: T,
    operation: Operation<T>,
) -> Option<T> {
    let amo = operation.combine().as_word(operand)?;
    fast_change(epoch, to, index, amo)
}

/// Stores `new` in one element if it is as `expected`, and gives what it was.
#[inline]
fn fast_compare_and_swap<'w, T: Integer, L: Link + 'w>(
    epoch: &(impl Reach<'w, L> + ?Sized),
    to: Rank,
    index: usize,
    expected: T,
    new: T,
) -> Option<T> {
    let (expected, new) = (word(expected)?, word(new)?);
    fast_change(epoch, to, index, Amo::CompareSwap { expected, new })
}

/// Does `amo` to one element of 4 or 8 bytes, and gives what it was.
#[inline]
fn fast_change<'w, T: Pod, L: Link + 'w>(
    epoch: &(impl Reach<'w, L> + ?Sized),
    to: Rank,
    index: usize,
    amo: Amo,
) -> Option<T> {
    let core = epoch.core();
    let (key, offset) = place::<T, L>(core, to, index, 1)?;
    if !epoch.admits(to) || core.world.is_poll_due() {
        return None;
    }
    let link = core.world.link();
    if size_of::<T>() == size_of::<u64>() {
        let old = link.fast_amo(to, key, offset, amo, Width::Whole)?;
        return bytemuck::try_cast(old).ok();
    }
    let old = link.fast_amo(to, key, offset, amo, Width::Half)?;
    bytemuck::try_cast(old as u32).ok()
}
