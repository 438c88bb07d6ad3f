//! Timed mode: every figure here is exact, on any host.

use std::cell::{Cell, RefCell};

use flagpost_hal::{
    Address, CachedMemory, Clock, Coherence, CoreId, Lines, Region, Relax, TestAndSet, Topology,
    UncachedMemory, Watch,
};
use flagpost_sim::{
    Config, Controllers, End, Latencies, Mesh, Profile, Report, Schedule, Sim, SimCore,
};

/// Core cycles at 533 MHz as picoseconds, rounded.
fn picoseconds(cycles: u64) -> u64 {
    (cycles * 1_000_000 + 266) / 533
}

/// Picoseconds as core cycles, rounded.
fn cycles(picoseconds: u64) -> u64 {
    (picoseconds * 533 + 500_000) / 1_000_000
}

fn mesh(columns: u16, rows: u16, cores_per_tile: u16) -> Option<Mesh> {
    Some(Mesh {
        columns,
        rows,
        cores_per_tile,
    })
}

fn scc(cores: u16) -> Config {
    Config {
        cores,
        mesh: mesh(6, 4, 2),
        schedule: Schedule::Timed,
        ..Config::default()
    }
}

fn run(config: Config, program: impl Fn(SimCore)) -> Report {
    let report = Sim::new(config).run(|core| {
        program(core);
        Ok::<(), &str>(())
    });
    report.assert_done();
    report
}

/// Cycles that `action` takes on a core, between two readings of the clock.
fn cost<T>(core: &SimCore, action: impl Fn() -> T) -> u64 {
    let empty = {
        let start = core.cycles();
        core.cycles() - start
    };
    let start = core.cycles();
    action();
    core.cycles() - start - empty
}

fn word(of: u16) -> Address {
    Region::memory(CoreId::new(of)).at(0)
}

fn buffer(of: u16) -> Address {
    Region::message_buffer(CoreId::new(of)).at(0)
}

// ---- What an access costs ----

/// The formulas of docs/hardware.md A5. Core 2x sits at (x, 0), and core 47 at (5, 3); their memory
/// lies behind (0, 0), (5, 0) and (5, 2).
#[test]
fn loads_cost_what_the_formulas_say() {
    let table = [
        // core, message buffer and register, memory
        (0, 50, 76),
        (1, 50, 76),
        (2, 56, 76),
        (4, 61, 76),
        (6, 66, 103),
        (8, 72, 103),
        (10, 77, 103),
        (47, 93, 113),
    ];
    run(scc(48), |core| {
        if core.core() != CoreId::new(0) {
            return;
        }
        for (of, tile, memory) in table {
            let near = |found: u64, cycles: u64| {
                // A difference of two readings of the clock may be a cycle off.
                assert!(
                    found.abs_diff(cycles) <= 1,
                    "core {of}: {found}, not {cycles}"
                );
            };
            let load = |at| cost(&core, || core.load_u32(at));
            near(load(buffer(of)), tile);
            near(load(word(of)), memory);
            let register = || core.test_and_set(CoreId::new(of));
            near(cost(&core, register), tile);
        }
    });
}

#[test]
fn cached_and_bulk_accesses_cost_what_leaves_the_core() {
    run(scc(2), |core| {
        if core.core() != CoreId::new(0) {
            return;
        }
        let own = Region::memory(core.core());
        let lines = [Lines::covering::<SimCore>(own.at(0), 32)];
        let near = |what, found: u64, cycles: u64| {
            assert!(found.abs_diff(cycles) <= 1, "{what}: {found}, not {cycles}");
        };
        let line = 76;
        let read = || core.read(own.at(0), &mut [0; 4]);
        near("miss", cost(&core, read), 1 + line);
        near("hit", cost(&core, read), 1);
        let write = || core.write(own.at(0), &[1; 8]);
        near("store", cost(&core, write), 2);
        near("write back", cost(&core, || core.write_back(&lines)), line);
        near("clean line", cost(&core, || core.write_back(&lines)), 1);
        near("invalidate", cost(&core, || core.invalidate(&lines)), 1);
        near("empty drain", cost(&core, || core.drain()), 1);
        let part = || core.store_bytes(own.at(32), &[1; 12]);
        near("into the buffer", cost(&core, part), 3);
        near("drain", cost(&core, || core.drain()), 1 + line);
        let whole = || core.store_bytes(own.at(64), &[1; 32]);
        near("full line", cost(&core, whole), 8 + line);
        let two = || core.store_bytes(own.at(96), &[1; 48]);
        near("a line and a half", cost(&core, two), 12 + line);
        let other = || core.store_bytes(own.at(256), &[1; 4]);
        near("pushes out the half", cost(&core, other), 1 + line);
        near("acquire", cost(&core, || core.acquire()), 0);
        near("relax", cost(&core, || core.relax(&[])), 8);
        near("software", cost(&core, || core.spend(12_345)), 12_345);
    });
}

