//! Names the linker script of `cortex-m-rt`, which includes our `memory.x`.

fn main() {
    let here = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    println!("cargo::rerun-if-changed=memory.x");
    println!("cargo::rustc-link-search={here}");
    println!("cargo::rustc-link-arg-bins=-Tlink.x");
}
