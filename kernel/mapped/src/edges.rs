//! The edges of long payload: see [`long`](crate::long).
//!
//! A line that payload does not fill has other bytes, which the owner's cache may not hold any
//! more. So what came for it is kept here, as that of an entry is in [`held`](crate::held): own
//! reads of just these bytes are answered from here, and whatever else goes to their lines places
//! them first.

use core::cell::Cell;

use flagpost_hal::Machine;
use flagpost_link::point;

use crate::{
    Atomics, Mapped,
    long::{LINE, Long},
};

/// Bytes at the edge of some payload, in a line that it does not fill: they are in no cache.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Edge {
    /// Where they belong, from the start of the memory region.
    pub(crate) at: u32,
    pub(crate) len: u32,
    pub(crate) bytes: [u8; LINE],
}

impl Edge {
    pub(crate) const NONE: Self = Self {
        at: 0,
        len: 0,
        bytes: [0; LINE],
    };

    /// Its line: where that starts, and ends.
    const fn line(&self) -> (u32, u32) {
        let start = self.at & !(LINE as u32).wrapping_sub(1);
        (start, start.saturating_add(LINE as u32))
    }

    /// Whether there is any, and its line has some of these bytes.
    pub(crate) const fn touches(&self, start: u32, end: u32) -> bool {
        let (first, behind) = self.line();
        self.len > 0 && start < end && first < end && start < behind
    }

    /// Its bytes.
    pub(crate) fn data(&self) -> &[u8] {
        self.bytes.get(..self.len as usize).unwrap_or(&[])
    }

    /// The bytes from `from` to `to`, if it has them.
    fn get(&self, from: u32, to: u32) -> Option<&[u8]> {
        let first = from.checked_sub(self.at)? as usize;
        let behind = to.checked_sub(self.at)? as usize;
        self.data().get(first..behind)
    }
}

impl<M: Machine, A: Atomics<M>, const PEERS: usize, const PIECES: usize>
    Mapped<M, A, PEERS, PIECES>
{
    /// Own bytes, where those of an edge may be among them; places what is held if only others of
    /// its line are.
    pub(crate) fn read_beside_edges(&self, start: u32, into: &mut [u8]) {
        let end = start.saturating_add(into.len() as u32);
        let (mut at, mut rest) = (start, into);
        while let Some(edge) = self.first_edge(at, end) {
            let (first, behind) = edge.line();
            let (from, to) = (first.max(at), behind.min(end));
            let Some(bytes) = edge.get(from, to) else {
                // PLACE: G1.
                point!("mapped.long.read", self.place_held());
                break;
            };
            let before = from.wrapping_sub(at) as usize;
            let (through, others) = rest.split_at_mut_checked(before).unwrap_or_default();
            if !through.is_empty() {
                self.read_own(at, through);
            }
            let (own, others) = others.split_at_mut_checked(bytes.len()).unwrap_or_default();
            for (to, from) in own.iter_mut().zip(bytes) {
                *to = *from;
            }
            (at, rest) = (to, others);
        }
        if !rest.is_empty() {
            self.read_own(at, rest);
        }
    }

    /// The first edge whose line has some of these bytes.
    pub(crate) fn first_edge(&self, start: u32, end: u32) -> Option<Edge> {
        let all = self.longs.iter().flat_map(Long::edges);
        let all = all.map(Cell::get).filter(|edge| edge.touches(start, end));
        all.min_by_key(|edge| edge.at)
    }
}
