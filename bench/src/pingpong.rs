//! Ping-pong: half of the time that a message takes there and back, in several ways.
//!
//! Two cores on neighbouring tiles of an SCC, alone or in a larger world, in simulated time. In
//! each round rank 0 sends `bytes` bytes to rank 1, which reads all of them, and sends as many
//! back, which rank 0 reads. Nothing else happens: no barrier, no computing.
//!
//! | variant | sends by | waits by |
//! |---|---|---|
//! | `notified` | `put_notify` | a persistent request's `start`, `wait` |
//! | `stored` | the same, whose data go to their place and not through the ring | the same |
//! | `pscw` | `start`, `put`, `complete` | `post`, `wait` |
//! | `fence` | `put`, `fence` | `fence`; each fence asserts what is true of it |
//! | `two-sided` | [`Channel::send`] | [`Channel::receive`] |
//! | `bare` | a store past the caches | polls of the first and last word: no program may do so |
//! | `notified-get` | the peer's `get_notify` | the same |
//! | `pscw-get` | the peer's `start`, `get`, `complete` | the same, then `post`, `wait` |
//!
//! With gets the two ranks get each other's data by turns; no data are stored meanwhile.
//!
//! A core reads the data from its piece of the window. `two-sided` receives into a buffer in the
//! core's own memory, and reads from that.
//!
//! # Alike in all of them
//! * The data come from the sender's registers, which costs nothing in any variant: the simulator
//!   charges for shared memory.
//! * They end in the receiver's memory, and are read there, all of them and once, through the
//!   cache. Windows lie behind the receiver's memory controller; the receive buffer lies there too,
//!   but its lines stay in the cache, as those of private memory do.
//! * A first few rounds warm up. Then the mean of the rounds, halved; what arrived is compared with
//!   what was sent.
//! * A core that waits looks at its words once per turn, which takes about as long as a short
//!   message. If all rounds were alike, each message would come at the same moment of a turn: in
//!   one variant just before the look, in another just behind. So before it sends, a core computes
//!   for 0 to 127 cycles, another number in each round, which do not count.
//!
//! Windows are as large as the message, so that no epoch keeps more lines coherent than it must.
//! Posts are made as early as they can be, behind `complete`.

use std::cell::RefCell;
use std::fmt;

use clap::{Args, ValueEnum};
use flagpost::epoch::Assert;
use flagpost::{Rank, Rma as _, Tag, Window, World};
use flagpost_hal::{
    CachedMemory as _, Coherence as _, CoreId, Lines, Region, Relax as _, Topology as _,
    UncachedMemory as _, Watch,
};
use flagpost_sim::{Config, Counters, Latencies, Marked, Mesh, Report, SimCore};

use crate::micro::Row;
use crate::two_sided::{Channel, Shape};
use crate::{BUFFER, Chip, Failure, in_world, run};

/// Bytes of the default sizes: 8 to 64 KiB.
pub const SIZES: [usize; 14] = [
    8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536,
];

/// Largest message.
pub const BYTES_MAX: usize = 256 << 10;

/// Most cores.
pub const CORES_MAX: u16 = 48;

/// Tiles in a row, at most.
const COLUMNS: u16 = 8;

/// Rounds before those that count.
const WARM: usize = 9;

/// Most cycles that a core computes before it sends, and one more: more than a turn of a core that
/// waits.
const SPREAD: usize = 128;

/// Label of the marks at the ends of rounds.
const ROUND: &str = "round";

/// How a message travels.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub enum Variant {
    /// Notified access
    Notified,
    /// Notified access without data in the ring: `Window::set_inline(false)`
    Stored,
    /// An epoch of post, start, complete, wait
    Pscw,
    /// Fences of both ranks
    Fence,
    /// Send and receive over message buffers
    TwoSided,
    /// Send and receive with the share of the buffers that each of all pairs has
    #[value(name = "share")]
    TwoSidedShare,
    /// A store, and polls of its two ends: the lower bound
    Bare,
    /// Notified gets, by turns
    NotifiedGet,
    /// Gets in epochs, by turns
    PscwGet,
}

impl Variant {
    /// Those whose programs are right, and whose data are put.
    pub const ALL: [Self; 4] = [Self::Notified, Self::Pscw, Self::Fence, Self::TwoSided];

    /// Its name in commands.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Notified => "notified",
            Self::Stored => "stored",
            Self::Pscw => "pscw",
            Self::Fence => "fence",
            Self::TwoSided => "two-sided",
            Self::TwoSidedShare => "share",
            Self::Bare => "bare",
            Self::NotifiedGet => "notified-get",
            Self::PscwGet => "pscw-get",
        }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What to measure.
