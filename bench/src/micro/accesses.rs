//! Experiments between two ranks: latency, bandwidth, overlap, rate, atomics.

use flagpost::epoch::Assert;
use flagpost::rma::{Integer, Operation};
use flagpost::{Rank, Rma as _, Session, Tag, Window, World};
use flagpost_hal::{CoreId, Topology as _};
use flagpost_link::Link;
use flagpost_mapped::MappedNative;
use flagpost_sim::{Latencies, Report, SimCore};

use super::{Chip, ONE, Row, TIMES, Timer, chip, in_world, simulate};
use crate::Failure;
use crate::pingpong::{Setup, Variant, halves, measure};
use crate::two_sided::{Channel, Shape};

const ZERO: Rank = Rank::new(0);
const TAG: Tag = Tag(1);
const ANSWER: Tag = Tag(2);

/// Cycles until `bytes` bytes are there: a put with its flush, a get; half of a round trip in each
/// way that [`pingpong`](crate::pingpong) knows.
///
/// # Errors
/// The account of a run that failed.
pub fn latency(bytes: u64) -> Result<Row, Box<Report>> {
    let len = elements(bytes);
    let mut row = in_world(2, 8 * len, chip, |timer, world| {
        let window = world.allocate::<u64>(len)?;
        if world.rank() != ZERO {
            return Ok(());
        }
        let (data, mut into) = (vec![7; len], vec![0; len]);
        let lock = window.lock_shared(ONE)?;
        for _ in 0..TIMES {
            timer.time("put", || {
                lock.put(ONE, 0, &data)?;
                lock.flush(ONE)
            })?;
            timer.time("get", || lock.get(ONE, 0, &mut into))?;
        }
        Ok(lock.unlock()?)
    })?;
    row.extend(halves(Setup::new(Variant::Notified, 8 * len), &WAYS)?);
    Ok(row)
}

const WAYS: [Variant; 8] = [
    Variant::Notified,
    Variant::Stored,
    Variant::NotifiedGet,
    Variant::Pscw,
    Variant::PscwGet,
    Variant::Fence,
    Variant::TwoSided,
    Variant::Bare,
];

/// Elements of so many bytes.
fn elements(bytes: u64) -> usize {
    (bytes as usize / 8).max(1)
}

/// The share of a round trip, in %, that is hidden by computing a tenth longer than it takes,
/// between giving a message and waiting for the one that comes back.
///
/// # Errors
/// The account of a run that failed.
pub fn overlap(bytes: u64) -> Result<Row, Box<Report>> {
    let mut row = Row::new();
    for variant in WAYS.into_iter().filter(|way| *way != Variant::Bare) {
        let idle = Setup::new(variant, 8 * elements(bytes));
        let alone = measure(&idle)?.round;
        let work = alone + alone / 10;
        let together = measure(&Setup {
            work: work as u32,
            ..idle
        })?;
        let hidden = (alone + work).saturating_sub(together.round);
        row.push((variant.name(), (100 * hidden + alone / 2) / alone));
    }
    Ok(row)
}

/// Messages of a stream, and how many streams there are.
const STREAM: usize = 16;
const STREAMS: usize = 4;

/// Megabytes a second of streams of accesses.
///
/// A stream of puts ends with a flush, of notified ones with an answer, of epochs with its
/// synchronization, of messages with an empty one back.
///
/// # Errors
/// The account of a run that failed.
pub fn bandwidth(bytes: u64) -> Result<Row, Box<Report>> {
    let len = elements(bytes);
    let mut row = in_world(2, 8 * len, chip, |timer, world| {
        let window = world.allocate::<u64>(len)?;
        let stream = Stream {
            timer,
            world,
            window: &window,
            data: vec![7; len],
        };
        stream.plain()?;
        stream.notified()?;
        stream.epochs()
    })?;
    row.extend(simulate(2, 8 * len, |core, timer| {
        let end = End::open(core);
        let data = vec![7; 8 * len];
        timer.time("two-sided", || {
            for _ in 0..STREAMS {
                end.turn(&data, STREAM);
            }
        });
        Ok(())
    })?);
    let hertz = Latencies::SccEas.costs().hertz;
    let total = (8 * len * STREAM * STREAMS) as u64;
    for (_, cost) in &mut row {
        *cost = total * (hertz / 1_000_000) / *cost;
    }
    Ok(row)
}

