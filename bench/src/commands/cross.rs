//! `cargo xtask bench cross`.

use clap::Args;
use flagpost_bench::cross::{CORES_MAX, epoch, fence, measure};
use flagpost_common::{Json, out, table};
use flagpost_sim::Report;

const TITLE: &str = "core cycles, latencies scc-eas, no data, means";

/// With how many neighbours an epoch takes longer than a fence of all ranks.
///
/// Prints means in core cycles, in simulated time. The same on any host.
#[derive(Args, Debug)]
pub(crate) struct Cross {
    /// Ranks, 2 to 48: one or more, with commas
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "4,8,16,32,48", value_parser = clap::value_parser!(u16).range(2..=i64::from(CORES_MAX)), allow_negative_numbers = true)]
    cores: Vec<u16>,
    /// Epochs with these numbers of neighbours, in place of where they cross
    #[arg(long, value_name = "K,..", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..i64::from(CORES_MAX)), allow_negative_numbers = true, conflicts_with = "json")]
    neighbours: Vec<u16>,
    /// One JSON object per number of ranks, a line each
    #[arg(long)]
    json: bool,
}

impl Cross {
    pub(crate) fn run(&self) -> Result<(), Box<Report>> {
        if !self.neighbours.is_empty() {
            return self.each();
        }
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
            out(TITLE);
            let head = ["cores", "fence", "neighbours", "epoch", "with one less"];
            table(&head, &rows);
        }
        Ok(())
    }

    /// Epochs with each number of neighbours that a world has.
    fn each(&self) -> Result<(), Box<Report>> {
        let mut rows = Vec::new();
        for &cores in &self.cores {
            let fence = fence(cores)?.to_string();
            for &k in self.neighbours.iter().filter(|&&k| k < cores) {
                let epoch = epoch(cores, k)?.to_string();
                rows.push(vec![cores.to_string(), fence.clone(), k.to_string(), epoch]);
            }
        }
        out(TITLE);
        table(&["cores", "fence", "neighbours", "epoch"], &rows);
        Ok(())
    }
}
