//! The meeting place of a job: one thread that hears all its ranks.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::wire::{Kind, Wire};
use super::{GREETING, MOST, SECRET, Secret, VERSION, pack};

/// Strangers that are heard at a time, and for how long.
const STRANGERS: usize = 64;
const HEARD: Duration = Duration::from_secs(10);

/// Bytes that a join frame may have as its contents.
const JOIN: usize = GREETING.len() + 6 + SECRET;

/// How soon the thread notices what it was told by others than ranks.
const LOOK_MS: i64 = 50;

/// [`Presence`], as a number.
const EXPECTED: u8 = 0;
const HERE: u8 = 1;
const LEFT: u8 = 2;
const LOST: u8 = 3;

/// What a hub knows of a rank.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It has not joined yet.
    Expected,
    /// It has.
    Here,
    /// It has left in order.
    Left,
    /// Its connection has ended without that, or its launcher says that it is dead.
    Lost,
}

/// What the hub's owner and its thread share.
#[derive(Debug)]
struct Shared {
    ranks: Vec<AtomicU8>,
    /// The rank that was lost first, plus 1; 0 while none is.
    first_lost: AtomicU32,
    /// How often the owner has asked what ranks wait for; and of each rank, the question that it
    /// has answered last.
    asked: AtomicU32,
    answered: Vec<AtomicU32>,
    /// The ranks that have ended their program.
    ended: Vec<AtomicBool>,
    stop: AtomicBool,
}

impl Shared {
    /// `rank` is lost; the first one is kept.
    fn note_lost(&self, rank: usize) {
        let word = u32::try_from(rank + 1).unwrap_or(0);
        let first = &self.first_lost;
        let _ = first.compare_exchange(0, word, Ordering::AcqRel, Ordering::Acquire);
    }
}

/// A job's meeting place. It ends when this is dropped.
#[derive(Debug)]
pub struct Hub {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// The process that the thread is of: a child that it forks has none.
    process: u32,
}

