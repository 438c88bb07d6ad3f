//! The conformance cases as an image for the SCC: its own port, over the chip's own bus.
//!
//! It runs under emulation: `flagpost-scc-monitor` starts it on every core, with private statics,
//! as on the chip. What the runner needs and the chip has not, a barrier and a log, it asks of the
//! monitor. On other targets this is an empty program.
//!
//! # Arguments (QEMU's `-append`, words `name=value`)
//! Those of [`flagpost_conformance::run`] and of the monitor, and:
//!
//! | word | meaning |
//! |---|---|
//! | `mapping=M` | how windows are mapped: `normal`, `mpbt`, or `mpbt-wt`, the default |
//! | `mutant=NAME` | in a build with `--cfg mutants`: breaks this mutation point |
#![cfg_attr(target_os = "none", no_std, no_main)]
#![deny(unsafe_code)]

#[cfg(not(all(target_os = "none", target_arch = "x86")))]
fn main() {}

#[cfg(all(target_os = "none", target_arch = "x86"))]
mod image;
