//! Programs that go on after a loss, and after one more: from the world, and from parts of it.

use flagpost::{
    Budget, Config, Error, Link, Rank, Rma as _, Room, Spare, Tag, World, rma::Operation,
};

const ROOM: Room = Room {
    bytes: 1024,
    windows: 3,
};

/// Of a part in there.
const INNER: Room = Room {
    bytes: 0,
    windows: 0,
};

const FIRST: Rank = Rank::new(0);

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
        let Err(Error::PeerLost(_) | Error::Revoked) = done else {
            break;
        };
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

/// Notified puts, accumulates under a lock, an event, sums: each round has its own, and a part
/// for every second rank.
fn work<L: Link>(world: &World<'_, L>, lives: &dyn Fn() -> bool) -> Result<Option<u16>, Error> {
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
        let part = world.split(Some(u32::from(me.get() % 2)), 0, INNER)?;
        let link = part.link().expect("each rank is in one");
        let mut words = [0; 16];
        World::run(link, &mut words, Config { unexpected: 1 }, |mine| {
            mine.barrier()?;
            mine.allreduce(&mut sum, |a: u32, b| a.max(b))
        })?;
        part.free()?;
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

/// The call that a rank waits in while others go on without a lost one.
#[derive(Copy, Clone, Debug)]
pub(crate) enum In {
    /// In a part's world.
    Barrier,
    Survivors,
    Test,
    Get,
    /// In a part of that.
    Inner,
}

impl In {
    pub(crate) const ALL: [Self; 5] = [
        Self::Barrier,
        Self::Survivors,
        Self::Test,
        Self::Get,
        Self::Inner,
    ];
}

/// Rank 0 of three ends. Rank 1 is told of that in the world, rank 2 in a part of both. They go on
/// together. How many they are; none for rank 0. The others call `knows`, which waits until they
/// know of the loss, or may know later.
///
/// # Errors
/// What went wrong.
pub(crate) fn goes_on_from_a_part<L: Link>(
    world: &World<'_, L>,
    waits: In,
    knows: &dyn Fn(),
) -> Result<Option<u16>, Error> {
    let [first, second, third] = [0, 1, 2].map(Rank::new);
    let mut words = [[0; 256]; 2];
    let [words, inner_words] = &mut words;
    let spare = world.spare(ROOM)?;
    let part = world.part(&[second, third], ROOM)?;
    let ready = world.events(1)?;
    if let Some(link) = part.link() {
        World::run(link, words, Config { unexpected: 1 }, |mine| {
            let inner_spare = mine.spare(INNER)?;
            let inner = mine.split(Some(0), 0, INNER)?;
            let window = mine.allocate::<u32>(1)?;
            let mut request = window.expect(0..0, Tag(1))?;
            request.start()?;
            let posted = ready.post(first, 0); // the answer may be lost
            assert!(
                matches!(posted, Ok(()) | Err(Error::PeerLost(_))),
                "{posted:?}"
            );
            knows();
            if world.rank() == second {
                assert_eq!(world.barrier(), Err(Error::PeerLost(first)));
                return Ok(());
            }
            let told = match waits {
                In::Barrier => mine.barrier(),
                In::Survivors => inner_spare.survivors().map(drop),
                In::Test => loop {
                    match request.test() {
                        Ok(None) => world.link().relax(),
                        other => break other.map(drop),
                    }
                },
                In::Get => window.lock_shared(FIRST).and_then(|lock| {
                    loop {
                        match lock.fetch_and_op(FIRST, 0, 0, Operation::SUM) {
                            Ok(_) => world.link().relax(),
                            Err(told) => break Err(told),
                        }
                    }
                }),
                In::Inner => {
                    let link = inner.link().expect("it is taken once");
                    World::run(link, inner_words, Config { unexpected: 1 }, |inner| {
                        inner.barrier()
                    })
                }
            };
            assert_eq!(told, Err(Error::Revoked), "{waits:?}");
            Ok::<(), Error>(())
        })?;
        let done = smaller(world, &spare, &|| true)?;
        // The larger world is over all the same.
        assert_eq!(world.barrier(), Err(Error::PeerLost(first)));
        return Ok(done);
    }
    ready.wait(0, 2)?;
    Ok(None)
}
