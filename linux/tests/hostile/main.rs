//! A hostile peer: one rank stores whatever it likes, wherever it can reach, while the others go
//! on, or while they start.
//!
//! What it may do to them: wrong data, errors, budgets that run out. What it must not be able to
//! do: make them touch anything outside of the memory that all share, stop them, or keep them in a
//! call for longer than its budget. Every address that the kernel computes goes through one check
//! (`bytes` in this crate), which panics; so a panic here is a hole above it, and a death by a
//! signal one in it.
//!
//! It reaches all that a process maps: the regions, and the control words in front of them. Among 3
//! ranks each two have a ring, among 6 all share one.
//!
//! `FLAGPOST_SEEDS=n` changes how many seeds are tried.

use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use flagpost::{Budget, Config, Error, Session, Tag, Validation, VectorLink, World};
use flagpost_common::Dice;
use flagpost_hal::Topology as _;
use flagpost_linux::{
    Coherent, Emulated, Linked, Linux, Mode, RunError, SoftwareCoherent, machines_with,
};
use rustix::time::{ClockId, clock_gettime};
use stage::{ATTACHED, KINDS, Stage, operate};

mod stage;

const MEMORY: u64 = 64 << 10;
const SEEDS: u32 = 80;
/// Operations of a victim per seed.
const OPERATIONS: u32 = 50;
const BUDGET: Budget = Budget::microseconds(50);
/// For ranks that may have to wait for a processor before they can answer.
const BUDGET_OF_START: Budget = Budget::microseconds(2000);
/// What a call may take of a processor, however little of that it gets: it polls once more when its
/// budget has run out, and may have waits in turn. A loop of as many turns as a hostile word says
/// takes longer.
const MOST: Duration = Duration::from_secs(10);

/// What is done to whom.
#[derive(Copy, Clone)]
struct Plan {
    /// The last one is hostile.
    ranks: u16,
    /// Whether the others are attacked while they start.
    early: bool,
}

/// Numbers that look random.
struct Chance(Dice);

impl Chance {
    fn new(seed: u32, rank: u16) -> Self {
        Self(Dice::new(u64::from(seed) << 16 | u64::from(rank)))
    }

    fn next(&mut self) -> u32 {
        self.0.roll() as u32
    }

    fn below(&mut self, end: u32) -> u32 {
        self.0.below(end as usize) as u32
    }

    /// A value that protocols may stumble over: near 0, near the end, near what is there, any.
    fn evil(&mut self, there: u32) -> u32 {
        let small = self.below(70);
        match self.below(6) {
            0 => small,
            1 => u32::MAX - small,
            2 => there.wrapping_add(small).wrapping_sub(35),
            3 => there ^ (1 << (small % 32)),
            4 => 0x8000_0000 + small,
            _ => self.next(),
        }
    }
}

/// The words of a job as this process has them mapped: control words, then the regions.
struct Words<'m> {
    start: usize,
    control: u32,
    region: u32,
    ranks: u16,
    /// It keeps them mapped.
    machine: PhantomData<&'m ()>,
}

impl<'m> Words<'m> {
    /// Those of `machine`'s job: no other is mapped, see [`ALONE`].
    fn of<M: Mode>(machine: &'m Linux<M>) -> Self {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("it can be read");
        let line = maps.lines().find(|line| line.contains("memfd:flagpost"));
        let range = line.and_then(|line| line.split_once(' ')).expect("a job").0;
        let range = range.split_once('-').expect("a range");
        let address = |digits| usize::from_str_radix(digits, 16).expect("an address");
        let (start, end) = (address(range.0), address(range.1));
        let (ranks, region) = (machine.cores(), machine.memory_size() as u32 / 4);
        let words = (end - start) as u32 / 4;
        Self {
            start,
            control: words - region * u32::from(ranks),
            region,
            ranks,
            machine: PhantomData,
        }
    }

    fn word(&self, index: u32) -> &AtomicU32 {
        assert!(index < self.control + self.region * u32::from(self.ranks));
        let word = (self.start + 4 * index as usize) as *mut u32;
        // SAFETY: an aligned word of the mapping, which lives as long as the machine; all access it
        // as atomics only.
        unsafe { AtomicU32::from_ptr(word) }
    }

    /// Stores an evil value somewhere; where they poll, mostly.
    fn attack(&self, chance: &mut Chance) {
        /// The barrier of harnesses, which has no budget.
        const BARRIER: [u32; 2] = [64, 65];
        let index = if chance.below(20) == 0 {
            match chance.below(4) {
                // Who is lost, who has arrived.
                0 => chance.below(80),
                // Locks, states, processes.
                _ => chance.below(self.control),
            }
        } else {
            let owner = chance.below(self.ranks.into());
            let words = match chance.below(4) {
                0 => self.region,
                // Slots, rings, and the first windows.
                1 => 2048,
                _ => 64,
            };
            self.control + owner * self.region + chance.below(words)
        };
        if BARRIER.contains(&index) {
            return;
        }
        let word = self.word(index);
        word.store(chance.evil(word.load(SeqCst)), SeqCst);
    }
}

/// How much of a processor this thread has had.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Operations that a victim has ended, and those of each kind that went well.
struct Tally {
    ended: AtomicU32,
    well: [AtomicU32; KINDS as usize],
}

/// A test's jobs, one after the other.
struct Trial<'t> {
    plan: Plan,
    seed: u32,
    victims: AtomicU32,
    tally: &'t Tally,
}

