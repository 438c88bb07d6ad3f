//! What is measured.

use std::cell::RefCell;
use std::hint::black_box;

use flagpost::bytemuck::Pod;
use flagpost::epoch::Lock;
use flagpost::rma::{Integer, Operation};
use flagpost::{Error, Link, Rank, Request, Rma as _, Source, Tag, Window, World};

use super::raw::{ENTRY, Raw};

/// A figure. Rank 0's clock counts.
pub(crate) struct Figure<L: Link> {
    pub(crate) name: &'static str,
    pub(crate) ranks: u16,
    pub(crate) bytes: usize,
    pub(crate) rounds: u64,
    /// Whether a round is there and back, of which half is the figure.
    pub(crate) halves: bool,
    /// So many rounds of it, at every rank.
    pub(crate) call: fn(&Stage<'_, '_, L>, u64) -> Result<(), Error>,
    /// What it is compared with, and the name of that; the bare line if it is none.
    pub(crate) bare: Option<fn(&Stage<'_, '_, L>, u64)>,
    pub(crate) raw: &'static str,
    /// Of the ratio.
    pub(crate) limit: Option<f64>,
}

const fn figure<L: Link>(
    name: &'static str,
    rounds: u64,
    limit: Option<f64>,
    call: fn(&Stage<'_, '_, L>, u64) -> Result<(), Error>,
) -> Figure<L> {
    Figure {
        name,
        ranks: 2,
        bytes: 8,
        rounds,
        halves: false,
        call,
        bare: None,
        raw: "line",
        limit,
    }
}

impl<L: Link> Figure<L> {
    const fn half(mut self) -> Self {
        self.halves = true;
        self
    }

    const fn beside(mut self, raw: &'static str, bare: fn(&Stage<'_, '_, L>, u64)) -> Self {
        self.raw = raw;
        self.bare = Some(bare);
        self
    }

    const fn bytes(mut self, bytes: usize) -> Self {
        self.bytes = bytes;
        self
    }

    const fn ranks(mut self, ranks: u16) -> Self {
        self.ranks = ranks;
        self.bytes = 0;
        self
    }

    /// Messages of an entry of a naive ring among `ranks`, beside such rings.
    const fn crowd(mut self, ranks: u16, bare: fn(&Stage<'_, '_, L>, u64)) -> Self {
        self.ranks = ranks;
        self.bytes = 8 * ENTRY;
        self.beside("naive ring", bare)
    }
}

const NOTIFIED: &str = "put_notify to notified";

