//! `mutants`: breaks one mutation point at a time and looks which case notices.
//!
//! Only in builds with `--cfg mutants`; `cargo xtask mutants` makes one, asks it for its points
//! (`--list`), and prints what comes back: a JSON object per line, a kind (`"is"`) in each.
//!
//! # Recorded runs
//! Per point, the run that is said to kill it (`--killer`). It must pass with no point broken, and
//! fail with the point broken. A run that does not is *lapsed*, and the caller is told why.
//!
//! # Search
//! 1. *Unbroken*: every setting with some seeds. All must pass, and together reach every point that
//!    is broken.
//!    Which case reaches which point is remembered.
//! 2. Per point (`--break`): the settings of the cases that reach it, in rounds of more and more
//!    seeds (the first round has two each, so that easy ones fall immediately), until one fails or
//!    the cap of schedules is reached. Within a round: kind profiles first, then few cores first.
//!    So the profile at which a point falls is about the kindest that shows it. Then comes
//!    `scc+late`: loads that finish late, see `flagpost_explore::late`; then the network, for what
//!    is reached there; and last the SCC port's message-buffer memory (`scc-wt`), where stores that
//!    miss pass the cache. The run that kills must pass with no point broken here, too.
//!
//! A failed check, an oracle, a deadlock, a livelock, starvation or a panic kills. A run that is
//! cut off does not.
//!
//! # Matrix
//! All settings as above, and then each point in all of them that reach it (`--matrix`), for some
//! seeds: which points a case kills, and which of these no other case kills.
//!
//! Points are handed out to threads; each is decided by one thread alone. So results do not depend
//! on the threads.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use flagpost_explore::{Chip, Setting, cases, late, preset_settings_of, program, settings};
use flagpost_points::{POINTS, Point, break_point, reached, record};
use flagpost_sim::{Config, End, Oracle, Preset, Profile, Report, Schedule, Sim};
use serde_json::{Value, json};

/// Seeds per setting of the run without a broken point.
const UNBROKEN: u64 = 3;

/// Seeds per setting after each round.
const ROUNDS: [u64; 6] = [2, 6, 20, 100, 500, 2500];

/// Steps after which a broken run is cut off: far more than any case needs.
const STEPS: u64 = 5_000_000;

/// Breaks mutation points one at a time
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Print all points, and where they stand
    #[arg(long)]
    list: bool,
    /// Search for a run that kills this point; may be given several times
    #[arg(long = "break", value_name = "NAME")]
    broken: Vec<String>,
    /// Try only the run that is said to kill a point, as `--replay` takes it; may be given several
    /// times
    #[arg(long = "killer", value_name = "NAME=WHICH", value_parser = killer, conflicts_with = "broken")]
    killers: Vec<(String, String)>,
    /// Schedules per point, at most
    #[arg(long, value_name = "N", default_value = "100000")]
    schedules: u64,
    /// Run one schedule (a profile, scc+late, network or scc-wt), CASE/CORES/PROFILE:SEED, with the
    /// broken point
    #[arg(long, value_name = "WHICH")]
    replay: Option<String>,
    /// Break the points whose names contain that of `--break` in all cases that reach them, for N
    /// seeds of each setting
    #[arg(long, value_name = "N")]
    matrix: Option<u64>,
    #[arg(long, value_name = "N", default_value_t = crate::processors())]
    threads: usize,
}

/// Reads `NAME=WHICH`.
fn killer(text: &str) -> Result<(String, String), String> {
    let (name, which) = text.split_once('=').ok_or("not NAME=WHICH")?;
    Ok((name.to_owned(), which.to_owned()))
}

/// Runs the command; `false` if the unbroken kernel fails or does not reach a point. Survivors are
/// for the caller to judge.
pub(crate) fn run(arguments: &Arguments) -> bool {
    if arguments.list {
        listed().iter().for_each(say);
        return true;
    }
    if let Some(which) = &arguments.replay {
        return replay(arguments.broken.first(), which);
    }
    let threads = arguments.threads;
    let mut good = true;
    let take = |outcome: Outcome| {
        good &= outcome.error.is_none();
        outcome.say();
    };
    if !arguments.killers.is_empty() {
        let work = |(point, which): &(String, String)| recorded(point, which);
        for_each(threads, &arguments.killers, work, take);
        return good;
    }
    let must = if arguments.matrix.is_some() {
        &[][..]
    } else {
        &arguments.broken
    };
    let settings = match unbroken(must) {
        Ok(settings) => settings,
        Err(problems) => {
            let problems = problems.iter();
            problems.for_each(|error| say(&json!({"is": "error", "error": error})));
            return false;
        }
    };
    if let Some(seeds) = arguments.matrix {
        let pattern = arguments.broken.first().map_or("", String::as_str);
        matrix(threads, &settings, pattern, seeds);
        return true;
    }
    let work = |point: &String| hunt(point, &settings, arguments.schedules);
    for_each(threads, &arguments.broken, work, take);
    good
}

