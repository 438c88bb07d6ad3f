//! `cargo xtask bench micro`.

use std::cell::Cell;

use clap::Args;
use flagpost_bench::micro::{ALL, Experiment};
use flagpost_programs::console::Console;
use flagpost_sim::Report;

use flagpost_common::Json;

use super::print;

/// The papers' microbenchmarks, in simulated time: latency, bandwidth, overlap, rate, atomics,
/// fence, ring, epochs, locks, matching.
///
/// Each is a table over one number. The same arguments give the same digits on any host.
#[derive(Args, Debug)]
pub(crate) struct Micro {
    /// Only this one
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(ALL.map(|experiment| experiment.name)))]
    name: Option<String>,
    /// Bytes, ranks, neighbours or notifications, up to the largest usual ones: one or more, with
    /// commas
    #[arg(long, value_name = "N,..", value_delimiter = ',', requires = "name")]
    at: Vec<u64>,
    /// One JSON object per number and variant, a line each
    #[arg(long)]
    json: bool,
}

impl Micro {
    fn chosen(&self) -> impl Iterator<Item = &'static Experiment> {
        let name = self.name.as_deref();
        ALL.iter()
            .filter(move |experiment| name.is_none_or(|name| name == experiment.name))
    }

    /// `Ok` if the experiment takes these arguments.
    pub(crate) fn check(&self) -> Result<(), String> {
        let mut all = self
            .chosen()
            .flat_map(|experiment| self.at.iter().map(move |&at| experiment.check(at)));
        all.find(Result::is_err).unwrap_or(Ok(()))
    }

    pub(crate) fn run(&self) -> Result<(), Box<Report>> {
        for experiment in self.chosen() {
            self.print(experiment)?;
        }
        Ok(())
    }

    fn print(&self, experiment: &Experiment) -> Result<(), Box<Report>> {
        let &Experiment {
            name, over, unit, ..
        } = experiment;
        let points = match &self.at[..] {
            [] => experiment.points,
            at => at,
        };
        let object = |variant: &str, point, cost| {
            let object = Json::new()
                .text("experiment", name)
                .text("variant", variant);
            let object = object.text("over", over).number("at", point);
            object.text("unit", unit).number("value", cost)
        };
        let title = format!("{name}, in {unit}");
        let (console, done) = (Console::new(), Cell::new(0));
        let title = (!self.json).then_some((&*title, over));
        print(title, points, object, |point| {
            console.progress(done.get(), points.len() as u64, name);
            done.update(|done| done + 1);
            let costs = (experiment.at)(point);
            console.clear();
            costs
        })
    }
}
