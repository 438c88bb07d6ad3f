//! What the simulated network is like: its knobs. The network itself: `machine/network`.

use std::fmt;
use std::str::FromStr;

/// What the network is like. Prints as `16:64:192`, or as `16:64:192:ordered`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
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

/// What is printed behind the numbers of an ordered network.
const ORDERED: &str = ":ordered";

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ordered = if self.ordered { ORDERED } else { "" };
        let (sends, queue, deliveries) = (self.sends, self.queue, self.deliveries);
        write!(f, "{sends}:{queue}:{deliveries}{ordered}")
    }
}

impl FromStr for Wire {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("network {text:?} is not SENDS:QUEUE:DELIVERIES[{ORDERED}]");
        let (numbers, ordered) = match text.strip_suffix(ORDERED) {
            Some(numbers) => (numbers, true),
            None => (text, false),
        };
        let numbers: Result<Vec<u16>, _> = numbers.split(':').map(str::parse).collect();
        match numbers.map_err(|_| wrong())?[..] {
            [sends, queue, deliveries] if sends > 0 && queue > 0 => Ok(Self {
                sends,
                queue,
                deliveries,
                ordered,
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
        for ordered in [false, true] {
            let wire = Wire {
                sends: 1,
                queue: 2,
                deliveries: 3,
                ordered,
            };
            assert_eq!(wire.to_string().parse(), Ok(wire));
        }
        let ordered = ["1:2:ordered", "1:2:3:order", ":ordered"];
        let numbers = ["", "1", "1:2", "0:1:1", "1:0:1", "1:2:3:4", "1:2:x"];
        for wrong in numbers.into_iter().chain(ordered) {
            assert!(wrong.parse::<Wire>().is_err(), "{wrong}");
        }
    }
}
