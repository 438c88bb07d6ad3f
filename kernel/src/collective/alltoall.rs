//! Everybody to everybody, through the ranks' scratch memory. Each rank puts a block into every
//! rank's memory; each begins with another one, so that not all put to the same. A barrier tells
//! that all blocks are there; a second one that all have been read. Longer blocks go chunk by
//! chunk.

use bytemuck::Pod;
use flagpost_link::{Link, Op, Rank};

use super::{Call, ELEMENT, check_element};
use crate::{Error, World};

impl<L: Link> World<'_, L> {
    /// Gives rank r the r-th block of `from`; the r-th block of `into` comes from rank r. Both hold
    /// as many blocks as there are ranks, of the same number of elements on all ranks. Collective.
    ///
    /// Elements have at most 32 bytes. Per 32 bytes of a block: p - 1 puts and two barriers.
    ///
    /// # Errors
    /// [`Error::ElementTooLarge`]; [`Error::WrongLength`] if `from` is no multiple of the number of
    /// ranks, and [`Error::LengthsDiffer`] if `into` is longer or shorter; [`Error::Timeout`]
    /// naming the rank that was waited for: call again with the same slices to continue.
    /// [`Error::CollectiveUnfinished`].
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// let me = 10 * world.rank().get();
    /// let mut into = [0; 2];
    /// world.alltoall(&[me, me + 1], &mut into)?; // an element for each rank
    /// assert_eq!(into, [world.rank().get(), 10 + world.rank().get()]);
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn alltoall<T: Pod>(&self, from: &[T], into: &mut [T]) -> Result<(), Error> {
        called!(self);
        check_element::<T>()?;
        let size = size_of::<T>();
        let ranks = usize::from(self.size());
        let block = from.len().checked_div(ranks).unwrap_or(0);
        if block.saturating_mul(ranks) != from.len() {
            return Err(Error::WrongLength {
                len: from.len() as u64,
                ranks: self.size(),
            });
        }
        if from.len() != into.len() {
            return Err(Error::LengthsDiffer {
                target: size_of_val(into) as u64,
                origin: size_of_val(from) as u64,
            });
        }
        let call = Call::Alltoall {
            element: size,
            len: size_of_val(from),
        };
        self.attempt(call, || self.swap_blocks(block, from, into))
    }

    /// With blocks of `block` elements.
    fn swap_blocks<T: Pod>(&self, block: usize, from: &[T], into: &mut [T]) -> Result<(), Error> {
        let size = size_of::<T>();
        let most = ELEMENT.checked_div(size).unwrap_or(usize::MAX);
        let (state, link) = (&self.collectives, self.link());
        let (key, _) = link.scratch();
        let placed = &state.gather.placed;
        let place = |rank: Rank| ELEMENT.saturating_mul(rank.index());
        state.in_chunks(block, most, |range| {
            // The chunk of `rank`'s block.
            let chunk = |rank: Rank| {
                let start = block.saturating_mul(rank.index());
                start.saturating_add(range.start)..start.saturating_add(range.end)
            };
            state.once(0, || {
                // The next one first, so that not all put to the same rank at a time.
                while placed.get() < usize::from(self.size()) {
                    let distance = placed.get() as u16;
                    let to = self.rank().ahead(distance, self.size());
                    let part = bytemuck::cast_slice(from.get(chunk(to)).unwrap_or(&[]));
                    self.wait()
                        .retry(|| link.put(to, key, place(self.rank()), part))?;
                    placed.set(usize::from(distance).saturating_add(1));
                }
                point!(WAIT "G4: all have put":
                    "collective.alltoall.arrive", self.order_and_gather()?);
                placed.set(0);
                Ok(())
            })?;
            // Once: when all are in the barrier below, peers may write there again.
            state.once(1, || {
                for rank in (0..self.size()).map(Rank::new) {
                    let part = into.get_mut(chunk(rank)).unwrap_or(&mut []);
                    let bytes = bytemuck::cast_slice_mut(part);
                    link.get(self.rank(), key, place(rank), bytes, &Op::new())?;
                }
                Ok(())
            })?;
            point!(WAIT "I2: scratch memory is written again after all have read":
                "collective.alltoall.barrier", self.order_and_gather()?);
            Ok(())
        })
    }
}
