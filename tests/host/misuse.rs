//! Misuse and overflow one call deeper than a plain wrong argument, which cases have (`…misuse`):
//! sums and products that pass 32 or 64 bits, stores that an assertion does not allow, and groups
//! of a larger world.

use std::cell::Cell;

use flagpost::{
    Config as WorldConfig, Counter, Displacement, DynamicOptions, Error, Group, MatchVector,
    MatchingList, Rank, Rma as _, Session, Signal, Tag, Validation, Window, World,
    epoch::{Assert, Strategy},
    rma::{Gather, Layout, Operation, Scatter},
};
use flagpost_mapped::Mapped;
use flagpost_sim::{Config, Sim, SimCore};

type Memory = Mapped<SimCore>;

/// Runs `program` on `cores` ranks, under a few schedules.
fn runs(cores: u16, program: impl Fn(&World<'_, Memory>) -> Result<(), Error>) {
    for seed in 0..4 {
        let chip = Config {
            cores,
            memory_size: 32 << 10,
            seed,
            ..Config::default()
        };
        let report = Sim::new(chip).run(|core| {
            let mut arena = vec![0; 2048 + 64 * usize::from(cores)];
            let link = Mapped::start(core, Session::FIRST)?;
            program(&World::start(link, &mut arena, WorldConfig::default())?)
        });
        report.assert_done();
    }
}

/// Whether a call was refused because it ends behind the window.
fn is_outside<T, E: Into<Error>>(call: Result<T, E>) -> bool {
    matches!(call.err().map(Into::into), Some(Error::OutOfRange { .. }))
}

/// Places whose byte, or whose end, passes 32 or 64 bits; as elements of 8 bytes.
const FAR: [usize; 7] = [
    4,
    1 << 29,
    (1 << 29) + 1,
    1 << 32,
    1 << 61,
    (1 << 61) + 1,
    usize::MAX,
];

/// No place wraps round to one that there is.
#[test]
fn places_do_not_wrap_round() {
    runs(2, |world| {
        let window = world.allocate::<u64>(4)?;
        let next = world.rank().next(world.size());
        let lock = window.lock_all()?;
        let (mut into, sum) = ([0], Operation::SUM);
        for at in FAR {
            assert!(is_outside(lock.put(next, at, &[1])), "put {at}");
            assert!(is_outside(lock.get(next, at, &mut into)), "get {at}");
            assert!(is_outside(lock.to(next, at).put(&[1])), "rput {at}");
            assert!(is_outside(lock.accumulate(next, at, &[1], sum)), "{at}");
            assert!(is_outside(lock.fetch_and_op(next, at, 1, sum)), "{at}");
            assert!(is_outside(lock.compare_and_swap(next, at, 0, 1)), "{at}");
            assert!(
                is_outside(window.put_notify(next, at, &[1], Tag(1))),
                "{at}"
            );
            assert!(is_outside(window.get_notify(next, at, &mut into, Tag(1))));
            assert!(is_outside(window.peer(next)?.get(at)), "peer {at}");
            assert!(is_outside(window.peer(next)?.set(at, 1)), "peer {at}");
            assert!(is_outside(window.local().get(at)), "local {at}");
            assert!(is_outside(window.local().set(at, 1)), "local {at}");
            assert!(
                is_outside(window.expect(at..at.saturating_add(1), Tag(1))) || at == usize::MAX
            );
            // From a place that there is, further than there is.
            let strided = |stride| Layout::Vector {
                blocks: 2,
                block_len: 1,
                stride,
            };
            let put = lock
                .to(next, 1)
                .layout(strided(at))
                .put(Gather::from(&[1, 2][..]))
                .and_then(flagpost::rma::Request::wait);
            assert!(is_outside(put), "stride {at}");
            let mut two = [0; 2];
            let got = lock
                .to(next, 1)
                .layout(strided(at))
                .get(Scatter::from(&mut two[..]))
                .and_then(flagpost::rma::Request::wait);
            assert!(is_outside(got), "stride {at}");
        }
        assert!(is_outside(lock.put(next, 3, &[1, 2])), "the end alone");
        assert!(is_outside(window.put_notify(next, 3, &[1, 2], Tag(1))));
        lock.unlock()?;
        world.barrier()?;
        let peer = window.peer(next)?;
        for at in 0..4 {
            assert_eq!(peer.get(at)?, 0, "nothing was stored");
        }
        assert_eq!(window.discard_notifications()?, 0, "nobody was told");
        world.barrier()
    });
}

/// A displacement stays within its region's name, however far it is moved.
#[test]
fn displacements_do_not_run_over() {
    for validation in [Validation::Counter, Validation::Invalidation] {
        runs(2, |world| {
            let options = DynamicOptions {
                validation,
                ..DynamicOptions::default()
            };
            let window = world.dynamic(options)?;
            let (first, second) = (world.reserve(64)?, world.reserve(64)?);
            first.write(0, &[1_u32; 16])?;
            second.write(0, &[2_u32; 16])?;
            let (at, other) = (window.attach(&first)?, window.attach(&second)?);
            let far = [
                at.plus(u32::MAX),
                at.plus(u32::MAX).plus(1),
                at.plus(1 << 31).plus(1 << 31),
                at.plus(u32::MAX).plus(u32::MAX),
                at.plus(64),
                at.plus(61),
            ];
            let mut word = [0_u32];
            for far in far {
                assert_eq!(far.get() >> 32, at.get() >> 32, "the same region");
                assert!(far.get() >= at.get(), "not back to its start");
                assert!(is_outside(window.read(far, &mut word)), "{far:?}");
                assert!(is_outside(window.write(far, &[9_u32])), "{far:?}");
            }
            // The next rank has attached the same.
            let next = world.rank().next(world.size());
            world.barrier()?;
            let lock = window.window().lock_shared(next)?;
            for far in far {
                let place = window.at::<u32, _>(&lock, far);
                assert!(is_outside(place.put(next, 0, &[9])), "{far:?}");
                assert!(is_outside(place.get(next, 0, &mut word)), "{far:?}");
            }
            let place = window.at::<u32, _>(&lock, at.plus(60));
            assert!(is_outside(place.put(next, usize::MAX, &[9])));
            assert!(is_outside(place.put(next, (1 << 30) - 15, &[9])));
            lock.unlock()?;
            world.barrier()?;
            for (at, value) in [(at, 1), (other, 2)] {
                let mut all = [0_u32; 16];
                window.read(at, &mut all)?;
                assert_eq!(all, [value; 16], "nothing was stored");
            }
            world.barrier()
        });
    }
    // By itself: the low half stays at its end.
    let named = Displacement::new(7 << 32 | 5);
    assert_eq!(named.plus(u32::MAX).get(), 7 << 32 | u64::from(u32::MAX));
    assert_eq!(named.plus(u32::MAX - 5).plus(1).get() >> 32, 7);
    assert_eq!(named.plus(3).get(), 7 << 32 | 8);
}

/// Between two fences own stores are refused wherever peers may put: whatever else is said.
#[test]
fn own_stores_follow_the_assertions() {
    runs(2, |world| {
        for bits in 0..16 {
            let assert = Assert::from_bits_truncate(bits);
            let window = world.allocate::<u32>(2)?;
            let epoch = window.fence(assert)?;
            let nobody_puts = assert.intersects(Assert::NO_PUT | Assert::NO_SUCCEED);
            let stored = window.local().set(0, 7);
            let refused = if nobody_puts {
                Ok(())
            } else {
                Err(Error::Exposed)
            };
            assert_eq!(stored, refused, "{assert:?}");
            // The next fence says the opposite of it.
            let epoch = epoch.fence(if nobody_puts {
                Assert::empty()
            } else {
                Assert::NO_PUT
            })?;
            let stored = window.local().set(0, 8);
            let refused = if nobody_puts {
                Err(Error::Exposed)
            } else {
                Ok(())
            };
            assert_eq!(stored, refused, "after {assert:?}");
            epoch.end()?;
            assert_eq!(window.local().set(0, 9), Ok(()));
            window.free()?;
        }
        Ok(())
    });
}

/// Sums are modulo 2^32, and no neighbour's.
#[test]
fn counters_and_events_do_not_run_over() {
    runs(2, |world| {
        let next = world.rank().next(world.size());
        let mut window = world.allocate::<u32>(1)?;
        window.set_num_notify(3)?;
        let events = world.events(3)?;
        let counted = |expected| {
            world.barrier()?;
            for (index, value) in (0..).zip([0, expected, 0]) {
                assert_eq!(window.notify_value(Counter(index)), Ok(value));
            }
            world.barrier()
        };
        window.set_notify_value(Counter(1), u32::MAX)?;
        world.barrier()?;
        window.notify(next, Counter(1))?;
        counted(0)?;
        window.notify(next, Signal(1).add(u32::MAX))?;
        window.notify(next, Signal(1).add(3))?;
        counted(2)?;
        // Events begin 4 below the end of their numbers.
        for _ in 0..9 {
            events.post(next, 1)?;
        }
        world.barrier()?;
        assert_eq!(
            [0, 1, 2].map(|index| events.query(index)),
            [Ok(0), Ok(9), Ok(0)]
        );
        events.wait(1, 9)?;
        assert_eq!(events.query(1)?, 0);
        world.barrier()
    });
}

/// A group that a world of four has made is refused by a world of two, by its first rank that this
/// one has not, and one of this world is not.
fn refuses_group<'w, S: Strategy<'w, Memory>>(
    window: &Window<'w, u32, Memory, S>,
    larger: &Group<'static>,
) -> Result<(), Error> {
    let (me, size) = (window.world().rank(), window.world().size());
    if let Some(&rank) = larger.ranks().iter().find(|rank| rank.get() >= size) {
        let refused = Some(Error::NoSuchRank { rank, size });
        assert_eq!(window.start(larger).err(), refused);
        assert_eq!(window.post(larger).err(), refused);
        assert_eq!(window.post_range(0..1, larger).err(), refused);
    } else {
        let exposure = window.post(larger)?;
        window.start(larger)?.complete()?;
        exposure.wait()?;
    }
    let exposure = window.post([me])?;
    window.start([me])?.complete()?;
    exposure.wait()
}

#[test]
fn groups_of_a_larger_world_are_refused() {
    const fn ranks(first: u16, second: u16) -> [Rank; 2] {
        [Rank::new(first), Rank::new(second)]
    }
    static GROUPS: [[Rank; 2]; 3] = [ranks(1, 3), ranks(2, 0), ranks(1, 0)];
    for ranks in &GROUPS {
        let kept = Cell::new(None);
        runs(4, |world| {
            world.group(ranks).map(|group| kept.set(Some(group)))
        });
        let larger = kept.into_inner().expect("a group");
        runs(2, |world| {
            refuses_group(&world.allocate::<u32>(1)?, &larger)?;
            let vector = world.allocate_with::<u32, MatchVector<'_>>(1, ())?;
            refuses_group(&vector, &larger)?;
            let list = world.allocate_with::<u32, MatchingList<'_>>(1, 2)?;
            refuses_group(&list, &larger)
        });
    }
}
