//! Lines of programs, and lines of Flagpost.

use core::panic::Location;

/// True if `place` is in a file of Flagpost. Tests of Flagpost are programs.
///
/// A machine that gives an account of a run names the line of the program, not one of the library:
/// see [`Topology::called`](crate::Topology::called).
pub fn is_library(place: &Location<'_>) -> bool {
    is_library_file(place.file())
}

fn is_library_file(file: &str) -> bool {
    let root = file!().strip_suffix("hal/src/place.rs").unwrap_or("");
    let Some(inside) = file.strip_prefix(root) else {
        return false;
    };
    (inside.starts_with("kernel/") || inside.starts_with("hal/")) && inside.contains("/src/")
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::format;

    use super::*;

    #[test]
    fn files_of_the_library_are_told_from_programs() {
        let root = file!().strip_suffix("hal/src/place.rs").unwrap();
        for library in [
            "kernel/src/world.rs",
            "kernel/loadstore/src/link.rs",
            "hal/sim/src/handle.rs",
            "hal/src/lock.rs",
        ] {
            assert!(is_library_file(&format!("{root}{library}")), "{library}");
        }
        for program in [
            "tests/host/own_piece.rs",
            "hal/sim/tests/sim/bulk.rs",
            "examples/simulator/hello.rs",
        ] {
            assert!(!is_library_file(&format!("{root}{program}")), "{program}");
        }
        assert!(!is_library_file("/elsewhere/src/main.rs"));
        assert!(!is_library_file("src/main.rs"));
    }
}
