//! Moving the pieces of an access, one call of the link each. A put or get takes the longest bytes
//! that lie together on both sides; where these are short, it takes the target's run through a
//! buffer. A piece that is refused is asked for again.
//!
//! # Invariants
//! I1. A piece is counted as done once the link has answered, and not before: repeating an access
//!     continues with the piece that was refused, with the same [`Op`].
//! I2. The call of the link for a piece depends on nothing but the place in both layouts, so that a
//!     repeated call means the same operation.
//! I3. Bytes from the link go into the user's slice or into a buffer that lives as long as the
//!     access: a link may bring them in several calls.

use flagpost_link::{Key, Link, Op, Rank, Refusal};

use super::{
    accumulate::Accumulate,
    layout::{BUFFER, Cursor},
};
use crate::window::Core;

/// A place in a peer's piece.
#[derive(Debug)]
pub(super) struct Remote<'r, 'w, L> {
    pub(super) core: &'r Core<'w, L>,
    pub(super) rank: Rank,
    pub(super) key: Key,
    pub(super) offset: usize,
}

impl<L> Copy for Remote<'_, '_, L> {}

impl<L> Clone for Remote<'_, '_, L> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<'w, L: Link> Remote<'_, 'w, L> {
    pub(super) fn link(&self) -> &'w L {
        self.core.world.link()
    }

    /// The byte `bytes` after it, which lies in the piece.
    pub(super) fn at(&self, bytes: usize) -> usize {
        self.offset.wrapping_add(bytes)
    }
}

/// Where both sides are.
#[derive(Copy, Clone, Debug)]
pub(super) struct Sides<'r> {
    pub(super) target: Cursor<'r>,
    pub(super) origin: Cursor<'r>,
}

/// The work on the bytes.
#[derive(Debug)]
pub(super) enum Work<'r> {
    Put(&'r [u8]),
    Get(&'r mut [u8]),
    Accumulate(Accumulate<'r>),
}

/// A piece of an access.
#[derive(Copy, Clone, Debug)]
enum Piece {
    /// `len` bytes lie together on both sides, at `from` of the origin's.
    Block { at: usize, from: usize, len: usize },
    /// `len` bytes lie together at the target only.
    Packed { at: usize, len: usize },
}

/// Pieces shorter than this are packed, if the target's run is longer: as the module says.
const fn short<L: Link>() -> usize {
    if L::DIRECT { WORD } else { BUFFER }
}

/// Bytes of a word, the least that memory is accessed by at no more cost.
const WORD: usize = 4;

impl Sides<'_> {
    /// The next piece; nothing at the end. `target` starts at byte `offset` of the memory it lies
    /// in.
    fn next<L: Link>(&mut self, offset: usize) -> Option<Piece> {
        let (run, block) = (self.target.run()?, self.origin.run()?);
        let (at, len) = (run.at, run.len.min(block.len));
        if len >= short::<L>() || len == run.len {
            let from = block.at;
            return Some(Piece::Block { at, from, len });
        }
        // Up to a multiple of the buffer: whole lines travel best.
        let start = offset.wrapping_add(at);
        let room = BUFFER.wrapping_sub(start & BUFFER.wrapping_sub(1));
        let len = run.len.min(room);
        Some(Piece::Packed { at, len })
    }
}

/// Does the next piece; false at the end. `buffer` is for what the link brings: the same one for
/// all of an access.
///
/// # Errors
/// As the link's. The piece is the next one still.
pub(super) fn step<L: Link>(
    remote: &Remote<'_, '_, L>,
    sides: &mut Sides<'_>,
    work: &mut Work<'_>,
    buffer: &mut [u8; BUFFER],
    op: &Op,
) -> Result<bool, Refusal> {
    match work {
        Work::Put(data) => put(remote, sides, data),
        Work::Get(into) => get(remote, sides, into, buffer, op),
        Work::Accumulate(accumulate) => accumulate.step(remote, sides, buffer, op),
    }
}

fn put<L: Link>(
    remote: &Remote<'_, '_, L>,
    sides: &mut Sides<'_>,
    data: &[u8],
) -> Result<bool, Refusal> {
    let Some(piece) = sides.next::<L>(remote.offset) else {
        return Ok(false);
    };
    let (link, mut buffer) = (remote.link(), [0; BUFFER]);
    let mut origin = sides.origin;
    let (at, bytes) = match piece {
        Piece::Block { at, from, len } => {
            origin.advance(len);
            let rest = data.get(from..).unwrap_or_default();
            (at, rest.get(..len).unwrap_or_default())
        }
        Piece::Packed { at, len } => {
            let room = buffer.get_mut(..len).unwrap_or_default();
            let len = origin.gather(data, room);
            (at, buffer.get(..len).unwrap_or_default())
        }
    };
    link.put(remote.rank, remote.key, remote.at(at), bytes)?;
    sides.target.advance(bytes.len());
    sides.origin = origin;
    Ok(true)
}

fn get<L: Link>(
    remote: &Remote<'_, '_, L>,
    sides: &mut Sides<'_>,
    into: &mut [u8],
    buffer: &mut [u8; BUFFER],
    op: &Op,
) -> Result<bool, Refusal> {
    let Some(piece) = sides.next::<L>(remote.offset) else {
        return Ok(false);
    };
    let load = |at, bytes: &mut [u8]| {
        let Remote { rank, key, .. } = *remote;
        remote.link().get(rank, key, remote.at(at), bytes, op)
    };
    match piece {
        Piece::Block { at, from, len } => {
            let rest = into.get_mut(from..).unwrap_or_default();
            load(at, rest.get_mut(..len).unwrap_or_default())?;
            sides.target.advance(len);
            sides.origin.advance(len);
        }
        Piece::Packed { at, len } => {
            let bytes = buffer.get_mut(..len).unwrap_or_default();
            load(at, bytes)?;
            sides.target.advance(len);
            sides.origin.scatter(bytes, into);
        }
    }
    Ok(true)
}
