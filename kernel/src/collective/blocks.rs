//! Blocks from rank to rank, through the ranks' scratch memory: alltoall, gather, scatter, and what
//! is like them. Each rank has a place there for a block of every rank. A rank puts its blocks; it
//! begins with another target than its peers do, so that not all put to the same. Signals tell that
//! the blocks are there, and a barrier that all have been read. Longer blocks go chunk by chunk.
//!
//! Blocks of unequal lengths begin with a chunk of lengths: each rank tells each how long its block
//! for it is, and how long the longest is that it knows of. So all go through as many chunks.
//!
//! | call | a rank puts to | arrival is told by |
//! |---|---|---|
//! | alltoall, allgather of unequal lengths, reduce_scatter | all | a barrier |
//! | gather | the root | a tree to the root |
//! | scatter | all, if it is the root | a tree from the root |

use core::ops::Range;

use bytemuck::{Pod, Zeroable};
use flagpost_link::{Link, Rank};

use super::{Call, ELEMENT, Rows, alike::HEAD, check_element, tree::each};
use crate::{Differs, Error, World};

/// Bytes of a block and its head in scratch memory.
const PLACE: usize = HEAD + ELEMENT;

/// The blocks that are moved.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Blocks {
    Alltoall,
    AlltoallUneven,
    ReduceScatter,
    Gather(Rank),
    Scatter(Rank),
}

/// The lengths that the ranks have told each other, of blocks of unequal ones.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Lengths {
    /// Elements of the longest block of all.
    longest: usize,
    /// The first rank whose block is shorter or longer than this rank's place for it.
    differs: Option<Rank>,
    /// All ranks have told theirs.
    complete: bool,
}

