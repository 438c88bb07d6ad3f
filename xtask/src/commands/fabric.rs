//! `cargo xtask fabric`: the conformance cases over a real network, libfabric's, with a process per
//! rank on this host. And the tests of `hal/fabric` that need libfabric: its bindings compared with
//! the installed headers, its contract with threads for ranks.

use std::process::Command;

use anyhow::Result;
use clap::Args;

use super::linux::{PACKAGE, job};
use super::{bench_fabric, kills, test};
use crate::console::Console;
use crate::count::Count;
use crate::hosts::Hosts;
use crate::{compiling, paths, tools};

/// Ranks of a quick run of the tests; of CI beside it; and of the command, since some cases are for
/// three.
const TEST_RANKS: [u16; 1] = [4];
const CI_RANKS: [u16; 1] = [2];
const RANKS: [u16; 3] = [2, 3, 4];

/// Tests that need libfabric, which `cargo test` leaves out: those that compare the bindings with
/// its headers, and others.
const BINDINGS: [&[&str]; 1] = [&["--package", "flagpost-fabric", "--lib"]];
/// Without the names of their packages, for which libraries would be compiled anew: with the
/// features of those packages alone.
const TESTS: [&[&str]; 2] = [&["--test", "network"], &["--test", "fabric"]];

/// Run the conformance cases over a real network: libfabric's providers tcp and shm
///
/// Exit status: 0 if nothing failed; else 1; 2 for bad input. The last line is
/// `N passed, N failed`.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// tcp, shm, or another provider of libfabric's that this host has [default: tcp and shm]
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    /// Ranks [default: 2, 3 and 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    ranks: Option<u16>,
    /// Network namespaces that stand for hosts: ranks are dealt out to them in blocks. Takes root,
    /// and a provider other than shm, to which namespaces are one host [default: this host]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    hosts: Option<u8>,
    /// With libfabric 2: that of the Python package mpich, which pip downloads [default: the
    /// system's]
    #[arg(long)]
    newer: bool,
    /// Only cases whose name contains this
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,
    /// Instead, compare the bindings with libfabric's headers, and run the other tests that need
    /// libfabric
    #[arg(long, conflicts_with_all = ["provider", "ranks", "filter", "hosts", "newer"])]
    headers: bool,
}

/// Runs the command; `false` if anything failed.
pub(crate) fn run(console: &Console, arguments: &Arguments) -> Result<bool> {
    let count = if arguments.headers {
        tools::libfabric_headers(console)?;
        let mut count = tests(console, &BINDINGS)?;
        count.add(tests(console, &TESTS)?);
        count
    } else {
        // To shared memory, namespaces are one host.
        let most = if arguments.hosts.is_some() { 1 } else { 2 };
        let provider = arguments.provider.as_deref();
        let jobs = Jobs {
            providers: provider.map_or(tools::PROVIDERS[..most].to_vec(), |name| vec![name]),
            ranks: arguments.ranks.map_or(RANKS.to_vec(), |ranks| vec![ranks]),
            hosts: arguments.hosts.map(Hosts::new).transpose()?,
            newer: arguments.newer,
            filter: &arguments.filter,
        };
        jobs.run(console)?
    };
    Ok(console.verdict(count))
}

/// Whether libfabric is here, or can be installed.
pub(crate) fn is_possible() -> bool {
    tools::find_libfabric().is_some() || tools::apt().is_some()
}

/// The part of `cargo xtask test`.
pub(crate) fn of_tests(console: &Console, deep: bool) -> Result<Count> {
    tools::libfabric(console)?;
    let ranks: &[_] = if deep { &RANKS } else { &TEST_RANKS };
    let mut count = tests(console, &TESTS)?;
    count.add(Jobs::here(ranks, false).run(console)?);
    Ok(count)
}

/// What CI runs beside `cargo xtask test`.
pub(crate) fn ci(console: &Console) -> Result<Count> {
    tools::libfabric_headers(console)?;
    let mut count = tests(console, &BINDINGS)?;
    for newer in [false, true] {
        count.add(Jobs::here(&CI_RANKS, newer).run(console)?);
    }
    count.add(bench_fabric::smoke(console)?);
    count.add(kills::ci(console)?);
    Ok(count)
}

/// Jobs of the cases: each provider with each number of ranks.
struct Jobs<'a> {
    providers: Vec<&'a str>,
    ranks: Vec<u16>,
    hosts: Option<Hosts>,
    /// With libfabric 2, downloaded.
    newer: bool,
    filter: &'a str,
}

impl Jobs<'_> {
    /// All cases over all providers, on this host.
    fn here(ranks: &[u16], newer: bool) -> Self {
        Jobs {
            providers: tools::PROVIDERS.to_vec(),
            ranks: ranks.to_vec(),
            hosts: None,
            newer,
            filter: "",
        }
    }

    fn run(&self, console: &Console) -> Result<Count> {
        let newer = match self.newer {
            true => Some(tools::newer_libfabric(console)?),
            false => {
                tools::libfabric(console)?;
                None
            }
        };
        let program = compiling::tests_program(console, PACKAGE)?;
        let jobs = { self.providers.iter() }
            .flat_map(|provider| self.ranks.iter().map(move |ranks| (provider, ranks)));
        let mut count = Count::default();
        for (provider, ranks) in jobs {
            let mut name = format!("fabric, {provider}, {ranks} ranks");
            let mut again = format!("cargo xtask fabric --provider {provider} --ranks {ranks}");
            let mut command = Command::new(&program);
            if let Some(hosts) = &self.hosts {
                // The launcher is on the first.
                command = Command::new("ip");
                command
                    .args(["netns", "exec", &hosts.names()[0]])
                    .arg(&program);
                command.args(["--hosts", &hosts.names().join(",")]);
                command.args(["--address", &hosts.address(0)]);
                name += &format!(" on {} namespaces", hosts.names().len());
            }
            command
                .args(["--platform", "fabric", "--provider", provider])
                .args(["--ranks", &ranks.to_string(), "--filter", self.filter])
                .args(["--patience", "300"]);
            if let Some(dir) = &newer {
                command.env("LD_LIBRARY_PATH", dir);
                name += " with libfabric 2";
                again += " --newer";
            }
            count.add(job(console, &name, &again, command)?.count);
        }
        Ok(count)
    }
}

/// Tests that `cargo test` leaves out. Each has a network of its own, some with all ranks in one
/// process: one at a time.
fn tests(console: &Console, targets: &[&[&str]]) -> Result<Count> {
    // `cargo test` of one target leaves out the examples that it starts.
    compiling::cargo(console, "the examples", ["build", "--bins", "--examples"])?;
    let mut count = Count::default();
    // Others of these targets need no libfabric: `cargo test` runs them.
    for target in targets {
        let mut command = Command::new(paths::cargo());
        command.current_dir(paths::root());
        command.args(["test", "--locked"]).args(*target);
        command.args(["--", "--show-output", "--ignored", "--test-threads", "1"]);
        count.add(test::programs(console, &mut command)?);
    }
    Ok(count)
}
