//! Accumulates: elements of a peer's piece are combined with operands. Several ranks may combine
//! with an element at the same time. An access is done piece by piece, and each piece in one step
//! of the link: under the owner's lock, or by the machine's atomic operations.
//!
//! # Guarantee
//! G1. Each element is changed as a whole: of two accumulates to it, by any ranks in any epochs,
//!     one finds what the other left. (Not so for an element that they take to be of different
//!     sizes.)
//! G2. Each element is changed once, however often the call is repeated: a handle knows which
//!     pieces are done.
//! G3. A fetch gives the value that the element held before.
//!
//! Elements of one call are changed in any order, and not all in one step.
//!
//! # Steps
//! | call | core | in order |
//! |---|---|---|
//! | `accumulate` | origin | for each piece: `Access::update`: load, combine, store, in one |
//! | `get_accumulate` | origin | the same, and keep what was loaded |
//! | one element of 8 bytes | origin | `Access::amo`, for the operations that links have |
//!
//! A piece lies between two multiples of [`Link::UPDATE`] ([`Link::UPDATE_SMALL`] for elements of
//! up to 4 bytes), and elements of 1, 2, 4, or 8 bytes at multiples of their size never cross one.
//!
//! # Source
//! [foMPI] 2.4: the network's atomics for common operations on 8 bytes; else lock, get, accumulate,
//! put. We differ: the lock is held for one piece, not for the access, so that neither rank waits
//! for the other's whole data.
//!
//! [foMPI]: crate#sources

use flagpost_link::{Link, Op, Refusal, Width};

use super::{
    layout::{BUFFER, Cursor},
    operation::{CELL, Combine},
    transfer::{Remote, Sides},
};

/// The work on each piece of an accumulate.
#[derive(Debug)]
pub(super) struct Accumulate<'r> {
    pub(super) combine: Combine,
    pub(super) operands: &'r [u8],
    /// Where former values go.
    pub(super) fetched: Option<(Cursor<'r>, &'r mut [u8])>,
}

impl Accumulate<'_> {
    /// Does the next piece; false at the end. `old` keeps what it held: one call of the link may
    /// find it, and a later one tell that this was the last.
    pub(super) fn step<L: Link>(
        &mut self,
        remote: &Remote<'_, '_, L>,
        sides: &mut Sides<'_>,
        old: &mut [u8; BUFFER],
        op: &Op,
    ) -> Result<bool, Refusal> {
        let Some(run) = sides.target.run() else {
            return Ok(false);
        };
        let place = remote.at(run.at);
        let unit = match self.combine.size() {
            CELL => L::UPDATE,
            _ => L::UPDATE_SMALL,
        };
        let unit = unit.min(BUFFER);
        let room = unit.wrapping_sub(place & unit.wrapping_sub(1));
        let len = run.len.min(room);
        let mut operands = [0; BUFFER];
        let operands = operands.get_mut(..len).unwrap_or_default();
        let mut origin = sides.origin;
        origin.gather(self.operands, operands);
        let old = old.get_mut(..len).unwrap_or_default();
        change(remote, place, &self.combine, operands, old, op)?;
        sides.target.advance(len);
        sides.origin = origin;
        if let Some((cursor, into)) = &mut self.fetched {
            cursor.scatter(old, into);
        }
        Ok(true)
    }
}

/// Combines what lies at `place` with `operands`. `old`, of the same length, is what it held, once
/// the link has answered: the same one is passed to all calls of one operation.
pub(super) fn change<L: Link>(
    remote: &Remote<'_, '_, L>,
    place: usize,
    combine: &Combine,
    operands: &[u8],
    old: &mut [u8],
    op: &Op,
) -> Result<(), Refusal> {
    let Remote { rank, key, .. } = *remote;
    if let Some(amo) = combine.as_amo(operands) {
        let former = remote.link().amo(rank, key, place, amo, Width::Whole, op)?;
        copy(&former.to_le_bytes(), old);
        return Ok(());
    }
    let mut change = |cells: &mut [u8]| {
        copy(cells, old);
        combine.apply(cells, operands);
    };
    remote
        .link()
        .update(rank, key, place, operands.len(), &mut change, op)
}

/// Copies bytes, as many as both have.
pub(super) fn copy(from: &[u8], into: &mut [u8]) {
    for (to, byte) in into.iter_mut().zip(from) {
        *to = *byte;
    }
}
