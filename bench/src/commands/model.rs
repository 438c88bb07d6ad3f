//! `cargo xtask bench model`.

use clap::Args;
use flagpost_bench::model::{Model, check, costs, simulated};
use flagpost_common::{Json, out, table};
use flagpost_model::Costs;
use flagpost_programs::console::Console;
use flagpost_sim::Report;

/// Cost models: each call as a line over bytes, elements, neighbours or ranks, fitted to
/// `bench micro`; and the rule that picks a fence or an epoch.
///
/// Core cycles of the simulated SCC: the same on any host. `r2` is the share of the variance that
/// the line explains, `worst` the largest distance of a point from it in % of the point. The
/// published functions are those of other machines.
#[derive(Args, Debug)]
pub(crate) struct Models {
    /// Instead, ask the rule for so many random worlds, and measure a fence and an epoch in each
    #[arg(long, value_name = "PAIRS", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    check: Option<u32>,
    /// The seed of the random worlds
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,
    /// One JSON object per model, a line each
    #[arg(long)]
    json: bool,
}

impl Models {
    pub(crate) fn run(&self) -> Result<(), Box<Report>> {
        let console = Console::new();
        if let Some(pairs) = self.check {
            let tell = |done, all| console.progress(done, all, "worlds");
            let found = check(&Costs::SCC, pairs, self.seed, &tell)?;
            console.clear();
            let share = 100.0 * f64::from(found.right) / f64::from(found.pairs);
            if self.json {
                let object = Json::new()
                    .text("model", "fence or pscw")
                    .number("seed", self.seed)
                    .number("pairs", found.pairs)
                    .number("right", found.right);
                object
                    .number("most", format_args!("{:.1}", found.most))
                    .print();
            } else {
                out(&format!(
                    "{} of {} random worlds: the faster one is picked, {share:.1} %; else at most {:.1} % are lost",
                    found.right, found.pairs, found.most
                ));
            }
            return Ok(());
        }
        let models = simulated(&|done, all| console.progress(done, all, "experiments"))?;
        console.clear();
        self.print(&models);
        if !self.json {
            let costs = costs()?;
            out(&format!(
                "an epoch with k neighbours: {} + {} k; a fence of up to 2 ranks, 3, 4, 6, 8, 12, ..: {:?}",
                costs.epoch.base, costs.epoch.slope, costs.fence
            ));
        }
        Ok(())
    }

    fn print(&self, models: &[Model]) {
        let mut rows = Vec::new();
        for model in models {
            let line = &model.line;
            let numbers = [
                ("base", format!("{:.0}", line.base)),
                ("slope", format!("{:.2}", line.slope)),
                ("r2", format!("{:.3}", line.r2)),
                ("worst", format!("{:.0}", line.worst)),
            ];
            if self.json {
                let object = Json::new()
                    .text("call", model.call)
                    .text("over", model.over)
                    .text("unit", "cycles");
                let object = numbers
                    .iter()
                    .fold(object, |object, (name, number)| object.number(name, number));
                object.text("published", model.published).print();
            }
            let [base, slope, r2, worst] = numbers.map(|(_, number)| number);
            let cells = [model.call.into(), base, slope, model.over.into(), r2, worst];
            rows.push([&cells[..], &[model.published.into()]].concat());
        }
        if !self.json {
            out("core cycles of the simulated SCC: base + slope x");
            table(
                &["call", "base", "slope", "x", "r2", "worst %", "published"],
                &rows,
            );
        }
    }
}
