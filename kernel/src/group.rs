//! Groups: the ranks that an epoch is about. `post` and `start` take a list of ranks and check it:
//! each rank is in the world, and named once. A [`Group`] is a list that was checked, for many
//! epochs. A list of up to 4 ranks is copied; a longer one is borrowed from the caller, since there
//! is no heap.

use flagpost_link::Rank;

use crate::Error;

/// Distinct ranks of a world, in the order in which they are told things. Borrows the caller's
/// list, or holds a short one.
#[derive(Copy, Clone, Debug)]
pub struct Group<'g> {
    list: List<'g>,
    /// Of the world that has all of them.
    size: u16,
    /// How many of a short list.
    count: u16,
}

/// How many ranks a group holds by itself: the neighbours in a grid of two dimensions.
const SHORT: usize = 4;

#[derive(Copy, Clone, Debug)]
enum List<'g> {
    Borrowed(&'g [Rank]),
    Short([Rank; SHORT]),
}

/// Ranks that an epoch is about: up to 4 in an array, any number in a borrowed slice or array, or
/// a [`Group`].
///
/// A group is checked once, for many epochs. Arrays and slices are checked at each call, as
/// [`World::group`](crate::World::group) does it: once through the list if its ranks ascend, else
/// once for each rank.
///
/// # Example
/// ```
/// # flagpost_guide::simulate(2, |world| {
/// let window = world.allocate::<u32>(1)?;
/// let peer = world.rank().next(world.size());
/// let exposure = window.post([peer])?; // nothing is borrowed
/// window.start([peer])?.complete()?;
/// exposure.wait()?;
/// # Ok(())
/// # });
/// ```
/// An array of more than 4 ranks is borrowed:
/// ```compile_fail
/// # use flagpost::*;
/// # fn f<L: Link>(window: &Window<'_, u64, L>, many: [Rank; 5]) -> Result<(), Error> {
/// window.post(many)?.wait()
/// # }
/// # flagpost_guide::simulate(5, |world| {
/// #     f(&world.allocate::<u64>(1)?, [0, 1, 2, 3, 4].map(Rank::new))
/// # });
/// ```
pub trait Ranks<'g>: Sealed {
    /// Those of a world of `size`.
    #[doc(hidden)]
    fn group(self, size: u16) -> Result<Group<'g>, Error>;
}

use sealed::Sealed;

/// Closed to other types.
mod sealed {
    use super::{Group, Rank};

    pub trait Sealed {}

    impl Sealed for &Group<'_> {}
    impl Sealed for &[Rank] {}
    impl<const N: usize> Sealed for &[Rank; N] {}
    impl<const N: usize> Sealed for [Rank; N] {}
}

impl<'g> Ranks<'g> for &Group<'g> {
    #[inline]
    fn group(self, size: u16) -> Result<Group<'g>, Error> {
        self.check(size)?;
        Ok(*self)
    }
}

impl<'g> Ranks<'g> for &'g [Rank] {
    fn group(self, size: u16) -> Result<Group<'g>, Error> {
        Group::new(self, size)
    }
}

impl<'g, const N: usize> Ranks<'g> for &'g [Rank; N] {
    fn group(self, size: u16) -> Result<Group<'g>, Error> {
        Group::new(self, size)
    }
}

impl<const N: usize> Ranks<'_> for [Rank; N] {
    fn group(self, size: u16) -> Result<Group<'static>, Error> {
        const { assert!(N <= SHORT, "borrow an array of more than 4 ranks") };
        let mut short = [Rank::new(0); SHORT];
        short.iter_mut().zip(self).for_each(|(to, rank)| *to = rank);
        Group {
            list: List::Short(short),
            size,
            count: N as u16,
        }
        .checked()
    }
}

impl<'g> Group<'g> {
    const fn borrowed(ranks: &'g [Rank], size: u16) -> Self {
        Self {
            list: List::Borrowed(ranks),
            size,
            count: 0,
        }
    }

