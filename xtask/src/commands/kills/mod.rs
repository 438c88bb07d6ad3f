//! `cargo xtask kills`: what is left of jobs of which a rank dies, or stops, over a network or in a
//! mode of shared memory.
//!
//! # Steps
//! * A job of each kind runs undisturbed: how long it takes, and what it prints.
//! * Each turn draws an example, a provider, a number of ranks, a rank and a moment, from the seed
//!   and the number of the turn alone. The moment is a part of the length of the job: in one of
//!   four turns while its ranks start, as long as the shortest example takes, else after that.
//! * The rank is killed; in one of four turns it is stopped, and goes on after a while.
//! * The job must end by itself, and show by its status and its output how.
//!
//! # Rules
//! * No hang. Broken if the job is there after 30 s and four times its length, or a rank after 10 s
//!   of grace.
//! * Nothing wrong is called right. Broken if a line is printed that an undisturbed job does not
//!   print, if the status is 0 and a line is missing, or if a rank panics.
//! * A loss is told. Broken if the status is 0 although the rank died before its end.
//! * A pause is no loss. Broken if a job with a rank that was only stopped does not end well.
//! * The others end well, or with an error that tells the loss. Another error counts as failed.
//!   Broken if one of them crashes, unless the provider is `tcp` and the crash is inside libfabric,
//!   as the backtrace shows that libraries for some network cards print: libfabric 1.17 is known
//!   for that.
//! * Nothing is left. Broken by a process of the job, a file of its ranks in `/dev/shm`, or a file
//!   in the directory in which it runs; the backtraces of those libraries, `*.btr`, are none.
//!
//! A port that is listened on is a process's: no process, no port.

mod job;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use flagpost_common::{Dice, table};

use crate::console::{Console, out};
use crate::count::Count;
use crate::tools::PROVIDERS;
use crate::{compiling, paths, tools};
use job::{Disturbance, Ended};

/// An example, the most ranks that it is run with (more would only look on), and its command line.
type Example = (&'static str, u16, &'static str);

/// Programs of `flagpost-apps` have sizes that take about as long as the other examples.
const EXAMPLES: [Example; 6] = [
    ("hello-linux", 4, "hello-linux"),
    ("pingpong", 2, "pingpong"),
    ("halo", 4, "app halo pscw 16 500"),
    ("hashtable", 4, "app hashtable fence 2048 2000"),
    ("workqueue", 4, "workqueue"),
    ("stencil", 4, "app stencil notified 250 16"),
];

/// The example that goes on after a loss.
const GOING_ON: Example = ("going-on", 4, "going-on");

/// The example that does least but start.
const SHORTEST: Example = EXAMPLES[0];

/// Providers that are modes of shared memory.
const MODES: [&str; 3] = ["coherent", "software-coherent", "emulated"];

/// Turns of CI; their examples are the first and the third, with two ranks. As many are of the one
/// that goes on.
const CI_TURNS: u32 = 10;

/// Kill a random rank of jobs over a network, at random moments: nothing hangs, nothing wrong is
/// called right, nothing is left behind
///
/// Exit status: 0 if no rule is broken; else 1; 2 for bad input. The last line is
/// `N passed, N failed`.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// How many ranks are killed or stopped, each in a job of its own
    #[arg(long, value_name = "N", default_value_t = 300)]
    number: u32,
    /// Decides examples, ranks and moments
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// tcp, shm, or another provider of libfabric's that this host has; or a mode of shared memory:
    /// coherent, software-coherent, emulated [default: tcp and shm]
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    /// One of the examples, or going-on, which goes on after a loss [default: all but that]
    #[arg(long, value_name = "NAME")]
    example: Option<String>,
    /// Ranks of each job [default: 2 to 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(2..=4))]
    ranks: Option<u16>,
}

/// Runs the command; `false` if a rule is broken.
pub(crate) fn run(console: &Console, arguments: &Arguments) -> Result<bool> {
    let all = PROVIDERS.map(str::to_owned).to_vec();
    let examples = match &arguments.example {
        None => EXAMPLES.to_vec(),
        Some(name) => { EXAMPLES.into_iter().chain([GOING_ON]) }
            .filter(|(example, ..)| example == name)
            .collect(),
    };
    if examples.is_empty() {
        bail!(
            "there is no such example for kills: see the list in xtask/src/commands/kills/mod.rs"
        );
    }
    let plan = Plan {
        examples,
        providers: { arguments.provider.clone() }.map_or(all, |provider| vec![provider]),
        ranks: arguments.ranks,
        seed: arguments.seed,
        number: arguments.number,
    };
    let count = plan.run(console)?;
    Ok(console.verdict(count))
}

