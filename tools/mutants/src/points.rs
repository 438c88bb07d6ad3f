//! The mutation points: what is wrong with those that the explorer lists, and what should stand in
//! one and does not.
//!
//! # Rules
//! The compiler sees to it that a name and a reason are literals, and that a call which needs a
//! site gets one: so what takes a `Site` is no step here. Only `site!` makes sites.
//! * P1. In the kernel and its links, outside of tests, a call of one of [`STEPS`] stands in
//!   `point!` or `order!`; or the enclosing function bears the step's own name, so that *its* calls
//!   are looked at.
//! * P2. No such step is passed around as a path (`Self::drain`), or renamed by a `use`, where a
//!   call would go unseen.
//! * P3. No two points have the same name.
//! * P4. A point says why its step is there, in plain English: at least [`WORDS`] words.
//! * P5. A step does not stand beside a wrong copy of it: what follows `else` is one expression on
//!   one line. Wrong copies are functions in files `wrong.rs`, which are not read, and which the
//!   compiler reads with `--cfg mutants` only.
//!
//! For P1 and P2 sources are read as the compiler's tokens: comments and strings do not matter, and
//! the inside of macros counts like everything else.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use serde_json::Value;

use crate::paths;

/// Files that are not read: tests, whose `mod` is for tests only, wrong copies, and a link around
/// another one, whose steps are those of the link inside.
const LEFT_OUT: [&str; 3] = ["tests.rs", "wrong.rs", "wraps.rs"];

/// A reason has at least so many words.
const WORDS: usize = 3;

/// Where points are: the kernel and its links, and of a port what moves message lines and takes
/// locks.
const SOURCES: [&str; 8] = [
    "hal/scc/src/lock.rs",
    "hal/scc/src/message.rs",
    "kernel/src",
    "kernel/link/src",
    "kernel/loadstore/src",
    "kernel/mapped/src",
    "kernel/coherent/src",
    "kernel/network/src",
];

/// Calls that move cache lines, order accesses, lock, or wait for what must come first: those of
/// the machine, of the link and its parts, and of the kernel.
const STEPS: [&str; 30] = [
    "write_back",
    "invalidate",
    "drain",
    "acquire",
    "try_lock",
    "test_and_set",
    "release_at_start",
    "settle",
    "fence",
    "compiler_fence",
    "publish",
    "refresh",
    "connect",
    "flush",
    "flush_at_once",
    "expect",
    "reset",
    "clear_rings",
    "clear_slots",
    "place_held",
    "place_entry",
    "before_telling",
    "before_access",
    "await_heard",
    "await_post",
    "agree",
    "barrier",
    "meet",
    "progress",
    "progress_aside",
];

/// The macros that are points.
const POINTS: [&str; 4] = ["point", "order", "lock_point", "site"];

/// What is wrong with points as the explorer lists them.
pub(crate) fn judge(points: &[Value]) -> Vec<String> {
    let mut errors = Vec::new();
    let mut places: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for point in points {
        let [name, why, instead, place] =
            ["point", "why", "instead", "place"].map(|key| point[key].as_str().unwrap_or(""));
        places.entry(name).or_default().push(place);
        if why.split_whitespace().count() < WORDS {
            errors.push(format!(
                "{place}: {name} does not say why the step is there: {why:?}"
            ));
        }
        if instead.contains(['{', '\n']) {
            errors.push(format!(
                "{place}: {name} has more than one expression on one line after `else`: make it a \
                 function in a file wrong.rs"
            ));
        }
    }
    for (name, places) in places.into_iter().filter(|(_, places)| places.len() > 1) {
        let places = places.join(", ");
        errors.push(format!("{places}: several points are called {name}"));
    }
    errors
}

/// What is wrong with the sources: steps outside of points.
///
/// # Errors
/// If one cannot be read.
pub(crate) fn scan() -> Result<Vec<String>> {
    let mut errors = Vec::new();
    for directory in SOURCES {
        for path in files(&paths::root().join(directory))? {
            let text = std::fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            let file = paths::shorten(&path.display().to_string());
            errors.extend(source(&file, &text));
        }
    }
    Ok(errors)
}

