//! The groups of cases, by the first part of their names: one list for all platforms.
#![allow(dead_code, unused_macros, reason = "each test uses a part")]

/// Runs `$run("NAME.")` for each group, as a test of its own; and their prefixes.
macro_rules! groups {
    ($run:ident) => {
        groups!($run: hal world window model collective link fence lock pscw rma notify told counters signals events timeout small stencil);
    };
    ($run:ident: $($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                $run(concat!(stringify!($name), "."));
            }
        )*

        #[allow(dead_code, reason = "one platform looks whether any is missing")]
        const GROUPS: &[&str] = &[$(concat!(stringify!($name), ".")),*];
    };
}

/// Seeds of each combination: `FLAGPOST_SEEDS`, or else `usual`.
pub(crate) fn seeds(usual: u64) -> u64 {
    std::env::var("FLAGPOST_SEEDS").map_or(usual, |n| n.parse().unwrap())
}
