//! Who runs next.
//!
//! * *Round-robin*: one access each, in turn. No surprise; for measurements.
//! * *Random*: any enabled core, at every step. Good at short windows (a lost update between a load
//!   and a store), poor at runs in which one core must be far ahead of another. Of more than 32
//!   cores the same one goes on for `cores / 16` steps on average, until it polls in vain: a switch
//!   to a core whose state has left the host's cache takes longer than the step. Any schedule
//!   remains possible.
//! * *PCT*: cores have random priorities, the highest enabled one runs, and at `depth - 1` random
//!   steps the favourite falls below all others. Finds every bug that needs `depth` ordered events
//!   in a run of `k` steps of `n` cores with a chance of at least 1 / (n k^(depth-1)), and bugs of
//!   plain order (depth 1, 2) at once. Source: [PCT], a key of docs/hardware.md. Ours to add:
//!   whoever polls in vain falls below all others too; else a core that spins on a register starves
//!   its holder.
//!
//! # Invariants of PCT
//! P1. Priorities are unique, so the schedule never depends on the order of entries in the heap.
//! P2. Every enabled core has an entry of its present priority in the heap (`queued`). Entries of
//!     disabled cores or of former priorities may be there too; they are dropped when they come to
//!     the top.

use std::collections::BinaryHeap;

use crate::config::{Config, Schedule};
use crate::rng::{Rng, Stream};

/// The cores that can take a step: as a list for a fair draw, as bits for taking turns.
pub(crate) struct Enabled {
    list: Vec<u16>,
    /// Position in `list`, or `OUT`.
    position: Vec<u16>,
    bits: Vec<u64>,
}

const OUT: u16 = u16::MAX;

impl Enabled {
    fn new(cores: usize) -> Self {
        Self {
            list: Vec::with_capacity(cores),
            position: vec![OUT; cores],
            bits: vec![0; cores.div_ceil(64)],
        }
    }

    fn contains(&self, core: u16) -> bool {
        self.position[usize::from(core)] != OUT
    }

    fn insert(&mut self, core: u16) {
        let index = usize::from(core);
        self.position[index] = self.list.len() as u16;
        self.list.push(core);
        self.bits[index / 64] |= 1 << (index % 64);
    }

    fn remove(&mut self, core: u16) {
        let index = usize::from(core);
        let hole = std::mem::replace(&mut self.position[index], OUT);
        self.list.swap_remove(usize::from(hole));
        if let Some(&moved) = self.list.get(usize::from(hole)) {
            self.position[usize::from(moved)] = hole;
        }
        self.bits[index / 64] &= !(1 << (index % 64));
    }

    /// The first enabled core from number `from` on.
    fn next_from(&self, from: usize) -> Option<u16> {
        let first = from / 64;
        let words = self.bits.iter().enumerate().skip(first);
        let mut masked = words.map(|(n, &word)| {
            let keep = if n == first { !0 << (from % 64) } else { !0 };
            (n, word & keep)
        });
        let (n, word) = masked.find(|(_, word)| *word != 0)?;
        Some((n * 64) as u16 + word.trailing_zeros() as u16)
    }
}

/// A schedule at work.
pub(crate) struct Picker {
    enabled: Enabled,
    strategy: Strategy,
}

enum Strategy {
    RoundRobin { next: usize },
    Random(Random),
    Pct(Pct),
}

/// Any enabled core, for so long.
struct Random {
    rng: Rng,
    /// Whose turn it is.
    last: u16,
    /// Of 2^32 draws, how many let it go on.
    stay: u64,
}

/// So many cores are drawn anew for each step.
const FEW: u64 = 32;

/// Probabilistic concurrency testing. Priorities are unique; the highest enabled one runs.
struct Pct {
    priorities: Vec<i64>,
    /// Enabled cores by priority; may also hold entries that are no longer true.
    heap: BinaryHeap<(i64, u16)>,
    /// Whether the core's entry at its present priority is in the heap.
    queued: Vec<bool>,
    /// Steps of the priority changes, last first.
    changes: Vec<u64>,
    steps: u64,
    /// Below all priorities given so far.
    floor: i64,
}

