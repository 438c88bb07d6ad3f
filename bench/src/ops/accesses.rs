//! Accesses of rank 0 to rank 1's piece in an epoch, and to its own piece.

#![allow(
    clippy::result_large_err,
    reason = "what accumulates give back, to go on with"
)]

use flagpost::{
    Rma,
    rma::{Gather, Layout, Operation, Scatter},
    wait_any,
};

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
        let mut data = self.data.clone();
        let sum = Operation::SUM;
        // One element of two, on both sides.
        let stripes = Layout::Vector {
            blocks: data.len() / 2,
            block_len: 1,
            stride: 2,
        };
        match part {
            "rput" => self.mark(true, || {
                epoch.rput(PEER, 0, &data)?.wait().map_err(Failure::from)
            })?,
            "rget" => self.mark(true, || {
                epoch
                    .rget(PEER, 0, &mut data)?
                    .wait()
                    .map_err(Failure::from)
            })?,
            "raccumulate" => self.mark(true, || {
                let request = epoch.raccumulate(PEER, 0, &data, sum)?;
                request.wait().map_err(Failure::from)
            })?,
            "rget_accumulate" => self.mark(true, || {
                let request = epoch.rget_accumulate(PEER, 0, &self.data, sum, &mut data)?;
                request.wait().map_err(Failure::from)
            })?,
            "put_layout" => {
                let from = Gather::new(&data, stripes);
                self.mark(true, || epoch.put_layout(PEER, 0, stripes, from))?;
            }
            "get_layout" => {
                let into = Scatter::new(&mut data, stripes);
                self.mark(true, || epoch.get_layout(PEER, 0, stripes, into))?;
            }
            "accumulate_layout" => {
                let from = Gather::new(&data, stripes);
                let done = self.mark(true, || {
                    epoch.accumulate_layout(PEER, 0, stripes, from, sum)
                });
                done?;
            }
            "get_accumulate_layout" => {
                let from = Gather::new(&self.data, stripes);
                let into = Scatter::new(&mut data, stripes);
                let done = self.mark(true, || {
                    epoch.get_accumulate_layout((PEER, 0), stripes, from, sum, into)
                });
                done?;
            }
            "put" => self.mark(true, || epoch.put(PEER, 0, &data))?,
            "get" => self.mark(true, || epoch.get(PEER, 0, &mut data))?,
            "accumulate" => {
                let done = self.mark(true, || epoch.accumulate(PEER, 0, &data, sum));
                done?;
            }
            "get_accumulate" => {
                let done = self.mark(true, || {
                    epoch.get_accumulate(PEER, 0, &self.data, sum, &mut data)
                });
                done?;
            }
            "fetch_and_op" => {
                let done = self.mark(true, || epoch.fetch_and_op(PEER, 0, 1, sum));
                done?;
            }
            "compare_and_swap" => {
                let done = self.mark(true, || epoch.compare_and_swap(PEER, 0, 0, 1));
                done?;
            }
            // A get that has begun: over this link it is done then.
            "test" => {
                let mut request = epoch.rget(PEER, 0, &mut data)?;
                let is_done = self.mark(true, || request.test())?;
                return is_done.then_some(()).ok_or(Failure::Data);
            }
            "wait_any" => {
                let mut requests = [epoch.rget(PEER, 0, &mut data)?];
                self.mark(true, || wait_any(&mut requests))?;
            }
            _ => return Err(Failure::Data),
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
