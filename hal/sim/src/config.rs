//! Everything that decides a run, as one value that prints as one line and reads back.

use std::fmt;
use std::str::FromStr;

use crate::caching::Caching;
use crate::choices::{Bounds, Choices};
use crate::plan::{Controllers, Mesh};
use crate::timing::preset::Latencies;
use crate::wire::Wire;

/// How the chip's memory behaves.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Profile {
    /// The Intel SCC: word stores and loads in order and at once; only caches and the
    /// write-combining buffer hold things back.
    Scc,
    /// `Scc`, and cores prefetch: a line that was touched before may come back at any moment.
    SccFill,
    /// Arm, RISC-V: word stores and write-backs arrive late and in any order until `drain`; loads
    /// are satisfied early until `acquire`.
    Weak,
    /// `Weak`, and cores prefetch.
    WeakFill,
}

impl Profile {
    /// All of them, kindest first.
    pub const ALL: [Self; 4] = [Self::Scc, Self::SccFill, Self::Weak, Self::WeakFill];

    /// Whether stores arrive late and loads are satisfied early.
    pub const fn weak(self) -> bool {
        matches!(self, Self::Weak | Self::WeakFill)
    }

    /// Whether lines touched before may be prefetched.
    pub const fn fills(self) -> bool {
        matches!(self, Self::SccFill | Self::WeakFill)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Scc => "scc",
            Self::SccFill => "scc+fill",
            Self::Weak => "weak",
            Self::WeakFill => "weak+fill",
        }
    }
}

/// Who runs next.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// Every core one access, in turn.
    RoundRobin,
    /// Any core, at every step. Finds unlocked read-modify-writes.
    Random,
    /// The core of highest priority; priorities are random, and change at `depth - 1` random steps
    /// (Burckhardt et al., ASPLOS 2010). Finds bugs of order that need one core to run far ahead.
    Pct {
        /// One more than the number of changes.
        depth: u8,
    },
    /// `Random`, `Pct` 2 or `Pct` 3, in turn by seed: they are complementary
    /// (docs/verification.md).
    Mixed,
    /// The core whose access arrives first in virtual time, by [`Config::latencies`]. Nothing is
    /// left to chance: rates do not count. Not for weak profiles.
    Timed,
}

impl Schedule {
    /// The schedule that `seed` stands for.
    pub(crate) const fn resolve(self, seed: u64) -> Self {
        match (self, seed % 3) {
            (Self::Mixed, 0) => Self::Random,
            (Self::Mixed, 1) => Self::Pct { depth: 2 },
            (Self::Mixed, _) => Self::Pct { depth: 3 },
            _ => self,
        }
    }
}

/// Which shadow oracles end a run; see [`Oracle`](crate::Oracle). They never change what happens.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Oracles {
    /// O1: memory changes under a line that another core holds dirty.
    pub pending_clobber: bool,
    /// O2: a cached load returns bytes that memory has newer.
    pub stale_read: bool,
    /// O3: a cached store into a line whose other bytes memory has newer.
    pub stale_merge: bool,
    /// O4: `invalidate` of a line with unsaved stores.
    pub lost_store: bool,
    /// O5: a load of bytes that another core's cache, or the own one past it, has newer.
    pub hidden_store: bool,
    /// O6: a read of bytes that a request was started for, which a peer has put meanwhile.
    pub early_read: bool,
}

impl Oracles {
    /// All on.
    pub const ALL: Self = Self {
        pending_clobber: true,
        stale_read: true,
        stale_merge: true,
        lost_store: true,
        hidden_store: true,
        early_read: true,
    };

    /// All off: hazards show by their consequences only.
    pub const NONE: Self = Self {
        pending_clobber: false,
        stale_read: false,
        stale_merge: false,
        lost_store: false,
        hidden_store: false,
        early_read: false,
    };
}

