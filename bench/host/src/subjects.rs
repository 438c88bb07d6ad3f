//! Calls whose instructions are counted, each in a function of its own, which is called [`CALLS`]
//! times.
//!
//! A count has all that the function executes: the call into it, the library's, and its own few to
//! say whether that went well.

use std::sync::Barrier;

use anyhow::{Result, anyhow};
use flagpost::epoch::{
    Lock,
    pscw::{Access, Exposure},
};
use flagpost::{EpochSlots, Error, Group, Rank, Request, Rma as _, Tag, Window, World};
use flagpost_linux::HostLink;

/// How often each is called, when everything has been done once.
pub(crate) const CALLS: u64 = 256;

/// A subject: the end of its function's name, what it is called in the table, and its limit.
pub(crate) struct Subject {
    pub(crate) function: &'static str,
    pub(crate) name: &'static str,
    pub(crate) limit: u64,
}

/// All of them.
pub(crate) const ALL: [Subject; 15] = [
    subject("count_put", "put of 8 bytes", 40),
    subject("count_put_notify", "put_notify of 8 bytes", 80),
    subject(
        "count_put_notify_more",
        "put_notify of 8 bytes, not answered",
        80,
    ),
    subject("count_flush", "flush", 10),
    subject("count_test", "test of the active request, a hit", 81),
    subject(
        "count_test_more",
        "test of the active request, a hit, not answered",
        108,
    ),
    subject("count_request_start", "start of a request", 24),
    subject("count_epoch_start", "start of an access epoch", 20),
    subject(
        "count_complete",
        "complete, one target that has posted",
        360,
    ),
    subject("count_post", "post to one origin", 218),
    subject("count_wait", "wait, one origin that has completed", 181),
    subject("count_lock", "exclusive lock and its unlock", 200),
    subject("count_get", "local().get of 64 elements, in a loop", 2010),
    subject("count_copy_out", "local().copy_out of the 64", 700),
    subject(
        "count_wait_beside",
        "wait, a hit, where another rank might be next",
        1070,
    ),
];

const fn subject(function: &'static str, name: &'static str, limit: u64) -> Subject {
    Subject {
        function,
        name,
        limit,
    }
}

const TAG: Tag = Tag(1);

#[inline(never)]
fn count_put(lock: &Lock<'_, '_, u64, HostLink>, to: Rank, value: u64) -> bool {
    lock.put(to, 1, &[value]).is_ok()
}

#[inline(never)]
fn count_put_notify(window: &Window<'_, u64, HostLink>, to: Rank, value: u64) -> bool {
    window.put_notify(to, 0, &[value], TAG).is_ok()
}

/// Like [`count_put_notify`], of a rank that has not been answered. (The value that the
/// compiler does not look into is no code: it makes one function of equal ones.)
#[inline(never)]
fn count_put_notify_more(window: &Window<'_, u64, HostLink>, to: Rank, value: u64) -> bool {
    std::hint::black_box(());
    window.put_notify(to, 0, &[value], TAG).is_ok()
}

#[inline(never)]
fn count_flush(lock: &Lock<'_, '_, u64, HostLink>, to: Rank) -> bool {
    lock.flush(to).is_ok()
}

#[inline(never)]
fn count_test(request: &mut Request<'_, HostLink>) -> bool {
    matches!(request.test(), Ok(Some(_)))
}

/// Like [`count_test`], of what a rank has sent that has not been answered.
#[inline(never)]
fn count_test_more(request: &mut Request<'_, HostLink>) -> bool {
    std::hint::black_box(());
    matches!(request.test(), Ok(Some(_)))
}

#[inline(never)]
fn count_request_start(request: &mut Request<'_, HostLink>) -> bool {
    request.start().is_ok()
}

#[inline(never)]
fn count_epoch_start<'e, 'w>(
    window: &'e Window<'w, u64, HostLink>,
    targets: &Group<'e>,
) -> Result<Access<'e, 'w, u64, HostLink, EpochSlots<'w>>, Error> {
    window.start(targets)
}

#[inline(never)]
fn count_complete<'w>(epoch: Access<'_, 'w, u64, HostLink, EpochSlots<'w>>) -> bool {
    epoch.complete().is_ok()
}

#[inline(never)]
fn count_post<'e, 'w>(
    window: &'e Window<'w, u64, HostLink>,
    origins: &Group<'e>,
) -> Option<Exposure<'e, 'w, HostLink, EpochSlots<'w>>> {
    window.post(origins).ok()
}

#[inline(never)]
fn count_wait<'w>(epoch: Exposure<'_, 'w, HostLink, EpochSlots<'w>>) -> bool {
    epoch.wait().is_ok()
}

#[inline(never)]
fn count_lock(window: &Window<'_, u64, HostLink>, to: Rank) -> bool {
    window
        .lock_exclusive(to)
        .is_ok_and(|lock| lock.unlock().is_ok())
}

/// Elements that are read.
const MANY: usize = 64;

