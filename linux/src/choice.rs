//! What the user of a job chooses when it is started: what connects its ranks, and more.
//!
//! Some options of `flagpost-run` have a variable of the environment, for other launchers, too. The
//! rule is one for all: an option wins over its variable, and the variable over the default. What
//! the job has no use for is refused as an option, and not looked at as a variable. Options of a
//! network may stand beside `--hosts`, also where that names this host alone.
//!
//! | option | variable | in a rank of `flagpost-run` |
//! |---|---|---|
//! | `--link` | `FLAGPOST_LINK` | the user's |
//! | `--address` | `FLAGPOST_ADDRESS` | the user's |
//! | `--mem` | `FLAGPOST_MEMORY` | its job's |
//! | `--mode` | `FLAGPOST_MODE` | its job's |
//! | `--provider` | `FLAGPOST_PROVIDER` | its job's |
//! | `--helper` | `FLAGPOST_HELPER` | its job's |
//! | | `FLAGPOST_PROCESSORS` | its job's |
//!
//! A launcher that is started in a rank does not look at those of that rank's job.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::str::FromStr;

/// The variable of the environment that chooses the link, where no option does.
pub const VARIABLE: &str = "FLAGPOST_LINK";

/// Those of the other options.
pub const ADDRESS: &str = "FLAGPOST_ADDRESS";
/// See [`ADDRESS`].
pub const MEMORY: &str = "FLAGPOST_MEMORY";
/// See [`ADDRESS`].
pub const MODE: &str = "FLAGPOST_MODE";
/// See [`ADDRESS`].
pub const PROVIDER: &str = "FLAGPOST_PROVIDER";
/// See [`ADDRESS`].
pub const HELPER: &str = "FLAGPOST_HELPER";

/// The number of a rank, which each rank of `flagpost-run` hears.
pub(crate) const RANK: &str = "FLAGPOST_RANK";

/// A variable that `flagpost-run` gives its ranks, with the user's value: none in a rank, where it
/// is the job's.
pub fn job_variable(name: &str) -> (&str, Option<OsString>) {
    let in_rank = std::env::var_os(RANK).is_some();
    (name, std::env::var_os(name).filter(|_| !in_rank))
}

/// Reads a size such as `65536` or `64M`.
///
/// # Errors
/// A line that says how to write one.
pub fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match &text[digits.len()..] {
        "" => Some(0),
        "K" | "k" | "KiB" => Some(10),
        "M" | "m" | "MiB" => Some(20),
        "G" | "g" | "GiB" => Some(30),
        _ => None,
    };
    let bytes = unit.and_then(|shift| digits.parse::<u64>().ok()?.checked_mul(1 << shift));
    bytes.ok_or_else(|| format!("{text:?} is no size: write 65536, 64K, 16M or 1G"))
}

/// Reads microseconds that a helper thread rests, up to a second.
///
/// # Errors
/// A line that says how many there may be.
pub fn pause(text: &str) -> Result<u64, String> {
    const MOST: u64 = 1_000_000;
    let number = text.parse().ok().filter(|number| *number <= MOST);
    number.ok_or_else(|| format!("{text:?} is no number of microseconds up to {MOST}"))
}

/// What is to connect the ranks.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub enum Choice {
    /// Memory that all ranks map.
    Shm,
    /// A network.
    Fabric,
    /// Memory if all ranks are on one host, else a network.
    #[default]
    Auto,
}

impl Choice {
    /// The words for them.
    pub const WORDS: [&str; 3] = ["shm", "fabric", "auto"];

    /// The choice that the environment makes: [`Choice::Auto`] if it says nothing.
    ///
    /// # Errors
    /// A line that says which words [`VARIABLE`] may have.
    pub fn of_environment() -> Result<Self, String> {
        Self::of_word(std::env::var_os(VARIABLE).as_deref())
    }

    /// What the value of [`VARIABLE`] means.
    pub(crate) fn of_word(word: Option<&OsStr>) -> Result<Self, String> {
        let Some(word) = word else {
            return Ok(Self::default());
        };
        let word = word.to_string_lossy();
        word.parse().map_err(|why| format!("{VARIABLE}: {why}"))
    }

    /// Whether it is the network, for a job whose ranks are on one host or not.
    pub fn is_network(self, one_host: bool) -> bool {
        match self {
            Self::Shm => false,
            Self::Fabric => true,
            Self::Auto => !one_host,
        }
    }
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let all = [Self::Shm, Self::Fabric, Self::Auto];
        let found = { all.into_iter() }.find(|choice| choice.to_string() == word);
        found.ok_or_else(|| format!("{word:?} is no link: write shm, fabric or auto"))
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::WORDS[*self as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        assert_eq!(size("65536"), Ok(65_536));
        assert_eq!(size("64K"), Ok(65_536));
        assert_eq!(size("2GiB"), Ok(2 << 30));
        for bad in ["", "M", "12Q", "-1", "1.5M", "99999999999999999999G"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn pauses_are_read() {
        assert_eq!((pause("0"), pause("1000000")), (Ok(0), Ok(1_000_000)));
        for bad in ["", "-1", "1.5", "1000001"] {
            assert!(pause(bad).is_err(), "{bad}");
        }
    }
}
