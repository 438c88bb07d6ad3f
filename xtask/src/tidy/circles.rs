//! Circles between the files of a crate: files that all need each other, so that none can be read
//! alone. One of more than two files is refused.
//!
//! A file needs another one if it names something that the other one defines, by a path: in a
//! `use`, or where it stands in code, macros included. What counts, and what does not:
//!
//! * A module stands above what is inside of it, and may use that: such a need is not counted. One
//!   the other way, of something that the module itself defines, is.
//! * A re-export (`pub use`, `pub(crate) use`) is a sign that says where things are. A path by way
//!   of it leads to the file that defines the thing.
//! * What the crate's root re-exports (`Error`, `World`) is the crate's vocabulary: all files speak
//!   it, so to name it there (`use crate::Error`) is not counted.
//! * `$crate` is how a macro names things for other crates: not counted.
//! * A call of a method has no path, and is not seen. Tests are left out.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::{Finding, Tree};

/// The largest circle that is allowed, in files.
const MOST: usize = 2;

/// The names of a path, from its first one on; `super` and `crate` included.
type Path = Vec<String>;

/// A crate's files, by the paths of their modules. The root's path is empty.
#[derive(Debug, Default)]
struct Files {
    /// The file of each module, modules inside of files included.
    modules: BTreeMap<Path, String>,
    /// What each module imports, by the name that it gets there.
    imports: BTreeMap<Path, Vec<Import>>,
    /// Paths in code, with the modules in which they stand.
    paths: Vec<(Path, Path)>,
    /// Modules that only tests have.
    tests: BTreeSet<Path>,
}

/// One name of a `use`.
#[derive(Debug)]
struct Import {
    /// What it is called here; `*` for all that a module has.
    name: String,
    path: Path,
    /// Others may use it by this module.
    shared: bool,
}

/// The circles that are too large; and, to be printed, the files of the largest circle of all.
/// Programs in `src/bin` are crates of their own.
pub(super) fn check(tree: &Tree) -> (Vec<Finding>, Vec<String>) {
    let mut found = Vec::new();
    let mut largest = Vec::new();
    let names = || tree.files.keys();
    let sources =
        names().filter_map(|name| Some(format!("{}src/", name.strip_suffix("Cargo.toml")?)));
    let programs = names().filter(|name| name.contains("/src/bin/"));
    let programs = programs.filter_map(|name| Some(name.strip_suffix("main.rs")?.to_owned()));
    for directory in sources.chain(programs) {
        for circle in circles(&Files::read(tree, &directory).needs()) {
            if circle.len() > MOST {
                let what = format!(
                    "a circle of {} files, at most {MOST}: {}: move what both sides need to a file \
                     of its own, below them",
                    circle.len(),
                    circle.join(", ")
                );
                found.push(Finding(circle[0].clone(), 1, what));
            }
            if circle.len() > largest.len() {
                largest = circle;
            }
        }
    }
    (found, largest)
}

/// The groups of files that all need each other, larger than one.
fn circles(needs: &BTreeMap<String, BTreeSet<String>>) -> Vec<Vec<String>> {
    let all: BTreeMap<_, _> = { needs.keys().map(|file| (file, reached(needs, file))) }.collect();
    let circle = |file: &String| -> Vec<String> {
        let mutual = |other: &&&String| all.get(**other).is_some_and(|back| back.contains(file));
        all[file].iter().filter(mutual).copied().cloned().collect()
    };
    let groups: BTreeSet<_> = needs.keys().map(circle).collect();
    groups.into_iter().filter(|group| group.len() > 1).collect()
}

/// The files that `from` needs, directly or by way of others.
fn reached<'a>(needs: &'a BTreeMap<String, BTreeSet<String>>, from: &str) -> BTreeSet<&'a String> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(file) = open.pop() {
        for next in needs.get(file).into_iter().flatten() {
            if reached.insert(next) {
                open.push(next);
            }
        }
    }
    reached
}

