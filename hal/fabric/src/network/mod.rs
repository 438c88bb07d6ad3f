//! A rank's end of a libfabric network, as a [`Fabric`].

mod ends;
mod probe;

use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::fmt;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use flagpost_hal::CoreId;
use flagpost_hal::fabric::{Event, Fabric, SendQueueFull, Watched, Work};

use crate::card::Card;
use crate::end::{Abilities, Completion, End, Put, Wanted};
use crate::meet::{Apart, Job, Meeting};
use crate::random::random;
use crate::sequence::Sequence;

/// Turns of a wait that only look, before those that give the processor to others.
const LOOKS: u32 = 64;

/// Of how many accesses to memory one gives the network time: a rank may wait for what a peer
/// stores there, by calls that do nothing else.
const ATTENDS: u32 = 16;

/// Bytes behind each rank's memory, which nobody reads. A confirmed put without data stores
/// something there: `shm` of libfabric 1.17 never completes a write of no bytes that is
/// delivery-complete.
const NOWHERE: usize = 8;

/// Bytes of memory that the probe uses.
const PROBED: usize = 32;

/// How a rank opens its network.
#[derive(Clone, Debug)]
pub struct Options {
    /// libfabric's name of a provider: `tcp` is short for `tcp;ofi_rxm`. The same on all ranks.
    pub provider: String,
    /// The address of this host that the network listens on, for providers that have such
    /// addresses; the one on the way to the hub if none is named.
    pub address: Option<IpAddr>,
    /// What the ends of all ranks are called, where a provider's ends have names: the files of
    /// `shm` in `/dev/shm` begin with it and a dash. No other job's. If none is given, each end has
    /// one of its own, by chance.
    pub name: Option<String>,
    /// Bytes of registered memory: at least 32, and a multiple of 8. The same on all ranks.
    pub memory: usize,
    /// A thread keeps the network going while the rank computes, and rests this long between two
    /// looks. None: only calls do.
    pub helper: Option<Duration>,
}

/// A value for [`Options::name`].
///
/// # Errors
/// The system has no random numbers.
pub fn new_name() -> std::io::Result<String> {
    let number = u64::from_ne_bytes(random()?);
    Ok(format!("flagpost-net-{number:016x}"))
}

/// Why a network cannot be opened, in one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OpenError(String);

/// What libfabric refuses.
impl From<String> for OpenError {
    fn from(why: String) -> Self {
        Self(why + &heeded(std::env::vars_os()))
    }
}

/// Of the `variables`, those by which libfabric is told what to do: they may be the cause.
fn heeded(variables: impl Iterator<Item = (OsString, OsString)>) -> String {
    let told = variables.filter_map(|(name, value)| {
        let name = name.to_str().filter(|name| name.starts_with("FI_"))?;
        let is_log = name.starts_with("FI_LOG_");
        (!is_log).then(|| format!("{name}={}", value.display()))
    });
    let mut told: Vec<String> = told.collect();
    told.sort();
    match told.is_empty() {
        true => String::new(),
        false => format!("; libfabric heeds {}: is that meant?", told.join(", ")),
    }
}

impl From<Apart> for OpenError {
    fn from(why: Apart) -> Self {
        Self(why.to_string())
    }
}

/// A rank's end of the network. Clones are the same rank's.
///
/// A process that its owner forks has a copy, and connections that are its parent's. There
/// [`leave`](Self::leave) tells nobody, and nothing is closed when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct Network(Rc<Inner>);

impl Drop for Network {
    fn drop(&mut self) {
        if !self.is_own() {
            std::mem::forget(Rc::clone(&self.0));
        }
    }
}

