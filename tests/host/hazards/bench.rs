//! How a hazard is shown: everything that can happen is tried, with the remedy and without.

use std::collections::BTreeSet;
use std::fmt;

use flagpost_hal::{
    Address, CachedMemory, Coherence, CoreId, Lines, Region, Relax, TestAndSet, Topology,
    UncachedMemory, Watch,
};
use flagpost_sim::{Bounds, Config, Explored, Method, Oracle, Oracles, Profile, Sim, SimCore};

/// Lines of two words: a word and its neighbour are all that a hazard of lines takes.
pub type Core = SimCore<8>;

/// What a program returns: what was wrong.
pub type Outcome = Result<(), &'static str>;

/// How much the chip does on its own accord, at most.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Acts {
    pub evictions: u8,
    pub fills: u8,
}

/// A hazard, as a program with a switch; and what is claimed of it.
pub struct Hazard {
    /// Number in the list.
    pub name: &'static str,
    /// Number of cores.
    pub cores: u16,
    /// What each core runs, with the remedy or without.
    pub program: fn(&Core, bool) -> Outcome,
    /// The most lines that the chip may evict. It may prefetch one.
    pub evictions: u8,
    /// What goes wrong in the end, all of it, as a core says.
    pub consequences: &'static [&'static str],
    /// Where that can happen, and nowhere else.
    pub shows: Needs,
    /// Oracles that see it, all of them, and where.
    pub alarms: &'static [(Oracle, Needs)],
}

/// Tells where something shows.
pub type Needs = fn(Profile, Acts) -> bool;

/// A hazard of two cores, and up to two evictions.
pub const fn hazard(
    name: &'static str,
    program: fn(&Core, bool) -> Outcome,
    consequences: &'static [&'static str],
    shows: Needs,
    alarms: &'static [(Oracle, Needs)],
) -> Hazard {
    Hazard {
        name,
        cores: 2,
        program,
        evictions: 2,
        consequences,
        shows,
        alarms,
    }
}

/// Shows on every chip, whatever it does of its own accord.
pub fn anywhere(_: Profile, _: Acts) -> bool {
    true
}

/// Takes an eviction.
pub fn eviction(_: Profile, acts: Acts) -> bool {
    acts.evictions > 0
}

/// Takes a prefetch, on a chip that does such.
pub fn fill(profile: Profile, acts: Acts) -> bool {
    profile.fills() && acts.fills > 0
}

/// Takes stores that arrive late, or loads that are early.
pub fn weak(profile: Profile, _: Acts) -> bool {
    profile.weak()
}

/// What it took to show a hazard.
#[derive(Default)]
pub struct Effort {
    /// Searches, and those whose schedules were all run, to compare.
    searches: u64,
    repeated: u64,
    states: u64,
    runs: u64,
    /// The largest number of schedules that one search stood for.
    schedules: f64,
}

/// Schedules up to which each is run, as a second opinion.
const SECOND_OPINION: f64 = 20_000.0;

impl Hazard {
    /// All numbers of evictions; and one prefetch, on a chip that does such.
    fn acts(&self, profile: Profile) -> impl Iterator<Item = Acts> {
        let fills = u8::from(profile.fills());
        (0..=self.evictions).map(move |evictions| Acts { evictions, fills })
    }

    fn search(
        &self,
        remedy: bool,
        profile: Profile,
        oracles: Oracles,
        acts: Acts,
        effort: &mut Effort,
    ) -> Explored {
        let config = Config {
            cores: self.cores,
            profile,
            oracles,
            line: 8,
            memory_size: 32,
            buffer_size: 0,
            ..Config::default()
        };
        let bounds = Bounds {
            evictions: acts.evictions,
            fills: acts.fills,
            ..Bounds::default()
        };
        effort.explore(config, bounds, |core| (self.program)(&core, remedy))
    }

    /// Where it shows, and what that takes of the chip.
    pub fn needs(&self) -> String {
        let shows = |profile: Profile| {
            let least = self
                .acts(profile)
                .find(|acts| (self.shows)(profile, *acts))?;
            Some(format!("{profile} with {least}"))
        };
        let shown: Vec<String> = Profile::ALL.into_iter().filter_map(shows).collect();
        shown.join(", ")
    }

