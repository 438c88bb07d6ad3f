//! Links with small tables: what they take, that programs run with them, and what they refuse.

use flagpost::{Config as WorldConfig, Error, Link, Rma as _, Session, Tag, World};
use flagpost_explore::coherent::Coherent;
use flagpost_link::{Op, Refusal, Wants};
use flagpost_mapped::{LineMail, LoadStore, Mapped, Native, Ring, SmallMail, UnderLock};
use flagpost_sim::{Config, Sim, SimCore};

/// As the guide names it, for two cores.
type TwoRanks<A = UnderLock> = LoadStore<LineMail<SimCore, A, 2>, 16>;

/// Bytes that a core's state may take, the world included.
const STATE: usize = 7 << 10;

/// To the right: a notified put, an epoch and data that are longer than an entry.
fn ring<L: Link>(world: &World<'_, L>) -> Result<(), Error> {
    let (me, size) = (world.rank(), world.size());
    let (left, right) = (me.prev(size), me.next(size));
    let window = world.allocate::<u64>(64)?;
    let mut arrived = window.expect(0..16, Tag(7))?;
    for len in [1, 16] {
        arrived.start()?;
        world.barrier()?;
        window.put_notify(right, 0, &[42 + u64::from(me.get()); 16][..len], Tag(7))?;
        arrived.wait()?;
        assert_eq!(window.local().get(len - 1)?, 42 + u64::from(left.get()));
    }
    let (origins, targets) = ([left], [right]);
    let exposure = window.post(&world.group(&origins)?)?;
    let access = window.start(&world.group(&targets)?)?;
    access.put(right, 20, &[u64::from(me.get())])?;
    access.complete()?;
    exposure.wait()?;
    assert_eq!(window.local().get(20)?, u64::from(left.get()));
    Ok(())
}

/// Runs the ring on chips of so many cores; the rings must be `of_pairs` or one for all.
fn runs<L: Link>(cores: u16, of_pairs: bool, start: impl Fn(SimCore) -> Result<L, Refusal> + Copy) {
    for seed in 0..20 {
        for buffer_size in [0, 8 << 10] {
            let chip = Config {
                cores,
                seed,
                buffer_size,
                ..Config::default()
            };
            let report = Sim::new(chip).run(|core| {
                let mut words = [0; 256];
                World::run(start(core)?, &mut words, WorldConfig::default(), |world| {
                    ring(world)?;
                    let link = world.link();
                    let (me, (key, _)) = (link.rank(), link.scratch());
                    link.put_immediate(me, (key, 0), &[], 0, false, &Op::new())?;
                    let told = link.progress(Wants::Any);
                    assert_eq!(told.map(|told| told.sender), Some(of_pairs.then_some(me)));
                    Ok::<(), Error>(())
                })
            });
            report.assert_done();
        }
    }
}

#[test]
fn two_cores_run_with_small_tables() {
    assert!(size_of::<World<'_, TwoRanks>>() <= STATE);
    assert!(size_of::<World<'_, Mapped<SimCore>>>() > STATE);
    runs(2, true, |core| {
        TwoRanks::<UnderLock>::start(core, Session::FIRST)
    });
    runs(2, true, |core| {
        TwoRanks::<Native>::start(core, Session::FIRST)
    });
}

/// The smallest link has one ring for all, of words. It takes as many ranks as there are.
#[test]
fn any_number_of_cores_runs_over_the_smallest_link() {
    type Smallest = flagpost_mapped::Small<SimCore>;
    assert!(size_of::<World<'_, Smallest>>() <= STATE / 3);
    for cores in [1, 2, 3, 8] {
        runs(cores, false, |core| Smallest::start(core, Session::FIRST));
        runs(cores, false, |core| {
            LoadStore::<SmallMail<_, Native>, 16>::start(core, Session::FIRST)
        });
    }
}

/// As on a microcontroller without caches and without atomic operations.
#[test]
fn coherent_cores_run_over_the_smallest_link() {
    for cores in [1, 2, 3] {
        runs(cores, false, |core| {
            flagpost_mapped::Small::start(Coherent::new(core), Session::FIRST)
        });
    }
}

#[test]
fn more_cores_than_are_remembered_share_a_ring() {
    for cores in [3, 5, 8] {
        runs(cores, false, |core| {
            TwoRanks::<UnderLock>::start(core, Session::FIRST)
        });
        runs(cores, false, |core| {
            TwoRanks::<Native>::start(core, Session::FIRST)
        });
    }
    // Nothing is left to share the only place.
    runs(2, false, |core| {
        LoadStore::<LineMail<_, UnderLock, 1>, 16>::start(core, Session::FIRST)
    });
}

#[test]
fn a_ring_per_pair_of_more_cores_is_refused_and_nothing_has_changed() {
    let start =
        |core, ring| TwoRanks::<UnderLock>::start_with_ring(core, Session::FIRST, Some(ring));
    let report = Sim::new(Config {
        cores: 3,
        ..Config::default()
    })
    .run(|core: SimCore| {
        for entries in [8, 16] {
            for ring in [Ring::Pairs { entries }, Ring::Bells { entries }] {
                let refused = start(core.clone(), ring).err();
                assert_eq!(refused, Some(Refusal::BadRing { entries }));
            }
        }
        let link = start(core, Ring::Shared { entries: 8 })?;
        World::run(
            link,
            &mut [0; 256],
            WorldConfig::default(),
            ring::<TwoRanks>,
        )
    });
    report.assert_done();
}

#[test]
fn more_pieces_than_are_remembered_are_refused() {
    const PIECES: usize = 8;
    let report = Sim::new(Config {
        cores: 2,
        ..Config::default()
    })
    .run(|core: SimCore| {
        let link = LoadStore::<LineMail<_, UnderLock, 2>, PIECES>::start(core, Session::FIRST)?;
        World::run(link, &mut [0; 256], WorldConfig::default(), |world| {
            let first = world.allocate::<u64>(1)?;
            let mut made = vec![world.allocate::<u64>(1)?];
            let refused = loop {
                match world.allocate::<u64>(1) {
                    Ok(window) => made.push(window),
                    Err(why) => break why,
                }
            };
            assert_eq!(refused, Error::TooManyPieces { max: PIECES as u32 });
            // What there is goes on; and room that is given back is there.
            for window in made {
                window.free()?;
            }
            first.local().set(0, 7)?;
            assert_eq!(first.local().get(0)?, 7);
            ring(world)
        })
    });
    report.assert_done();
}
