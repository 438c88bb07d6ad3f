//! Collective calls: barrier, allgather, alltoall and the like, agreement, broadcast, reductions,
//! scans. Every rank makes the same calls in the same order. They need no message buffers: each
//! rank has a few slots and some scratch memory, and each place there has one writer at a time.
//! Fences, and all that ranks make together, use them too.
//!
//! # Guarantee
//! G1. No rank leaves a barrier before every rank has entered it; what any rank put (and, past the
//!     caches, stored) before it entered is in memory then.
//! G2. An allgather gives every rank the element of every rank.
//! G3. An agreement tells every rank whether all ranks offered the same.
//! G4. A broadcast gives every rank the root's elements; a reduction gives the root, or everybody,
//!     all ranks' elements combined, each counted once; a scan those of the ranks up to this one;
//!     an alltoall gives rank i the i-th block of every rank, a gather the root all blocks for it,
//!     a scatter each rank its block of the root's.
//!
//! # Steps
//! *Dissemination* (barrier, allgather, agree): in round r = 0, 1, … while 2^r < p, rank i tells
//! rank i + 2^r (mod p) and waits for rank i - 2^r. After round r it has heard, directly or through
//! others, from the 2^(r+1) ranks i, i-1, …; after the last from all. An allgather sends the
//! elements heard so far along with each signal, an agreement their extremes.
//!
//! A scan goes the same way, but not round the ring.
//!
//! *Trees* use the same ways, each at most once. Broadcast: with v = i - root, in round r = 0, 1, …
//! each v < 2^r tells v + 2^r. Reduction: with v = root - i (counted the other way round, so that
//! it is rank i + 2^r again that is told), in round r = …, 1, 0 each 2^r <= v < 2^(r+1) tells v -
//! 2^r.
//!
//! Data come with a *head* of 8 bytes that says which call they are of, in the same put where they
//! are short ([`alike`]).
//!
//! | call, per chunk | remote writes per rank, at most      | waits |
//! |-------------|------------------------------------------|-------|
//! | `barrier`   | ceil(log2 p) words                       | ceil(log2 p) |
//! | `allgather` | p - 1 elements, 2 ceil(log2 p) words     | 2 ceil(log2 p) |
//! | `agree`     | ceil(log2 p) times 24 bytes, 2 ceil(log2 p) words | 2 ceil(log2 p) |
//! | `broadcast` | ceil(log2 p) chunks (p - 1 in all), 2 ceil(log2 p) words | 1 + ceil(log2 p) |
//! | `reduce`    | 1 chunk, 1 + ceil(log2 p) words          | 2 ceil(log2 p) |
//! | `allreduce` | 1 + ceil(log2 p) chunks, 1 + 2 ceil(log2 p) words | 1 + 2 ceil(log2 p) |
//! | `scan`      | ceil(log2 p) chunks, 2 ceil(log2 p) words | 2 ceil(log2 p) |
//! | `exscan`    | 1 chunk and ceil(log2 p) words more      | ceil(log2 p) more |
//! | `alltoall`, `reduce_scatter` | p - 1 blocks, 2 ceil(log2 p) words | 2 ceil(log2 p) |
//! | `alltoall_uneven` | the same, and once more for the lengths | the same, once more |
//! | `gather`    | 1 block, 1 + ceil(log2 p) words          | 2 ceil(log2 p) |
//! | `scatter`   | p - 1 blocks of the root, 2 ceil(log2 p) words | 1 + ceil(log2 p) |
//!
//! Calls with a root put a note of 16 bytes besides. A chunk is as much as the scratch memory
//! holds: 56 p - 40 bytes for a broadcast, at least 32 for a reduction (its rounds share the
//! memory), 32 for each block of an alltoall. Longer calls go chunk by chunk; one of no bytes is
//! one chunk.
//!
//! # Invariants
//! I1. Slot r (and 16 + r) of rank i has one writer, rank i - 2^r; values count its uses.
//! I2. Each place in a rank's scratch memory is written by one rank per call (and chunk), and not
//!     again before every rank has read all of it: hence the barrier at the end of what uses it. An
//!     allreduce has two trees: when the second begins at its root, all places of the first have
//!     been read.
//! I3. A rank takes data only of a rank that is in the same call, with the same root, size of
//!     elements and length.
//!
//! # Bounds
//! A call whose budget runs out can be repeated with the same arguments (and the same slice, as it
//! was left): it continues in the chunk and the round where it stopped, and signals nobody twice.
//! Until then every other collective call (fences, and calls that make or free windows, among them)
//! is refused with [`Error::CollectiveUnfinished`], which changes nothing: its rounds would be
//! taken for those of the first.
//!
//! # Source
//! [foMPI] 2.3 (barrier in O(log p)); Hensgen, Finkel, Manber 1988 for the dissemination barrier;
//! the trees are the usual binomial ones.
//!
//! [foMPI]: crate#sources

