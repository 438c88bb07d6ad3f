//! Misuse and overflow one call deeper than a plain wrong argument: sums and products that pass 32
//! or 64 bits, stores that an assertion does not allow, and one more than each table holds.

use flagpost::{
    Config as WorldConfig, Counter, Displacement, DynamicOptions, Error, Rank, Rma as _, Session,
    Signal, Tag, Validation, World,
    epoch::Assert,
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

/// Cells are 8 bytes apart, and numbers of 32 bits: no index wraps round, no sum runs over.
#[test]
fn counters_and_events_do_not_run_over() {
    runs(2, |world| {
        let next = world.rank().next(world.size());
        let mut window = world.allocate::<u32>(1)?;
        for count in [1 << 29, (1 << 29) + 1, u32::MAX] {
            let full = |error| {
                matches!(
                    error,
                    Some(Error::MemoryFull { .. } | Error::ArenaFull { .. })
                )
            };
            assert!(full(window.set_num_notify(count).err()), "{count}");
            let events = world.events(count).err();
            assert!(full(events), "{count}");
        }
        window.set_num_notify(3)?;
        let events = world.events(3)?;
        world.barrier()?;
        for index in [3, 1 << 29, (1 << 29) + 1, u32::MAX] {
            let refused = |rank| Error::NoSuchCounter {
                rank,
                index,
                count: 3,
            };
            let (there, here) = (Some(refused(next)), Some(refused(world.rank())));
            let told = window.notify(next, Counter(index)).err();
            assert_eq!(told, there);
            let told = window.notify(next, Signal(index).add(1)).err();
            assert_eq!(told, there);
            assert_eq!(events.post(next, index).err(), there);
            assert_eq!(window.notify_value(Counter(index)).err(), here);
            assert_eq!(window.set_notify_value(Counter(index), 1).err(), here);
            assert_eq!(window.reset_notify_value(Counter(index)).err(), here);
            assert_eq!(window.expect_count(0..0, Counter(index), 1).err(), here);
            assert_eq!(events.query(index).err(), here);
            assert_eq!(events.wait(index, 1).err(), here);
        }
        // Sums are modulo 2^32, and no neighbour's.
        window.set_notify_value(Counter(1), u32::MAX)?;
        world.barrier()?;
        window.notify(next, Counter(1))?;
        world.barrier()?;
        let values = [0, 1, 2].map(|index| window.notify_value(Counter(index)));
        assert_eq!(values, [Ok(0); 3]);
        world.barrier()?;
        window.notify(next, Signal(1).add(u32::MAX))?;
        window.notify(next, Signal(1).add(3))?;
        world.barrier()?;
        let values = [0, 1, 2].map(|index| window.notify_value(Counter(index)));
        assert_eq!(values, [Ok(0), Ok(2), Ok(0)]);
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

/// One more than a table holds is refused, and what the table holds works on.
#[test]
fn one_more_than_a_table_holds_is_refused() {
    const LOCKS: u16 = 8;
    runs(LOCKS + 2, |world| {
        let window = world.allocate::<u32>(16)?;
        if world.rank() == Rank::new(0) {
            let targets = (1..=LOCKS).map(Rank::new);
            let locks = targets.map(|target| window.lock_shared(target));
            let mut locks = locks.collect::<Result<Vec<_>, _>>()?;
            let ninth = Rank::new(LOCKS + 1);
            let full = Error::TooManyLocks { max: 8 };
            for _ in 0..2 {
                let ninth = window.lock_exclusive(ninth).map(drop);
                assert_eq!(ninth.err(), Some(full));
            }
            locks.swap_remove(3).unlock()?;
            locks.push(window.lock_exclusive(ninth)?);
            for lock in locks {
                lock.unlock()?;
            }
        }
        world.barrier()
    });
    runs(2, |world| {
        const MAX: usize = 32;
        let window = world.allocate::<u64>(64)?;
        let next = world.rank().next(world.size());
        let mut requests = Vec::new();
        for at in 0..=MAX {
            requests.push(window.expect(at..at + 1, Tag(at as u32))?.from(next)?);
        }
        let (last, others) = requests.split_last_mut().expect("one more");
        for request in &mut *others {
            request.start()?;
        }
        let full = Err(Error::TooManyRequests { max: 32 });
        assert_eq!(last.start(), full);
        world.barrier()?;
        window.put_notify(next, 3, &[7], Tag(3))?;
        others[3].wait()?;
        assert_eq!(last.start(), Ok(()), "there is room again");
        assert_eq!(others[3].start(), full);
        for request in others.iter_mut().filter(|request| request.is_started()) {
            request.cancel()?;
        }
        last.cancel()?;
        world.barrier()
    });
    // Tags, elements of collectives.
    runs(3, |world| {
        let window = world.allocate::<u32>(1)?;
        let (next, max) = (world.rank().next(world.size()), world.limits().tag);
        let refused = Some(Error::TagTooLarge { max });
        for tag in [max + 1, u32::MAX] {
            assert_eq!(window.notify(next, Tag(tag)).err(), refused);
            assert_eq!(window.expect(0..0, Tag(tag)).err(), refused);
            assert_eq!(window.probe(next, Tag(tag)).err(), refused);
        }
        let mut last = window.expect(0..0, Tag(max))?.from(world.rank().prev(3))?;
        last.start()?;
        window.notify(next, Tag(max))?;
        assert_eq!(last.wait()?.tag, Tag(max));
        let refused = Err(Error::ElementTooLarge { max: 32 });
        assert_eq!(world.allgather_with([0_u8; 64], |_, _| ()), refused);
        let mut sum = [[1_u64; 4]];
        world.allreduce(&mut sum, |a, b| [0, 1, 2, 3].map(|at| a[at] + b[at]))?;
        assert_eq!(sum, [[3; 4]]);
        assert_eq!(world.allreduce(&mut [[0_u8; 64]], |a, _| a), refused);
        world.barrier()
    });
}

/// One rank more than a power of two: each collective has a round more, and rings are of another
/// kind from 65 ranks on.
#[test]
fn one_rank_more_than_a_power_of_two() {
    for cores in [3, 5, 9, 17, 33, 65] {
        let chip = Config {
            cores,
            memory_size: 64 << 10,
            ..Config::default()
        };
        let report = Sim::new(chip).run(|core| {
            let mut arena = vec![0; 1024 + 64 * usize::from(cores)];
            let link = Mapped::start(core, Session::FIRST)?;
            let world = World::start(link, &mut arena, WorldConfig::default())?;
            let (me, size) = (world.rank(), world.size());
            let window = world.allocate::<u32>(1)?;
            let mut arrived = window.expect(0..1, Tag(1))?.from(me.prev(size))?;
            arrived.start()?;
            window.put_notify(me.next(size), 0, &[me.get().into()], Tag(1))?;
            arrived.wait()?;
            assert_eq!(window.local().get(0)?, u32::from(me.prev(size).get()));
            let (all, last) = (u32::from(size), Rank::new(size - 1));
            let mut sum = [u32::from(me.get()), 1];
            world.allreduce(&mut sum, |a, b| a + b)?;
            assert_eq!(sum, [all * (all - 1) / 2, all]);
            let mut told = [u32::from(me.get()); 2];
            world.broadcast(last, &mut told)?;
            assert_eq!(told, [all - 1; 2]);
            let mut order = 0;
            world.allgather_with(u32::from(me.get()), |rank, theirs| {
                assert_eq!((u32::from(rank.get()), theirs), (order, order));
                order += 1;
            })?;
            assert_eq!(order, all);
            Ok::<(), Error>(())
        });
        report.assert_done();
    }
}
