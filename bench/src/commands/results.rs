//! `cargo xtask bench results`: documented tables, compared with what their commands print.
//!
//! A table is a fenced block of a document in [`DOCUMENTS`]:
//!
//! ````text
//! ```console
//! $ cargo xtask bench tree --cores 17,48
//! what it prints
//! ```
//! ````
//!
//! | after `console` | when the command runs |
//! |---|---|
//! | nothing | always: in tests, too |
//! | `slow` | with `--all` |
//! | `host` | never: figures of one host on one day |

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use clap::Args;

use flagpost_common::{out, say};

/// Documents with tables.
const DOCUMENTS: [&str; 4] = [
    "docs/results.md",
    "docs/costs.md",
    "docs/models.md",
    "docs/log/pscw.md",
];

/// The repository.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Benchmarks of this program.
const OWN: &str = "cargo xtask bench ";

/// Those of another one.
const OF_HOST: &str = "cargo xtask bench instructions";

/// Compare the tables of the documents with what their commands print.
///
/// Quick tables take some seconds. The exit status is 1 if a table differs.
#[derive(Args, Debug)]
pub(crate) struct Results {
    /// Tables that take minutes, too: guest instructions under QEMU, and all numbers of targets
    #[arg(long)]
    all: bool,
    /// Only commands that contain this
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Put what the commands print into the documents
    #[arg(long)]
    write: bool,
}

impl Results {
    pub(crate) fn run(&self) -> ExitCode {
        let mut tables = Tally::default();
        for document in DOCUMENTS {
            if let Err(why) = self.document(document, &mut tables) {
                say(&format!("error: {document}: {why}"));
                return ExitCode::FAILURE;
            }
        }
        let Tally {
            same,
            differ,
            left_out,
        } = tables;
        let did = if self.write { "written" } else { "differ" };
        let hint = match differ {
            0 => "",
            _ if self.write => "",
            _ => "; cargo xtask bench results --write puts them right",
        };
        out(&format!(
            "{same} tables are as their commands print them, {differ} {did}, {left_out} left out{hint}"
        ));
        match differ > 0 && !self.write {
            true => ExitCode::FAILURE,
            false => ExitCode::SUCCESS,
        }
    }

    fn document(&self, name: &str, tally: &mut Tally) -> Result<(), String> {
        let path = Path::new(ROOT).join(name);
        let text = fs::read_to_string(&path).map_err(|why| why.to_string())?;
        let runs = |kind, command: &str| {
            command.contains(&self.only) && (kind == Kind::Quick || kind == Kind::Slow && self.all)
        };
        let found = compare(&text, &runs, tally, &mut printed, &mut |what| {
            out(&format!("{name}: {what}"));
        })?;
        if self.write && found != text {
            fs::write(&path, found).map_err(|why| why.to_string())?;
        }
        Ok(())
    }
}

/// When the commands of a block run.
#[derive(Copy, Clone, Debug, PartialEq)]
enum Kind {
    Quick,
    Slow,
    Host,
}

/// Numbers of tables, each below its command.
#[derive(Default, Debug, PartialEq)]
struct Tally {
    same: usize,
    differ: usize,
    left_out: usize,
}

/// The text as it would be if every table were what its command prints.
fn compare(
    text: &str,
    runs: &dyn Fn(Kind, &str) -> bool,
    tally: &mut Tally,
    print: &mut dyn FnMut(&str) -> Result<String, String>,
    tell: &mut dyn FnMut(&str),
) -> Result<String, String> {
    const FENCE: &str = "```";
    let mut found = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        push(&mut found, line);
        let Some(kind) = line.strip_prefix("```console") else {
            continue;
        };
        let kind = match kind.trim() {
            "" => Kind::Quick,
            "slow" => Kind::Slow,
            "host" => Kind::Host,
            other => return Err(format!("a console block is slow or host, not {other:?}")),
        };
        while let Some(line) = lines.next_if(|line| *line != FENCE) {
            push(&mut found, line);
            let command = line.strip_prefix("$ ");
            let command = command.ok_or_else(|| format!("no command stands over {line:?}"))?;
            let mut table = String::new();
            while let Some(line) = lines.next_if(|line| *line != FENCE && !line.starts_with("$ ")) {
                push(&mut table, line);
            }
            if !runs(kind, command) {
                tally.left_out += 1;
                found += &table;
                continue;
            }
            let printed = print(command)?;
            if printed == table {
                tally.same += 1;
            } else {
                tally.differ += 1;
                tell(&format!("{command}\n{}", difference(&table, &printed)));
            }
            found += &printed;
        }
    }
    Ok(found)
}

