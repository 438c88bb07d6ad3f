//! How the ranks of a job meet before they have a network: over TCP, through one [`Hub`].
//!
//! ```text
//!   launcher        Hub: listens on one address of the job
//!                     ▲   │ all contributions · who is gone
//!        join, gather │   ▼
//!   ranks           Meeting, one connection each
//! ```
//! A rank joins with the job's secret. Then the ranks *gather*: each gives some bytes, and gets
//! those of all. A gathering of nothing is a barrier. A rank that ends its program tells so; it
//! leaves when its end of the network is not needed any more. A connection that ends before its
//! rank has left is the rank's death: the hub tells the others. A host that is cut off has ended
//! its connections after some 20 seconds, in which it has answered nothing.
//!
//! # Frames
//! ```text
//!   ┌────────────┬──────┬──────────┐
//!   │ length, 4  │ kind │ contents │    numbers are little-endian; the length is that of contents
//!   └────────────┴──────┴──────────┘
//! ```
//! | kind | from | contents |
//! |---|---|---|
//! | join | rank | `flagpost`, version, secret, rank, ranks |
//! | gather | rank | its bytes |
//! | end, leave | rank | nothing |
//! | ask | hub | nothing: what does the rank wait for? |
//! | answer | rank | nothing: it has said so on its standard error |
//! | all | hub | the bytes of each rank in turn, with their length in front |
//! | ended, left, lost | hub | a rank |
//! | again | hub | the rank, which has joined before and is sent away |
//!
//! # What the secret is for
//! Strangers that reach the hub's address cannot join a job, nor end it. The secret travels as it
//! is: somebody who reads the network's traffic can read it, as they can read what ranks put. The
//! network itself, which is opened after the meeting, does not ask for the secret. The key of a
//! rank's memory there is a random number, unless the provider chooses it. It travels as it is.
//!
//! # Bounds
//! A rank gives at most 64 KiB. The hub hears 64 strangers at a time, for 10 seconds each, and
//! keeps no more of what one says than a join frame has.

mod hub;
mod wire;

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use thiserror::Error;
use wire::{Kind, Wire};

use crate::random::random;

pub use hub::{Hub, Presence};

/// Bytes of a secret.
const SECRET: usize = 32;

/// Bytes that a rank may give.
const MOST: usize = 64 << 10;

/// First bytes of a rank's first frame, and the version of what follows.
const GREETING: &[u8; 8] = b"flagpost";
const VERSION: u16 = 3;

/// How long a rank tries to reach its hub.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the ranks of a job know and others do not.
#[derive(Clone, Copy)]
pub struct Secret([u8; SECRET]);

impl Secret {
    /// A new one, by the system's random numbers.
    ///
    /// # Errors
    /// The system's.
    pub fn new() -> io::Result<Self> {
        random().map(Self)
    }

    /// The secret as text, for the environment of a rank.
    pub fn to_text(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Reads [`to_text`](Self::to_text).
    pub fn from_text(text: &str) -> Option<Self> {
        let text = text.as_bytes();
        let mut bytes = [0; SECRET];
        if text.len() != 2 * SECRET {
            return None;
        }
        for (byte, digits) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            let digits = std::str::from_utf8(digits).ok()?;
            *byte = u8::from_str_radix(digits, 16).ok()?;
        }
        Some(Self(bytes))
    }

    /// Whether `bytes` are the secret. Takes as long wherever they differ.
    fn is(&self, bytes: &[u8]) -> bool {
        let differ = self
            .0
            .iter()
            .zip(bytes)
            .fold(0, |all, (a, b)| all | (a ^ b));
        bytes.len() == SECRET && differ == 0
    }
}

/// Says nothing of what it is.
impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

/// A rank's part in a job, as its launcher tells it.
#[derive(Clone, Debug)]
pub struct Job {
    /// This rank.
    pub rank: u16,
    /// How many ranks there are.
    pub ranks: u16,
    /// Where the hub listens.
    pub hub: SocketAddr,
    /// What the hub asks for.
    pub secret: Secret,
}

/// Why a gathering does not come about.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Apart {
    /// A rank is gone, without having left.
    #[error("rank {0} is lost")]
    Lost(u16),
    /// A rank has left in order.
    #[error("rank {0} has left")]
    Left(u16),
    /// This rank has been in the job before.
    #[error(
        "rank {0} has been in this job before: a job runs one program, and that calls run once; \
         what a rank starts is a job of its own by flagpost-run"
    )]
    Again(u16),
    /// The hub is gone, or says what makes no sense.
    #[error("the job's meeting place is gone: {0}")]
    Hub(String),
}

/// A rank's connection to its hub.
#[derive(Debug)]
pub struct Meeting {
    wire: Wire,
    ranks: u16,
    all: Option<Vec<Vec<u8>>>,
    lost: Vec<u16>,
    left: Vec<u16>,
    ended: Vec<u16>,
    /// The hub has asked what this rank waits for, and has no answer.
    asked: bool,
    broken: Option<Apart>,
}

impl Meeting {
    /// Joins a job.
    ///
    /// # Errors
    /// The system's: the hub is not reached within 30 seconds.
    pub fn join(job: &Job) -> io::Result<Self> {
        let stream = connect(job.hub)?;
        let mut wire = Wire::new(stream)?;
        let greeting = greeting(job.secret, job.rank, job.ranks, VERSION);
        wire.push(Kind::Join, &greeting);
        wire.flush()?;
        Ok(Self {
            wire,
            ranks: job.ranks,
            all: None,
            lost: Vec::new(),
            left: Vec::new(),
            ended: Vec::new(),
            asked: false,
            broken: None,
        })
    }