impl<L: Link> Figure<L> {
    /// All of them, in the order in which they are printed.
    pub(crate) fn all() -> Vec<Self> {
        let mut all = vec![
            figure("bare flags in two lines", 20_000, None, flags)
                .half()
                .bytes(0),
            figure(NOTIFIED, 20_000, Some(1.1), ping_pong)
                .half()
                .beside("flag", bare_flags),
        ];
        all.extend([(2_000, 32 << 10), (100, 1 << 20)].map(|(rounds, bytes)| {
            let figure = figure(NOTIFIED, rounds, Some(1.1), ping_pong).half();
            figure.bytes(bytes).beside("memcpy, flag", copies)
        }));
        all.extend([
            figure("epoch, its origin", 20_000, Some(1.1), |stage, rounds| {
                epochs(stage, rounds, 0)
            })
            .bytes(0)
            .beside("2 flags", bare_flags),
            figure("epoch, its target", 20_000, Some(1.1), |stage, rounds| {
                epochs(stage, rounds, 1)
            })
            .bytes(0)
            .beside("2 flags", bare_flags),
            figure("fetch_and_op", 20_000, Some(1.5), |stage, rounds| {
                fetch_and_op(stage, &stage.words, rounds)
            })
            .bytes(4)
            .beside("fetch_add", |stage, rounds| stage.alone(rounds, Raw::add)),
            figure("compare_and_swap", 20_000, Some(1.5), compare_and_swap)
                .bytes(4)
                .beside("compare_exchange", |stage, rounds| {
                    stage.alone(rounds, Raw::compare_swap);
                }),
            figure("fetch_and_op", 20_000, None, |stage, rounds| {
                fetch_and_op(stage, &stage.window, rounds)
            })
            .beside("fetch_add", |stage, rounds| stage.alone(rounds, Raw::add)),
            figure("exclusive lock, unlock", 20_000, Some(1.5), exclusive)
                .bytes(0)
                .beside("4 fetch_adds", |stage, rounds| {
                    stage.alone(rounds, Raw::lock)
                }),
            figure("put, one after the other", 100_000, None, puts),
            figure(
                "put_notify, one after the other",
                50_000,
                None,
                put_notifies,
            ),
            figure("get", 20_000, None, gets),
        ]);
        const MANY: [(u16, u64); 4] = [(2, 10_000), (4, 500), (8, 200), (16, 100)];
        let many =
            |name, call| MANY.map(|(ranks, rounds)| figure(name, rounds, None, call).ranks(ranks));
        all.extend(many("barrier", barrier));
        all.extend(many("put_notify round a ring", ring));
        const CROWDS: [u16; 3] = [3, 4, 8];
        // Where ranks share processors: there and back in pairs; one message that is handed on from
        // rank to rank; in pairs, one way.
        all.extend(CROWDS.map(|ranks| {
            let pairs = figure("crowded: pairs", 3_000, None, ping_pong);
            pairs.half().crowd(ranks, bare_pairs)
        }));
        all.extend(CROWDS.map(|ranks| {
            let handed = figure("crowded: handed on", 500, None, handed_on);
            handed.crowd(ranks, bare_handed_on)
        }));
        all.extend(CROWDS.map(|ranks| {
            let streams = figure("crowded: one after the other", 20_000, None, put_notifies);
            streams.crowd(ranks, bare_streams)
        }));
        all
    }
}

const TAG: Tag = Tag(1);
const ONE: Rank = Rank::new(1);

/// What a rank has to measure with.
pub(crate) struct Stage<'a, 'w, L: Link> {
    world: &'w World<'w, L>,
    raw: &'a Raw,
    me: usize,
    peer: Rank,
    window: Window<'w, u64, L>,
    words: Window<'w, u32, L>,
    /// What is sent, and where what came is copied.
    from: Vec<u64>,
    into: RefCell<Vec<u64>>,
}

impl<'a, 'w, L: Link> Stage<'a, 'w, L> {
    pub(crate) fn new(world: &'w World<'w, L>, raw: &'a Raw, bytes: usize) -> Result<Self, Error> {
        let me = world.rank().index();
        let elements = (bytes / 8).max(1);
        Ok(Self {
            world,
            raw,
            me,
            peer: Rank::new(me as u16 ^ 1),
            window: world.allocate(elements)?,
            words: world.allocate(1)?,
            from: vec![7; elements],
            into: RefCell::new(vec![0; elements]),
        })
    }

    /// Whether this rank has a part in the figure: the last one of an odd number has no peer.
    pub(crate) fn has_part(&self) -> bool {
        self.peer.get() < self.world.size()
    }

    /// Whether it is the first of its pair.
    fn is_first(&self) -> bool {
        self.me & 1 == 0
    }

    /// What rank 0 does while the other waits.
    fn alone(&self, rounds: u64, what: fn(&Raw, u64)) {
        if self.me == 0 {
            what(self.raw, rounds);
        }
    }

    fn request(&self, from: impl Into<Source>, count: u16) -> Result<Request<'_, L>, Error> {
        let request = self.window.expect(0..self.from.len(), TAG)?;
        request.from(from)?.times(count)
    }
}

/// Two flags, in lines of their own: what a message each way takes at least that does not come back
/// through the line it came in.
fn flags<L: Link>(stage: &Stage<'_, '_, L>, rounds: u64) -> Result<(), Error> {
    stage.raw.reset();
    stage.world.barrier()?;
    stage.raw.copies(stage.me, rounds, &[], &mut []);
    Ok(())
}

