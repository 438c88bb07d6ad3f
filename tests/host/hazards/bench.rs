//! How a hazard is shown: everything that can happen is tried, with the remedy and without.

use std::collections::BTreeSet;
use std::fmt;

use flagpost_hal::{
    Address, CachedMemory, Coherence, CoreId, Lines, Region, Relax, TestAndSet, Topology,
    UncachedMemory, Watch,
};
use flagpost_sim::{
    Bounds, Config, Explored, Method, Oracle, Oracles, Profile, SCC_BUFFER, Sim, SimCore,
};

/// Lines of two words: a word and its neighbour are all that a hazard of lines takes.
pub type Core = SimCore<8>;

/// What a program returns: what was wrong.
pub type Outcome = Result<(), &'static str>;

/// How much the chip does on its own accord, at most.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Acts {
    pub evictions: u8,
    pub fills: u8,
    pub leaves: u8,
    pub refusals: u8,
    pub expiries: u8,
}

/// Evictions and prefetches.
pub const CACHES: Acts = Acts {
    evictions: 2,
    fills: 1,
    ..NOTHING
};

/// Locks that are tried in vain.
pub const LOCKS: Acts = Acts {
    refusals: 1,
    ..NOTHING
};

/// Words that leave a combining buffer without need.
pub const BUFFERS: Acts = Acts {
    leaves: 1,
    ..NOTHING
};

/// The chip does only what it must.
pub const NOTHING: Acts = Acts {
    evictions: 0,
    fills: 0,
    leaves: 0,
    refusals: 0,
    expiries: 0,
};

/// A hazard, as a program with a switch; and what is claimed of it. Lines of 32 bytes mean a chip
/// for the SCC port.
pub struct Hazard<const LINE: usize = 8> {
    /// Number in the list, and a letter if it takes several programs.
    pub name: &'static str,
    /// Number of cores.
    pub cores: u16,
    /// Bytes of memory per core.
    pub memory: u32,
    pub profiles: &'static [Profile],
    /// What each core runs, with the remedy or without.
    pub program: fn(&SimCore<LINE>, bool) -> Outcome,
    /// The most that the chip may do of each kind.
    pub most: Acts,
    /// What goes wrong in the end, all of it: `DEADLOCK`, or what a core says.
    pub consequences: &'static [&'static str],
    /// Where that can happen, and nowhere else.
    pub shows: fn(Profile, Acts) -> bool,
    /// Oracles that see it, all of them, and where.
    pub alarms: &'static [(Oracle, Needs)],
}

/// Tells where something shows.
pub type Needs = fn(Profile, Acts) -> bool;

/// The verdict of a run in which nobody can go on.
pub const DEADLOCK: &str = "deadlock";

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

/// Takes a budget that runs out.
pub fn expiry(_: Profile, acts: Acts) -> bool {
    acts.expiries > 0
}

/// What it took to show a hazard.
#[derive(Default)]
pub struct Effort {
    /// Searches, and those that sleep sets repeated.
    pub searches: u64,
    pub repeated: u64,
    pub states: u64,
    pub runs: u64,
    /// The largest number of schedules that one search stood for.
    pub schedules: f64,
}

/// Runs after which the second opinion is not waited for.
const SECOND_OPINION: u64 = 2_000;

