//! `explore`: settings under many schedules, or under all within bounds.
//!
//! Prints a JSON object per line, a kind (`"is"`) in each; `cargo xtask explore` makes a table of
//! them. The outcome does not depend on the threads.

use std::io::{self, Write};
use std::process::exit;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use flagpost_explore::{Chip, Setting, cases, is_small, sizes};
use flagpost_sim::{Bounds, Config, Explored, Profile, Report, Schedule, sweep};
use serde_json::{Value, json};

use crate::options::{Options, Strategy};
use crate::{shrink, trace};

/// Seeds between two lines of progress.
const CHUNK: u64 = 500;

/// Runs settings under many schedules, or under all
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    options: Options,
    #[arg(long, value_name = "N", default_value_t = crate::processors())]
    threads: usize,
}

/// Runs the command; `false` if anything failed.
pub(crate) fn run(Arguments { options, threads }: &Arguments) -> bool {
    let settings = match chosen(options) {
        Ok(settings) => settings,
        Err(error) => {
            say(&json!({"is": "unusable", "why": error}));
            exit(2);
        }
    };
    let begun = Instant::now();
    let done = match options.strategy {
        Strategy::Exhaustive => exhaustive(options, *threads, &settings),
        _ => seeded(options, *threads, &settings),
    };
    say(&json!({"is": "time", "seconds": begun.elapsed().as_secs_f64()}));
    done
}

/// Prints one line. Who closed the pipe does not want to know.
fn say(line: &Value) {
    let _ = writeln!(io::stdout().lock(), "{line}");
}

/// The settings that the options name.
fn chosen(options: &Options) -> Result<Vec<Setting>, String> {
    let chips = match (&options.profile, &options.preset) {
        (Some(profile), _) => vec![Chip::Profile(profile.parse()?)],
        (_, Some(preset)) => vec![Chip::Preset(preset.parse()?)],
        _ => Profile::ALL.map(Chip::Profile).to_vec(),
    };
    let named: Vec<_> = cases()
        .filter(|case| case.name.contains(&options.case))
        .filter(|case| !options.skip.iter().any(|name| name == case.name))
        .collect();
    if named.is_empty() {
        return Err(format!(
            "--case {}: no case has this in its name",
            options.case
        ));
    }
    let mut settings = Vec::new();
    for case in named {
        let mut sizes = options
            .cores
            .map_or_else(|| sizes(case), |cores| vec![cores]);
        sizes.retain(|cores| (case.min_cores..=case.max_cores).contains(cores));
        for cores in sizes {
            settings.extend(chips.iter().map(|&chip| Setting { case, cores, chip }));
        }
    }
    settings.retain(Setting::fits);
    let bytes = |setting: &Setting| {
        let config = setting.config();
        u64::from(config.cores) * (u64::from(config.memory_size) + u64::from(config.buffer_size))
    };
    if let Some(large) = settings.iter().find(|setting| bytes(setting) >= 1 << 32) {
        return Err(format!(
            "--cores {}: more than 4 GiB of simulated memory",
            large.cores
        ));
    }
    if options.seed.checked_add(options.schedules).is_none() {
        return Err(format!(
            "--seed {}: there are not so many seeds behind it",
            options.seed
        ));
    }
    if options.strategy == Strategy::Exhaustive && options.preemptions.is_none() {
        // Others would not end; with bounded preemptions they may be tried.
        settings.retain(|setting| is_small(setting.case));
        if options.cores.is_none() {
            settings.retain(|setting| setting.cores <= 4);
        }
    }
    if settings.is_empty() {
        return Err(match options.strategy {
            Strategy::Exhaustive if options.preemptions.is_none() => {
                "no such case is small enough to be tried in every schedule; choose one of small.*, or give --preemptions".into()
            }
            _ => "no case of that name runs on so many cores of such a chip".into(),
        });
    }
    Ok(settings)
}

