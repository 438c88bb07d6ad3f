//! A simulated network with remote memory access, beside the chip or instead of it.
//!
//! Ranks post operations to their end of the network, a [`Nic`]; each then is *in flight*, and what
//! becomes of it, part by part, happens on the network's own account at any later time, in any
//! order with all others: like a late store of a weak profile, and with the same consequences for
//! schedules, searches and timelines. [`Nic`] is a [`Fabric`](flagpost_hal::fabric::Fabric).
//!
//! # What is modelled (`machine/network/mod.rs`)
//! | what | how unkind |
//! |---|---|
//! | put | a part per line, each placed any time later, in any order with all others |
//! | get | a part per line: loaded any time later, stored at the origin any time after |
//! | operation on a cell | done any time later; its answer comes any time after |
//! | immediate | any time behind the data of its own operation, before or behind those of others; waits while the target's completion queue is full or the target has not opened its end |
//! | send queue | bounded: refuses |
//! | a target that has [dropped out](Nic::drop_out) | what is in flight to it fails, any time later |
//!
//! The memory of a core is its registered memory; no cache lies over it. Knobs: [`Wire`].

mod nic;

use std::fmt;
use std::str::FromStr;

pub use nic::Nic;

/// What the network is like. Prints as `16:64:192`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Wire {
    /// Operations of a rank that are in flight or whose completion it has not taken, at most.
    pub sends: u16,
    /// Immediates in a rank's completion queue, at most.
    pub queue: u16,
    /// Parts of operations that arrive, per 1024 steps. (If nobody can go on, one arrives in any
    /// case.)
    pub deliveries: u16,
}

impl Default for Wire {
    fn default() -> Self {
        Self {
            sends: 16,
            queue: 64,
            deliveries: 192,
        }
    }
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.sends, self.queue, self.deliveries)
    }
}

impl FromStr for Wire {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("network {text:?} is not SENDS:QUEUE:DELIVERIES");
        let numbers: Result<Vec<u16>, _> = text.split(':').map(str::parse).collect();
        match numbers.map_err(|_| wrong())?[..] {
            [sends, queue, deliveries] if sends > 0 && queue > 0 => Ok(Self {
                sends,
                queue,
                deliveries,
            }),
            _ => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knobs_read_back() {
        let wire = Wire {
            sends: 1,
            queue: 2,
            deliveries: 3,
        };
        assert_eq!(wire.to_string().parse(), Ok(wire));
        for wrong in ["", "1", "1:2", "0:1:1", "1:0:1", "1:2:3:4", "1:2:x"] {
            assert!(wrong.parse::<Wire>().is_err(), "{wrong}");
        }
    }
}
