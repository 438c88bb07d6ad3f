//! Named sets of latencies.
//!
//! # Which figures are published
//! Keys in brackets are those of the repository's `docs/hardware.md`.
//!
//! * `scc-eas`. Published: clocks [PSCW-SCC]. Message buffer 45 core + 8 n mesh cycles, DRAM 40
//!   core + 8 n mesh + 46 memory, n = hops + 1, L1 hit 1 [EAS, recalled]. Reading the clock 14
//!   [BF]. A ring: at least 612 [BF]. Assumed: registers cost what a message buffer word costs; a
//!   line costs what a word costs; service times.
//! * `scc-mesh`: as `scc-eas`. Assumed, too: links are busy for three mesh cycles with each packet,
//!   request or answer.
//! * `scc-barrelfish`. Published, in core cycles: message buffer 57 + 5.6 h, own 20, line 79 + 5 h,
//!   own line 39; DRAM word 97 + 5 h, line 122 + 5 h [BF, fitted to its tables]. Assumed: clocks
//!   (not stated there); registers; a fetched line costs what a word costs; service times.
//! * `cxl`. Published: a load takes 300 ns; devices measure 140 to 410 [Melody]. Assumed:
//!   everything else.
//! * `et`, `tensix-bh`. Published: nothing. Assumed: everything. They use the formulas of `scc-eas`
//!   with one clock of 1 GHz. They are for counting, not for time.
//!
//! The SCC's contention: one access of a controller at a time, for its 46 memory cycles (no
//! bandwidth figure was found); a tile serves an access in 8 core cycles (assumption of
//! docs/hardware.md A5). Contention in the mesh was looked for on the chip and not seen
//! (docs/hardware.md A5), so only `scc-mesh` has it: for programs that might be more crowded.

use serde::{Deserialize, Serialize};

use super::{Costs, Trip};
use crate::named::named;

/// A set of latencies, by name.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Latencies {
    /// The SCC by its specification's formulas: 533 MHz cores, 800 MHz mesh and memory, no bypass
    /// to the own message buffer.
    SccEas,
    /// [`SccEas`](Self::SccEas) with links between routers that packets wait for.
    SccMesh,
    /// The SCC as Barrelfish measured it, at the same clocks.
    SccBarrelfish,
    /// Esperanto ET-SoC-1: assumptions only.
    Et,
    /// Tenstorrent Blackhole: assumptions only.
    TensixBh,
    /// Hosts that share a CXL pool: 300 ns.
    Cxl,
}

named!(Latencies);

impl Latencies {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::SccEas,
        Self::SccMesh,
        Self::SccBarrelfish,
        Self::Et,
        Self::TensixBh,
        Self::Cxl,
    ];

    /// The figures.
    pub const fn costs(self) -> Costs {
        match self {
            Self::SccEas => eas(SCC),
            Self::SccMesh => Costs {
                packet: cycles(PACKET, SCC.mesh),
                ..eas(SCC)
            },
            Self::SccBarrelfish => barrelfish(SCC),
            Self::Et | Self::TensixBh => eas(ASSUMED),
            Self::Cxl => cxl(),
        }
    }

    /// Whether no figure of the set is published.
    pub const fn assumed(self) -> bool {
        matches!(self, Self::Et | Self::TensixBh)
    }
}

/// Cycles per second of a chip's clocks.
#[derive(Copy, Clone)]
struct Hertz {
    core: u64,
    mesh: u64,
    memory: u64,
}

/// [PSCW-SCC] V.
const SCC: Hertz = Hertz {
    core: 533_000_000,
    mesh: 800_000_000,
    memory: 800_000_000,
};

const ASSUMED: Hertz = Hertz {
    core: 1_000_000_000,
    mesh: 1_000_000_000,
    memory: 1_000_000_000,
};