/// The Rust files below a directory, in order; or the one file.
fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    if directory.is_file() {
        return Ok(vec![directory.to_owned()]);
    }
    let mut found = Vec::new();
    let entries = std::fs::read_dir(directory)
        .with_context(|| format!("cannot read {}", directory.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !LEFT_OUT.iter().any(|name| path.ends_with(name))
        {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// What is wrong with one source.
fn source(file: &str, text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    match text.parse::<TokenStream>() {
        Ok(tokens) => walk(tokens, false, "", &mut errors),
        Err(why) => errors.push((0, format!("not Rust: {why}"))),
    }
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    for (number, line) in lines.iter().enumerate() {
        let before = number.checked_sub(1).map(|before| lines[before]);
        if line.ends_with("mod wrong;") && before != Some("#[cfg(mutants)]") {
            let why = "`mod wrong` without `#[cfg(mutants)]` on the line before it";
            errors.push((number + 1, why.to_owned()));
        }
        if line.contains("Site::new(") {
            errors.push((number + 1, "a site that `site!` has not made".to_owned()));
        }
    }
    let told = errors.into_iter();
    told.map(|(line, why)| format!("{file}:{line}: {why}"))
        .collect()
}

/// Looks for steps outside of points, in the function of this name.
fn walk(tokens: TokenStream, in_point: bool, function: &str, errors: &mut Vec<(usize, String)>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    // A function, from its name to its body.
    let mut declared: Option<String> = None;
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let before = at.checked_sub(1).map(|before| tokens[before].to_string());
        let rest = &tokens[at + 1..];
        at += 1;
        match token {
            TokenTree::Punct(mark) if mark.as_char() == ';' => declared = None,
            TokenTree::Punct(mark) if mark.as_char() == '#' && is_for_tests(rest) => {
                at += item(rest);
            }
            TokenTree::Group(group) => {
                let body = declared.take_if(|_| group.delimiter() == Delimiter::Brace);
                let function = body.as_deref().unwrap_or(function);
                walk(group.stream(), in_point, function, errors);
            }
            TokenTree::Ident(word) => {
                let (word, line) = (word.to_string(), word.span().start().line);
                let next = rest.first().map(ToString::to_string).unwrap_or_default();
                match rest {
                    [_, TokenTree::Group(body), ..] if next == "!" && POINTS.contains(&&*word) => {
                        walk(body.stream(), true, function, errors);
                        at += 2;
                    }
                    [name, ..] if word == "fn" => declared = Some(name.to_string()),
                    _ if word == "use" => {
                        let names = rest.iter().take_while(|token| token.to_string() != ";");
                        at += names.clone().count();
                        let names: TokenStream = names.cloned().collect();
                        errors.extend(renamed(&names.to_string()).map(|why| (line, why)));
                    }
                    _ if in_point || !STEPS.contains(&&*word) => {}
                    [TokenTree::Group(arguments), ..]
                        if arguments.delimiter() == Delimiter::Parenthesis =>
                    {
                        let of_its_name = function == word || before.as_deref() == Some("fn");
                        let outside = (!of_its_name).then(|| outside(&format!("{word}(…)")));
                        errors.extend(outside.map(|why| (line, why)));
                    }
                    // `Self::drain` as a value; but not a module's name in a longer path.
                    _ if before.as_deref() == Some(":") && next != ":" => {
                        errors.push((line, outside(&format!("::{word}"))));
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
}

/// A step that a `use` names anew, if one does.
fn renamed(names: &str) -> Option<String> {
    let words = names.split(|c: char| !c.is_alphanumeric() && c != '_');
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let anew = |pair: &&[&str]| STEPS.contains(&pair[0]) && pair[1] == "as";
    let word = words.windows(2).find(anew)?[0];
    Some(format!(
        "`{word}` by another name, where its calls go unseen"
    ))
}

fn outside(what: &str) -> String {
    format!("`{what}` outside of a mutation point (see points/src/lib.rs)")
}

/// Whether what follows a `#` is `[cfg(test)]`.
fn is_for_tests(rest: &[TokenTree]) -> bool {
    rest.first()
        .is_some_and(|attribute| attribute.to_string().replace(' ', "") == "[cfg(test)]")
}

/// How many tokens an item takes: up to its braces or semicolon.
fn item(tokens: &[TokenTree]) -> usize {
    let ends = |token: &TokenTree| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        token => token.to_string() == ";",
    };
    let end = tokens.iter().position(ends);
    end.map_or(tokens.len(), |end| end + 1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn errors(text: &str) -> Vec<String> {
        source("a.rs", text)
    }

    #[test]
    fn our_sources_are_in_order() {
        assert_eq!(scan().unwrap(), [""; 0]);
    }

    #[test]
    fn a_step_outside_of_a_point_is_an_error() {
        for bad in [
            "fn f(&self) { self.machine.drain(); }",
            "fn f(&self) { self.machine . write_back ( &[lines] ); }",
            "fn f(&self) { M::acquire(&self.machine); }",
            "fn f(&self) { fence(SeqCst); }",
            "fn f(&self) { if x { point!(WAIT \"b\": \"a\", y()); core.refresh(lines)?; } }",
            "fn f(&self) { let act = Self::drain; act(); }",
            "fn f(&self) { spans.iter().for_each(M::drain); }",
            "fn f(&self) { vec![self.link.fence()]; }",
            "fn f(&self) { loop { |x| { world.barrier() } } }",
            "fn f(&self) { fn g() {} self.link.publish(); }",
            "fn f(&self) { fn publish() { self.link.refresh(); } }",
            "macro_rules! hush { ($m:expr) => { $m.invalidate(&[]) }; }",
            "use super::drain as quiet;",
            "mod alias { pub(crate) use super::{x, drain as quiet}; }",
            "fn f(&self) { self.lock(to, Site::new(\"a\")); }",
            "mod wrong;",
            "#[cfg(not(mutants))]\nmod wrong;",
            "fn f( {",
        ] {
            assert_eq!(errors(bad).len(), 1, "{bad}: {:?}", errors(bad));
        }
        assert!(errors("\nfn f() { m.drain() }")[0].starts_with("a.rs:2: `drain(…)` outside"));
    }

    #[test]
    fn steps_in_points_comments_strings_tests_and_definitions_are_none() {
        let good = r#"
            use crate::epoch::fence;
            pub use epoch::fence::Fence;
            /// `self.machine.drain()` does it.
            fn drain(&self) { /* m.drain() */ let s = "m.drain()"; } // m.drain()
            trait T { fn fence(&self); }
            #[cfg(test)]
            mod tests { fn t() { m.drain(); } }
            #[cfg(test)]
            use x::y;
            fn after() { drained(); let drain = 1; }
            fn publish(&self) { self.link.publish() }
            fn in_points() { order!("b": "a", m.drain(), { x.fence(); }); point!(s, m.drain()) }
            #[cfg(mutants)]
            mod wrong;
        "#;
        assert_eq!(errors(good), [""; 0]);
        assert_eq!(errors(&format!("{good} fn g() {{ m.drain() }}")).len(), 1);
    }

    #[test]
    fn listed_points_have_names_of_their_own_reasons_and_no_wrong_copies() {
        let point = |name, why, instead| json!({"point": name, "why": why, "instead": instead});
        let good = point("a", "all have come", "Ok(())");
        assert_eq!(judge(std::slice::from_ref(&good)), [""; 0]);
        for (bad, told) in [
            (
                point("a", "all have come", ""),
                "several points are called a",
            ),
            (point("b", "G2: first", ""), "b does not say why"),
            (point("b", "all have come", "{ tell() }"), "a file wrong.rs"),
            (
                point("b", "all have come", "tell(\n  1)"),
                "a file wrong.rs",
            ),
        ] {
            let errors = judge(&[good.clone(), bad]);
            assert!(errors.len() == 1 && errors[0].contains(told), "{errors:?}");
        }
    }
}