fn push(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

/// The first lines of one that the other does not have at that place.
fn difference(documented: &str, printed: &str) -> String {
    const SHOWN: usize = 5;
    let mut text = String::new();
    let lines = documented.lines().count().max(printed.lines().count());
    let (mut old, mut new) = (documented.lines(), printed.lines());
    let pairs = (0..lines).map(|_| (old.next(), new.next()));
    for (old, new) in pairs.filter(|(old, new)| old != new).take(SHOWN) {
        old.iter()
            .for_each(|line| push(&mut text, &format!("  - {line}")));
        new.iter()
            .for_each(|line| push(&mut text, &format!("  + {line}")));
    }
    text
}

/// What a command prints.
fn printed(command: &str) -> Result<String, String> {
    let own = command.strip_prefix(OWN).filter(|_| command != OF_HOST);
    let (program, arguments) = match own {
        Some(own) => (std::env::current_exe().map_err(|why| why.to_string())?, own),
        None => {
            let arguments = command.strip_prefix("cargo ");
            let arguments = arguments.ok_or_else(|| format!("not a cargo command: {command}"))?;
            let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
            (cargo.into(), arguments)
        }
    };
    let output = Command::new(program)
        .args(arguments.split_whitespace())
        .current_dir(ROOT)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|why| format!("cannot run {command}: {why}"))?;
    if !output.status.success() {
        return Err(format!("{command} failed: {}", output.status));
    }
    String::from_utf8(output.stdout).map_err(|why| why.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
words
```console
$ one
1
$ two
2
3
```
```console slow
$ three
```
```console host
$ never
7
```
";

    fn run(text: &str, all: bool) -> Result<(String, Tally, String), String> {
        let (mut tally, mut told) = (Tally::default(), String::new());
        let mut print = |command: &str| match command {
            "one" => Ok("1\n".to_owned()),
            "two" => Ok("2\n4\n".to_owned()),
            "three" => Ok("5\n".to_owned()),
            other => Err(format!("{other} was run")),
        };
        let runs = |kind, _: &str| kind == Kind::Quick || kind == Kind::Slow && all;
        let found = compare(text, &runs, &mut tally, &mut print, &mut |what| {
            told += what
        })?;
        Ok((found, tally, told))
    }

    #[test]
    fn a_table_that_differs_is_found_and_put_right() {
        let (found, tally, told) = run(TEXT, false).unwrap();
        let expected = Tally {
            same: 1,
            differ: 1,
            left_out: 2,
        };
        assert_eq!(tally, expected);
        assert_eq!(told, "two\n  - 3\n  + 4\n");
        assert_eq!(found, TEXT.replace("2\n3\n", "2\n4\n"));
    }

    #[test]
    fn slow_tables_run_with_all() {
        let (found, tally, _) = run(TEXT, true).unwrap();
        assert_eq!((tally.differ, tally.left_out), (2, 1));
        assert!(found.contains("$ three\n5\n```\n"), "{found}");
    }

    #[test]
    fn blocks_without_a_command_are_refused() {
        let why = run("```console\n7\n```\n", false).unwrap_err();
        assert_eq!(why, "no command stands over \"7\"");
        let why = run("```console sometimes\n```\n", false).unwrap_err();
        assert_eq!(why, "a console block is slow or host, not \"sometimes\"");
    }
}
