//! Many: more regions than are usual, targets with equal numbers, kept descriptors of several; one
//! beyond what tables hold.

use flagpost::{
    Config as WorldConfig, Displacement, DynamicOptions, Error, Link as _, Memory, Rank, Rma as _,
    Room, Session, Tag, Validation, World,
};
use flagpost_mapped::Mapped;
use flagpost_sim::{Config, Sim, SimCore};

type Link = Mapped<SimCore>;

fn runs(ranks: u16, program: impl Fn(&World<'_, Link>) -> Result<(), Error>) {
    let chip = Config {
        cores: ranks,
        memory_size: 64 << 10,
        ..Config::default()
    };
    let report = Sim::new(chip).run(|core| -> Result<(), Error> {
        let mut arena = [0; 4096];
        let world = World::start(
            Mapped::start(core, Session::FIRST)?,
            &mut arena,
            WorldConfig::default(),
        )?;
        program(&world)
    });
    report.assert_done();
}

/// What region `region` of `owner` holds.
fn word(owner: Rank, region: usize, round: u32) -> u32 {
    round << 16 | u32::from(owner.get()) << 8 | region as u32
}

/// Ranks attach `regions` pieces of memory each, in the same order: regions of all ranks have equal
/// numbers. Each reads those of all others in turn, `kept` of which it remembers.
fn reads_many(regions: u16, kept: u16, validation: Validation) {
    const RANKS: u16 = 3;
    runs(RANKS, |world| {
        let me = world.rank();
        let options = DynamicOptions {
            regions,
            kept,
            validation,
        };
        let window = world.dynamic(options)?;
        // Regions of equal numbers lie elsewhere at each rank.
        let _apart = world.reserve(64 * (me.index() + 1))?;
        let memories: Result<Vec<Memory<'_, _>>, _> =
            (0..=regions).map(|_| world.reserve(4)).collect();
        let memories = memories?;
        let (last, memories) = memories.split_last().expect("one more than regions");
        let mut there = vec![vec![Displacement::new(0); memories.len()]; usize::from(RANKS)];
        for (region, memory) in memories.iter().enumerate() {
            memory.write(0, &[word(me, region, 0)])?;
            let here = window.attach(memory)?;
            world.allgather_with(here.get(), |rank, raw| {
                there[rank.index()][region] = Displacement::new(raw);
            })?;
        }
        let full = Error::TooManyAttached { max: regions };
        assert_eq!(window.attach(last).map(drop), Err(full));
        for round in 0..2 {
            let all = window.window().lock_all()?;
            for (owner, places) in (0..RANKS).map(Rank::new).zip(&there) {
                for (region, at) in places.iter().copied().enumerate() {
                    let mut found = [0_u32];
                    window.at(&all, at).get(owner, 0, &mut found)?;
                    assert_eq!(
                        found[0],
                        word(owner, region, round),
                        "rank {owner}, {region}"
                    );
                }
            }
            all.unlock()?;
            world.barrier()?;
            // The last region goes, and comes again with another name.
            let region = memories.len() - 1;
            window.detach(&memories[region])?;
            for (region, memory) in memories.iter().enumerate() {
                if region + 1 < memories.len() {
                    window.detach(memory)?;
                }
                memory.write(0, &[word(me, region, round + 1)])?;
            }
            let old = there[me.next(RANKS).index()][region];
            for (region, memory) in memories.iter().enumerate() {
                let here = window.attach(memory)?;
                world.allgather_with(here.get(), |rank, raw| {
                    there[rank.index()][region] = Displacement::new(raw);
                })?;
            }
            let all = window.window().lock_all()?;
            let mut found = [0_u32];
            let gone = window.at(&all, old).get(me.next(RANKS), 0, &mut found);
            assert_eq!(gone, Err(Error::NotAttached));
            all.unlock()?;
            world.barrier()?;
        }
        for memory in memories {
            window.detach(memory)?;
        }
        window.free()
    });
}

#[test]
fn many_regions_of_equal_numbers() {
    for validation in [Validation::Counter, Validation::Invalidation] {
        for (regions, kept) in [(16, 16), (17, 17), (33, 40), (65, 3), (17, 200)] {
            reads_many(regions, kept, validation);
        }
    }
}

/// As many regions as a dynamic window can have fit in the pieces that a rank's memory can have.
#[test]
fn as_many_regions_as_there_may_be() {
    reads_many(128, 8, Validation::Counter);
}

/// A rank with 26 neighbours, and more: each has its range of the window, all are started.
#[test]
fn started_requests_of_many_neighbours() {
    const MOST: usize = 32;
    runs(2, |world| {
        let window = world.allocate::<u32>(8 * (MOST + 1))?;
        let peer = world.rank().next(2);
        let range = |number: usize| 8 * number..8 * number + 8;
        let expect = |number: usize| window.expect(range(number), Tag(number as u32));
        for number in 0..MOST {
            for other in 0..MOST {
                window.local().set(8 * other, 0)?;
            }
            let mut requests = (0..MOST).map(expect).collect::<Result<Vec<_>, _>>()?;
            for request in &mut requests {
                request.start()?;
            }
            let mut more = window.expect(range(MOST), Tag(99))?;
            let max = MOST as u8;
            assert_eq!(more.start(), Err(Error::TooManyRequests { max }));
            world.barrier()?;
            // All but one arrive; what that one waits for stays closed, and nothing else.
            let late = (number + 5) % MOST;
            for other in (0..MOST).rev().filter(|other| *other != late) {
                window.put_notify(peer, 8 * other, &[7], Tag(other as u32))?;
            }
            for other in (0..MOST).filter(|other| *other != late) {
                requests[other].wait()?;
                assert_eq!(window.local().get(8 * other)?, 7);
                window.local().set(8 * other + 1, 1)?;
            }
            let closed = window.local().set(8 * late + 1, 1);
            assert_eq!(closed, Err(Error::Exposed));
            more.start()?;
            assert_eq!(window.local().set(8 * MOST, 1), Err(Error::Exposed));
            more.cancel()?;
            window.local().set(8 * MOST, 1)?;
            world.barrier()?;
            window.put_notify(peer, 8 * late, &[7], Tag(late as u32))?;
            requests[late].wait()?;
            window.local().set(8 * late + 1, 1)?;
            world.barrier()?;
        }
        Ok(())
    });
}

/// More ranks than a piece of the list of survivors has.
#[test]
fn three_hundred_ranks_agree_on_all() {
    const RANKS: u16 = 300;
    runs(RANKS, |world| {
        let room = Room {
            bytes: 0,
            windows: 0,
        };
        let spare = world.spare(room)?;
        let size = spare.survivors()?.link().map(|link| link.size());
        assert_eq!(size, Some(RANKS));
        Ok(())
    });
}
