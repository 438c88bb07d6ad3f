//! The cases on a machine that keeps its caches in step: what links and the kernel do there only.

mod groups;

use flagpost_explore::{coherent, config_for, sizes};
use flagpost_sim::{Bounds, Config, Method, Profile, Sim, sweep};

/// Seeds per case, size and profile.
const SEEDS: u64 = 5;

/// The chip: rings lie in memory here, beside the windows.
fn config(case: &flagpost_explore::Case, cores: u16, profile: Profile) -> Config {
    let config = config_for(case, cores, profile);
    Config {
        memory_size: 2 * config.memory_size,
        ..config
    }
}

/// Every case that any link can run, on memory in order and on memory whose stores and loads pass each other.
#[test]
fn cases_on_coherent_machines() {
    let mut runs = sweep(0..groups::seeds(SEEDS));
    for (known, case) in coherent::cases() {
        for cores in sizes(known) {
            for profile in [Profile::Scc, Profile::Weak] {
                let config = config(known, cores, profile);
                let program = |core| coherent::program(case, core);
                runs = runs.case(format!("{}/{cores}", case.name), config, program);
            }
        }
    }
    runs.run().assert_done();
}

/// Two cores, all schedules.
#[test]
fn notifications_in_all_schedules() {
    let names = ["small.notify", "small.ping_pong"];
    let mut tried = 0;
    for (known, case) in coherent::cases().filter(|(_, case)| names.contains(&case.name)) {
        for profile in [Profile::Scc, Profile::Weak] {
            let mut sim = Sim::new(config(known, 2, profile));
            let program = |core| coherent::program(case, core);
            let explored = sim.explore(&Bounds::default(), Method::States, false, program);
            println!("{}/2/{profile}: {explored}", case.name);
            explored.assert_done();
            tried += 1;
        }
    }
    assert_eq!(tried, 2 * names.len());
}
