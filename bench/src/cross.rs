//! Where a fence among all takes less time than epochs among few, in simulated time.
//!
//! Each rank of a ring is an origin of the k ranks after it, and a target of the k before it:
//! `post`, `start`, `complete`, `wait`. Or all ranks meet in a fence. No data are put. On a 6 x 4
//! mesh, two cores to a tile.

use flagpost::epoch::Assert;
use flagpost::{Config as WorldConfig, Rank, Session, World};
use flagpost_mapped::Mapped;
use flagpost_sim::{Config, Oracles, Report, Schedule, Sim, SimCore};

use crate::Failure;
use crate::pscw::{BUFFER, MESH};

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
    let fence = fence(cores)?;
    let mut before = 0;
    for k in 1..cores {
        let epoch = epoch(cores, k)?;
        if epoch > fence {
            let epoch = Some((k, epoch));
            return Ok(Crossing {
                fence,
                epoch,
                before,
            });
        }
        before = epoch;
    }
    Ok(Crossing {
        fence,
        epoch: None,
        before,
    })
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
        schedule: Schedule::Timed,
        oracles: Oracles::ALL,
        max_steps: u64::MAX,
        ..Config::default()
    };
    let report = Sim::new(config).run(|core| program(core, k));
    match &report.marks[..] {
        [begin, end] if report.is_done() => Ok((end.cycles - begin.cycles).div_ceil(EPOCHS)),
        _ => Err(Box::new(report)),
    }
}

fn program(core: SimCore, k: Option<u16>) -> Result<(), Failure> {
    let clock = core.clone();
    let mut arena = [0; 1024];
    let link = Mapped::start(core, Session::FIRST)?;
    let world = World::start(link, &mut arena, WorldConfig::default())?;
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
