//! All programs, in each variant, on simulated chips: they find what a serial run finds.

use flagpost::{Config as WorldConfig, Session, World};
use flagpost_apps::{Job, Program, Size, Variant, Wrong, programs};
use flagpost_mapped::Mapped;
use flagpost_sim::{Config, Sim, SimCore};

type Link = Mapped<SimCore>;

/// Runs a program on so many cores.
fn run(program: &Program<Link>, variant: Variant, cores: u16, size: Size) {
    let chip = Config {
        cores,
        memory_size: 64 << 10,
        seed: cores.into(),
        ..Config::default()
    };
    let report = Sim::new(chip).run(|core: SimCore| {
        let link = Mapped::start(core, Session::FIRST).map_err(flagpost::Error::from)?;
        let mut arena = [0; WorldConfig::DEFAULT.words(32, 2)];
        let world = World::start(link, &mut arena, WorldConfig::DEFAULT)?;
        // A program may be lent memory that was used before.
        let mut memory = vec![f64::NAN; program.memory(cores, size)?];
        let job = Job {
            variant,
            size,
            memory: &mut memory,
            compute: &|_| {},
        };
        let outcome = program.run(&world, job)?;
        assert_eq!(outcome.work, work(program.name, cores.into(), size));
        Ok::<(), Wrong>(())
    });
    println!("{} {variant} on {cores}", program.name);
    report.assert_done();
}

/// What a program says that all ranks do together.
fn work(program: &str, ranks: u64, size: Size) -> u64 {
    let (side, steps) = (u64::from(size.side), u64::from(size.steps));
    match program {
        "stencil" => 2 * steps * (ranks * side - 1) * (side - 1),
        "halo" => 4 * ranks * side.pow(2) * steps,
        "hydro" => ranks * side.pow(2) * steps,
        "lattice" => 19 * ranks * side.pow(4) * steps,
        "consumer" => ranks * side * steps,
        "tree" | "hashtable" => ranks * steps,
        "sparse" => ranks.min(6) * ranks * steps,
        "fft" => {
            let numbers = side.next_power_of_two().pow(3);
            5 * numbers * u64::from(numbers.ilog2()) * steps
        }
        // Of each element of the lower half.
        "cholesky" => (0..side * steps).map(|row| (row + 1).pow(2)).sum(),
        _ => panic!("{program}: how much work is it?"),
    }
}

#[test]
fn programs_find_what_a_serial_run_finds() {
    for program in programs() {
        for &variant in program.variants {
            for cores in [1, 2, 3, 6, 18] {
                run(&program, variant, cores, program.small);
            }
        }
    }
}

/// What a program demands of its result is true of small and odd sizes, too.
#[test]
fn programs_run_at_any_size() {
    for program in programs() {
        let variant = program.variants[program.variants.len() - 1];
        for side in [2, 3, 4, 5] {
            for steps in [1, 2, 7] {
                run(&program, variant, 2, Size { side, steps });
            }
        }
    }
}

#[test]
fn a_stencil_has_more_rows_than_a_queue_has_room_for() {
    let program = flagpost_apps::stencil::program();
    let side = 2 * u32::from(WorldConfig::DEFAULT.unexpected);
    for &variant in program.variants {
        for cores in [2, 3] {
            run(&program, variant, cores, Size { side, steps: 2 });
        }
    }
}

#[test]
fn a_size_that_takes_more_memory_than_there_can_be_is_refused() {
    const SIZE: Size = Size {
        side: u32::MAX,
        steps: u32::MAX,
    };
    let refused = ["halo", "hydro", "lattice", "cholesky", "fft"];
    for program in programs::<Link>() {
        let is_refused = refused.contains(&program.name);
        for ranks in [1, 2, 1024] {
            let memory = program.memory(ranks, SIZE);
            assert_eq!(
                memory == Err(Wrong::Size(SIZE)),
                is_refused,
                "{}",
                program.name
            );
        }
        if is_refused {
            let report = Sim::new(Config::default()).run(|core: SimCore| {
                let link = Mapped::start(core, Session::FIRST).map_err(flagpost::Error::from)?;
                let mut arena = [0; WorldConfig::DEFAULT.words(32, 2)];
                let world = World::start(link, &mut arena, WorldConfig::DEFAULT)?;
                let job = Job {
                    variant: Variant::Messages,
                    size: SIZE,
                    memory: &mut [],
                    compute: &|_| {},
                };
                assert_eq!(program.run(&world, job), Err(Wrong::Size(SIZE)));
                Ok::<(), Wrong>(())
            });
            report.assert_done();
        }
    }
}
