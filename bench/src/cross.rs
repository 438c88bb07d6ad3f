//! Where a fence among all takes less time than epochs among few, in simulated time.
//!
//! Each rank of a ring is an origin of the k ranks after it, and a target of the k before it:
//! `post`, `start`, `complete`, `wait`. Or all ranks meet in a fence. No data are put. On a 6 x 4
//! mesh, two cores to a tile.

use flagpost::epoch::Assert;
use flagpost::{Rank, World};
use flagpost_sim::{Config, Report, SimCore};

use crate::pscw::MESH;
use crate::{BUFFER, Chip, Failure, in_world, run, timed};

/// Most cores.
pub const CORES_MAX: u16 = 48;

/// Epochs before those that count, and those that count.
const WARM: u64 = 3;
const EPOCHS: u64 = 20;

/// Where they cross.
#[derive(Copy, Clone, Debug)]
pub struct Crossing {
    /// Cycles of a fence.
    pub fence: u64,
    /// The fewest neighbours with whom an epoch takes longer, and its cycles; none if no number
    /// does.
    pub epoch: Option<(u16, u64)>,
    /// Cycles of an epoch with one neighbour less; of none, nothing.
    pub before: u64,
}

/// Looks for it among `cores` ranks.
///
/// # Errors
/// The account of a run that failed.
pub fn measure(cores: u16) -> Result<Crossing, Box<Report>> {
    let mut found = Crossing {
        fence: fence(cores)?,
        epoch: None,
        before: 0,
    };
    for k in 1..cores {
        let epoch = epoch(cores, k)?;
        if epoch > found.fence {
            found.epoch = Some((k, epoch));
            break;
        }
        found.before = epoch;
    }
    Ok(found)
}

/// Cycles of a fence of `cores` ranks.
///
/// # Errors
/// The account of a run that failed.
pub fn fence(cores: u16) -> Result<u64, Box<Report>> {
    cycles(cores, None)
}

/// Cycles of an epoch of each of `cores` ranks with `k` on each side.
///
/// # Errors
/// The account of a run that failed.
pub fn epoch(cores: u16, k: u16) -> Result<u64, Box<Report>> {
    cycles(cores, Some(k))
}

/// Cycles of a fence, or of an epoch with `k` neighbours: rank 0's, the mean.
fn cycles(cores: u16, k: Option<u16>) -> Result<u64, Box<Report>> {
    let config = Config {
        cores,
        memory_size: 16 << 10,
        buffer_size: BUFFER,
        mesh: Some(MESH),
        ..timed()
    };
    let report = run(config, |core| {
        let clock = core.clone();
        in_world(core, |world| program(&clock, world, k))
    })?;
    match &report.marks[..] {
        [begin, end] => Ok((end.cycles - begin.cycles).div_ceil(EPOCHS)),
        _ => Err(Box::new(report)),
    }
}

fn program(clock: &SimCore, world: &World<'_, Chip>, k: Option<u16>) -> Result<(), Failure> {
    let window = world.allocate::<u64>(4)?;
    let (me, size) = (world.rank(), world.size());
    let ahead = |distance| me.ahead(distance, size);
    let targets: Vec<Rank> = (1..=k.unwrap_or(0)).map(ahead).collect();
    let origins: Vec<Rank> = (1..=k.unwrap_or(0)).map(|k| ahead(size - k)).collect();
    let (targets, origins) = (world.group(&targets)?, world.group(&origins)?);
    let mut fence = match k {
        None => Some(window.fence(Assert::NO_PRECEDE)?),
        Some(_) => None,
    };
    for epoch in 0..WARM + EPOCHS {
        if epoch == WARM && me == Rank::new(0) {
            clock.mark("begin");
        }
        if let Some(open) = fence.take() {
            fence = Some(open.fence(Assert::empty())?);
            continue;
        }
        let exposure = window.post(&origins)?;
        window.start(&targets)?.complete()?;
        exposure.wait()?;
    }
    if me == Rank::new(0) {
        clock.mark("end");
    }
    fence.map_or(Ok(()), |open| Ok(open.end()?))
}