#[test]
fn clocks_are_per_core_and_in_core_cycles() {
    let report = run(scc(3), |core| {
        assert_eq!(core.hertz(), 533_000_000);
        core.spend(1000 * u32::from(core.core().get()));
    });
    assert_eq!(report.cycles, [0, 1000, 2000]);
    let random = Config {
        schedule: Schedule::Random,
        ..scc(3)
    };
    let report = run(random, |core| core.spend(1000));
    assert_eq!((report.steps, report.cycles), (0, vec![]));
}

// ---- Waiting for others ----

/// All 48 cores load a word behind one controller at time 0: it serves one each 57.5 ns, and who
/// comes first is decided by distance, then by number.
#[test]
fn a_controller_serves_one_access_at_a_time() {
    let order = RefCell::new(Vec::new());
    let report = run(scc(48), |core| {
        core.load_u32(word(0));
        order.borrow_mut().push(core.core().get());
    });
    let order = order.into_inner();
    assert_eq!(order[..8], [0, 1, 2, 3, 12, 13, 4, 5]);
    let last = report.cycles.iter().max().copied().unwrap_or(0);
    let alone = 75_047 + 10_000 + 57_500;
    // The first is served at once. The last is served 47 turns later, and is no further away than 8
    // hops.
    assert!((cycles(alone + 47 * 57_500)..=cycles(alone + 47 * 57_500 + 80_000)).contains(&last));
}

#[test]
fn memory_behind_other_controllers_does_not_wait() {
    let report = run(scc(48), |core| {
        core.load_u32(word(core.core().get()));
    });
    // Twelve cores per controller.
    let last = report.cycles.iter().max().copied().unwrap_or(0);
    assert!(last <= cycles(142_547 + 11 * 57_500 + 30_000));
}

/// A tile serves an access in 8 core cycles; 40 that come at once queue up.
#[test]
fn a_tile_serves_one_access_at_a_time() {
    let report = run(scc(48), |core| {
        core.load_u32(buffer(0));
    });
    let last = report.cycles.iter().max().copied().unwrap_or(0);
    assert!((47 * 8..47 * 8 + 93).contains(&last), "{last}");
}

/// Clocks when these cores have each loaded a word of another one's message buffer.
fn loads(latencies: Latencies, pairs: [(usize, u16); 2]) -> [u64; 2] {
    let config = Config {
        latencies,
        ..scc(48)
    };
    let report = run(config, |core| {
        for (me, of) in pairs {
            if core.core().index() == me {
                core.load_u32(buffer(of));
            }
        }
    });
    pairs.map(|(me, _)| report.cycles[me])
}

/// A word of another tile's message buffer, over so many routers, with so long a wait.
fn over(routers: u64, wait: u64) -> u64 {
    cycles(picoseconds(45) + routers * 10_000 + wait)
}

/// What three flits at 800 MHz take.
const PACKET: u64 = 3_750;

/// Both cores of tile (0, 0) send along row 0 at once, to (4, 0) and (5, 0): the second packet
/// waits on the first link.
#[test]
fn a_link_takes_one_packet_at_a_time_where_links_can_be_busy() {
    let east = [(0, 2 * 4), (1, 2 * 5)];
    assert_eq!(loads(Latencies::SccEas, east), [over(5, 0), over(6, 0)]);
    assert_eq!(
        loads(Latencies::SccMesh, east),
        [over(5, 0), over(6, PACKET)]
    );
    // To the north and to the east: no link in common.
    let apart = [(0, 2 * 18), (1, 2 * 5)];
    assert_eq!(loads(Latencies::SccMesh, apart), [over(4, 0), over(6, 0)]);
}

/// (1, 0) asks (5, 0) along row 0, and (0, 1), a hop further, asks (4, 0) along row 1. Both answers
/// go along row 0, and are at (4, 0) at the same time.
#[test]
fn answers_take_links_too() {
    let crossed = [(2, 2 * 5), (12, 2 * 4)];
    assert_eq!(loads(Latencies::SccEas, crossed), [over(5, 0), over(6, 0)]);
    assert_eq!(
        loads(Latencies::SccMesh, crossed),
        [over(5, 0), over(6, PACKET)]
    );
}

