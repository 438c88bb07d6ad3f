//! Hosts for a job, on this one: network namespaces with an address each, joined by a bridge in one
//! more namespace. Takes root and iproute2.
//!
//! ```text
//!   host 0             host 1             …
//!   10.77.0.1          10.77.0.2
//!      └── veth ── bridge ── veth ──┘
//! ```
//! They go when the value does. What a killed run has left goes with the next run.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::children;

/// What all names begin with; the number of the process follows.
const PREFIX: &str = "flagpost-";

/// Namespaces joined to one network.
pub(crate) struct Hosts {
    names: Vec<String>,
    switch: String,
}

fn ip(words: &str) -> Result<()> {
    let mut command = Command::new("ip");
    let output = children::output(command.args(words.split_ascii_whitespace()));
    let output = output.context("cannot run ip: install iproute2")?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        bail!("ip {words}: {} (it takes root)", why.trim());
    }
    Ok(())
}

impl Hosts {
    /// Makes `count` of them, at most 200.
    pub(crate) fn new(count: u8) -> Result<Self> {
        sweep();
        let own = std::process::id();
        let hosts = Self {
            names: (0..count)
                .map(|host| format!("{PREFIX}{own}-{host}"))
                .collect(),
            switch: format!("{PREFIX}{own}-switch"),
        };
        let switch = &hosts.switch;
        ip(&format!("netns add {switch}"))?;
        ip(&format!("-n {switch} link add bridge type bridge"))?;
        ip(&format!("-n {switch} link set bridge up"))?;
        for (host, name) in hosts.names.iter().enumerate() {
            let address = hosts.address(host);
            ip(&format!("netns add {name}"))?;
            ip(&format!(
                "-n {name} link add net0 type veth peer name port{host} netns {switch}"
            ))?;
            ip(&format!("-n {name} addr add {address}/24 dev net0"))?;
            ip(&format!("-n {name} link set lo up"))?;
            ip(&format!("-n {name} link set net0 up"))?;
            ip(&format!("-n {switch} link set port{host} master bridge up"))?;
        }
        Ok(hosts)
    }

    /// The names, in order.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// The address of host number `host`.
    pub(crate) fn address(&self, host: usize) -> String {
        format!("10.77.0.{}", host + 1)
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in self.names.iter().chain([&self.switch]) {
            // One that was not made is not there.
            let _ = ip(&format!("netns del {name}"));
        }
    }
}

/// Removes the namespaces of runs that have ended without doing so.
fn sweep() {
    for entry in std::fs::read_dir("/run/netns")
        .into_iter()
        .flatten()
        .flatten()
    {
        let name = entry.file_name().to_string_lossy().into_owned();
        let run = name
            .strip_prefix(PREFIX)
            .and_then(|rest| rest.split_once('-'));
        if run.is_some_and(|(process, _)| !Path::new("/proc").join(process).exists()) {
            let _ = ip(&format!("netns del {name}"));
        }
    }
}
