//! Locks, fences, flushes, and post, start, complete and wait.

#![allow(
    clippy::result_large_err,
    reason = "what calls give back, to go on with"
)]

use flagpost::{
    Error, Rma as _,
    epoch::{Assert, Lock, Strategy},
};

use super::{Chip, ELEMENTS, OWN, PEER, Stage};
use crate::Failure;

impl<'w> Stage<'_, 'w> {
    fn ask(&self, kind: &str) -> Result<Lock<'_, 'w, u64, Chip>, Error> {
        match kind {
            "shared" => self.window.lock_shared(PEER),
            "queued" => self.window.lock_queued(PEER),
            "all" => self.window.lock_all(),
            _ => self.window.lock_exclusive(PEER),
        }
    }

    pub(super) fn lock(&self, part: &str) -> Result<(), Failure> {
        let (takes, kind) = part.split_once('_').ok_or(Failure::Data)?;
        if takes == "cancel" {
            return self.cancel(kind);
        }
        if !self.measures() {
            return Ok(());
        }
        let other = match kind {
            "further" => Some(self.window.lock_exclusive(OWN)?),
            _ => None,
        };
        let lock = self.mark(takes == "lock", || self.ask(kind))?;
        self.mark(takes == "unlock", || lock.unlock())?;
        if let Some(other) = other {
            other.unlock()?;
        }
        Ok(())
    }

    /// Taking back a lock that the peer keeps from rank 0.
    fn cancel(&self, kind: &str) -> Result<(), Failure> {
        let world = self.world;
        if !self.measures() {
            let lock = match kind {
                "queued" => self.window.lock_queued(PEER)?,
                _ => self.window.lock_exclusive(PEER)?,
            };
            world.barrier()?;
            world.barrier()?;
            return Ok(lock.unlock()?);
        }
        world.barrier()?;
        let locking = match kind {
            "queued" => self.window.locking_queued(PEER)?,
            _ => self.window.locking_exclusive(PEER)?,
        };
        let late = locking.test().err().ok_or(Failure::Data)?;
        self.mark(true, || late.handle.cancel())?;
        Ok(world.barrier()?)
    }

    /// The first fence, the last one, or one between.
    pub(super) fn fence(&self, part: &str) -> Result<(), Failure> {
        let assert = match part {
            "no_put" => Assert::NO_PUT,
            "no_store" => Assert::NO_STORE,
            "no_precede" => Assert::NO_PRECEDE,
            "no_succeed" => Assert::NO_SUCCEED,
            _ => Assert::empty(),
        };
        if part == "open" {
            return Ok(self.mark(true, || self.window.fence(assert))?.end()?);
        }
        let epoch = self.window.fence(Assert::NO_PRECEDE)?;
        self.world.barrier()?;
        match part {
            "end" => Ok(self.mark(true, || epoch.end())?),
            _ => Ok(self.mark(true, || epoch.fence(assert))?.end()?),
        }
    }

    /// What makes accesses visible.
    pub(super) fn flush(&self, part: &str) -> Result<(), Failure> {
        match part {
            "flush" => self.behind_put(|lock| lock.flush(PEER)),
            "flush_all" => self.behind_put(|lock| lock.flush_all()),
            "window" => self.behind_put(|_| self.window.flush(PEER)),
            _ => Ok(self.mark(true, || self.window.sync())?),
        }
    }

    /// A flush behind a put of one element.
    fn behind_put(
        &self,
        flush: impl FnOnce(&Lock<'_, 'w, u64, Chip>) -> Result<(), Error>,
    ) -> Result<(), Failure> {
        if !self.measures() {
            return Ok(());
        }
        let lock = self.window.lock_shared(PEER)?;
        lock.put(PEER, 0, &[1])?;
        self.mark(true, || flush(&lock))?;
        Ok(lock.unlock()?)
    }

    /// One epoch with the peer: rank 0 is the origin of `start` and `complete`, else the target.
    pub(super) fn pscw<S: Strategy<'w, Chip>>(
        &self,
        options: S::Options,
        part: &str,
    ) -> Result<(), Failure> {
        let window = self.world.allocate_with::<u64, S>(ELEMENTS, options)?;
        let (origin, target) = match part {
            "start" | "has_posted" | "await_posts" | "complete" => (OWN, PEER),
            _ => (PEER, OWN),
        };
        let (only_origin, only_target) = ([origin], [target]);
        let origins = self.world.group(&only_origin)?;
        let targets = self.world.group(&only_target)?;
        self.repeat(|| {
            if self.world.rank() == target {
                let mut exposure = match part {
                    "post_range" => self.mark(true, || window.post_range(0..1, &origins))?,
                    _ => self.mark(part == "post", || window.post(&origins))?,
                };
                self.world.barrier()?;
                self.world.barrier()?;
                if part == "test" {
                    self.mark(true, || exposure.test())?;
                }
                return Ok(self.mark(part == "wait", || exposure.wait())?);
            }
            self.world.barrier()?;
            let access = self.mark(part == "start", || window.start(&targets))?;
            match part {
                "has_posted" => self.mark(true, || access.has_posted(target)).map(drop)?,
                "await_posts" => self.mark(true, || access.await_posts())?,
                _ => {}
            }
            self.mark(part == "complete", || access.complete())?;
            Ok(self.world.barrier()?)
        })
    }
}