/// What CI runs.
pub(crate) fn ci(console: &Console) -> Result<Count> {
    let plan = Plan {
        examples: vec![EXAMPLES[0], EXAMPLES[2]],
        providers: PROVIDERS.map(str::to_owned).to_vec(),
        ranks: Some(2),
        // Both are killed over both providers, and stopped.
        seed: 2,
        number: CI_TURNS,
    };
    let mut count = plan.run(console)?;
    let going_on = Plan {
        examples: vec![GOING_ON],
        // Over libfabric's `shm` the others do not always continue: guide 7.
        providers: MODES
            .into_iter()
            .chain(["tcp"])
            .map(str::to_owned)
            .collect(),
        ranks: Some(3),
        ..plan
    };
    count.add(going_on.run(console)?);
    Ok(count)
}

/// What is run.
struct Plan {
    examples: Vec<Example>,
    providers: Vec<String>,
    ranks: Option<u16>,
    seed: u64,
    number: u32,
}

/// A job, undisturbed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    example: Example,
    provider: String,
    ranks: u16,
}

/// What a turn does.
struct Turn {
    kind: Kind,
    rank: u16,
    /// When, as a part of the time in which the job's ranks start, or of what comes after.
    moment: f64,
    /// Which of these.
    early: bool,
    /// How long the rank is stopped; none: it is killed.
    pause: Option<Duration>,
}

/// How jobs with a disturbed rank end. All ranks had ended before; one was stopped for a while, and
/// all ended well; the others were told by `PeerLost`; they were told while they met; they had
/// ended well, or ended well; with another error; one of them has crashed inside libfabric, by a
/// signal that nobody has sent; a rule is broken.
const ENDS: [&str; 8] = [
    BEFORE,
    PAUSED,
    PEER_LOST,
    WHILE_MEETING,
    OTHERS_WELL,
    ERROR,
    CRASH,
    BROKEN,
];
const BEFORE: &str = "ended before";
const PAUSED: &str = "stopped, and well";
const PEER_LOST: &str = "PeerLost";
const WHILE_MEETING: &str = "lost while they met";
const OTHERS_WELL: &str = "others ended well";
const ERROR: &str = "another error";
const CRASH: &str = "crashed";
const BROKEN: &str = "BROKEN";