/// One run, completely: the same `Config` and the same program give the same run, to the last step.
///
/// Prints as one line of `name=value` words; [`FromStr`] reads it back. Rates are expected events
/// per 1024 steps, at most 1024.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Number of cores.
    pub cores: u16,
    /// Bytes of `Memory` per core; a multiple of 32.
    pub memory_size: u32,
    /// Bytes of `MessageBuffer` per core; a multiple of 32.
    pub buffer_size: u32,
    /// Bytes per cache line: 4, 8, 16, 32 or 64; that of the program's [`SimCore`](crate::SimCore).
    pub line: u32,
    /// How large the mesh is. None: as many tiles of two cores as needed, in the SCC's proportions.
    pub mesh: Option<Mesh>,
    /// Where the memory controllers are. None: as on the SCC, on both edges of row 0 and the middle
    /// row.
    pub controllers: Option<Controllers>,
    /// What accesses cost under [`Schedule::Timed`].
    pub latencies: Latencies,
    /// How memory behaves.
    pub profile: Profile,
    /// What caches do where the HAL's contract leaves room.
    pub caching: Caching,
    /// Bytes, aligned, that leave the combining buffer in one piece: 4, 8, 16 or 32, and at most a
    /// line.
    pub publish: u32,
    /// Whether there are test-and-set registers. If not, the core that uses one panics.
    pub registers: bool,
    /// Whether a core that relaxes on words of its own regions sleeps until its bell tells it
    /// ([`Relax::told`](flagpost_hal::Relax::told)). A change that nobody announces is not noticed
    /// then. Programs have no bells of their own.
    pub sleeps: bool,
    /// The network that the cores are on. None: there is none, and [`Nic`](crate::Nic) panics.
    pub network: Option<Wire>,
    /// Who runs next.
    pub schedule: Schedule,
    /// Decides everything that is left to chance.
    pub seed: u64,
    /// Rate of evictions: a random line of a random core leaves its cache.
    pub evictions: u16,
    /// Rate of prefetches, in the profiles that have them.
    pub prefetches: u16,
    /// Rate at which late stores arrive, in the weak profiles.
    pub drains: u16,
    /// Rate at which bytes leave some core's combining buffer without need.
    pub leaves: u16,
    /// Rate of wake-ups for no reason, which `relax` and bells may have (R3).
    pub wakes: u16,
    /// How many times, when nobody can go on, the clock jumps more than an hour ahead and everybody
    /// is woken, so that time budgets run out. After that it is a deadlock.
    pub budgets_expire: u32,
    /// Steps after which a run is cut off.
    pub max_steps: u64,
    /// Turns of polling loops per live core, without any store by anybody, after which a run counts
    /// as a livelock. A pure delay loop makes such turns too: one per clock cycle.
    pub quiet_turns: u64,
    /// Steps among which [`Schedule::Pct`] spreads its changes: about the length of a run. 0: a
    /// random power of two, for runs of unknown length.
    pub pct_length: u64,
    /// Which oracles end a run.
    pub oracles: Oracles,
    /// Accesses remembered per core for the account of a failure.
    pub timeline: u16,
    /// If not empty: exactly these choices are made, as a search found them. Seed, schedule and
    /// rates decide nothing then but memory's first contents.
    pub choices: Choices,
    /// With `choices`: the bounds of the search that made them, since what nobody could notice, and
    /// when nobody can go on, depends on them.
    pub within: Bounds,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            cores: 2,
            memory_size: 4096,
            buffer_size: 512,
            line: 32,
            mesh: None,
            controllers: None,
            latencies: Latencies::SccEas,
            profile: Profile::Scc,
            caching: Caching::default(),
            publish: 4,
            network: None,
            registers: true,
            sleeps: false,
            schedule: Schedule::Random,
            seed: 0,
            evictions: 16,
            prefetches: 32,
            drains: 256,
            leaves: 0,
            wakes: 0,
            budgets_expire: 0,
            max_steps: 20_000_000,
            quiet_turns: 20_000,
            pct_length: 0,
            oracles: Oracles::ALL,
            timeline: 16,
            choices: Choices::default(),
            within: Bounds::ANY,
        }
    }
}

