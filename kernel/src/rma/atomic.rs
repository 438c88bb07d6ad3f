//! Operations on one element whose former value is the answer. The answer may come later: then a
//! [`Fetch`] waits for it. Guarantees and steps are those of [`accumulate`](super::accumulate):
//! both exclude each other on the same element.

use bytemuck::Pod;
use flagpost_link::{Amo, Link, Op, Pending, Refusal, Width};

use super::{
    Element,
    accumulate::{change, copy},
    operation::{CELL, Combine, Operation, cell},
    request::{is_done, late},
    telling::{Checked, Telling},
    transfer::Remote,
};
use crate::{
    Budget, Error, Timeout, Unfinished, Waiting, World,
    complete::{Complete, Sealed},
};

/// An operation on one element that may not have been answered.
///
/// Dropping it loses the answer: the operation may have been done, or not.
#[derive(Debug)]
#[must_use = "dropping this loses the answer of an operation that may have been done"]
pub struct Fetch<'r, 'w, T, L: Link> {
    remote: Remote<'r, 'w, L>,
    change: Change<T>,
    old: [u8; CELL],
    /// That of the change, or of the notice after it.
    op: Pending<'w, L>,
    /// `old` is the answer.
    answered: bool,
    telling: Option<Telling<'r>>,
    /// A call for several requests has given it.
    told: bool,
    /// Why it was not done at the last attempt.
    waiting: Waiting,
}

/// The change of the element.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Change<T> {
    Combine(Combine, T),
    CompareSwap { expected: T, new: T },
}

impl<T: Element> Change<T> {
    /// Combines with `operand`.
    pub(crate) fn new(operand: T, operation: Operation<T>) -> Self {
        Self::Combine(operation.combine(), operand)
    }
}

impl<'r, 'w, T: Pod, L: Link> Fetch<'r, 'w, T, L> {
    pub(super) fn new(remote: Remote<'r, 'w, L>, change: Change<T>) -> Self {
        Self {
            op: Pending::new(remote.link()),
            remote,
            change,
            old: [0; CELL],
            answered: false,
            telling: None,
            told: false,
            waiting: Waiting::Answer,
        }
    }

    /// The last step tells `notice`, if there is any.
    pub(super) fn telling(mut self, notice: Option<Checked>) -> Self {
        let Remote {
            rank, key, offset, ..
        } = self.remote;
        self.telling = notice.map(|notice| Telling::new(rank, notice, (key, offset), &[]));
        self
    }

    /// True if the operation may have been done.
    pub fn has_begun(&self) -> bool {
        self.answered || self.op.is_under_way()
    }

    /// Begins, as far as that goes without waiting.
    pub(super) fn begin(mut self) -> Result<Self, Error> {
        match self.attempt() {
            Err(refusal) if !refusal.is_transient() => Err(refusal.into()),
            _ => Ok(self),
        }
    }

    fn finish(&mut self) -> Result<T, Error> {
        let world = self.remote.core.world;
        world.wait().retry(|| self.attempt())
    }

    fn attempt(&mut self) -> Result<T, Refusal> {
        order!("the access comes before what notifies of it": "rma.fetch.access<tell",
            self.change()?, self.tell()?);
        let old = self.old.get(..size_of::<T>()).unwrap_or_default();
        let mut value = T::zeroed();
        copy(old, bytemuck::bytes_of_mut(&mut value));
        Ok(value)
    }

    /// Tells of what was done, if anything is to be told.
    fn tell(&mut self) -> Result<(), Refusal> {
        let link = self.remote.link();
        let (telling, op) = (self.telling.as_mut(), &self.op);
        telling.map_or(Ok(()), |telling| telling.attempt(link, op))
    }

    fn change(&mut self) -> Result<(), Refusal> {
        if self.answered {
            return Ok(());
        }
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
        self.answered = true;
        Ok(())
    }
}

ends! {
    impl['r, 'w, T: Pod, L: Link] Fetch<'r, 'w, T, L>,
    in remote.core.world, by finish;
    /// Waits for the answer.
    ///
    /// # Errors
    /// [`Error::PeerLost`].
    wait -> T;
    /// # Errors
    /// [`Error::Timeout`] naming the peer, [`Error::PeerLost`]: with the request, to continue with.
    wait_within;
}

impl<T, L: Link> Sealed for Fetch<'_, '_, T, L> {}

/// When it is given, [`Fetch::wait`] has the answer immediately.
impl<'s, 'w: 's, T: Pod, L: Link> Complete<'s, L> for Fetch<'_, 'w, T, L> {
    fn world(&self) -> &'s World<'s, L> {
        self.remote.core.world
    }

    fn is_open(&self) -> bool {
        !self.told
    }

    fn poll(&mut self) -> Result<bool, Error> {
        let answer = self.attempt();
        self.told = answer.is_ok();
        is_done(answer, &mut self.waiting)
    }

    fn late(&self) -> Timeout {
        late(self.waiting, &self.remote)
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
