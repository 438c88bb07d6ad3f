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

/// Seeds per case, size and mapping.
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

/// Each case at each of its sizes. A quick run has those of the machine and of the link, through
/// which all others see the port: `sim` has the others, and QEMU has all, with the port's own code.
#[test]
fn every_case() {
    let seeds = groups::seeds(SEEDS);
    let is_of_port = |name: &str| name.starts_with("hal.") || name.starts_with("link.");
    let (mut runs, mut steps) = (0, 0);
    for case in cases::<Port>().filter(|case| case.admits(case.min_cores)) {
        if !groups::is_deep() && !is_of_port(case.name) {
            continue;
        }
        for cores in explore::sizes(plain(case)) {
            for (mapping, profile) in chips() {
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
    println!("on the SCC port: {runs} runs, {steps} steps");
}

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
