//! An own cell that peers change, and that this rank waits for.

use core::cell::Cell;

use flagpost_link::{Amo, Key, Link, Op, Pending, Width};

use crate::{Error, Missing, Timeout, Waiting, World};

/// A cell of this rank's.
#[derive(Debug)]
pub(super) struct Awaited<'w, L: Link> {
    pub(super) world: &'w World<'w, L>,
    key: Key,
    offset: u32,
    /// What it was when it was last looked at.
    seen: Cell<u32>,
    op: Pending<'w, L>,
}

impl<'w, L: Link> Awaited<'w, L> {
    pub(super) fn new(world: &'w World<'w, L>, (key, offset): (Key, u32)) -> Self {
        Self {
            world,
            key,
            offset,
            seen: Cell::new(0),
            op: Pending::new(world.link()),
        }
    }

    /// Its value, if that is what is waited for: then what its writers fenced before can be read.
    pub(super) fn look(&self, arrived: impl Fn(u32) -> bool) -> Result<Option<u32>, Error> {
        let link = self.world.link();
        let look = |value| {
            self.seen.set(value);
            arrived(value)
        };
        match link.watch(self.key, self.offset, look, &self.op) {
            Err(refusal) if refusal.is_transient() => Ok(None),
            other => Ok(other?),
        }
    }

    /// Waits until its value is as it should be. `left` says of a value how many notifications it
    /// lacks.
    pub(super) fn wait(
        &self,
        arrived: impl Fn(u32) -> bool,
        left: impl Fn(u32) -> u32,
    ) -> Result<u32, Error> {
        self.world
            .wait()
            .until(|| self.look(&arrived), || late(left(self.seen.get())))
    }

    /// What it was when it was last looked at.
    pub(super) fn seen(&self) -> u32 {
        self.seen.get()
    }
}

/// `left` notifications have not come. No rank is named: any may tell an own cell.
pub(super) fn late(left: u32) -> Timeout {
    Timeout {
        waiting: Waiting::Notification,
        missing: Missing::among(core::iter::empty(), left),
    }
}

impl<L: Link> World<'_, L> {
    /// An own cell's value. What its writers fenced before can be read; and what has arrived is
    /// taken, so that a program that only ever asks keeps nobody waiting.
    pub(super) fn value(&self, (key, offset): (Key, u32)) -> Result<u32, Error> {
        // PROGRESS: who waits for room in the own ring may be the one whose notification is asked
        // for.
        point!("notify.value.progress", self.progress(); else false);
        self.note_poll()?;
        let (link, me) = (self.link(), self.rank());
        let read = |op: &Op| link.amo(me, key, offset, Amo::Read, Width::Half, op);
        // The low half.
        Ok(self.wait().ask(read)? as u32)
    }
}
