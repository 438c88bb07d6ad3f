//! Allgather through the ranks' scratch memory. Each element has its place there, the same on all
//! ranks. In each round a rank copies what it has heard so far to the next rank, so the number of
//! elements doubles. Then each reads its scratch memory, and a barrier keeps peers from writing
//! there too early.

use bytemuck::Pod;
use flagpost_link::{Key, Link, Op, Rank};

use super::{Call, ELEMENT, Half, Rows, Step, alike::HEAD, check_element};
use crate::{Error, World};

/// Bytes that are passed on at a time.
const RUN: usize = 256;

impl<L: Link> World<'_, L> {
    /// Gives `mine` to every rank, and calls `each(rank, element)` for every rank's element, its
    /// own included, in ascending order of ranks. Elements have at most 32 bytes.
    ///
    /// # Errors
    /// [`Error::ElementTooLarge`]; [`Error::Timeout`] naming the rank that was waited for: call
    /// again with the same element to continue. `each` is called once per rank all the same.
    /// [`Error::CollectiveUnfinished`], [`Error::Asymmetric`].
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(3, |world| {
    /// let mut sum = 0;
    /// world.allgather_with(10 * world.rank().get(), |_, tens| sum += tens)?;
    /// assert_eq!(sum, 0 + 10 + 20);
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn allgather_with<T: Pod>(&self, mine: T, each: impl FnMut(Rank, T)) -> Result<(), Error> {
        called!(self);
        check_element::<T>()?;
        let element = size_of::<T>();
        self.attempt(Call::Allgather { element }, || self.tell_all(mine, each))
    }

    /// [`allgather_with`](World::allgather_with), as a part of another call, of an element that is
    /// not too large.
    pub(crate) fn tell_all<T: Pod>(
        &self,
        mine: T,
        mut each: impl FnMut(Rank, T),
    ) -> Result<(), Error> {
        let (link, (key, _)) = (self.link(), self.scratch());
        let state = &self.collectives;
        if state.phase.get() == 0 {
            self.spread(key, bytemuck::bytes_of(&mine))?;
        }
        order!("I2: peers may write there after the barrier": "collective.allgather.read<barrier",
            if state.phase.get() == 0 {
                for rank in (0..self.size()).map(Rank::new) {
                    let mut element = mine;
                    if rank != self.rank() {
                        let into = bytemuck::bytes_of_mut(&mut element);
                        let place = place(into, rank);
                        link.get(self.rank(), key, place, into, &Op::new())?;
                    }
                    each(rank, element);
                }
                point!(ONCE "peers may write there once all are in the barrier":
                    "collective.allgather.read", state.phase.set(1));
            },
            point!(WAIT "I2: scratch memory is written again after all have read":
                "collective.allgather.barrier", self.order_and_arrive()?));
        state.phase.set(0);
        Ok(())
    }

    /// [`World::allgather_with`], into a slice with one element per rank.
    ///
    /// # Errors
    /// [`Error::WrongLength`] if `all` has not exactly one element per rank;
    /// [`Error::ElementTooLarge`]; [`Error::Timeout`] naming the rank that was waited for: call
    /// again with the same arguments to continue.
    /// [`Error::CollectiveUnfinished`], [`Error::Asymmetric`].
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(3, |world| {
    /// let mut all = [0; 3]; // one element per rank
    /// world.allgather(10 * world.rank().get(), &mut all)?;
    /// assert_eq!(all, [0, 10, 20]);
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn allgather<T: Pod>(&self, mine: T, all: &mut [T]) -> Result<(), Error> {
        called!(self);
        if all.len() != usize::from(self.size()) {
            return Err(Error::WrongLength {
                len: all.len() as u64,
                ranks: self.size(),
            });
        }
        self.allgather_with(mine, |rank, element| {
            if let Some(place) = all.get_mut(rank.index()) {
                *place = element;
            }
        })
    }

    /// Puts `own` into the scratch memory of every rank, at this rank's place.
    fn spread(&self, key: Key, own: &[u8]) -> Result<(), Error> {
        let exchange = |step: Step, half: Half| {
            if half == Half::Receive {
                return match step.round {
                    0 => self.heard(step.from, self.head_at(), &mut []),
                    _ => Ok(()),
                };
            }
            if step.round == 0 {
                let (rank, place) = (self.rank(), place(own, self.rank()));
                self.wait()
                    .retry(|| self.link().put(rank, key, place, own))?;
            }
            self.pass_on(key, own.len(), step)
        };
        self.collectives.gather.run(self, Rows::All, exchange)
    }

    /// Where the head of the rank before this one is: after the elements.
    fn head_at(&self) -> usize {
        ELEMENT.saturating_mul(self.size().into())
    }

    /// Copies the elements that this rank has heard of to `step.to`, as far as that lacks them:
    /// those of itself and the ranks before it, which lie in one run of memory, or in two if it
    /// wraps around.
    fn pass_on(&self, key: Key, element: usize, step: Step) -> Result<(), Error> {
        let (link, size) = (self.link(), self.size());
        // `to` has heard of `distance` ranks, and there are no more than `size`.
        let count = step.distance.min(size.saturating_sub(step.distance));
        let first = self
            .rank()
            .ahead(size.saturating_sub(count.saturating_sub(1)), size);
        let bytes = |ranks: u16| element.saturating_mul(usize::from(ranks));
        let before_wrap = bytes(count.min(size.saturating_sub(first.get())));
        let placed = &self.collectives.gather.placed;
        let head = if step.round == 0 { HEAD } else { 0 };
        if placed.get() < head {
            self.put_headed(step.to, self.head_at(), &[])?;
            placed.set(head);
        }
        let mut buffer = [0_u8; RUN];
        while let done = placed.get().saturating_sub(head)
            && done < bytes(count)
        {
            let (at, end) = match done.checked_sub(before_wrap) {
                None => (bytes(first.get()).saturating_add(done), before_wrap),
                Some(behind) => (behind, bytes(count)),
            };
            let run = end.saturating_sub(done).min(RUN);
            let run_bytes = buffer.get_mut(..run).unwrap_or(&mut []);
            link.get(self.rank(), key, at, run_bytes, &Op::new())?;
            self.wait()
                .retry(|| link.put(step.to, key, at, run_bytes))?;
            // BUDGET: a repeated call puts the rest only.
            placed.set(placed.get().saturating_add(run));
        }
        point!(ORDER "G2: elements come before the signal for them":
            "collective.allgather.fence", self.wait().retry(|| link.fence())?);
        Ok(())
    }
}

/// Where the element of `rank` lies in scratch memory, if each is as long as this one.
fn place(element: &[u8], rank: Rank) -> usize {
    element.len().saturating_mul(rank.index())
}