impl<const LINE: usize> Hazard<LINE> {
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
            line: LINE as u32,
            memory_size: self.memory,
            buffer_size: if LINE == 32 { SCC_BUFFER } else { 0 },
            ..Config::default()
        };
        let bounds = Bounds {
            evictions: acts.evictions,
            fills: acts.fills,
            leaves: acts.leaves,
            refusals: acts.refusals,
            expiries: acts.expiries,
            ..Bounds::default()
        };
        explore(&config, &bounds, effort, |core| {
            (self.program)(core, remedy)
        })
    }

    /// Where it shows, and what that takes of the chip.
    pub fn needs(&self) -> String {
        let shows = |&profile: &Profile| {
            let kinds = [
                NOTHING,
                Acts {
                    evictions: 1,
                    ..NOTHING
                },
                Acts {
                    fills: 1,
                    ..NOTHING
                },
                Acts {
                    expiries: 1,
                    ..NOTHING
                },
            ];
            let least = kinds
                .into_iter()
                .find(|&acts| (self.shows)(profile, acts))?;
            let needs = if least == NOTHING {
                String::new()
            } else {
                format!(" with {least}")
            };
            Some(format!("{profile}{needs}"))
        };
        let shown: Vec<String> = self.profiles.iter().filter_map(shows).collect();
        shown.join(", ")
    }

    /// Checks all that is claimed.
    pub fn show(&self) -> Effort {
        let mut effort = Effort::default();
        for &profile in self.profiles {
            for acts in self.most.up_to(profile) {
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

/// Tries everything, and has it tried again by the search that remembers nothing.
pub fn explore<const LINE: usize>(
    config: &Config,
    bounds: &Bounds,
    effort: &mut Effort,
    program: impl Fn(&SimCore<LINE>) -> Outcome,
) -> Explored {
    let mut sim = Sim::new(config.clone());
    let program = |core: SimCore<LINE>| program(&core);
    let states = sim.explore(bounds, Method::States, true, program);
    assert!(states.complete, "{states}");
    effort.searches += 1;
    effort.states += states.states;
    effort.runs += states.runs;
    effort.schedules = effort.schedules.max(schedules(&states));
    let limited = Bounds {
        max_runs: SECOND_OPINION,
        ..bounds.clone()
    };
    // It takes more runs than a search that remembers states: this one would not end. And whom a
    // step preempts depends on the order of independent ones.
    if states.runs < SECOND_OPINION / 4 && bounds.preemptions.is_none() {
        let sleeping = sim.explore(&limited, Method::SleepSets, true, program);
        if sleeping.complete {
            assert_eq!(states.verdicts, sleeping.verdicts, "{states}");
            assert_eq!(states.outcomes, sleeping.outcomes, "{states}");
            effort.repeated += 1;
        }
    }
    states
}

fn schedules(explored: &Explored) -> f64 {
    explored.schedules.to_string().parse().unwrap_or(0.0)
}

/// The account of the first failure, if there is one.
fn first(explored: &Explored) -> String {
    match &explored.failure {
        Some(report) => format!("{explored}\n{report}"),
        None => format!("{explored}: no failure"),
    }
}

/// What went wrong in some schedule: errors of cores, else how runs ended.
pub fn wrongs(explored: &Explored) -> BTreeSet<String> {
    let mut wrongs = BTreeSet::new();
    for verdict in &explored.verdicts {
        let mut errors = verdict.split("returned an error: ").skip(1).peekable();
        if verdict.starts_with("done") {
            continue;
        } else if verdict.starts_with("DEADLOCK") {
            wrongs.insert(DEADLOCK.to_string());
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
        let kinds = [
            ("evictions", self.evictions),
            ("fills", self.fills),
            ("leaves", self.leaves),
            ("refusals", self.refusals),
            ("expiries", self.expiries),
        ];
        let some: Vec<String> = kinds
            .iter()
            .filter(|(_, most)| *most > 0)
            .map(|(kind, most)| format!("{kind}={most}"))
            .collect();
        f.write_str(&some.join(" "))
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

impl Acts {
    /// All combinations of none and some, and every number of evictions, as far as they matter on
    /// this chip.
    fn up_to(self, profile: Profile) -> Vec<Self> {
        let some = |most: u8| if most > 0 { vec![0, most] } else { vec![0] };
        // Without prefetches, a chip that could prefetch is like one that could not.
        let fills = match (profile.fills(), self.fills) {
            (true, 0) => vec![],
            (true, most) => vec![most],
            (false, _) => vec![0],
        };
        let mut all = Vec::new();
        for evictions in 0..=self.evictions {
            for &fills in &fills {
                for &leaves in &some(self.leaves) {
                    for &refusals in &some(self.refusals) {
                        for expiries in 0..=self.expiries {
                            all.push(Self {
                                evictions,
                                fills,
                                leaves,
                                refusals,
                                expiries,
                            });
                        }
                    }
                }
            }
        }
        all
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

/// Takes `owner`'s register.
pub fn lock(core: &Core, owner: u16) {
    while !core.test_and_set(CoreId::new(owner)) {
        core.relax(&[]);
    }
    core.acquire();
}

/// Frees `owner`'s register behind what was stored.
pub fn unlock(core: &Core, owner: u16) {
    core.drain();
    core.clear(CoreId::new(owner));
}

/// Fails as `wrong` unless `right`.
pub fn check(right: bool, wrong: &'static str) -> Outcome {
    if right { Ok(()) } else { Err(wrong) }
}
