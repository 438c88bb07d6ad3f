//! What is measured, as a program would do it.

use std::time::{Duration, Instant};

use flagpost::epoch::Lock;
use flagpost::{Error, Link, Rank, Rma as _, Tag, Window, World};

/// Rounds of a batch at most: a request counts up to as many notifications.
pub(crate) const MOST_ROUNDS: u64 = 60_000;

const ZERO: Rank = Rank::new(0);
const ONE: Rank = Rank::new(1);
const TAG: Tag = Tag(1);

/// What a round is, and what is told of it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// There and back, of which half is told.
    PingPong,
    /// A stream of notified puts; the target answers when all have come.
    Notified,
    /// A stream of puts, and a flush after the last.
    Puts,
    /// As many puts as may be in flight at a time, and a flush.
    Bandwidth,
    /// A get.
    Gets,
}

impl Kind {
    /// The name that `raw.c` knows.
    pub(crate) const fn raw(self) -> &'static str {
        match self {
            Self::PingPong => "ping-pong",
            Self::Notified => "notified",
            Self::Puts => "puts",
            Self::Bandwidth => "bandwidth",
            Self::Gets => "gets",
        }
    }

    /// Whether less is better.
    pub(crate) const fn is_time(self) -> bool {
        matches!(self, Self::PingPong | Self::Gets)
    }

    pub(crate) const fn unit(self) -> &'static str {
        match self {
            Self::PingPong | Self::Gets => "us",
            Self::Notified | Self::Puts => "M/s",
            Self::Bandwidth => "GiB/s",
        }
    }
}

/// A figure. Rank 0's clock counts.
pub(crate) struct Figure<L: Link> {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) bytes: usize,
    /// Puts in flight at a time.
    pub(crate) window: u64,
    /// Of the ratio to bare libfabric: a time has at most that, all else at least.
    pub(crate) limit: Option<f64>,
    pub(crate) call: fn(&Stage<'_, L>, u64) -> Result<Duration, Error>,
}

impl<L: Link> Figure<L> {
    /// All of them, in the order in which they are printed.
    pub(crate) fn all() -> Vec<Self> {
        let bandwidth = |bytes, window| Self {
            name: "put, bandwidth",
            kind: Kind::Bandwidth,
            bytes,
            window,
            limit: Some(0.95),
            call: bandwidth,
        };
        let get = |bytes| Self {
            name: "get",
            kind: Kind::Gets,
            bytes,
            window: 1,
            limit: None,
            call: gets,
        };
        vec![
            Self {
                name: "put_notify, half a round trip",
                kind: Kind::PingPong,
                bytes: 8,
                window: 1,
                limit: Some(1.15),
                call: ping_pong,
            },
            Self {
                name: "put_notify, rate",
                kind: Kind::Notified,
                bytes: 8,
                window: 1,
                limit: Some(0.85),
                call: notified,
            },
            Self {
                name: "put, rate",
                kind: Kind::Puts,
                bytes: 8,
                window: 1,
                limit: Some(0.85),
                call: puts,
            },
            // 4 MiB in flight at a time, of either size.
            bandwidth(64 << 10, 64),
            bandwidth(1 << 20, 4),
            get(8),
            get(64 << 10),
            get(1 << 20),
        ]
    }

    /// Rounds of the batch that tells how many fit.
    pub(crate) fn first_rounds(&self) -> u64 {
        if self.bytes > 8 { 4 } else { 500 }
    }

    /// What is told of `rounds` rounds that took `time`.
    pub(crate) fn value(&self, time: Duration, rounds: u64) -> f64 {
        let (seconds, rounds) = (time.as_secs_f64(), rounds as f64);
        match self.kind {
            Kind::PingPong => seconds * 1e6 / rounds / 2.0,
            Kind::Gets => seconds * 1e6 / rounds,
            Kind::Notified | Kind::Puts => rounds / seconds / 1e6,
            Kind::Bandwidth => {
                let bytes = rounds * self.window as f64 * self.bytes as f64;
                bytes / seconds / f64::from(1 << 30)
            }
        }
    }
}