/// The same, as what messages each way are compared with: a round is two of them.
fn bare_flags<L: Link>(stage: &Stage<'_, '_, L>, rounds: u64) {
    stage.raw.copies(stage.me, rounds, &[], &mut []);
}

/// A notified put there, and one back, as in [NA]'s Listing 1: who has put starts its request, and
/// waits; and who is told copies the data out of the window.
///
/// [NA]: flagpost#sources
fn ping_pong<L: Link>(stage: &Stage<'_, '_, L>, rounds: u64) -> Result<(), Error> {
    if !stage.has_part() {
        return stage.world.barrier();
    }
    let mut into = stage.into.borrow_mut();
    let mut arrived = stage.request(stage.peer, 1)?;
    if !stage.is_first() {
        arrived.start()?;
    }
    stage.world.barrier()?;
    for _ in 0..rounds {
        for side in [true, false] {
            if side == stage.is_first() {
                stage.window.put_notify(stage.peer, 0, &stage.from, TAG)?;
                arrived.start()?;
            } else {
                arrived.wait()?;
                stage.window.local().copy_out(0, &mut into)?;
            }
        }
    }
    if arrived.is_started() {
        arrived.cancel()?;
    }
    Ok(())
}

fn copies<L: Link>(stage: &Stage<'_, '_, L>, rounds: u64) {
    stage
        .raw
        .copies(stage.me, rounds, &stage.from, &mut stage.into.borrow_mut());
}

/// Empty epochs between rank `origin` and the other.
fn epochs<L: Link>(stage: &Stage<'_, '_, L>, rounds: u64, origin: usize) -> Result<(), Error> {
    let only = [stage.peer];
    let group = stage.world.group(&only)?;
    for _ in 0..rounds {
        if stage.me == origin {
            stage.window.start(&group)?.complete()?;
        } else {
            let exposure = stage.window.post(&group)?;
            exposure.wait()?;
        }
    }
    Ok(())
}

/// Rank 0 alone under a shared lock of rank 1's piece, which it gives back then.
fn locked<'w, T: Pod, L: Link>(
    stage: &Stage<'_, 'w, L>,
    window: &Window<'w, T, L>,
    work: impl FnOnce(&Lock<'_, 'w, T, L>) -> Result<(), Error>,
) -> Result<(), Error> {
    if stage.me != 0 {
        return Ok(());
    }
    let lock = window.lock_shared(ONE)?;
    work(&lock)?;
    lock.unlock()
}

fn fetch_and_op<'w, T: Integer + From<u8>, L: Link>(
    stage: &Stage<'_, 'w, L>,
    window: &Window<'w, T, L>,
    rounds: u64,
) -> Result<(), Error> {
    locked(stage, window, |lock| {
        for _ in 0..rounds {
            lock.fetch_and_op(ONE, 0, T::from(1), Operation::SUM)?;
        }
        Ok(())
    })
}

fn compare_and_swap<L: Link>(stage: &Stage<'_, '_, L>, rounds: u64) -> Result<(), Error> {
    locked(stage, &stage.words, |lock| {
        let mut old = lock.fetch_and_op(ONE, 0, 0, Operation::SUM)?;
        for _ in 0..rounds {
            let new = old.wrapping_add(1);
            let found = lock.compare_and_swap(ONE, 0, old, new)?;
            // Nobody else changes it.
            old = black_box(if found == old { new } else { found });
        }
        Ok(())
    })
}

fn exclusive<L: Link>(stage: &Stage<'_, '_, L>, rounds: u64) -> Result<(), Error> {
    if stage.me != 0 {
        return Ok(());
    }
    for _ in 0..rounds {
        let lock = stage.window.lock_exclusive(ONE)?;
        lock.unlock()?;
    }
    Ok(())
}

fn puts<L: Link>(stage: &Stage<'_, '_, L>, rounds: u64) -> Result<(), Error> {
    locked(stage, &stage.window, |lock| {
        for _ in 0..rounds {
            lock.put(ONE, 0, &stage.from)?;
        }
        lock.flush(ONE)
    })
}

