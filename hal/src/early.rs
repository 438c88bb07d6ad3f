//! [`Early`]: reads before the wait. A rank starts a request for bytes that a peer puts, and reads
//! them before the request is complete. It finds old or new bytes. Machines that give an account of
//! a run keep an `Early` per rank, which finds such reads.
//!
//! # Which reads are told
//! When a request ends, a read of its bytes since its start is told if the bytes are others now,
//! and if the rank has told no other rank anything since the read. So no peer can have waited for
//! the read, and a put has changed the bytes. Of reads that found the same bytes, the machine may
//! know more: it gives each event a `stamp`, and gets those of the start back.
//!
//! # Bounds
//! It watches the last [`REQUESTS`] requests, and the last [`READS`] reads.

use core::panic::Location;

use crate::Address;

/// How many requests are watched.
const REQUESTS: usize = 32;

/// How many reads.
const READS: usize = 8;

/// Loads bytes at a distance.
type Load<'a> = dyn Fn(usize, &mut [u8]) + 'a;

type Place = Option<&'static Location<'static>>;

/// A step of a program with bytes of its own that peers may put.
#[derive(Copy, Clone)]
pub enum Expected<'a> {
    /// A request for them is started.
    Starts,
    /// It has read them, and found these.
    Reads(&'a [u8]),
    /// A request for them has ended. This loads what the program would find from a distance of the
    /// first of them on; none if the request was cancelled.
    Ends(Option<&'a Load<'a>>),
}

/// A read before the wait.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct EarlyRead {
    /// The first byte.
    pub at: Address,
    /// How many.
    pub len: usize,
    /// The program's call that has read.
    pub place: Place,
    /// Its call that has started the request.
    pub started: Place,
    /// The bytes are others now.
    pub changed: bool,
    /// The stamp of the start, or of the last refresh after that.
    pub since: u32,
    hash: u64,
    request: u32,
}

#[derive(Copy, Clone)]
struct Started {
    at: Address,
    len: usize,
    place: Place,
    since: u32,
    number: u32,
}

/// The started requests of a rank, and its reads of their bytes.
#[derive(Default)]
pub struct Early {
    requests: [Option<Started>; REQUESTS],
    reads: [Option<EarlyRead>; READS],
    next: u32,
}

impl Early {
    /// The rank may have told others something: later puts may come after its reads.
    pub fn tells(&mut self) {
        self.reads = [None; READS];
    }

    /// The rank finds in these bytes what was there at `stamp`.
    pub fn refreshed(&mut self, at: Address, len: usize, stamp: u32) {
        let met = self.requests.iter_mut().flatten();
        met.filter(|one| meet((one.at, one.len), (at, len)))
            .for_each(|one| one.since = stamp);
    }

    /// The program calls at `place` about `len` bytes at `at`. Gives its reads before the end of
    /// the request, if it ends here: [`changed`](EarlyRead::changed) says which are told in any
    /// case.
    pub fn note(
        &mut self,
        (at, len): (Address, usize),
        what: Expected<'_>,
        place: Place,
        stamp: u32,
    ) -> impl Iterator<Item = EarlyRead> + use<> {
        let mut found = [None; READS];
        match what {
            Expected::Starts => {
                let (number, since) = (self.next, stamp);
                self.next = number.wrapping_add(1);
                self.requests[number as usize % REQUESTS] = Some(Started {
                    at,
                    len,
                    place,
                    since,
                    number,
                });
            }
            Expected::Reads(bytes) => {
                let all = self.requests.iter().flatten();
                for one in all.filter(|one| meet((one.at, one.len), (at, len))) {
                    let goes_on = |read: &&mut EarlyRead| {
                        (read.request, read.since, read.place) == (one.number, one.since, place)
                            && read.at.plus(read.len) == at
                    };
                    // A loop of calls is one read.
                    if let Some(read) = self.reads.iter_mut().flatten().find(goes_on) {
                        read.len += len;
                        read.hash = hash(read.hash, bytes);
                        continue;
                    }
                    self.reads.rotate_right(1);
                    self.reads[0] = Some(EarlyRead {
                        at,
                        len,
                        place,
                        started: one.place,
                        changed: false,
                        since: one.since,
                        hash: hash(EMPTY, bytes),
                        request: one.number,
                    });
                }
            }
            Expected::Ends(now) => {
                let is = |one: &Started| (one.at, one.len) == (at, len);
                let ended = self
                    .requests
                    .iter_mut()
                    .find(|one| one.is_some_and(|one| is(&one)));
                if let Some(Started { number, .. }) = ended.and_then(Option::take) {
                    let reads = self.reads.iter_mut();
                    let ours = reads.filter(|read| read.is_some_and(|read| read.request == number));
                    found
                        .iter_mut()
                        .zip(ours)
                        .for_each(|(to, read)| *to = read.take());
                }
                match now {
                    None => found = [None; READS],
                    Some(now) => found.iter_mut().flatten().for_each(|read| {
                        read.changed = read.hash != read.now(at, now);
                    }),
                }
            }
        }
        found.into_iter().flatten()
    }
}

impl EarlyRead {
    /// The hash of what a program would read there now; `now` counts from `first` on.
    fn now(&self, first: Address, now: &Load<'_>) -> u64 {
        let mut chunk = [0; 64];
        let distance = self.at.offset.wrapping_sub(first.offset);
        (0..self.len).step_by(chunk.len()).fold(EMPTY, |old, done| {
            let part = &mut chunk[..(self.len - done).min(64)];
            now(distance.wrapping_add(done), part);
            hash(old, part)
        })
    }
}

/// True if a byte is in both.
fn meet((one, len): (Address, usize), (other, others): (Address, usize)) -> bool {
    one.region == other.region
        && one.offset < other.offset + others
        && other.offset < one.offset + len
}

/// The hash of no bytes.
const EMPTY: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a of more bytes.
fn hash(old: u64, bytes: &[u8]) -> u64 {
    let more = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(old, more)
}
