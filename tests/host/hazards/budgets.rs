//! Hazards 21 and 22: budgets that run out at any step, and peers that stop at any step. Through the kernel
//! itself.

use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::thread::panicking;

use flagpost::{Budget, Config, Error, Rank, Tag, Waiting, Window, World};
use flagpost_hal::{
    Address, Atomic, CachedMemory, Clock, Coherence, CoreId, Lines, Machine, MessageBuffer,
    NativeAtomics, Position, Relax, TestAndSet, Topology, UncachedMemory, Watch,
};
use flagpost_mapped::Mapped;
use flagpost_sim::{Bounds, Oracles, Profile};

use crate::bench::*;

pub const ALL: &[Hazard] = &[
    Hazard {
        name: "21a a call that begins anew tells a target twice",
        cores: 3,
        memory: 16,
        profiles: &[Profile::Scc],
        program: told_twice,
        most: Acts {
            expiries: 1,
            ..NOTHING
        },
        consequences: &[DEADLOCK, "put missing"],
        shows: expiry,
        alarms: &[],
    },
    Hazard {
        name: "21b kernel: the handle of an epoch that is late is dropped",
        cores: 2,
        memory: 512,
        profiles: &[Profile::Scc],
        program: |core, remedy| late_epochs(core, 2, remedy),
        most: Acts {
            expiries: 2,
            ..NOTHING
        },
        consequences: &["epoch abandoned"],
        shows: expiry,
        alarms: &[],
    },
    Hazard {
        name: "21b kernel: the handle of an epoch that is late is dropped",
        cores: 2,
        memory: 512,
        profiles: &[Profile::Weak],
        program: |core, remedy| late_epochs(core, 1, remedy),
        most: Acts {
            expiries: 1,
            ..NOTHING
        },
        consequences: &["epoch abandoned"],
        shows: expiry,
        alarms: &[],
    },
    Hazard {
        name: "21c kernel: a request that is late is cancelled",
        cores: 2,
        memory: 512,
        profiles: &[Profile::Scc],
        program: late_notifications,
        most: Acts {
            expiries: 2,
            ..NOTHING
        },
        consequences: &[DEADLOCK],
        shows: expiry,
        alarms: &[],
    },
];

// ---- 21 ----

/// Polls until the word is `value`, or the budget runs out.
fn wait_within(core: &Core, at: Address, value: u32) -> bool {
    let start = core.cycles();
    loop {
        let seen = core.load_u32(at);
        if seen == value {
            core.acquire();
            return true;
        }
        if core.cycles() > start {
            return false;
        }
        core.relax(&[Watch { at, seen }]);
    }
}

/// Core 0 completes at targets 1 and 2, once each has posted; core 2 puts to core 1 and completes there too.
/// Remedy: a completion that was late goes on where it stopped.
fn told_twice(core: &Core, remedy: bool) -> Outcome {
    let posted = |target| at(0, 4 * u32::from(target));
    let (data, counter) = (at(1, 0), |target| at(target, 8));
    let complete = |target| core.atomic_u32(counter(target), Atomic::Add(u32::MAX));
    clear(core);
    core.store_u32(counter(me(core)), 2);
    core.drain();
    go(core);
    match me(core) {
        0 => {
            let mut told = 0;
            while told < 2 {
                for target in 1 + told..=2 {
                    if wait_within(core, posted(target), 1) {
                        complete(target);
                        told = target;
                    } else {
                        told = if remedy { told } else { 0 };
                        break;
                    }
                }
            }
            Ok(())
        }
        1 => {
            core.store_u32(posted(1), 1);
            wait(core, counter(1), 0);
            check(core.load_u32(data) == 7, "put missing")
        }
        _ => {
            core.store_u32(posted(2), 1);
            core.store_u32(data, 7);
            core.drain();
            complete(1);
            Ok(())
        }
    }
}

/// Joins the world, allocates a window, and ends the set-up.
fn in_world<M: Machine>(
    machine: M,
    budget: Budget,
    go: impl FnOnce(),
    run: impl FnOnce(&World<'_, Mapped<M>>, &Window<'_, u32, Mapped<M>>) -> Outcome,
) -> Outcome {
    let mut arena = [0; 64];
    let config = Config {
        unexpected: 4,
        budget: Budget::UNLIMITED,
    };
    let link = Mapped::start_with_ring(machine, 0x5E55_0001, 2).map_err(|_| "no link")?;
    let world = World::start(link, &mut arena, config).map_err(|_| "no world")?;
    let window = world.allocate(2).map_err(|_| "no window")?;
    world.set_budget(budget);
    go();
    run(&world, &window)
}