/// One end of a stream.
struct Stream<'a, 'w> {
    timer: &'a Timer<'a>,
    world: &'a World<'w, Chip>,
    window: &'a Window<'a, u64, Chip>,
    data: Vec<u64>,
}

impl Stream<'_, '_> {
    fn is_first(&self) -> bool {
        self.world.rank() == ZERO
    }

    fn plain(&self) -> Result<(), Failure> {
        self.world.barrier()?;
        if !self.is_first() {
            return Ok(());
        }
        let mut into = self.data.clone();
        let lock = self.window.lock_shared(ONE)?;
        self.timer.time("put", || {
            for _ in 0..STREAMS {
                for _ in 0..STREAM {
                    lock.put(ONE, 0, &self.data)?;
                }
                lock.flush(ONE)?;
            }
            Ok::<(), Failure>(())
        })?;
        self.timer.time("get", || {
            (0..STREAMS * STREAM).try_for_each(|_| lock.get(ONE, 0, &mut into))
        })?;
        Ok(lock.unlock()?)
    }

    fn notified(&self) -> Result<(), Failure> {
        let window = self.window;
        for gets in [false, true] {
            // What rank 1 gets told of a read lies nowhere.
            let place = if gets { 0..0 } else { 0..self.data.len() };
            let count = STREAM as u16;
            let mut arrived = window.expect(place, TAG)?.from(ZERO)?.times(count)?;
            let mut answer = window.expect(0..0, ANSWER)?.from(ONE)?;
            let mut into = self.data.clone();
            self.world.barrier()?;
            self.timer
                .time(if gets { "notified-get" } else { "notified" }, || {
                    for _ in 0..STREAMS {
                        if !self.is_first() {
                            arrived.start()?;
                            arrived.wait()?;
                            window.notify(ZERO, ANSWER)?;
                            continue;
                        }
                        answer.start()?;
                        for _ in 0..STREAM {
                            match gets {
                                true => window.get_notify(ONE, 0, &mut into, TAG)?,
                                false => window.put_notify(ONE, 0, &self.data, TAG)?,
                            }
                        }
                        answer.wait()?;
                    }
                    Ok::<(), Failure>(())
                })?;
        }
        Ok(())
    }

    fn epochs(&self) -> Result<(), Failure> {
        let window = self.window;
        let peer = [if self.is_first() { ONE } else { ZERO }];
        let group = self.world.group(&peer)?;
        self.world.barrier()?;
        self.timer.time("pscw", || {
            for _ in 0..STREAMS {
                if !self.is_first() {
                    window.post(&group)?.wait()?;
                    continue;
                }
                let access = window.start(&group)?;
                (0..STREAM).try_for_each(|_| access.put(ONE, 0, &self.data))?;
                access.complete()?;
            }
            Ok::<(), Failure>(())
        })?;
        let mut open = window.fence(Assert::NO_PRECEDE)?;
        self.world.barrier()?;
        self.timer.time("fence", move || {
            for _ in 0..STREAMS {
                if self.is_first() {
                    (0..STREAM).try_for_each(|_| open.put(ONE, 0, &self.data))?;
                }
                open = open.fence(Assert::empty())?;
            }
            Ok::<(), Failure>(open.end()?)
        })
    }
}

/// One end of send and receive.
struct End<'c> {
    core: &'c SimCore,
    channel: Channel<'c, SimCore>,
}

impl<'c> End<'c> {
    fn open(core: &'c SimCore) -> Self {
        let peer = CoreId::new(1 - core.core().get());
        Self {
            core,
            channel: Channel::open(core, peer, Shape::PAIR, [0, 0]),
        }
    }

    /// Core 0 sends messages; core 1 receives them into its memory, and answers.
    fn turn(&self, data: &[u8], messages: usize) {
        use flagpost_hal::{CachedMemory as _, Region};
        let buffer = Region::memory(self.core.core()).at(0);
        for _ in 0..messages {
            if self.core.core().get() == 0 {
                self.channel.send(data);
            } else {
                self.channel.receive(data.len(), |start, piece| {
                    self.core.write(buffer.plus(start), piece);
                });
            }
        }
        match self.core.core().get() {
            0 => self.channel.receive(0, |_, _| ()),
            _ => self.channel.send(&[]),
        }
    }
}

