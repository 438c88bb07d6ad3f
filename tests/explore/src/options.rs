//! What `explore` can be asked for. This program and `cargo xtask explore`, which calls it, both
//! compile this file.

use clap::{Args, ValueEnum};

/// How schedules are chosen
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Strategy {
    /// A random walk, PCT of depth 2 and PCT of depth 3, in turn by seed
    Mixed,
    /// A random walk: any core, at every step
    Random,
    /// Random priorities that change at random steps
    Pct,
    /// All schedules within the bounds
    Exhaustive,
}

/// What is explored, and how
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Only cases whose name contains NAME
    #[arg(long, value_name = "NAME", default_value = "")]
    pub(crate) case: String,
    /// No case whose name is NAME; several with commas between them
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) skip: Vec<String>,
    /// This number of cores, where a case admits it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) cores: Option<u16>,
    /// Only this profile: scc, scc+fill, weak or weak+fill
    #[arg(long, value_name = "PROFILE")]
    pub(crate) profile: Option<String>,
    /// Only this other chip: scc-wb or scc-wt (the SCC port over message-buffer memory),
    /// scc-normal, tensix-bh, et, cxl, rp2040, arm-m7, unequal, sleeping or coherent; or network or
    /// network-ordered: no chip, but a simulated network of hosts with remote memory access, and
    /// one that orders puts
    #[arg(long, value_name = "NAME", conflicts_with = "profile")]
    pub(crate) preset: Option<String>,
    /// How many schedules, in all; not for exhaustive
    #[arg(long, value_name = "N", default_value = "100000", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) schedules: u64,
    /// The first seed
    #[arg(long, value_name = "S", default_value = "0")]
    pub(crate) seed: u64,
    /// How schedules are chosen
    #[arg(long, value_enum, default_value = "mixed")]
    pub(crate) strategy: Strategy,
    /// Exhaustive: lines that leave a cache on the chip's account, at most
    #[arg(long, value_name = "N", default_value = "0")]
    pub(crate) evictions: u8,
    /// Exhaustive: lines that are prefetched, at most
    #[arg(long, value_name = "N", default_value = "0")]
    pub(crate) fills: u8,
    /// Exhaustive: words that leave a combining buffer early, at most
    #[arg(long, value_name = "N", default_value = "0")]
    pub(crate) leaves: u8,
    /// Exhaustive: time budgets that run out, at most
    #[arg(long, value_name = "N", default_value = "0")]
    pub(crate) expiries: u8,
    /// Exhaustive: attempts on a register that is held, at most
    #[arg(long, value_name = "N", default_value = "0")]
    pub(crate) refusals: u8,
    /// Exhaustive: switches away from a core that could continue, at most [default: any number]
    #[arg(long, value_name = "N")]
    pub(crate) preemptions: Option<u8>,
    /// Exhaustive: states after which a search gives up
    #[arg(long, value_name = "N", default_value = "1000000", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) states: u64,
    /// One JSON object per setting, a line each
    #[arg(long)]
    pub(crate) json: bool,
}
