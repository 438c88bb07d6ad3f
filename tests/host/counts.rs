//! What calls cost, counted by the simulator: lines that caches move, and remote accesses.
//!
//! Each count is the difference between two runs that differ in the calls in question, on a chip that does nothing on its
//! own account.

use flagpost::{Config, EpochSlots, Link, Model, Rank, Rma as _, Window, World};
use flagpost_mapped::Mapped;
use flagpost_sim::{Config as Chip, Counters, Schedule, Sim, SimCore};

type Words<'w> = Window<'w, u32, Mapped<SimCore>>;

/// What a core does.
type Program<'p> =
    &'p dyn Fn(&World<'_, Mapped<SimCore>>, &Words<'_>) -> Result<(), flagpost::Error>;

/// What each core did in `program`, which is run with a window of 8 lines of words.
fn counters(cores: u16, model: Model, program: Program<'_>) -> Vec<Counters> {
    let chip = Chip {
        cores,
        memory_size: 16 << 10,
        schedule: Schedule::RoundRobin,
        evictions: 0,
        prefetches: 0,
        drains: 0,
        ..Chip::default()
    };
    let report = Sim::new(chip).run(|core| {
        let mut arena = [0; 256];
        let link = Mapped::start(core, 1)?;
        let world = World::start(link, &mut arena, Config::default())?;
        let window = world.allocate_with::<u32, EpochSlots<'_>>(8 * WORDS, model)?;
        program(&world, &window)?;
        world.barrier()
    });
    report.assert_done();
    report.counters
}

/// Words of a line.
const WORDS: usize = <Mapped<SimCore> as Link>::LINE as usize / 4;

/// An epoch in which rank 1 exposes some lines to rank 0, after it has stored to all.
fn exposed_lines(model: Model, range: Option<std::ops::Range<usize>>) -> [(u64, u64); 2] {
    let run = |epoch: bool| {
        counters(2, model, &|world, window| {
            let (origin, target) = ([Rank::new(0)], [Rank::new(1)]);
            for line in 0..8 {
                window.local().set(line * WORDS, 1)?;
            }
            if !epoch {
                return Ok(());
            }
            if world.rank() == origin[0] {
                let access = window.start(&world.group(&target)?)?;
                let exposed = range.clone().unwrap_or(0..8 * WORDS);
                access.put(target[0], exposed.start, &[5][..exposed.len().min(1)])?;
                return Ok(access.complete()?);
            }
            let origins = world.group(&origin)?;
            let exposure = match range.clone() {
                Some(range) => window.post_range(range, &origins)?,
                None => window.post(&origins)?,
            };
            Ok(exposure.wait()?)
        })
    };
    let (with, without) = (run(true), run(false));
    [0, 1].map(|core: usize| {
        let (with, without) = (with[core], without[core]);
        (
            with.write_backs - without.write_backs,
            with.invalidations - without.invalidations,
        )
    })
}

/// Lines written back and invalidated: at the origin none; at the target those that it exposed, and no other.
#[test]
fn epochs_move_only_the_lines_that_they_expose() {
    const NONE: (u64, u64) = (0, 0);
    let separate = |range| exposed_lines(Model::Separate, range);
    assert_eq!(separate(None), [NONE, (8, 8)]);
    assert_eq!(separate(Some(0..8 * WORDS)), [NONE, (8, 8)]);
    assert_eq!(separate(Some(0..1)), [NONE, (1, 1)]);
    assert_eq!(separate(Some(WORDS - 1..WORDS + 1)), [NONE, (2, 2)]);
    assert_eq!(separate(Some(0..0)), [NONE, NONE]);
    assert_eq!(exposed_lines(Model::Unified, None), [NONE, NONE]);
}