#[test]
fn who_waits_goes_on_at_the_end_of_a_turn() {
    let seen = Cell::new(0);
    let parked = Cell::new(0);
    run(scc(2), |core| {
        let flag = word(1);
        if core.core() == CoreId::new(0) {
            core.spend(10_000);
            core.store_u32(flag, 0);
            core.spend(10_000);
            core.store_u32(flag, 1);
        } else {
            core.store_u32(flag, 0);
            core.spend(1_000);
            parked.set(core.cycles());
            while core.load_u32(flag) == 0 {
                core.relax(&[Watch { at: flag, seen: 0 }]);
                seen.set(core.cycles());
            }
        }
    });
    // A turn: load the word, look at the clock, pause. Parked after the first load and pause.
    let turn = 142_547 + picoseconds(14) + picoseconds(8);
    let since = picoseconds(parked.get()) + 142_547 + picoseconds(8);
    // Core 0 stores after 20,000 cycles and a store; the access has its effect halfway.
    let stored = picoseconds(20_000) + 142_547 + (142_547 - 57_500) / 2;
    let turns = (stored - since).div_ceil(turn);
    let resumed = since + turns * turn + picoseconds(14);
    assert_eq!(seen.get(), cycles(resumed));
    assert!(turns > 150);
}

/// Fails if words of a line that is loaded at once are charged one by one, or words that are not,
/// at once.
#[test]
fn a_turn_loads_a_line_once_if_its_poller_does() {
    // When core 0 has seen the last of eight words change, by when core 1 stores it.
    let seen = |line: bool, delay: u32| {
        let seen = Cell::new(0);
        run(scc(2), |core| {
            let at = |number: u32| buffer(0).plus(4 * number as usize);
            if core.core() == CoreId::new(0) {
                let load = || {
                    if line {
                        core.load_bytes(at(0), &mut [0; 32]);
                    } else {
                        (0..8).for_each(|number| {
                            core.load_u32(at(number));
                        });
                    }
                };
                load();
                let before = core.load_u32(at(7));
                let watched: [Watch; 8] = std::array::from_fn(|number| Watch {
                    at: at(number as u32),
                    seen: if number < 7 {
                        core.load_u32(at(number as u32))
                    } else {
                        before
                    },
                });
                if line {
                    load();
                }
                core.relax(&watched);
                seen.set(core.cycles());
            } else {
                core.spend(10_000 + delay);
                core.store_u32(at(7), 1);
            }
        });
        seen.get()
    };
    let turn = |line| {
        let times: std::collections::BTreeSet<u64> = (0..1500)
            .step_by(7)
            .map(|delay| seen(line, delay))
            .collect();
        let times: Vec<u64> = times.into_iter().collect();
        let turns = times.windows(2).map(|two| two[1] - two[0]);
        turns.min().expect("several turns")
    };
    // The clock and the pause, 22; and a trip to the own buffer, 50 and a third. The least
    // difference is rounded down.
    assert_eq!(turn(true), 22 + 50);
    assert_eq!(turn(false), 22 + 8 * 50 + 2);
}

#[test]
fn a_bell_wakes_its_owner_612_cycles_later() {
    let report = run(scc(2), |core| match core.core().get() {
        0 => core.wait_for_ring(),
        _ => core.ring(CoreId::new(0)),
    });
    // Four accesses to the own tile, of which half a round trip is behind the ring's effect.
    assert_eq!(report.cycles[1], 4 * (45 + 5) + 1);
    assert!((612..612 + 4 * 51).contains(&report.cycles[0]));
}

#[test]
fn locks_are_taken_in_order_of_arrival() {
    let order = RefCell::new(Vec::new());
    run(scc(48), |core| {
        let lock = CoreId::new(0);
        if core.core() == lock {
            core.release_at_start(lock);
        } else {
            core.spend(100);
        }
        loop {
            if let Some(held) = core.try_lock(lock) {
                order.borrow_mut().push(core.core().get());
                core.spend(500);
                drop(held);
                break;
            }
            core.relax(&[]);
        }
    });
    let order = order.into_inner();
    assert_eq!(order.len(), 48);
    assert_eq!(order[0], 0);
}

// ---- Nothing else decides ----

