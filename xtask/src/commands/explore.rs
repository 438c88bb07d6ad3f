//! `cargo xtask explore`: the cases under many schedules, or small ones under all within bounds.

use anyhow::Result;
use clap::Args;

use self::options::Options;
use super::handed;
use crate::console::{Console, out};
use crate::count::Count;
use crate::explorer::Explorer;

/// Parsed to refuse what is wrong before anything is built, and for the help.
#[path = "../../../tests/explore/src/options.rs"]
#[allow(dead_code, reason = "the explorer reads them")]
mod options;

/// Run the conformance cases on the simulator under many schedules, or small ones under
/// all schedules within bounds
///
/// Seeded: every case, at several sizes and on every profile (or on the one preset), gets its share
/// of the schedules. Exhaustive: every schedule of the small cases, with a bounded number of
/// evictions and other acts of the chip; larger cases too with --preemptions. On all processors of
/// the host; the outcome does not depend on how many.
///
/// A failing run is printed with its last accesses and the line that repeats it, then searched for
/// anew with as few cores, evictions and preemptions as possible; both are written as traces for
/// `cargo xtask replay`.
///
/// Exit status: 0 if nothing failed (and, if exhaustive, everything was tried); else 1; 2 for bad
/// input.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    options: Options,
}

/// What `cargo xtask test --deep` explores: everything by seeds, then small cases in every
/// schedule.
const DEEP: [&str; 7] = [
    "--schedules 200000",
    "--strategy exhaustive --case small. --cores 2 --profile scc --evictions 1 --states 500000",
    "--strategy exhaustive --case small.shared.notify_twice --cores 2 --evictions 1 --fills 1",
    "--strategy exhaustive --case small.fan_out --cores 2 --profile weak",
    "--strategy exhaustive --case small.switch --cores 3 --profile scc+fill --evictions 1 --fills 1",
    "--strategy exhaustive --case small.switch --cores 3 --profile weak",
    "--strategy exhaustive --case small.fan_out --cores 4 --profile scc",
];

/// What `cargo xtask test` explores: each setting by one seed at least; small cases without a
/// switch away from a core that could continue, and with one. With one, those that are skipped
/// would take nine tenths of the time.
const QUICK: [&str; 5] = [
    "--schedules 6000",
    "--strategy exhaustive --case small. --cores 2 --profile scc --preemptions 0",
    "--strategy exhaustive --case small. --cores 2 --profile scc --preemptions 1 --skip \
     small.start,small.ping_pong,small.event_made,small.notify_twice,small.notify_flushed,\
     small.notify_accumulate,small.bells.notify,small.bells.ping_pong,small.bells.notify_twice,\
     small.bells.notify_flushed",
    "--strategy exhaustive --case small.fan_out --cores 2 --profile weak",
    "--strategy exhaustive --case small.switch --cores 3 --profile scc",
];

/// Runs the command; `false` if anything failed. The explorer parses the same options.
pub(crate) fn run(console: &Console, _: &Arguments) -> Result<bool> {
    console.release();
    let mut command = Explorer::plain(console)?.command();
    console.clear();
    handed::ended(command.args(std::env::args().skip(1)))
}

/// The explorations of the tests, each of which counts as a check. The quick ones take the program
/// that the tests have built; the deep ones pay for the build of a faster one.
pub(crate) fn of_tests(console: &Console, deep: bool) -> Result<Count> {
    let (explorer, explorations) = if deep {
        (Explorer::plain(console)?, &DEEP[..])
    } else {
        (Explorer::of_tests(console)?, &QUICK[..])
    };
    console.clear();
    let mut count = Count::default();
    for words in explorations {
        let line = format!("cargo xtask explore {words}");
        out(&line);
        let mut command = explorer.command();
        command.args(["explore", "--quiet"]).args(words.split(' '));
        let well = handed::ended(&mut command).is_ok_and(|well| well);
        if !well {
            console.failure(&line);
        }
        count.add(Count::one(well));
    }
    Ok(count)
}
