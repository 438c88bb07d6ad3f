//! `explore`: settings under many schedules, or under all within bounds.
//!
//! Prints a row or a JSON object per setting, each failure with its trace as a file, and last the
//! sums. The outcome does not depend on the threads.

use std::fs;
use std::io::Error;
use std::process::exit;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use flagpost_common::{out, say};
use flagpost_explore::{Chip, Setting, cases, is_small, sizes};
use flagpost_programs::console::Console;
use flagpost_programs::{parallel, paths};
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
    /// No rows: only failures and the sums
    #[arg(long)]
    quiet: bool,
    #[arg(long, value_name = "N", default_value_t = crate::processors())]
    threads: usize,
}

/// Runs the command; `false` if anything failed, or not everything was tried.
pub(crate) fn run(arguments: &Arguments) -> bool {
    let options = &arguments.options;
    let settings = match chosen(options) {
        Ok(settings) => settings,
        Err(error) => {
            say(&format!("error: {error}"));
            exit(2);
        }
    };
    let console: &Console = Box::leak(Box::new(Console::new()));
    console.watch();
    console.step("exploring");
    let mut totals = Totals {
        console,
        json: options.json,
        quiet: arguments.quiet,
        exhaustive: options.strategy == Strategy::Exhaustive,
        settings: 0,
        runs: 0,
        steps: 0,
        incomplete: 0,
        failed: false,
    };
    let begun = Instant::now();
    match options.strategy {
        Strategy::Exhaustive => exhaustive(options, arguments.threads, &settings, &mut totals),
        _ => seeded(options, arguments.threads, &settings, &mut totals),
    }
    totals.show(begun.elapsed());
    !totals.failed && totals.incomplete == 0 && totals.settings > 0
}

/// The settings that the options name.
fn chosen(options: &Options) -> Result<Vec<Setting>, String> {
    let chips = match (&options.profile, &options.preset) {
        (Some(profile), _) => vec![Chip::Profile(profile.parse()?)],
        (_, Some(preset)) => vec![Chip::Preset(preset.parse()?)],
        _ => Profile::ALL.map(Chip::Profile).to_vec(),
    };
    let is_case = |name: &&String| cases().any(|case| case.name == **name);
    if let Some(name) = options.skip.iter().find(|name| !is_case(name)) {
        return Err(format!("--skip {name}: no case is called so"));
    }
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
fn seeded(options: &Options, threads: usize, settings: &[Setting], totals: &mut Totals) {
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
                return totals.failed(setting, &report, done + runs);
            }
            totals.console.progress(done + runs, total, "schedules");
            if swept.runs < wanted {
                // The last line of a report is repeated (`FLAGPOST_SIM_REPLAY`): it names one run,
                // of this setting or of another one.
                break;
            }
        }
        done += runs;
        let seconds = begun.elapsed().as_secs_f64();
        let name = setting.to_string();
        let each = steps.checked_div(runs).unwrap_or(0);
        let row = format!("{name:<40} {runs:>9} schedules of {each:>7} steps  {seconds:>7.1} s");
        let object = json!({
            "is": "result", "setting": name, "case": setting.case.name,
            "cores": setting.cores, "chip": setting.chip.to_string(),
            "schedules": runs, "steps": steps, "seconds": seconds,
        });
        totals.add(runs, steps, true, &row, &object);
    }
}

/// Every setting in every schedule within the bounds. Threads take one setting after the other.
fn exhaustive(options: &Options, threads: usize, settings: &[Setting], totals: &mut Totals) {
    let totals = Mutex::new(totals);
    let each = |setting: &Setting| {
        let begun = Instant::now();
        let found = search(options, setting);
        let mut totals = totals.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut report) = found.failure.filter(|_| !totals.failed) {
            report.case = setting.to_string();
            totals.failed(setting, &report, found.runs);
        }
        if totals.failed {
            // No other is begun.
            return Err(Error::other("a setting has failed").into());
        }
        let (name, epochs, seconds) = (
            setting.to_string(),
            setting.case.epochs,
            begun.elapsed().as_secs_f64(),
        );
        let (states, runs, schedules) = (found.states, found.runs, &found.schedules);
        let (bounds, complete) = (&found.bounds, found.complete);
        let all = if complete { "all" } else { "NOT all" };
        let row = format!(
            "{name:<36} {all:>7}  {epochs:>1} epochs {states:>9} states {runs:>9} runs \
             {seconds:>7.1} s  {bounds}  {schedules} schedules"
        );
        let object = json!({
            "is": "result", "setting": name, "case": setting.case.name,
            "cores": setting.cores, "chip": setting.chip.to_string(), "epochs": epochs,
            "bounds": bounds.to_string(), "complete": complete,
            "states": states, "runs": runs, "steps": found.steps,
            "schedules": schedules.to_string(), "seconds": seconds,
        });
        totals.add(runs, found.steps, complete, &row, &object);
        let (done, all) = (totals.settings, settings.len() as u64);
        totals.console.progress(done, all, "settings");
        Ok(())
    };
    // The totals know it, too.
    let _ = parallel::each(settings, threads, each, |_, ()| {});
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

