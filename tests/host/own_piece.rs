//! The own piece beside others' accesses, and small print of locks and attachments. Seeded
//! schedules; what each test must notice is said with it.

use flagpost::{Config, Counter, DynamicOptions, Error, Rank, Rma as _, Session, Tag, World};
use flagpost_mapped::Mapped;
use flagpost_sim::{Config as Chip, SimCore, sweep};

const ZERO: Rank = Rank::new(0);
const ONE: Rank = Rank::new(1);

fn runs(
    cores: u16,
    seeds: u64,
    program: impl Fn(&World<'_, Mapped<SimCore>>) -> Result<(), Error> + Send + Sync,
) {
    let chip = Chip {
        cores,
        memory_size: 16 << 10,
        quiet_turns: 1 << 20,
        ..Chip::default()
    };
    let swept = sweep(0..seeds).case("own piece", chip, move |core: SimCore| {
        let mut arena = [0; 1024];
        let world = World::start(
            Mapped::start(core, Session::FIRST)?,
            &mut arena,
            Config::default(),
        )?;
        program(&world)?;
        world.barrier()
    });
    swept.run().assert_done();
}

/// Fails if a lock of all pieces does not refresh the own one at every rank.
#[test]
fn a_lock_of_all_is_one_of_the_own_piece() {
    runs(3, 500, |world| {
        let window = world.allocate::<u32>(1)?;
        // It may stay in the cache.
        assert_eq!(window.local().get(0)?, 0);
        world.barrier()?;
        let next = world.rank().next(world.size());
        let lock = window.lock_exclusive(next)?;
        lock.put(next, 0, &[9])?;
        lock.unlock()?;
        world.barrier()?;
        let lock = window.lock_all()?;
        assert_eq!(window.local().get(0)?, 9);
        lock.unlock()
    });
}

/// Fails if the end of an exposure drops lines of memory that was given back.
#[test]
fn detached_memory_is_left_alone() {
    runs(2, 100, |world| {
        let window = world.dynamic(DynamicOptions::default())?;
        let memory = world.reserve(32)?;
        window.attach(&memory)?;
        window.detach(&memory)?;
        let all = [ZERO, ONE];
        let group = world.group(&all)?;
        let exposure = window.window().post(&group)?;
        memory.write(0, &[5_u32])?;
        let access = window.window().start(&group)?;
        access.complete()?;
        exposure.wait()?;
        let mut seen = [0_u32];
        memory.read(0, &mut seen)?;
        assert_eq!(seen, [5]);
        window.free()
    });
}

/// Fails if memory that is detached in an open exposure is not refreshed to its last line.
#[test]
fn memory_that_is_detached_has_what_came_in_each_line() {
    runs(2, 100, |world| {
        let told = world.allocate::<u32>(1)?;
        let window = world.dynamic(DynamicOptions::default())?;
        let memory = world.reserve(256)?;
        memory.write(0, &[5_u32; 64])?;
        let there = window.attach(&memory)?; // the same on both
        let both = [ZERO, ONE];
        let group = world.group(&both)?;
        let exposure = window.window().post(&group)?;
        let access = window.window().start(&group)?;
        let hear = |from| {
            let mut heard = told.expect(0..0, Tag(1))?.from(from)?;
            heard.start()?;
            heard.wait()
        };
        if world.rank() == ZERO {
            hear(ONE)?;
            window.at(&access, there).put(ONE, 63, &[6_u32])?;
            told.notify(ONE, Tag(1))?;
        } else {
            let mut seen = [0_u32; 64];
            window.read(there, &mut seen)?; // into the cache
            told.notify(ZERO, Tag(1))?;
            hear(ZERO)?;
            window.detach(&memory)?;
            memory.read(0, &mut seen)?;
            assert_eq!(seen[63], 6);
        }
        world.barrier()?;
        access.complete()?;
        exposure.wait()
    });
}

/// Fails if the wait of a request for a counter, or its cancellation, refreshes nothing but the
/// first of its lines.
#[test]
fn count_requests_refresh_all_their_lines() {
    const FAR: usize = 100;
    runs(2, 100, |world| {
        let mut window = world.allocate::<u32>(FAR + 2)?;
        window.set_num_notify(1)?;
        for round in 1..=2 {
            if world.rank() == ZERO {
                world.barrier()?;
                let data = [round];
                let put = window.put_notify(ONE, FAR, &data, Counter(0));
                put?;
                world.barrier()?;
            } else {
                let mut request = window.expect_count(0..FAR + 2, Counter(0), round)?;
                assert_eq!(window.local().get(FAR)?, round - 1); // into the cache
                request.start()?;
                world.barrier()?;
                if round == 1 {
                    request.wait()?;
                    world.barrier()?;
                } else {
                    world.barrier()?;
                    request.cancel()?;
                    window.local().set(FAR + 1, 5)?;
                }
                assert_eq!(window.local().get(FAR)?, round);
            }
            world.barrier()?;
        }
        Ok(())
    });
}