    /// Checks all that is claimed.
    pub fn show(&self) -> Effort {
        let mut effort = Effort::default();
        for profile in Profile::ALL {
            for acts in self.acts(profile) {
                let what = format!("{}, {profile}, {acts}", self.name);
                let right = self.search(true, profile, Oracles::ALL, acts, &mut effort);
                assert!(
                    right.failure.is_none(),
                    "{what}: with the remedy: {}",
                    first(&right)
                );

                let blind = self.search(false, profile, Oracles::NONE, acts, &mut effort);
                let shown = wrongs(&blind);
                let expected = match (self.shows)(profile, acts) {
                    true => self.consequences.iter().map(ToString::to_string).collect(),
                    false => BTreeSet::new(),
                };
                assert_eq!(shown, expected, "{what}: {}", first(&blind));

                let watched = self.search(false, profile, Oracles::ALL, acts, &mut effort);
                let rings = self.alarms.iter().filter(|(_, rings)| rings(profile, acts));
                let expected: BTreeSet<String> =
                    rings.map(|(oracle, _)| format!("{oracle:?}")).collect();
                // An oracle only makes a failure known earlier.
                let seen = &wrongs(&watched) - &shown;
                assert_eq!(seen, expected, "{what}: {}", first(&watched));
            }
        }
        effort
    }
}

impl Effort {
    /// Tries everything, and has it tried again by the search that remembers nothing.
    fn explore(
        &mut self,
        config: Config,
        bounds: Bounds,
        program: impl Fn(Core) -> Outcome,
    ) -> Explored {
        let mut sim = Sim::new(config);
        let states = sim.explore(&bounds, Method::States, true, &program);
        assert!(states.complete, "{states}");
        self.searches += 1;
        self.states += states.states;
        self.runs += states.runs;
        let schedules = states
            .schedules
            .to_string()
            .parse()
            .unwrap_or(f64::INFINITY);
        self.schedules = self.schedules.max(schedules);
        if schedules <= SECOND_OPINION {
            let all = sim.explore(&bounds, Method::Unreduced, true, &program);
            assert_eq!(states.verdicts, all.verdicts, "{states}");
            assert_eq!(states.outcomes, all.outcomes, "{states}");
            self.repeated += 1;
        }
        states
    }
}

/// The account of the first failure, if there is one.
fn first(explored: &Explored) -> String {
    match &explored.failure {
        Some(report) => format!("{explored}\n{report}"),
        None => format!("{explored}: no failure"),
    }
}

/// What went wrong in some schedule: errors of cores, else how runs ended.
fn wrongs(explored: &Explored) -> BTreeSet<String> {
    let mut wrongs = BTreeSet::new();
    for verdict in &explored.verdicts {
        let mut errors = verdict.split("returned an error: ").skip(1).peekable();
        if verdict.starts_with("done") {
            continue;
        } else if errors.peek().is_some() {
            let ends = |error: &str| error.find(" (last call").or(error.find('"'));
            wrongs.extend(
                errors.map(|error| error[..ends(error).unwrap_or(error.len())].to_string()),
            );
        } else {
            wrongs.insert(verdict.split(" at ").next().unwrap_or(verdict).to_string());
        }
    }
    wrongs
}

impl fmt::Display for Acts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "evictions={} fills={}", self.evictions, self.fills)
    }
}

impl fmt::Display for Effort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} searches ({} twice), {} states, {} runs, for up to {:.1e} schedules",
            self.searches, self.repeated, self.states, self.runs, self.schedules
        )
    }
}

// ---- What programs are made of ----

/// The byte at `offset` of core `owner`'s memory.
pub fn at(owner: u16, offset: usize) -> Address {
    Region::memory(CoreId::new(owner)).at(offset)
}

/// The line of `at`.
pub fn line(at: Address) -> [Lines; 1] {
    [Lines::covering::<Core>(at, 1)]
}

/// Own number.
pub fn me(core: &Core) -> u16 {
    core.core().get()
}

/// Clears own words, and frees the own register.
pub fn clear(core: &Core) {
    for word in 0..core.memory_size() / 4 {
        core.store_u32(at(me(core), word * 4), 0);
    }
    core.clear(core.core());
    core.drain();
}

/// Ends the set-up.
pub fn go(core: &Core) {
    core.mark("go");
}

/// Clears, and ends the set-up.
pub fn start(core: &Core) {
    clear(core);
    go(core);
}

/// A word, through the cache.
pub fn read(core: &Core, at: Address) -> u32 {
    let mut bytes = [0; 4];
    core.read(at, &mut bytes);
    u32::from_le_bytes(bytes)
}

/// Stores a word through the cache.
pub fn write(core: &Core, at: Address, value: u32) {
    core.write(at, &value.to_le_bytes());
}

/// Polls, past the cache, until the word is as `wanted`. Orders nothing.
pub fn poll(core: &Core, at: Address, wanted: impl Fn(u32) -> bool) {
    loop {
        let seen = core.load_u32(at);
        if wanted(seen) {
            return;
        }
        core.relax(&[Watch { at, seen }]);
    }
}

/// Polls until the word is `value`, and orders the loads that follow.
pub fn wait(core: &Core, at: Address, value: u32) {
    poll(core, at, |seen| seen == value);
    core.acquire();
}

/// Fails as `wrong` unless `right`.
pub fn check(right: bool, wrong: &'static str) -> Outcome {
    if right { Ok(()) } else { Err(wrong) }
}
