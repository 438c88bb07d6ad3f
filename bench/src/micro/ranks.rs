//! Experiments among many ranks, and with queued notifications.

use flagpost::{Rank, Rma as _, Tag};
use flagpost_sim::{Config, Latencies, Oracles, Report};

use super::{ONE, Row, TIMES, Timer, chip, in_world};
use crate::{Failure, cross, ring as rings};

/// Cycles of a fence among `ranks` ranks.
///
/// # Errors
/// The account of a run that failed.
pub fn fence(ranks: u64) -> Result<Row, Box<Report>> {
    Ok(vec![("fence", cross::fence(ranks as u16)?)])
}

/// Cycles of an epoch in which each rank puts 8 bytes to the next one in a ring of `ranks`.
///
/// # Errors
/// The account of a run that failed.
pub fn ring(ranks: u64) -> Result<Row, Box<Report>> {
    const WARM: u64 = 3;
    const EPOCHS: u64 = 10;
    let end = |epochs| {
        let (cores, oracles) = (ranks as u16, Oracles::NONE);
        let scc = crate::scc(cores, rings::memory(cores), Latencies::SccEas);
        let report = rings::run(Config { oracles, ..scc }, epochs)?;
        Ok::<u64, Box<Report>>(report.cycles.into_iter().max().unwrap_or(0))
    };
    Ok(vec![("pscw", (end(WARM + EPOCHS)? - end(WARM)?) / EPOCHS)])
}

/// Cycles of each call of an epoch with `neighbours` ranks of 48 on each side.
///
/// A barrier lies between the calls, so that none waits. `epoch` is all of one, without barriers.
///
/// # Errors
/// The account of a run that failed.
pub fn epochs(neighbours: u64) -> Result<Row, Box<Report>> {
    let (ranks, k) = (cross::CORES_MAX, neighbours as u16);
    let mut row = in_world(ranks, 1 << 10, chip, |timer, world| {
        let window = world.allocate::<u64>(4)?;
        let ahead = |distance| world.rank().ahead(distance, world.size());
        let targets: Vec<Rank> = (1..=k).map(ahead).collect();
        let origins: Vec<Rank> = (1..=k).map(|back| ahead(ranks - back)).collect();
        let (targets, origins) = (world.group(&targets)?, world.group(&origins)?);
        for _ in 0..TIMES {
            let exposure = timer.time("post", || window.post(&origins))?;
            world.barrier()?;
            let access = timer.time("start", || window.start(&targets))?;
            timer.time("complete", || access.complete())?;
            world.barrier()?;
            timer.time("wait", || exposure.wait())?;
        }
        Ok(())
    })?;
    row.push(("epoch", cross::epoch(ranks, k)?));
    Ok(row)
}

/// Cycles of locks that nobody else has or wants, of flushes and of `sync`, in a world of `ranks`.
///
/// # Errors
/// The account of a run that failed.
pub fn locks(ranks: u64) -> Result<Row, Box<Report>> {
    // One hop away: from three cores on, two are on a tile.
    let other = if ranks == 2 { ONE } else { Rank::new(2) };
    in_world(ranks as u16, 1 << 10, chip, |timer, world| {
        let window = world.allocate::<u64>(4)?;
        world.barrier()?;
        if world.rank() != Rank::new(0) {
            return Ok(());
        }
        for _ in 0..TIMES {
            let lock = timer.time("exclusive", || window.lock_exclusive(other))?;
            timer.time("unlock_exclusive", || lock.unlock())?;
            let lock = timer.time("shared", || window.lock_shared(other))?;
            timer.time("unlock_shared", || lock.unlock())?;
            let lock = timer.time("queued", || window.lock_queued(other))?;
            timer.time("unlock_queued", || lock.unlock())?;
            let lock = timer.time("lock_all", || window.lock_all())?;
            timer.time("flush", || lock.flush(other))?;
            lock.put(other, 0, &[7])?;
            timer.time("flush of a put", || lock.flush(other))?;
            timer.time("sync", || window.sync())?;
            timer.time("unlock_all", || lock.unlock())?;
        }
        Ok(())
    })
}

/// Cycles of taking a notification that has come after `queued` others, which match no request,
/// and are queued then.
///
/// # Errors
/// The account of a run that failed.
pub fn matching(queued: u64) -> Result<Row, Box<Report>> {
    const WANTED: Tag = Tag(1);
    const OTHER: Tag = Tag(2);
    const LONG: u32 = 100_000;
    in_world(2, 1 << 10, chip, |timer: &Timer<'_>, world| {
        let window = world.allocate::<u64>(1)?;
        for _ in 0..TIMES {
            world.barrier()?;
            if world.rank() == ONE {
                (0..queued).try_for_each(|_| window.put_notify(Rank::new(0), 0, &[7], OTHER))?;
                window.put_notify(Rank::new(0), 0, &[8], WANTED)?;
            } else {
                let mut wanted = window.expect(0..1, WANTED)?;
                // What has room in the ring has come then, and nothing has been taken.
                timer.core.spend(LONG);
                timer.time("start", || wanted.start())?;
                timer.time("wait", || wanted.wait())?;
                drop(wanted);
                let rest = window.discard_notifications()?;
                if u64::from(rest) != queued {
                    return Err(Failure::Data);
                }
            }
            world.barrier()?;
        }
        Ok(())
    })
}