#[derive(Args, Copy, Clone, Debug)]
pub struct Setup {
    /// How messages travel.
    #[arg(skip = Variant::Notified)]
    pub variant: Variant,
    /// Bytes of a message: a multiple of 8, at most [`BYTES_MAX`].
    #[arg(skip = 8_usize)]
    pub bytes: usize,
    /// Distance of the two cores: 0 on one tile, 1 on neighbouring ones
    #[arg(long, value_name = "HOPS", default_value = "1", value_parser = clap::value_parser!(u16).range(..=1), allow_negative_numbers = true)]
    pub hops: u16,
    /// Cores of the world: 2 to 48, of which all but two do nothing, or fence
    #[arg(long, value_name = "N", default_value = "2", value_parser = clap::value_parser!(u16).range(2..=i64::from(CORES_MAX)), allow_negative_numbers = true)]
    pub cores: u16,
    /// What accesses cost: scc-eas, scc-barrelfish, cxl; et and tensix-bh are assumptions only
    #[arg(long, value_name = "NAME", default_value = "scc-eas")]
    pub latencies: Latencies,
    /// Rounds that count.
    #[arg(skip = SPREAD)]
    pub rounds: usize,
    /// Core cycles that rank 0 computes between sending and waiting.
    #[arg(skip = 0_u32)]
    pub work: u32,
}

impl Setup {
    /// Neighbouring tiles, the formulas.
    pub const fn new(variant: Variant, bytes: usize) -> Self {
        Self {
            variant,
            bytes,
            hops: 1,
            cores: 2,
            latencies: Latencies::SccEas,
            rounds: SPREAD,
            work: 0,
        }
    }
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Mean of the rounds, in core cycles.
    pub round: u64,
    /// What rank 0 had done when the last round began, and when it ended.
    pub counters: [Counters; 2],
}

impl Measured {
    /// Half of a round, rounded up.
    pub const fn half(&self) -> u64 {
        self.round.div_ceil(2)
    }
}

/// Half of a round trip in each of these variants.
///
/// # Errors
/// The account of a run that failed.
pub fn halves(setup: Setup, variants: &[Variant]) -> Result<Row, Box<Report>> {
    let half = |&variant: &Variant| {
        let measured = measure(&Setup { variant, ..setup })?;
        Ok((variant.name(), measured.half()))
    };
    variants.iter().map(half).collect()
}

/// Measures one size of one variant.
///
/// # Errors
/// The account of a run that failed.
///
/// # Panics
/// If the setup is none.
pub fn measure(setup: &Setup) -> Result<Measured, Box<Report>> {
    let &Setup {
        bytes,
        hops,
        cores,
        latencies,
        ..
    } = setup;
    assert!(bytes > 0 && bytes.is_multiple_of(8) && bytes <= BYTES_MAX && hops <= 1);
    assert!((2..=CORES_MAX).contains(&cores));
    let cores_per_tile = 2 - hops;
    let tiles = cores.div_ceil(cores_per_tile);
    let mesh = Mesh {
        columns: tiles.min(COLUMNS),
        rows: tiles.div_ceil(COLUMNS),
        cores_per_tile,
    };
    // The link's fixed part and a window.
    let memory = (64 << 10) + bytes.next_multiple_of(32) as u32;
    let config = Config {
        mesh: Some(mesh),
        ..crate::scc(cores, memory, latencies)
    };
    let report = run(config, |core| {
        let rounds = Rounds {
            core,
            bytes,
            count: WARM + setup.rounds,
            work: setup.work,
        };
        match setup.variant {
            Variant::TwoSided | Variant::TwoSidedShare | Variant::Bare
                if rounds.core.core().get() > 1 =>
            {
                Ok(())
            }
            Variant::TwoSided => rounds.two_sided(Shape::PAIR),
            Variant::TwoSidedShare => rounds.two_sided(Shape::share(cores, BUFFER as usize)),
            Variant::Bare => rounds.bare(),
            variant => in_world(rounds.core.clone(), |world| rounds.in_world(world, variant)),
        }
    })?;
    let marks: Vec<&Marked> = report.marks.iter().collect();
    let computed = |round| u64::from(computing(round, 0) + computing(round, 1));
    let ends = marks.windows(2).zip(0..).skip(WARM);
    let cycles = ends.map(|(two, round)| two[1].cycles - two[0].cycles - computed(round));
    let last = marks.last_chunk::<2>().expect("two rounds at least");
    Ok(Measured {
        round: cycles.sum::<u64>().div_ceil(setup.rounds as u64),
        counters: last.map(|mark| mark.counters),
    })
}

/// Rounds of one core.
struct Rounds {
    core: SimCore,
    bytes: usize,
    /// How many, the warm ones included.
    count: usize,
    /// See [`Setup`].
    work: u32,
}

