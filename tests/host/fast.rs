//! What short ways must decline, although a part of it is as usual: on a machine that keeps its
//! caches in step. What is counted are steps of the simulator.

use std::cell::Cell;

use flagpost::{Config as WorldConfig, Error, Rank, Session, Tag, TagFilter, World};
use flagpost_explore::coherent::Coherent;
use flagpost_hal::{Clock as _, Relax as _};
use flagpost_link::{Access as _, Fast as _, Link as _, Waiting as _};

use flagpost_sim::{Config, Sim, SimCore};

type Link = flagpost_coherent::Coherent<Coherent>;

fn chip(seed: u64) -> Config {
    Config {
        cores: 2,
        memory_size: 16 << 10,
        seed,
        ..Config::default()
    }
}

/// Runs `program` on two cores, under several schedules. Both know how far it has come, and `until`
/// waits for that: without a call that takes what has arrived.
fn in_stages(program: impl Fn(&World<'_, Link>, &Cell<u32>, &dyn Fn(u32)) -> Result<(), Error>) {
    for seed in 0..20 {
        let stage = Cell::new(0);
        let report = Sim::new(chip(seed)).run(|core: SimCore| {
            let mut arena = [0; 512];
            let link = flagpost_coherent::Coherent::start(Coherent::new(core), Session::FIRST)?;
            let world = World::start(link, &mut arena, WorldConfig::default())?;
            let until = |reached: u32| {
                while stage.get() < reached {
                    world.link().machine().cycles();
                }
            };
            program(&world, &stage, &until)
        });
        report.assert_done();
    }
}

/// Fails if a request takes the next notification that arrives while an older one is in the queue.
#[test]
fn what_is_queued_is_taken_first() {
    in_stages(|world, stage, until| {
        let [sender, taker] = [0, 1].map(Rank::new);
        let window = world.allocate::<u64>(1)?;
        let mut any = window.expect(0..1, TagFilter::Any)?.from(sender)?;
        if world.rank() == sender {
            window.put_notify(taker, 0, &[5], Tag(5))?;
            until(1);
            // What a request for any tag takes by a short way.
            window.put_notify(taker, 0, &[0], Tag(0))?;
            stage.set(2);
            return Ok(());
        }
        while window.probe(sender, Tag(5))?.is_none() {}
        stage.set(1);
        until(2);
        for tag in [5, 0] {
            any.start()?;
            assert_eq!(any.wait()?.tag, Tag(tag));
        }
        Ok(())
    });
}

/// Fails if a request that is not the first one ends as if it were.
#[test]
fn a_later_request_opens_its_own_lines() {
    in_stages(|world, _, _| {
        let [sender, taker] = [0, 1].map(Rank::new);
        let window = world.allocate::<u64>(64)?;
        let mut first = window.expect(0..1, Tag(1))?.from(sender)?;
        let mut second = window.expect(32..33, Tag(2))?.from(sender)?;
        if world.rank() == taker {
            first.start()?;
            second.start()?;
        }
        world.barrier()?;
        if world.rank() == sender {
            window.put_notify(taker, 32, &[7], Tag(2))?;
            world.barrier()?;
            return window.put_notify(taker, 0, &[8], Tag(1));
        }
        second.wait()?;
        let local = window.local();
        assert_eq!(local.set(0, 1), Err(Error::Exposed));
        assert_eq!(local.set(32, 1), Ok(()));
        world.barrier()?;
        first.wait()?;
        assert_eq!(local.set(0, 1), Ok(()));
        Ok(())
    });
}

/// Fails if a request that is started starts again, where the first place for lines is free.
#[test]
fn a_started_request_does_not_start_again() {
    in_stages(|world, _, _| {
        let [sender, taker] = [0, 1].map(Rank::new);
        let window = world.allocate::<u64>(64)?;
        if world.rank() == sender {
            window.put_notify(taker, 0, &[7], Tag(1))?;
            return window.put_notify(taker, 32, &[8], Tag(2));
        }
        let mut first = window.expect(0..1, Tag(1))?.from(sender)?;
        let mut second = window.expect(32..33, Tag(2))?.from(sender)?;
        first.start()?;
        second.start()?;
        first.wait()?;
        assert_eq!(second.start(), Err(Error::RequestActive));
        second.wait()?;
        assert_eq!(window.local().set(32, 1), Ok(()));
        Ok(())
    });
}

/// Fails if a rank that shares its processor looks again at what has not come.
#[test]
fn a_crowded_rank_looks_once() {
    const LOOKS: u32 = 50;
    let steps = |crowded| {
        let steps = Cell::new(0);
        let report = Sim::new(chip(0)).run(|core: SimCore| {
            let mut machine = Coherent::new(core);
            machine.crowded = crowded;
            let link: Link = Link::start(machine, Session::FIRST)?;
            for rank in [link.rank(), Rank::new(0), Rank::new(1)] {
                while link.connect(rank).is_err() {
                    link.relax();
                }
            }
            if link.rank() != Rank::new(0) {
                return Ok::<(), Error>(());
            }
            // Until the other one has ended.
            (0..100).for_each(|_| link.machine().relax(&[]));
            let before = link.machine().cycles();
            assert!(!link.fast_take(1, LOOKS));
            steps.set(link.machine().cycles() - before - 1);
            Ok(())
        });
        report.assert_done();
        steps.get()
    };
    // At the entry between both ranks, and at the ring.
    assert_eq!([true, false].map(steps), [2, 2 * u64::from(LOOKS)]);
}