mod agree;
mod alike;
mod allgather;
mod barrier;
mod blocks;
mod scan;
mod tree;

pub(crate) use agree::Agreement;
pub use barrier::Entering;
use blocks::{Blocks, Lengths};

use core::{cell::Cell, fmt, ops::Range};

use flagpost_link::{Key, Link, Rank, Slot};

use crate::{Error, Missing, Timeout, Waiting, World};

/// First slot of barriers, and of all other calls.
const BARRIER: usize = 0;
const GATHER: usize = 16;

/// One in this many polls looks whether the rank before this one makes another call.
const LONG: u32 = 512;

/// For a program that calls again and again: polls that a call counts for when it has timed out.
const TIMED_OUT: u32 = 256;

/// Most rounds of a call: ranks are 16 bits.
const ROUNDS: usize = 16;

/// Largest element of the calls that keep one per rank.
const ELEMENT: usize = 32;

/// Fails if elements are too large for the calls that keep one per rank: before anything has begun.
fn check_element<T>() -> Result<(), Error> {
    let max = ELEMENT as u32;
    if size_of::<T>() > ELEMENT {
        return Err(Error::ElementTooLarge { max });
    }
    Ok(())
}

/// The call that an attempt belongs to: the same in all of its attempts. Sizes are in bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Barrier,
    Allgather {
        element: usize,
    },
    Blocks {
        kind: Blocks,
        element: usize,
        len: usize,
    },
    Broadcast {
        root: Rank,
        element: usize,
        len: usize,
    },
    Reduce {
        root: Rank,
        element: usize,
        len: usize,
    },
    Allreduce {
        element: usize,
        len: usize,
    },
    /// Of earlier ranks alone, or of this one, too.
    Scan {
        own: bool,
        element: usize,
        len: usize,
    },
    /// Of what has this number among all that was made.
    Make(u32),
    /// Of the window of this number.
    Fence(u16),
    FreeWindow(u16),
    SetCounters(u16),
    FreeEvents(Key),
    FreePart(Key),
}

/// As a part of a sentence that says what a rank waits for.
impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Barrier => f.write_str("a barrier"),
            Self::Allgather { element } => write!(f, "an allgather of {element} bytes each"),
            Self::Blocks { kind, len, .. } => match kind {
                Blocks::Alltoall | Blocks::AlltoallUneven => {
                    write!(f, "an alltoall of {len} bytes")
                }
                Blocks::ReduceScatter => write!(f, "a reduce_scatter of {len} bytes"),
                Blocks::Gather(root) => write!(f, "a gather of {len} bytes to {}", root.get()),
                Blocks::Scatter(root) => write!(f, "a scatter of {len} bytes from {}", root.get()),
            },
            Self::Broadcast { root, len, .. } => {
                write!(f, "a broadcast of {len} bytes from {}", root.get())
            }
            Self::Reduce { root, len, .. } => {
                write!(f, "a reduction of {len} bytes to {}", root.get())
            }
            Self::Allreduce { len, .. } => write!(f, "an allreduce of {len} bytes"),
            Self::Scan { len, .. } => write!(f, "a scan of {len} bytes"),
            Self::Make(_) => f.write_str("a call that makes a window or events"),
            Self::Fence(_) => f.write_str("a fence"),
            Self::FreeWindow(_) => f.write_str("a call that frees a window"),
            Self::SetCounters(_) => f.write_str("a call that sets counters up"),
            Self::FreeEvents(_) => f.write_str("a call that frees events"),
            Self::FreePart(_) => f.write_str("a call that frees a part"),
        }
    }
}

