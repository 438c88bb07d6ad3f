//! `cargo xtask bench micro`.

use clap::Args;
use flagpost_bench::micro::{ALL, Experiment};
use flagpost_programs::console::Console;
use flagpost_sim::Report;

use flagpost_common::{Json, out, table};

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
        let points = match &self.at[..] {
            [] => experiment.points,
            at => at,
        };
        let (mut head, mut rows) = (vec![experiment.over], Vec::new());
        let console = Console::new();
        for (done, &point) in (0..).zip(points) {
            console.progress(done, points.len() as u64, experiment.name);
            let costs = (experiment.at)(point)?;
            for &(variant, cost) in &costs {
                if !head.contains(&variant) {
                    head.push(variant);
                }
                if self.json {
                    let object = Json::new()
                        .text("experiment", experiment.name)
                        .text("variant", variant)
                        .text("over", experiment.over)
                        .number("at", point)
                        .text("unit", experiment.unit);
                    object.number("value", cost).print();
                }
            }
            rows.push((point, costs));
        }
        console.clear();
        if self.json {
            return Ok(());
        }
        let rows: Vec<Vec<String>> = rows
            .iter()
            .map(|(point, costs)| {
                let cost = |variant: &&str| {
                    let found = costs.iter().find(|(known, _)| known == variant);
                    found.map_or("-".into(), |(_, cost)| cost.to_string())
                };
                let costs = head[1..].iter().map(cost);
                std::iter::once(point.to_string()).chain(costs).collect()
            })
            .collect();
        out(&format!("{}, in {}", experiment.name, experiment.unit));
        table(&head, &rows);
        Ok(())
    }
}
