//! Finding a peer's memory, and accessing it. An access names a rank and a displacement. The origin
//! looks for a descriptor that it has kept and that is not out of date; else it reads one from the
//! peer's directory. With the descriptor the access is one like any other.

use core::{cell::Cell, marker::PhantomData};

use bytemuck::Pod;
use flagpost_link::{Amo, Key, Link, Rank};

use super::{Displacement, DynamicWindow, USED, Validation, directory::Field};
use crate::{
    Error, Rma,
    rma::{Silent, Target},
    window::{Core, Piece, reach::Reach},
};

/// Words of a kept descriptor: rank and region, number (0: none), key, bytes, count.
const WORDS: usize = 5;

/// Descriptors of peers' regions.
#[derive(Debug)]
pub(super) struct Kept<'w> {
    words: &'w [Cell<u32>],
    /// The descriptor that is dropped next for a new one.
    oldest: Cell<usize>,
}

/// Where a region lies.
#[derive(Copy, Clone, Debug)]
struct Descriptor {
    key: Key,
    bytes: u32,
}

impl<'w> Kept<'w> {
    /// Arena words for this many.
    pub(super) fn words(kept: u16) -> usize {
        usize::from(kept).saturating_mul(WORDS)
    }

    pub(super) fn new(words: &'w [Cell<u32>]) -> Self {
        Self {
            words,
            oldest: Cell::new(0),
        }
    }

    fn rows(&self) -> &'w [[Cell<u32>; WORDS]] {
        self.words.as_chunks().0
    }

    /// The descriptor that is kept of `rank`'s region, and the count it is kept with.
    fn find(&self, rank: Rank, at: Displacement) -> Option<(Descriptor, u32)> {
        let place = place(rank, at);
        let mut rows = self.rows().iter();
        let [_, _, key, bytes, count] = rows.find(|[its_place, its_number, ..]| {
            its_place.get() == place && its_number.get() == at.number()
        })?;
        let descriptor = Descriptor {
            key: Key::new(key.get()),
            bytes: bytes.get(),
        };
        Some((descriptor, count.get()))
    }

    fn keep(&self, rank: Rank, at: Displacement, descriptor: Descriptor, count: u32) {
        let place = place(rank, at);
        let rows = self.rows();
        // An older one of the same region is of no use any more.
        let same = rows
            .iter()
            .position(|[its_place, ..]| its_place.get() == place);
        let index = same.unwrap_or_else(|| {
            let next = self.oldest.get().saturating_add(1);
            self.oldest
                .replace(if next < rows.len() { next } else { 0 })
        });
        let Descriptor { key, bytes } = descriptor;
        let row = [place, at.number(), key.get(), bytes, count];
        for (word, value) in rows.get(index).into_iter().flatten().zip(row) {
            word.set(value);
        }
    }

    fn drop_all(&self) {
        for [_, number, ..] in self.rows() {
            number.set(0);
        }
    }
}

/// Peers' attached memory from a displacement on, as elements `T`, in an epoch `E` or without one:
/// see [`DynamicWindow::at`].
#[derive(Debug)]
pub struct Attached<'e, 'w, T, L: Link, S, E> {
    window: &'e DynamicWindow<'w, L, S>,
    epoch: &'e E,
    at: Displacement,
    element: PhantomData<T>,
}

impl<'w, T, L, S, E> Rma<'w, T, L> for Attached<'_, 'w, T, L, S, E>
where
    T: Pod,
    L: Link,
    E: Reach<'w, L, Told = Silent>,
{
}

impl<'w, T: Pod, L: Link, S, E: Reach<'w, L>> Reach<'w, L> for Attached<'_, 'w, T, L, S, E> {
    type Told = E::Told;

    fn core(&self) -> &Core<'w, L> {
        &self.window.window.core
    }

    fn piece(&self, target: Rank) -> Result<Piece, Error> {
        let Self {
            window, epoch, at, ..
        } = *self;
        if !core::ptr::eq(epoch.core(), self.core()) {
            return Err(Error::WrongWindow);
        }
        self.core().world.check_rank(target)?;
        let ((), Descriptor { key, bytes }) = order!("what was detached earlier is noticed":
            "window.dynamic.reach.admit<describe",
            epoch.admit(target)?, window.describe(target, at)?);
        let (base, end) = (at.offset(), bytes);
        let Some(bytes) = end.checked_sub(base) else {
            let (end, len) = (base.into(), end.into());
            return Err(Error::OutOfRange { end, len });
        };
        let unit = size_of::<T>() as u32;
        Ok(Piece {
            key,
            base: base as usize,
            bytes: bytes as usize,
            unit,
        })
    }

    fn admits(&self, target: Rank) -> bool {
        self.epoch.admits(target)
    }

    fn admit(&self, target: Rank) -> Result<(), Error> {
        self.epoch.admit(target)
    }
}

impl<'w, T: Pod, L: Link, S, E: Reach<'w, L>> Attached<'_, 'w, T, L, S, E> {
    /// The elements from `index` on, for an access in full: as [`Rma::to`] in an epoch, and as
    /// [`Window::to`](crate::Window::to) without.
    pub fn to(&self, to: Rank, index: usize) -> Target<'_, 'w, T, L, Self, E::Told> {
        Target::new(self, to, index, E::Told::default())
    }
}

/// Rank and region as a word.
fn place(rank: Rank, at: Displacement) -> u32 {
    u32::from(rank.get()).wrapping_shl(u16::BITS) | u32::from(at.region())
}

