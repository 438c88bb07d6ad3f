//! Tells the linker where the board's script is.
//!
//! The search path reaches every image that depends on this crate; the scripts themselves are named
//! only for our own image, because an image may have a script of its own that includes ours (see
//! `examples/bare-metal-rust`).

use std::env;
use std::path::PathBuf;

fn main() {
    let variable = |name| env::var(name).expect("cargo sets it");
    let linker = PathBuf::from(variable("CARGO_MANIFEST_DIR"))
        .join("../linker")
        .canonicalize()
        .expect("the directory is part of the repository");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", linker.display());
    println!("cargo::rustc-link-search={}", linker.display());
    if variable("CARGO_CFG_TARGET_ARCH") == "riscv64" && variable("CARGO_CFG_TARGET_OS") == "none" {
        println!("cargo::rustc-link-arg-bins=-Tflagpost-riscv64-virt.x");
        println!("cargo::rustc-link-arg-bins=-Tdefmt.x");
    }
}
