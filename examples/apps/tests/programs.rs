//! All programs, in each variant, on simulated chips: they find what a serial run finds.

use flagpost::{Config as WorldConfig, Session, World};
use flagpost_apps::{Job, Wrong, programs};
use flagpost_mapped::Mapped;
use flagpost_sim::{Config, Sim, SimCore};

type Link = Mapped<SimCore>;

#[test]
fn programs_find_what_a_serial_run_finds() {
    for program in programs::<Link>() {
        for &variant in program.variants {
            for cores in [1, 2, 3, 6, 18] {
                let chip = Config {
                    cores,
                    memory_size: 64 << 10,
                    seed: cores.into(),
                    ..Config::default()
                };
                let report = Sim::new(chip).run(|core: SimCore| {
                    let link =
                        Mapped::start(core, Session::FIRST).map_err(flagpost::Error::from)?;
                    let mut arena = [0; WorldConfig::DEFAULT.words(32, 2)];
                    let world = World::start(link, &mut arena, WorldConfig::DEFAULT)?;
                    let mut memory = vec![0.0; (program.memory)(cores, program.small)];
                    let job = Job {
                        variant,
                        size: program.small,
                        memory: &mut memory,
                        compute: &|_| {},
                    };
                    let outcome = program.run(&world, job)?;
                    assert!(outcome.work > 0);
                    Ok::<(), Wrong>(())
                });
                println!("{} {variant} on {cores}", program.name);
                report.assert_done();
            }
        }
    }
}
