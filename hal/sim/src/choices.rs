//! What can happen next, as a value; a run as the list of what did; and how much of it may happen.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Something that can happen in a state.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Transition {
    /// The core takes its step.
    Run(u16),
    /// The core tries a register that is held, in vain.
    Refuse(u16),
    /// The line leaves the core's cache.
    Evict { core: u16, line: u32 },
    /// The line is prefetched into the core's cache.
    Fill { core: u16, line: u32 },
    /// The core's buffered store to the line, from `byte` on, arrives.
    Arrive { core: u16, line: u32, byte: u8 },
    /// The word, and what is published with it, leaves the core's combining buffer.
    Leave { core: u16, word: u8 },
    /// On a network: a part of operation `serial` of the core arrives. Part 65535 stands for the
    /// operation's immediate, or its failure.
    Deliver { core: u16, serial: u32, part: u16 },
    /// The core's time budget runs out.
    Expire(u16),
    /// Time passes: the budgets of all who are blocked run out.
    Elapse,
}

impl Transition {
    /// Whether it happens some time, if nothing else can: an eviction may never do.
    pub(crate) const fn guaranteed(self) -> bool {
        matches!(
            self,
            Self::Run(_)
                | Self::Arrive { .. }
                | Self::Deliver { .. }
                | Self::Expire(_)
                | Self::Elapse
        )
    }
}

/// A transition, and what the chip decided within it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) what: Transition,
    pub(crate) picks: Vec<u32>,
}

/// A whole run's choices, in order: replays it exactly. They print with the number of times that
/// each happens in a row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Repeated>", into = "Vec<Repeated>")]
pub struct Choices(pub(crate) Vec<Choice>);

impl Choices {
    /// How many choices there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none: the run is decided by its seed instead.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How often another core goes on although the one that ran last could.
    pub fn switches(&self) -> usize {
        let runs = |choice: &Choice| match choice.what {
            Transition::Run(core) | Transition::Refuse(core) => Some(core),
            _ => None,
        };
        let cores: Vec<u16> = self.0.iter().filter_map(runs).collect();
        cores.windows(2).filter(|pair| pair[0] != pair[1]).count()
    }
}

/// A choice, as it prints: what happens, what the chip decides within it, and how many times.
type Repeated = (Transition, Vec<u32>, u32);

/// Most times that a choice can be repeated in a line that is read.
const TIMES: u32 = 1 << 24;

impl From<Choices> for Vec<Repeated> {
    fn from(choices: Choices) -> Self {
        let repeated = |same: &[Choice]| (same[0].what, same[0].picks.clone(), same.len() as u32);
        choices.0.chunk_by(PartialEq::eq).map(repeated).collect()
    }
}

impl TryFrom<Vec<Repeated>> for Choices {
    type Error = String;

    fn try_from(list: Vec<Repeated>) -> Result<Self, String> {
        if let Some((what, _, times)) = list.iter().find(|(_, _, times)| *times > TIMES) {
            return Err(format!("{what:?} is repeated {times} times"));
        }
        let choices = list.into_iter().flat_map(|(what, picks, times)| {
            std::iter::repeat_n(Choice { what, picks }, times as usize)
        });
        Ok(Self(choices.collect()))
    }
}

/// How much may happen at most in each schedule, and how long a search may take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// Lines that leave a cache on the chip's account.
    pub evictions: u8,
    /// Lines that are prefetched, in the profiles that do.
    pub fills: u8,
    /// Words that leave a combining buffer without need.
    pub leaves: u8,
    /// Time budgets that run out while their core is blocked.
    pub expiries: u8,
    /// Attempts on a register that is held; other attempts wait for it.
    pub refusals: u8,
    /// Switches away from a core that could go on; none: any number.
    pub preemptions: Option<u8>,
    /// Whether all that precedes `mark("go")` is set-up, which happens in one way only.
    pub set_up: bool,
    /// States after which a search gives up.
    pub max_states: u64,
    /// Runs after which a search gives up.
    pub max_runs: u64,
}

impl Bounds {
    /// All that can be, and no set-up: for lists of choices that no search has made.
    pub const ANY: Self = Self {
        evictions: u8::MAX,
        fills: u8::MAX,
        leaves: u8::MAX,
        expiries: u8::MAX,
        refusals: u8::MAX,
        preemptions: None,
        set_up: false,
        max_states: u64::MAX,
        max_runs: u64::MAX,
    };
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            evictions: 0,
            fills: 0,
            leaves: 0,
            expiries: 0,
            refusals: 0,
            preemptions: None,
            set_up: true,
            max_states: 10_000_000,
            max_runs: u64::MAX,
        }
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "evictions={} fills={} leaves={} expiries={} refusals={}",
            self.evictions, self.fills, self.leaves, self.expiries, self.refusals
        )?;
        match self.preemptions {
            Some(preemptions) => write!(f, " preemptions={preemptions}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_read_back() {
        let text = r#"[[{"run":0},[],3],[{"run":1},[1,0,2],1],[{"evict":{"core":0,"line":17}},[],1],["elapse",[],1],[{"run":0},[],1]]"#;
        let choices: Choices = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&choices).unwrap(), text);
        assert_eq!((choices.len(), choices.switches()), (7, 2));
        let error = serde_json::from_str::<Choices>(r#"[["elapse",[],99999999]]"#);
        assert!(error.is_err_and(|error| error.to_string().contains("99999999")));
    }
}
