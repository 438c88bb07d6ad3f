//! Everything that decides a run, as one value that prints as one line of JSON and reads back.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::caching::Caching;
use crate::choices::{Bounds, Choices};
use crate::named::named;
use crate::plan::{Controllers, Mesh};
use crate::timing::preset::Latencies;
use crate::wire::Wire;

/// How the chip's memory behaves.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// The Intel SCC: word stores and loads in order and at once; only caches and the
    /// write-combining buffer hold things back.
    Scc,
    /// `Scc`, and cores prefetch: a line that was touched before may come back at any moment.
    #[serde(rename = "scc+fill")]
    SccFill,
    /// Arm, RISC-V: word stores and write-backs arrive late and in any order until `drain`; loads
    /// are satisfied early until `acquire`.
    Weak,
    /// `Weak`, and cores prefetch.
    #[serde(rename = "weak+fill")]
    WeakFill,
}

named!(Profile);

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
}

/// Who runs next.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
/// Prints as one line of JSON; [`FromStr`] reads it back. Fields that are left out have their
/// default. Rates are expected events per 1024 steps, at most 1024.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
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

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

impl FromStr for Config {
    type Err = serde_json::Error;

    fn from_str(line: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset::Preset;

    /// Every field has a value of its own here, and every kind of value is printed.
    #[test]
    fn what_is_printed_reads_back() {
        let odd = Config {
            schedule: Schedule::Pct { depth: 3 },
            seed: u64::MAX,
            oracles: Oracles::NONE,
            latencies: Latencies::SccBarrelfish,
            mesh: Some(Mesh {
                columns: 6,
                rows: 4,
                cores_per_tile: 2,
            }),
            controllers: Some(Controllers::At(vec![(0, 0), (5, 2)])),
            network: Some(Wire::default()),
            ..Config::quiet(7)
        };
        let presets = Preset::ALL.map(Preset::config);
        let profiles = Profile::ALL.map(|profile| Config {
            profile,
            ..Config::default()
        });
        let caches = Caching::all().map(|caching| Config {
            caching,
            ..Config::default()
        });
        let all = [odd].into_iter().chain(presets).chain(profiles);
        for config in all.chain(caches) {
            let again: Config = config.to_string().parse().unwrap();
            assert_eq!(again, config);
        }
    }

    #[test]
    fn wrong_words_are_named() {
        for (line, word) in [
            (r#"{"cores": 2, "colour": "red"}"#, "colour"),
            (r#"{"profile": "sc"}"#, "scc+fill"),
            (r#"{"timeline": 70000}"#, "70000"),
        ] {
            let error = line.parse::<Config>().unwrap_err();
            assert!(error.to_string().contains(word), "{error}");
        }
        let error = "scc".parse::<Preset>().unwrap_err();
        assert!(error.contains("tensix-bh"), "{error}");
    }
}