/// Repeats `call` while its budget runs out.
fn again<T>(mut call: impl FnMut() -> Result<T, Error>) -> Result<T, &'static str> {
    loop {
        match call() {
            Ok(done) => return Ok(done),
            Err(Error::Timeout(_)) => {}
            Err(_) => return Err("a call failed"),
        }
    }
}

/// What a call that is done, or else only late, gives.
fn unless_late<T, H>(
    call: Result<T, flagpost::Unfinished<H>>,
) -> Result<Result<T, H>, &'static str> {
    match call {
        Ok(done) => Ok(Ok(done)),
        Err(late) => match late.error {
            Error::Timeout(_) => Ok(Err(late.handle)),
            Error::EpochAbandoned => Err("epoch abandoned"),
            _ => Err("a call failed"),
        },
    }
}

/// Epochs of origin 0 and target 1. Remedy: a call that was late is gone on with, on its handle; else
/// the handle is dropped and the call made again.
fn late_epochs(core: &Core, epochs: u32, remedy: bool) -> Outcome {
    let [origin, target] = [0, 1].map(Rank::new);
    let budget = Budget::seconds(1);
    in_world(
        core.clone(),
        budget,
        || go(core),
        |world, window| {
            let (origins, targets) = ([origin], [target]);
            let group = |ranks| world.group(ranks).map_err(|_| "no group");
            let (origins, targets) = (group(&origins)?, group(&targets)?);
            for epoch in 1..=epochs {
                if world.rank() == target {
                    let mut posting = window.post(&origins);
                    let mut exposure = loop {
                        match unless_late(posting)? {
                            Ok(exposure) => break exposure,
                            Err(handle) if remedy => posting = handle.go_on(),
                            Err(handle) => {
                                drop(handle);
                                posting = window.post(&origins);
                            }
                        }
                    };
                    while let Err(handle) = unless_late(exposure.wait())? {
                        if !remedy {
                            drop(handle);
                            // Whoever has no handle can only begin another epoch.
                            let _ = unless_late(window.post(&origins))?;
                            return Err("an abandoned window was used");
                        }
                        exposure = handle;
                    }
                    check(window.local().get(0) == Ok(epoch), "old data")?;
                } else {
                    let access = window.start(&targets).map_err(|_| "epoch abandoned")?;
                    again(|| access.put(target, 0, &[epoch]))?;
                    let mut completing = access.complete();
                    while let Err(handle) = unless_late(completing)? {
                        if !remedy {
                            drop(handle);
                            let _ = window.start(&targets).map_err(|_| "epoch abandoned")?;
                            return Err("an abandoned window was used");
                        }
                        completing = handle.go_on();
                    }
                }
            }
            Ok(())
        },
    )
}

/// Core 0 notifies core 1 twice, and both meet. Remedy: who is late calls again; else the target cancels its
/// request and starts anew, which forgets what was matched.
fn late_notifications(core: &Core, remedy: bool) -> Outcome {
    let [origin, target] = [0, 1].map(Rank::new);
    let budget = Budget::seconds(1);
    in_world(
        core.clone(),
        budget,
        || go(core),
        |world, window| {
            if world.rank() == origin {
                for number in 1..=2 {
                    again(|| window.put_notify(target, number - 1, &[7], Tag(1)))?;
                }
            } else {
                let mut request = window
                    .expect(0..2, origin, Tag(1), 2)
                    .map_err(|_| "no request")?;
                request.start().map_err(|_| "not started")?;
                loop {
                    match request.wait() {
                        Ok(_) => break,
                        Err(Error::Timeout(_)) if remedy => {}
                        Err(Error::Timeout(_)) => {
                            request.cancel().map_err(|_| "not cancelled")?;
                            request.start().map_err(|_| "not started")?;
                        }
                        Err(_) => return Err("a call failed"),
                    }
                }
                let right = window.local().get(0) == Ok(7) && window.local().get(1) == Ok(7);
                check(right, "old data")?;
            }
            again(|| world.barrier())
        },
    )
}

// ---- 22 ----

/// A core that stops for good at its `left`-th access from now.
#[derive(Clone)]
struct Mortal {
    core: Core,
    left: Rc<Cell<u32>>,
}

/// What unwinds a core that stops.
struct Stopped;

/// It does not stop.
const NEVER: u32 = u32::MAX;

impl Mortal {
    /// Counts an access. False: it must not happen, the core has stopped.
    fn lives(&self) -> bool {
        match self.left.get() {
            NEVER => return true,
            0 if panicking() => return false,
            0 => resume_unwind(Box::new(Stopped)),
            left => self.left.set(left - 1),
        }
        true
    }
}