/// The second of a pair takes what comes as it comes, so this is the rate of the slower side.
fn put_notifies<L: Link>(stage: &Stage<'_, '_, L>, rounds: u64) -> Result<(), Error> {
    /// How many a request waits for.
    const MANY: u16 = 50;
    if !stage.has_part() {
        return Ok(());
    }
    if !stage.is_first() {
        let mut arrived = stage.request(stage.peer, MANY)?;
        for _ in 0..rounds / u64::from(MANY) {
            arrived.start()?;
            arrived.wait()?;
        }
        return Ok(());
    }
    for _ in 0..rounds {
        stage.window.put_notify(stage.peer, 0, &stage.from, TAG)?;
    }
    Ok(())
}

fn gets<L: Link>(stage: &Stage<'_, '_, L>, rounds: u64) -> Result<(), Error> {
    let mut into = stage.into.borrow_mut();
    locked(stage, &stage.window, |lock| {
        for _ in 0..rounds {
            lock.get(ONE, 0, &mut into)?;
        }
        Ok(())
    })
}

fn barrier<L: Link>(stage: &Stage<'_, '_, L>, rounds: u64) -> Result<(), Error> {
    for _ in 0..rounds {
        stage.world.barrier()?;
    }
    Ok(())
}

/// Every rank tells the next and waits for the one before.
fn ring<L: Link>(stage: &Stage<'_, '_, L>, rounds: u64) -> Result<(), Error> {
    let size = stage.world.size();
    let me = stage.world.rank();
    let mut arrived = stage.request(me.prev(size), 1)?;
    for _ in 0..rounds {
        arrived.start()?;
        stage.window.put_notify(me.next(size), 0, &[1], TAG)?;
        arrived.wait()?;
    }
    Ok(())
}

/// One message goes round all ranks: all but one wait. A round is as many messages as ranks.
fn handed_on<L: Link>(stage: &Stage<'_, '_, L>, rounds: u64) -> Result<(), Error> {
    let mut into = stage.into.borrow_mut();
    let (me, size) = (stage.world.rank(), stage.world.size());
    let pass_on = || stage.window.put_notify(me.next(size), 0, &stage.from, TAG);
    let mut arrived = stage.request(me.prev(size), 1)?;
    arrived.start()?;
    stage.world.barrier()?;
    for _ in 0..rounds / u64::from(size) {
        if stage.me == 0 {
            pass_on()?;
        }
        arrived.wait()?;
        stage.window.local().copy_out(0, &mut into)?;
        arrived.start()?;
        if stage.me != 0 {
            pass_on()?;
        }
    }
    arrived.cancel()
}

// ---- The same over naive rings ----

fn bare_pairs<L: Link>(stage: &Stage<'_, '_, L>, rounds: u64) {
    if !stage.has_part() {
        return;
    }
    for _ in 0..rounds {
        for side in [true, false] {
            if side == stage.is_first() {
                stage.raw.send(stage.peer.index(), &[7; ENTRY]);
            } else {
                black_box(stage.raw.take(stage.me));
            }
        }
    }
}

fn bare_handed_on<L: Link>(stage: &Stage<'_, '_, L>, rounds: u64) {
    let size = stage.world.size();
    let next = stage.world.rank().next(size).index();
    for _ in 0..rounds / u64::from(size) {
        if stage.me == 0 {
            stage.raw.send(next, &[7; ENTRY]);
        }
        black_box(stage.raw.take(stage.me));
        if stage.me != 0 {
            stage.raw.send(next, &[7; ENTRY]);
        }
    }
}

fn bare_streams<L: Link>(stage: &Stage<'_, '_, L>, rounds: u64) {
    for _ in 0..rounds {
        if !stage.has_part() {
            return;
        }
        if stage.is_first() {
            stage.raw.send(stage.peer.index(), &[7; ENTRY]);
        } else {
            black_box(stage.raw.take(stage.me));
        }
    }
}