/// Thousandths of cycles as picoseconds, rounded to the nearest.
const fn milli(cycles: u64, hertz: u64) -> u64 {
    (cycles * 1_000_000_000 + hertz / 2) / hertz
}

/// Cycles as picoseconds.
const fn cycles(cycles: u64, hertz: u64) -> u64 {
    milli(cycles * 1000, hertz)
}

/// Cycles of the mesh per router, there and back.
const ROUTER: u64 = 2 * 4;

/// Memory cycles of a DRAM access, and how long it occupies its controller.
const DRAM: u64 = 46;

/// Core cycles for which an access occupies a tile: docs/hardware.md A5 says 8 to 16, as an
/// assumption.
const TILE: u64 = 8;

/// Mesh cycles for which a packet occupies a link: a line and its address are three flits of 16
/// bytes. An assumption.
const PACKET: u64 = 3;

/// Core cycles until an interrupted core runs the handler, and accesses that send the interrupt:
/// the lock, the register's load and store, and the lock's release.
const WAKE: u64 = 612;
const RING: u64 = 4;

const fn eas(hertz: Hertz) -> Costs {
    let router = cycles(ROUTER, hertz.mesh);
    let memory = Trip {
        near: cycles(40, hertz.core) + router + cycles(DRAM, hertz.memory),
        hop: router,
        service: cycles(DRAM, hertz.memory),
    };
    let tile = Trip {
        near: cycles(45, hertz.core) + router,
        hop: router,
        service: cycles(TILE, hertz.core),
    };
    Costs {
        hertz: hertz.core,
        word: memory,
        fetch: memory,
        line: memory,
        buffer_word: tile,
        buffer_line: tile,
        own_buffer_word: tile,
        own_buffer_line: tile,
        register: tile,
        ring: times(RING, tile),
        ..inside(hertz)
    }
}

const fn barrelfish(hertz: Hertz) -> Costs {
    // Measured lines include the eight stores that fill the buffer; those are charged as they are
    // made.
    const STORES: u64 = 8;
    const fn trip(hertz: Hertz, near: u64, hop_milli: u64, service: u64) -> Trip {
        Trip {
            near: cycles(near, hertz.core),
            hop: milli(hop_milli, hertz.core),
            service,
        }
    }
    let controller = cycles(DRAM, hertz.memory);
    let tile = cycles(TILE, hertz.core);
    let word = trip(hertz, 97, 5000, controller);
    let buffer_word = trip(hertz, 57, 5600, tile);
    Costs {
        hertz: hertz.core,
        word,
        fetch: word,
        line: trip(hertz, 122 - STORES, 5000, controller),
        buffer_word,
        buffer_line: trip(hertz, 79 - STORES, 5000, tile),
        own_buffer_word: trip(hertz, 20, 0, tile),
        own_buffer_line: trip(hertz, 39 - STORES, 0, tile),
        register: buffer_word,
        ring: times(RING, buffer_word),
        ..inside(hertz)
    }
}

/// Memory at one distance from everybody; 10 ns of service are 6.4 GB/s in lines of 64 bytes.
const fn cxl() -> Costs {
    const HERTZ: Hertz = Hertz {
        core: 3_000_000_000,
        ..ASSUMED
    };
    const POOL: Trip = Trip {
        near: 300_000,
        hop: 0,
        service: 10_000,
    };
    Costs {
        hertz: HERTZ.core,
        word: POOL,
        fetch: POOL,
        line: POOL,
        buffer_word: POOL,
        buffer_line: POOL,
        own_buffer_word: POOL,
        own_buffer_line: POOL,
        register: POOL,
        ring: POOL,
        ..inside(HERTZ)
    }
}

