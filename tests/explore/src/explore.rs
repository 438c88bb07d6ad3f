//! `explore`: settings under many schedules, or under all of them.
//!
//! Prints a JSON object per line, a kind (`"is"`) in each; `cargo xtask explore` makes a table of them.
//! The outcome does not depend on the threads.

use std::io::{self, Write};
use std::process::exit;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use flagpost_explore::{Setting, cases, is_small, program, settings_of};
use flagpost_sim::{Bounds, Config, Explored, Method, Profile, Report, Schedule, Sim, sweep};
use serde_json::{Value, json};

use crate::{shrink, trace};

/// Seeds between two lines of progress.
const CHUNK: u64 = 500;

/// How schedules are chosen.
#[derive(Copy, Clone, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Strategy {
    /// Random walk, and PCT of depth 2 and 3, in turn by seed.
    Mixed,
    Random,
    Pct,
    Exhaustive,
}

/// Runs settings under many schedules, or under all
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Cases whose name contains this
    #[arg(long, value_name = "NAME", default_value = "")]
    case: String,
    #[arg(long, value_name = "N")]
    cores: Option<u16>,
    #[arg(long, value_name = "PROFILE")]
    profile: Option<String>,
    #[arg(long, value_name = "N", default_value = "100000")]
    schedules: u64,
    #[arg(long, value_name = "S", default_value = "0")]
    seed: u64,
    #[arg(long, value_enum, default_value = "mixed")]
    strategy: Strategy,
    #[arg(long, value_name = "N", default_value = "0")]
    evictions: u8,
    #[arg(long, value_name = "N", default_value = "0")]
    fills: u8,
    #[arg(long, value_name = "N", default_value = "0")]
    leaves: u8,
    #[arg(long, value_name = "N", default_value = "0")]
    expiries: u8,
    #[arg(long, value_name = "N", default_value = "0")]
    refusals: u8,
    #[arg(long, value_name = "N")]
    preemptions: Option<u8>,
    #[arg(long, value_name = "N", default_value = "1000000")]
    states: u64,
    #[arg(long, value_name = "N", default_value = "2")]
    threads: usize,
}

/// Runs the command; `false` if anything failed.
pub(crate) fn run(arguments: &Arguments) -> bool {
    let settings = match chosen(arguments) {
        Ok(settings) => settings,
        Err(error) => {
            say(&json!({"is": "unusable", "why": error}));
            exit(2);
        }
    };
    let begun = Instant::now();
    let done = match arguments.strategy {
        Strategy::Exhaustive => exhaustive(arguments, &settings),
        _ => seeded(arguments, &settings),
    };
    say(&json!({"is": "time", "seconds": begun.elapsed().as_secs_f64()}));
    done
}

/// Prints one line. Who closed the pipe does not want to know.
fn say(line: &Value) {
    let _ = writeln!(io::stdout().lock(), "{line}");
}

/// The settings that the arguments name.
fn chosen(arguments: &Arguments) -> Result<Vec<Setting>, String> {
    let profile = arguments.profile.as_deref().map(str::parse::<Profile>);
    let profile = profile.transpose()?;
    let named: Vec<_> = cases()
        .iter()
        .filter(|case| case.name.contains(&arguments.case))
        .collect();
    if named.is_empty() {
        return Err(format!(
            "--case {}: no case has this in its name",
            arguments.case
        ));
    }
    let mut settings: Vec<Setting> = match arguments.cores {
        None => named.into_iter().flat_map(settings_of).collect(),
        Some(cores) => {
            let fits = |case: &&_| {
                let case: &flagpost_explore::Case = case;
                (case.min_cores..=case.max_cores).contains(&cores)
            };
            let on = |case| {
                Profile::ALL.map(|profile| Setting {
                    case,
                    cores,
                    profile,
                })
            };
            named.into_iter().filter(fits).flat_map(on).collect()
        }
    };
    settings.retain(|setting| profile.is_none_or(|profile| profile == setting.profile));
    if arguments.strategy == Strategy::Exhaustive && arguments.preemptions.is_none() {
        // Others would not end; with bounded preemptions they may be tried.
        settings.retain(|setting| is_small(setting.case));
        if arguments.cores.is_none() {
            settings.retain(|setting| setting.cores <= 4);
        }
    }
    if settings.is_empty() {
        return Err(match arguments.strategy {
            Strategy::Exhaustive if arguments.preemptions.is_none() => {
                "no such case is small enough to be tried in every schedule; choose one of small.*, or give --preemptions".into()
            }
            _ => "no case of that name runs on so many cores".into(),
        });
    }
    Ok(settings)
}

/// Each setting gets its share of the schedules, each with seeds of its own.
fn seeded(arguments: &Arguments, settings: &[Setting]) -> bool {
    let number = settings.len() as u64;
    let total = arguments.schedules.max(1);
    let (mut done, mut first) = (0, arguments.seed);
    for (index, setting) in (0..).zip(settings) {
        let share = total * (index + 1) / number - total * index / number;
        let begun = Instant::now();
        let (mut runs, mut steps) = (0, 0);
        while runs < share {
            let seeds = first..first + CHUNK.min(share - runs);
            first = seeds.end;
            let config = Config {
                schedule: match arguments.strategy {
                    Strategy::Random => Schedule::Random,
                    Strategy::Pct => Schedule::Pct { depth: 3 },
                    _ => Schedule::Mixed,
                },
                ..setting.config()
            };
            let swept = sweep(seeds)
                .threads(arguments.threads)
                .case(setting.to_string(), config, |core| {
                    program(setting.case, core)
                })
                .run();
            runs += swept.runs;
            steps += swept.steps;
            if let Some(report) = swept.failure {
                failed(setting, &report, done + runs);
                return false;
            }
            say(&json!({"is": "progress", "done": done + runs, "total": total}));
        }
        done += runs;
        say(&json!({
            "is": "result", "setting": setting.to_string(), "case": setting.case.name,
            "cores": setting.cores, "profile": setting.profile.to_string(),
            "schedules": runs, "steps": steps, "seconds": begun.elapsed().as_secs_f64(),
        }));
    }
    true
}

/// Every setting in every schedule within the bounds. Threads take one setting after the other.
fn exhaustive(arguments: &Arguments, settings: &[Setting]) -> bool {
    let next = AtomicUsize::new(0);
    let (send, results) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..arguments.threads.max(1) {
            let (send, next) = (send.clone(), &next);
            scope.spawn(move || {
                // ORDERING: Relaxed: only that each number is drawn once counts.
                while let Some(setting) = settings.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let begun = Instant::now();
                    let found = search(arguments, setting);
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
                "cores": setting.cores, "profile": setting.profile.to_string(),
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
fn search(arguments: &Arguments, setting: &Setting) -> Explored {
    let bounds = Bounds {
        evictions: arguments.evictions,
        fills: arguments.fills,
        leaves: arguments.leaves,
        expiries: arguments.expiries,
        refusals: arguments.refusals,
        preemptions: arguments.preemptions,
        set_up: true,
        max_states: arguments.states,
        ..Bounds::default()
    };
    let config = Config {
        schedule: Schedule::Random,
        seed: arguments.seed,
        ..setting.config()
    };
    Sim::new(config).explore(&bounds, Method::States, false, |core| {
        program(setting.case, core)
    })
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