/// Calls whose rate counts, and how many the target takes at a time.
const MANY: usize = 1000;
const TAKEN: u16 = 50;

/// Cycles of one of 1,000 calls that follow each other. What completes them does not count.
///
/// # Errors
/// The account of a run that failed.
pub fn rate(bytes: u64) -> Result<Row, Box<Report>> {
    let len = elements(bytes);
    let mut row = in_world(2, 8 * len, chip, |timer, world| {
        let window = world.allocate::<u64>(len)?;
        let data = vec![7; len];
        let mut arrived = window.expect(0..len, TAG)?.from(ZERO)?.times(TAKEN)?;
        if world.rank() == ONE {
            for _ in 0..MANY / usize::from(TAKEN) {
                arrived.start()?;
                arrived.wait()?;
            }
            return Ok(());
        }
        timer.time("notified", || {
            (0..MANY).try_for_each(|_| window.put_notify(ONE, 0, &data, TAG))
        })?;
        let (lock, last) = (window.lock_shared(ONE)?, vec![8; len]);
        lock.flush(ONE)?; // a put may overtake the data of notifications before it
        timer.time("put", || {
            (0..MANY).try_for_each(|_| lock.put(ONE, 0, &last))
        })?;
        lock.flush(ONE)?;
        let mut found = vec![0; len];
        lock.get(ONE, 0, &mut found)?;
        lock.unlock()?;
        if found == last {
            Ok(())
        } else {
            Err(Failure::Data)
        }
    })?;
    row.extend(simulate(2, 8 * len, |core, timer| {
        let (end, data) = (End::open(core), vec![7; 8 * len]);
        timer.time("two-sided", || end.turn(&data, MANY));
        Ok(())
    })?);
    row.iter_mut().for_each(|(_, cost)| *cost /= MANY as u64);
    Ok(row)
}

/// Cycles of an accumulate, and of what changes one element and gives its former value.
///
/// Elements have 8 bytes, under the owner's lock; `native` ones 4, by the machine's atomics.
///
/// # Errors
/// The account of a run that failed.
pub fn atomics(elements: u64) -> Result<Row, Box<Report>> {
    let len = elements as usize;
    let mut row = in_world(2, 8 * len, chip, |timer, world| {
        changes::<u64, _>(timer, world, len, LOCKED)
    })?;
    let native = |core| MappedNative::start(core, Session::FIRST);
    row.extend(in_world(2, 8 * len, native, |timer, world| {
        changes::<u32, _>(timer, world, len, NATIVE)
    })?);
    Ok(row)
}

const LOCKED: [&str; 5] = ["sum", "min", "get-sum", "fetch-add", "cas"];
const NATIVE: [&str; 5] = [
    "native sum",
    "native min",
    "native get-sum",
    "native fetch-add",
    "native cas",
];

/// Each call changes its elements: what does not change is not stored.
fn changes<T: Integer + From<u8> + PartialEq, L: Link>(
    timer: &Timer<'_>,
    world: &World<'_, L>,
    len: usize,
    names: [&'static str; 5],
) -> Result<(), Failure> {
    let window = world.allocate::<T>(len)?;
    if world.rank() != ZERO {
        return Ok(());
    }
    let lock = window.lock_shared(ONE)?;
    let [sum, min, get_sum, fetch_add, cas] = names;
    let (one, mut old) = (vec![T::from(1); len], vec![T::from(0); len]);
    let large = vec![T::from(200); len];
    for time in 0..TIMES as u8 {
        lock.put(ONE, 0, &large)?;
        let less = vec![T::from(100 - time); len];
        timer.time(min, || lock.accumulate(ONE, 0, &less, Operation::MIN))?;
        timer.time(sum, || lock.accumulate(ONE, 0, &one, Operation::SUM))?;
        timer.time(get_sum, || {
            lock.get_accumulate(ONE, 0, &one, Operation::SUM, &mut old)
        })?;
        if len > 1 {
            continue;
        }
        let former = timer.time(fetch_add, || {
            lock.fetch_and_op(ONE, 0, T::from(1), Operation::SUM)
        })?;
        let seen = T::from(102 - time);
        if former != seen {
            return Err(Failure::Data);
        }
        timer.time(cas, || {
            lock.compare_and_swap(ONE, 0, T::from(103 - time), T::from(7))
        })?;
    }
    Ok(lock.unlock()?)
}