impl Picker {
    pub(crate) fn new(config: &Config) -> Self {
        let cores = usize::from(config.cores);
        let mut rng = Rng::new(config.seed, Stream::Schedule);
        let strategy = match config.schedule.resolve(config.seed) {
            // Timed: the engine asks its clocks instead.
            Schedule::RoundRobin | Schedule::Timed => Strategy::RoundRobin { next: 0 },
            Schedule::Pct { depth } => {
                Strategy::Pct(Pct::new(cores, depth, config.pct_length, &mut rng))
            }
            Schedule::Random | Schedule::Mixed => Strategy::Random(Random::new(cores, rng)),
        };
        Self {
            enabled: Enabled::new(cores),
            strategy,
        }
    }

    /// The core that takes the next step; none if nobody can.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<u16> {
        if self.enabled.list.is_empty() {
            return None;
        }
        match &mut self.strategy {
            Strategy::Random(random) => Some(random.next(&self.enabled)),
            Strategy::RoundRobin { next } => {
                let from = self.enabled.next_from(*next);
                let core = from.or_else(|| self.enabled.next_from(0))?;
                *next = usize::from(core) + 1;
                Some(core)
            }
            Strategy::Pct(pct) => pct.next(&self.enabled),
        }
    }

    /// `core` can take steps from now on.
    pub(crate) fn enable(&mut self, core: u16) {
        if self.enabled.contains(core) {
            return;
        }
        self.enabled.insert(core);
        if let Strategy::Pct(pct) = &mut self.strategy {
            pct.queue(core);
        }
    }

    /// `core` cannot take steps from now on.
    pub(crate) fn disable(&mut self, core: u16) {
        if self.enabled.contains(core) {
            self.enabled.remove(core);
        }
    }

    /// `core` gets nowhere by itself: it polled in vain. Without this a polling core of high
    /// priority would keep those from running that it waits for.
    #[inline]
    pub(crate) fn yields(&mut self, core: u16) {
        match &mut self.strategy {
            Strategy::Pct(pct) => pct.lower(core),
            Strategy::Random(random) if random.last == core => random.last = OUT,
            _ => {}
        }
    }
}

impl Random {
    fn new(cores: usize, rng: Rng) -> Self {
        let mean = match cores as u64 {
            ..=FEW => 1,
            many => many / 16,
        };
        Self {
            rng,
            last: OUT,
            stay: (1 << 32) - (1 << 32) / mean,
        }
    }

    /// One of the enabled cores; there is one.
    #[inline]
    fn next(&mut self, enabled: &Enabled) -> u16 {
        let stays = self.stay > 0
            && self.last != OUT
            && enabled.contains(self.last)
            && self.rng.next() >> 32 < self.stay;
        if !stays {
            self.last = enabled.list[self.rng.below(enabled.list.len())];
        }
        self.last
    }
}

impl Pct {
    fn new(cores: usize, depth: u8, length: u64, rng: &mut Rng) -> Self {
        // A random order of cores: Fisher and Yates.
        let mut priorities: Vec<i64> = (1..=cores as i64).collect();
        for last in (1..cores).rev() {
            priorities.swap(last, rng.below(last + 1));
        }
        let length = match length {
            // Of a run of unknown length only the order of magnitude can be guessed.
            0 => 1 << (5 + rng.below(12)),
            _ => length,
        };
        let mut changes: Vec<u64> = (1..depth)
            .map(|_| 1 + rng.below(length as usize) as u64)
            .collect();
        changes.sort_unstable_by(|a, b| b.cmp(a));
        Self {
            heap: BinaryHeap::new(),
            queued: vec![false; cores],
            priorities,
            changes,
            steps: 0,
            floor: 0,
        }
    }

    fn next(&mut self, enabled: &Enabled) -> Option<u16> {
        self.steps += 1;
        while self.changes.last() == Some(&self.steps) {
            self.changes.pop();
            let favourite = self.highest(enabled)?;
            self.lower(favourite);
        }
        self.highest(enabled)
    }

