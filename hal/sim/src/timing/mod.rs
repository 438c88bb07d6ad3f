//! Virtual time: what every access costs.
//!
//! # Mental model
//! ```text
//!   core ──out──► queue ► server ──back──► core      out + service + back = the published latency
//!          │                 │                       at that distance, if nobody is in the way
//!       hops + 1 routers     a memory controller, or a tile (its message buffer and registers)
//! ```
//! Each core has a clock, in picoseconds. An access leaves when its core's clock says, reaches its
//! server half a round trip later, waits for those that came before, and has its effect when the
//! server starts on it. The engine always lets the access happen that arrives first; of several,
//! that of the lowest core.
//!
//! # What waits for what
//! * A core has one access under way; its next one starts when that has come back. (P54C: one
//!   outstanding access, no store buffer. A store costs what a load costs, docs/hardware.md A5.)
//! * A server takes one access at a time, in order of arrival: one per memory controller, one per
//!   tile.
//! * A link between routers takes one packet at a time, one way: only with [`Latencies::SccMesh`].
//!   Else links are never busy, since contention in the mesh could not be measured
//!   (docs/hardware.md A5). What did get crowded is the port of one tile, and that is the tile's
//!   server.
//!
//! # Waiting
//! `relax` parks a core. Its loop is not executed: it would load each watched word and look at the
//! clock once per turn. When a watched word is written at time T, the core goes on at the first
//! whole number of turns since it was parked that is not before T. Turns of parked cores load no
//! server.
//!
//! # Not modelled
//! Instructions (charge for them with [`SimCore::spend`](crate::SimCore::spend)), instruction
//! fetch, the second cache level, cache capacity, refresh and page hits of DRAM, the line that a
//! `drain` leaves in the write-combining buffer.
//!
//! # Source
//! docs/hardware.md A5. Which figures are published and which are assumed stands in `preset.rs`.

mod agenda;
pub(crate) mod clocks;
mod links;
pub(crate) mod preset;

/// What accesses cost on a chip. Times are in picoseconds.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Costs {
    /// Cycles per second of a core.
    pub hertz: u64,
    /// A cached access that hits.
    pub hit: u64,
    /// Uncached access to a word of `Memory`.
    pub word: Trip,
    /// A line of `Memory` on its way into the cache.
    pub fetch: Trip,
    /// A line or a part of one, on its way to `Memory`: from the write-combining buffer, or written
    /// back.
    pub line: Trip,
    /// Any of these to a `MessageBuffer`: a word or a fetched line.
    pub buffer_word: Trip,
    /// A line on its way to a `MessageBuffer`.
    pub buffer_line: Trip,
    /// `buffer_word` to the own tile.
    pub own_buffer_word: Trip,
    /// `buffer_line` to the own tile.
    pub own_buffer_line: Trip,
    /// How long a packet, one way, occupies each link that it takes; 0 if links are never busy.
    pub packet: u64,
    /// Test-and-set registers.
    pub register: Trip,
    /// Ringing a bell.
    pub ring: Trip,
    /// From the ring until the bell's owner goes on.
    pub wake: u64,
    /// Putting a word into the write-combining buffer.
    pub combine: u64,
    /// `write_back` of lines that are not dirty, and a step of `invalidate`.
    pub scan: u64,
    /// A drain, beside what it pushes out.
    pub drain: u64,
    /// Ordering loads.
    pub acquire: u64,
    /// Reading the clock.
    pub clock: u64,
    /// A turn of `relax`.
    pub relax: u64,
}

/// Cost of an access that leaves the core.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Trip {
    /// To a place on the own tile, there and back, the server included.
    pub near: u64,
    /// More for each hop of distance, there and back.
    pub hop: u64,
    /// How long it occupies the server; a part of `near`.
    pub service: u64,
}

impl Trip {
    /// What the access takes over so many hops, if nothing is in its way.
    #[inline]
    pub const fn unloaded(&self, hops: u16) -> u64 {
        self.near + self.hop * hops as u64
    }

    /// The part of it before the server.
    #[inline]
    pub(crate) const fn out(&self, hops: u16) -> u64 {
        (self.unloaded(hops) - self.service) / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn out_service_and_back_are_the_whole() {
        let trip = Trip {
            near: 101,
            hop: 7,
            service: 40,
        };
        for hops in 0..9 {
            let back = trip.unloaded(hops) - trip.out(hops) - trip.service;
            assert!(back - trip.out(hops) <= 1);
        }
    }
}