#[derive(Debug)]
struct Inner {
    /// The process that has opened this.
    process: u32,
    /// Dropped first: the hub hears that this rank is gone before its peers find out.
    meeting: RefCell<Option<Meeting>>,
    end: End,
    rank: u16,
    ranks: u16,
    /// The immediates of each rank, where puts are ordered.
    sequences: Vec<Sequence>,
    /// Whose immediate has arrived last, if others of the same rank have waited for it.
    heard: Cell<Option<u16>>,
    start: Instant,
    /// The ranks that are known to be lost.
    lost: RefCell<Vec<u16>>,
    /// How many are known to have left.
    left: Cell<usize>,
    /// The ranks that are known to have ended their program; and of how many all that they had sent
    /// was taken.
    ended: RefCell<Vec<u16>>,
    silent: Cell<usize>,
    /// Turns of waiting in which nothing came.
    idle: Cell<u32>,
    /// Times that lost ranks were asked for.
    asked: Cell<u32>,
    /// The hub has asked what this rank waits for.
    is_asked: Cell<bool>,
    /// Accesses to memory that looked at no queue.
    accesses: Cell<u32>,
}

impl Network {
    /// Opens this rank's end, when all ranks of the job do. Blocks until all are there.
    ///
    /// The capabilities of the provider are found out, whatever its name: its own statements, and
    /// then a probe, in which this rank stores, loads and changes cells in its own memory over the
    /// network.
    ///
    /// # Errors
    /// [`OpenError`]: no libfabric, a provider that is not here or cannot do what is needed, a rank
    /// that does not come.
    pub fn open(job: &Job, options: &Options) -> Result<Self, OpenError> {
        let memory = options.memory;
        let whole = memory.checked_add(NOWHERE);
        let whole = whole.filter(|_| memory >= PROBED && memory.is_multiple_of(8));
        let Some(whole) = whole else {
            return Err(OpenError(format!(
                "{memory} bytes of memory: it takes a multiple of 8, and at least {PROBED}"
            )));
        };
        let hub = |why| OpenError(format!("cannot meet the other ranks at {}: {why}", job.hub));
        let mut meeting = Meeting::join(job).map_err(hub)?;
        let own = meeting.own_address().map_err(hub)?;
        let name = match &options.name {
            Some(name) => name.clone(),
            None => new_name().map_err(|why| format!("no random numbers: {why}"))?,
        };
        let end = End::open(&Wanted {
            name: &format!("{name}-{}", job.rank),
            provider: match &*options.provider {
                "tcp" => "tcp;ofi_rxm",
                other => other,
            },
            source: Some(options.address.unwrap_or(own)),
            memory: whole,
            ranks: job.ranks,
            helper: options.helper,
        })?;
        if let Some(what) = probe::lacks(&end) {
            let provider = end.abilities().provider;
            return Err(OpenError(format!(
                "provider {provider} has no {what}: take another"
            )));
        }
        let cards = meeting.gather(&end.card()?.pack(memory), || ())?;
        let cards: Option<Vec<Card>> = cards
            .iter()
            .map(|card| Card::unpack(card, memory))
            .collect();
        let differ = || OpenError("the ranks differ in memory or version".to_owned());
        end.know(&cards.ok_or_else(differ)?)?;
        let inner = Inner {
            process: std::process::id(),
            end,
            rank: job.rank,
            ranks: job.ranks,
            meeting: RefCell::new(Some(meeting)),
            sequences: (0..job.ranks).map(|_| Sequence::default()).collect(),
            heard: Cell::new(None),
            start: Instant::now(),
            lost: RefCell::new(Vec::new()),
            left: Cell::new(0),
            ended: RefCell::new(Vec::new()),
            silent: Cell::new(0),
            idle: Cell::new(0),
            asked: Cell::new(0),
            is_asked: Cell::new(false),
            accesses: Cell::new(0),
        };
        let network = Self(Rc::new(inner));
        network.probe()?;
        network.meet()?;
        Ok(network)
    }

    /// Whether this process has opened it, and not one that it is a copy of.
    pub fn is_own(&self) -> bool {
        self.0.process == std::process::id()
    }

    /// What the provider can do.
    pub fn abilities(&self) -> Abilities {
        self.0.end.abilities()
    }

    /// How many puts and gets the system has copied, beside libfabric.
    pub fn copies(&self) -> u64 {
        self.0.end.copies()
    }

    /// The last operation that has failed, and why, for people.
    pub fn failure(&self) -> Option<String> {
        self.0.end.failure()
    }

    /// Returns when all ranks have called it: a barrier beside the network, which meanwhile does
    /// its work.
    ///
    /// # Errors
    /// [`Apart`]: not all will.
    pub fn meet(&self) -> Result<(), Apart> {
        self.gather(&[]).map(|_| ())
    }

