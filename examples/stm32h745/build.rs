//! Names the linker script of `cortex-m-rt`, and for each image the directory of its `memory.x`.

fn main() {
    let here = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    for image in ["m7", "m4"] {
        println!("cargo::rerun-if-changed={image}/memory.x");
        println!("cargo::rustc-link-arg-bin={image}=-L{here}/{image}");
    }
    println!("cargo::rerun-if-changed=shared.x");
    println!("cargo::rustc-link-search={here}");
    println!("cargo::rustc-link-arg-bins=-Tlink.x");
}
