//! `tests/killers/*.tsv`: for each mutation point, the run that killed it last time. A file per
//! machine.
//!
//! ```text
//! pscw.wait.refresh   pscw.ring/2/scc:0   oracle O2
//! ```
//! Point, CASE/CORES/PROFILE:SEED and how, with tabs between them.
//! `cargo xtask mutants` tries that run first, and searches only when it no longer kills. Lines
//! that begin with `#` are comments. The file is written by `cargo xtask mutants --record`, in the
//! order of the points' names.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;

use anyhow::{Context, Result};

use crate::error::usage;
use crate::paths;

/// The head of a file.
const HEAD: &str = "# The run that killed each mutation point last time; written by `cargo xtask mutants --record`.\n\
                    # point\tCASE/CORES/PROFILE:SEED\thow\n";

/// A run that killed a point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Killer {
    pub(crate) case: String,
    /// With its late loads, if any, or `qemu`.
    pub(crate) profile: String,
    pub(crate) cores: u32,
    pub(crate) seed: u32,
    /// How it killed: `deadlock`, for example.
    pub(crate) how: String,
}

impl Killer {
    /// Reads `CASE/CORES/PROFILE:SEED`.
    pub(crate) fn parse(replay: &str, how: &str) -> Option<Self> {
        let (setting, seed) = replay.rsplit_once(':')?;
        let mut parts = setting.splitn(3, '/');
        let mut part = || parts.next().filter(|part| !part.is_empty());
        let (case, cores, profile) = (part()?, part()?, part()?);
        Some(Self {
            case: case.to_owned(),
            profile: profile.to_owned(),
            cores: cores.parse().ok()?,
            seed: seed.parse().ok()?,
            how: how.to_owned(),
        })
    }

    /// `CASE/CORES/PROFILE:SEED`, as `--replay` takes it.
    pub(crate) fn replay(&self) -> String {
        format!(
            "{}/{}/{}:{}",
            self.case, self.cores, self.profile, self.seed
        )
    }
}

/// A file of killers, by the names of their points.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Killers(pub(crate) BTreeMap<String, Killer>);

impl Killers {
    /// Reads a file. One that does not exist is empty.
    ///
    /// # Errors
    /// If it cannot be read, or a line of it is malformed.
    pub(crate) fn read(file: &str) -> Result<Self> {
        match fs::read_to_string(paths::root().join(file)) {
            Ok(text) => Self::parse(file, &text),
            Err(why) if why.kind() == ErrorKind::NotFound => Ok(Self::default()),
            Err(why) => Err(why).with_context(|| format!("cannot read {file}")),
        }
    }

    fn parse(file: &str, text: &str) -> Result<Self> {
        let mut killers = BTreeMap::new();
        for (number, line) in (1..).zip(text.lines()) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let fields: Vec<&str> = line.split('\t').collect();
            let killer = match fields[..] {
                [point, replay, how] if !point.is_empty() && !how.is_empty() => {
                    Killer::parse(replay, how).map(|killer| (point, killer))
                }
                _ => None,
            };
            let Some((point, killer)) = killer else {
                return Err(usage(format!(
                    "{file}:{number}: not a point, CASE/CORES/PROFILE:SEED and how it killed, with tabs between: {line:?}"
                )));
            };
            if killers.insert(point.to_owned(), killer).is_some() {
                return Err(usage(format!("{file}:{number}: a second line for {point}")));
            }
        }
        Ok(Self(killers))
    }

    /// Takes over `found`, and drops the lines of points that are `gone`. How many lines that
    /// changes.
    pub(crate) fn update<'a>(
        &mut self,
        gone: &[String],
        found: impl Iterator<Item = (&'a str, Killer)>,
    ) -> usize {
        let before = self.0.clone();
        self.0.retain(|point, _| !gone.contains(point));
        for (point, killer) in found {
            self.0.insert(point.to_owned(), killer);
        }
        let changed = self
            .0
            .iter()
            .filter(|(point, killer)| before.get(*point) != Some(*killer));
        let dropped = before.keys().filter(|point| !self.0.contains_key(*point));
        changed.count() + dropped.count()
    }

    /// What the file says.
    fn text(&self) -> String {
        let mut text = HEAD.to_owned();
        for (point, killer) in &self.0 {
            text += &format!("{point}\t{}\t{}\n", killer.replay(), killer.how);
        }
        text
    }

    /// Writes the file anew.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn write(&self, file: &str) -> Result<()> {
        let path = paths::root().join(file);
        fs::write(path, self.text()).with_context(|| format!("cannot write {file}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Usage;

    #[test]
    fn what_is_written_is_read_back_in_the_order_of_names() {
        let text = "b.c\tpscw.ring/2/scc+fill:7\tdeadlock\n\n# text\na.b\ttold.put/3/scc+late:0\toracle O2\n";
        let killers = Killers::parse("f", text).unwrap();
        let written = format!(
            "{HEAD}a.b\ttold.put/3/scc+late:0\toracle O2\nb.c\tpscw.ring/2/scc+fill:7\tdeadlock\n"
        );
        assert_eq!(killers.text(), written);
        assert_eq!(Killers::parse("f", &written).unwrap(), killers);
    }

    #[test]
    fn a_malformed_line_is_bad_input_and_named() {
        for bad in [
            "a.b",
            "a.b\tcase/2/scc:0",
            "a.b case/2/scc:0 panic",
            "a.b\tcase/2/scc:0\tpanic\tmore",
            "\tcase/2/scc:0\tpanic",
            "a.b\tcase/2/scc:0\t",
            "a.b\tcase/2/scc\tpanic",
            "a.b\tcase/two/scc:0\tpanic",
            "a.b\tcase/2/scc:x\tpanic",
            "a.b\tcase/2:0\tpanic",
            "a.b\t/2/scc:0\tpanic",
            "x\tc/1/scc:0\tpanic\nx\tc/1/scc:0\tpanic",
        ] {
            let text = format!("# head\n{bad}\n");
            let why = Killers::parse("f.tsv", &text).expect_err(bad);
            let last = 1 + bad.lines().count();
            assert!(
                why.to_string().starts_with(&format!("f.tsv:{last}: ")),
                "{why}"
            );
            assert_eq!(why.to_string().lines().count(), 1, "{why}");
            assert!(why.is::<Usage>(), "{why}");
        }
    }
}