impl<'w, L: Link, S> DynamicWindow<'w, L, S> {
    /// The memory attached by a peer from `at` on, as elements `T`: what the operations of [`Rma`]
    /// reach in an access epoch of [`DynamicWindow::window`]. Indices count from there, and the
    /// rank that a call names is the one whose displacement `at` is. Without an epoch, `epoch` is
    /// that window itself: then there are the notified accesses of [`Attached::to`].
    ///
    /// Each call waits until the epoch admits its target, and finds out anew whether the memory is
    /// still attached. Cost: one load of the target's counter, unless detaches are told
    /// ([`Validation`]), or three remote operations where no descriptor is kept; and that of the
    /// operation.
    ///
    /// # Errors
    /// Of each call, beside its own, and without a handle: [`Error::Timeout`] if the target does
    /// not answer where the memory lies, or a lock of its words stays taken; [`Error::PeerLost`];
    /// [`Error::NotAttached`]; [`Error::WrongWindow`], if the epoch is another window's;
    /// [`Error::OutOfRange`], if `at` is a byte after the memory (in bytes).
    ///
    /// ```
    /// # use flagpost::{*, rma::Operation};
    /// # fn f<L: Link>(
    /// #     window: &DynamicWindow<'_, L>, owner: Rank, told: u64,
    /// # ) -> Result<(), Error> {
    /// let lock = window.window().lock_exclusive(owner)?;
    /// let list = window.at(&lock, Displacement::new(told));
    /// list.put(owner, 1, &[7_u64])?;
    /// let count = list.fetch_and_op(owner, 0, 1, Operation::SUM)?;
    /// # let _: u64 = count;
    /// lock.unlock()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn at<'e, T: Pod, E: Reach<'w, L>>(
        &'e self,
        epoch: &'e E,
        at: Displacement,
    ) -> Attached<'e, 'w, T, L, S, E> {
        Attached {
            window: self,
            epoch,
            at,
            element: PhantomData,
        }
    }

    /// Where `rank`'s region is: as kept, if that is not out of date.
    fn describe(&self, rank: Rank, at: Displacement) -> Result<Descriptor, Error> {
        // No attachment has number 0.
        if at.region() >= self.directory.regions() || at.number() == 0 {
            return Err(Error::NotAttached);
        }
        let count = match self.validation {
            Validation::Counter => {
                let count = self.change(rank, Field::Count, Amo::Read)? as u32;
                let is_new = |its_count| {
                    point!(CHECK "G2: what is kept is not out of date":
                    "window.dynamic.describe.count", its_count == count; else true)
                };
                match self.kept.find(rank, at) {
                    Some((descriptor, its_count)) if is_new(its_count) => return Ok(descriptor),
                    _ => count,
                }
            }
            Validation::Invalidation => {
                if let Some(told) = self.told_since(self.told.get())? {
                    self.told.set(told);
                    point!(CHECK "G2: what is kept may be out of date":
                        "window.dynamic.describe.told", self.kept.drop_all());
                }
                if let Some((descriptor, _)) = self.kept.find(rank, at) {
                    return Ok(descriptor);
                }
                0
            }
        };
        let ((), descriptor) = order!("a reader hears of what comes after it has joined":
            "window.dynamic.describe.join<fetch", self.join(rank)?, self.fetch(rank, at)?);
        self.kept.keep(rank, at, descriptor, count);
        Ok(descriptor)
    }

    /// Becomes a reader of `rank`'s descriptors, who is told when they are out of date.
    fn join(&self, rank: Rank) -> Result<(), Error> {
        if self.validation == Validation::Invalidation {
            let me = u32::from(self.window.core.world.rank().get());
            let block = me.wrapping_shr(6) as u16;
            let bit = 1_u64.wrapping_shl(me); // modulo 64
            self.change(rank, Field::Readers(block), Amo::Or(bit))?;
        }
        Ok(())
    }

    /// Reads where `rank`'s region is.
    fn fetch(&self, rank: Rank, at: Displacement) -> Result<Descriptor, Error> {
        let read = |field| self.change(rank, field, Amo::Read);
        // I1: the name after the key: a name that is still there says whose key it was. A rank that
        // knows the displacement finds no key from before it.
        let key = read(Field::Key(at.region()))?;
        let name = read(Field::Name(at.region()))?;
        let number = name.wrapping_shr(u32::BITS) as u32;
        if number != at.number() {
            return Err(Error::NotAttached);
        }
        let descriptor = Descriptor {
            key: Key::new(key as u32),
            bytes: name as u32,
        };
        Ok(descriptor)
    }

    /// Where this rank's attached memory lies.
    pub(super) fn place_here<T>(
        &self,
        at: Displacement,
        count: usize,
    ) -> Result<(Key, usize), Error> {
        let (rows, _) = self.attached.as_chunks::<3>();
        let row = rows.get(usize::from(at.region()));
        let row = row.filter(|[_, _, number]| number.get() == at.number() | USED);
        let Some([key, bytes, _]) = row else {
            return Err(Error::NotAttached);
        };
        let descriptor = Descriptor {
            key: Key::new(key.get()),
            bytes: bytes.get(),
        };
        Ok((descriptor.key, descriptor.inside::<T>(at, count)?))
    }
}

impl Descriptor {
    /// The offset of `count` elements from `at` on.
    fn inside<T>(self, at: Displacement, count: usize) -> Result<usize, Error> {
        let piece = Piece {
            key: self.key,
            base: 0,
            bytes: self.bytes as usize,
            unit: 1,
        };
        piece.inside::<T>(at.offset() as usize, count)
    }
}