    /// What each rank has given, when all have. At most 64 KiB each.
    ///
    /// # Errors
    /// [`Apart`]: not all will.
    pub fn gather(&self, own: &[u8]) -> Result<Vec<Vec<u8>>, Apart> {
        let mut meeting = self.0.meeting.borrow_mut();
        let closed = || Apart::Hub("this rank has left".to_owned());
        let meeting = meeting.as_mut().ok_or_else(closed)?;
        meeting.gather(own, || self.0.end.pump())
    }

    /// One turn of waiting.
    fn pass(&self) {
        let idle = self.0.idle.get();
        self.0.idle.set(idle.saturating_add(1));
        let long = idle >= LOOKS;
        self.0.end.idle(long);
        // A look at a queue takes long enough: in a short wait nothing else does.
        if long {
            std::thread::yield_now();
        }
    }

    /// Memory is accessed, of this rank or of a peer, by what does not look at a queue.
    fn attend(&self) {
        let accesses = self.0.accesses.get();
        self.0.accesses.set(accesses.wrapping_add(1));
        if accesses.is_multiple_of(ATTENDS) {
            self.0.end.pump();
        }
    }

    /// What a completion is to others. None for what makes no sense, or waits for its turn.
    fn event(&self, completion: Completion) -> Option<Event> {
        match completion {
            Completion::Done { id, value } => Some(Event::Done { id, value }),
            Completion::Failed { id } => Some(Event::Failed { id }),
            Completion::Told(told) => {
                let (from, number, immediate) =
                    ((told >> 48) as u16, (told >> 32) as u16, told as u32);
                let sequence = self.0.sequences.get(usize::from(from))?;
                if self.orders_puts() {
                    if !sequence.arrived(number, immediate) {
                        return None;
                    }
                    self.0.heard.set(sequence.keeps().then_some(from));
                }
                let from = CoreId::new(from);
                Some(Event::Immediate { from, immediate })
            }
        }
    }

    /// An immediate that has waited for the one that was returned last.
    fn kept(&self) -> Option<Event> {
        let from = self.0.heard.get()?;
        let sequence = self.0.sequences.get(usize::from(from))?;
        let Some(immediate) = sequence.kept() else {
            self.0.heard.set(None);
            return None;
        };
        let from = CoreId::new(from);
        Some(Event::Immediate { from, immediate })
    }

    fn put(
        &self,
        id: u32,
        to: usize,
        at: usize,
        data: &[u8],
        immediate: Option<u32>,
        confirmed: bool,
    ) -> Result<(), SendQueueFull> {
        let ordered = self.orders_puts();
        let told = immediate.map(|immediate| self.told(to, immediate));
        let nowhere = data.is_empty() && (confirmed || !ordered);
        let (at, data) = match nowhere {
            true => (self.memory_size(), &[0; NOWHERE][..]),
            false => (at, data),
        };
        let put = Put {
            id,
            to,
            at,
            data,
            told,
            confirmed,
        };
        self.0.end.put(put)?;
        if told.is_some() {
            self.0.sequences[to].sent();
        }
        Ok(())
    }

    /// An immediate to a rank, with its sender and its number.
    #[inline]
    fn told(&self, to: usize, immediate: u32) -> u64 {
        let number = self.0.sequences[to].next();
        u64::from(self.0.rank) << 48 | u64::from(number) << 32 | u64::from(immediate)
    }

    /// A put of which no event tells, where puts are ordered.
    #[inline(always)]
    fn send(
        &self,
        to: usize,
        at: usize,
        data: &[u8],
        immediate: Option<u32>,
    ) -> Result<(), SendQueueFull> {
        let Some(immediate) = immediate else {
            return self.0.end.send(to, at, data, None);
        };
        self.0
            .end
            .send(to, at, data, Some(self.told(to, immediate)))?;
        self.0.sequences[to].sent();
        Ok(())
    }
}

impl Fabric for Network {
    fn core(&self) -> CoreId {
        CoreId::new(self.0.rank)
    }

    fn cores(&self) -> u16 {
        self.0.ranks
    }