#[inline(never)]
fn count_get(window: &Window<'_, u64, HostLink>) -> Option<u64> {
    let (piece, mut sum) = (window.local(), 0_u64);
    for index in 0..MANY {
        sum = sum.wrapping_add(piece.get(index).ok()?);
    }
    Some(sum)
}

#[inline(never)]
fn count_copy_out(window: &Window<'_, u64, HostLink>) -> Option<u64> {
    let mut all = [0; MANY];
    window.local().copy_out(0, &mut all).ok()?;
    Some(all.iter().fold(0, |sum, one| one.wrapping_add(sum)))
}

#[inline(never)]
fn count_wait_beside(request: &mut Request<'_, HostLink>) -> bool {
    request.wait().is_ok()
}

/// Runs all subjects: rank 0 calls, rank 1 does what belongs to it.
pub(crate) fn run() -> Result<bool> {
    // A barrier of the world takes notifications while it waits: a test finds them in its queue
    // then. Here it shall find them where they arrive.
    let meet = Barrier::new(2);
    let done = flagpost_linux::threads(2, |world| {
        let window = world.allocate::<u64>(8)?;
        match world.rank().get() {
            0 => caller(world, &window, &meet),
            _ => peer(world, &window, &meet),
        }
    });
    let mut went_well = done.map_err(|why| anyhow!("the subjects failed: {why}"))?;
    let meet = Barrier::new(3);
    let done = flagpost_linux::threads(3, |world| beside(world, &meet));
    went_well.extend(done.map_err(|why| anyhow!("the subjects of three failed: {why}"))?);
    Ok(went_well.into_iter().all(|well| well))
}

/// Rank 0 reads its piece. Rank 1 sends to rank 0, and rank 2 might.
fn beside(world: &World<'_, HostLink>, meet: &Barrier) -> Result<bool, Error> {
    let window = world.allocate::<u64>(MANY)?;
    let (me, first) = (world.rank(), Rank::new(0));
    let mut well = true;
    let mut request = window.expect(0..1, TAG)?.from(Rank::new(1))?;
    for value in 0..CALLS {
        if me == first {
            well &= count_get(&window).is_some() & count_copy_out(&window).is_some();
            request.start()?;
        }
        meet.wait();
        if me == Rank::new(1) {
            window.put_notify(first, 0, &[value], TAG)?;
        }
        meet.wait();
        if me == first {
            well &= count_wait_beside(&mut request);
        }
    }
    world.barrier()?;
    Ok(well)
}

fn caller(
    world: &World<'_, HostLink>,
    window: &Window<'_, u64, HostLink>,
    meet: &Barrier,
) -> Result<bool, Error> {
    let to = Rank::new(1);
    let mut well = true;
    let lock = window.lock_shared(to)?;
    for value in 0..CALLS {
        well &= count_put(&lock, to, value);
        well &= count_flush(&lock, to);
    }
    lock.unlock()?;
    let mut request = window.expect(0..1, TAG)?.from(to)?;
    for value in 0..CALLS {
        // There and back.
        well &= count_put_notify(window, to, value);
        well &= count_request_start(&mut request);
        meet.wait();
        well &= count_test(&mut request);
        meet.wait();
    }
    for value in 0..CALLS {
        well &= count_put_notify_more(window, to, value);
        // It has been taken: the ring has room, as it has for a peer that keeps up.
        world.barrier()?;
    }
    // The first answers.
    request.start()?;
    world.barrier()?;
    well &= matches!(request.test(), Ok(Some(_)));
    for _ in 0..CALLS {
        request.start()?;
        meet.wait();
        meet.wait();
        well &= count_test_more(&mut request);
    }
    let only = [to];
    let targets = world.group(&only)?;
    for _ in 0..CALLS {
        let epoch = count_epoch_start(window, &targets)?;
        world.barrier()?;
        well &= count_complete(epoch);
        world.barrier()?;
        well &= count_lock(window, to);
    }
    world.barrier()?;
    Ok(well)
}

fn peer(
    world: &World<'_, HostLink>,
    window: &Window<'_, u64, HostLink>,
    meet: &Barrier,
) -> Result<bool, Error> {
    let from = Rank::new(0);
    let mut request = window.expect(0..1, TAG)?.from(from)?;
    for value in 0..CALLS {
        request.start()?;
        request.wait()?;
        window.put_notify(from, 0, &[value], TAG)?;
        meet.wait();
        meet.wait();
    }
    for _ in 0..CALLS {
        request.start()?;
        request.wait()?;
        world.barrier()?;
    }
    window.put_notify(from, 0, &[0], TAG)?;
    world.barrier()?;
    for value in 0..CALLS {
        meet.wait();
        window.put_notify(from, 0, &[value], TAG)?;
        meet.wait();
    }
    let only = [from];
    let origins = world.group(&only)?;
    let mut well = true;
    for _ in 0..CALLS {
        let epoch = count_post(window, &origins);
        world.barrier()?;
        world.barrier()?;
        well &= epoch.is_some_and(count_wait);
    }
    world.barrier()?;
    Ok(well)
}
