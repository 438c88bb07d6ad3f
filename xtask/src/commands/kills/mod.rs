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
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use flagpost_common::{Dice, table};

use crate::console::{Console, out};
use crate::count::Count;
use crate::tools::PROVIDERS;
use crate::{compiling, paths, tools};
use job::{Disturbance, Job};

/// The examples, with the most ranks that each is run with: more would only look on.
const EXAMPLES: [(&str, u16); 6] = [
    ("hello-linux", 4),
    ("pingpong", 2),
    ("halo", 4),
    ("hashtable", 4),
    ("workqueue", 4),
    ("stencil", 4),
];

/// The command line of an example. Programs of `flagpost-apps` have sizes that take about as long
/// as the other examples.
fn words(example: &str) -> Vec<&str> {
    match example {
        "halo" => vec!["app", "halo", "pscw", "16", "500"],
        "hashtable" => vec!["app", "hashtable", "fence", "2048", "2000"],
        "stencil" => vec!["app", "stencil", "notified", "250", "16"],
        example => vec![example],
    }
}

/// The example that goes on after a loss.
const GOING_ON: (&str, u16) = ("going-on", 4);

/// The example that does least but start.
const SHORTEST: &str = "hello-linux";

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
            .filter(|(example, _)| example == name)
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
        examples: vec![("hello-linux", 2), ("halo", 2)],
        providers: PROVIDERS.map(str::to_owned).to_vec(),
        ranks: None,
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
    examples: Vec<(&'static str, u16)>,
    providers: Vec<String>,
    ranks: Option<u16>,
    seed: u64,
    number: u32,
}

/// A job, undisturbed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    example: &'static str,
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

/// How a job with a disturbed rank ended.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    /// All ranks had ended before.
    Before,
    /// It was stopped for a while, and ended well.
    Paused,
    /// The others were told by `PeerLost`.
    PeerLost,
    /// The others were told while they met.
    WhileMeeting,
    /// The others had ended well, or ended well.
    OthersWell,
    /// With another error.
    Error,
    /// One of them has crashed inside libfabric: by a signal that nobody has sent.
    Crash,
    /// A rule is broken.
    Broken,
}

impl End {
    /// Whether the turn counts as failed.
    fn is_failure(self) -> bool {
        matches!(self, Self::Error | Self::Broken)
    }
}

const ENDS: [(End, &str); 8] = [
    (End::Before, "ended before"),
    (End::Paused, "stopped, and well"),
    (End::PeerLost, "PeerLost"),
    (End::WhileMeeting, "lost while they met"),
    (End::OthersWell, "others ended well"),
    (End::Error, "another error"),
    (End::Crash, "crashed"),
    (End::Broken, "BROKEN"),
];

impl Plan {
    fn run(&self, console: &Console) -> Result<Count> {
        if self.providers.iter().any(|name| !MODES.contains(&&**name)) {
            tools::libfabric(console)?;
        }
        let programs = build(console)?;
        let mut undisturbed = BTreeMap::new();
        let mut ends: BTreeMap<(&str, String), Vec<End>> = BTreeMap::new();
        let mut finished: BTreeMap<(&str, String, u16), u32> = BTreeMap::new();
        let mut count = Count::default();
        for number in 0..self.number {
            let turn = self.turn(number);
            console.progress(number.into(), self.number.into(), "ranks killed");
            let shortest = Kind {
                example: SHORTEST,
                ..turn.kind.clone()
            };
            for kind in [&shortest, &turn.kind] {
                if !undisturbed.contains_key(kind) {
                    undisturbed.insert(kind.clone(), Undisturbed::run(&programs, kind)?);
                }
            }
            let start = undisturbed[&shortest].length;
            let before = &undisturbed[&turn.kind];
            let ended = before.disturb(&programs, &turn, start, number)?;
            let (mut end, mut why) = before.judge(&turn, &ended);
            let others = ended.finished_with();
            if turn.kind.example == GOING_ON.0 && end == End::OthersWell && others.is_none() {
                let told = "the others have ended without a result";
                (end, why) = (End::Broken, Some(told.to_owned()));
            }
            count.add(self.tell(console, number, &turn, end, why));
            if let (End::OthersWell, Some(ranks)) = (end, others) {
                let row = (turn.kind.example, turn.kind.provider.clone(), ranks);
                *finished.entry(row).or_default() += 1;
            }
            let row = (turn.kind.example, turn.kind.provider);
            ends.entry(row).or_default().push(end);
        }
        console.clear();
        print(&ends);
        let continues = self.examples.contains(&GOING_ON) && self.number >= CI_TURNS;
        let fewer = |ranks: &u16| self.ranks.is_none_or(|all| *ranks < all);
        if continues && !finished.keys().any(|(_, _, ranks)| fewer(ranks)) {
            console.say("no job has continued with fewer ranks");
            count.add(Count::one(false));
        }
        for ((example, provider, ranks), jobs) in finished {
            out(&format!(
                "{example}, {provider}: {jobs} killed jobs have finished with {ranks} ranks"
            ));
        }
        Ok(count)
    }