impl Hub {
    /// Listens at `address` only, on a port that is free, for `ranks` ranks with `secret`.
    ///
    /// # Errors
    /// The system's.
    pub fn start(address: IpAddr, ranks: u16, secret: Secret) -> io::Result<Self> {
        let listener = TcpListener::bind((address, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            ranks: (0..ranks).map(|_| AtomicU8::new(EXPECTED)).collect(),
            first_lost: AtomicU32::new(0),
            asked: AtomicU32::new(0),
            answered: (0..ranks).map(|_| AtomicU32::new(0)).collect(),
            ended: (0..ranks).map(|_| AtomicBool::new(false)).collect(),
            stop: AtomicBool::new(false),
        });
        let thread = Thread {
            listener,
            secret,
            shared: Arc::clone(&shared),
            strangers: Vec::new(),
            members: (0..ranks).map(|_| Member::default()).collect(),
            asked: 0,
        };
        let builder = std::thread::Builder::new().name("flagpost-hub".to_owned());
        let thread = Some(builder.spawn(move || thread.run())?);
        Ok(Self {
            address,
            shared,
            thread,
            process: std::process::id(),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What is known of `rank`.
    ///
    /// # Panics
    /// If there is no such rank.
    pub fn presence(&self, rank: u16) -> Presence {
        match self.shared.ranks[usize::from(rank)].load(Ordering::Acquire) {
            EXPECTED => Presence::Expected,
            HERE => Presence::Here,
            LEFT => Presence::Left,
            _ => Presence::Lost,
        }
    }

    /// `rank` has ended, as its launcher knows: unless it has left, all others are told that it is
    /// lost.
    pub fn mark_lost(&self, rank: u16) {
        if let Some(state) = self.shared.ranks.get(usize::from(rank)) {
            let lost = |state| (state != LEFT).then_some(LOST);
            if { state.fetch_update(Ordering::AcqRel, Ordering::Acquire, lost) }.is_ok() {
                self.shared.note_lost(rank.into());
            }
        }
    }

    /// The rank that was lost first, if any.
    pub fn first_lost(&self) -> Option<u16> {
        let word = self.shared.first_lost.load(Ordering::Acquire);
        u16::try_from(word.checked_sub(1)?).ok()
    }

    /// Whether `rank` has ended its program in order. It may still be here, for others.
    ///
    /// # Panics
    /// If there is no such rank.
    pub fn has_ended(&self, rank: u16) -> bool {
        self.shared.ended[usize::from(rank)].load(Ordering::Acquire)
    }

    /// Asks each rank what it waits for. A rank that waits writes it to its standard error.
    pub fn ask(&self) {
        self.shared.asked.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether `rank` has answered the last question.
    ///
    /// # Panics
    /// If there is no such rank.
    pub fn has_answered(&self, rank: u16) -> bool {
        let answered = self.shared.answered[usize::from(rank)].load(Ordering::Acquire);
        answered == self.shared.asked.load(Ordering::Acquire)
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            return;
        }
        self.shared.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // If it has panicked, the ranks know: their connections are closed.
            let _ = thread.join();
        }
    }
}

/// A connection that has not said yet which rank's it is.
#[derive(Debug)]
struct Stranger {
    wire: Wire,
    since: Instant,
}

/// A rank.
#[derive(Debug, Default)]
struct Member {
    /// While it is here.
    wire: Option<Wire>,
    /// What it gives to the gathering that has begun.
    gives: Option<Vec<u8>>,
    /// It has ended its program, and the others are to be told.
    has_ended: bool,
    /// The others know that it is gone.
    told: bool,
}

struct Thread {
    listener: TcpListener,
    secret: Secret,
    shared: Arc<Shared>,
    strangers: Vec<Stranger>,
    members: Vec<Member>,
    /// The last question that ranks have been told of.
    asked: u32,
}

impl Thread {
    fn run(mut self) {
        while !self.shared.stop.load(Ordering::Acquire) {
            self.sleep();
            self.accept();
            self.hear_strangers();
            for rank in 0..self.members.len() {
                self.hear(rank);
            }
            self.gather();
            self.tell_of_the_gone();
            self.ask();
            for rank in 0..self.members.len() {
                if let Some(wire) = self.members[rank].wire.as_mut()
                    && wire.flush().is_err()
                {
                    // It may have left before, and that is still to be heard.
                    wire.close();
                }
            }
        }
    }

    /// Sleeps until there is something to hear, or for a little.
    fn sleep(&self) {
        let members = self.members.iter();
        let members = members.filter_map(|member| member.wire.as_ref());
        let strangers = self.strangers.iter().map(|stranger| &stranger.wire);
        let wanted = |wire: &Wire| {
            let out = if wire.is_full() {
                PollFlags::OUT
            } else {
                PollFlags::empty()
            };
            PollFlags::IN | out
        };
        let wires = members.chain(strangers);
        let listener = self.has_room().then_some(&self.listener);
        let mut fds: Vec<PollFd<'_>> = { listener.into_iter() }
            .map(|listener| PollFd::new(listener, PollFlags::IN))
            .chain(wires.map(|wire| PollFd::new(&wire.stream, wanted(wire))))
            .collect();
        let time = Timespec {
            tv_sec: 0,
            tv_nsec: LOOK_MS * 1_000_000,
        };
        // An interruption is no reason for more than to look.
        let _ = poll(&mut fds, Some(&time));
    }

    /// Whether one more stranger is heard. The others wait in the system's queue.
    fn has_room(&self) -> bool {
        self.strangers.len() < STRANGERS.max(self.members.len())
    }

    fn accept(&mut self) {
        while self.has_room()
            && let Ok((stream, _)) = self.listener.accept()
        {
            let since = Instant::now();
            if let Ok(wire) = Wire::new(stream) {
                self.strangers.push(Stranger { wire, since });
            }
        }
    }

    fn hear_strangers(&mut self) {
        let mut index = 0;
        while index < self.strangers.len() {
            let stranger = &mut self.strangers[index];
            let open = stranger.wire.fill(JOIN);
            let joins = match stranger.wire.next(JOIN) {
                Ok(Some((Kind::Join, greeting))) => Some(rank_of(&greeting, self)),
                Ok(None) if open.is_ok_and(|open| open) => {
                    (self.strangers[index].since.elapsed() > HEARD).then_some(None)
                }
                _ => Some(None),
            };
            let Some(rank) = joins else {
                index += 1;
                continue;
            };
            let mut wire = self.strangers.swap_remove(index).wire;
            let Some((rank, first)) = rank else {
                continue;
            };
            if first {
                self.tell_of_the_past(&mut wire);
                self.members[rank].wire = Some(wire);
            } else {
                wire.push(Kind::Again, &(rank as u16).to_le_bytes());
                // One that does not hear it hears the end of the connection.
                let _ = wire.flush();
            }
        }
    }

    /// Tells a rank that has just come which ones had gone before, as the others know, and asks it
    /// what they were asked.
    fn tell_of_the_past(&self, wire: &mut Wire) {
        if self.asked != 0 {
            wire.push(Kind::Ask, &[]);
        }
        for rank in 0..self.members.len() {
            if self.members[rank].told
                && let Some(kind) = self.kind_of_gone(rank)
            {
                wire.push(kind, &(rank as u16).to_le_bytes());
            }
        }
    }

    /// What is told of `rank`, if it is gone.
    fn kind_of_gone(&self, rank: usize) -> Option<Kind> {
        match self.shared.ranks[rank].load(Ordering::Acquire) {
            LEFT => Some(Kind::Left),
            LOST => Some(Kind::Lost),
            _ => None,
        }
    }

    /// Hears what rank `rank` says.
    fn hear(&mut self, rank: usize) {
        let member = &mut self.members[rank];
        let Some(wire) = member.wire.as_mut() else {
            return;
        };
        let open = wire.fill(MOST).is_ok_and(|open| open);
        loop {
            match wire.next(MOST) {
                Ok(None) if open => return,
                Ok(Some((Kind::Gather, gives))) if member.gives.is_none() => {
                    member.gives = Some(gives);
                }
                Ok(Some((Kind::End, _))) => {
                    member.has_ended = true;
                    self.shared.ended[rank].store(true, Ordering::Release);
                }
                Ok(Some((Kind::Answer, _))) => {
                    self.shared.answered[rank].store(self.asked, Ordering::Release);
                }
                Ok(Some((Kind::Leave, _))) => {
                    self.shared.ranks[rank].store(LEFT, Ordering::Release);
                    member.wire = None;
                    return;
                }
                _ => return self.ends(rank),
            }
        }
    }

    /// The connection of `rank` has ended, and it has not left.
    fn ends(&mut self, rank: usize) {
        self.members[rank].wire = None;
        self.shared.ranks[rank].store(LOST, Ordering::Release);
        self.shared.note_lost(rank);
    }

    /// If all ranks have given something, each gets all of it.
    fn gather(&mut self) {
        if !self.members.iter().all(|member| member.gives.is_some()) {
            return;
        }
        let members = self.members.iter_mut();
        let gives: Vec<_> = members.filter_map(|member| member.gives.take()).collect();
        let all = pack(&gives);
        self.tell(Kind::All, &all);
    }

    fn tell_of_the_gone(&mut self) {
        for rank in 0..self.members.len() {
            if std::mem::take(&mut self.members[rank].has_ended) {
                self.tell(Kind::Ended, &(rank as u16).to_le_bytes());
            }
            let Some(kind) = self.kind_of_gone(rank) else {
                continue;
            };
            if !std::mem::replace(&mut self.members[rank].told, true) {
                self.members[rank].wire = None;
                self.tell(kind, &(rank as u16).to_le_bytes());
            }
        }
    }

    /// Asks the ranks that are here what they wait for, if the owner does. Others are asked when
    /// they come.
    fn ask(&mut self) {
        let asked = self.shared.asked.load(Ordering::Acquire);
        if std::mem::replace(&mut self.asked, asked) != asked {
            self.tell(Kind::Ask, &[]);
        }
    }

    /// Tells all that are here.
    fn tell(&mut self, kind: Kind, contents: &[u8]) {
        let members = self.members.iter_mut();
        for wire in members.filter_map(|member| member.wire.as_mut()) {
            wire.push(kind, contents);
        }
    }
}

/// The rank that joins with `greeting`, and whether it does so for the first time: it is here from
/// now on. None if the greeting is wrong.
fn rank_of(greeting: &[u8], thread: &Thread) -> Option<(usize, bool)> {
    let rest = greeting.strip_prefix(GREETING)?;
    let (version, rest) = rest.split_first_chunk()?;
    let (secret, rest) = rest.split_at_checked(SECRET)?;
    let (rank, rest) = rest.split_first_chunk()?;
    let rank = usize::from(u16::from_le_bytes(*rank));
    let ranks = usize::from(u16::from_le_bytes(rest.try_into().ok()?));
    let well = thread.secret.is(secret)
        && u16::from_le_bytes(*version) == VERSION
        && ranks == thread.members.len();
    let state = thread.shared.ranks.get(rank).filter(|_| well)?;
    let arrive = state.compare_exchange(EXPECTED, HERE, Ordering::AcqRel, Ordering::Acquire);
    Some((rank, arrive.is_ok()))
}