/// Is `file` part of the module whose first file is `parent`?
fn contains(parent: &str, file: &str) -> bool {
    let parent = parent.strip_suffix(".rs").unwrap_or(parent);
    let names = ["/lib", "/main", "/mod"];
    let folder = names.iter().find_map(|name| parent.strip_suffix(name));
    let inside = file.strip_prefix(folder.unwrap_or(parent));
    inside.is_some_and(|inside| inside.starts_with('/'))
}

impl Files {
    /// Reads the files below `directory`.
    fn read(tree: &Tree, directory: &str) -> Self {
        let mut files = Self::default();
        for (name, text) in tree.files.range(directory.to_owned()..) {
            let Some(inside) = name.strip_prefix(directory) else {
                break;
            };
            let path = inside.strip_suffix(".rs");
            let Some(path) = path.filter(|path| !path.starts_with("bin/")) else {
                continue;
            };
            let mut module: Path = path.split('/').map(str::to_owned).collect();
            let root = ["lib", "main"].contains(&path);
            if root || path.ends_with("/mod") {
                module.pop();
            }
            // A file that is no Rust is none of this check's: the compiler tells.
            if let Ok(tokens) = text.parse() {
                files
                    .modules
                    .entry(module.clone())
                    .or_insert_with(|| name.clone());
                files.walk(name, &module, tokens);
            }
        }
        let tests = std::mem::take(&mut files.tests);
        let is_test = |module: &Path| tests.iter().any(|test| module.starts_with(test));
        files.modules.retain(|module, _| !is_test(module));
        files
    }

    /// Which files each file needs.
    fn needs(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut needs: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let imports = self.imports.iter().flat_map(|(module, imports)| {
            let own = imports.iter().filter(|import| !import.shared);
            own.map(move |import| (module, &import.path))
        });
        let paths = self.paths.iter().map(|(module, path)| (module, path));
        for (module, path) in imports.chain(paths) {
            let (Some(from), Some(to)) = (self.modules.get(module), self.find(module, path, 0))
            else {
                continue;
            };
            if *from != to && !contains(from, &to) {
                needs.entry(from.clone()).or_default().insert(to);
            }
        }
        needs
    }

    /// The file that defines what `path` names in `module`, if it is one of the crate's.
    fn find(&self, module: &[String], path: &[String], depth: usize) -> Option<String> {
        // Two modules may import all of each other.
        if depth > 8 {
            return None;
        }
        let (first, mut rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => Vec::new(),
            "self" => module.to_vec(),
            "super" => module.split_last()?.1.to_vec(),
            name => {
                let child = [module, &[name.to_owned()]].concat();
                if self.modules.contains_key(&child) {
                    child
                } else {
                    // A module that has been imported.
                    let import = self.import(module, name)?;
                    let whole = [&import.path[..], rest].concat();
                    return self.find(module, &whole, depth + 1);
                }
            }
        };
        while let Some((name, after)) = rest.split_first() {
            let next = match name.as_str() {
                "self" => at.clone(),
                "super" => at.split_last()?.1.to_vec(),
                _ => [&at[..], std::slice::from_ref(name)].concat(),
            };
            if !self.modules.contains_key(&next) {
                break;
            }
            (at, rest) = (next, after);
        }
        let shared = |name: &String| self.import(&at, name).filter(|import| import.shared);
        match rest.first().and_then(shared) {
            Some(_) if at.is_empty() => None,
            Some(import) => {
                let after = &rest[1..];
                self.find(&at, &[&import.path[..], after].concat(), depth + 1)
            }
            None => self.modules.get(&at).cloned(),
        }
    }

    fn import(&self, module: &[String], name: &str) -> Option<&Import> {
        let imports = self.imports.get(module)?;
        imports.iter().find(|import| import.name == name)
    }

