//! `cargo xtask bench cross`.

use clap::Args;
use flagpost_bench::cross::{CORES_MAX, measure};
use flagpost_common::{Json, out, table};
use flagpost_sim::Report;

/// With how many neighbours an epoch takes longer than a fence of all ranks.
///
/// Prints means in core cycles, in simulated time. The same on any host.
#[derive(Args, Debug)]
pub(crate) struct Cross {
    /// Ranks, 2 to 48: one or more, with commas
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "4,8,16,32,48", value_parser = clap::value_parser!(u16).range(2..=i64::from(CORES_MAX)), allow_negative_numbers = true)]
    cores: Vec<u16>,
    /// One JSON object per number of ranks, a line each
    #[arg(long)]
    json: bool,
}

impl Cross {
    pub(crate) fn run(&self) -> Result<(), Box<Report>> {
        let mut rows = Vec::new();
        for &cores in &self.cores {
            let found = measure(cores)?;
            let (k, epoch) = found.epoch.unzip();
            let text = |number: Option<u64>| number.map_or("none".into(), |n| n.to_string());
            if self.json {
                let object = Json::new()
                    .number("cores", cores)
                    .number("fence", found.fence);
                object.number("neighbours", k.unwrap_or(0)).print();
            }
            rows.push(vec![
                cores.to_string(),
                found.fence.to_string(),
                text(k.map(u64::from)),
                text(epoch),
                found.before.to_string(),
            ]);
        }
        if !self.json {
            out("core cycles, latencies scc-eas, no data, means");
            let head = ["cores", "fence", "neighbours", "epoch", "with one less"];
            table(&head, &rows);
        }
        Ok(())
    }
}
