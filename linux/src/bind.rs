//! Which processors ranks run on.

use std::fmt;
use std::num::NonZero;
use std::str::FromStr;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// How ranks are bound to processors.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Bind {
    /// Not at all.
    None,
    /// Rank r to the rth processor that the launcher may use, if the job has as many ranks as there
    /// are of these. Else not at all: another job would choose the same ones.
    #[default]
    Auto,
    /// Rank r to the rth of these, which begin anew after the last one.
    List(Vec<usize>),
}

impl FromStr for Bind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::None),
            "auto" => Ok(Self::Auto),
            list => parse_list(list).map(Self::List).ok_or_else(|| {
                format!("{list:?} is no list of processors: write none, auto, or 0,2,4-7")
            }),
        }
    }
}

impl fmt::Display for Bind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Auto => f.write_str("auto"),
            Self::List(list) => {
                let list: Vec<String> = list.iter().map(usize::to_string).collect();
                f.write_str(&list.join(","))
            }
        }
    }
}

/// Reads `0,2,4-7`.
pub(crate) fn parse_list(text: &str) -> Option<Vec<usize>> {
    let mut list = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<usize>().ok();
        let (first, last) = (number(first)?, number(last)?);
        if first > last || last >= CpuSet::MAX_CPU {
            return None;
        }
        list.extend(first..=last);
    }
    Some(list)
}

/// How many processors this process may keep busy: those that it may use, or fewer if its control
/// group gives it less time.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// The processors that this process may use.
pub(crate) fn allowed() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
    (0..CpuSet::MAX_CPU)
        .filter(|cpu| set.is_set(*cpu))
        .collect()
}

impl Bind {
    /// The processor of each of `ranks` ranks; none if they are not bound.
    ///
    /// # Errors
    /// A line that says which processor this process may not use.
    pub(crate) fn places(&self, ranks: u16) -> Result<Option<Vec<usize>>, String> {
        let allowed = allowed();
        let ranks = usize::from(ranks);
        match self {
            Self::None => Ok(None),
            Self::Auto => Ok((ranks == allowed.len()).then_some(allowed)),
            Self::List(list) => match list.iter().find(|cpu| !allowed.contains(cpu)) {
                Some(cpu) => Err(format!(
                    "--bind: processor {cpu} cannot be used here, only {}",
                    Self::List(allowed)
                )),
                None => Ok(Some(list.iter().copied().cycle().take(ranks).collect())),
            },
        }
    }
}

/// Binds this thread, and what it starts, to one processor while `act` runs.
pub(crate) fn on<R>(cpu: Option<usize>, act: impl FnOnce() -> R) -> R {
    let before = cpu.and_then(|cpu| {
        let before = sched_getaffinity(None).ok()?;
        let mut one = CpuSet::new();
        one.set(cpu);
        sched_setaffinity(None, &one).ok()?;
        Some(before)
    });
    let result = act();
    if let Some(before) = before {
        // It was the set until now.
        let _ = sched_setaffinity(None, &before);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read() {
        assert_eq!(parse_list("0"), Some(vec![0]));
        assert_eq!(parse_list("0,2, 4-6"), Some(vec![0, 2, 4, 5, 6]));
        for bad in ["", "x", "3-1", "1,", "0-99999999"] {
            assert_eq!(parse_list(bad), None, "{bad}");
        }
        assert!("none".parse() == Ok(Bind::None) && "auto".parse() == Ok(Bind::Auto));
        assert!("cores".parse::<Bind>().is_err());
    }
}
