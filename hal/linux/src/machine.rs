//! The handle that a rank holds of the machine.

use std::num::NonZero;
use std::panic::Location;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity};

use flagpost_hal::{Clock, CoreId, MessageBuffer, Relax, Topology, UncachedMemory, Watch};

use crate::bytes::Regions;
use crate::clock;
use crate::peers::Peers;
use crate::segment::Segment;
use crate::wait::Waiter;

/// How memory is kept in step: [`Coherent`](crate::Coherent),
/// [`SoftwareCoherent`](crate::SoftwareCoherent), [`Emulated`](crate::Emulated).
pub trait Mode: sealed::Sealed + Sized + 'static {
    /// What it is called on command lines.
    const NAME: &'static str;

    /// Whether words may be looked at as they are, without what a load takes otherwise.
    #[doc(hidden)]
    const PLAIN: bool = false;

    #[doc(hidden)]
    fn new() -> Self;

    /// [`Topology::LISTENS`].
    #[doc(hidden)]
    const LISTENS: bool = false;

    /// [`Topology::called`].
    #[doc(hidden)]
    #[inline(always)]
    fn called(&self, place: &'static Location<'static>) {
        let _ = place;
    }

    /// Whether a rank panics that would write a line back over what others have stored there. Only
    /// [`Emulated`](crate::Emulated) sees that, and begins with `true` unless the environment has
    /// `FLAGPOST_ORACLE=off`.
    fn set_oracle(&self, on: bool) {
        let _ = on;
    }
}

pub(crate) mod sealed {
    pub trait Sealed {}
}

/// A rank's handle of the machine: its own number, everybody's memory, a clock. Clones are the same
/// rank's.
#[derive(Debug)]
pub struct Linux<M> {
    regions: Regions,
    rank: u16,
    own: Rc<Own<M>>,
}

/// What clones share.
#[derive(Debug)]
struct Own<M> {
    mode: M,
    clock: clock::Clock,
    waiter: Waiter,
    /// Where nobody else notices that a peer is gone.
    peers: Option<Peers>,
}

impl<M> Clone for Linux<M> {
    fn clone(&self) -> Self {
        Self {
            regions: self.regions.clone(),
            rank: self.rank,
            own: Rc::clone(&self.own),
        }
    }
}

impl<M: Mode> Linux<M> {
    /// Rank `rank` of those that share `segment`; `crowded` if they are more than there are
    /// processors, `alone` if nobody watches over them.
    pub(crate) fn new(segment: Arc<Segment>, rank: u16, crowded: bool, alone: bool) -> Self {
        Self {
            regions: Regions::new(segment, rank),
            rank,
            own: Rc::new(Own {
                mode: M::new(),
                clock: clock::Clock::new(),
                waiter: Waiter::new(crowded),
                peers: alone.then(Peers::new),
            }),
        }
    }

    #[inline(always)]
    pub(crate) fn regions(&self) -> &Regions {
        &self.regions
    }

    /// The memory that all ranks share.
    #[inline(always)]
    pub fn segment(&self) -> &Segment {
        self.regions.segment()
    }

    /// What the mode keeps for this rank.
    #[inline(always)]
    pub fn mode(&self) -> &M {
        &self.own.mode
    }

    /// All ranks have come: whether they are more than their processors is known now. A launcher
    /// may have bound each of them to some of its own.
    pub fn count_processors(&self) {
        let (segment, ranks) = (self.segment(), self.regions.ranks());
        let processes = (0..ranks).filter_map(|rank| Pid::from_raw(segment.pid_of(rank)?));
        let own = sched_getaffinity(None).map_or(0, |own| own.count() as usize);
        // Fewer than it may use, if its control group gives it less time.
        let few = std::thread::available_parallelism().map_or(own, NonZero::get);
        let processors = match few < own {
            true => few,
            false => processors_of(processes),
        };
        self.own.waiter.set_crowded(usize::from(ranks) > processors);
    }

    /// Waits until all ranks have called this, beside all worlds: for harnesses, between one world
    /// and the next. False if a rank is lost.
    #[must_use = "a rank may be lost"]
    pub fn meet(&self) -> bool {
        self.segment().barrier()
    }
}

/// How many processors these processes may use between them.
fn processors_of(processes: impl Iterator<Item = Pid>) -> usize {
    let sets = processes.filter_map(|process| sched_getaffinity(Some(process)).ok());
    let sets: Vec<CpuSet> = sets.collect();
    let is_used = |cpu: &usize| sets.iter().any(|set| set.is_set(*cpu));
    (0..CpuSet::MAX_CPU).filter(is_used).count()
}

