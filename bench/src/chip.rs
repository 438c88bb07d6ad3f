//! The chip of the benchmarks. `bench/apps` has this file, too: it builds quickly, without the
//! crates of exploration.

use flagpost_sim::{Config, Controllers, Latencies, Oracles, Schedule};

/// Bytes of a core's message buffer.
pub const BUFFER: u32 = 8 << 10;

/// Memory controllers: the SCC's four, and on larger chips as many per core, up to 32.
fn controllers(cores: u16) -> u16 {
    (cores / 12).clamp(4, 32)
}

/// An SCC of so many cores with so many bytes of memory each: message buffers of 8 KiB, full lines
/// that are one packet, virtual time.
pub fn scc(cores: u16, memory_size: u32, latencies: Latencies) -> Config {
    Config {
        cores,
        memory_size,
        buffer_size: BUFFER,
        latencies,
        publish: 32,
        controllers: Some(Controllers::Edges(controllers(cores))),
        ..timed()
    }
}

/// Virtual time, for as long as it takes.
pub(crate) fn timed() -> Config {
    Config {
        schedule: Schedule::Timed,
        oracles: Oracles::ALL,
        max_steps: u64::MAX,
        ..Config::default()
    }
}
