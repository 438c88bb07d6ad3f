//! What people and earlier runs say of the points.
//!
//! `tests/killers/*.tsv`, a file per machine: for each mutation point, the run that killed it last
//! time, and how, with tabs between them. `cargo xtask mutants --record` writes it, in the order of
//! the points' names. Lines that begin with `#` are comments.
//! ```text
//! pscw.wait.refresh   pscw.ring/2/scc:0   oracle O2
//! ```
//! `docs/equivalent-mutants.md`: points that may be broken without any case failing, with the
//! reasons, for each of the four profiles.
//! ```text
//! ## `name.of.a.point`
//! - `scc`: why nothing can show it there
//! ```

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result};

use crate::error::usage;
use crate::paths;

/// The head of a file of killers.
const HEAD: &str = "# The run that killed each mutation point last time; written by `cargo xtask mutants --record`.\n\
                    # point\tCASE/CORES/PROFILE:SEED\thow\n";

/// The points that are argued to be equivalent.
pub(crate) const DOCUMENT: &str = "docs/equivalent-mutants.md";

/// What has to be argued for.
const PROFILES: [&str; 4] = ["scc", "scc+fill", "weak", "weak+fill"];

/// A run that killed a point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Killer {
    /// `CASE/CORES/PROFILE:SEED`, as `--replay` takes it.
    pub(crate) replay: String,
    /// How it killed: `deadlock`, for example.
    pub(crate) how: String,
}

impl Killer {
    /// Case, cores, profile (`qemu`, or with its late loads, if any) and seed.
    pub(crate) fn parts(&self) -> Option<(&str, u32, &str, u32)> {
        let (setting, seed) = self.replay.rsplit_once(':')?;
        let mut parts = setting.splitn(3, '/').filter(|part| !part.is_empty());
        let (case, cores, profile) = (parts.next()?, parts.next()?, parts.next()?);
        Some((case, cores.parse().ok()?, profile, seed.parse().ok()?))
    }
}

/// A file of killers, by the names of their points.
pub(crate) type Killers = BTreeMap<String, Killer>;

/// Reads a file of killers.
///
/// # Errors
/// If it cannot be read, or a line of it is malformed.
pub(crate) fn killers(file: &str) -> Result<Killers> {
    parse(file, &read(file)?)
}

fn read(file: &str) -> Result<String> {
    fs::read_to_string(paths::root().join(file)).with_context(|| format!("cannot read {file}"))
}

fn parse(file: &str, text: &str) -> Result<Killers> {
    let mut killers = Killers::new();
    let lines = (1..).zip(text.lines());
    for (number, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let killer = match line.split('\t').collect::<Vec<_>>()[..] {
            [point, replay, how] if !point.is_empty() && !how.is_empty() => {
                let (replay, how) = (replay.to_owned(), how.to_owned());
                Some((point, Killer { replay, how })).filter(|(_, killer)| killer.parts().is_some())
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
    Ok(killers)
}

/// What a file of killers says.
fn text(killers: &Killers) -> String {
    let line =
        |(point, Killer { replay, how }): (_, &Killer)| format!("{point}\t{replay}\t{how}\n");
    killers
        .iter()
        .map(line)
        .fold(HEAD.to_owned(), |text, line| text + &line)
}

/// Writes a file of killers anew.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn write(file: &str, killers: &Killers) -> Result<()> {
    fs::write(paths::root().join(file), text(killers))
        .with_context(|| format!("cannot write {file}"))
}

/// The points that are argued to be equivalent, and what is wrong with the document.
///
/// # Errors
/// If it cannot be read.
pub(crate) fn equivalent() -> Result<(Vec<String>, Vec<String>)> {
    Ok(argued(&read(DOCUMENT)?))
}

fn argued(text: &str) -> (Vec<String>, Vec<String>) {
    let (mut names, mut errors) = (Vec::new(), Vec::new());
    for section in text.split("\n## ").skip(1) {
        let name = section
            .lines()
            .next()
            .unwrap_or_default()
            .trim()
            .trim_matches('`');
        for profile in PROFILES {
            let bullet = format!("- `{profile}`:");
            let mut reasons = section
                .lines()
                .filter_map(|line| line.strip_prefix(&bullet));
            if reasons.all(|why| why.trim().is_empty()) {
                errors.push(format!(
                    "{DOCUMENT}: {name}: nothing is argued for profile {profile}"
                ));
            }
        }
        names.push(name.to_owned());
    }
    (names, errors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Usage;

    #[test]
    fn what_is_written_is_read_back_in_the_order_of_names() {
        let lines = "b.c\tpscw.ring/2/scc+fill:7\tdeadlock\n\n# text\na.b\ttold.put/3/scc+late:0\toracle O2\n";
        let killers = parse("f", lines).unwrap();
        let written = format!(
            "{HEAD}a.b\ttold.put/3/scc+late:0\toracle O2\nb.c\tpscw.ring/2/scc+fill:7\tdeadlock\n"
        );
        assert_eq!(text(&killers), written);
        assert_eq!(parse("f", &written).unwrap(), killers);
        assert_eq!(
            killers["b.c"].parts(),
            Some(("pscw.ring", 2, "scc+fill", 7))
        );
    }

    #[test]
    fn a_malformed_line_is_bad_input_and_named() {
        for bad in [
            "a.b",
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
            let why = parse("f.tsv", &format!("# head\n{bad}\n")).expect_err(bad);
            let place = format!("f.tsv:{}: ", 1 + bad.lines().count());
            assert!(
                why.to_string().starts_with(&place) && why.is::<Usage>(),
                "{why}"
            );
        }
    }

    #[test]
    fn all_profiles_must_be_argued_for() {
        let good = "# Title\nText.\n\n## `a.b.c`\n- `scc`: in order\n- `scc+fill`: as scc\n\
                    - `weak`: because\n  of this\n- `weak+fill`: as weak\n";
        assert_eq!(argued(good), (vec!["a.b.c".to_owned()], vec![]));
        for profile in PROFILES {
            let bad = good.replace(&format!("`{profile}`:"), "`other`:");
            let (names, errors) = argued(&bad);
            assert_eq!((names.len(), errors.len()), (1, 1), "{profile}");
            assert!(errors[0].ends_with(&format!("profile {profile}")));
        }
        assert_eq!(argued(&good.replace(" in order", "")).1.len(), 1);
        assert_eq!(argued("# Title\n\nNone.\n"), (vec![], vec![]));
    }
}