    /// Checks and wraps `ranks`, in a world of `size`. Linear for ascending ranks, else quadratic.
    pub(crate) fn new(ranks: &'g [Rank], size: u16) -> Result<Self, Error> {
        Self::borrowed(ranks, size).checked()
    }

    fn checked(self) -> Result<Self, Error> {
        self.search(self.size)?;
        let ranks = self.ranks();
        if !ranks.is_sorted_by(|a, b| a < b) {
            let mut rest = ranks;
            while let Some((first, others)) = rest.split_first() {
                if others.contains(first) {
                    return Err(Error::DuplicateRank(*first));
                }
                rest = others;
            }
        }
        Ok(self)
    }

    /// The ranks.
    #[inline]
    pub fn ranks(&self) -> &[Rank] {
        match &self.list {
            List::Borrowed(ranks) => ranks,
            List::Short(ranks) => self.first(ranks),
        }
    }

    /// Those of a short list. (Apart, lest a borrowed one pays for it.)
    #[cold]
    fn first<'s>(&self, ranks: &'s [Rank; SHORT]) -> &'s [Rank] {
        ranks.get(..self.count.into()).unwrap_or(&[])
    }

    /// `Ok` if a world of `size` has all of them: they may come from a larger one.
    #[inline]
    pub(crate) fn check(&self, size: u16) -> Result<(), Error> {
        if self.size <= size {
            return Ok(());
        }
        self.search(size)
    }

    #[cold]
    fn search(&self, size: u16) -> Result<(), Error> {
        let mut ranks = self.ranks().iter().copied();
        let strange = ranks.find(|rank| rank.get() >= size);
        strange.map_or(Ok(()), |rank| Err(Error::NoSuchRank { rank, size }))
    }

    /// How many ranks there are: at most the size of the world.
    pub(crate) fn count(&self) -> u16 {
        u16::try_from(self.ranks().len()).unwrap_or(u16::MAX)
    }

    /// The ranks from position `done` on: as a rule all.
    #[inline]
    pub(crate) fn rest(&self, done: u16) -> &[Rank] {
        if done == 0 {
            return self.ranks();
        }
        self.from(done)
    }

    #[cold]
    #[inline(never)]
    fn from(&self, done: u16) -> &[Rank] {
        self.ranks().get(usize::from(done)..).unwrap_or(&[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_groups_are_refused() {
        let r = Rank::new;
        assert!(Group::new(&[r(2), r(0), r(1)], 3).is_ok());
        assert!(Group::new(&[], 1).is_ok());
        // Of a larger world.
        let ranks = [r(2), r(0)];
        let group = Group::new(&ranks, 3).unwrap();
        assert!(group.check(3).is_ok());
        let none = Error::NoSuchRank {
            rank: r(2),
            size: 2,
        };
        assert_eq!(group.check(2), Err(none));
        assert_eq!(
            Group::new(&[r(0), r(3)], 3).unwrap_err(),
            Error::NoSuchRank {
                rank: r(3),
                size: 3
            }
        );
        assert_eq!(
            Group::new(&[r(2), r(0), r(2)], 3).unwrap_err(),
            Error::DuplicateRank(r(2))
        );
        assert_eq!(
            Group::new(&[r(1), r(1)], 3).unwrap_err(),
            Error::DuplicateRank(r(1))
        );
    }

    #[test]
    fn short_lists_are_as_borrowed_ones() {
        let r = Rank::new;
        let group = [r(2), r(0), r(1)].group(3).unwrap();
        assert_eq!((group.ranks(), group.count()), (&[r(2), r(0), r(1)][..], 3));
        assert_eq!((group.rest(1), group.rest(3)), (&[r(0), r(1)][..], &[][..]));
        assert!([].group(1).unwrap().ranks().is_empty());
        let error = [r(1), r(1)].group(3).unwrap_err();
        assert_eq!(error, Error::DuplicateRank(r(1)));
        let error = [r(0), r(3)].group(3).unwrap_err();
        let (rank, size) = (r(3), 3);
        assert_eq!(error, Error::NoSuchRank { rank, size });
    }
}
