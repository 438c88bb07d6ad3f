//! How large programs for small chips are: `bench/sizes`, built for several targets.
//!
//! | column | what it counts |
//! |---|---|
//! | text | machine code: section `.text` |
//! | data | constants and statics with a value: `.rodata`, `.data` |
//! | bss | statics without one |
//! | state | a world, its link, and its working words: on the stack of these programs |
//! | stack | all of the program's stack, state included: [`stack`] |
//!
//! The limits stand in `bench/sizes/limits`.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, bail};
use object::{Object, ObjectSection, ObjectSymbol};

use crate::console::{Console, out};
use crate::count::Count;
use crate::toolchain::{self, Part};
use crate::{children, paths, stack};
use flagpost_common::table;

/// Show how large programs for small chips are: code, data, state and stack, beside their limits
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Only the rows whose target or program contains this
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Show the deepest path of each row, function by function
    #[arg(long)]
    path: bool,
}

/// All programs for the smallest chip, and one for the others.
const ROWS: [(&str, &[&str]); 3] = [
    (
        "thumbv8m.main-none-eabihf",
        &[
            "world", "notify", "epochs", "both", "more", "cached", "lines", "usual",
        ],
    ),
    ("thumbv6m-none-eabi", &["both"]),
    ("riscv64gc-unknown-none-elf", &["both"]),
];

const LIMITS: &str = "bench/sizes/limits";
const PACKAGE: &str = "flagpost-sizes";
const PROFILE: &str = "small";

/// What has a limit, in this order.
const LIMITED: [&str; 3] = ["text", "state", "stack"];

/// Bytes of a program.
#[derive(Clone, Debug, Default)]
struct Sizes {
    text: u64,
    data: u64,
    bss: u64,
    state: u64,
    stack: u64,
    path: Vec<(String, u64)>,
}

/// The most bytes that a program may have, of what is [`LIMITED`].
type Limits = BTreeMap<(String, String), [u64; 3]>;

pub(crate) fn run(console: &Console, arguments: &Arguments) -> Result<bool> {
    Ok(check(console, &arguments.only, arguments.path)?.failed == 0)
}

/// Builds the programs, prints the table, and counts rows within and above their limits.
pub(crate) fn check(console: &Console, only: &str, path: bool) -> Result<Count> {
    let text = fs::read_to_string(paths::root().join(LIMITS))
        .with_context(|| format!("cannot read {LIMITS}"))?;
    let limits = parse(&text)?;
    let (mut count, mut rows, mut bad) = (Count::default(), Vec::new(), Vec::new());
    for (target, programs) in ROWS {
        let wanted = |program: &&&str| target.contains(only) || program.contains(only);
        let programs: Vec<&str> = programs.iter().filter(wanted).copied().collect();
        if programs.is_empty() {
            continue;
        }
        build(console, target, &programs)?;
        for program in programs {
            let image = paths::target()
                .join("sizes")
                .join(target)
                .join(PROFILE)
                .join(program);
            let image =
                fs::read(&image).with_context(|| format!("cannot read {}", image.display()))?;
            let sizes = Sizes::of(&image).with_context(|| format!("{target} {program}"))?;
            if path {
                out(&format!("{target} {program}"));
                for (name, bytes) in &sizes.path {
                    out(&format!("{bytes:>8}  {name}"));
                }
            }
            let key = (target.to_owned(), program.to_owned());
            let why = judge(&sizes, limits.get(&key));
            count.add(Count::one(why.is_empty()));
            bad.extend(
                why.into_iter()
                    .map(|why| format!("{target} {program}: {why}")),
            );
            rows.push(sizes.row(target, program));
        }
    }
    console.clear();
    let head = ["target", "program", "text", "data", "bss", "state", "stack"];
    table(&head, &rows);
    for why in bad {
        console.error(&why);
    }
    Ok(count)
}

fn build(console: &Console, target: &'static str, programs: &[&str]) -> Result<()> {
    toolchain::need(console, Part::Target(target))?;
    console.step(format!("building programs for {target}"));
    let mut command = toolchain::build(target, PROFILE);
    command.args(["--quiet", "--package", PACKAGE]);
    for program in programs {
        command.args(["--bin", program]);
    }
    command
        .arg("--target-dir")
        .arg(paths::target().join("sizes"))
        .env("RUSTC_BOOTSTRAP", "1")
        .env(
            "CARGO_ENCODED_RUSTFLAGS",
            "-Zemit-stack-sizes\u{1f}-Clink-arg=--emit-relocs",
        )
        .current_dir(paths::root());
    if !children::status(&mut command)
        .context("cannot run cargo")?
        .success()
    {
        bail!("{PACKAGE} does not build for {target}");
    }
    Ok(())
}