/// What all settings together took, and how it is told.
struct Totals<'a> {
    console: &'a Console,
    json: bool,
    quiet: bool,
    exhaustive: bool,
    settings: u64,
    runs: u64,
    steps: u64,
    incomplete: u64,
    failed: bool,
}

impl Totals<'_> {
    /// A setting is done.
    fn add(&mut self, runs: u64, steps: u64, complete: bool, row: &str, object: &Value) {
        self.settings += 1;
        self.runs += runs;
        self.steps += steps;
        self.incomplete += u64::from(!complete);
        if self.json {
            out(&object.to_string());
        } else if !self.quiet {
            out(row);
        }
    }

    /// Tells of a failure, and of the simplest one like it.
    fn failed(&mut self, setting: &Setting, report: &Report, after: u64) {
        self.failed = true;
        let name = setting.to_string();
        let object = json!({"is": "failure", "setting": name, "schedules": after});
        self.account(setting, report, &format!("{name}.json"), object);
        self.console.step("searching for a simpler one");
        let found = shrink::shrink(setting, report);
        self.console.clear();
        let Some((small, bounds)) = found else {
            if !self.json {
                out("\nno simpler run that fails like it was found");
            }
            return;
        };
        let choices = &small.config.choices;
        let (number, switches) = (choices.len(), choices.switches());
        if !self.json {
            out(&format!(
                "\nthe simplest like it that was found: {number} choices, {switches} switches, {bounds}"
            ));
        }
        let object = json!({
            "is": "shrunk", "setting": small.case, "bounds": bounds.to_string(),
            "choices": number, "switches": switches,
        });
        self.account(
            setting,
            &small,
            &format!("{}-small.json", small.case),
            object,
        );
    }

    /// A failing run: its account, and its trace as a file.
    fn account(&self, setting: &Setting, report: &Report, name: &str, mut object: Value) {
        self.console.clear();
        let trace = trace::write(setting, report);
        if self.json {
            object["account"] = report.to_string().into();
            object["trace"] = trace.clone();
            out(&object.to_string());
        } else {
            out(&report.to_string());
        }
        let traces = paths::target().join("traces");
        let file = traces.join(name.replace('/', "-"));
        let written =
            fs::create_dir_all(&traces).and_then(|()| fs::write(&file, format!("{trace:#}\n")));
        let file = paths::shorten(&file.display().to_string());
        match written {
            Ok(()) => say(&format!("repeat it with: cargo xtask replay {file}")),
            Err(why) => say(&format!("error: cannot write {file}: {why}")),
        }
    }

    fn show(&self, time: Duration) {
        self.console.clear();
        let (settings, runs, steps) = (self.settings, self.runs, self.steps);
        let seconds = time.as_secs_f64();
        let rate = |count: u64| count as f64 / seconds.max(1e-9);
        if self.json {
            let object = json!({
                "settings": settings, "runs": runs, "steps": steps, "seconds": seconds,
                "incomplete": self.incomplete, "failed": self.failed,
            });
            return out(&object.to_string());
        }
        let what = if self.exhaustive { "runs" } else { "schedules" };
        out(&format!(
            "{settings} settings, {runs} {what}, {steps} steps in {seconds:.1} s: {:.0} {what}/s, \
             {:.1} million steps/s",
            rate(runs),
            rate(steps) / 1e6
        ));
        if self.incomplete > 0 {
            out(&format!(
                "{} settings were NOT tried in every schedule: raise --states",
                self.incomplete
            ));
        }
        out(if self.failed {
            "FAILED"
        } else {
            "nothing failed"
        });
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};
    use flagpost_sim::Preset;

    use super::chosen;
    use crate::{Cli, Commands};

    #[test]
    fn a_case_is_skipped_by_its_whole_name() {
        let settings = |skip| {
            let words = ["", "explore", "--case", "small.bells.ping_pong", "--skip"];
            match Cli::parse_from(words.into_iter().chain([skip])).command {
                Commands::Explore(arguments) => chosen(&arguments.options),
                _ => unreachable!(),
            }
        };
        assert!(!settings("small.ping_pong").expect("a case").is_empty());
        let refused = settings("small.bells").err();
        assert_eq!(
            refused.as_deref(),
            Some("--skip small.bells: no case is called so")
        );
    }

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
