//! `docs/equivalent-mutants.md`: points that may be broken without any case failing, with the
//! reasons.
//!
//! ````text
//! ## `name.of.a.point`
//! - `scc`: why nothing can show it there
//! - `scc+fill`: …                               all four profiles
//! ````

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::paths;

const DOCUMENT: &str = "docs/equivalent-mutants.md";

/// What has to be argued for.
const PROFILES: [&str; 4] = ["scc", "scc+fill", "weak", "weak+fill"];

/// The points that are argued to be equivalent.
///
/// # Errors
/// If the document cannot be read.
pub(crate) fn listed() -> Result<(Vec<String>, Vec<String>)> {
    let path: PathBuf = paths::root().join(DOCUMENT);
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {DOCUMENT}"))?;
    Ok(parse(&text))
}

/// Names, and what is wrong with the document.
fn parse(text: &str) -> (Vec<String>, Vec<String>) {
    let (mut names, mut errors) = (Vec::new(), Vec::new());
    for section in text.split("\n## ").skip(1) {
        let (title, body) = section.split_once('\n').unwrap_or((section, ""));
        let name = title.trim().trim_matches('`').to_owned();
        for profile in PROFILES {
            let bullet = format!("- `{profile}`:");
            let argued = body
                .lines()
                .find_map(|line| line.strip_prefix(&bullet))
                .is_some_and(|why| !why.trim().is_empty());
            if !argued {
                errors.push(format!(
                    "{DOCUMENT}: {name}: nothing is argued for profile {profile}"
                ));
            }
        }
        names.push(name);
    }
    (names, errors)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "# Title\nText.\n\n## `a.b.c`\n- `scc`: in order\n- `scc+fill`: as scc\n\
                        - `weak`: because\n  of this\n- `weak+fill`: as weak\n";

    #[test]
    fn all_profiles_must_be_argued_for() {
        assert_eq!(parse(GOOD), (vec!["a.b.c".to_owned()], vec![]));
        for profile in PROFILES {
            let bad = GOOD.replace(&format!("`{profile}`:"), "`other`:");
            let (names, errors) = parse(&bad);
            assert_eq!((names.len(), errors.len()), (1, 1), "{profile}");
            assert!(errors[0].ends_with(&format!("profile {profile}")));
        }
        assert_eq!(parse(&GOOD.replace(" in order", "")).1.len(), 1);
    }

    #[test]
    fn no_section_is_no_point() {
        assert_eq!(parse("# Title\n\nNone.\n"), (vec![], vec![]));
    }
}