impl Config {
    /// A chip that does nothing on its own account, and whose cores go on one access each in turn:
    /// to count what a program does.
    #[must_use]
    pub fn quiet(cores: u16) -> Self {
        Self {
            cores,
            schedule: Schedule::RoundRobin,
            evictions: 0,
            prefetches: 0,
            drains: 0,
            ..Self::default()
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RoundRobin => f.write_str("round-robin"),
            Self::Random => f.write_str("random"),
            Self::Pct { depth } => write!(f, "pct:{depth}"),
            Self::Mixed => f.write_str("mixed"),
            Self::Timed => f.write_str("timed"),
        }
    }
}

impl fmt::Display for Oracles {
    /// The numbers of those that are on, such as `134`; `0` for none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on = [
            self.pending_clobber,
            self.stale_read,
            self.stale_merge,
            self.lost_store,
            self.hidden_store,
            self.early_read,
        ];
        if *self == Self::NONE {
            return f.write_str("0");
        }
        (1..)
            .zip(on)
            .filter(|(_, on)| *on)
            .try_for_each(|(number, _)| write!(f, "{number}"))
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cores={} memory={} buffer={} line={} profile={} schedule={} seed={} evictions={} prefetches={} \
             drains={} wakes={} budgets={} max_steps={} quiet_turns={} pct_length={} oracles={} timeline={}",
            self.cores,
            self.memory_size,
            self.buffer_size,
            self.line,
            self.profile,
            self.schedule,
            self.seed,
            self.evictions,
            self.prefetches,
            self.drains,
            self.wakes,
            self.budgets_expire,
            self.max_steps,
            self.quiet_turns,
            self.pct_length,
            self.oracles,
            self.timeline
        )?;
        if self.caching != Caching::default() {
            write!(f, " caches={}", self.caching)?;
        }
        if self.publish != 4 {
            write!(f, " publish={}", self.publish)?;
        }
        if !self.registers {
            write!(f, " registers=false")?;
        }
        if self.sleeps {
            write!(f, " sleeps=true")?;
        }
        if let Some(wire) = self.network {
            write!(f, " network={wire}")?;
        }
        if self.leaves != 0 {
            write!(f, " leaves={}", self.leaves)?;
        }
        if let Some(mesh) = self.mesh {
            write!(f, " mesh={mesh}")?;
        }
        if let Some(controllers) = &self.controllers {
            write!(f, " controllers={controllers}")?;
        }
        if self.schedule == Schedule::Timed {
            write!(f, " latencies={}", self.latencies)?;
        }
        if !self.choices.is_empty() {
            let Bounds {
                evictions,
                fills,
                leaves,
                expiries,
                refusals,
                preemptions,
                set_up,
                ..
            } = &self.within;
            let preemptions = preemptions.map_or("-".into(), |most| most.to_string());
            write!(
                f,
                " set_up={set_up} within={evictions}/{fills}/{leaves}/{expiries}/{refusals}/{preemptions} choices={}",
                self.choices
            )?;
        }
        Ok(())
    }
}

impl FromStr for Profile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|p| p.name() == text);
        found.ok_or_else(|| format!("no profile is called {text:?}"))
    }
}

impl FromStr for Schedule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("pct", depth)) => Ok(Self::Pct {
                depth: number("schedule", depth)?,
            }),
            None if text == "round-robin" => Ok(Self::RoundRobin),
            None if text == "random" => Ok(Self::Random),
            None if text == "mixed" => Ok(Self::Mixed),
            None if text == "timed" => Ok(Self::Timed),
            _ => Err(format!("no schedule is called {text:?}")),
        }
    }
}

impl FromStr for Config {
    type Err = String;

    /// Reads what `Display` prints. Words that are left out keep their default; `case=...` is
    /// skipped.
    fn from_str(line: &str) -> Result<Self, String> {
        let mut config = Self::default();
        for word in line.split_whitespace() {
            let (name, value) = word
                .split_once('=')
                .ok_or_else(|| format!("{word:?} is not name=value"))?;
            config.set(name, value)?;
        }
        Ok(config)
    }
}