fn mixed(core: SimCore) {
    let (me, cores) = (core.core().get(), core.cores());
    let (own, next) = (Region::memory(core.core()), (me + 1) % cores);
    core.release_at_start(core.core());
    core.store_u32(own.at(0), 0);
    core.spend(5_000);
    for round in 1..20_u32 {
        let peer = Region::memory(CoreId::new(next));
        core.store_bytes(peer.at(64), &round.to_le_bytes());
        core.drain();
        while core.try_lock(CoreId::new(0)).is_none() {
            core.relax(&[]);
        }
        core.store_u32(peer.at(0), round);
        loop {
            let seen = core.load_u32(own.at(0));
            if seen >= round {
                break;
            }
            core.relax(&[Watch {
                at: own.at(0),
                seen,
            }]);
        }
        let inbox = Lines::covering::<SimCore>(own.at(64), 4);
        core.invalidate(&[inbox]);
        core.read(own.at(64), &mut [0; 4]);
    }
}

#[test]
fn same_program_same_cycles_whatever_the_seed() {
    let config = |seed| Config {
        seed,
        evictions: 500,
        wakes: 500,
        ..scc(48)
    };
    let one = run(config(1), mixed);
    let other = run(config(2), mixed);
    assert_eq!(one.cycles, other.cycles);
    assert_eq!(one.steps, other.steps);
    assert_eq!(one.hash, run(config(1), mixed).hash);
    // On any machine.
    assert_eq!(
        (one.steps, one.cycles[0], one.cycles[47]),
        (49_722, 168_071, 172_118)
    );
}

#[test]
fn sizes_from_two_to_a_thousand_cores() {
    for cores in [2, 3, 100, 1024] {
        let config = Config {
            cores,
            schedule: Schedule::Timed,
            ..Config::default()
        };
        let report = run(config, |core| {
            let peer = CoreId::new((core.core().get() + 1) % core.cores());
            core.load_u32(Region::memory(peer).at(0));
        });
        assert_eq!(report.cycles.len(), usize::from(cores));
        assert!(report.cycles.iter().all(|&c| c >= 76));
    }
}

#[test]
fn a_mesh_of_another_shape_has_other_distances() {
    let far = |mesh: Option<Mesh>, controller| {
        let config = Config {
            mesh,
            controllers: Some(Controllers::At(vec![controller])),
            ..scc(8)
        };
        run(config, |core| {
            if core.core() == CoreId::new(7) {
                core.load_u32(buffer(0));
                core.load_u32(word(0));
            }
        })
        .cycles[7]
    };
    // Message buffer: 45 cycles and 5.33 per router; memory: 40, 46 memory cycles, and the same.
    assert_eq!(
        far(mesh(8, 1, 1), (0, 0)),
        cycles(84_428 + 80_000 + 75_047 + 57_500 + 80_000)
    );
    assert_eq!(
        far(mesh(4, 2, 1), (3, 1)),
        cycles(84_428 + 50_000 + 75_047 + 57_500 + 10_000)
    );
    assert_eq!(
        far(mesh(1, 1, 8), (0, 0)),
        cycles(84_428 + 10_000 + 75_047 + 57_500 + 10_000)
    );
}

// ---- What does not end ----

#[test]
fn deadlock_is_reported_and_budgets_expire() {
    let program = |core: SimCore| {
        let start = core.cycles();
        let at = word(core.core().get());
        let seen = core.load_u32(at);
        core.relax(&[Watch { at, seen }]);
        if core.cycles() - start > 3600 * core.hertz() {
            Ok(())
        } else {
            Err("too early")
        }
    };
    let report = Sim::new(scc(2)).run(program);
    assert_eq!(report.end, End::Deadlock);
    let budgets_expire = 1;
    let report = Sim::new(Config {
        budgets_expire,
        ..scc(2)
    })
    .run(program);
    report.assert_done();
}

#[test]
fn every_set_of_latencies_runs() {
    let mut seen = Vec::new();
    for latencies in Latencies::ALL {
        let config = Config {
            latencies,
            ..scc(4)
        };
        let report = run(config.clone(), |core| {
            core.release_at_start(core.core());
            core.store_u32(word(0), 1);
            core.store_bytes(buffer(3), &[1; 40]);
            core.drain();
        });
        let nanoseconds = report.cycles[0] * 1_000_000_000 / latencies.costs().hertz;
        seen.push((latencies.to_string(), nanoseconds));
        assert!(nanoseconds > 100, "{seen:?}");
    }
}

#[test]
#[should_panic(expected = "no weak profile")]
fn weak_profiles_are_refused() {
    Sim::new(Config {
        profile: Profile::Weak,
        ..scc(2)
    });
}
