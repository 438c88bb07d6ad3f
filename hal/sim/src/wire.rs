//! What the simulated network is like: its knobs. The network itself: `machine/network`.

use serde::{Deserialize, Serialize};

/// What the network is like.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wire {
    /// Operations of a rank that are in flight or whose completion it has not taken, at most.
    pub sends: u16,
    /// Immediates in a rank's completion queue, at most.
    pub queue: u16,
    /// Parts of operations that arrive, per 1024 steps. (If nobody can go on, one arrives in any
    /// case.)
    pub deliveries: u16,
    /// Puts that have an immediate, or are confirmed, wait for earlier ones to the same target.
    pub ordered: bool,
}

impl Default for Wire {
    fn default() -> Self {
        Self {
            sends: 16,
            queue: 64,
            deliveries: 192,
            ordered: false,
        }
    }
}
