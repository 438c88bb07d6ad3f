//! `cargo xtask bench tree`.

use clap::Args;
use flagpost_bench::tree::{CORES, Variant, measure};
use flagpost_sim::{Latencies, Report};

use flagpost_common::{Json, out, table};

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
        let mut rows = Vec::new();
        for &cores in sizes {
            let mut row = vec![cores.to_string()];
            for variant in Variant::ALL {
                let cycles = measure(variant, cores, self.latencies)?;
                if self.json {
                    let object = Json::new()
                        .text("variant", &variant.to_string())
                        .number("cores", cores)
                        .number("cycles", cycles);
                    object.print();
                }
                row.push(cycles.to_string());
            }
            rows.push(row);
        }
        if !self.json {
            out(&format!(
                "core cycles until core 0 has the sum, latencies {}",
                self.latencies
            ));
            let names = Variant::ALL.map(|variant| variant.to_string());
            let head: Vec<&str> = std::iter::once("cores")
                .chain(names.iter().map(String::as_str))
                .collect();
            table(&head, &rows);
        }
        Ok(())
    }
}