/// Where a rank stands in its collective calls.
#[derive(Debug)]
pub(crate) struct Collectives {
    /// The call that has been begun and is not done.
    under_way: Cell<Option<Call>>,
    /// How many calls have begun.
    number: Cell<u32>,
    /// The next rank has this rank's note of the current call.
    noted: Cell<bool>,
    /// The ranks' calls differ, and so the current one will never end.
    failed: Cell<Option<Error>>,
    /// Polls since this rank has read the note left with it.
    polls: Cell<u32>,
    /// How much has been made.
    made: Cell<u32>,
    barrier: Rounds,
    gather: Rounds,
    /// Steps of the current chunk that are done.
    phase: Cell<u8>,
    /// Where the current chunk begins.
    chunk: Cell<usize>,
    /// Of blocks of unequal lengths.
    lengths: Cell<Lengths>,
}

impl Collectives {
    pub(crate) fn new() -> Self {
        Self {
            under_way: Cell::new(None),
            number: Cell::new(0),
            noted: Cell::new(false),
            failed: Cell::new(None),
            polls: Cell::new(0),
            made: Cell::new(0),
            barrier: Rounds::new(BARRIER),
            gather: Rounds::new(GATHER),
            phase: Cell::new(0),
            chunk: Cell::new(0),
            lengths: Cell::default(),
        }
    }

    /// The call that has been begun and is not done.
    pub(crate) fn begun(&self) -> Option<Call> {
        self.under_way.get()
    }

    /// The call that makes the next window, or the like.
    pub(crate) fn make(&self) -> Call {
        let number = self.made.get();
        self.made.set(number.wrapping_add(1));
        Call::Make(number)
    }

    /// Goes through `len` of something, up to `most` at a time, from where the last attempt
    /// stopped. At least once: all ranks are to have as little.
    fn in_chunks(
        &self,
        len: usize,
        most: usize,
        mut pass: impl FnMut(Range<usize>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        loop {
            let start = self.chunk.get();
            let end = start.saturating_add(most.max(1)).min(len);
            pass(start..end)?;
            self.phase.set(0);
            self.chunk.set(end);
            if end >= len {
                self.chunk.set(0);
                return Ok(());
            }
        }
    }

    /// Does `step`, number `number` of its chunk, unless that is done.
    fn once(&self, number: u8, step: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
        if self.phase.get() == number {
            step()?;
            point!(ONCE "a call that continues begins after this phase":
                "collective.once.behind", self.phase.set(number.saturating_add(1)));
        }
        Ok(())
    }
}

/// One round.
#[derive(Copy, Clone, Debug)]
struct Step {
    round: u8,
    /// 2^round.
    distance: u16,
    /// The rank that is told.
    to: Rank,
    /// The rank that tells this one.
    from: Rank,
}

/// The role of a rank in a round: first the one, then the other.
#[derive(Copy, Clone, Debug)]
struct Role {
    sends: bool,
    receives: bool,
}

/// The two halves of a round.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Half {
    /// Puts what the signal is to announce.
    Send,
    /// Takes what was announced; once.
    Receive,
}

