//! Windows that come and go, what is attached to one, and neighbours' elements by loads and stores.

#![allow(
    clippy::result_large_err,
    reason = "what calls give back, to try again"
)]

use flagpost::{
    Displacement, DynamicOptions, DynamicWindow, EpochSlots, MatchVector, MatchingList, Model,
    Rma as _, Validation,
};

use super::{Chip, ELEMENT, PEER, Stage};
use crate::Failure;

/// Elements of a window that comes and goes: a cache line and more.
const FEW: usize = 8;

/// Counters of one.
const COUNTERS: u32 = 8;

impl Stage<'_, '_> {
    /// Making a window in each way, and giving an allocated one back.
    pub(super) fn window(&self, part: &str) -> Result<(), Failure> {
        let (world, bytes) = (self.world, FEW * ELEMENT);
        let memory = world.reserve(bytes)?;
        self.repeat(|| {
            match part {
                "create" => {
                    let made = || world.create::<u64>(&memory, 0..bytes, ELEMENT);
                    self.mark(true, made)?.free()?;
                }
                "allocate_vector" => {
                    let made = || world.allocate_with::<u64, MatchVector<'_>>(FEW, ());
                    self.mark(true, made)?.free()?;
                }
                "allocate_list" => {
                    let made = || world.allocate_with::<u64, MatchingList<'_>>(FEW, 1);
                    self.mark(true, made)?.free()?;
                }
                "reserve" | "release" => {
                    let memory = self.mark(part == "reserve", || world.reserve(bytes))?;
                    self.mark(part == "release", || memory.release())?;
                }
                "dynamic" => {
                    let made = || world.dynamic(DynamicOptions::default());
                    self.mark(true, made)?.free()?;
                }
                "set_num_notify" => {
                    let mut window = world.allocate::<u64>(FEW)?;
                    self.mark(true, || window.set_num_notify(COUNTERS))?;
                    window.free()?;
                }
                _ => {
                    let made = || world.allocate::<u64>(FEW);
                    let window = self.mark(part == "allocate", made)?;
                    self.mark(part == "free", || window.free())?;
                }
            }
            Ok(())
        })
    }

    /// Attaching, detaching what the peer has read from, accesses, and giving the window back.
    pub(super) fn dynamic(&self, part: &str) -> Result<(), Failure> {
        let (part, validation) = match part.strip_suffix("_told") {
            Some(part) => (part, Validation::Invalidation),
            None => (part, Validation::Counter),
        };
        let mut options = DynamicOptions {
            validation,
            ..DynamicOptions::default()
        };
        let part = part.strip_suffix("_unkept").map_or(part, |part| {
            options.kept = 0;
            part
        });
        let (world, me) = (self.world, self.world.rank());
        if part == "free" {
            return self.repeat(|| {
                let window = world.dynamic(options)?;
                Ok(self.mark(true, || window.free())?)
            });
        }
        let window = world.dynamic(options)?;
        let memory = world.reserve(self.window.len() * ELEMENT)?;
        self.repeat(|| {
            let here = self.mark(part == "attach", || window.attach(&memory))?;
            let mut there = here;
            world.allgather_with(here.get(), |rank, raw| {
                if rank != me {
                    there = Displacement::new(raw);
                }
            })?;
            if self.measures() != (part == "detach") {
                let peer = me.next(world.size());
                let lock = window.window().lock_shared(peer)?;
                let at = window.at(&lock, there);
                at.get(peer, 0, &mut [0_u64])?;
                match part {
                    "attach" | "detach" => {}
                    "read" | "write" => self.own(&window, here, part)?,
                    _ => self.access(&at, part)?,
                }
                lock.unlock()?;
            }
            world.barrier()?;
            Ok(self.mark(part == "detach", || window.detach(&memory))?)
        })
    }

    /// Own attached memory, the second time: the first one has brought its lines.
    fn own(
        &self,
        window: &DynamicWindow<'_, Chip>,
        here: Displacement,
        part: &str,
    ) -> Result<(), Failure> {
        let mut data = self.data.clone();
        for is_second in [false, true] {
            self.mark(is_second, || match part {
                "read" => window.read(here, &mut data),
                _ => window.write(here, &data),
            })?;
        }
        Ok(())
    }

    pub(super) fn peer(&self, part: &str) -> Result<(), Failure> {
        let (world, model) = (self.world, Model::Unified);
        let window = world.allocate_with::<u64, EpochSlots<'_>>(FEW, model)?;
        self.repeat(|| {
            if self.measures() {
                let peer = window.peer(PEER)?;
                match part {
                    "set" => self.mark(true, || peer.set(0, 7))?,
                    _ => self.mark(true, || peer.get(0)).map(drop)?,
                }
            }
            Ok(())
        })
    }
}
