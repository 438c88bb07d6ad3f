//! A program that goes on after a loss, and after one more.

use flagpost::{
    Budget, Config, Error, Link, Rank, Rma as _, Room, Spare, Tag, World, rma::Operation,
};

const ROOM: Room = Room {
    bytes: 512,
    windows: 1,
};

/// Does the work in this world, or in a smaller one after each of up to `SPARES` losses. `lives` is
/// asked at many places of it: false ends this rank there. How many ranks have done it; none if
/// this one has ended.
///
/// # Errors
/// What went wrong.
pub(crate) fn goes_on<L: Link, const SPARES: usize>(
    world: &World<'_, L>,
    lives: &dyn Fn() -> bool,
) -> Result<Option<u16>, Error> {
    let spares = [(); SPARES].map(|()| world.spare(ROOM));
    let mut done = work(world, lives);
    for spare in spares {
        let Err(Error::PeerLost(_)) = done else { break };
        done = smaller(world, &spare?, lives);
    }
    done
}

fn smaller<L: Link>(
    world: &World<'_, L>,
    spare: &Spare<'_, L>,
    lives: &dyn Fn() -> bool,
) -> Result<Option<u16>, Error> {
    let mut words = [0; 256];
    // While they agree, too.
    for _ in 0..4 {
        if !lives() {
            return Ok(None);
        }
        match world.within(Budget::ZERO, || spare.survivors().map(drop)) {
            Err(Error::Timeout(_)) => world.link().relax(),
            agreed => agreed?,
        }
    }
    let part = spare.survivors()?;
    match (part.link(), part.link()) {
        (Some(link), None) => World::run(link, &mut words, Config::default(), |mine| {
            work(mine, lives)
        }),
        _ => panic!("a link is given once"),
    }
}

/// Notified puts, accumulates under a lock, an event, sums: each round has its own.
fn work<L: Link>(world: &World<'_, L>, lives: &dyn Fn() -> bool) -> Result<Option<u16>, Error> {
    const FIRST: Rank = Rank::new(0);
    let (me, size) = (world.rank(), world.size());
    let window = world.allocate::<u32>(4)?;
    let events = world.events(1)?;
    for round in 1..=3 {
        if !lives() {
            return Ok(None);
        }
        let mut request = window.expect(0..1, Tag(round))?.from(me.prev(size))?;
        request.start()?;
        world.barrier()?;
        window.put_notify(me.next(size), 0, &[round], Tag(round))?;
        if !lives() {
            return Ok(None);
        }
        request.wait()?;
        assert_eq!(window.local().get(0)?, round);
        events.post(me.next(size), 0)?;
        events.wait(0, 1)?;
        let lock = window.lock_exclusive(FIRST)?;
        lock.accumulate(FIRST, 1, &[1], Operation::SUM)?;
        lock.unlock()?;
        let mut sum = [1];
        world.allreduce(&mut sum, |a: u32, b| a + b)?;
        assert_eq!(sum, [u32::from(size)]);
    }
    let lock = window.lock_shared(FIRST)?;
    let mut sum = [0];
    lock.get(FIRST, 1, &mut sum)?;
    lock.unlock()?;
    assert_eq!(sum, [3 * u32::from(size)]);
    events.free()?;
    window.free()?;
    Ok(Some(size))
}
