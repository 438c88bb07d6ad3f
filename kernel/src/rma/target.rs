//! Accesses in full: which elements of a target, in which layout, with which notice.
//!
//! A [`Target`] names elements of a rank's piece. It takes a layout, if they do not lie together,
//! and a notice, if their rank is to learn of the access. A verb then says what is done to them:
//! the access begins, and its request says when it is done. Layouts, notices and verbs combine
//! freely, in epochs of all kinds, on attached memory too. Without an epoch an access needs a
//! notice: before [`Target::notify`] there is no verb.
//!
//! # Guarantee
//! G1. Nothing has happened if an argument is refused: all are checked before the epoch is asked to
//!     admit the target; on attached memory after that, since where it lies and how long it is
//!     takes an epoch to ask.
//!
//! # Programs that do not compile
//! An access without an epoch, of which nobody is told:
//! ```compile_fail
//! # use flagpost::*;
//! # fn f<L: Link>(window: &Window<'_, u64, L>, to: Rank) -> Result<(), Error> {
//! window.to(to, 0).put(&[7])?.wait()
//! # }
//! ```
//! ```
//! # use flagpost::*;
//! # fn f<L: Link>(window: &Window<'_, u64, L>, to: Rank) -> Result<(), Error> {
//! window.to(to, 0).notify(Tag(1)).put(&[7])?.wait()
//! # }
//! ```

use core::marker::PhantomData;

use bytemuck::Pod;
use flagpost_link::{Link, Rank};

use super::{
    Element, Fetch, Gather, Integer, Layout, Operation, Request, Scatter,
    accumulate::Accumulate,
    atomic::Change,
    layout::Cursor,
    telling::Checked,
    transfer::{Remote, Sides, Work},
};
use crate::{
    Error,
    complete::Sealed,
    notify::notice::Notice,
    window::reach::{Reach, Silent},
};

/// How a target is told of an access, if at all.
#[diagnostic::on_unimplemented(
    message = "an access without an epoch needs a notice",
    note = "`.notify(Tag(7))` before the verb, or the same call of an epoch"
)]
pub trait Told<W>: Copy + Sealed {
    /// The notice of the access.
    fn notice<'n>(self) -> Option<Notice<'n, W>>
    where
        Self: 'n;
}

impl Sealed for Silent {}

impl<W> Told<W> for Silent {
    fn notice<'n>(self) -> Option<Notice<'n, W>>
    where
        Self: 'n,
    {
        None
    }
}

impl<W> Sealed for Notice<'_, W> {}

impl<W: Copy> Told<W> for Notice<'_, W> {
    fn notice<'n>(self) -> Option<Notice<'n, W>>
    where
        Self: 'n,
    {
        Some(self)
    }
}

/// Elements of a rank's piece, which an access is made to. See the [module](self).
///
/// [`Rma::to`](crate::Rma::to) makes it in an epoch, [`Window::to`](crate::Window::to) without.
/// Each verb begins the access, and blocks only until the epoch admits the target.
///
/// # Errors
/// Of all verbs: [`Error::NoSuchRank`], [`Error::NotInGroup`]; [`Error::OutOfRange`], also of this
/// rank's slices; [`Error::LengthsDiffer`] if both sides are not as many bytes;
/// [`Error::TagTooLarge`], [`Error::NoSuchCounter`], [`Error::WrongWindow`] (an event of another
/// world): nothing has happened. [`Error::Timeout`] if the epoch does not admit the target in time.
/// [`Error::PeerLost`].
///
/// Of those that combine: [`Error::UnitUnaligned`]; [`Error::FieldsAccumulated`] of a layout of
/// fields.
///
/// # Example
/// ```
/// # flagpost_guide::simulate(2, |world| {
/// use flagpost::{Tag, rma::Layout};
///
/// let window = world.allocate::<u32>(8)?;
/// let next = world.rank().next(world.size());
/// let column = Layout::Vector { blocks: 2, block_len: 1, stride: 4 };
/// let mut arrived = window.expect(0..8, Tag(3))?;
/// arrived.start()?;
/// window.to(next, 1).layout(column).notify(Tag(3)).put(&[7, 8])?.wait()?;
/// arrived.wait()?;
/// assert_eq!((window.local().get(1)?, window.local().get(5)?), (7, 8));
/// # Ok(())
/// # });
/// ```
#[derive(Debug)]
#[must_use = "nothing is accessed before a verb says what"]
pub struct Target<'r, 'w, T, L, R: ?Sized, N> {
    reach: &'r R,
    rank: Rank,
    index: usize,
    layout: Option<Layout<'r>>,
    notice: N,
    of: PhantomData<(&'w L, T)>,
}

impl<T: Copy, L, R: ?Sized, N: Copy> Copy for Target<'_, '_, T, L, R, N> {}

impl<T: Copy, L, R: ?Sized, N: Copy> Clone for Target<'_, '_, T, L, R, N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<'r, 'w, T: Pod, L: Link, R: Reach<'w, L> + ?Sized, N> Target<'r, 'w, T, L, R, N> {
    pub(crate) fn new(reach: &'r R, rank: Rank, index: usize, notice: N) -> Self {
        Self {
            reach,
            rank,
            index,
            layout: None,
            notice,
            of: PhantomData,
        }
    }

