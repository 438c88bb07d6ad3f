//! `cargo xtask bench pingpong`.

use clap::Args;
use flagpost_bench::pingpong::{BYTES_MAX, CORES_MAX, SIZES, Setup, Variant, measure};
use flagpost_sim::{Latencies, Report};

use flagpost_common::{Json, out, table};

/// Half of the time that a message takes there and back: notified access, PSCW, fences, send and
/// receive.
///
/// Prints means in core cycles, for two cores on neighbouring tiles. The receiver reads all of the
/// data. The same arguments give the same digits on any host.
#[derive(Args, Debug)]
pub(crate) struct Pingpong {
    /// Bytes of a message, multiples of 8: one or more, with commas
    /// [default: 8 to 65536 by powers of two]
    #[arg(long, value_name = "N,..", value_delimiter = ',', value_parser = size)]
    sizes: Vec<usize>,
    /// How messages travel: one or more, with commas
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Variant::ALL)]
    variants: Vec<Variant>,
    /// Distance of the two cores: 0 on one tile, 1 on neighbouring ones
    #[arg(long, value_name = "HOPS", default_value = "1", value_parser = clap::value_parser!(u16).range(..=1), allow_negative_numbers = true)]
    hops: u16,
    /// Cores of the world: 2 to 48, of which all but two do nothing, or fence
    #[arg(long, value_name = "N", default_value = "2", value_parser = clap::value_parser!(u16).range(2..=i64::from(CORES_MAX)), allow_negative_numbers = true)]
    cores: u16,
    /// What accesses cost: scc-eas, scc-barrelfish, cxl; et and tensix-bh are assumptions only
    #[arg(long, value_name = "NAME", default_value = "scc-eas")]
    latencies: Latencies,
    /// One JSON object per variant and size, a line each
    #[arg(long)]
    json: bool,
}

fn size(text: &str) -> Result<usize, String> {
    let bytes = text.trim().parse().ok();
    let bytes = bytes.filter(|bytes| (8..=BYTES_MAX).contains(bytes) && bytes % 8 == 0);
    bytes.ok_or_else(|| format!("not a multiple of 8 from 8 to {BYTES_MAX}"))
}

impl Pingpong {
    pub(crate) fn run(&self) -> Result<(), Box<Report>> {
        let sizes = match &self.sizes[..] {
            [] => &SIZES,
            sizes => sizes,
        };
        let mut rows = Vec::new();
        for &bytes in sizes {
            let mut row = vec![bytes.to_string()];
            for &variant in &self.variants {
                let setup = Setup {
                    hops: self.hops,
                    cores: self.cores,
                    latencies: self.latencies,
                    ..Setup::new(variant, bytes)
                };
                let half = measure(&setup)?.half();
                if self.json {
                    let object = Json::new()
                        .text("variant", &variant.to_string())
                        .number("bytes", bytes)
                        .number("half_rtt_cycles", half);
                    object.print();
                }
                row.push(half.to_string());
            }
            rows.push(row);
        }
        if !self.json {
            out(&format!(
                "half of a round trip in core cycles, latencies {}, {} hops, {} cores, means",
                self.latencies, self.hops, self.cores
            ));
            let names: Vec<_> = self.variants.iter().map(Variant::to_string).collect();
            let head: Vec<&str> = std::iter::once("bytes")
                .chain(names.iter().map(String::as_str))
                .collect();
            table(&head, &rows);
        }
        Ok(())
    }
}
