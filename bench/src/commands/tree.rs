//! `cargo xtask bench tree`.

use clap::Args;
use flagpost_bench::tree::{CORES, measure};
use flagpost_common::Json;
use flagpost_sim::{Latencies, Report};

use super::print;

/// A number per core is added up over a 16-ary tree: notified access with a counting request, send
/// and receive.
///
/// Prints core cycles from the common beginning until core 0 has the sum. The same on any host.
#[derive(Args, Debug)]
pub(crate) struct Tree {
    /// Cores of the chip, up to 1024: one or more, with commas [default: 17,48,256,1024]
    #[arg(long, value_name = "N,..", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(2..=1024), allow_negative_numbers = true)]
    cores: Vec<u16>,
    /// What accesses cost: scc-eas, scc-barrelfish, cxl; et and tensix-bh are assumptions only
    #[arg(long, value_name = "NAME", default_value = "scc-eas")]
    latencies: Latencies,
    /// One JSON object per variant and number of cores, a line each
    #[arg(long)]
    json: bool,
}

impl Tree {
    pub(crate) fn run(&self) -> Result<(), Box<Report>> {
        let sizes = match &self.cores[..] {
            [] => &CORES,
            cores => cores,
        };
        let title = format!(
            "core cycles until core 0 has the sum, latencies {}",
            self.latencies
        );
        let object = |variant: &str, cores, cycles| {
            let object = Json::new().text("variant", variant);
            object.number("cores", cores).number("cycles", cycles)
        };
        let title = (!self.json).then_some((&*title, "cores"));
        print(title, sizes, object, |cores| measure(cores, self.latencies))
    }
}
