//! Which cases run: the table, the broken ones, and what the arguments select of them.

use flagpost_qemu::Mapping;
use flagpost_tests::{Args, Case};

use crate::{Qemu, broken};

/// What the arguments ask for.
pub(crate) struct Plan<'a> {
    pub(crate) args: Args<'a>,
    pub(crate) seed: u32,
    pub(crate) mapping: Mapping,
    filter: &'a str,
    cores: u16,
}

impl<'a> Plan<'a> {
    /// Reads `args` for a machine of `cores` cores.
    pub(crate) fn new(args: Args<'a>, cores: u16) -> Self {
        Self {
            args,
            seed: args
                .number("seed", 0)
                .unwrap_or_else(|| panic!("seed is not a number")),
            mapping: match args.text("mapping") {
                // Dirty lines: a write-back that is missing must show.
                None | Some("normal") => Mapping::Normal,
                Some("mpbt") => Mapping::Mpbt,
                Some("mpbt-wt") => Mapping::MpbtWriteThrough,
                Some(other) => panic!("{other} is no mapping"),
            },
            filter: args.text("filter").unwrap_or(""),
            cores,
        }
    }

    /// The selected cases, in the table's order, whether this machine admits them or not.
    pub(crate) fn cases(&self) -> impl Iterator<Item = &'static Case<Qemu>> {
        flagpost_tests::cases::<Qemu>()
            .chain(broken::CASES)
            .filter(|case| self.selects(case.name))
    }

    /// Whether this machine has as many cores as `case` needs, and no more than it bears.
    pub(crate) fn admits(&self, case: &Case<Qemu>) -> bool {
        case.admits(self.cores)
    }

    fn selects(&self, name: &str) -> bool {
        if name.starts_with("broken.") {
            name == self.filter
        } else {
            name.contains(self.filter)
        }
    }
}