    /// Prints why turn `number` has ended so, if there is anything to say, and counts it.
    fn tell(
        &self,
        console: &Console,
        number: u32,
        turn: &Turn,
        end: End,
        why: Option<String>,
    ) -> Count {
        if let Some(why) = why {
            let what = match turn.pause {
                Some(pause) => format!("stopped for {pause:?}"),
                None => "killed".to_owned(),
            };
            let told = format!(
                "turn {number} of seed {}: {} over {}, rank {} of {} {what} at {:.3} of {}: {why}",
                self.seed,
                turn.kind.example,
                turn.kind.provider,
                turn.rank,
                turn.kind.ranks,
                turn.moment,
                if turn.early { "the start" } else { "its work" },
            );
            if end.is_failure() {
                console.error(&told);
            } else {
                console.say(&told);
            }
        }
        Count::one(!end.is_failure())
    }

    /// The turn of this number: the same for the same seed.
    fn turn(&self, number: u32) -> Turn {
        let mut random = Dice::new(self.seed.wrapping_mul(0x1_0000_0001) ^ u64::from(number) << 20);
        let (example, most) = self.examples[random.below(self.examples.len())];
        let provider = self.providers[random.below(self.providers.len())].clone();
        // More often few than many: jobs of many take long where ranks share processors.
        let more = [0; 2].map(|_| random.below(usize::from(most - 1)));
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

/// Where `flagpost-run` and the examples are.
fn build(console: &Console) -> Result<PathBuf> {
    let words = ["build", "--bins", "--examples"];
    compiling::cargo(console, "flagpost-run and the examples", words)?;
    Ok(paths::target().join("debug"))
}

/// A job of this kind.
fn command(programs: &Path, kind: &Kind) -> Command {
    let words = words(kind.example);
    let mut command = Command::new(programs.join("flagpost-run"));
    let link = match MODES.contains(&&*kind.provider) {
        true => ["--link", "shm", "--mode"],
        false => ["--link", "fabric", "--provider"],
    };
    command
        .args(link)
        .args([&kind.provider, "-n", &kind.ranks.to_string()])
        .args(["--grace", "10", "--mem", "1M"])
        .arg(programs.join("examples").join(words[0]))
        .args(&words[1..]);
    command
}

/// What a job does that nobody disturbs.
struct Undisturbed {
    length: Duration,
    lines: Vec<String>,
}

impl Undisturbed {
    fn run(programs: &Path, kind: &Kind) -> Result<Self> {
        /// The longest takes a minute where ranks share processors.
        const LIMIT: Duration = Duration::from_secs(300);
        let ended = Job::start(command(programs, kind), "undisturbed")?.run(None, LIMIT)?;
        if ended.code != Some(0) || !ended.left.is_empty() {
            let left = ended.left.join(", ");
            bail!("{kind:?} fails, undisturbed: {} {left}", ended.err);
        }
        Ok(Self {
            length: ended.length,
            lines: ended.lines(),
        })
    }

    /// A turn: how its job ended.
    /// `start` is how long ranks take to start.
    fn disturb(
        &self,
        programs: &Path,
        turn: &Turn,
        start: Duration,
        number: u32,
    ) -> Result<job::Ended> {
        let disturbance = Disturbance {
            rank: turn.rank,
            after: match turn.early || turn.kind.example == SHORTEST {
                true => start.mul_f64(turn.moment),
                false => start + self.length.saturating_sub(start).mul_f64(turn.moment),
            },
            pause: turn.pause,
        };
        let limit = Duration::from_secs(30) + 4 * self.length;
        let job = Job::start(command(programs, &turn.kind), &number.to_string())?;
        job.run(Some(disturbance), limit)
    }

    /// How a turn's job ended; and why, if there is something to say.
    fn judge(&self, turn: &Turn, ended: &job::Ended) -> (End, Option<String>) {
        let (mut missing, mut more) = (self.lines.clone(), Vec::new());
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
        let is_victim = |line: &str| line.starts_with(&victim) && line.contains("(SIGKILL)");
        let lines: Vec<&str> = ended.err.lines().filter(|line| !is_victim(line)).collect();
        let others = || {
            lines
                .iter()
                .filter(|line| !line.starts_with("flagpost-run: "))
        };
        // Ranks that failed by `PeerLost` of a lost rank say nothing: the launcher counts them.
        let followed = lines
            .iter()
            .any(|line| line.starts_with("flagpost-run: after"));
        // Of the system, or of a library for network cards, which ends the process itself.
        let crashes = ["was ended by signal", "terminated with signal"];
        let crashed = |line: &str| crashes.iter().any(|words| line.contains(words));
        // The first frame of a backtrace follows its head.
        let frames = { lines.iter().enumerate() }
            .filter(|(_, line)| crashed(line))
            .map(|(at, _)| lines.get(at + 1).copied().unwrap_or_default());
        let frames: Vec<&str> = frames.collect();
        let is_known = turn.kind.provider == "tcp"
            && frames.iter().all(|frame| frame.contains("/libfabric.so"));
        let says = |words| ended.err.contains(words);
        let silent = !ended.err.lines().any(is_victim);
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
            (!well && silent, "nobody says who was killed"),
            (
                !well && !frames.is_empty() && !is_known,
                "a rank has crashed",
            ),
        ];
        if let Some((_, rule)) = broken.into_iter().find(|(broken, _)| *broken) {
            let why = format!(
                "{rule}: {told}; left {:?}; more {more:?}; missing {missing:?}",
                ended.left
            );
            return (End::Broken, Some(why));
        }
        let unanswered = |line: &&str| line.contains("does not answer any more");
        let meeting = |line: &&str| line.starts_with("error: ") && line.contains(&lost);
        let ends = [
            (well && !ended.struck, End::Before),
            (well, End::Paused),
            (!frames.is_empty(), End::Crash),
            (others().count() == 0 && !followed, End::OthersWell),
            (others().all(unanswered), End::PeerLost),
            (others().all(meeting), End::WhileMeeting),
        ];
        let end = ends
            .into_iter()
            .find(|(is, _)| *is)
            .map_or(End::Error, |(_, end)| end);
        let why = matches!(end, End::Crash | End::Error).then_some(told);
        (end, why)
    }
}

/// A table of how jobs ended.
fn print(ends: &BTreeMap<(&str, String), Vec<End>>) {
    let of = |list: &[End], end: End| list.iter().filter(|other| **other == end).count();
    let cells = |list: &[End]| ENDS.map(|(end, _)| of(list, end).to_string());
    let row = |example: &str, provider: &str, list: &[End]| {
        let first = [example, provider].map(str::to_owned);
        [&first[..], &[list.len().to_string()], &cells(list)].concat()
    };
    let mut rows: Vec<_> = { ends.iter() }
        .map(|((example, provider), list)| row(example, provider, list))
        .collect();
    let all: Vec<End> = ends.values().flatten().copied().collect();
    rows.push(row("all", "", &all));
    let head = ENDS.map(|(_, name)| name);
    table(
        &[&["example", "provider", "jobs"], &head[..]].concat(),
        &rows,
    );
}