impl Config {
    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "case" => {}
            "cores" => self.cores = number(name, value)?,
            "memory" => self.memory_size = number(name, value)?,
            "buffer" => self.buffer_size = number(name, value)?,
            "line" => self.line = number(name, value)?,
            "mesh" => self.mesh = Some(value.parse()?),
            "controllers" => self.controllers = Some(value.parse()?),
            "latencies" => self.latencies = value.parse()?,
            "profile" => self.profile = value.parse()?,
            "caches" => self.caching = value.parse()?,
            "publish" => self.publish = number(name, value)?,
            "network" => self.network = Some(value.parse()?),
            "registers" => self.registers = number(name, value)?,
            "sleeps" => self.sleeps = number(name, value)?,
            "leaves" => self.leaves = number(name, value)?,
            "schedule" => self.schedule = value.parse()?,
            "seed" => self.seed = number(name, value)?,
            "evictions" => self.evictions = number(name, value)?,
            "prefetches" => self.prefetches = number(name, value)?,
            "drains" => self.drains = number(name, value)?,
            "wakes" => self.wakes = number(name, value)?,
            "budgets" => self.budgets_expire = number(name, value)?,
            "max_steps" => self.max_steps = number(name, value)?,
            "quiet_turns" => self.quiet_turns = number(name, value)?,
            "pct_length" => self.pct_length = number(name, value)?,
            "oracles" => {
                self.oracles = Oracles {
                    pending_clobber: value.contains('1'),
                    stale_read: value.contains('2'),
                    stale_merge: value.contains('3'),
                    lost_store: value.contains('4'),
                    hidden_store: value.contains('5'),
                    early_read: value.contains('6'),
                }
            }
            "timeline" => self.timeline = number(name, value)?,
            "set_up" => self.within.set_up = number(name, value)?,
            "within" => {
                let all: Vec<&str> = value.split('/').collect();
                let [evictions, fills, leaves, expiries, refusals, preemptions] = all[..] else {
                    return Err(format!("{name}={value} does not have six parts"));
                };
                self.within = Bounds {
                    evictions: number(name, evictions)?,
                    fills: number(name, fills)?,
                    leaves: number(name, leaves)?,
                    expiries: number(name, expiries)?,
                    refusals: number(name, refusals)?,
                    preemptions: match preemptions {
                        "-" => None,
                        most => Some(number(name, most)?),
                    },
                    ..self.within.clone()
                };
            }
            "choices" => self.choices = value.parse()?,
            _ => return Err(format!("no setting is called {name:?}")),
        }
        Ok(())
    }
}

fn number<T: FromStr>(name: &str, value: &str) -> Result<T, String> {
    let parsed = value.parse();
    parsed.map_err(|_| format!("{name}={value} is not a number in range"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_reads_back() {
        let config = Config {
            cores: 7,
            profile: Profile::WeakFill,
            schedule: Schedule::Pct { depth: 3 },
            seed: u64::MAX,
            oracles: Oracles {
                stale_merge: false,
                ..Oracles::ALL
            },
            timeline: 5,
            wakes: 3,
            pct_length: 99,
            caching: "saves+around".parse().unwrap_or_default(),
            publish: 16,
            registers: false,
            sleeps: true,
            leaves: 9,
            network: Some(Wire::default()),
            ..Config::default()
        };
        assert_eq!(config.to_string().parse(), Ok(config));
    }

    #[test]
    fn what_is_printed_of_timed_mode_reads_back() {
        let config = Config {
            schedule: Schedule::Timed,
            latencies: Latencies::SccBarrelfish,
            mesh: "6x4x2".parse().ok(),
            controllers: "0.0:5.2".parse().ok(),
            ..Config::default()
        };
        assert_eq!(config.to_string().parse(), Ok(config));
    }

    #[test]
    fn wrong_words_are_named() {
        let error = "cores=2 colour=red".parse::<Config>();
        assert!(error.is_err_and(|e| e.contains("colour")));
    }
}
