//! Every conformance case on the SCC port, over the simulated chip, with each mapping of its
//! windows. `FLAGPOST_SEEDS=n` changes how many seeds each combination gets.
//!
//! The chip has no atomics that reach other cores, so the cases that need them are skipped.

use flagpost_explore::{self as explore, Port, config_for};
use flagpost_hal::Topology;
use flagpost_scc::Mapping;
use flagpost_sim::{Config, Profile, SCC_BUFFER, SimCore, sweep};
use flagpost_tests::{Args, Case, Context, Failure, Session, cases};

use crate::groups;

/// Seeds per case, size and mapping; half the share in a quick run.
const SEEDS: u64 = 30;

/// Mappings, and the profiles that each of them is for (see `hal/sim/src/bus.rs`).
const MAPPINGS: [(Mapping, &[Profile]); 3] = [
    (Mapping::MpbtWriteThrough, &[Profile::Scc, Profile::SccFill]),
    (Mapping::Normal, &[Profile::Scc, Profile::SccFill]),
    (Mapping::Mpbt, &[Profile::Scc]),
];

fn program(case: &Case<Port>, core: SimCore, mapping: Mapping) -> Result<(), Failure> {
    let mut arena = vec![0; Context::<Port>::arena_words(core.cores())];
    (case.run)(&mut Context {
        machine: core.scc(mapping),
        session: Session::FIRST,
        args: Args::default(),
        arena: &mut arena,
        report: &mut |_, _| (),
    })
}

/// The case of the same name on the plain simulator, for its sizes.
fn plain(case: &Case<Port>) -> &'static explore::Case {
    let mut all = explore::cases();
    all.find(|plain| plain.name == case.name)
        .expect("one table for all platforms")
}

fn config(case: &Case<Port>, cores: u16, profile: Profile) -> Config {
    Config {
        buffer_size: SCC_BUFFER,
        ..config_for(plain(case), cores, profile)
    }
}

/// Each mapping with each of its profiles.
fn chips() -> impl Iterator<Item = (Mapping, Profile)> {
    let of = |(mapping, profiles): (Mapping, &'static [Profile])| {
        profiles.iter().map(move |&profile| (mapping, profile))
    };
    MAPPINGS.into_iter().flat_map(of)
}

/// Runs the cases whose name starts with `prefix`. In a quick run each of them has every third
/// chip, at the next size the ones after those.
fn group(prefix: &str) {
    let seeds = groups::seeds(SEEDS / groups::step(2) as u64);
    let (mut runs, mut steps, mut skipped) = (0, 0, 0);
    for (nth, case) in cases::<Port>().enumerate() {
        if !case.name.starts_with(prefix) {
            continue;
        }
        if !case.admits(case.min_cores) {
            skipped += 1;
            println!("{}: skipped, this chip has no atomics", case.name);
            continue;
        }
        for (turn, cores) in (nth..).zip(explore::sizes(plain(case))) {
            let quick = groups::step(3);
            for (mapping, profile) in chips().skip(turn % quick).step_by(quick) {
                let name = format!("{}/{cores}/{profile}/{mapping:?}", case.name);
                let first = u64::from(cores) * seeds;
                let swept = sweep(first..first + seeds)
                    .case(name, config(case, cores, profile), move |core| {
                        program(case, core, mapping)
                    })
                    .run();
                swept.assert_done();
                runs += swept.runs;
                steps += swept.steps;
            }
        }
    }
    println!("{prefix} on the SCC port: {runs} runs, {steps} steps, {skipped} cases skipped");
    assert!(runs > 0);
}

groups!(group);

/// One case is skipped, and it is the one about atomics.
#[test]
fn only_atomics_are_skipped() {
    let skipped = cases::<Port>().filter(|case| !case.admits(case.min_cores));
    let names: Vec<_> = skipped.map(|case| case.name).collect();
    assert_eq!(names, ["hal.atomics"]);
}

/// The whole chip; in a deep run a board of more tiles than the chip has, too. In a quick run every
/// eighth case, which are others than those of `sim::forty_eight_cores`.
#[test]
fn forty_eight_cores_and_more() {
    let more = [(130, "pscw.ring"), (130, "notify.ring")];
    let more = more.into_iter().filter(|_| groups::is_deep());
    let skipped = if groups::is_deep() { 0 } else { 2 };
    for (cores, names) in more.chain([(48, "")]) {
        let mut runs = sweep(0..1);
        for case in cases::<Port>().skip(skipped).step_by(groups::step(8)) {
            if !case.name.starts_with(names) || !case.admits(cores) {
                continue;
            }
            runs = runs.case(case.name, config(case, cores, Profile::Scc), move |core| {
                assert_eq!(core.cores(), cores);
                program(case, core, Mapping::default())
            });
        }
        runs.run().assert_done();
    }
}
