//! Accesses of rank 0 to rank 1's piece in an epoch, and to its own piece.

#![allow(
    clippy::result_large_err,
    reason = "what accumulates give back, to go on with"
)]

use flagpost::{
    Rma,
    rma::{Gather, Layout, Scatter},
    wait_any,
};
use flagpost_verbs::{Verb, begin};

use super::{Chip, PEER, Stage};
use crate::Failure;

impl<'w> Stage<'_, 'w> {
    /// An access under a lock.
    pub(super) fn rma(&self, part: &str) -> Result<(), Failure> {
        if !self.measures() {
            return Ok(());
        }
        let lock = self.window.lock_shared(PEER)?;
        self.access(&lock, part)?;
        Ok(lock.unlock()?)
    }

    /// An access by what reaches the peer's memory.
    pub(super) fn access<R>(&self, epoch: &R, part: &str) -> Result<(), Failure>
    where
        R: Rma<'w, u64, Chip>,
    {
        let (data, mut into) = (&self.data[..], self.data.clone());
        // A get that has begun: over this link it is done then.
        match part {
            "test" => {
                let mut request = epoch.to(PEER, 0).get(&mut into[..])?;
                let is_done = self.mark(true, || request.test())?;
                return is_done.then_some(()).ok_or(Failure::Data);
            }
            "wait_any" => {
                let mut requests = [epoch.to(PEER, 0).get(&mut into[..])?];
                self.mark(true, || wait_any(&mut requests))?;
                return Ok(());
            }
            _ => {}
        }
        if let Some(verb) = Verb::named(part) {
            return Ok(self.mark(true, || verb.call(epoch, (PEER, 0), data, &mut into))?);
        }
        let (name, way) = part.rsplit_once('_').ok_or(Failure::Data)?;
        let verb = Verb::named(name).ok_or(Failure::Data)?;
        if way == "layout" {
            // One element of two, on both sides.
            let stripes = Layout::Vector {
                blocks: data.len() / 2,
                block_len: 1,
                stride: 2,
            };
            let (from, into) = (Gather::new(data, stripes), Scatter::new(&mut into, stripes));
            let target = epoch.to(PEER, 0).layout(stripes);
            self.mark(true, || begin!(verb, target, from, into)?.wait())?;
        } else {
            let target = epoch.to(PEER, 0);
            self.mark(true, || begin!(verb, target, data, &mut into[..])?.wait())?;
        }
        Ok(())
    }

    /// Loads and stores of the own piece, through the cache.
    pub(super) fn local(&self, part: &str) -> Result<(), Failure> {
        let (local, mut data) = (self.window.local(), self.data.clone());
        match part {
            "get" => self.mark(true, || local.get(0)).map(drop)?,
            "set" => self.mark(true, || local.set(0, 7))?,
            "copy_out" => self.mark(true, || local.copy_out(0, &mut data))?,
            "copy_in" => self.mark(true, || local.copy_in(0, &data))?,
            _ => return Err(Failure::Data),
        }
        Ok(())
    }
}
