//! `cargo xtask bench pingpong`.

use clap::Args;
use flagpost_bench::pingpong::{BYTES_MAX, SIZES, Setup, Variant, halves};
use flagpost_common::Json;
use flagpost_sim::Report;

use super::print;

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
    #[command(flatten)]
    setup: Setup,
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
        let Setup {
            latencies,
            hops,
            cores,
            ..
        } = self.setup;
        let title = format!(
            "half of a round trip in core cycles, latencies {latencies}, {hops} hops, {cores} cores, means"
        );
        let object = |variant: &str, bytes, half| {
            let object = Json::new().text("variant", variant);
            object
                .number("bytes", bytes)
                .number("half_rtt_cycles", half)
        };
        let title = (!self.json).then_some((&*title, "bytes"));
        print(title, sizes, object, |bytes| {
            let setup = Setup {
                bytes,
                ..self.setup
            };
            halves(setup, &self.variants)
        })
    }
}