impl<M: Mode> MessageBuffer for Linux<M> {
    fn message_buffer_size(&self) -> u32 {
        0
    }
}

impl<M: Mode> Topology for Linux<M> {
    const LISTENS: bool = M::LISTENS;

    #[inline]
    fn cores(&self) -> u16 {
        self.regions.ranks()
    }

    #[inline]
    fn core(&self) -> CoreId {
        CoreId::new(self.rank)
    }

    #[inline]
    fn memory_size(&self) -> u32 {
        self.regions.memory()
    }

    #[inline(always)]
    fn called(&self, place: &'static Location<'static>) {
        self.own.mode.called(place);
    }

    #[inline]
    fn lost(&self) -> Option<CoreId> {
        let segment = self.segment();
        if segment.lost_word().load(Relaxed) == 0 {
            // A rank that polls and never waits has to look by itself.
            if let Some(peers) = &self.own.peers {
                peers.glance(segment);
            }
            return None;
        }
        segment.lost().map(CoreId::new)
    }

    #[inline]
    fn has_left(&self, core: Option<CoreId>) -> bool {
        self.segment().has_left(core.map(CoreId::get))
    }
}

impl<M: Mode> Clock for Linux<M> {
    #[inline]
    fn cycles(&self) -> u64 {
        self.own.clock.now()
    }

    fn hertz(&self) -> u64 {
        self.own.clock.hertz()
    }
}

impl<M: Mode> Relax for Linux<M>
where
    Self: UncachedMemory,
{
    /// About as long as a line takes from one processor to another that is far.
    const LOOKS: u32 = if M::PLAIN { 100 } else { 0 };

    #[inline]
    fn is_crowded(&self) -> bool {
        self.own.waiter.is_crowded()
    }

    fn relax(&self, watched: &[Watch]) {
        /// A loop watches a few words.
        const FEW: usize = 4;
        let long = match watched.first() {
            Some(first) if M::PLAIN && watched.len() <= FEW => {
                // Found and checked once, not at each look.
                let mut words = [(self.regions.word(first.at), first.seen); FEW];
                for (place, watch) in words.iter_mut().zip(watched) {
                    *place = (self.regions.word(watch.at), watch.seen);
                }
                let differs = |(word, seen): &(&AtomicU32, u32)| word.load(Relaxed) != *seen;
                let words = &words[..watched.len()];
                let (line, any) = (words[0].0, || words.iter().any(differs));
                self.own.waiter.turn(watched, Some(line), any)
            }
            _ => self.own.waiter.turn(watched, None, || {
                let differs = |watch: &Watch| self.load_u32(watch.at) != watch.seen;
                watched.iter().any(differs)
            }),
        };
        if let (true, Some(peers)) = (long, &self.own.peers) {
            peers.look(self.segment());
        }
    }

    #[inline]
    fn ended(&self) {
        self.own.waiter.done();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    /// A process that may use one processor.
    fn bound(cpu: usize) -> Child {
        let mut command = Command::new("taskset");
        command.args(["-c", &cpu.to_string(), "sleep", "600"]);
        command.spawn().expect("it runs")
    }

    fn id(child: &Child) -> Pid {
        Pid::from_child(child)
    }

    #[test]
    fn processors_of_all_ranks_are_counted_once() {
        let own = sched_getaffinity(None).expect("it has some");
        let allowed: Vec<usize> = (0..CpuSet::MAX_CPU)
            .filter(|cpu| own.is_set(*cpu))
            .collect();
        let (first, last) = (allowed[0], allowed[allowed.len() - 1]);
        let mut children = [first, last, first].map(bound);
        let is_bound = |child| sched_getaffinity(Some(id(child))).is_ok_and(|set| set.count() == 1);
        while !children.iter().all(is_bound) {
            std::thread::yield_now();
        }
        let [one, other, again] = [0, 1, 2].map(|index| id(&children[index]));
        assert_eq!(processors_of([one, again].into_iter()), 1);
        let two = 1 + usize::from(first != last);
        assert_eq!(processors_of([one, other, again].into_iter()), two);
        for child in &mut children {
            child.kill().expect("it is mine");
            child.wait().expect("it ends");
        }
        assert_eq!(processors_of([one, other].into_iter()), 0, "they are gone");
    }
}
