//! The mutation points of the sources, and the check that nothing of their kind stands outside of
//! one.
//!
//! # Rules
//! In the kernel and its links, outside of tests:
//! * P1. A call of one of [`STEPS`] stands in `point!`, `order!` or `lock_point!`; or it is handed
//!   a `site!("…")`; or it is handed on what the enclosing function has got as a `Site`; or that
//!   function bears the step's own name, so that *its* calls are looked at.
//! * P2. No such step is passed around as a path (`Self::drain`), or renamed by a `use`, where a
//!   call would go unseen.
//! * P3. Names are literal, and no two points have the same one.
//!
//! Sources are read as the compiler's tokens, so comments and strings do not matter; the inside of
//! macros counts like everything else, and so do the bodies of macros, but for those of points.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use crate::paths;

/// What a file of tests is called; its `mod` is for tests only.
const TESTS: &str = "tests.rs";

/// Where points are: the kernel and its links.
const SOURCES: [&str; 6] = [
    "kernel/src",
    "kernel/link/src",
    "kernel/loadstore/src",
    "kernel/mapped/src",
    "kernel/coherent/src",
    "kernel/network/src",
];

/// Calls that move cache lines, order accesses, lock, or wait for what must come first.
const STEPS: [&str; 32] = [
    // The machine's.
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
    // The link's and its parts'.
    "lock",
    "unlock",
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
    // The kernel's.
    "await_post",
    "agree",
    "barrier",
    "meet",
    "progress",
    "progress_aside",
];

/// The macros that are points.
const POINTS: [&str; 4] = ["point", "order", "lock_point", "site"];

/// A named point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) name: String,
    /// `file:line`.
    pub(crate) place: String,
}

/// What the sources hold.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// In alphabetical order.
    pub(crate) points: Vec<Point>,
    /// Steps outside of points, names used twice.
    pub(crate) errors: Vec<String>,
}

/// Reads all sources.
///
/// # Errors
/// If one cannot be read.
pub(crate) fn scan() -> Result<Found> {
    let mut found = Found::default();
    for directory in SOURCES {
        for path in files(&paths::root().join(directory))? {
            let text = std::fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            found.source(&paths::shorten(&path.display().to_string()), &text);
        }
    }
    found.finish();
    Ok(found)
}

