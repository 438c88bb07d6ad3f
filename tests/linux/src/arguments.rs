//! What the command line asks for.

use std::net::{IpAddr, Ipv4Addr};

use clap::Parser;
use flagpost_linux::{Emulated, Mode as _, SoftwareCoherent, fabric};

/// The platforms: see `platforms`.
pub(crate) const NAMES: [&str; 5] = [
    "coherent",
    "coherent-locks",
    SoftwareCoherent::NAME,
    Emulated::NAME,
    fabric::NAME,
];

/// Run the conformance cases with N ranks, a process each
#[derive(Parser, Debug)]
#[command(name = "flagpost-linux-cases")]
pub(crate) struct Arguments {
    /// Ranks
    #[arg(short = 'n', long, default_value_t = 2)]
    pub(crate) ranks: u32,
    /// How memory is kept in step, and how words are changed
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(NAMES), default_value = NAMES[0])]
    pub(crate) platform: String,
    /// The network of platform `fabric`: tcp, shm, or another provider of libfabric's
    #[arg(long, default_value = "tcp")]
    pub(crate) provider: String,
    /// The address at which the ranks of platform `fabric` meet
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    pub(crate) address: IpAddr,
    /// Network namespaces to which ranks of platform `fabric` are dealt out, as hosts are by
    /// flagpost-run
    #[arg(long)]
    pub(crate) hosts: Option<String>,
    /// Only cases whose name contains this
    #[arg(long, default_value = "")]
    pub(crate) filter: String,
    /// Print the cases and what is skipped, and run none
    #[arg(long)]
    pub(crate) list: bool,
    /// Seconds until everything is ended
    #[arg(long, default_value_t = 900)]
    pub(crate) patience: u64,
}
