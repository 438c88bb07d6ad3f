//! Other chips, by name: sets of knobs.
//!
//! A preset is a *behaviour* that some chip may show, as unkind as its documents allow; it is no
//! model of the chip. Where sources disagree or say nothing, the less convenient is taken. Facts
//! and sources: docs/hardware.md B1, B2 and B4, and the keys there.
//!
//! * `scc-wb`, `scc-wt`: the SCC's message-buffer memory without and with write-through, as the SCC
//!   port maps it. Known: stores that hit may stay in L1. Stores that miss go out through the
//!   write-combining buffer. One instruction drops all such lines (docs/hardware.md H2). Assumed,
//!   for `scc-wt`: prefetch at any time.
//! * `scc-normal`: the SCC's ordinary cached memory. Known: no allocation on write misses. Lines
//!   are cleaned by displacement, which drops them, and others with them (BF, sccmem). Assumed: the
//!   others are all.
//! * `tensix-bh`: Tenstorrent Blackhole. Known: four lines of 16 bytes, written through; `fence`
//!   drops all (TT-cache). 16 bytes travel whole, longer writes in any order (TT-ISA). Assumed:
//!   loads may be early.
//! * `et`: Esperanto ET-SoC-1. Known: lines of 64 bytes, operations by address; 8 bytes travel
//!   whole (ET). Sources disagree about `evict_va`: here it saves. Assumed: stores and loads are as
//!   weak as RISC-V allows.
//! * `cxl`: hosts on a CXL pool, not coherent with each other. Known: lines of 64 bytes;
//!   `clflushopt` saves and drops; prefetch at any time; 8 bytes travel whole; no atomic reaches a
//!   peer. Assumed: the order is as weak as `movnti` and `clflushopt` allow.
//! * `rp2040`: RP2040 and other small chips. Known: no data caches; accesses in order; spinlocks as
//!   registers (RP-PAC).
//! * `arm-m7`: Cortex-M7 and its kind. Known: lines of 32 bytes; invalidating by address loses
//!   stores; prefetch at any time; words travel whole. Assumed: the order is as weak as Arm allows.
//!
//! * `unequal`: a Cortex-M7 beside a core without a cache, as on STM32H745: `arm-m7` on the cores
//!   with even numbers. The others have the same line and the same program.
//! * `sleeping`: the SCC, whose cores sleep while they wait for words of their own, until a bell
//!   tells them.
//! * `coherent`: cores whose caches the hardware keeps in step, with atomic operations. No case
//!   looks at anything through a cache there. The order is as weak as Arm allows. Cores sleep.
//!
//! `network` is no chip at all: hosts that reach each other by operations of their network, in any
//! order (`nic.rs`). In `network-ordered` some puts wait for earlier ones to the same target (F9).
//!
//! With `scc-wb` and `scc-wt` the machine is the SCC port over the simulated chip
//! ([`Preset::mapping`]); with all others, the simulated chip itself. The profiles are an SCC with
//! an exact cache (`scc`), and what prefetching and weak ordering add to that.

use flagpost_scc::Mapping;
use serde::{Deserialize, Serialize};

use crate::bus::SCC_BUFFER;
use crate::caching::{Caching, Stores};
use crate::config::{Config, Profile};
use crate::named::named;
use crate::timing::preset::Latencies;
use crate::wire::Wire;

/// A chip, by name: the sources are in docs/hardware.md.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// `scc-wb`: the SCC port over message-buffer memory, not written through ([`Mapping::Mpbt`]).
    SccWb,
    /// `scc-wt`: the SCC port over message-buffer memory, written through
    /// ([`Mapping::MpbtWriteThrough`]).
    SccWt,
    /// `scc-normal`: the SCC's ordinary cached memory, cleaned by displacement (BF, sccmem).
    SccNormal,
    /// `tensix-bh`: Tenstorrent Blackhole, small caches that are written through (TT-cache,
    /// TT-ISA).
    TensixBh,
    /// `et`: Esperanto ET-SoC-1, long lines and operations by address (ET).
    Et,
    /// `cxl`: hosts that share a CXL pool; no test-and-set registers (CMPI).
    Cxl,
    /// `rp2040`: RP2040 and other chips without data caches (RP-PAC).
    Rp2040,
    /// `arm-m7`: Cortex-M7 and its kind; `invalidate` loses, prefetch at any time (NXP).
    ArmM7,
    /// `unequal`: `arm-m7`, of whose cores every other one has no cache.
    Unequal,
    /// `sleeping`: cores that sleep until they are told.
    Sleeping,
    /// `coherent`: caches that the hardware keeps in step, and atomic operations.
    Coherent,
    /// `network`: no chip, but a simulated network of hosts with remote memory access
    /// (docs/hardware.md F1).
    Network,
    /// `network-ordered`: the same, but puts wait for earlier ones to the same target where F9 of
    /// [`Fabric`](flagpost_hal::fabric::Fabric) says so.
    NetworkOrdered,
}