/// The Rust files below a directory, in order.
fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries = std::fs::read_dir(directory)
        .with_context(|| format!("cannot read {}", directory.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !path.ends_with(TESTS)
        {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

impl Found {
    /// Reads one source.
    fn source(&mut self, file: &str, text: &str) {
        match text.parse::<TokenStream>() {
            Ok(tokens) => Walk { file, found: self }.tokens(tokens, &Around::default()),
            Err(why) => self.errors.push(format!("{file}: not Rust: {why}")),
        }
    }

    /// Sorts, and complains about names that are used twice.
    fn finish(&mut self) {
        self.points.sort_by(|a, b| a.name.cmp(&b.name));
        let mut places: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for point in &self.points {
            places.entry(&point.name).or_default().push(&point.place);
        }
        for (name, places) in places {
            if places.len() > 1 {
                let places = places.join(", ");
                self.errors
                    .push(format!("{places}: several points are called {name}"));
            }
        }
        self.points.dedup_by(|a, b| a.name == b.name);
    }
}

/// What surrounds a token.
#[derive(Clone, Default)]
struct Around {
    /// It stands in a point.
    point: bool,
    function: Function,
}

/// The enclosing function.
#[derive(Clone, Default)]
struct Function {
    name: String,
    /// Its parameters that are sites.
    sites: Vec<String>,
}

struct Walk<'a> {
    file: &'a str,
    found: &'a mut Found,
}

impl Walk<'_> {
    fn tokens(&mut self, tokens: TokenStream, around: &Around) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        // A function, from its name to its body.
        let mut declared: Option<Function> = None;
        while let Some(token) = tokens.get(at) {
            let rest = &tokens[at + 1..];
            at += 1;
            match token {
                TokenTree::Punct(mark) if mark.as_char() == '#' && is_for_tests(rest) => {
                    at += item(rest);
                    continue;
                }
                TokenTree::Punct(mark) if mark.as_char() == ';' => declared = None,
                TokenTree::Ident(word) if word == "use" => {
                    let names = rest.iter().take_while(|token| !is(token, ';')).count();
                    self.renamed(&rest[..names]);
                    at += names;
                }
                // Those that make points: what is in there stands in one.
                TokenTree::Ident(word)
                    if word == "macro_rules"
                        && matches!(rest, [_, name, ..] if POINTS.iter().any(|point| is_word(name, point))) =>
                {
                    at += item(rest);
                }
                TokenTree::Ident(word) if word == "fn" => {
                    declared = Some(Function {
                        name: rest.first().map_or(String::new(), ToString::to_string),
                        sites: parameters(rest),
                    });
                }
                TokenTree::Ident(word) => {
                    let word = word.to_string();
                    let before = at.checked_sub(2).and_then(|before| tokens.get(before));
                    if let [TokenTree::Punct(mark), TokenTree::Group(body), ..] = rest
                        && mark.as_char() == '!'
                        && POINTS.contains(&&*word)
                    {
                        self.point(&word, body, around);
                        at += 2;
                    } else if STEPS.contains(&&*word) {
                        self.step(&word, before, rest, around);
                    }
                }
                TokenTree::Group(group) => {
                    let is_body = group.delimiter() == Delimiter::Brace;
                    let inner = Around {
                        point: around.point,
                        function: match (&declared, is_body) {
                            (Some(declared), true) => declared.clone(),
                            _ => around.function.clone(),
                        },
                    };
                    self.tokens(group.stream(), &inner);
                    if is_body {
                        declared = None;
                    }
                }
                _ => {}
            }
        }
    }

    /// What a `use` names: no step by another name.
    fn renamed(&mut self, names: &[TokenTree]) {
        for (number, token) in names.iter().enumerate() {
            match token {
                TokenTree::Group(group) => {
                    self.renamed(&group.stream().into_iter().collect::<Vec<_>>());
                }
                TokenTree::Ident(word)
                    if STEPS.contains(&&*word.to_string())
                        && names
                            .get(number + 1)
                            .is_some_and(|next| is_word(next, "as")) =>
                {
                    let (file, line) = (self.file, word.span().start().line);
                    self.found.errors.push(format!(
                        "{file}:{line}: `{word}` by another name, where its calls go unseen"
                    ));
                }
                _ => {}
            }
        }
    }

    /// One of our macros.
    fn point(&mut self, word: &str, body: &Group, around: &Around) {
        let place = self.place(body);
        match body.stream().into_iter().next() {
            Some(TokenTree::Literal(name)) => {
                let name = name.to_string().trim_matches('"').to_owned();
                self.found.points.push(Point { name, place });
            }
            Some(TokenTree::Ident(site))
                if word != "site" && around.function.sites.contains(&site.to_string()) => {}
            _ => self.found.errors.push(format!(
                "{place}: {word}! begins neither with a name nor with a site that the function was given"
            )),
        }
        let inner = Around {
            point: true,
            function: around.function.clone(),
        };
        self.tokens(body.stream(), &inner);
    }

    /// The name of a step, with what stands before and behind it.
    fn step(
        &mut self,
        word: &str,
        before: Option<&TokenTree>,
        rest: &[TokenTree],
        around: &Around,
    ) {
        if around.point {
            return;
        }
        let is_path = before.is_some_and(|token| is(token, ':'));
        let what = match rest.first() {
            Some(TokenTree::Group(arguments))
                if arguments.delimiter() == Delimiter::Parenthesis =>
            {
                let function = &around.function;
                let declared = before.is_some_and(|token| is_word(token, "fn"));
                if declared || function.name == word || hands_on(arguments, &function.sites) {
                    return;
                }
                format!("{word}(…)")
            }
            // `Self::drain` as a value; but not a module's name in a longer path.
            next if is_path && !next.is_some_and(|token| is(token, ':')) => format!("::{word}"),
            _ => return,
        };
        let line = before.map_or(0, |token| token.span().start().line);
        let file = self.file;
        self.found.errors.push(format!(
            "{file}:{line}: `{what}` outside of a mutation point (see kernel/link/src/mutant.rs)"
        ));
    }

    fn place(&self, group: &Group) -> String {
        format!("{}:{}", self.file, group.span_open().start().line)
    }
}

/// Whether a call's arguments hold `site!` or a site that the function was given.
fn hands_on(arguments: &Group, sites: &[String]) -> bool {
    let tokens: Vec<TokenTree> = arguments.stream().into_iter().collect();
    let names_one = |token: &TokenTree| match token {
        TokenTree::Ident(word) => sites.contains(&word.to_string()),
        _ => false,
    };
    let makes_one = |pair: &[TokenTree]| is_word(&pair[0], "site") && is(&pair[1], '!');
    tokens.iter().any(names_one) || tokens.windows(2).any(makes_one)
}

/// The parameters of a function that are sites, from what follows `fn`.
fn parameters(rest: &[TokenTree]) -> Vec<String> {
    let list = rest.iter().find_map(|token| match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis => Some(group),
        _ => None,
    });
    let mut found = Vec::new();
    let tokens: Vec<TokenTree> = list.into_iter().flat_map(|list| list.stream()).collect();
    for parameter in tokens.split(|token| is(token, ',')) {
        let mut words = Vec::new();
        words_of(parameter, &mut words);
        if words.iter().any(|word| word == "Site") {
            found.extend(words.into_iter().filter(|word| word != "Site"));
        }
    }
    found
}

/// All words in some tokens, however deep.
fn words_of(tokens: &[TokenTree], words: &mut Vec<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(word) => words.push(word.to_string()),
            TokenTree::Group(group) => {
                words_of(&group.stream().into_iter().collect::<Vec<_>>(), words);
            }
            _ => {}
        }
    }
}

/// Whether what follows a `#` is `[cfg(test)]`.
fn is_for_tests(rest: &[TokenTree]) -> bool {
    match rest.first() {
        Some(TokenTree::Group(attribute)) => {
            attribute.to_string().replace(' ', "") == "[cfg(test)]"
        }
        _ => false,
    }
}

