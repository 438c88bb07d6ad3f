//! Steps per second of the simulator: `cargo run --release --example throughput`.
//!
//! Two programs, all oracles on: a ping-pong of flags and cached payload between pairs of cores,
//! and the smallest run there is, which shows what starting a run costs.

use std::time::Instant;

use flagpost_hal::{
    CachedMemory, Coherence, CoreId, Lines, Region, Relax, Topology, UncachedMemory, Watch,
};
use flagpost_sim::{Config, Profile, Schedule, Sim, SimCore};

const ROUNDS: u32 = 2000;

/// Waits until the word at `offset` of the own region is `value`.
fn await_word(core: &SimCore, offset: usize, value: u32) {
    let at = Region::memory(core.core()).at(offset);
    loop {
        match core.load_u32(at) {
            seen if seen == value => return core.acquire(),
            seen => core.relax(&[Watch { at, seen }]),
        }
    }
}

/// Tells the peer `round`, with 32 bytes of payload.
fn send(core: &SimCore, peer: Region, round: u32) {
    core.store_bytes(peer.at(64), &[round as u8; 32]);
    core.drain();
    core.store_u32(peer.at(0), round);
}

/// Waits for `round` and reads its payload through the cache.
fn receive(core: &SimCore, round: u32) -> Result<(), u32> {
    await_word(core, 0, round);
    let inbox = Region::memory(core.core()).at(64);
    core.invalidate(&[Lines::covering::<SimCore>(inbox, 32)]);
    let mut payload = [0; 32];
    core.read(inbox, &mut payload);
    (payload == [round as u8; 32]).then_some(()).ok_or(round)
}

/// Neighbours 2n and 2n + 1 send each other 32 bytes and a flag, in turn.
fn ping_pong(core: SimCore) -> Result<(), u32> {
    let me = core.core().get();
    let peer = Region::memory(CoreId::new(me ^ 1));
    for round in 1..=ROUNDS {
        if me.is_multiple_of(2) {
            send(&core, peer, round);
            receive(&core, round)?;
        } else {
            receive(&core, round)?;
            send(&core, peer, round);
        }
    }
    Ok(())
}

/// One store per core.
fn smallest(core: SimCore) -> Result<(), &'static str> {
    core.store_u32(Region::memory(core.core()).at(0), 1);
    Ok(())
}

fn measure(name: &str, config: Config, program: fn(SimCore) -> Result<(), u32>, runs: u64) {
    let mut sim = Sim::new(config.clone());
    sim.run(program).assert_done();
    let start = Instant::now();
    let mut steps = 0;
    for seed in 0..runs {
        let report = sim.reseed(seed).run(program);
        report.assert_done();
        steps += report.steps;
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{name:<10} {:>4} cores  {:<9} {:<11} {:6.1} M steps/s {:10.0} runs/s",
        config.cores,
        config.profile.to_string(),
        config.schedule.to_string(),
        steps as f64 / seconds / 1e6,
        runs as f64 / seconds,
    );
}

fn main() {
    let schedules = [
        Schedule::RoundRobin,
        Schedule::Random,
        Schedule::Pct { depth: 3 },
    ];
    for profile in Profile::ALL {
        for (schedule, cores) in schedules.into_iter().flat_map(|s| [(s, 2), (s, 48)]) {
            let config = Config {
                cores,
                profile,
                schedule,
                ..Config::default()
            };
            measure("ping-pong", config, ping_pong, 200 / u64::from(cores));
        }
    }
    for cores in [2, 48, 512] {
        let config = Config {
            cores,
            ..Config::default()
        };
        let program = |core| smallest(core).map_err(|_| 0);
        measure("smallest", config, program, 20_000 / u64::from(cores));
    }
}
