//! Where things are.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The root of the workspace this program was built from.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}

/// The workspace's target directory.
pub fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) if !dir.is_empty() => root().join(dir),
        _ => root().join("target"),
    }
}

/// The target directory of images, and the place of logs and of what is remembered between runs.
/// Images have their own, so that building one does not wait for, or evict, a host build.
pub fn images() -> PathBuf {
    target().join("qemu")
}

/// The cargo that called us, else the one in `PATH`.
pub fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// A path as shown to people: inside the workspace relative to its root; the Rust library and
/// crates from a registry without the part before their own directory.
pub fn shorten(path: &str) -> String {
    let root = root();
    if let Ok(inside) = Path::new(path).strip_prefix(&root) {
        return inside.display().to_string();
    }
    if let Some((_, library)) = path.split_once("/library/") {
        return library.to_owned();
    }
    if let Some((_, registry)) = path.split_once("/registry/src/") {
        return registry
            .split_once('/')
            .map_or(registry, |(_, rest)| rest)
            .to_owned();
    }
    path.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_shortened() {
        let own = root().join("kernel/src/lib.rs").display().to_string();
        assert_eq!(shorten(&own), "kernel/src/lib.rs");
        assert_eq!(
            shorten("/rustc/5980/library/core/src/fmt.rs"),
            "core/src/fmt.rs"
        );
        assert_eq!(
            shorten("/root/.cargo/registry/src/index.crates.io-19/defmt-1.2.0/src/lib.rs"),
            "defmt-1.2.0/src/lib.rs"
        );
        assert_eq!(shorten("/elsewhere/a.rs"), "/elsewhere/a.rs");
    }
}