/// How many tokens an item takes: up to its braces or semicolon.
fn item(tokens: &[TokenTree]) -> usize {
    let ends = |token: &TokenTree| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        token => is(token, ';'),
    };
    tokens
        .iter()
        .position(ends)
        .map_or(tokens.len(), |end| end + 1)
}

fn is(token: &TokenTree, mark: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == mark)
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(source: &str) -> Found {
        let mut found = Found::default();
        found.source("a.rs", source);
        found.finish();
        found
    }

    fn names(source: &str) -> Vec<String> {
        let found = found(source);
        assert!(found.errors.is_empty(), "{:?}", found.errors);
        found.points.into_iter().map(|point| point.name).collect()
    }

    #[test]
    fn our_sources_are_in_order() {
        let found = scan().unwrap();
        assert!(found.errors.is_empty(), "{:?}", found.errors);
        assert!(found.points.len() > 50, "{}", found.points.len());
    }

    #[test]
    fn points_are_found_with_their_lines() {
        let source = "fn f() {\n  order!(\"b\", point!(\"a\", m.drain()), {\n x.fence(); })\n}";
        let points = found(source).points;
        let places: Vec<_> = points.iter().map(|p| (&*p.name, &*p.place)).collect();
        assert_eq!(places, [("a", "a.rs:2"), ("b", "a.rs:2")]);
    }

    #[test]
    fn a_step_outside_of_a_point_is_an_error() {
        for bad in [
            "self.machine.drain();",
            "self.machine . write_back ( &[lines] );",
            "M::acquire(&self.machine);",
            "Coherence::invalidate(m, &[]);",
            "fence(SeqCst);",
            "let held = machine.try_lock(core);",
            "let held = self.lock(to)?;",
            "if x { point!(\"a\", y()); core.refresh(lines)?; }",
            "let act = Self::drain; act();",
            "spans.iter().for_each(M::drain);",
            "vec![self.link.fence()];",
            "loop { |x| { world.barrier() } }",
            "fn g() {} self.link.publish();",
            "fn publish() { self.link.refresh(); }",
        ] {
            let found = found(&format!("fn f(&self) {{ {bad} }}"));
            assert_eq!(found.errors.len(), 1, "{bad}: {:?}", found.errors);
            assert!(found.errors[0].contains("outside of a mutation point"));
        }
    }

    #[test]
    fn a_step_is_seen_by_another_name_and_in_a_macro() {
        for bad in [
            "use super::drain as quiet;",
            "mod alias { pub(crate) use super::{x, drain as quiet}; }",
            "macro_rules! hush { ($m:expr) => { $m.invalidate(&[]) }; }",
            "fn f(&self) { self.machine.settle(); }",
            "fn f(&self) { self.before_telling(None)?; }",
        ] {
            assert_eq!(found(bad).errors.len(), 1, "{bad}");
        }
    }

    #[test]
    fn comments_strings_tests_and_definitions_do_not_count() {
        let source = r#"
            use crate::epoch::fence;
            use flagpost_link::{lock, mutant::Site};
            pub use epoch::fence::Fence;
            /// `self.machine.drain()` does it.
            fn drain(&self) { /* m.drain() */ let s = "m.drain()"; } // m.drain()
            trait T { fn fence(&self); fn lock(&self) -> bool; }
            #[cfg(test)]
            mod tests { fn t() { m.drain(); } }
            #[cfg(test)]
            use x::y;
            macro_rules! point { ($a:expr) => { m.drain() } }
            fn after() { drained(); let drain = 1; }
            fn publish(&self) { self.link.publish() }
        "#;
        assert!(names(source).is_empty());
        let behind = format!("{source} fn g() {{ m.drain() }}");
        assert_eq!(found(&behind).errors.len(), 1);
    }

    #[test]
    fn sites_may_be_handed_on_by_those_who_were_given_one() {
        assert_eq!(
            names("fn f() { let held = self.lock(to, site!(\"a\"))?; }"),
            ["a"]
        );
        assert!(
            names("fn f(&self, to: Rank, [lock, x]: [Site; 2]) { self.unlock(h, lock); point!(x, m.drain()) }")
                .is_empty()
        );
        for bad in [
            "fn f(lock: Rank) { self.lock(to, lock) }",
            "fn f(a: Site) { } fn g() { self.lock(to, a) }",
            "fn f() { point!(a, m.drain()) }",
            "fn f() { point!(concat!(\"a\"), x()) }",
        ] {
            assert_eq!(found(bad).errors.len(), 1, "{bad}");
        }
    }

    #[test]
    fn a_name_is_used_once() {
        let found = found("fn f() { point!(\"a\", x()); order!(\"a\", y(), z()); }");
        assert_eq!(
            found.errors,
            ["a.rs:1, a.rs:1: several points are called a"]
        );
    }

    #[test]
    fn what_is_no_rust_is_an_error() {
        assert_eq!(found("fn f( {").errors.len(), 1);
    }
}
