//! The mutation points of the sources, and the check that nothing of their kind stands outside of
//! one.
//!
//! # Rules
//! In the kernel and its links, outside of tests:
//! * P1. A call of one of [`STEPS`] stands in `point!`, `order!` or `lock_point!`; or it is handed
//!   a `site!(…)`; or it is handed on what the enclosing function has got as a `Site`; or that
//!   function bears the step's own name, so that *its* calls are looked at.
//! * P2. No such step is passed around as a path (`Self::drain`), or renamed by a `use`, where a
//!   call would go unseen.
//! * P3. Names are literal, and no two points have the same one.
//! * P4. A point says why its step is there, in plain English: at least [`WORDS`] words.
//! * P5. A step does not stand beside a wrong copy of it: what follows `else` is one expression on
//!   one line. Wrong copies are functions in files `wrong.rs`, which are not read, and which the
//!   compiler reads with `--cfg mutants` only.
//!
//! Sources are read as the compiler's tokens, so comments and strings do not matter; the inside of
//! macros counts like everything else, and so do the bodies of macros, but for those of points.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use crate::paths;

/// Files that are not read: tests, whose `mod` is for tests only, and wrong copies.
const LEFT_OUT: [&str; 2] = ["tests.rs", "wrong.rs"];

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
    /// Its parameters that are sites, and what it has called a site.
    sites: Vec<String>,
}

struct Walk<'a> {
    file: &'a str,
    found: &'a mut Found,
}

impl Walk<'_> {
    fn tokens(&mut self, tokens: TokenStream, around: &Around) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut around = around.clone();
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
                TokenTree::Ident(word)
                    if word == "mod"
                        && matches!(rest, [name, end, ..] if is_word(name, "wrong") && is(end, ';')) =>
                {
                    let before = at.checked_sub(2).and_then(|before| tokens.get(before));
                    if !before.is_some_and(|token| is_group(token, "[cfg(mutants)]")) {
                        let (file, line) = (self.file, word.span().start().line);
                        self.found.errors.push(format!(
                            "{file}:{line}: `mod wrong` without `#[cfg(mutants)]` right before it"
                        ));
                    }
                }
                TokenTree::Ident(word)
                    if word == "let"
                        && matches!(rest, [_, equals, site, ..] if is(equals, '=') && is_word(site, "site")) =>
                {
                    around.function.sites.push(rest[0].to_string());
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
                        self.point(&word, body, &around);
                        at += 2;
                    } else if STEPS.contains(&&*word) {
                        self.step(&word, before, rest, &around);
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
        let tokens: Vec<TokenTree> = body.stream().into_iter().collect();
        let tagged = match (word, &*tokens) {
            ("order", rest) | ("point" | "site", [TokenTree::Ident(_), rest @ ..]) => rest,
            _ => &[],
        };
        match (tagged, &*tokens) {
            ([TokenTree::Literal(why), colon, TokenTree::Literal(name), ..], _)
                if is(colon, ':') =>
            {
                let words = |text: &str| text.split(' ').filter(|word| !word.is_empty()).count();
                let [why, name] = [why, name].map(|text| text.to_string().replace('"', ""));
                if words(&why) < WORDS {
                    self.found.errors.push(format!(
                        "{place}: {name} does not say why the step is there: \"{why}\""
                    ));
                }
                self.found.points.push(Point { name, place });
            }
            (_, [TokenTree::Ident(site), ..])
                if word != "site" && around.function.sites.contains(&site.to_string()) => {}
            _ => self.found.errors.push(format!(
                "{place}: {word}! begins neither with a reason and a name nor with a site that the \
                 function was given"
            )),
        }
        let instead = tokens.iter().skip_while(|token| !is(token, ';')).skip(1);
        let lines = instead.clone().map(|token| token.span().start().line);
        let last = instead.clone().map(|token| token.span().end().line).max();
        if lines.clone().min() != last || instead.clone().any(has_braces) {
            let (file, line) = (self.file, lines.min().unwrap_or(0));
            self.found.errors.push(format!(
                "{file}:{line}: more than one expression on one line after `else`: make it a \
                 function in a file wrong.rs"
            ));
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
            "{file}:{line}: `{what}` outside of a mutation point (see points/src/lib.rs)"
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
    rest.first()
        .is_some_and(|attribute| is_group(attribute, "[cfg(test)]"))
}

/// Whether there are braces in it, however deep.
fn has_braces(token: &TokenTree) -> bool {
    match token {
        TokenTree::Group(group) => {
            group.delimiter() == Delimiter::Brace
                || group.stream().into_iter().any(|token| has_braces(&token))
        }
        _ => false,
    }
}

fn is_group(token: &TokenTree, text: &str) -> bool {
    matches!(token, TokenTree::Group(group) if group.to_string().replace(' ', "") == text)
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
