//! The arguments that the cases take, and which values they may have.
//!
//! `cargo xtask` holds this file too: it refuses a bad argument before it boots an image.

/// An argument of the cases, as `stencil.m`.
pub struct Argument {
    /// What stands before the `=`.
    pub name: &'static str,
    /// Which values it takes, for people.
    pub takes: &'static str,
    /// Whether it takes this value, on so many cores.
    accepts: fn(value: &str, cores: u32) -> bool,
}

/// How windows are mapped.
pub const MAPPING: Argument = Argument {
    name: "mapping",
    takes: "mapping takes normal, mpbt or mpbt-wt",
    accepts: |value, _| matches!(value, "normal" | "mpbt" | "mpbt-wt"),
};

/// Most columns of one rank of the stencil.
pub const STENCIL_COLUMNS: u32 = 1024;

/// Columns of the stencil's grid.
pub const STENCIL_M: Argument = Argument {
    name: "stencil.m",
    takes: "stencil.m takes a number of columns, from 2 to 1024 per core",
    accepts: |value, cores| {
        number(value).is_some_and(|m| (2..=STENCIL_COLUMNS.saturating_mul(cores)).contains(&m))
    },
};

/// Rows of the stencil's grid: at most what a rank's shared memory holds as its inbox.
pub const STENCIL_N: Argument = Argument {
    name: "stencil.n",
    takes: "stencil.n takes a number of rows, from 2 to 4096",
    accepts: |value, _| number(value).is_some_and(|n| (2..=4096).contains(&n)),
};

/// Sweeps of the stencil over its grid.
pub const STENCIL_ITERATIONS: Argument = Argument {
    name: "stencil.iterations",
    takes: "stencil.iterations takes a number of sweeps, 1 or more",
    accepts: |value, _| number(value).is_some_and(|iterations| iterations >= 1),
};

/// The variant of the programs `apps.`: the cases run all.
pub const APP_VARIANT: Argument = Argument {
    name: "app.variant",
    takes: "app.variant takes a variant that the program has, such as notified",
    accepts: |value, _| !value.is_empty(),
};

/// How much the programs `apps.` do.
pub const APP_SIZE: Argument = Argument {
    name: "app.size",
    takes: "app.size takes SIDExSTEPS, such as 64x10",
    accepts: |value, _| {
        let size = value.split_once('x');
        size.is_some_and(|(side, steps)| [side, steps].iter().all(|n| number(n) > Some(0)))
    },
};

/// All of them.
pub const ARGUMENTS: [Argument; 6] = [
    MAPPING,
    STENCIL_M,
    STENCIL_N,
    STENCIL_ITERATIONS,
    APP_VARIANT,
    APP_SIZE,
];

/// Why the cases cannot use an argument.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// It is none of [`ARGUMENTS`].
    Unknown,
    /// It takes other values: these.
    Value(&'static str),
}

/// Whether the cases can use `name=value` on so many cores.
///
/// # Errors
/// Why not.
pub fn check(name: &str, value: &str, cores: u32) -> Result<(), Unusable> {
    let named = ARGUMENTS.iter().find(|argument| argument.name == name);
    let argument = named.ok_or(Unusable::Unknown)?;
    match (argument.accepts)(value, cores) {
        true => Ok(()),
        false => Err(Unusable::Value(argument.takes)),
    }
}

fn number(value: &str) -> Option<u32> {
    value.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_checked() {
        for (name, value) in [
            ("mapping", "mpbt-wt"),
            ("stencil.m", "2"),
            ("stencil.m", "8192"),
            ("stencil.n", "4096"),
            ("stencil.iterations", "1"),
            ("app.variant", "pscw"),
            ("app.size", "64x1"),
        ] {
            assert_eq!(check(name, value, 8), Ok(()), "{name}={value}");
        }
        for (name, value) in [
            ("mapping", "none"),
            ("stencil.m", "1"),
            ("stencil.m", "8193"),
            ("stencil.m", "many"),
            ("stencil.n", "1"),
            ("stencil.n", "4097"),
            ("stencil.n", ""),
            ("stencil.iterations", "0"),
            ("app.variant", ""),
            ("app.size", "64"),
            ("app.size", "0x1"),
        ] {
            let why = check(name, value, 8);
            let names = matches!(why, Err(Unusable::Value(takes)) if takes.starts_with(name));
            assert!(names, "{name}={value}: {why:?}");
        }
        for name in ["", "stencil", "stencil.k", "mutant"] {
            assert_eq!(check(name, "2", 8), Err(Unusable::Unknown));
        }
    }
}