/// Each setting gets its share of the schedules, each with seeds of its own.
fn seeded(options: &Options, threads: usize, settings: &[Setting]) -> bool {
    let number = settings.len() as u64;
    let total = options.schedules.max(1);
    let (mut done, mut first) = (0, options.seed);
    for (index, setting) in (0..).zip(settings) {
        let share = total * (index + 1) / number - total * index / number;
        let begun = Instant::now();
        let (mut runs, mut steps) = (0, 0);
        while runs < share {
            let wanted = CHUNK.min(share - runs);
            let seeds = first..first + wanted;
            first = seeds.end;
            let config = Config {
                schedule: match options.strategy {
                    Strategy::Random => Schedule::Random,
                    Strategy::Pct => Schedule::Pct { depth: 3 },
                    _ => Schedule::Mixed,
                },
                ..setting.config()
            };
            let swept = setting.add_to(sweep(seeds).threads(threads), config).run();
            runs += swept.runs;
            steps += swept.steps;
            if let Some(report) = swept.failure {
                failed(setting, &report, done + runs);
                return false;
            }
            say(&json!({"is": "progress", "done": done + runs, "total": total}));
            if swept.runs < wanted {
                // The last line of a report is repeated (`FLAGPOST_SIM_REPLAY`): it names one run,
                // of this setting or of another one.
                break;
            }
        }
        done += runs;
        say(&json!({
            "is": "result", "setting": setting.to_string(), "case": setting.case.name,
            "cores": setting.cores, "chip": setting.chip.to_string(),
            "schedules": runs, "steps": steps, "seconds": begun.elapsed().as_secs_f64(),
        }));
    }
    true
}

/// Every setting in every schedule within the bounds. Threads take one setting after the other.
fn exhaustive(options: &Options, threads: usize, settings: &[Setting]) -> bool {
    let next = AtomicUsize::new(0);
    let (send, results) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            let (send, next) = (send.clone(), &next);
            scope.spawn(move || {
                // ORDERING: Relaxed: only that each number is drawn once counts.
                while let Some(setting) = settings.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let begun = Instant::now();
                    let found = search(options, setting);
                    if send.send((*setting, found, begun.elapsed())).is_err() {
                        return;
                    }
                }
            });
        }
        drop(send);
        let mut done = 0;
        let mut complete = true;
        for (setting, found, time) in results {
            if let Some(mut report) = found.failure {
                report.case = setting.to_string();
                // Nobody draws another.
                next.store(settings.len(), Ordering::Relaxed);
                failed(&setting, &report, found.runs);
                return false;
            }
            complete &= found.complete;
            say(&json!({
                "is": "result", "setting": setting.to_string(), "case": setting.case.name,
                "cores": setting.cores, "chip": setting.chip.to_string(),
                "epochs": setting.case.epochs,
                "bounds": found.bounds.to_string(), "complete": found.complete,
                "states": found.states, "runs": found.runs, "steps": found.steps,
                "schedules": found.schedules.to_string(), "seconds": time.as_secs_f64(),
            }));
            done += 1;
            say(&json!({"is": "progress", "done": done, "total": settings.len()}));
        }
        complete
    })
}

/// Tries all of one setting.
fn search(options: &Options, setting: &Setting) -> Explored {
    let bounds = Bounds {
        evictions: options.evictions,
        fills: options.fills,
        leaves: options.leaves,
        expiries: options.expiries,
        refusals: options.refusals,
        preemptions: options.preemptions,
        set_up: true,
        max_states: options.states,
        ..Bounds::default()
    };
    let config = Config {
        schedule: Schedule::Random,
        seed: options.seed,
        ..setting.config()
    };
    setting.explore(&bounds, config)
}

/// Tells of a failure, and of the simplest one like it.
fn failed(setting: &Setting, report: &Report, after: u64) {
    say(&json!({
        "is": "failure", "setting": setting.to_string(), "schedules": after,
        "account": report.to_string(), "trace": trace::write(setting, report),
    }));
    match shrink::shrink(setting, report) {
        Some((small, bounds)) => say(&json!({
            "is": "shrunk", "setting": small.case, "bounds": bounds.to_string(),
            "choices": small.config.choices.len(), "switches": small.config.choices.switches(),
            "account": small.to_string(), "trace": trace::write(setting, &small),
        })),
        None => say(&json!({"is": "unshrunk"})),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use flagpost_sim::Preset;

    use crate::Cli;

    #[test]
    fn help_names_every_chip() {
        let mut cli = Cli::command();
        let explore = cli.find_subcommand_mut("explore").expect("a command");
        let help = explore.render_long_help().to_string();
        for preset in Preset::ALL {
            assert!(help.contains(&preset.to_string()), "{preset}: {help}");
        }
    }
}