/// What a rank has to measure with.
pub(crate) struct Stage<'w, L: Link> {
    world: &'w World<'w, L>,
    window: Window<'w, u64, L>,
    /// Elements of a put or a get, and how many puts lie side by side.
    len: usize,
    many: usize,
}

impl<'w, L: Link> Stage<'w, L> {
    pub(crate) fn new(world: &'w World<'w, L>, figure: &Figure<L>) -> Result<Self, Error> {
        let (len, many) = (figure.bytes / 8, figure.window as usize);
        let window = world.allocate(len * many)?;
        Ok(Self {
            world,
            window,
            len,
            many,
        })
    }

    fn is_first(&self) -> bool {
        self.world.rank() == ZERO
    }

    /// What rank 0 does under a lock of rank 1's piece, while rank 1 waits in a barrier.
    fn alone(
        &self,
        work: impl FnOnce(&Lock<'_, 'w, u64, L>) -> Result<(), Error>,
    ) -> Result<Duration, Error> {
        self.world.barrier()?;
        if !self.is_first() {
            return Ok(Duration::ZERO);
        }
        let lock = self.window.lock_shared(ONE)?;
        let start = Instant::now();
        work(&lock)?;
        let time = start.elapsed();
        lock.unlock()?;
        Ok(time)
    }
}

fn ping_pong<L: Link>(stage: &Stage<'_, L>, rounds: u64) -> Result<Duration, Error> {
    let peer = if stage.is_first() { ONE } else { ZERO };
    let mut ball = stage.window.expect(0..1, TAG)?.from(peer)?;
    ball.start()?;
    stage.world.barrier()?;
    let start = Instant::now();
    for round in 0..rounds {
        if stage.is_first() {
            stage.window.put_notify(peer, 0, &[round], TAG)?;
        }
        ball.wait()?;
        ball.start()?;
        if !stage.is_first() {
            stage.window.put_notify(peer, 0, &[round], TAG)?;
        }
    }
    let time = start.elapsed();
    ball.cancel()?;
    Ok(time)
}

fn notified<L: Link>(stage: &Stage<'_, L>, rounds: u64) -> Result<Duration, Error> {
    let (peer, count) = match stage.is_first() {
        true => (ONE, 1),
        false => (ZERO, rounds as u16),
    };
    let mut arrived = stage.window.expect(0..1, TAG)?.from(peer)?.times(count)?;
    arrived.start()?;
    stage.world.barrier()?;
    let start = Instant::now();
    if stage.is_first() {
        for round in 0..rounds {
            stage.window.put_notify(peer, 0, &[round], TAG)?;
        }
        arrived.wait()?;
    } else {
        arrived.wait()?;
        stage.window.put_notify(peer, 0, &[rounds], TAG)?;
    }
    Ok(start.elapsed())
}

fn puts<L: Link>(stage: &Stage<'_, L>, rounds: u64) -> Result<Duration, Error> {
    stage.alone(|lock| {
        for round in 0..rounds {
            lock.put(ONE, 0, &[round])?;
        }
        lock.flush(ONE)
    })
}

fn bandwidth<L: Link>(stage: &Stage<'_, L>, rounds: u64) -> Result<Duration, Error> {
    let from = vec![7; stage.len];
    stage.alone(|lock| {
        for _ in 0..rounds {
            for put in 0..stage.many {
                lock.put(ONE, put * stage.len, &from)?;
            }
            lock.flush(ONE)?;
        }
        Ok(())
    })
}

fn gets<L: Link>(stage: &Stage<'_, L>, rounds: u64) -> Result<Duration, Error> {
    let mut into = vec![0; stage.len];
    stage.alone(|lock| {
        for _ in 0..rounds {
            lock.get(ONE, 0, &mut into)?;
        }
        Ok(())
    })
}
