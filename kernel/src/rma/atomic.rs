//! Operations on one element whose former value is the answer.
//!
//! Guarantees and steps are those of [`accumulate`](super::accumulate): both exclude each other on the same element.

use bytemuck::Pod;
use flagpost_link::{Amo, Link, Op, Refusal, Width};

use super::{
    accumulate::{change, copy},
    operation::{CELL, Combine, cell},
    transfer::Remote,
};
use crate::{Error, Unfinished};

/// An operation on one element that has not been answered.
///
/// It may have been done. Dropping it leaves that so, and loses the answer.
#[derive(Debug)]
#[must_use = "dropping this loses the answer of an operation that may have been done"]
pub struct Fetch<'r, 'w, T, L> {
    remote: Remote<'r, 'w, L>,
    change: Change<T>,
    old: [u8; CELL],
    op: Op,
}

/// What is done.
#[derive(Copy, Clone, Debug)]
pub(super) enum Change<T> {
    Combine(Combine, T),
    CompareSwap { expected: T, new: T },
}

impl<'r, 'w, T: Pod, L: Link> Fetch<'r, 'w, T, L> {
    pub(super) fn new(remote: Remote<'r, 'w, L>, change: Change<T>) -> Self {
        Self {
            remote,
            change,
            old: [0; CELL],
            op: Op::new(),
        }
    }

    /// Whether the operation may have been done.
    pub fn has_begun(&self) -> bool {
        self.op.is_under_way()
    }

    /// Waits for the answer.
    ///
    /// # Errors
    /// [`Error::Timeout`] with this handle again, [`Error::PeerLost`].
    pub fn go_on(mut self) -> Result<T, Unfinished<Self>> {
        let world = self.remote.core.world;
        match world.retry(|| self.attempt()) {
            Ok(value) => Ok(value),
            Err(error) => Err(Unfinished {
                handle: self,
                error,
            }),
        }
    }

    /// [`go_on`](Self::go_on), as the first attempt of a call.
    pub(super) fn begin(self) -> Result<T, Unfinished<Option<Self>>> {
        self.go_on().map_err(|late| Unfinished {
            handle: Some(late.handle),
            error: late.error,
        })
    }

    fn attempt(&mut self) -> Result<T, Refusal> {
        let remote = &self.remote;
        let old = self.old.get_mut(..size_of::<T>()).unwrap_or_default();
        match &self.change {
            Change::Combine(combine, operand) => {
                let operand = bytemuck::bytes_of(operand);
                change(remote, remote.offset, combine, operand, old, &self.op)?;
            }
            Change::CompareSwap { expected, new } => {
                let (expected, new) = (bytemuck::bytes_of(expected), bytemuck::bytes_of(new));
                compare_swap(remote, expected, new, old, &self.op)?;
            }
        }
        let mut value = T::zeroed();
        copy(old, bytemuck::bytes_of_mut(&mut value));
        Ok(value)
    }
}

/// Stores `new` at `remote` if `expected` is there. `old` is what was.
fn compare_swap<L: Link>(
    remote: &Remote<'_, '_, L>,
    expected: &[u8],
    new: &[u8],
    old: &mut [u8],
    op: &Op,
) -> Result<(), Refusal> {
    let (
        link,
        Remote {
            rank, key, offset, ..
        },
    ) = (remote.link(), *remote);
    if let (Some(expected), Some(new)) = (cell(expected), cell(new)) {
        let amo = Amo::CompareSwap { expected, new };
        let former = link.amo(rank, key, offset, amo, Width::Whole, op)?;
        copy(&former.to_le_bytes(), old);
        return Ok(());
    }
    let mut swap = |bytes: &mut [u8]| {
        copy(bytes, old);
        if bytes == expected {
            copy(new, bytes);
        }
    };
    link.update(rank, key, offset, new.len(), &mut swap, op)
}

/// What a call gives that failed before anything was done.
pub(super) fn nothing<H>(error: Error) -> Unfinished<Option<H>> {
    Unfinished {
        handle: None,
        error,
    }
}