impl UncachedMemory for Mortal {
    const PUBLISH: usize = Core::PUBLISH;

    fn load_u8(&self, at: Address) -> u8 {
        self.lives();
        self.core.load_u8(at)
    }

    fn store_u8(&self, at: Address, value: u8) {
        self.lives();
        self.core.store_u8(at, value);
    }

    fn load_u32(&self, at: Address) -> u32 {
        self.lives();
        self.core.load_u32(at)
    }

    fn store_u32(&self, at: Address, value: u32) {
        self.lives();
        self.core.store_u32(at, value);
    }

    fn store_bytes(&self, at: Address, from: &[u8]) {
        self.lives();
        self.core.store_bytes(at, from);
    }
}

impl CachedMemory for Mortal {
    fn read(&self, at: Address, into: &mut [u8]) {
        self.lives();
        self.core.read(at, into);
    }

    fn write(&self, at: Address, from: &[u8]) {
        self.lives();
        self.core.write(at, from);
    }
}

// SAFETY: `SimCore` keeps the promises; each call here is one of its own, or none because the core has
// stopped.
#[expect(unsafe_code, reason = "the trait is unsafe to implement")]
unsafe impl Coherence for Mortal {
    const LINE: usize = Core::LINE;
    const INVALIDATE_WRITES_BACK: bool = Core::INVALIDATE_WRITES_BACK;

    fn write_back(&self, spans: &[Lines]) {
        self.lives();
        self.core.write_back(spans);
    }

    fn invalidate(&self, spans: &[Lines]) {
        self.lives();
        self.core.invalidate(spans);
    }

    fn drain(&self) {
        self.lives();
        self.core.drain();
    }

    fn acquire(&self) {
        self.core.acquire();
    }
}

impl TestAndSet for Mortal {
    fn test_and_set(&self, of: CoreId) -> bool {
        self.lives();
        self.core.test_and_set(of)
    }

    fn clear(&self, of: CoreId) {
        // On the way out of a core that has stopped, locks stay taken.
        if self.lives() {
            self.core.clear(of);
        }
    }
}

impl MessageBuffer for Mortal {
    fn message_buffer_size(&self) -> u32 {
        self.core.message_buffer_size()
    }
}

impl Topology for Mortal {
    fn cores(&self) -> u16 {
        self.core.cores()
    }

    fn core(&self) -> CoreId {
        self.core.core()
    }

    fn position(&self, core: CoreId) -> Position {
        self.core.position(core)
    }

    fn memory_size(&self) -> u32 {
        self.core.memory_size()
    }
}

impl Clock for Mortal {
    fn cycles(&self) -> u64 {
        self.core.cycles()
    }

    fn hertz(&self) -> u64 {
        self.core.hertz()
    }
}

impl Relax for Mortal {
    fn relax(&self, watched: &[Watch]) {
        self.core.relax(watched);
    }
}

type Living<'w> = World<'w, Mapped<Mortal>>;
type Shared<'w> = Window<'w, u32, Mapped<Mortal>>;

/// A program in which one rank stops.
pub struct Stop {
    pub name: &'static str,
    pub cores: u16,
    /// The rank that stops.
    who: u16,
    pub profiles: &'static [Profile],
    /// What each rank does; errors end it.
    program: fn(&Living<'_>, &Shared<'_>) -> Result<(), Error>,
}

pub const STOPS: &[Stop] = &[
    Stop {
        name: "22a an origin stops",
        cores: 2,
        who: 0,
        profiles: &[Profile::Scc, Profile::Weak],
        program: epoch,
    },
    Stop {
        name: "22b a target stops",
        cores: 2,
        who: 1,
        profiles: &[Profile::Scc, Profile::Weak],
        program: epoch,
    },
    Stop {
        name: "22c a notifier stops",
        cores: 2,
        who: 0,
        profiles: &[Profile::Scc, Profile::Weak],
        program: notified,
    },
    Stop {
        name: "22d a notified rank stops",
        cores: 2,
        who: 1,
        profiles: &[Profile::Scc, Profile::Weak],
        program: notified,
    },
    Stop {
        name: "22e one of two targets stops",
        cores: 3,
        who: 2,
        profiles: &[Profile::Scc],
        program: epoch,
    },
];

/// Rank 0 puts to all others, in one epoch.
fn epoch(world: &Living<'_>, window: &Shared<'_>) -> Result<(), Error> {
    let ranks = [0, 1, 2].map(Rank::new);
    let (origin, targets) = ranks[..usize::from(world.size())].split_at(1);
    let (origins, targets) = (world.group(origin)?, world.group(targets)?);
    if origin.contains(&world.rank()) {
        let access = window.start(&targets)?;
        for &target in targets.ranks() {
            access.put(target, 0, &[7])?;
        }
        access.complete()?;
    } else {
        window.post(&origins)?.wait()?;
    }
    Ok(())
}

