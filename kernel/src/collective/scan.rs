//! Scans: each rank gets what it and all ranks before it have, combined. In round r a rank sends
//! what it has so far to the rank 2^r later, which combines it with its own. Each round has a place
//! of its own in scratch memory, as those of a reduction have. A scan without the rank's own
//! elements is one with them, and each result goes one rank on: there is a place for that, too.
//!
//! The usual algorithm of Hillis and Steele.

use bytemuck::Pod;
use flagpost_link::{Link, Op};

use super::{Call, Rows, tree::part};
use crate::{Error, World};

impl<L: Link> World<'_, L> {
    /// Combines, element by element and by `op`, the `data` of this rank and all before it, in
    /// `data`. Collective: with the same length and operation everywhere.
    ///
    /// Elements have at most 32 bytes. `op` combines in the order of ranks, and must not care about
    /// grouping. O(log p) rounds and a barrier, per 32 bytes or more.
    ///
    /// # Errors
    /// [`Error::ElementTooLarge`]; [`Error::Timeout`] naming the rank that was waited for: call
    /// again with the same slice, as it is then, to continue.
    /// [`Error::CollectiveUnfinished`], [`Error::Asymmetric`].
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(3, |world| {
    /// let mut sum = [1, 10];
    /// world.scan(&mut sum, |a, b| a + b)?;
    /// assert_eq!(sum, [[1, 10], [2, 20], [3, 30]][world.rank().index()]);
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn scan<T: Pod>(&self, data: &mut [T], op: impl FnMut(T, T) -> T) -> Result<(), Error> {
        called!(self);
        self.scan_with(true, data, op)
    }

    /// [`scan`](Self::scan) of the ranks before this one only: the `data` of rank 0 stay as they
    /// are.
    ///
    /// A put and a barrier more than `scan`.
    ///
    /// # Errors
    /// Those of [`scan`](Self::scan).
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(3, |world| {
    /// // Where this rank's part begins, if each has a part of its own length.
    /// let mut start = [10 * (1 + u32::from(world.rank().get()))];
    /// world.exscan(&mut start, |a, b| a + b)?;
    /// assert!(world.rank().get() == 0 || start == [[0], [10], [30]][world.rank().index()]);
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn exscan<T: Pod>(&self, data: &mut [T], op: impl FnMut(T, T) -> T) -> Result<(), Error> {
        called!(self);
        self.scan_with(false, data, op)
    }

    fn scan_with<T: Pod>(
        &self,
        own: bool,
        data: &mut [T],
        mut op: impl FnMut(T, T) -> T,
    ) -> Result<(), Error> {
        let (place, most) = self.places::<T>()?;
        let (element, len) = (size_of::<T>(), size_of_val(data));
        let (state, link, me) = (&self.collectives, self.link(), self.rank());
        let (key, _) = self.scratch();
        self.attempt(Call::Scan { own, element, len }, || {
            state.in_chunks(data.len(), most, |range| {
                let part = part(data, range);
                state.once(0, || {
                    self.pass(Rows::Up, place, part, |mine, theirs| op(theirs, mine))
                })?;
                if !own {
                    let at = place.saturating_mul(super::rounds(self.size()).into());
                    let next = me.next(self.size());
                    state.once(1, || {
                        self.wait()
                            .retry(|| link.put(next, key, at, bytemuck::cast_slice(part)))
                    })?;
                    state.once(2, || {
                        point!(WAIT "the result of the rank before has come":
                            "collective.scan.arrive", self.order_and_arrive()?);
                        Ok(())
                    })?;
                    // Once: when all are in the barrier below, peers may write there again.
                    state.once(3, || {
                        if me.get() > 0 {
                            link.get(me, key, at, bytemuck::cast_slice_mut(part), &Op::new())?;
                        }
                        Ok(())
                    })?;
                }
                point!(WAIT "I2: scratch memory is written again after all have read":
                    "collective.scan.barrier", self.order_and_arrive()?);
                Ok(())
            })
        })
    }
}