/// The rounds of one kind of call, and where they lead.
#[derive(Copy, Clone, Debug)]
enum Rows {
    /// Every rank tells and is told, distances rise.
    All,
    /// From rank `.0` to all, distances rise.
    From(Rank),
    /// From all to rank `.0`, distances fall.
    To(Rank),
    /// Every rank tells later ones, distances rise.
    Up,
}

impl Rows {
    /// The role of `rank` of `size` over `distance`.
    fn role(self, rank: Rank, size: u16, distance: u16) -> Role {
        let behind = |other: Rank| rank.ahead(size.saturating_sub(other.get()), size).get();
        // Twice the distance, and a sum with it, may pass a u16.
        let far = u32::from(distance).saturating_mul(2);
        let parent =
            |v: u16| v < distance && u32::from(v).saturating_add(distance.into()) < u32::from(size);
        let child = |v: u16| v >= distance && u32::from(v) < far;
        match self {
            Self::All => Role {
                sends: true,
                receives: true,
            },
            Self::Up => Role {
                sends: distance < size.saturating_sub(rank.get()),
                receives: distance <= rank.get(),
            },
            Self::From(root) => {
                let v = behind(root);
                Role {
                    sends: parent(v),
                    receives: child(v),
                }
            }
            Self::To(root) => {
                let v = size
                    .saturating_sub(behind(root))
                    .checked_rem(size)
                    .unwrap_or(0);
                Role {
                    sends: child(v),
                    receives: parent(v),
                }
            }
        }
    }
}

/// How many rounds `size` ranks need: ceil(log2 size).
fn rounds(size: u16) -> u8 {
    u16::BITS.saturating_sub(size.saturating_sub(1).leading_zeros()) as u8
}

/// The state of the calls that share one row of slots.
#[derive(Debug)]
struct Rounds {
    first_slot: usize,
    /// Per round: how often this rank has told, and was told.
    told: [Cell<u32>; ROUNDS],
    heard: [Cell<u32>; ROUNDS],
    /// Rounds of the current call that are done.
    behind: Cell<u8>,
    /// How much of this round's data has been put, as `exchange` counts it.
    placed: Cell<usize>,
    /// This round's signal has been sent.
    signalled: Cell<bool>,
}

impl Rounds {
    fn new(first_slot: usize) -> Self {
        Self {
            first_slot,
            told: [const { Cell::new(0) }; ROUNDS],
            heard: [const { Cell::new(0) }; ROUNDS],
            behind: Cell::new(0),
            placed: Cell::new(0),
            signalled: Cell::new(false),
        }
    }

    /// Goes through the rounds from where the last attempt stopped. `exchange` comes before each
    /// signal; again, if its budget ran out, to continue from the count that it has noted in
    /// `placed`. And it comes after each signal that was waited for, once.
    fn run<L: Link>(
        &self,
        world: &World<'_, L>,
        rows: Rows,
        mut exchange: impl FnMut(Step, Half) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (link, size) = (world.link(), world.size());
        let count = rounds(size);
        while self.behind.get() < count {
            let behind = self.behind.get();
            let round = match rows {
                Rows::To(_) => count.saturating_sub(behind).saturating_sub(1),
                _ => behind,
            };
            let distance = 1_u16.wrapping_shl(round.into());
            let step = Step {
                round,
                distance,
                to: link.rank().ahead(distance, size),
                from: link.rank().ahead(size.saturating_sub(distance), size),
            };
            let Role { sends, receives } = rows.role(link.rank(), size, distance);
            let slot = Slot(self.first_slot).plus(round.into());
            if sends && !self.signalled.get() {
                let number = next(&self.told, round);
                order!("G2: elements precede the signal": "collective.round.send<signal",
                    exchange(step, Half::Send)?,
                    world.wait().retry(|| link.signal(step.to, slot, number))?);
                advance(&self.told, round);
                self.signalled.set(true);
            }
            if receives {
                let number = next(&self.heard, round);
                let poll = || {
                    if link.reached(slot, number)? {
                        return Ok(Some(()));
                    }
                    world.has_polled(1)?;
                    Ok(None)
                };
                let late = || Timeout {
                    waiting: Waiting::Collective,
                    missing: Missing::one(step.from),
                };
                order!("elements come after the signal for them": "collective.round.wait<receive",
                    point!(WAIT "the peer has sent": "collective.round.wait",
                        world.wait().until(poll, late)?),
                    exchange(step, Half::Receive)?);
                advance(&self.heard, round);
            }
            self.signalled.set(false);
            self.placed.set(0);
            self.behind.set(behind.saturating_add(1));
        }
        self.behind.set(0);
        Ok(())
    }
}