/// Costs of what stays inside a core; the rest is zero, to be filled in.
const fn inside(hertz: Hertz) -> Costs {
    const NOTHING: Trip = Trip {
        near: 0,
        hop: 0,
        service: 0,
    };
    let cycle = cycles(1, hertz.core);
    Costs {
        hertz: hertz.core,
        hit: cycle,
        packet: 0,
        word: NOTHING,
        fetch: NOTHING,
        line: NOTHING,
        buffer_word: NOTHING,
        buffer_line: NOTHING,
        own_buffer_word: NOTHING,
        own_buffer_line: NOTHING,
        register: NOTHING,
        ring: NOTHING,
        wake: cycles(WAKE, hertz.core),
        combine: cycle,
        // CL1INVMB takes a cycle [BF].
        scan: cycle,
        // A store to the dummy line, which is in the write-combining buffer already.
        drain: cycle,
        // Loads are in order: nothing to do.
        acquire: 0,
        clock: cycles(14, hertz.core),
        // RCCE's shortest back-off is 8 turns of a loop.
        relax: cycles(8, hertz.core),
    }
}

const fn times(n: u64, trip: Trip) -> Trip {
    Trip {
        near: n * trip.near,
        hop: n * trip.hop,
        service: n * trip.service,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An unloaded latency in core cycles, rounded.
    fn core_cycles(trip: Trip, hops: u16, hertz: u64) -> u64 {
        (trip.unloaded(hops) * hertz + 500_000_000_000) / 1_000_000_000_000
    }

    #[test]
    fn formulas_give_the_published_cycles() {
        let costs = Latencies::SccEas.costs();
        // docs/hardware.md A5: "formula, n = hops + 1", less the loop's 5 cycles.
        for (hops, cycles) in [
            (1, 56),
            (2, 61),
            (3, 66),
            (4, 72),
            (5, 77),
            (6, 82),
            (7, 88),
            (8, 93),
        ] {
            assert_eq!(
                core_cycles(costs.buffer_word, hops, costs.hertz),
                cycles,
                "{hops} hops"
            );
        }
        // docs/hardware.md A5: 76, 103, 87, 113 for DRAM at 0, 5, 2, 7 hops.
        for (hops, cycles) in [(0, 76), (5, 103), (2, 87), (7, 113)] {
            assert_eq!(
                core_cycles(costs.word, hops, costs.hertz),
                cycles,
                "{hops} hops"
            );
        }
        // docs/hardware.md A5: 132.5 ns and 10 ns per router (40 core cycles are 75.05 ns).
        assert_eq!(costs.word.unloaded(0), 75_047 + 10_000 + 57_500);
        assert_eq!(costs.word.hop, 10_000);
        assert_eq!(costs.register, costs.buffer_word);
    }

    #[test]
    fn the_measured_set_is_near_its_measurements() {
        let costs = Latencies::SccBarrelfish.costs();
        let near = |trip: Trip, stores: u64, off: u64, table: &[(u16, u64)]| {
            for &(hops, measured) in table {
                let cycles = core_cycles(trip, hops, costs.hertz) + stores;
                assert!(
                    cycles.abs_diff(measured) <= off,
                    "{hops} hops: {cycles}, not {measured}"
                );
            }
        };
        let words = [
            (1, 63),
            (2, 69),
            (3, 72),
            (4, 78),
            (5, 84),
            (6, 90),
            (7, 96),
            (8, 102),
        ];
        near(costs.buffer_word, 0, 2, &words);
        let lines = [
            (1, 84),
            (2, 89),
            (3, 90),
            (4, 95),
            (5, 101),
            (6, 108),
            (7, 113),
            (8, 119),
        ];
        // Measured: no more at 3 hops than at 2, which no line through the others explains.
        near(costs.buffer_line, 8, 4, &lines);
        near(costs.word, 0, 2, &[(0, 97), (2, 105), (5, 121), (7, 134)]);
        near(costs.line, 8, 2, &[(0, 122), (2, 134), (5, 146), (7, 158)]);
        near(costs.own_buffer_word, 0, 0, &[(0, 20)]);
        near(costs.own_buffer_line, 8, 0, &[(0, 39)]);
    }
}