    /// The enabled core of highest priority. Entries that are no longer true go when they surface.
    fn highest(&mut self, enabled: &Enabled) -> Option<u16> {
        loop {
            let &(priority, core) = self.heap.peek()?;
            let current = self.priorities[usize::from(core)] == priority;
            if current && enabled.contains(core) {
                return Some(core);
            }
            self.heap.pop();
            if current {
                self.queued[usize::from(core)] = false;
            }
        }
    }

    fn queue(&mut self, core: u16) {
        let index = usize::from(core);
        if !std::mem::replace(&mut self.queued[index], true) {
            self.heap.push((self.priorities[index], core));
        }
    }

    /// Gives an enabled core the lowest priority of all.
    fn lower(&mut self, core: u16) {
        self.floor -= 1;
        self.priorities[usize::from(core)] = self.floor;
        self.queued[usize::from(core)] = false;
        self.queue(core);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picker(schedule: Schedule, cores: u16) -> Picker {
        let mut picker = Picker::new(&Config {
            cores,
            schedule,
            seed: 5,
            ..Config::default()
        });
        (0..cores).for_each(|core| picker.enable(core));
        picker
    }

    #[test]
    fn round_robin_takes_turns_and_skips_the_disabled() {
        let mut picker = picker(Schedule::RoundRobin, 130);
        (3..128).for_each(|core| picker.disable(core));
        let turns: Vec<_> = (0..7).filter_map(|_| picker.next()).collect();
        assert_eq!(turns, [0, 1, 2, 128, 129, 0, 1]);
    }

    #[test]
    fn every_schedule_picks_enabled_cores_only() {
        for (schedule, cores) in [
            (Schedule::RoundRobin, 5),
            (Schedule::Random, 5),
            (Schedule::Random, 100),
            (Schedule::Pct { depth: 4 }, 5),
        ] {
            let mut picker = picker(schedule, cores);
            let mut rng = Rng::new(9, Stream::Environment);
            for _ in 0..5000 {
                let core = rng.below(cores.into()) as u16;
                match rng.below(3) {
                    0 => picker.enable(core),
                    1 => picker.disable(core),
                    _ if picker.enabled.contains(core) => picker.yields(core),
                    _ => {}
                }
                let picked = picker.next();
                assert_eq!(picked.is_none(), picker.enabled.list.is_empty());
                assert!(picked.is_none_or(|core| picker.enabled.contains(core)));
            }
        }
    }

    #[test]
    fn among_many_a_core_goes_on_for_a_while_or_until_it_yields() {
        let switches = |cores: u16, yields: bool| {
            let mut picker = picker(Schedule::Random, cores);
            let mut last = None;
            let mut count = 0;
            for _ in 0..10_000 {
                let next = picker.next();
                count += u32::from(next != last);
                last = next;
                if let (true, Some(core)) = (yields, next) {
                    picker.yields(core);
                }
            }
            count
        };
        assert!((9_000..10_000).contains(&switches(32, false)));
        assert!((3_000..3_600).contains(&switches(48, false)));
        assert!((1_100..1_400).contains(&switches(128, false)));
        assert!((120..200).contains(&switches(1024, false)));
        assert!(switches(1024, true) > 9_900);
    }

    #[test]
    fn pct_keeps_to_one_core_until_it_yields() {
        let mut picker = picker(Schedule::Pct { depth: 1 }, 3);
        let first = picker.next();
        assert!((0..50).all(|_| picker.next() == first));
        picker.yields(first.unwrap());
        let second = picker.next();
        assert_ne!(second, first);
        picker.yields(second.unwrap());
        assert!(picker.next() != first && picker.next() != second);
    }

    #[test]
    fn pct_changes_its_mind_at_most_depth_minus_one_times() {
        let mut most = 0;
        for seed in 0..50 {
            let mut picker = Picker::new(&Config {
                cores: 3,
                schedule: Schedule::Pct { depth: 3 },
                pct_length: 100,
                seed,
                ..Config::default()
            });
            (0..3).for_each(|core| picker.enable(core));
            let picks: Vec<_> = (0..100).map(|_| picker.next()).collect();
            let changes = picks.windows(2).filter(|pair| pair[0] != pair[1]).count();
            assert!(changes <= 2);
            most = most.max(changes);
        }
        assert_eq!(most, 2);
    }
}