/// The number of the next signal of a round.
fn next(counts: &[Cell<u32>], round: u8) -> u32 {
    let count = counts.get(usize::from(round)).map_or(0, Cell::get);
    count.wrapping_add(1)
}

/// It was sent, or came.
fn advance(counts: &[Cell<u32>], round: u8) {
    if let Some(count) = counts.get(usize::from(round)) {
        count.set(count.get().wrapping_add(1));
    }
}

impl<L: Link> World<'_, L> {
    /// Continues `call`, or begins it if no other one has begun.
    pub(crate) fn attempt<R>(
        &self,
        call: Call,
        attempt: impl FnOnce() -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.check_collective(call)?;
        let state = &self.collectives;
        if state.under_way.replace(Some(call)).is_none() {
            state.number.set(state.number.get().wrapping_add(1));
        }
        let done = self.leave_note(call).and_then(|()| attempt());
        let mut done = done.and_then(|done| self.check_note(call).map(|()| done));
        if matches!(done, Err(Error::Timeout(_))) {
            done = self.has_polled(TIMED_OUT).and(done);
        }
        match done {
            Ok(_) => state.under_way.set(None),
            Err(error @ Error::Asymmetric { rank, differs }) => {
                state.failed.set(Some(error));
                self.say_failed(rank, differs);
            }
            Err(_) => (),
        }
        done
    }

    /// Fails if another call than this one has begun and not ended.
    pub(crate) fn check_collective(&self, call: Call) -> Result<(), Error> {
        match self.collectives.under_way.get() {
            Some(other) if other != call => self.check_no_collective(),
            _ => self.collectives.failed.get().map_or(Ok(()), Err),
        }
    }

    /// Fails if any call has begun and not ended.
    pub(crate) fn check_no_collective(&self) -> Result<(), Error> {
        let state = &self.collectives;
        match (state.failed.get(), state.under_way.get()) {
            (Some(error), _) => Err(error),
            (None, Some(_)) => Err(Error::CollectiveUnfinished),
            (None, None) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a tree by itself: who tells is heard, and everybody is reached once.
    fn edges(size: u16, rows: Rows) -> usize {
        let edge = |round: u8, rank: Rank| {
            let distance = 1 << round;
            let to = rank.ahead(distance, size);
            let sends = rows.role(rank, size, distance).sends;
            assert_eq!(sends, rows.role(to, size, distance).receives);
            sends
        };
        (0..rounds(size))
            .flat_map(|round| (0..size).map(move |rank| (round, Rank::new(rank))))
            .filter(|&(round, rank)| edge(round, rank))
            .count()
    }

    #[test]
    fn trees_reach_everybody_once() {
        for size in [1, 2, 3, 4, 5, 7, 8, 13, 48] {
            for root in (0..size).map(Rank::new) {
                assert_eq!(edges(size, Rows::From(root)) + 1, usize::from(size));
                assert_eq!(edges(size, Rows::To(root)) + 1, usize::from(size));
            }
        }
        assert_eq!(
            [1, 2, 3, 4, 5, 512, u16::MAX].map(rounds),
            [0, 1, 2, 2, 3, 9, 16]
        );
        let role = Rows::From(Rank::new(0)).role(Rank::new(40_000), u16::MAX, 1 << 15);
        assert!(role.receives && !role.sends);
    }
}