/// One of [`ENDS`]; and why, if there is something to say.
type End = (&'static str, Option<String>);

impl Plan {
    fn run(&self, console: &Console) -> Result<Count> {
        if self.providers.iter().any(|name| !MODES.contains(&&**name)) {
            tools::libfabric(console)?;
        }
        let words = ["build", "--bins", "--examples"];
        compiling::cargo(console, "flagpost-run and the examples", words)?;
        let mut undisturbed = BTreeMap::new();
        let mut ends: BTreeMap<[String; 2], Vec<&str>> = BTreeMap::new();
        let mut finished: BTreeMap<(String, u16), u32> = BTreeMap::new();
        let (mut count, mut continued) = (Count::default(), false);
        for number in 0..self.number {
            let turn = self.turn(number);
            console.progress(number.into(), self.number.into(), "ranks killed");
            let shortest = Kind {
                example: SHORTEST,
                ..turn.kind.clone()
            };
            for kind in [&shortest, &turn.kind] {
                if !undisturbed.contains_key(kind) {
                    undisturbed.insert(kind.clone(), kind.undisturbed()?);
                }
            }
            let before = &undisturbed[&turn.kind];
            let ended = turn.run(before, undisturbed[&shortest].length, number)?;
            let (end, why) = judge(before, &turn, &ended);
            count.add(self.tell(console, number, &turn, (end, why)));
            let name = [turn.kind.example.0, &turn.kind.provider].map(str::to_owned);
            if let (OTHERS_WELL, Some(ranks)) = (end, ended.finished_with()) {
                continued |= ranks < turn.kind.ranks;
                *finished.entry((name.join(", "), ranks)).or_default() += 1;
            }
            ends.entry(name).or_default().push(end);
        }
        console.clear();
        print(ends);
        let continues = self.examples.contains(&GOING_ON) && self.number >= CI_TURNS;
        if continues && !continued {
            console.say("no job has continued with fewer ranks");
            count.add(Count::one(false));
        }
        for ((name, ranks), jobs) in finished {
            out(&format!(
                "{name}: {jobs} killed jobs have finished with {ranks} ranks"
            ));
        }
        Ok(count)
    }

    /// Prints why turn `number` has ended so, if there is anything to say, and counts it.
    fn tell(&self, console: &Console, number: u32, turn: &Turn, (end, why): End) -> Count {
        let failed = [ERROR, BROKEN].contains(&end);
        if let Some(why) = why {
            let what = match turn.pause {
                Some(pause) => format!("stopped for {pause:?}"),
                None => "killed".to_owned(),
            };
            let told = format!(
                "turn {number} of seed {}: {} over {}, rank {} of {} {what} at {:.3} of {}: {why}",
                self.seed,
                turn.kind.example.0,
                turn.kind.provider,
                turn.rank,
                turn.kind.ranks,
                turn.moment,
                if turn.early { "the start" } else { "its work" },
            );
            if failed {
                console.error(&told);
            } else {
                console.say(&told);
            }
        }
        Count::one(!failed)
    }

    /// The turn of this number: the same for the same seed.
    fn turn(&self, number: u32) -> Turn {
        let mut random = Dice::new(self.seed.wrapping_mul(0x1_0000_0001) ^ u64::from(number) << 20);
        let example = self.examples[random.below(self.examples.len())];
        let provider = self.providers[random.below(self.providers.len())].clone();
        // More often few than many: jobs of many take long where ranks share processors.
        let more = [0; 2].map(|_| random.below(usize::from(example.1 - 1)));
        let ranks = self.ranks.unwrap_or(2 + more[0].min(more[1]) as u16);
        let rank = random.below(ranks.into()) as u16;
        let moment = random.below(1000) as f64 / 1000.0;
        let early = random.one_in(4);
        let stops = random.one_in(4);
        let pause = 100 + random.below(400) as u64;
        Turn {
            kind: Kind {
                example,
                provider,
                ranks,
            },
            rank,
            moment,
            early,
            pause: stops.then_some(Duration::from_millis(pause)),
        }
    }
}

impl Kind {
    fn command(&self) -> Command {
        let mut words = self.example.2.split(' ');
        let programs = paths::target().join("debug");
        let mut command = Command::new(programs.join("flagpost-run"));
        let link = match MODES.contains(&&*self.provider) {
            true => ["--link", "shm", "--mode"],
            false => ["--link", "fabric", "--provider"],
        };
        command.args(link).arg(&self.provider);
        command.args(["-n", &self.ranks.to_string()]);
        command.args(["--grace", "10", "--mem", "1M"]);
        command.args({ words.next() }.map(|name| programs.join("examples").join(name)));
        command.args(words);
        command
    }

    /// What its job does that nobody disturbs.
    fn undisturbed(&self) -> Result<Ended> {
        /// The longest takes a minute where ranks share processors.
        const LIMIT: Duration = Duration::from_secs(300);
        let ended = job::run(self.command(), "undisturbed", None, LIMIT)?;
        if ended.code != Some(0) || !ended.left.is_empty() {
            let left = ended.left.join(", ");
            bail!("{self:?} fails, undisturbed: {} {left}", ended.err);
        }
        Ok(ended)
    }
}

impl Turn {
    /// Runs its job, whose ranks take `start` to start.
    fn run(&self, undisturbed: &Ended, start: Duration, number: u32) -> Result<Ended> {
        let length = undisturbed.length;
        let disturbance = Disturbance {
            rank: self.rank,
            after: match self.early || self.kind.example == SHORTEST {
                true => start.mul_f64(self.moment),
                false => start + length.saturating_sub(start).mul_f64(self.moment),
            },
            pause: self.pause,
        };
        let limit = Duration::from_secs(30) + 4 * length;
        let name = number.to_string();
        job::run(self.kind.command(), &name, Some(disturbance), limit)
    }
}

/// How a turn's job ended, beside an undisturbed one.
fn judge(undisturbed: &Ended, turn: &Turn, ended: &Ended) -> End {
    let (mut missing, mut more) = (undisturbed.lines(), Vec::new());
    for line in ended.lines() {
        match missing.iter().position(|known| *known == line) {
            Some(index) => drop(missing.swap_remove(index)),
            None => more.push(line),
        }
    }
    // What matters of it is in the first lines; a backtrace is longer.
    let told = ended.err.lines().filter(|line| !line.is_empty());
    let told = told.take(6).collect::<Vec<_>>().join("; ");
    let (well, killed) = (ended.code == Some(0), turn.pause.is_none());
    let victim = format!("flagpost-run: rank {} ", turn.rank);
    let lost = format!("rank {} ", turn.rank);
    let is_victim = |line: &&str| line.starts_with(&victim) && line.contains("(SIGKILL)");
    let (victims, lines): (Vec<&str>, Vec<&str>) = ended.err.lines().partition(is_victim);
    let (launcher, others): (Vec<&str>, Vec<&str>) =
        { lines.iter() }.partition(|line| line.starts_with("flagpost-run: "));
    // Ranks that failed by `PeerLost` of a lost rank say nothing: the launcher counts them.
    let followed = { launcher.iter() }.any(|line| line.starts_with("flagpost-run: after"));
    // Of the system, or of a library for network cards, which ends the process itself.
    let crashes = ["was ended by signal", "terminated with signal"];
    let crashed = |line: &str| crashes.iter().any(|words| line.contains(words));
    // The first frame of a backtrace follows its head.
    let after = lines.iter().skip(1).chain([&""]);
    let frames = lines.iter().zip(after).filter(|(line, _)| crashed(line));
    let frames: Vec<&str> = frames.map(|(_, frame)| *frame).collect();
    let is_known =
        turn.kind.provider == "tcp" && frames.iter().all(|frame| frame.contains("/libfabric.so"));
    let unanswered = |line: &&str| line.contains("does not answer any more");
    let meeting = |line: &&str| line.starts_with("error: ") && line.contains(&lost);
    let alone = others.is_empty() && !followed;
    let without_result = turn.kind.example == GOING_ON && ended.finished_with().is_none();
    let says = |words| ended.err.contains(words);
    let broken = [
        (ended.hung, "it hung"),
        (!ended.left.is_empty(), "it left something"),
        (says("panicked"), "a rank has panicked"),
        (says("by flagpost-run"), "a rank has not noticed it"),
        (!more.is_empty(), "it has printed more"),
        (
            well && !missing.is_empty(),
            "status 0, and it has not printed all",
        ),
        (
            well && killed && ended.struck,
            "status 0, and a rank was killed",
        ),
        (!well && !killed, "it was only stopped"),
        (!well && !ended.struck, "it failed by itself"),
        (!well && victims.is_empty(), "nobody says who was killed"),
        (
            !well && !frames.is_empty() && !is_known,
            "a rank has crashed",
        ),
        (
            !well && frames.is_empty() && alone && without_result,
            "the others have no result",
        ),
    ];
    if let Some((_, rule)) = broken.into_iter().find(|(broken, _)| *broken) {
        let left = &ended.left;
        let why = format!("{rule}: {told}; left {left:?}; more {more:?}; missing {missing:?}");
        return (BROKEN, Some(why));
    }
    let ends = [
        (well && !ended.struck, BEFORE),
        (well, PAUSED),
        (!frames.is_empty(), CRASH),
        (alone, OTHERS_WELL),
        (others.iter().all(unanswered), PEER_LOST),
        (others.iter().all(meeting), WHILE_MEETING),
        (true, ERROR),
    ];
    let end = { ends.into_iter() }.find_map(|(is, end)| is.then_some(end));
    let end = end.unwrap_or(ERROR);
    (end, [CRASH, ERROR].contains(&end).then_some(told))
}

/// A table of how jobs ended.
fn print(ends: BTreeMap<[String; 2], Vec<&str>>) {
    let all = ends.values().flatten().copied().collect();
    let row = |(name, list): ([String; 2], Vec<&str>)| {
        let of = |end| list.iter().filter(|other| **other == end).count();
        let counts = [list.len()].into_iter().chain(ENDS.map(of));
        let counts = counts.map(|count| count.to_string());
        name.into_iter().chain(counts).collect()
    };
    let last = (["all", ""].map(str::to_owned), all);
    let rows: Vec<_> = ends.into_iter().chain([last]).map(row).collect();
    let head = [&["example", "provider", "jobs"], &ENDS[..]].concat();
    table(&head, &rows);
}