impl Sizes {
    fn of(image: &[u8]) -> Result<Self> {
        let file = object::File::parse(image).context("no ELF file")?;
        let section = |name| {
            file.section_by_name(name)
                .map_or(0, |section| section.size())
        };
        let (stack, path) = stack::deepest(image, "_start")?;
        Ok(Self {
            text: section(".text"),
            data: section(".rodata") + section(".data"),
            bss: section(".bss"),
            state: number(&file, "FLAGPOST_STATE")?,
            stack,
            path,
        })
    }

    fn row(&self, target: &str, program: &str) -> Vec<String> {
        let bytes = [self.text, self.data, self.bss, self.state, self.stack];
        let names = [target, program].map(str::to_owned);
        names
            .into_iter()
            .chain(bytes.map(|bytes| bytes.to_string()))
            .collect()
    }
}

/// The value of a static of the size of an address.
fn number(file: &object::File<'_>, name: &str) -> Result<u64> {
    let mut symbols = file.symbols();
    let symbol = symbols.find(|symbol| symbol.name() == Ok(name));
    let symbol = symbol.with_context(|| format!("no static {name}"))?;
    let section = symbol.section_index().context("no section")?;
    let section = file.section_by_index(section)?;
    let bytes = section.data_range(symbol.address(), symbol.size())?;
    let bytes = bytes.context("no value")?;
    Ok(bytes
        .iter()
        .rev()
        .fold(0, |all, byte| all << 8 | u64::from(*byte)))
}

/// A line per program: target, program, and its limits. Lines that begin with `#` are comments.
fn parse(text: &str) -> Result<Limits> {
    let lines = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [target, program, numbers @ ..] = &words[..] else {
                bail!("{LIMITS}: {line:?} names no program");
            };
            let numbers: Vec<u64> = numbers
                .iter()
                .map(|number| number.parse())
                .collect::<Result<_, _>>()
                .with_context(|| format!("{LIMITS}: {line:?}"))?;
            let numbers = numbers.try_into();
            let Ok(numbers) = numbers else {
                bail!("{LIMITS}: {line:?} has not one number for each of {LIMITED:?}");
            };
            Ok((((*target).to_owned(), (*program).to_owned()), numbers))
        })
        .collect()
}

/// What is wrong with these sizes.
fn judge(sizes: &Sizes, limits: Option<&[u64; 3]>) -> Vec<String> {
    let Some(limits) = limits else {
        return vec![format!("{LIMITS} has no limits for it")];
    };
    let found = [sizes.text, sizes.state, sizes.stack];
    let all = LIMITED.iter().zip(found).zip(limits);
    all.filter(|((_, found), limit)| found > limit)
        .map(|((what, found), limit)| format!("{found} bytes of {what}, and the limit is {limit}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_above_its_limit_is_told_and_one_at_its_limit_is_not() {
        let sizes = Sizes {
            text: 100,
            state: 20,
            stack: 30,
            ..Sizes::default()
        };
        assert!(judge(&sizes, Some(&[100, 20, 30])).is_empty());
        let why = judge(&sizes, Some(&[99, 20, 29]));
        assert_eq!(why[0], "100 bytes of text, and the limit is 99");
        assert_eq!(why[1], "30 bytes of stack, and the limit is 29");
        assert_eq!(judge(&sizes, None).len(), 1);
    }

    #[test]
    fn limits_are_a_line_per_program() {
        let limits = parse("# target program\n\na b 1 2 3\na c 4 5 6\n").unwrap();
        assert_eq!(limits[&("a".to_owned(), "c".to_owned())], [4, 5, 6]);
        for bad in ["a", "a b 1 2", "a b 1 2 3 4", "a b 1 2 x"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn each_row_has_limits_and_each_limit_a_row() {
        let text = fs::read_to_string(paths::root().join(LIMITS)).unwrap();
        let limits = parse(&text).unwrap();
        let rows = ROWS.iter().flat_map(|(target, programs)| {
            let key = |program: &&str| ((*target).to_owned(), (*program).to_owned());
            programs.iter().map(key)
        });
        let rows: std::collections::BTreeSet<_> = rows.collect();
        assert_eq!(rows, limits.into_keys().collect());
    }
}