impl Rounds {
    fn is_first(&self) -> bool {
        self.core.core().get() == 0
    }

    /// What is sent in a round, by either.
    fn fill(&self, round: usize, data: &mut [u64]) {
        let mut value = (round as u64 + 1) << 32;
        data.fill_with(|| {
            value += 1;
            value
        });
    }

    /// The rounds: rank 0 gives and then takes, rank 1 the other way round.
    fn turns(
        &self,
        mut give: impl FnMut(usize) -> Result<(), Failure>,
        mut take: impl FnMut(usize) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        for round in 0..self.count {
            let cycles = computing(round, self.core.core().get());
            if self.is_first() {
                self.core.mark(ROUND);
                self.core.spend(cycles);
                give(round)?;
                if self.work > 0 {
                    self.core.spend(self.work);
                }
                take(round)?;
            } else {
                take(round)?;
                self.core.spend(cycles);
                give(round)?;
            }
        }
        if self.is_first() {
            self.core.mark(ROUND);
        }
        Ok(())
    }

    /// The rounds, with data that are sent and arrive.
    fn run(
        &self,
        mut send: impl FnMut(&[u64]) -> Result<(), Failure>,
        mut receive: impl FnMut(&mut [u64]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut sent = vec![0; self.bytes / 8];
        let (mut arrived, mut expected) = (sent.clone(), sent.clone());
        self.turns(
            |round| {
                self.fill(round, &mut sent);
                send(&sent)
            },
            |round| {
                receive(&mut arrived)?;
                self.fill(round, &mut expected);
                same(&arrived, &expected)
            },
        )
    }

    /// Between cores 0 and 1: through the message buffer, if it has room.
    fn bare(&self) -> Result<(), Failure> {
        let core = &self.core;
        let (me, len) = (core.core().get(), self.bytes);
        let [own, peers] = [me, 1 - me].map(|owner| match len <= BUFFER as usize {
            true => Region::message_buffer(CoreId::new(owner)).at(0),
            false => Region::memory(CoreId::new(owner)).at(0),
        });
        // High halves, which have the number of the round.
        let ends = [4, len - 4].map(|at| own.plus(at));
        let lines = [Lines::covering::<SimCore>(own, len)];
        let mut round = 0;
        self.run(
            |data| {
                core.store_bytes(peers, &bytes_of(data));
                core.drain();
                Ok(())
            },
            |arrived| {
                round += 1;
                // Of 8 bytes both are the same word.
                for at in ends.into_iter().skip((len == 8).into()) {
                    loop {
                        let seen = core.load_u32(at);
                        if seen == round {
                            break;
                        }
                        core.relax(&[Watch { at, seen }]);
                    }
                }
                core.acquire();
                core.invalidate(&lines);
                let mut bytes = vec![0; self.bytes];
                core.read(own, &mut bytes);
                words_of(&bytes, arrived);
                Ok(())
            },
        )
    }

    /// Between cores 0 and 1.
    fn two_sided(&self, shape: Shape) -> Result<(), Failure> {
        let core = &self.core;
        let peer = CoreId::new(1 - core.core().get());
        let channel = Channel::open(core, peer, shape, [0, 0]);
        let buffer = Region::memory(core.core()).at(0);
        self.run(
            |data| {
                channel.send(&bytes_of(data));
                Ok(())
            },
            |arrived| {
                channel.receive(self.bytes, |start, piece| {
                    core.write(buffer.plus(start), piece);
                });
                let mut bytes = vec![0; self.bytes];
                core.read(buffer, &mut bytes);
                words_of(&bytes, arrived);
                Ok(())
            },
        )
    }

    fn in_world(&self, world: &World<'_, Chip>, variant: Variant) -> Result<(), Failure> {
        let window = world.allocate::<u64>(self.bytes / 8)?;
        window.set_inline(variant != Variant::Stored);
        if matches!(variant, Variant::NotifiedGet | Variant::PscwGet) {
            window.local().copy_in(0, &self.filled())?;
            window.sync()?;
            world.barrier()?;
        }
        match variant {
            Variant::Fence if world.rank().get() > 1 => self.fences_of_others(&window),
            _ if world.rank().get() > 1 => Ok(()),
            Variant::Notified | Variant::Stored => self.notified(&window),
            Variant::Pscw | Variant::PscwGet => self.pscw(&window, variant == Variant::PscwGet),
            Variant::NotifiedGet => self.notified_get(&window),
            _ => self.fences(&window),
        }
    }

    fn notified(&self, window: &Window<'_, u64, Chip>) -> Result<(), Failure> {
        let peer = self.peer(window);
        let mut request = window.expect(0..window.len(), Tag(1))?.from(peer)?;
        self.run(
            |data| Ok(window.put_notify(peer, 0, data, Tag(1))?),
            |arrived| {
                request.start()?;
                request.wait()?;
                Ok(window.local().copy_out(0, arrived)?)
            },
        )
    }

    /// The data of the first round.
    fn filled(&self) -> Vec<u64> {
        let mut data = vec![0; self.bytes / 8];
        self.fill(0, &mut data);
        data
    }

    fn notified_get(&self, window: &Window<'_, u64, Chip>) -> Result<(), Failure> {
        let (peer, expected) = (self.peer(window), self.filled());
        let mut read = window.expect(0..0, Tag(1))?.from(peer)?;
        let mut arrived = vec![0; expected.len()];
        self.turns(
            |_| {
                window.get_notify(peer, 0, &mut arrived, Tag(1))?;
                same(&arrived, &expected)
            },
            |_| {
                read.start()?;
                Ok(read.wait().map(drop)?)
            },
        )
    }

    fn pscw(&self, window: &Window<'_, u64, Chip>, gets: bool) -> Result<(), Failure> {
        let peer = [self.peer(window)];
        let group = window.world().group(&peer)?;
        let post = || window.post(&group).map(Some);
        let exposure = RefCell::new(if self.is_first() { None } else { post()? });
        let mut expected = self.filled();
        let (mut sent, mut arrived) = (expected.clone(), expected.clone());
        self.turns(
            |round| {
                let access = window.start(&group)?;
                if gets {
                    access.get(peer[0], 0, &mut sent)?;
                } else {
                    self.fill(round, &mut sent);
                    access.put(peer[0], 0, &sent)?;
                }
                access.complete()?;
                // Rank 1 receives nothing any more behind its last one.
                if self.is_first() || round + 1 < self.count {
                    *exposure.borrow_mut() = post()?;
                }
                match gets {
                    true => same(&sent, &self.filled()),
                    false => Ok(()),
                }
            },
            |round| {
                let posted = exposure.borrow_mut().take();
                posted.ok_or(Failure::Data)?.wait()?;
                if gets {
                    return Ok(());
                }
                window.local().copy_out(0, &mut arrived)?;
                self.fill(round, &mut expected);
                same(&arrived, &expected)
            },
        )
    }

    fn fences(&self, window: &Window<'_, u64, Chip>) -> Result<(), Failure> {
        let peer = self.peer(window);
        // Rank 0 puts in the first epoch, and nobody puts to it; and so on in turns.
        let puts = Assert::NO_STORE | Assert::NO_PUT;
        let (own, its) = match self.is_first() {
            true => (Assert::NO_STORE, puts),
            false => (puts, Assert::NO_STORE),
        };
        let epoch = window.fence(its | Assert::NO_PRECEDE)?;
        let epoch = RefCell::new(Some(epoch));
        let fence = |assert| -> Result<(), Failure> {
            let open = epoch.borrow_mut().take().ok_or(Failure::Data)?;
            let next = open.fence(assert)?;
            *epoch.borrow_mut() = Some(next);
            Ok(())
        };
        self.run(
            |data| {
                if let Some(open) = &*epoch.borrow() {
                    open.put(peer, 0, data)?;
                }
                fence(own)
            },
            |arrived| {
                fence(its)?;
                Ok(window.local().copy_out(0, arrived)?)
            },
        )?;
        let open = epoch.borrow_mut().take().ok_or(Failure::Data)?;
        Ok(open.end()?)
    }

    fn fences_of_others(&self, window: &Window<'_, u64, Chip>) -> Result<(), Failure> {
        let nothing = Assert::NO_STORE | Assert::NO_PUT;
        let mut epoch = window.fence(nothing | Assert::NO_PRECEDE)?;
        for _ in 0..2 * self.count {
            epoch = epoch.fence(nothing)?;
        }
        Ok(epoch.end()?)
    }

    fn peer(&self, window: &Window<'_, u64, Chip>) -> Rank {
        Rank::new(1 - window.world().rank().get())
    }
}

/// How many cycles a core computes in a round before it sends: spread evenly, those of one core
/// over those of the other.
fn computing(round: usize, core: u16) -> u32 {
    let step = if core == 0 { 29 } else { 75 };
    (round * step % SPREAD) as u32
}

fn same(arrived: &[u64], expected: &[u64]) -> Result<(), Failure> {
    match arrived == expected {
        true => Ok(()),
        false => Err(Failure::Data),
    }
}

fn bytes_of(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn words_of(bytes: &[u8], into: &mut [u64]) {
    for (word, bytes) in into.iter_mut().zip(bytes.as_chunks().0) {
        *word = u64::from_le_bytes(*bytes);
    }
}
