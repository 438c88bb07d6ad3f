//! What is to connect the ranks of a job: its user chooses when the job is started.

use std::ffi::OsStr;
use std::fmt;
use std::str::FromStr;

/// The variable of the environment that chooses, where no option does.
pub const VARIABLE: &str = "FLAGPOST_LINK";

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
    fn words_are_read() {
        assert_eq!(Choice::of_word(None), Ok(Choice::Auto));
        for word in Choice::WORDS {
            let choice = Choice::of_word(Some(OsStr::new(word))).expect("it is one");
            assert_eq!(choice.to_string(), word);
        }
        for bad in ["", "Shm", "tcp", "fabric "] {
            let line = Choice::of_word(Some(OsStr::new(bad))).expect_err("it is none");
            let expected = format!("FLAGPOST_LINK: {bad:?} is no link: write shm, fabric or auto");
            assert_eq!(line, expected);
        }
    }

    #[test]
    fn auto_is_memory_on_one_host() {
        let networks = [Choice::Shm, Choice::Fabric, Choice::Auto]
            .map(|choice| [true, false].map(|one_host| choice.is_network(one_host)));
        assert_eq!(networks, [[false, false], [true, true], [false, true]]);
    }
}