    /// Reads what stands in a module.
    fn walk(&mut self, file: &str, module: &Path, tokens: TokenStream) {
        let tokens: Vec<_> = tokens.into_iter().collect();
        let (mut at, mut tested, mut shared) = (0, false, false);
        while let Some(token) = tokens.get(at) {
            let next = tokens.get(at + 1);
            at += 1;
            match token {
                TokenTree::Punct(mark) if mark.as_char() == '#' => {
                    let Some(TokenTree::Group(attribute)) = next else {
                        continue;
                    };
                    tested |= attribute.stream().to_string().replace(' ', "") == "cfg(test)";
                    at += 1;
                }
                TokenTree::Group(group) => {
                    if !tested {
                        self.walk(file, module, group.stream());
                    }
                    // What an attribute is about ends with its body.
                    if group.delimiter() == Delimiter::Brace {
                        (tested, shared) = (false, false);
                    }
                }
                TokenTree::Punct(mark) if mark.as_char() == ';' => {
                    (tested, shared) = (false, false);
                }
                TokenTree::Ident(word) if word == "pub" => {
                    shared = true;
                    at += usize::from(matches!(next, Some(TokenTree::Group(_))));
                }
                TokenTree::Ident(word) if word == "mod" => {
                    let Some(TokenTree::Ident(name)) = next else {
                        continue;
                    };
                    let inner = [&module[..], &[name.to_string()]].concat();
                    if tested {
                        self.tests.insert(inner);
                    } else if let Some(TokenTree::Group(body)) = tokens.get(at + 1) {
                        self.modules.insert(inner.clone(), file.to_owned());
                        self.walk(file, &inner, body.stream());
                        at += 2;
                        shared = false;
                    }
                }
                TokenTree::Ident(word) if word == "use" => {
                    let end = tokens[at..].iter().position(|token| is(token, ';'));
                    let end = end.map_or(tokens.len(), |end| at + end);
                    // In a macro, for other crates.
                    let foreign = tokens[at..end].iter().any(|token| is(token, '$'));
                    if !tested && !foreign {
                        let mut imports = Vec::new();
                        tree(&tokens[at..end], &[], shared, &mut imports);
                        self.imports
                            .entry(module.clone())
                            .or_default()
                            .extend(imports);
                    }
                    at = end;
                }
                TokenTree::Ident(word) => {
                    let foreign = { at.checked_sub(2).and_then(|before| tokens.get(before)) }
                        .is_some_and(|before| is(before, '$'));
                    let mut path = vec![word.to_string()];
                    while let Some([a, b, TokenTree::Ident(name)]) = tokens.get(at..at + 3)
                        && is(a, ':')
                        && is(b, ':')
                    {
                        path.push(name.to_string());
                        at += 3;
                    }
                    if path.len() > 1 && !tested && !foreign {
                        self.paths.push((module.clone(), path));
                    }
                    shared = false;
                }
                _ => {}
            }
        }
    }
}

fn is(token: &TokenTree, mark: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == mark)
}

/// The imports of a `use` after `prefix`: `a::{b, c::d as e, f::*}`.
fn tree(tokens: &[TokenTree], prefix: &[String], shared: bool, imports: &mut Vec<Import>) {
    for part in tokens.split(|token| is(token, ',')) {
        let mut path = prefix.to_vec();
        let mut name = None;
        let mut tokens = part.iter();
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Ident(word) if word == "as" => {
                    name = tokens.next().map(ToString::to_string);
                }
                TokenTree::Ident(word) => path.push(word.to_string()),
                TokenTree::Punct(mark) if mark.as_char() == '*' => name = Some("*".to_owned()),
                TokenTree::Group(group) => {
                    let inner: Vec<_> = group.stream().into_iter().collect();
                    tree(&inner, &path, shared, imports);
                    path.clear();
                }
                _ => {}
            }
        }
        if path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        if let Some(last) = path.last() {
            let name = name.unwrap_or_else(|| last.clone());
            imports.push(Import { name, path, shared });
        }
    }
}