named!(Preset);

impl Preset {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::SccWb,
        Self::SccWt,
        Self::SccNormal,
        Self::TensixBh,
        Self::Et,
        Self::Cxl,
        Self::Rp2040,
        Self::ArmM7,
        Self::Unequal,
        Self::Sleeping,
        Self::Coherent,
        Self::Network,
        Self::NetworkOrdered,
    ];

    /// How the SCC port maps its windows, if the machine is that port
    /// ([`SimCore::scc`](crate::SimCore::scc)).
    pub const fn mapping(self) -> Option<Mapping> {
        match self {
            Self::SccWb => Some(Mapping::Mpbt),
            Self::SccWt => Some(Mapping::MpbtWriteThrough),
            _ => None,
        }
    }

    /// The knobs; what makes a run (cores, sizes, schedule, seed) as by default.
    pub fn config(self) -> Config {
        let chip = Config::default();
        match self {
            // A line that came between the port's look at the cache and its store would swallow
            // that: see `bus.rs`.
            Self::SccWb => Config {
                profile: Profile::Scc,
                buffer_size: SCC_BUFFER,
                ..chip
            },
            Self::SccWt => Config {
                profile: Profile::SccFill,
                buffer_size: SCC_BUFFER,
                prefetches: 128,
                ..chip
            },
            Self::SccNormal => Config {
                profile: Profile::Scc,
                caching: Caching {
                    invalidate_saves: true,
                    write_back_drops: true,
                    invalidate_all: true,
                    write_back_all: true,
                    stores: Stores::Around,
                    half: false,
                },
                // Nothing is promised of what stays in the write-combining buffer.
                leaves: 8,
                ..chip
            },
            Self::TensixBh => Config {
                profile: Profile::Weak,
                line: 16,
                caching: Caching {
                    invalidate_all: true,
                    stores: Stores::Through,
                    ..Caching::default()
                },
                publish: 16,
                // Four lines: every other access evicts one.
                evictions: 128,
                leaves: 32,
                latencies: Latencies::TensixBh,
                ..chip
            },
            Self::Et => Config {
                profile: Profile::Weak,
                line: 64,
                caching: Caching {
                    invalidate_saves: true,
                    ..Caching::default()
                },
                publish: 8,
                leaves: 8,
                latencies: Latencies::Et,
                ..chip
            },
            Self::Cxl => Config {
                profile: Profile::WeakFill,
                line: 64,
                caching: Caching {
                    invalidate_saves: true,
                    write_back_drops: true,
                    ..Caching::default()
                },
                publish: 8,
                registers: false,
                prefetches: 128,
                leaves: 32,
                latencies: Latencies::Cxl,
                ..chip
            },
            Self::Rp2040 => Config {
                profile: Profile::Scc,
                line: 4,
                caching: Caching {
                    stores: Stores::Uncached,
                    ..Caching::default()
                },
                ..chip
            },
            Self::ArmM7 | Self::Unequal => Config {
                profile: Profile::WeakFill,
                caching: Caching {
                    half: self == Self::Unequal,
                    ..Caching::default()
                },
                prefetches: 64,
                leaves: 8,
                ..chip
            },
            Self::Sleeping => Config {
                profile: Profile::Weak,
                sleeps: true,
                leaves: 8,
                ..chip
            },
            Self::Coherent => Config {
                profile: Profile::Weak,
                sleeps: true,
                ..chip
            },
            Self::Network | Self::NetworkOrdered => Config {
                network: Some(Wire {
                    ordered: self == Self::NetworkOrdered,
                    ..Wire::default()
                }),
                buffer_size: 32,
                registers: false,
                evictions: 0,
                ..chip
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_and_chips_differ() {
        for (index, preset) in Preset::ALL.into_iter().enumerate() {
            assert_eq!(preset.to_string().parse(), Ok(preset));
            let others = &Preset::ALL[..index];
            assert!(others.iter().all(|other| other.config() != preset.config()));
            assert_ne!(preset.config(), Config::default());
        }
    }
}