    /// This host's address on the way to the hub.
    ///
    /// # Errors
    /// The system's.
    pub fn own_address(&self) -> io::Result<IpAddr> {
        Ok(self.wire.stream.local_addr()?.ip())
    }

    /// Gives `own` and returns what each rank has given. Calls `meanwhile` again and again until
    /// then: it keeps the network going for ranks that are not here yet.
    ///
    /// # Errors
    /// [`Apart`]: it will not come about.
    pub fn gather(
        &mut self,
        own: &[u8],
        mut meanwhile: impl FnMut(),
    ) -> Result<Vec<Vec<u8>>, Apart> {
        self.wire.push(Kind::Gather, own);
        loop {
            self.look();
            if let Some(all) = self.all.take() {
                return Ok(all);
            }
            if let Some(rank) = self.lost.first() {
                return Err(Apart::Lost(*rank));
            }
            if let Some(rank) = self.left.first() {
                return Err(Apart::Left(*rank));
            }
            if let Some(why) = &self.broken {
                return Err(why.clone());
            }
            meanwhile();
            std::thread::yield_now();
        }
    }

    /// The ranks that are known to be lost, in the order in which that was heard.
    pub fn lost(&mut self) -> &[u16] {
        self.look();
        &self.lost
    }

    /// The ranks that are known to have left, in the order in which that was heard.
    pub fn left(&mut self) -> &[u16] {
        self.look();
        &self.left
    }

    /// The ranks that are known to have ended their program in order.
    pub fn ended(&mut self) -> &[u16] {
        self.look();
        &self.ended
    }

    /// Whether the hub has asked what this rank waits for, as far as is known, and has no answer.
    pub fn is_asked(&self) -> bool {
        self.asked
    }

    /// Tells the hub that this rank has said what it waits for.
    pub fn answer(&mut self) {
        self.asked = false;
        self.wire.push(Kind::Answer, &[]);
        self.look();
    }

    /// Tells the hub that this rank has ended its program. It may still be needed.
    pub fn end(&mut self) {
        self.wire.push(Kind::End, &[]);
        self.look();
    }

    /// Whether the hub is gone, as far as is known: nothing more is heard of ranks.
    pub fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    /// Tells the hub that this rank ends in order.
    pub fn leave(mut self) {
        self.wire.push(Kind::Leave, &[]);
        // If the hub is gone, nobody asks.
        let _ = self.wire.flush_all(PATIENCE);
    }

    /// Reads what has come. Does not wait.
    fn look(&mut self) {
        if self.broken.is_some() {
            return;
        }
        let most = usize::from(self.ranks) * (MOST + 4);
        let sent = self.wire.flush();
        // Also where nothing can be sent: the hub may have said why.
        let come = self.wire.fill(most);
        loop {
            match self.wire.next(most) {
                Ok(Some((kind, contents))) => self.hear(kind, &contents),
                Ok(None) => break,
                Err(why) => self.break_off(why.to_string()),
            }
            if self.broken.is_some() {
                return;
            }
        }
        match sent.and(come) {
            Ok(true) => {}
            Ok(false) => self.break_off("it has closed the connection".to_owned()),
            Err(why) => self.break_off(why.to_string()),
        }
    }

    fn break_off(&mut self, why: String) {
        self.broken = Some(Apart::Hub(why));
    }

    fn hear(&mut self, kind: Kind, contents: &[u8]) {
        let rank = || Some(u16::from_le_bytes(contents.try_into().ok()?));
        match (kind, rank()) {
            (Kind::All, _) => match unpack(contents, self.ranks) {
                Some(all) => self.all = Some(all),
                None => self.break_off("a gathering that makes no sense".to_owned()),
            },
            (Kind::Lost, Some(rank)) => self.lost.push(rank),
            (Kind::Left, Some(rank)) => self.left.push(rank),
            (Kind::Ended, Some(rank)) => self.ended.push(rank),
            (Kind::Ask, _) => self.asked = true,
            (Kind::Again, Some(rank)) => self.broken = Some(Apart::Again(rank)),
            _ => self.break_off("a frame that makes no sense".to_owned()),
        }
    }
}

/// The contents of a join frame.
fn greeting(secret: Secret, rank: u16, ranks: u16, version: u16) -> Vec<u8> {
    let numbers = [rank, ranks].map(u16::to_le_bytes).concat();
    [&GREETING[..], &version.to_le_bytes(), &secret.0, &numbers].concat()
}

/// A connection to the hub, which may not listen yet.
fn connect(hub: SocketAddr) -> io::Result<TcpStream> {
    let end = Instant::now() + PATIENCE;
    loop {
        match TcpStream::connect_timeout(&hub, PATIENCE) {
            Err(why) if Instant::now() < end && why.kind() == io::ErrorKind::ConnectionRefused => {
                std::thread::sleep(Duration::from_millis(20));
            }
            other => return other,
        }
    }
}

/// The contributions of all ranks, in one frame.
fn pack(all: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for one in all {
        bytes.extend((one.len() as u32).to_le_bytes());
        bytes.extend(one);
    }
    bytes
}

fn unpack(mut bytes: &[u8], ranks: u16) -> Option<Vec<Vec<u8>>> {
    let mut all = Vec::new();
    for _ in 0..ranks {
        let (len, rest) = bytes.split_first_chunk()?;
        let (one, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
        all.push(one.to_vec());
        bytes = rest;
    }
    bytes.is_empty().then_some(all)
}

#[cfg(test)]
mod tests;
