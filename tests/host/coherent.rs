//! What links do on a machine that keeps its caches in step only. Its cases are run by `presets`.

use flagpost::{Config as WorldConfig, Error, Rank, Session, Tag, World};
use flagpost_explore::coherent;
use flagpost_sim::{Bounds, Config, Method, Profile, Sim, SimCore, sweep};

use crate::groups;

/// Fails if an entry is stored in the line of an answer while an earlier one has not been taken:
/// each round one rank sends some, one after the other, and is answered by as many; each is taken
/// by itself, so that what it has put there tells which one it was.
#[test]
fn bursts_are_taken_in_order() {
    /// Of each round.
    const SENT: [u64; 6] = [1, 2, 3, 1, 1, 4];
    let program = |core: SimCore| {
        let mut arena = [0; 512];
        let link =
            flagpost_coherent::Coherent::start(coherent::Coherent::new(core), Session::FIRST)?;
        let world = World::start(link, &mut arena, WorldConfig::default())?;
        let window = world.allocate::<u64>(1)?;
        let me = world.rank();
        let peer = me.next(2);
        let mut told = window.expect(0..1, Tag(1))?.from(peer)?;
        let (mut sent, mut taken) = (0, 0);
        for (round, many) in (0_u16..).zip(SENT) {
            for sender in [round % 2, (round + 1) % 2].map(Rank::new) {
                for _ in 0..many {
                    if me == sender {
                        sent += 1;
                        let data = [sent];
                        let put = window.put_notify(peer, 0, &data, Tag(1));
                        put?;
                    } else {
                        taken += 1;
                        told.start()?;
                        told.wait()?;
                        assert_eq!(window.local().get(0)?, taken);
                    }
                }
            }
        }
        Ok::<_, Error>(())
    };
    let mut runs = sweep(0..groups::seeds(200));
    for profile in [Profile::Scc, Profile::Weak] {
        let config = Config {
            cores: 2,
            memory_size: 16 << 10,
            profile,
            ..Config::default()
        };
        runs = runs.case(format!("bursts/{profile}"), config, program);
    }
    runs.run().assert_done();
}

/// Fails if a flush does not tell the owner that it has placed the data. The owner has found these
/// claimed, and sleeps; nothing else comes to wake it.
#[test]
fn an_owner_that_sleeps_is_told_what_a_flush_has_placed() {
    let program = |core: SimCore| {
        let mut arena = [0; 512];
        let link = flagpost_coherent::Coherent::start(
            coherent::Coherent::new(core.clone()),
            Session::FIRST,
        )?;
        let world = World::start(link, &mut arena, WorldConfig::default())?;
        let window = world.allocate::<u32>(1)?;
        let [owner, producer] = [0, 1].map(Rank::new);
        let mut told = window.expect(0..1, Tag(1))?.from(producer)?;
        core.mark("go");
        if world.rank() == producer {
            window.put_notify(owner, 0, &[7], Tag(1))?;
            return window.flush(owner);
        }
        told.start()?;
        told.wait()?;
        assert_eq!(window.local().get(0)?, 7);
        Ok::<_, Error>(())
    };
    let config = Config {
        cores: 2,
        memory_size: 16 << 10,
        sleeps: true,
        ..Config::default()
    };
    let bounds = Bounds {
        preemptions: Some(1),
        ..Bounds::default()
    };
    let explored = Sim::new(config).explore(&bounds, Method::States, false, program);
    println!("{explored}");
    explored.assert_done();
}