    fn memory_size(&self) -> usize {
        self.0.end.memory().len() - NOWHERE
    }

    fn orders_puts(&self) -> bool {
        self.0.end.orders_puts()
    }

    fn read(&self, at: usize, into: &mut [u8]) {
        self.attend();
        self.0.end.memory().read(at, into);
    }

    fn write(&self, at: usize, from: &[u8]) {
        self.attend();
        self.0.end.memory().write(at, from);
    }

    fn zero(&self, at: usize, len: usize) -> bool {
        self.0.end.zero(at, len)
    }

    fn load(&self, from: CoreId, at: usize, into: &mut [u8]) -> bool {
        // A rank may wait for what a peer stores in its own memory, by gets alone.
        self.attend();
        self.ask();
        self.0.end.load(usize::from(from.get()), at, into)
    }

    #[inline(always)]
    fn post(&self, id: u32, to: CoreId, work: Work<'_>) -> Result<(), SendQueueFull> {
        let (end, to) = (&self.0.end, usize::from(to.get()));
        match work {
            Work::Put {
                at,
                data,
                immediate,
                confirmed,
            } => {
                if !confirmed && self.orders_puts() {
                    return self.send(to, at, data, immediate);
                }
                self.put(id, to, at, data, immediate, confirmed)
            }
            Work::Get { at, into, len } => end.get(id, to, at, into, len),
            Work::Amo { at, amo } => end.change(id, to, at, amo),
        }
    }

    #[inline(always)]
    fn waits(&self, what: fmt::Arguments<'_>) {
        if self.0.is_asked.get() {
            self.say_what(what);
        }
    }

    fn poll(&self) -> Option<Event> {
        if let Some(event) = self.kept() {
            return Some(event);
        }
        while let Some(completion) = self.0.end.poll() {
            if let Some(event) = self.event(completion) {
                self.0.idle.set(0);
                return Some(event);
            }
        }
        None
    }

    fn lost(&self) -> Option<CoreId> {
        self.ask();
        let first = || self.0.lost.borrow().first().copied();
        let lost = first().or_else(|| {
            let failed = self.0.end.failed()?;
            self.hear_of_the_gone();
            // A rank that has ended well closes its connections once another one is lost, and only
            // then: the hub says which.
            let has_ended = self.0.ended.borrow().contains(&failed);
            first().or((!has_ended).then_some(failed))
        });
        lost.map(CoreId::new)
    }

    fn is_lost(&self, core: CoreId) -> bool {
        self.hear_of_the_gone();
        self.lost() == Some(core) || self.0.lost.borrow().contains(&core.get())
    }

    fn has_left(&self, core: Option<CoreId>) -> bool {
        let ended = self.0.ended.borrow();
        if ended.is_empty() {
            return false;
        }
        // What a rank has sent is in this rank's queues when its end is heard of.
        if ended.len() > self.0.silent.get() && !self.0.end.has_completions() {
            self.0.silent.set(ended.len());
        }
        let silent = &ended[..self.0.silent.get()];
        core.map_or(!silent.is_empty(), |core| silent.contains(&core.get()))
    }

    fn relax(&self, watched: &[Watched]) {
        let changed = |watched: &Watched| {
            let mut word = [0; 4];
            self.read(watched.at, &mut word);
            u32::from_le_bytes(word) != watched.seen
        };
        if !watched.iter().any(changed) {
            self.pass();
        }
    }

    fn pause(&self) {
        self.0.end.pump();
        self.pass();
    }

    fn now(&self) -> u64 {
        self.0.start.elapsed().as_nanos() as u64
    }

    fn ticks_per_second(&self) -> u64 {
        1_000_000_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_libfabric_heeds_is_named() {
        let heeded = |names: &[&str]| heeded(names.iter().map(|name| (name.into(), "x".into())));
        assert_eq!(heeded(&["HOME", "FI_LOG_LEVEL", "MY_FI_PROVIDER"]), "");
        assert_eq!(
            heeded(&["FI_TCP_PORT_LOW_RANGE", "HOME", "FI_PROVIDER"]),
            "; libfabric heeds FI_PROVIDER=x, FI_TCP_PORT_LOW_RANGE=x: is that meant?"
        );
    }
}