/// Rank 0 notifies rank 1; and both meet.
fn notified(world: &Living<'_>, window: &Shared<'_>) -> Result<(), Error> {
    if world.rank().get() == 0 {
        window.put_notify(Rank::new(1), 0, &[7], Tag(1))?;
    } else {
        let mut request = window.expect(0..1, Rank::new(0), Tag(1), 1)?;
        request.start()?;
        request.wait()?;
    }
    world.barrier()
}

/// What came of all the searches for one program.
pub struct Account {
    /// Accesses after which the rank was stopped: from 0 to one less than this, when it ended before.
    stops: u32,
    /// Stops after which others hang if their budget is unlimited.
    hang: u32,
    effort: Effort,
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "stops={}, of which others hang without budgets={}; {}",
            self.stops, self.hang, self.effort
        )
    }
}

impl Stop {
    /// Checks that nobody hangs, wherever the rank stops, and that somebody would without budgets.
    pub fn show(&self) -> Account {
        let mut account = Account {
            stops: 0,
            hang: 0,
            effort: Effort::default(),
        };
        for &profile in self.profiles {
            // Until the rank comes to its end first.
            for stop in 0.. {
                let reached = Cell::new(false);
                let bounded = self.search(profile, stop, true, &reached, &mut account.effort);
                assert_eq!(
                    bounded.into_iter().next(),
                    None,
                    "{}, {stop}, {profile}",
                    self.name
                );
                let unlimited = self.search(profile, stop, false, &reached, &mut account.effort);
                let only_hangs = unlimited.iter().all(|wrong| wrong == DEADLOCK);
                assert!(
                    only_hangs,
                    "{}, {stop}, {profile}: {unlimited:?}",
                    self.name
                );
                account.stops += 1;
                account.hang += u32::from(!unlimited.is_empty());
                if !reached.get() {
                    break;
                }
            }
        }
        assert!(account.hang > 0, "{}: it never mattered", self.name);
        account
    }

    fn search(
        &self,
        profile: Profile,
        stop: u32,
        budgets: bool,
        reached: &Cell<bool>,
        effort: &mut Effort,
    ) -> std::collections::BTreeSet<String> {
        let config = flagpost_sim::Config {
            cores: self.cores,
            profile,
            oracles: Oracles::ALL,
            line: 8,
            memory_size: 512,
            buffer_size: 0,
            // Everybody gives up when its budget runs out. It may have to twice: a budget that runs out on the
            // first attempt on a lock had not begun.
            budgets_expire: if budgets {
                2 * u32::from(self.cores)
            } else {
                0
            },
            ..Default::default()
        };
        let bounds = Bounds {
            preemptions: (profile.weak() || self.cores > 2).then_some(1),
            ..Bounds::default()
        };
        let explored = explore(&config, &bounds, effort, |core| {
            self.run(core, stop, budgets, reached)
        });
        wrongs(&explored)
    }

    /// What a core does: as much of the program as it lives for.
    fn run(&self, core: &Core, stop: u32, budgets: bool, reached: &Cell<bool>) -> Outcome {
        let machine = Mortal {
            core: core.clone(),
            left: Rc::new(Cell::new(NEVER)),
        };
        let left = machine.left.clone();
        let begin = || {
            if me(core) == self.who {
                left.set(stop);
            }
            go(core);
        };
        let budget = match budgets {
            true => Budget::seconds(1),
            false => Budget::UNLIMITED,
        };
        let whole = || {
            in_world(machine, budget, begin, |world, window| {
                (self.program)(world, window).or_else(|error| self.blames(me(core), error))
            })
        };
        match catch_unwind(AssertUnwindSafe(whole)) {
            Ok(outcome) => outcome,
            Err(reason) if reason.is::<Stopped>() => {
                reached.set(true);
                Ok(())
            }
            Err(reason) => resume_unwind(reason),
        }
    }

    /// Of two ranks, the other one is named. A register does not tell who holds it, so there the owner is.
    fn blames(&self, me: u16, error: Error) -> Outcome {
        let Error::Timeout(timeout) = error else {
            return Err("another error");
        };
        let names = |rank| {
            timeout
                .missing
                .ranks()
                .any(|named| named == Rank::new(rank))
        };
        let right = timeout.waiting == Waiting::Lock || self.cores > 2 || names(1 - me);
        check(right, "the wrong rank is blamed")
    }
}
