//! What can happen next, as a value; a run as the list of what did; and how much of it may happen.
//!
//! # Text
//! Choices print and read back, separated by commas, repeated ones with `*n`:
//!
//! | text | what happens |
//! |---|---|
//! | `3` | core 3 takes its step |
//! | `3!` | core 3 tries a register that is held, in vain |
//! | `e3:17` | line 17 leaves core 3's cache |
//! | `f3:17` | line 17 is prefetched into core 3's cache |
//! | `a3:17.4` | core 3's buffered store to line 17, from byte 4 on, arrives |
//! | `l3:2` | word 2, and what is published with it, leaves core 3's combining buffer |
//! | `d3:9.1` | part 1 of operation 9 of core 3 arrives, on a network; 65535: see below |
//! | `x3` | core 3's time budget runs out |
//! | `t` | time passes: the budgets of all who are blocked run out |
//!
//! In `d3:9.1` the part 65535 stands for the operation's immediate, or its failure.
//!
//! `/1/0` after a choice says what the chip decided within it: which of several buffered words
//! left, whether a load was early.

use std::fmt;
use std::str::FromStr;

/// Something that can happen in a state.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Transition {
    Run(u16),
    Refuse(u16),
    Evict { core: u16, line: u32 },
    Fill { core: u16, line: u32 },
    Arrive { core: u16, line: u32, byte: u8 },
    Leave { core: u16, word: u8 },
    Deliver { core: u16, serial: u32, part: u16 },
    Expire(u16),
    Elapse,
}

impl Transition {
    /// The core that takes a step, or whose hardware acts; any, if all do.
    pub(crate) const fn core(self) -> u16 {
        match self {
            Self::Elapse => 0,
            Self::Run(core) | Self::Refuse(core) | Self::Expire(core) => core,
            Self::Evict { core, .. }
            | Self::Fill { core, .. }
            | Self::Arrive { core, .. }
            | Self::Leave { core, .. }
            | Self::Deliver { core, .. } => core,
        }
    }

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

/// A whole run's choices, in order: replays it exactly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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

impl fmt::Display for Transition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(core) => write!(f, "{core}"),
            Self::Refuse(core) => write!(f, "{core}!"),
            Self::Evict { core, line } => write!(f, "e{core}:{line}"),
            Self::Fill { core, line } => write!(f, "f{core}:{line}"),
            Self::Arrive { core, line, byte } => write!(f, "a{core}:{line}.{byte}"),
            Self::Leave { core, word } => write!(f, "l{core}:{word}"),
            Self::Deliver { core, serial, part } => write!(f, "d{core}:{serial}.{part}"),
            Self::Expire(core) => write!(f, "x{core}"),
            Self::Elapse => f.write_str("t"),
        }
    }
}

impl FromStr for Transition {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        fn number<T: FromStr>(text: &str) -> Result<T, ()> {
            text.parse().map_err(|_| ())
        }
        let (kind, rest) = match text.chars().next() {
            Some(kind) if kind.is_ascii_alphabetic() => (kind, &text[1..]),
            _ => (' ', text),
        };
        let (core, place) = rest.split_once(':').unwrap_or((rest, ""));
        Ok(match kind {
            ' ' => match core.strip_suffix('!') {
                Some(core) => Self::Refuse(number(core)?),
                None => Self::Run(number(core)?),
            },
            'e' => Self::Evict {
                core: number(core)?,
                line: number(place)?,
            },
            'f' => Self::Fill {
                core: number(core)?,
                line: number(place)?,
            },
            'a' => {
                let (line, byte) = place.split_once('.').ok_or(())?;
                Self::Arrive {
                    core: number(core)?,
                    line: number(line)?,
                    byte: number(byte)?,
                }
            }
            'd' => {
                let (serial, part) = place.split_once('.').ok_or(())?;
                Self::Deliver {
                    core: number(core)?,
                    serial: number(serial)?,
                    part: number(part)?,
                }
            }
            'l' => Self::Leave {
                core: number(core)?,
                word: number(place)?,
            },
            'x' => Self::Expire(number(core)?),
            't' if rest.is_empty() => Self::Elapse,
            _ => return Err(()),
        })
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.what)?;
        // Zeros at the end are what happens anyway.
        let last = self.picks.iter().rposition(|&pick| pick != 0);
        let mut picks = self.picks.iter().take(last.map_or(0, |last| last + 1));
        picks.try_for_each(|pick| write!(f, "/{pick}"))
    }
}

impl fmt::Display for Choices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.as_slice();
        let mut first = true;
        while let Some(choice) = rest.first() {
            let text = choice.to_string();
            let times = rest.iter().take_while(|next| next.to_string() == text);
            let times = times.count();
            let comma = if std::mem::take(&mut first) { "" } else { "," };
            match times {
                1 => write!(f, "{comma}{text}")?,
                _ => write!(f, "{comma}{text}*{times}")?,
            }
            rest = &rest[times..];
        }
        Ok(())
    }
}

impl FromStr for Choices {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut choices = Vec::new();
        for word in text.split(',').filter(|word| !word.is_empty()) {
            let wrong = || format!("{word:?} is not a choice");
            let (choice, times) = word.split_once('*').unwrap_or((word, "1"));
            let times: usize = times.parse().map_err(|_| wrong())?;
            let mut parts = choice.split('/');
            let what = parts.next().unwrap_or_default();
            let what = what.parse().map_err(|()| wrong())?;
            let picks = parts.map(|pick| pick.parse().map_err(|_| wrong()));
            let choice = Choice {
                what,
                picks: picks.collect::<Result<_, _>>()?,
            };
            if times > 1 << 24 {
                return Err(wrong());
            }
            choices.extend(std::iter::repeat_n(choice, times));
        }
        Ok(Self(choices))
    }
}

/// How much may happen at most in each schedule, and how long a search may take.
#[derive(Clone, Debug, PartialEq, Eq)]
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
        let text = "0*3,1/0/2,e0:17,f1:3,a1:8.4,0!,l0:2,d1:7.65535,x1,t,0";
        let choices: Choices = text.parse().unwrap();
        assert_eq!(choices.to_string(), text);
        assert_eq!((choices.len(), choices.switches()), (13, 2));
    }

    #[test]
    fn what_is_no_choice_is_named() {
        for wrong in ["q", "e1", "a1:2", "d1:2", "1/x", "1*z", "70000", "é1"] {
            let error = wrong.parse::<Choices>();
            assert!(error.is_err_and(|error| error.contains(wrong)), "{wrong}");
        }
    }
}
