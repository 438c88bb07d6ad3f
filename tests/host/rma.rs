//! The cases with atomics of the machine's own; and what accesses to scattered data cost in
//! simulated time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use flagpost::epoch::pscw::Access;
use flagpost::rma::{Gather, Layout, Scatter};
use flagpost::{Config as WorldConfig, EpochSlots, Error, Rank, Rma as _, Session, World};
use flagpost_explore::{Chip, Setting, cases, config_for, native, sizes};
use flagpost_hal::{Clock as _, Coherence as _};
use flagpost_mapped::Mapped;
use flagpost_sim::{
    Bounds, Config, Latencies, Method, Preset, Profile, Schedule, Sim, SimCore, sweep,
};

use crate::groups;

/// Seeds per case, size and profile.
const SEEDS: u64 = 30;

// ---- Native atomics ----

/// Every case that any link can run.
#[test]
fn native_atomics() {
    let seeds = groups::seeds(SEEDS);
    let mut runs = sweep(0..seeds);
    for (known, case) in native::cases() {
        for cores in sizes(known) {
            for profile in [Profile::Scc, Profile::WeakFill] {
                let config = config_for(known, cores, profile);
                let program = |core| native::program(case, core);
                runs = runs.case(format!("{}/{cores}", case.name), config, program);
            }
        }
    }
    // Other chips whose lines are as long: caches that act as a whole, and ones that lose and
    // prefetch.
    for (known, case) in native::cases().step_by(groups::step(6)) {
        for cores in sizes(known) {
            for preset in [Preset::SccNormal, Preset::ArmM7] {
                let chip = Chip::Preset(preset);
                let setting = Setting {
                    case: known,
                    cores,
                    chip,
                };
                let program = |core| native::program(case, core);
                runs = runs.case(setting.to_string(), setting.config(), program);
            }
        }
    }
    runs.run().assert_done();
}

/// Cases that are tried in all schedules, on two cores.
const SMALL: [&str; 6] = [
    "small.accumulate",
    "small.fetch",
    "small.compare_swap",
    "small.counter",
    "small.signal",
    "small.event",
];

/// Two cores, all schedules with one eviction, one prefetch, or one early leave, under locks. (Weak
/// chips have too many.)
#[test]
fn locks_in_all_schedules() {
    for case in cases().filter(|case| SMALL.contains(&case.name)) {
        for profile in Profile::ALL.into_iter().filter(|profile| !profile.weak()) {
            let chip = Chip::Profile(profile);
            let cores = 2;
            let setting = Setting { case, cores, chip };
            for (evictions, fills, leaves) in [(1, 0, 0), (0, 1, 0), (0, 0, 1)] {
                let bounds = Bounds {
                    evictions,
                    fills,
                    leaves,
                    ..Bounds::default()
                };
                let explored = setting.explore(&bounds, setting.config());
                println!("{setting}: {explored}");
                explored.assert_done();
            }
        }
    }
}

/// Two cores, all schedules; in a quick run those with two preemptions at the most where memory is
/// weak. Without a prefetch those of the filling profiles are the same, one by one.
#[test]
fn native_atomics_in_all_schedules() {
    let names = SMALL;
    let profiles = [Profile::Scc, Profile::Weak];
    let mut tried = 0;
    for (known, case) in native::cases() {
        if !names.contains(&case.name) {
            continue;
        }
        for profile in profiles {
            let mut sim = Sim::new(config_for(known, 2, profile));
            let program = |core| native::program(case, core);
            let weak = profile == Profile::Weak;
            let bounds = Bounds {
                preemptions: (weak && !groups::is_deep()).then_some(2),
                ..Bounds::default()
            };
            let explored = sim.explore(&bounds, Method::States, false, program);
            println!("{}/2/{profile}: {explored}", case.name);
            explored.assert_done();
            tried += 1;
        }
    }
    assert_eq!(tried, names.len() * profiles.len());
}

// ---- Blocks, or packed ----

/// The peer that is accessed.
const PEER: Rank = Rank::new(1);

