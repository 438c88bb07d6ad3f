//! A ring of cores in simulated time: each is origin of the next one and target of the one before.
//!
//! An epoch of a core is a cached store to the own piece, `post`, `start`, a `put` of 8 bytes,
//! `complete`, `wait` and a cached load of what came.

use std::time::Duration;

use flagpost::{Rma as _, World};
use flagpost_sim::{Config, Latencies, Oracles, Report};

use crate::{Chip, Failure, in_world, processor_time, timed};

/// Bytes of shared memory of a core in a world of so many: the link's fixed part, and a line or two
/// per rank.
pub fn memory(cores: u16) -> u32 {
    let bytes = (8 << 10) + 64 * u32::from(cores);
    bytes.next_multiple_of(32)
}

/// Epochs that are run to see how fast the host simulates them.
pub const EPOCHS: u64 = 1000;

/// A run, and the processor time it took.
#[derive(Debug)]
pub struct Measured {
    /// The run.
    pub report: Report,
    /// Start-up included.
    pub time: Duration,
}

/// Runs so many epochs on so many cores, and looks at the host's clock.
///
/// # Errors
/// The account of a run that failed.
pub fn measure(
    cores: u16,
    epochs: u64,
    latencies: Latencies,
    oracles: Oracles,
) -> Result<Measured, Box<Report>> {
    let start = processor_time();
    let report = run(chip(cores, latencies, oracles), epochs)?;
    let time = processor_time().saturating_sub(start);
    Ok(Measured { report, time })
}

/// A chip of so many cores with small message buffers.
pub fn chip(cores: u16, latencies: Latencies, oracles: Oracles) -> Config {
    Config {
        cores,
        memory_size: memory(cores),
        latencies,
        oracles,
        ..timed()
    }
}

/// Runs so many epochs on all cores of a chip.
///
/// # Errors
/// The account of a run that failed.
pub fn run(chip: Config, epochs: u64) -> Result<Report, Box<Report>> {
    crate::run(chip, |core| in_world(core, |world| program(world, epochs)))
}

fn program(world: &World<'_, Chip>, epochs: u64) -> Result<(), Failure> {
    let window = world.allocate::<u64>(2)?;
    let (me, size) = (world.rank(), world.size());
    let (next, previous) = ([me.next(size)], [me.prev(size)]);
    let (targets, origins) = (world.group(&next)?, world.group(&previous)?);
    for epoch in 0..epochs {
        window.local().set(1, epoch)?;
        let exposure = window.post(&origins)?;
        let access = window.start(&targets)?;
        access.put(next[0], 0, &[epoch])?;
        access.complete()?;
        exposure.wait()?;
        if window.local().get(0)? != epoch {
            return Err(Failure::Data);
        }
    }
    Ok(())
}