    /// The elements are those of `layout`, counted from the index. Otherwise they lie together, as
    /// many as this rank's slice has.
    ///
    /// A verb on one element takes a layout that names one.
    pub fn layout(mut self, layout: Layout<'r>) -> Self {
        self.layout = Some(layout);
        self
    }

    /// The rank is told of the access once it is done. See [`notify`](crate::notify).
    pub fn notify(
        self,
        notice: impl Into<Notice<'r, L::Word>>,
    ) -> Target<'r, 'w, T, L, R, Notice<'r, L::Word>> {
        let Self {
            reach,
            rank,
            index,
            layout,
            ..
        } = self;
        Target {
            layout,
            ..Target::new(reach, rank, index, notice.into())
        }
    }
}

impl<'r, 'w, T: Pod, L: Link, R: Reach<'w, L> + ?Sized, N: Told<L::Word>>
    Target<'r, 'w, T, L, R, N>
{
    /// Stores `data`. The request is done when they have left: the slice may be changed then.
    ///
    /// Elements may be of different types on both sides, as long as they are as many bytes.
    #[track_caller]
    pub fn put<U: Pod>(
        self,
        data: impl Into<Gather<'r, T, U>>,
    ) -> Result<Request<'r, 'w, L>, Error> {
        called!(self.reach.core().world);
        self.prepare_put(data.into())?.begin()
    }

    /// Loads elements into `into`, which are there when the request is done.
    ///
    /// Elements may be of different types on both sides, as long as they are as many bytes.
    #[track_caller]
    pub fn get<U: Pod>(
        self,
        into: impl Into<Scatter<'r, T, U>>,
    ) -> Result<Request<'r, 'w, L>, Error> {
        called!(self.reach.core().world);
        self.prepare_get(into.into())?.begin()
    }

    /// Combines elements with `data`. They are changed when the request is done.
    #[track_caller]
    pub fn accumulate(
        self,
        data: impl Into<Gather<'r, T>>,
        operation: Operation<T>,
    ) -> Result<Request<'r, 'w, L>, Error>
    where
        T: Element,
    {
        called!(self.reach.core().world);
        self.prepare_accumulate(data.into(), operation, None)?
            .begin()
    }

    /// Combines elements with `data`, and loads what they held before into `fetched`.
    ///
    /// With [`Operation::NO_OP`] `data` does not matter and may be empty: elements are only loaded,
    /// each as a whole.
    #[track_caller]
    pub fn get_accumulate(
        self,
        data: impl Into<Gather<'r, T>>,
        operation: Operation<T>,
        fetched: impl Into<Scatter<'r, T>>,
    ) -> Result<Request<'r, 'w, L>, Error>
    where
        T: Element,
    {
        called!(self.reach.core().world);
        self.prepare_accumulate(data.into(), operation, Some(fetched.into()))?
            .begin()
    }

    /// Combines one element with `operand`. The answer is what it held before.
    #[track_caller]
    pub fn fetch_and_op(
        self,
        operand: T,
        operation: Operation<T>,
    ) -> Result<Fetch<'r, 'w, T, L>, Error>
    where
        T: Element,
    {
        called!(self.reach.core().world);
        self.prepare_fetch(Change::new(operand, operation))?.begin()
    }

    /// Stores `new` in one element if it holds `expected`. The answer is what it held before. A
    /// notice tells either way.
    #[track_caller]
    pub fn compare_and_swap(self, expected: T, new: T) -> Result<Fetch<'r, 'w, T, L>, Error>
    where
        T: Integer,
    {
        called!(self.reach.core().world);
        self.prepare_fetch(Change::CompareSwap { expected, new })?
            .begin()
    }

    /// A put that has not begun.
    pub(crate) fn prepare_put<U: Pod>(
        self,
        data: Gather<'r, T, U>,
    ) -> Result<Request<'r, 'w, L>, Error> {
        let notice = self.check_notice()?;
        let (remote, layout, bytes) = self.locate::<U>(&data.layout, data.data.len())?;
        same(bytes, data.layout.check::<U>(data.data.len())?)?;
        self.reach.admit(self.rank)?;
        let together = [layout, data.layout].map(|layout| layout.is_contiguous());
        let sides = Sides {
            target: Cursor::new::<T>(layout),
            origin: Cursor::new::<U>(data.layout),
        };
        let all: &[u8] = bytemuck::cast_slice(data.data);
        let data = match together {
            [true, true] => all.get(..bytes).unwrap_or(all),
            _ => all,
        };
        let put = Request::new(remote, sides, Work::Put(data), bytes);
        Ok(match (notice, together) {
            (Some(notice), [true, true]) => put.carrying(notice),
            (notice, _) => put.telling(notice),
        })
    }

    /// A get that has not begun.
    pub(crate) fn prepare_get<U: Pod>(
        self,
        into: Scatter<'r, T, U>,
    ) -> Result<Request<'r, 'w, L>, Error> {
        let notice = self.check_notice()?;
        let (remote, layout, bytes) = self.locate::<U>(&into.layout, into.data.len())?;
        same(bytes, into.layout.check::<U>(into.data.len())?)?;
        self.reach.admit(self.rank)?;
        remote.core.world.note_poll()?;
        let sides = Sides {
            target: Cursor::new::<T>(layout),
            origin: Cursor::new::<U>(into.layout),
        };
        let work = Work::Get(bytemuck::cast_slice_mut(into.data));
        Ok(Request::new(remote, sides, work, bytes).telling(notice))
    }

    /// An accumulate that has not begun. With `fetched`, former values go there.
    pub(crate) fn prepare_accumulate(
        self,
        mut data: Gather<'r, T>,
        operation: Operation<T>,
        fetched: Option<Scatter<'r, T>>,
    ) -> Result<Request<'r, 'w, L>, Error>
    where
        T: Element,
    {
        let notice = self.check_notice()?;
        let (layout, len) = match &fetched {
            Some(into) => (&into.layout, into.data.len()),
            None => (&data.layout, data.data.len()),
        };
        let (remote, layout, bytes) = self.locate::<T>(layout, len)?;
        if layout.is_in_bytes() || data.layout.is_in_bytes() {
            return Err(Error::FieldsAccumulated);
        }
        aligned::<T>(&remote)?;
        let combine = operation.combine();
        if fetched.is_some() && combine.only_reads() {
            data = Gather::from(&[][..]);
        } else {
            same(bytes, data.layout.check::<T>(data.data.len())?)?;
        }
        let fetched = match fetched {
            None => None,
            Some(into) => {
                same(bytes, into.layout.check::<T>(into.data.len())?)?;
                let bytes = bytemuck::cast_slice_mut(into.data);
                Some((Cursor::new::<T>(into.layout), bytes))
            }
        };
        self.reach.admit(self.rank)?;
        if fetched.is_some() {
            remote.core.world.note_poll()?;
        }
        let sides = Sides {
            target: Cursor::new::<T>(layout),
            origin: Cursor::new::<T>(data.layout),
        };
        let work = Work::Accumulate(Accumulate {
            combine,
            operands: bytemuck::cast_slice(data.data),
            fetched,
        });
        Ok(Request::new(remote, sides, work, bytes).telling(notice))
    }

    /// An operation on one element that has not begun.
    pub(crate) fn prepare_fetch(self, change: Change<T>) -> Result<Fetch<'r, 'w, T, L>, Error>
    where
        T: Element,
    {
        let notice = self.check_notice()?;
        let one = Layout::Contiguous { count: 1 };
        let (mut remote, layout, bytes) = self.locate::<T>(&one, 1)?;
        if layout.is_in_bytes() {
            return Err(Error::FieldsAccumulated);
        }
        same(bytes, size_of::<T>())?;
        if let Some(element) = Cursor::new::<T>(layout).run() {
            remote.offset = remote.at(element.at);
        }
        aligned::<T>(&remote)?;
        self.reach.admit(self.rank)?;
        remote.core.world.note_poll()?;
        Ok(Fetch::new(remote, change).telling(notice))
    }

    fn check_notice(&self) -> Result<Option<Checked>, Error> {
        let check = |notice| self.reach.core().check_notice(self.rank, notice);
        self.notice.notice().map(check).transpose()
    }

    /// Where the access starts, its layout there, and how many bytes it is about. By default the
    /// elements lie together, as many as `origin` names of `len` elements `U`.
    fn locate<U>(
        &self,
        origin: &Layout<'_>,
        len: usize,
    ) -> Result<(Remote<'r, 'w, L>, Layout<'r>, usize), Error> {
        let elements = |bytes: usize| bytes.checked_div(size_of::<T>()).unwrap_or(0);
        let piece = self.reach.piece(self.rank)?;
        let layout = match self.layout {
            Some(layout) => layout,
            None => Layout::Contiguous {
                count: elements(origin.extent::<U>(len)?.1),
            },
        };
        let (end, bytes) = layout.extent::<T>(elements(piece.bytes))?;
        let remote = Remote {
            core: self.reach.core(),
            rank: self.rank,
            key: piece.key,
            offset: piece.inside::<T>(self.index, end)?,
        };
        Ok((remote, layout, bytes))
    }
}

/// Elements are changed as a whole at multiples of their size. Windows lie so, unless a
/// displacement unit is none.
fn aligned<T>(remote: &Remote<'_, '_, impl Link>) -> Result<(), Error> {
    if remote.offset.is_multiple_of(size_of::<T>()) {
        return Ok(());
    }
    let unit = remote.core.piece(remote.rank)?.unit;
    let size = size_of::<T>() as u32;
    Err(Error::UnitUnaligned { unit, size })
}

/// Both sides must be about as many bytes.
fn same(target: usize, origin: usize) -> Result<(), Error> {
    if target == origin {
        return Ok(());
    }
    Err(Error::LengthsDiffer {
        target: target as u64,
        origin: origin as u64,
    })
}