/// All points, in alphabetical order.
fn listed() -> Vec<Value> {
    let mut points = POINTS.to_vec();
    let place = |point: &Point| (point.name, point.file, point.at);
    points.sort_by_key(place);
    points.dedup_by_key(|point| place(point));
    let object = |point: &Point| {
        let place = format!("{}:{}", point.file, point.at[0]);
        json!({"point": point.name, "why": point.why, "instead": point.instead, "place": place})
    };
    points.iter().map(object).collect()
}

/// Prints for each case how many points it kills, and which of them no other case kills.
fn matrix(threads: usize, settings: &[Known], pattern: &str, seeds: u64) {
    let reached: BTreeSet<&str> = settings
        .iter()
        .flat_map(|known| &known.reaches)
        .copied()
        .collect();
    let points: Vec<&str> = reached
        .into_iter()
        .filter(|point| point.contains(pattern))
        .collect();
    let work = |point: &&'static str| {
        break_point(Some(point));
        let mut killers = BTreeSet::new();
        for known in settings
            .iter()
            .filter(|known| known.reaches.contains(point))
        {
            let case = known.setting.case.name;
            if !killers.contains(case) && known.hunt(0..seeds).1.is_some() {
                killers.insert(case);
            }
        }
        break_point(None);
        killers
    };
    let mut killed: BTreeMap<&str, [Vec<&str>; 2]> = cases()
        .map(|case| (case.name, Default::default()))
        .collect();
    let mut of = points.iter();
    for_each(threads, &points, work, |killers| {
        let (point, alone) = (of.next().copied().unwrap_or_default(), killers.len() == 1);
        for case in &killers {
            killed.entry(case).or_default()[usize::from(alone)].push(point);
        }
        if killers.is_empty() {
            println!("{point}: no case kills it");
        }
    });
    println!("case\tkills\talone\tpoints that no other case kills");
    for (case, [with, alone]) in killed {
        let (all, number) = (with.len() + alone.len(), alone.len());
        println!("{case}\t{all}\t{number}\t{}", alone.join(" "));
    }
}

/// What came of one point.
struct Outcome {
    /// A row, or why the recorded run does not kill.
    line: Value,
    /// What must not be.
    error: Option<String>,
}

impl Outcome {
    fn new(line: Value) -> Self {
        Self { line, error: None }
    }

    fn say(&self) {
        say(&self.line);
        if let Some(error) = &self.error {
            say(&json!({"is": "error", "error": error}));
        }
    }
}

