//! `flagpost-figures`: measures on the simulator, and draws. `cargo xtask figures` builds it.
//!
//! Each figure has a plan: independent runs of the simulator, and how their values become a
//! picture. The runs of all figures asked for share two threads. The same program draws the same
//! bytes on every host, so `--check` can compare.

mod figure;
mod figures;
mod look;
mod published;

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, Result, bail};
use clap::Parser;
use flagpost_common::out;
use flagpost_programs::console::Console;
use flagpost_programs::parallel;

use crate::figure::Plan;

/// Draws figures from the simulator into docs/figures, beside what the sources published
///
/// All values are measured anew, in simulated time: the same bytes on every host.
#[derive(Parser, Debug)]
#[command(name = "cargo xtask figures", bin_name = "cargo xtask figures")]
struct Arguments {
    /// Figures [default: all]
    names: Vec<String>,
    /// Compare with the files instead of writing them; status 1 if a byte differs
    #[arg(long)]
    check: bool,
    /// Say which figures there are
    #[arg(long)]
    list: bool,
}

/// Where they go.
const FIGURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/figures");

/// Most threads: the simulator takes the memory of a chip on each.
const THREADS: usize = 2;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            flagpost_common::say(&format!("error: {why:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<bool> {
    let mut plans = figures::all();
    let names: Vec<_> = plans.iter().map(|plan| plan.name).collect();
    if arguments.list {
        names.iter().for_each(|name| out(name));
        return Ok(true);
    }
    if let Some(name) = arguments
        .names
        .iter()
        .find(|name| !names.contains(&&***name))
    {
        bail!("there is no figure {name}; figures: {}", names.join(", "));
    }
    if !arguments.names.is_empty() {
        plans.retain(|plan| arguments.names.iter().any(|name| name == plan.name));
    }
    let console = Console::new();
    let drawn = drawn(&plans, &console)?;
    console.clear();
    let mut same = true;
    for (plan, text) in plans.iter().zip(drawn) {
        let path = Path::new(FIGURES).join(plan.name).with_extension("svg");
        let (name, before) = (plan.name, fs::read_to_string(&path).unwrap_or_default());
        if before == text {
            out(&format!("{name}: as it was"));
        } else if arguments.check {
            same = false;
            out(&format!(
                "{name}: DIFFERS; cargo xtask figures {name} draws it anew"
            ));
        } else {
            fs::create_dir_all(FIGURES)?;
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
            out(&format!("{name}: written"));
        }
    }
    Ok(same)
}

/// Their files.
fn drawn(plans: &[Plan], console: &Console) -> Result<Vec<String>> {
    let mut tasks: Vec<_> = plans
        .iter()
        .flat_map(|plan| &plan.tasks)
        .enumerate()
        .collect();
    let total: u64 = tasks.iter().map(|(_, task)| task.cost).sum();
    // The longest first, so that no thread has one left at the end.
    tasks.sort_by_key(|(_, task)| std::cmp::Reverse(task.cost));
    let done = AtomicU64::new(0);
    let measure = |&(number, task): &(usize, &figure::Task)| {
        let values = (task.run)()?;
        // ORDERING: Relaxed: only the sum counts.
        done.fetch_add(task.cost, Ordering::Relaxed);
        Ok((number, values))
    };
    let told = |_, _: &_| {
        let seconds = done.load(Ordering::Relaxed) / 1000;
        console.progress(seconds, total / 1000, "seconds' worth of runs");
    };
    let mut values = parallel::each(&tasks, THREADS, measure, told)?;
    values.sort_by_key(|(number, _)| *number);
    let mut values = values.into_iter().map(|(_, values)| values);
    let draw = |plan: &Plan| {
        let values: Vec<_> = values.by_ref().take(plan.tasks.len()).collect();
        look::draw(&(plan.figure)(&values))
    };
    plans.iter().map(draw).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Quick ones, drawn anew.
    const QUICK: [&str; 2] = ["fence-or-pscw", "gets"];

    #[test]
    fn quick_figures_are_those_in_docs_to_the_byte() {
        let arguments = Arguments {
            names: QUICK.map(str::to_owned).to_vec(),
            check: true,
            list: false,
        };
        assert!(run(&arguments).unwrap());
    }

    #[test]
    fn each_figure_is_in_docs_and_each_file_there_is_one() {
        let mut plans: Vec<String> = figures::all()
            .iter()
            .map(|plan| format!("{}.svg", plan.name))
            .collect();
        let files = fs::read_dir(FIGURES)
            .unwrap()
            .map(|file| file.unwrap().file_name());
        let mut files: Vec<String> = files.map(|name| name.into_string().unwrap()).collect();
        files.retain(|name| name.ends_with(".svg"));
        plans.sort();
        files.sort();
        assert_eq!(files, plans);
    }
}
