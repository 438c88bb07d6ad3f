//! Tells the linker where the monitor lies.

use std::env;
use std::path::PathBuf;

fn main() {
    let variable = |name| env::var(name).expect("cargo sets it");
    let script = PathBuf::from(variable("CARGO_MANIFEST_DIR"))
        .join("../linker/flagpost-scc-monitor.x")
        .canonicalize()
        .expect("the script is part of the repository");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", script.display());
    if variable("CARGO_CFG_TARGET_ARCH") == "x86" && variable("CARGO_CFG_TARGET_OS") == "none" {
        println!("cargo::rustc-link-arg-bins=-T{}", script.display());
    }
}