type Open<'e, 'w> = Access<'e, 'w, u8, Mapped<SimCore>, EpochSlots<'w>>;

/// A world of two cores in simulated time; rank 0 accesses rank 1's piece.
fn two(
    link: Mapped<SimCore>,
    run: impl FnOnce(&Open<'_, '_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut arena = [0; 256];
    let world = World::start(link, &mut arena, WorldConfig::default())?;
    let window = world.allocate::<u8>(1024)?;
    if world.rank() == PEER {
        return window.post([Rank::new(0)])?.wait();
    }
    let access = window.start([PEER])?;
    // The peer has posted: nothing is polled any more.
    access.put(PEER, 0, &[0])?;
    run(&access)?;
    access.complete()
}

fn timed() -> Config {
    Config {
        cores: 2,
        latencies: Latencies::SccEas,
        schedule: Schedule::Timed,
        ..Config::default()
    }
}

/// Bytes that are moved in one run of the target's.
const RUN: usize = 512;

/// Cycles of rank 0 for `call`, until all is in memory.
fn cycles(call: impl Fn(&Open<'_, '_>) -> Result<(), Error> + Send + Sync + 'static) -> u64 {
    let taken = Arc::new(AtomicU64::new(0));
    let result = Arc::clone(&taken);
    let report = Sim::new(timed()).run(move |core| {
        let clock = core.clone();
        two(Mapped::start(core, Session::FIRST)?, |access| {
            clock.drain();
            let start = clock.cycles();
            call(access)?;
            clock.drain();
            taken.store(clock.cycles() - start, Relaxed);
            Ok(())
        })
    });
    report.assert_done();
    result.load(Relaxed)
}

/// Slices with blocks of so many bytes, and gaps as long between them, to and from one run of the
/// target's: block by block, packed by hand, and as the library does it. In cycles of a simulated
/// SCC, which charges for accesses only.
#[test]
fn short_pieces_are_packed_where_that_is_cheaper() {
    const PACK: usize = flagpost::rma::BUFFER;
    let data: [u8; 2 * RUN] = core::array::from_fn(|i| i as u8);
    println!("{RUN} bytes; blocks of | put: blocks, packed, chosen | get: blocks, packed, chosen");
    for block in [1, 2, 4, 8, 16, 32, 64] {
        let layout = Layout::Vector {
            blocks: RUN / block,
            block_len: block,
            stride: 2 * block,
        };
        let run = Layout::Contiguous { count: RUN };
        let put = [
            cycles(move |access| {
                for at in (0..RUN).step_by(block) {
                    access.put(PEER, at, &data[2 * at..][..block])?;
                }
                Ok(())
            }),
            cycles(move |access| {
                for at in (0..RUN).step_by(PACK) {
                    access.put(PEER, at, &[1; PACK])?;
                }
                Ok(())
            }),
            cycles(move |access| {
                access
                    .to(PEER, 0)
                    .layout(run)
                    .put(Gather::new(&data, layout))
                    .and_then(flagpost::rma::Request::wait)
            }),
        ];
        let get = [
            cycles(move |access| {
                let mut into = [0_u8; 2 * RUN];
                for at in (0..RUN).step_by(block) {
                    access.get(PEER, at, &mut into[2 * at..][..block])?;
                }
                Ok(())
            }),
            cycles(move |access| {
                for at in (0..RUN).step_by(PACK) {
                    access.get(PEER, at, &mut [0; PACK])?;
                }
                Ok(())
            }),
            cycles(move |access| {
                let mut into = [0_u8; 2 * RUN];
                access
                    .to(PEER, 0)
                    .layout(run)
                    .get(Scatter::new(&mut into, layout))
                    .and_then(flagpost::rma::Request::wait)
            }),
        ];
        println!("{block:>2} | {put:?} | {get:?}");
        for [blocks, packed, chosen] in [put, get] {
            assert_eq!(chosen, blocks.min(packed), "{block}");
        }
    }
}
