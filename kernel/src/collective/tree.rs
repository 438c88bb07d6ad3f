//! Broadcast and reductions, along binomial trees. A rank that has the data hands them down to one
//! further rank in each round; a reduction goes the other way, and combines on its way up. Data
//! travel through scratch memory, chunk by chunk. A barrier after each chunk keeps peers from
//! writing there too early.

use core::ops::Range;

use bytemuck::Pod;
use flagpost_link::{Link, Op, Rank};

use super::{
    Call, ELEMENT, Half, Rows, Step,
    alike::{HEAD, SHORT},
    check_element, rounds,
};
use crate::{Error, World};

impl<L: Link> World<'_, L> {
    /// Gives the root's `data` to every rank. Collective: with the same root and the same length
    /// everywhere.
    ///
    /// Per 56 p - 40 bytes: O(log p) rounds, p - 1 copies in all, and a barrier.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`]; [`Error::Timeout`] naming the rank that was waited for: call again
    /// with the same slice to continue. [`Error::CollectiveUnfinished`], [`Error::Asymmetric`].
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(3, |world| {
    /// use flagpost::Rank;
    ///
    /// let root = Rank::new(1);
    /// let mut data = if world.rank() == root { [7, 8] } else { [0, 0] };
    /// world.broadcast(root, &mut data)?;
    /// assert_eq!(data, [7, 8]);
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn broadcast<T: Pod>(&self, root: Rank, data: &mut [T]) -> Result<(), Error> {
        called!(self);
        self.check_rank(root)?;
        let (state, (_, most)) = (&self.collectives, self.scratch());
        let most = most.saturating_sub(HEAD);
        let element = size_of::<T>();
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(data);
        let len = bytes.len();
        self.attempt(Call::Broadcast { root, element, len }, || {
            state.in_chunks(len, most, |range| {
                let part = bytes.get_mut(range).unwrap_or(&mut []);
                state.once(0, || self.hand_down(root, part))?;
                point!(WAIT "I2: scratch memory is written again after all have read":
                    "collective.broadcast.barrier", self.order_and_arrive()?);
                Ok(())
            })
        })
    }

    /// Combines all ranks' `data` element by element, by `op`, in the root's slice. Collective:
    /// with the same root, length and operation everywhere. The other ranks' slices hold
    /// intermediate results then.
    ///
    /// Elements have at most 32 bytes. `op` must not care about order and grouping (floating-point
    /// sums do, in their last bits); the same tree is used each time. O(log p) rounds and a
    /// barrier, per 32 bytes or more.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::ElementTooLarge`]; [`Error::Timeout`] naming the rank that
    /// was waited for: call again with the same slice, as it is then, to continue.
    /// [`Error::CollectiveUnfinished`], [`Error::Asymmetric`].
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(3, |world| {
    /// use flagpost::Rank;
    ///
    /// let root = Rank::new(0);
    /// let mut largest = [world.rank().get()];
    /// world.reduce(root, &mut largest, |a, b| a.max(b))?;
    /// if world.rank() == root {
    ///     assert_eq!(largest, [2]);
    /// }
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn reduce<T: Pod>(
        &self,
        root: Rank,
        data: &mut [T],
        mut op: impl FnMut(T, T) -> T,
    ) -> Result<(), Error> {
        called!(self);
        self.check_rank(root)?;
        let (place, most) = self.places::<T>()?;
        let state = &self.collectives;
        let (element, len) = (size_of::<T>(), size_of_val(data));
        self.attempt(Call::Reduce { root, element, len }, || {
            state.in_chunks(data.len(), most, |range| {
                state.once(0, || {
                    self.pass(Rows::To(root), place, part(data, range), &mut op)
                })?;
                point!(WAIT "I2: scratch memory is written again after all have read":
                    "collective.reduce.barrier", self.order_and_arrive()?);
                Ok(())
            })
        })
    }

    /// [`World::reduce`], with the result on every rank: the same bits everywhere.
    ///
    /// # Errors
    /// [`Error::ElementTooLarge`]; [`Error::Timeout`] naming the rank that was waited for: call
    /// again with the same slice, as it is then, to continue.
    /// [`Error::CollectiveUnfinished`], [`Error::Asymmetric`].
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(3, |world| {
    /// let mut sums = [1, world.rank().get()];
    /// world.allreduce(&mut sums, |a, b| a + b)?;
    /// assert_eq!(sums, [3, 0 + 1 + 2]);
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn allreduce<T: Pod>(
        &self,
        data: &mut [T],
        mut op: impl FnMut(T, T) -> T,
    ) -> Result<(), Error> {
        called!(self);
        const ROOT: Rank = Rank::new(0);
        let (place, most) = self.places::<T>()?;
        let state = &self.collectives;
        let (element, len) = (size_of::<T>(), size_of_val(data));
        self.attempt(Call::Allreduce { element, len }, || {
            state.in_chunks(data.len(), most, |range| {
                let part = part(data, range);
                state.once(0, || self.pass(Rows::To(ROOT), place, part, &mut op))?;
                state.once(1, || self.hand_down(ROOT, bytemuck::cast_slice_mut(part)))?;
                point!(WAIT "I2: scratch memory is written again after all have read":
                    "collective.allreduce.barrier", self.order_and_arrive()?);
                Ok(())
            })
        })
    }

    /// Bytes of scratch memory for each round of a reduction, and one more place, and how many
    /// elements go to each.
    pub(super) fn places<T>(&self) -> Result<(usize, usize), Error> {
        check_element::<T>()?;
        let (_, scratch) = self.scratch();
        // There are 40 bytes for each of two ranks, 45 and more of further ones, and fewer rounds
        // than ranks.
        let place = scratch.checked_div(usize::from(rounds(self.size())).saturating_add(1));
        let place = place.unwrap_or(0).max(HEAD + ELEMENT);
        let most = place.saturating_sub(HEAD).checked_div(size_of::<T>());
        Ok((place, most.unwrap_or(usize::MAX)))
    }

    /// From the root to all.
    fn hand_down(&self, root: Rank, part: &mut [u8]) -> Result<(), Error> {
        let exchange = |step: Step, half: Half| {
            if half == Half::Receive {
                return self.heard(step.from, 0, part);
            }
            self.tell(step.to, 0, part)?;
            point!(ORDER "G4: data come before the signal for them":
                "collective.broadcast.fence", self.wait().retry(|| self.link().fence())?);
            Ok(())
        };
        self.collectives
            .gather
            .run(self, Rows::From(root), exchange)
    }

    /// Along `rows`, combined with what each rank has. Each round's part has a place of its own.
    pub(super) fn pass<T: Pod>(
        &self,
        rows: Rows,
        place: usize,
        part: &mut [T],
        mut op: impl FnMut(T, T) -> T,
    ) -> Result<(), Error> {
        let (link, (key, _)) = (self.link(), self.scratch());
        let exchange = |step: Step, half: Half| {
            let at = place.saturating_mul(usize::from(step.round));
            if half == Half::Send {
                self.tell(step.to, at, bytemuck::cast_slice(part))?;
                point!(ORDER "G4: data come before the signal for them":
                    "collective.reduce.fence", self.wait().retry(|| link.fence())?);
                return Ok(());
            }
            let mut combine = |elements: &mut [T], theirs: &[u8]| {
                for (element, theirs) in elements.iter_mut().zip(each(theirs)) {
                    *element = op(*element, theirs);
                }
            };
            let mut bytes = [0; SHORT];
            if let Some(theirs) = bytes.get_mut(..size_of_val(part)) {
                self.heard(step.from, at, theirs)?;
                combine(part, theirs);
                return Ok(());
            }
            if self.collectives.chunk.get() == 0 {
                self.heard(step.from, at, &mut [])?;
            }
            let mut at = at.saturating_add(HEAD);
            let most = SHORT.checked_div(size_of::<T>()).unwrap_or(SHORT).max(1);
            for elements in part.chunks_mut(most) {
                let theirs = bytes.get_mut(..size_of_val(elements)).unwrap_or(&mut []);
                link.get(self.rank(), key, at, theirs, &Op::new())?;
                combine(elements, theirs);
                at = at.saturating_add(theirs.len());
            }
            Ok(())
        };
        self.collectives.gather.run(self, rows, exchange)
    }
}

/// The elements that these bytes are.
pub(super) fn each<T: Pod>(bytes: &[u8]) -> impl Iterator<Item = T> {
    let elements = bytes.chunks_exact(size_of::<T>().max(1));
    elements.map(|one| bytemuck::try_pod_read_unaligned(one).unwrap_or(T::zeroed()))
}

/// A chunk of `data`.
pub(super) fn part<T>(data: &mut [T], range: Range<usize>) -> &mut [T] {
    data.get_mut(range).unwrap_or(&mut [])
}
