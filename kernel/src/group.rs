//! Groups: the ranks that an epoch is about.

use flagpost_link::Rank;

use crate::Error;

/// Distinct ranks of a world, in the order in which they are told things. Borrows the caller's
/// list.
#[derive(Copy, Clone, Debug)]
pub struct Group<'g> {
    ranks: &'g [Rank],
    /// Of the world that has all of them.
    size: u16,
}

/// Ranks that an epoch is about: a [`Group`], or a slice, which is checked at the call.
///
/// A group is made once for many epochs. A slice takes what [`World::group`](crate::World::group)
/// takes, each time: it is looked through once if its ranks ascend, else for each of its ranks.
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

impl<'g> Group<'g> {
    /// No ranks.
    pub(crate) const EMPTY: Self = Self {
        ranks: &[],
        size: 0,
    };

    /// Checks and wraps `ranks`, in a world of `size`. Linear for ascending ranks, else quadratic.
    pub(crate) fn new(ranks: &'g [Rank], size: u16) -> Result<Self, Error> {
        let group = Self { ranks, size };
        group.search(size)?;
        if !ranks.is_sorted_by(|a, b| a < b) {
            let mut rest = ranks;
            while let Some((first, others)) = rest.split_first() {
                if others.contains(first) {
                    return Err(Error::DuplicateRank(*first));
                }
                rest = others;
            }
        }
        Ok(group)
    }

    /// The ranks.
    pub const fn ranks(&self) -> &'g [Rank] {
        self.ranks
    }

    /// Whether a world of `size` has all of them: they may come from a larger one.
    #[inline]
    pub(crate) fn check(&self, size: u16) -> Result<(), Error> {
        if self.size <= size {
            return Ok(());
        }
        self.search(size)
    }

    #[cold]
    fn search(&self, size: u16) -> Result<(), Error> {
        let mut ranks = self.ranks.iter().copied();
        let strange = ranks.find(|rank| rank.get() >= size);
        strange.map_or(Ok(()), |rank| Err(Error::NoSuchRank { rank, size }))
    }

    /// How many ranks there are: at most the size of the world.
    pub(crate) fn count(&self) -> u16 {
        u16::try_from(self.ranks.len()).unwrap_or(u16::MAX)
    }

    /// The ranks from position `done` on.
    pub(crate) fn rest(&self, done: u16) -> &'g [Rank] {
        self.ranks.get(usize::from(done)..).unwrap_or(&[])
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
}