/// The lengths that a rank tells another one before such blocks, in elements.
#[derive(Copy, Clone, Debug, Pod, Zeroable)]
#[repr(C)]
struct Header {
    block: u64,
    longest: u64,
}

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
    /// [`Error::CollectiveUnfinished`], [`Error::Asymmetric`].
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
        let block = self.block_of(from)?;
        same_length(from, into)?;
        self.attempt(of(Blocks::Alltoall, from), || {
            self.swap(
                Rows::All,
                block,
                |to| blocks(from, block, to),
                |rank, index, element| set(into, place(block, rank, index), element),
            )
        })
    }

    /// [`alltoall`](Self::alltoall), of blocks of any lengths: `from[r]` goes to rank r, and
    /// `into[r]` comes from it. Both have one slice per rank, and a rank's slice for another one is
    /// as long as the other's place for it.
    ///
    /// To gather blocks of any lengths on all ranks, name the same slice for each rank in `from`.
    ///
    /// Elements have at most 32 bytes. Per 32 bytes of the longest block, and once before: p - 1
    /// puts and two barriers.
    ///
    /// # Errors
    /// [`Error::ElementTooLarge`]; [`Error::WrongLength`] if there is not one slice per rank;
    /// [`Error::Asymmetric`] naming the first rank whose block is not as long as the place for it:
    /// the others' are there. [`Error::Timeout`] naming the rank that was waited for: call again
    /// with the same slices to continue. [`Error::CollectiveUnfinished`], [`Error::Asymmetric`].
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// // Rank r has r + 1 elements for each.
    /// let mine = [world.rank().get(); 2];
    /// let mine = &mine[..=world.rank().index()];
    /// let (mut of_0, mut of_1) = ([9; 1], [9; 2]);
    /// world.alltoall_uneven(&[mine, mine], &mut [&mut of_0, &mut of_1])?;
    /// assert_eq!((of_0, of_1), ([0], [1, 1]));
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn alltoall_uneven<T: Pod>(
        &self,
        from: &[&[T]],
        into: &mut [&mut [T]],
    ) -> Result<(), Error> {
        called!(self);
        check_element::<T>()?;
        let (size, state) = (self.size(), &self.collectives);
        for len in [from.len(), into.len()] {
            if len != usize::from(size) {
                let len = len as u64;
                return Err(Error::WrongLength { len, ranks: size });
            }
        }
        let call = Call::Blocks {
            kind: Blocks::AlltoallUneven,
            element: size_of::<T>(),
            len: from.iter().map(|block| block.len()).sum(),
        };
        let block = |to: Rank| from.get(to.index()).copied().unwrap_or(&[]);
        let lengths = &state.lengths;
        self.attempt(call, || {
            if !lengths.get().complete {
                let longest = from.iter().map(|block| block.len()).max().unwrap_or(0) as u64;
                let headers = |to| {
                    let block = block(to).len() as u64;
                    [Header { block, longest }]
                };
                self.swap(Rows::All, 1, headers, |rank, _, theirs: Header| {
                    let place = into.get(rank.index()).map_or(0, |place| place.len());
                    let mut said = lengths.get();
                    said.longest = said.longest.max(theirs.longest as usize);
                    if theirs.block != place as u64 {
                        said.differs = said.differs.or(Some(rank));
                    }
                    lengths.set(said);
                })?;
            }
            let mut said = lengths.get();
            point!(ONCE "a call that continues does not tell the lengths again":
                "collective.blocks.lengths", said.complete = true);
            lengths.set(said);
            self.swap(Rows::All, said.longest, block, |rank, index, element| {
                if let Some(place) = into.get_mut(rank.index()) {
                    set(place, index, element);
                }
            })?;
            lengths.set(Lengths::default());
            Ok(said.differs)
        })?
        .map_or(Ok(()), |rank| {
            let differs = Differs::Length;
            Err(Error::Asymmetric { rank, differs })
        })
    }

    /// Gives the root every rank's `mine`, in the order of ranks, in `all`: as many elements as all
    /// have together, the same number of each. The other ranks' `all` stays as it is. Collective:
    /// with the same root and length everywhere.
    ///
    /// Elements have at most 32 bytes. Per 32 bytes of `mine`: a put, and two times O(log p) words.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::ElementTooLarge`]; [`Error::LengthsDiffer`] if the root's
    /// `all` has not one place for each element; [`Error::Timeout`] naming the rank that was waited
    /// for: call again with the same slices to continue.
    /// [`Error::CollectiveUnfinished`], [`Error::Asymmetric`].
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(3, |world| {
    /// use flagpost::Rank;
    ///
    /// let (root, me) = (Rank::new(2), world.rank());
    /// let mut all = [0; 3];
    /// let all = if me == root { &mut all[..] } else { &mut [] };
    /// world.gather(root, &[10 * me.get()], all)?;
    /// assert!(me != root || all == [0, 10, 20]);
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn gather<T: Pod>(&self, root: Rank, mine: &[T], all: &mut [T]) -> Result<(), Error> {
        called!(self);
        check_element::<T>()?;
        self.check_rank(root)?;
        let (len, is_root) = (mine.len(), self.rank() == root);
        let wanted = len.saturating_mul(usize::from(self.size()));
        if is_root && all.len() != wanted {
            return Err(lengths_differ::<T>(all.len(), wanted));
        }
        self.attempt(of(Blocks::Gather(root), mine), || {
            let give = |to: Rank| if to == root { mine } else { &[] };
            self.swap(Rows::To(root), len, give, |rank, index, element| {
                if is_root {
                    set(all, place(len, rank, index), element);
                }
            })
        })
    }

    /// Gives rank r the r-th block of the root's `all`, in `mine`. The other ranks' `all` is not
    /// looked at. Collective: with the same root and length of `mine` everywhere.
    ///
    /// Elements have at most 32 bytes. Per 32 bytes of `mine`: p - 1 puts of the root, and two
    /// times O(log p) words.
    ///
    /// # Errors
    /// Those of [`gather`](Self::gather).
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::Rank;
    ///
    /// let (root, mut mine) = (Rank::new(0), [0]);
    /// let all = if world.rank() == root { &[7, 8][..] } else { &[] };
    /// world.scatter(root, all, &mut mine)?;
    /// assert_eq!(mine, [7 + world.rank().get()]);
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn scatter<T: Pod>(&self, root: Rank, all: &[T], mine: &mut [T]) -> Result<(), Error> {
        called!(self);
        check_element::<T>()?;
        self.check_rank(root)?;
        let (len, is_root) = (mine.len(), self.rank() == root);
        let wanted = len.saturating_mul(usize::from(self.size()));
        if is_root && all.len() != wanted {
            return Err(lengths_differ::<T>(wanted, all.len()));
        }
        self.attempt(of(Blocks::Scatter(root), mine), || {
            let give = |to: Rank| if is_root { blocks(all, len, to) } else { &[] };
            self.swap(Rows::From(root), len, give, |rank, index, element| {
                if rank == root {
                    set(mine, index, element);
                }
            })
        })
    }

    /// Combines all ranks' `from` element by element, by `op`, and gives rank r the r-th block of
    /// the result, in `into`. Collective: with the same lengths and operation everywhere.
    ///
    /// Elements have at most 32 bytes. `op` combines in the order of ranks. Per 32 bytes of a
    /// block: p - 1 puts and two barriers.
    ///
    /// # Errors
    /// [`Error::ElementTooLarge`]; [`Error::WrongLength`] if `from` is no multiple of the number of
    /// ranks, and [`Error::LengthsDiffer`] if `into` is not as long as a block; [`Error::Timeout`]
    /// naming the rank that was waited for: call again with the same slices to continue.
    /// [`Error::CollectiveUnfinished`], [`Error::Asymmetric`].
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(3, |world| {
    /// let mut sum = [0];
    /// world.reduce_scatter(&[1, 10, 100], &mut sum, |a, b| a + b)?;
    /// assert_eq!(sum, [[3], [30], [300]][world.rank().index()]);
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn reduce_scatter<T: Pod>(
        &self,
        from: &[T],
        into: &mut [T],
        mut op: impl FnMut(T, T) -> T,
    ) -> Result<(), Error> {
        called!(self);
        let block = self.block_of(from)?;
        same_length(from.get(..block).unwrap_or(&[]), into)?;
        self.attempt(of(Blocks::ReduceScatter, from), || {
            let give = |to| blocks(from, block, to);
            self.swap(Rows::All, block, give, |rank, index, element| {
                if let Some(sum) = into.get_mut(index) {
                    *sum = match rank.get() {
                        0 => element,
                        _ => op(*sum, element),
                    };
                }
            })
        })
    }

    /// How many elements a block has, if `all` has one for each rank.
    fn block_of<T: Pod>(&self, all: &[T]) -> Result<usize, Error> {
        check_element::<T>()?;
        let ranks = usize::from(self.size());
        let block = all.len().checked_div(ranks).unwrap_or(0);
        if block.saturating_mul(ranks) != all.len() {
            return Err(Error::WrongLength {
                len: all.len() as u64,
                ranks: self.size(),
            });
        }
        Ok(block)
    }

    /// Puts the block that `give` gives for each rank, of up to `longest` elements, and calls
    /// `take(rank, index, element)` for each place of the blocks for this rank, and those after it.
    /// `rows` is the way of the news.
    fn swap<T: Pod, B: AsRef<[T]>>(
        &self,
        rows: Rows,
        longest: usize,
        give: impl Fn(Rank) -> B,
        mut take: impl FnMut(Rank, usize, T),
    ) -> Result<(), Error> {
        let most = ELEMENT.checked_div(size_of::<T>()).unwrap_or(usize::MAX);
        let (state, link) = (&self.collectives, self.link());
        let placed = &state.gather.placed;
        let place = |rank: Rank| PLACE.saturating_mul(rank.index());
        state.in_chunks(longest, most, |range| {
            state.once(0, || {
                // The next one first, so that not all put to the same rank at a time.
                while placed.get() < usize::from(self.size()) {
                    let distance = placed.get() as u16;
                    let to = self.rank().ahead(distance, self.size());
                    let block = give(to);
                    let part = bytemuck::cast_slice(chunk(block.as_ref(), &range));
                    if !part.is_empty() || longest == 0 {
                        self.put_headed(to, place(self.rank()), part)?;
                    }
                    placed.set(usize::from(distance).saturating_add(1));
                }
                placed.set(0);
                Ok(())
            })?;
            state.once(1, || {
                point!(ORDER "G4: blocks come before the signals for them":
                    "collective.blocks.fence", self.wait().retry(|| link.fence())?);
                point!(WAIT "G4: all that put here have put":
                    "collective.blocks.arrive", state.gather.run(self, rows, |_, _| Ok(()))?);
                Ok(())
            })?;
            // Once: when all are in the barrier below, peers may write there again.
            state.once(2, || {
                let is_for_me = |from: &Rank| match rows {
                    Rows::From(root) => *from == root,
                    Rows::To(root) => self.rank() == root,
                    Rows::All | Rows::Up => true,
                };
                for rank in (0..self.size()).map(Rank::new).filter(is_for_me) {
                    let mut bytes = [0; ELEMENT];
                    let len = range.len().saturating_mul(size_of::<T>());
                    let bytes = bytes.get_mut(..len).unwrap_or(&mut []);
                    self.heard(rank, place(rank), bytes)?;
                    for (index, element) in range.clone().zip(each(bytes)) {
                        take(rank, index, element);
                    }
                }
                Ok(())
            })?;
            point!(WAIT "I2: scratch memory is written again after all have read":
                "collective.blocks.barrier", self.order_and_arrive()?);
            Ok(())
        })
    }
}

/// The call that moves blocks of `data`.
fn of<T>(kind: Blocks, data: &[T]) -> Call {
    Call::Blocks {
        kind,
        element: size_of::<T>(),
        len: size_of_val(data),
    }
}

/// The block for `rank` of `all`.
fn blocks<T>(all: &[T], block: usize, rank: Rank) -> &[T] {
    let start = place(block, rank, 0);
    all.get(start..start.saturating_add(block)).unwrap_or(&[])
}

/// The part of a block that is in the chunk.
fn chunk<'b, T>(block: &'b [T], range: &Range<usize>) -> &'b [T] {
    let end = range.end.min(block.len());
    block.get(range.start..end).unwrap_or(&[])
}

/// Where element `index` of the block of `rank` is, among blocks of the same length.
fn place(block: usize, rank: Rank, index: usize) -> usize {
    block.saturating_mul(rank.index()).saturating_add(index)
}

fn set<T>(all: &mut [T], index: usize, element: T) {
    if let Some(place) = all.get_mut(index) {
        *place = element;
    }
}

fn same_length<T>(from: &[T], into: &[T]) -> Result<(), Error> {
    if from.len() == into.len() {
        return Ok(());
    }
    Err(lengths_differ::<T>(into.len(), from.len()))
}

/// Of elements.
fn lengths_differ<T>(target: usize, origin: usize) -> Error {
    let bytes = |len: usize| (len as u64).saturating_mul(size_of::<T>() as u64);
    Error::LengthsDiffer {
        target: bytes(target),
        origin: bytes(origin),
    }
}