/// Does `work` on each point, on several threads, and hands on what comes of them, in the order of
/// the points.
fn for_each<T: Sync, R: Send>(
    threads: usize,
    points: &[T],
    work: impl Fn(&T) -> R + Sync,
    mut take: impl FnMut(R),
) {
    let next = AtomicUsize::new(0);
    let (send, results) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..threads.clamp(1, points.len().max(1)) {
            let (send, next, work) = (send.clone(), &next, &work);
            scope.spawn(move || {
                loop {
                    // ORDERING: Relaxed: only that each number is drawn once counts.
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(point) = points.get(number) else {
                        return;
                    };
                    if send.send((number, work(point))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(send);
        // Each as soon as those before it are there.
        let mut early = BTreeMap::new();
        let mut expected = 0;
        for (number, outcome) in results {
            early.insert(number, outcome);
            while let Some(outcome) = early.remove(&expected) {
                take(outcome);
                expected += 1;
            }
        }
    });
}

/// Prints one line. Who closed the pipe does not want to know.
fn say(line: &Value) {
    let _ = writeln!(io::stdout().lock(), "{line}");
}

/// A setting, and what the unbroken run told of it.
struct Known {
    setting: Setting,
    /// Loads may be late.
    late: Option<&'static late::Case>,
    config: Config,
    reaches: BTreeSet<&'static str>,
}

/// The chip that loads are late on.
const KINDEST: Chip = Chip::Profile(Profile::Scc);

/// The presets that points are broken on; the others have no step that these and the profiles do
/// without.
const PRESETS: [Preset; 5] = [
    Preset::Coherent,
    Preset::Network,
    Preset::NetworkOrdered,
    Preset::SccWt,
    Preset::Et,
];

/// Whether points are broken on the chip.
fn is_hunted_on(chip: Chip) -> bool {
    match chip {
        Chip::Profile(_) => true,
        Chip::Preset(preset) => PRESETS.contains(&preset),
    }
}

/// What a replay names a setting with late loads by.
const LATE: &str = "+late";

impl fmt::Display for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let late = if self.late.is_some() { LATE } else { "" };
        write!(f, "{}{late}", self.setting)
    }
}

impl Known {
    fn new(setting: Setting, late: bool) -> Self {
        Self {
            setting,
            late: if late {
                late::case(setting.case.name)
            } else {
                None
            },
            config: config(&setting),
            reaches: BTreeSet::new(),
        }
    }

    fn run(&self, sim: &mut Sim, seed: u64) -> Report {
        match self.late {
            Some(case) => late::run(sim, case, seed),
            None if matches!(self.setting.chip, Chip::Profile(_)) => sim
                .reseed(seed)
                .run(|core| program(self.setting.case, core)),
            None => self.setting.run(Config {
                seed,
                ..self.config.clone()
            }),
        }
    }

    /// Kind settings first.
    fn order(&self) -> (u8, u16) {
        let profile = self.config.profile;
        let kind = match self.late {
            Some(_) => 4,
            None if self.setting.chip.is_coherent() => 5,
            None if self.setting.chip.is_network() => 5,
            None if self.setting.chip.mapping().is_some() => 6,
            None => u8::from(profile.weak()) * 2 + u8::from(profile.fills()),
        };
        (kind, self.setting.cores)
    }

    /// Runs `seeds` until one kills. The number of runs made, and the run that killed.
    fn hunt(&self, seeds: Range<u64>) -> (u64, Option<Report>) {
        let mut sim = Sim::new(self.config.clone());
        let mut runs = 0;
        for seed in seeds {
            let report = self.run(&mut sim, seed);
            runs += 1;
            if how(&report.end).is_some() {
                return (runs, Some(report));
            }
        }
        (runs, None)
    }
}

/// Runs every setting without any point broken.
///
/// # Errors
/// What failed, and which of the points `broken` were not reached.
fn unbroken(broken: &[String]) -> Result<Vec<Known>, Vec<String>> {
    let mut problems = Vec::new();
    let mut known: Vec<Known> = Vec::new();
    let mut of_case: BTreeMap<Key, BTreeSet<&'static str>> = BTreeMap::new();
    let mut runs = 0;
    record(true);
    let late = |setting: Setting| (setting.chip == KINDEST).then(|| Known::new(setting, true));
    let presets = cases().flat_map(preset_settings_of);
    let presets = presets.filter(|setting| is_hunted_on(setting.chip));
    for setting in settings().chain(presets).flat_map(|setting| {
        let ordinary = Known::new(setting, false);
        std::iter::once(ordinary).chain(late(setting))
    }) {
        let mut sim = Sim::new(setting.config.clone());
        for seed in 0..UNBROKEN {
            let report = setting.run(&mut sim, seed);
            runs += 1;
            if !report.is_done() {
                problems.push(fails_unbroken(&setting, seed, &report));
            }
        }
        of_case
            .entry(key(&setting.setting))
            .or_default()
            .extend(reached());
        known.push(setting);
    }
    record(false);
    let all: BTreeSet<&str> = of_case.values().flatten().copied().collect();
    let missed = broken.iter().filter(|point| !all.contains(&***point));
    problems.extend(missed.map(|point| format!("{point}: no case reaches this point")));
    if !problems.is_empty() {
        return Err(problems);
    }
    for known in &mut known {
        known.reaches.clone_from(&of_case[&key(&known.setting)]);
    }
    known.sort_by_key(Known::order);
    say(&json!({"is": "unbroken", "settings": known.len(), "runs": runs}));
    Ok(known)
}

/// What decides which points a setting reaches: its case, and which network or coherent machine
/// it runs on, if on one.
type Key = (&'static str, Option<String>);

fn key(setting: &Setting) -> Key {
    let chip = Some(setting.chip).filter(|chip| chip.is_network() || chip.is_coherent());
    (setting.case.name, chip.map(|chip| chip.to_string()))
}

/// The setting's chip, told how long its runs are. A function of the setting alone, so that a
/// replay gets the same.
fn config(setting: &Setting) -> Config {
    let config = setting.config();
    let measured = Config {
        schedule: Schedule::Random,
        seed: 0,
        ..config.clone()
    };
    let report = setting.run(measured);
    Config {
        pct_length: report.steps.max(1),
        max_steps: STEPS,
        ..config
    }
}

/// Tries the run that is said to kill `point`, on this thread.
fn recorded(point: &str, which: &str) -> Outcome {
    let lapsed = |why: String| Outcome::new(json!({"is": "lapsed", "point": point, "why": why}));
    let Some((known, seed)) = parse(which) else {
        return lapsed(format!("there is no run {which}"));
    };
    let mut sim = Sim::new(known.config.clone());
    record(true);
    let report = known.run(&mut sim, seed);
    record(false);
    let reached = reached();
    if !report.is_done() {
        let error = Some(fails_unbroken(&known, seed, &report));
        return Outcome {
            error,
            ..lapsed(format!("{which} fails with no point broken, too"))
        };
    }
    break_point(Some(point));
    let report = known.run(&mut sim, seed);
    break_point(None);
    match how(&report.end) {
        Some(_) => Outcome::new(killed(point, &known, 1, &report)),
        None if !reached.contains(&point) => lapsed(format!("{which} does not reach it")),
        None => lapsed(format!("{which} passes")),
    }
}

/// Breaks `point` on this thread and looks for a schedule that notices.
fn hunt(point: &str, settings: &[Known], schedules: u64) -> Outcome {
    break_point(Some(point));
    let mut runs = 0;
    let mut first = 0;
    let settings: Vec<&Known> = settings
        .iter()
        .filter(|known| known.reaches.contains(point))
        .collect();
    for end in ROUNDS {
        for known in &settings {
            let left = schedules.saturating_sub(runs);
            let (more, killer) = known.hunt(first..end.min(first.saturating_add(left)));
            runs += more;
            if let Some(report) = killer {
                break_point(None);
                let seed = report.config.seed;
                let whole = known.run(&mut Sim::new(known.config.clone()), seed);
                let error = (!whole.is_done()).then(|| fails_unbroken(known, seed, &whole));
                return Outcome {
                    error,
                    ..Outcome::new(killed(point, known, runs, &report))
                };
            }
        }
        first = end;
    }
    break_point(None);
    Outcome::new(json!({"is": "result", "point": point, "killed": false, "schedules": runs}))
}

fn fails_unbroken(known: &Known, seed: u64, report: &Report) -> String {
    format!("{known}:{seed} fails with no point broken:\n{report}")
}

fn killed(point: &str, known: &Known, runs: u64, report: &Report) -> Value {
    json!({
        "is": "result",
        "point": point,
        "killed": true,
        "how": how(&report.end),
        "schedules": runs,
        "replay": format!("{known}:{}", report.config.seed),
    })
}

/// How a run killed, in a word or two; nothing if it did not.
fn how(end: &End) -> Option<&'static str> {
    match end {
        End::Oracle(alarm) => Some(match alarm.oracle {
            Oracle::PendingClobber => "oracle O1",
            Oracle::StaleRead => "oracle O2",
            Oracle::StaleMerge => "oracle O3",
            Oracle::LostStore => "oracle O4",
            Oracle::HiddenStore => "oracle O5",
            Oracle::EarlyRead => "oracle O6",
        }),
        End::Failed => Some("failed check"),
        End::Panicked => Some("panic"),
        End::Deadlock => Some("deadlock"),
        End::Livelock => Some("livelock"),
        End::Starvation(_) => Some("starvation"),
        // Passed, cut off, or not a run of its own.
        _ => None,
    }
}

/// Reads CASE/CORES/PROFILE:SEED.
fn parse(which: &str) -> Option<(Known, u64)> {
    let (setting, seed) = which.rsplit_once(':')?;
    let ordinary = setting.strip_suffix(LATE);
    let setting: Setting = ordinary.unwrap_or(setting).parse().ok()?;
    let late = ordinary.is_some();
    let runs = is_hunted_on(setting.chip) && setting.fits() && (!late || setting.chip == KINDEST);
    let known = runs.then(|| Known::new(setting, late))?;
    Some((known, seed.parse().ok()?))
}

/// Runs one schedule again and prints its account; `true` if it passes.
fn replay(point: Option<&String>, which: &str) -> bool {
    let named = |name: &String| POINTS.iter().any(|point| point.name == *name);
    let Some((known, seed)) = parse(which).filter(|_| point.is_none_or(named)) else {
        eprintln!("{which}: not CASE/CORES/PROFILE:SEED, or not the name of a point");
        std::process::exit(2);
    };
    let mut sim = Sim::new(known.config.clone());
    break_point(point.map(String::as_str));
    let report = known.run(&mut sim, seed);
    break_point(None);
    println!("{report}");
    report.is_done()
}