impl Trial<'_> {
    /// A rank: sets up with the others, in peace or not, then operates, or attacks.
    fn rank<M: Linked<Link: VectorLink>>(&self, machine: &Linux<M>) -> Result<(), Error> {
        let hostile = machine.core().get() + 1 == self.plan.ranks;
        let mut chance = Chance::new(self.seed, machine.core().get());
        if !(hostile && self.plan.early) {
            return self.take_part(machine, &mut chance, hostile);
        }
        std::thread::scope(|scope| {
            let words = Words::of(machine);
            scope.spawn(move || {
                let mut chance = Chance::new(self.seed, u16::MAX);
                // Some are left alone long enough to get somewhere.
                let pause = Duration::from_micros(1 << chance.below(12));
                while self.victims.load(SeqCst) != 0 {
                    words.attack(&mut chance);
                    std::thread::sleep(pause);
                }
            });
            // Or the others would not get far.
            self.take_part(machine, &mut chance, false)
        })
    }

    fn take_part<M: Linked<Link: VectorLink>>(
        &self,
        machine: &Linux<M>,
        chance: &mut Chance,
        hostile: bool,
    ) -> Result<(), Error> {
        let mut arena = vec![0; 16384];
        let link = M::link(machine.clone(), Session::FIRST)?;
        let meeting = match self.plan.early {
            true => BUDGET_OF_START,
            false => Budget::UNLIMITED,
        };
        let world = World::starting(link, &mut arena, Config::default())?.wait_within(meeting)?;
        let memory = [world.reserve(256)?, world.reserve(256)?];
        let validation = match self.seed % 2 {
            0 => Validation::Counter,
            _ => Validation::Invalidation,
        };
        let stage = || Stage::new(&world, memory.each_ref(), validation, meeting);
        let stage = world.within(meeting, stage)?;
        if !self.plan.early {
            assert!(machine.meet());
        }
        if hostile {
            let words = Words::of(machine);
            while self.victims.load(SeqCst) != 0 {
                words.attack(chance);
                if chance.below(50) == 0 {
                    std::thread::yield_now();
                }
            }
            return Ok(());
        }
        let mut request = stage.slots.expect(0..4, Tag(1))?;
        for _ in 0..OPERATIONS {
            let (kind, before) = (chance.below(KINDS), processor_time());
            // Wrong data and errors are the attacker's to cause.
            let ended = world.within(BUDGET, || operate(&stage, &mut request, kind, chance));
            let spent = processor_time().saturating_sub(before);
            assert!(spent < MOST, "operation {kind} has worked for {spent:?}");
            self.tally.ended.fetch_add(1, SeqCst);
            let well = &self.tally.well[kind as usize];
            well.fetch_add(ended.is_ok().into(), SeqCst);
        }
        Ok(())
    }
}

fn seeds() -> u32 {
    let given = std::env::var("FLAGPOST_SEEDS").ok();
    given.and_then(|n| n.parse().ok()).unwrap_or(SEEDS)
}

/// Jobs one at a time: an attacker finds its own by looking for the one that is mapped.
static ALONE: Mutex<()> = Mutex::new(());

/// Ends the program if no call of a trial ends for a minute: nothing else could.
fn watch(tally: &Tally, seed: &AtomicU32) {
    let mut before = None;
    let mut since = std::time::Instant::now();
    while seed.load(SeqCst) != u32::MAX {
        std::thread::sleep(Duration::from_millis(20));
        let now = (seed.load(SeqCst), tally.ended.load(SeqCst));
        if before != Some(now) {
            (before, since) = (Some(now), std::time::Instant::now());
        } else if since.elapsed() > Duration::from_secs(60) {
            eprintln!("seed {}: a victim does not come back", now.0);
            std::process::abort();
        }
    }
}

fn all_seeds<M: Linked<Link: VectorLink>>(plan: Plan) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let tally = Tally {
        ended: AtomicU32::new(0),
        well: [const { AtomicU32::new(0) }; KINDS as usize],
    };
    let current = AtomicU32::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| watch(&tally, &current));
        let ended = catch_unwind(AssertUnwindSafe(|| {
            for seed in 0..seeds() {
                current.store(seed, SeqCst);
                one_seed::<M>(plan, seed, &tally);
            }
        }));
        current.store(u32::MAX, SeqCst);
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    if plan.early || seeds() < SEEDS {
        return;
    }
    for kind in ATTACHED {
        let well = tally.well[kind].load(SeqCst);
        assert!(well > 0, "operation {kind} never succeeds");
    }
}

fn one_seed<M: Linked<Link: VectorLink>>(plan: Plan, seed: u32, tally: &Tally) {
    let trial = Trial {
        plan,
        seed,
        victims: AtomicU32::new(u32::from(plan.ranks) - 1),
        tally,
    };
    let ended = machines_with::<M, (), Error>(plan.ranks, MEMORY, |machine| {
        // What the hostile rank stores in others' lines is the plan.
        machine.mode().set_oracle(false);
        let ran = catch_unwind(AssertUnwindSafe(|| trial.rank(&machine)));
        if machine.core().get() + 1 < plan.ranks {
            trial.victims.fetch_sub(1, SeqCst);
        }
        match ran {
            Ok(ran) => ran.map_err(RunError::Program),
            Err(_) => panic!("seed {seed}: {} has panicked", machine.core()),
        }
    });
    if !plan.early {
        ended.expect("setting up is left in peace");
    }
}

macro_rules! modes {
    ($($test:ident: $mode:ty;)*) => {
        $(mod $test {
            use super::*;

            #[test]
            fn few_ranks() {
                all_seeds::<$mode>(Plan { ranks: 3, early: false });
            }

            #[test]
            fn more_ranks() {
                all_seeds::<$mode>(Plan { ranks: 6, early: false });
            }

            #[test]
            fn ranks_that_start() {
                all_seeds::<$mode>(Plan { ranks: 3, early: true });
            }
        })*
    };
}

modes! {
    coherent: Coherent;
    software_coherent: SoftwareCoherent;
    emulated: Emulated;
}
