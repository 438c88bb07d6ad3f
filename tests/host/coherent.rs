//! The cases on a machine that keeps its caches in step: what links and the kernel do there only.

use flagpost::{Config as WorldConfig, Error, MatchVector, Rank, Session, Tag, World};
use flagpost_explore::{coherent, config_for};
use flagpost_mapped::Mapped;
use flagpost_sim::{Bounds, Config, Method, Profile, Sim, SimCore, sweep};

use crate::groups;

/// The chip: rings lie in memory here, beside the windows.
fn config(case: &flagpost_explore::Case, cores: u16, profile: Profile) -> Config {
    let config = config_for(case, cores, profile);
    Config {
        memory_size: 2 * config.memory_size,
        ..config
    }
}

/// Two cores, all schedules. Those of the ping-pong on a weak chip and of flushes are long
/// searches: only a deep run makes them.
#[test]
fn notifications_in_all_schedules() {
    let names = ["small.notify", "small.notify_flushed", "small.ping_pong"];
    let mut tried = 0;
    for (known, case) in coherent::cases().filter(|(_, case)| names.contains(&case.name)) {
        for profile in [Profile::Scc, Profile::Weak] {
            let weak = profile == Profile::Weak;
            let long = match case.name {
                "small.ping_pong" => weak,
                name => name == "small.notify_flushed",
            };
            if long && !groups::is_deep() {
                continue;
            }
            let mut sim = Sim::new(config(known, 2, profile));
            let program = |core| coherent::program(case, core);
            let explored = sim.explore(&Bounds::default(), Method::States, false, program);
            println!("{}/2/{profile}: {explored}", case.name);
            explored.assert_done();
            tried += 1;
        }
    }
    let left_out = if groups::is_deep() { 0 } else { 3 };
    assert_eq!(tried, 2 * names.len() - left_out);
}

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

/// Fails if a rank that waits for one post does not watch the match vector's word while another
/// post is in it.
#[test]
fn a_post_is_awaited_beside_another_one() {
    let program = |core: SimCore| {
        let mut arena = [0; 512];
        let link = Mapped::start(coherent::Coherent::new(core), Session::FIRST)?;
        let world = World::start(link, &mut arena, WorldConfig::default())?;
        let [origin, early, late] = [0, 1, 2].map(Rank::new);
        let window = world.allocate_with::<u32, MatchVector<'_>>(1, ())?;
        if world.rank() == origin {
            for target in [late, early] {
                let targets = [target];
                let access = window.start(&world.group(&targets)?)?;
                access.await_posts()?;
                access.complete()?;
            }
        } else {
            let origins = [origin];
            let exposure = window.post(&world.group(&origins)?)?;
            exposure.wait()?;
        }
        Ok::<_, Error>(())
    };
    let config = Config {
        cores: 3,
        memory_size: 16 << 10,
        ..Config::default()
    };
    sweep(0..300)
        .case("awaits", config, program)
        .run()
        .assert_done();
}
