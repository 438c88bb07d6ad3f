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
//! The targets, the programs and their limits stand in `bench/sizes/limits`.

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

/// A target, a program, and the most bytes that it may have of what is [`LIMITED`].
type Row = (&'static str, &'static str, [u64; 3]);

pub(crate) fn run(console: &Console, arguments: &Arguments) -> Result<bool> {
    Ok(check(console, &arguments.only, arguments.path)?.failed == 0)
}

/// Builds the programs, prints the table, and counts rows within and above their limits.
pub(crate) fn check(console: &Console, only: &str, path: bool) -> Result<Count> {
    let mut wanted = parse(include_str!("../../../bench/sizes/limits"))?;
    wanted.retain(|(target, program, _)| target.contains(only) || program.contains(only));
    let (mut count, mut rows, mut bad) = (Count::default(), Vec::new(), Vec::new());
    for of_target in wanted.chunk_by(|one, other| one.0 == other.0) {
        build(console, of_target)?;
        for (target, program, limits) in of_target {
            let image = paths::target().join("sizes").join(target).join(PROFILE);
            let image = image.join(program);
            let image =
                fs::read(&image).with_context(|| format!("cannot read {}", image.display()))?;
            let sizes = Sizes::of(&image).with_context(|| format!("{target} {program}"))?;
            if path {
                out(&format!("{target} {program}"));
                for (name, bytes) in &sizes.path {
                    out(&format!("{bytes:>8}  {name}"));
                }
            }
            let why = judge(&sizes, limits);
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

/// Builds the programs of one target.
fn build(console: &Console, rows: &[Row]) -> Result<()> {
    let target = rows[0].0;
    toolchain::need(console, Part::Target(target))?;
    console.step(format!("building programs for {target}"));
    let mut command = toolchain::build(target, PROFILE);
    command.args(["--quiet", "--package", PACKAGE]);
    command.args(rows.iter().flat_map(|(_, program, _)| ["--bin", program]));
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
fn parse(text: &'static str) -> Result<Vec<Row>> {
    let lines = text.lines();
    let lines = lines.filter(|line| !line.starts_with('#') && !line.is_empty());
    let row = |line: &'static str| {
        let mut words = line.split_whitespace();
        let names = (words.next()?, words.next()?);
        let numbers: Option<Vec<u64>> = words.map(|word| word.parse().ok()).collect();
        Some((names.0, names.1, numbers?.try_into().ok()?))
    };
    let wrong = |line| format!("{LIMITS}: {line:?} is no target, program, and {LIMITED:?}");
    lines
        .map(|line| row(line).with_context(|| wrong(line)))
        .collect()
}

/// What is wrong with these sizes.
fn judge(sizes: &Sizes, limits: &[u64; 3]) -> Vec<String> {
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
        assert!(judge(&sizes, &[100, 20, 30]).is_empty());
        let why = judge(&sizes, &[99, 20, 29]);
        assert_eq!(why[0], "100 bytes of text, and the limit is 99");
        assert_eq!(why[1], "30 bytes of stack, and the limit is 29");
    }

    #[test]
    fn limits_are_a_line_per_program() {
        let limits = parse("# target program\n\na b 1 2 3\na c 4 5 6\n").unwrap();
        assert_eq!(limits[1], ("a", "c", [4, 5, 6]));
        for bad in ["a", "a b 1 2", "a b 1 2 3 4", "a b 1 2 x"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
