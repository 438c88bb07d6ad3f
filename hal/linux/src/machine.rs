//! The handle that a rank holds of the machine.

use std::fmt;
use std::io::Write as _;
use std::num::NonZero;
use std::panic::Location;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use flagpost_hal::{
    Address, Clock, CoreId, Expected, MessageBuffer, Relax, Topology, UncachedMemory, Watch,
};

use crate::bytes::Regions;
use crate::clock;
use crate::peers::Peers;
use crate::segment::Segment;
use crate::shape::PAGE;
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

    /// [`Topology::looks`].
    #[doc(hidden)]
    #[inline(always)]
    fn looks(&self, place: &'static Location<'static>) {
        self.called(place);
    }

    /// [`Topology::expected`].
    #[doc(hidden)]
    #[inline(always)]
    fn expected(&self, at: Address, len: usize, what: Expected<'_>) {
        let _ = (at, len, what);
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
    pub(crate) rank: u16,
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
        let processors = processors_of(processes).min(processors_at_most());
        self.own.waiter.set_crowded(usize::from(ranks) > processors);
    }

    /// Says on standard error what this rank waits for, in one piece among the lines of others.
    #[cold]
    fn say_what(&self, what: fmt::Arguments<'_>) {
        let line = format!("rank {} {what}\n", self.rank);
        // If nobody reads it, that is no reason to fail.
        let _ = std::io::stderr().write_all(line.as_bytes());
        self.segment().answer(self.rank);
    }

    /// Waits until all ranks have called this, beside all worlds: for harnesses, between one world
    /// and the next. False if a rank is lost.
    #[must_use = "a rank may be lost"]
    pub fn meet(&self) -> bool {
        self.segment().barrier()
    }
}

/// The least bytes that are cleared by giving their pages back.
const MANY: usize = 1 << 20;

impl<M: Mode> Linux<M>
where
    Self: UncachedMemory,
{
    /// [`UncachedMemory::zero`], but for what the cache has: whole pages are given back, and stores
    /// clear the ends.
    #[track_caller]
    pub(crate) fn give_back(&self, at: Address, len: usize) -> bool {
        let behind = at.offset.saturating_add(len);
        let (start, end) = (at.offset.next_multiple_of(PAGE), behind / PAGE * PAGE);
        if len < MANY || !self.regions.clear(at.region.at(start), end - start) {
            return false;
        }
        self.store_bytes(at, &[0; PAGE][..start - at.offset]);
        self.store_bytes(at.region.at(end), &[0; PAGE][..behind - end]);
        true
    }
}

/// How many processors these processes may use between them.
fn processors_of(processes: impl Iterator<Item = Pid>) -> usize {
    let sets = processes.filter_map(|process| sched_getaffinity(Some(process)).ok());
    let sets: Vec<CpuSet> = sets.collect();
    let is_used = |cpu: &usize| sets.iter().any(|set| set.is_set(*cpu));
    (0..CpuSet::MAX_CPU).filter(is_used).count()
}

/// How many processors the system gives this process time for, whatever it is bound to: its control
/// group may give it less than all.
fn processors_at_most() -> usize {
    let unbound = || {
        let mut all = CpuSet::new();
        (0..CpuSet::MAX_CPU).for_each(|cpu| all.set(cpu));
        sched_setaffinity(None, &all).ok()?;
        std::thread::available_parallelism().ok()
    };
    // A thread of its own: the rank stays where it is bound.
    let asked = std::thread::Builder::new().spawn(unbound);
    let most = asked.ok().and_then(|asked| asked.join().ok()?);
    most.map_or(usize::MAX, NonZero::get)
}

impl<M: Mode> MessageBuffer for Linux<M> {
    fn message_buffer_size(&self) -> usize {
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
    fn memory_size(&self) -> usize {
        self.regions.memory()
    }

    #[inline(always)]
    fn called(&self, place: &'static Location<'static>) {
        self.own.mode.called(place);
    }

    #[inline(always)]
    fn looks(&self, place: &'static Location<'static>) {
        self.own.mode.looks(place);
    }

    #[inline(always)]
    fn expected(&self, at: Address, len: usize, what: Expected<'_>) {
        self.own.mode.expected(at, len, what);
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

    fn is_lost(&self, core: CoreId) -> bool {
        let segment = self.segment();
        // Others may have gone since the first one was found.
        if let Some(peers) = &self.own.peers {
            peers.look(segment);
        }
        segment.is_lost(core.get())
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

    #[inline(always)]
    fn waits(&self, what: fmt::Arguments<'_>) {
        if self.segment().is_asked(self.rank) {
            self.say_what(what);
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

    /// Does something where one processor may be used.
    fn bound<T: Send>(cpu: usize, act: impl FnOnce() -> T + Send) -> T {
        let mut one = CpuSet::new();
        one.set(cpu);
        let act = || {
            sched_setaffinity(None, &one).expect("it may use it");
            act()
        };
        std::thread::scope(|scope| scope.spawn(act).join()).expect("no panic")
    }

    /// A process that ends with the test, whatever happens.
    struct Sleeper(Child);

    impl Sleeper {
        fn start() -> Self {
            Self(Command::new("sleep").arg("600").spawn().expect("it runs"))
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            let _ = self.0.kill().and_then(|()| self.0.wait());
        }
    }

    /// The first and the last processor that this process may use.
    fn ends() -> (usize, usize) {
        let own = sched_getaffinity(None).expect("it has some");
        let mut allowed = (0..CpuSet::MAX_CPU).filter(|cpu| own.is_set(*cpu));
        let first = allowed.next().expect("it runs on one");
        (first, allowed.next_back().unwrap_or(first))
    }

    #[test]
    fn processors_of_all_ranks_are_counted_once() {
        let (first, last) = ends();
        // They inherit it.
        let sleepers = [first, last, first].map(|cpu| bound(cpu, Sleeper::start));
        let ids = [0, 1, 2].map(|index| Pid::from_child(&sleepers[index].0));
        let [one, other, again] = ids;
        assert_eq!(processors_of([one, again].into_iter()), 1);
        let two = 1 + usize::from(first != last);
        assert_eq!(processors_of(ids.into_iter()), two);
        drop(sleepers);
        assert_eq!(processors_of([one, other].into_iter()), 0, "they are gone");
    }

    /// What a rank is bound to does not hide how much time there is for all of them.
    #[test]
    fn time_is_not_that_of_a_bound_rank() {
        let (first, _) = ends();
        assert_eq!(bound(first, processors_at_most), processors_at_most());
        assert_eq!(bound(first, ends), (first, first));
    }
}
