//! Hazard 22: peers that stop at any step. Through the kernel itself.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

use flagpost::epoch::{Assert, Strategy};
use flagpost::rma::Operation;
use flagpost::{
    Budget, Displacement, DynamicOptions, Error, MatchVector, MatchingList, Rank, Rma as _, Tag,
    Validation, Waiting, Window, World,
};
use flagpost_mapped::Mapped;
use flagpost_sim::{Bounds, Config, Oracles, Profile};

use crate::bench::*;
use crate::budgets::joined;
use crate::mortal::{Mortal, NEVER, Stopped, bit};

type Living<'w> = World<'w, Mapped<Mortal>>;
type Shared<'w> = Window<'w, u32, Mapped<Mortal>>;

/// A program in which one rank stops.
pub struct Stop {
    pub name: &'static str,
    pub cores: u16,
    /// The rank that stops.
    who: u16,
    pub profiles: &'static [Profile],
    program: Program,
}

/// What each rank does; errors end it.
#[derive(Copy, Clone)]
enum Program {
    /// An epoch, signalled by slots, by match vectors, or in a list of as many entries as there are others.
    Slots,
    Vector,
    List,
    /// Notifications.
    Notified,
    /// Everybody locks rank 0's piece, in these ways: rank 0, the others.
    Lock(How, How),
    /// An epoch between two fences.
    Fence,
    /// A collective call that is made of others.
    Collective,
    /// Everybody changes words of rank 0's piece.
    Accumulate,
    /// Attached memory that is put to, and detached.
    Dynamic(Validation),
}

/// How a piece is locked.
#[derive(Copy, Clone)]
enum How {
    Shared,
    Exclusive,
    Queued,
    All,
}

pub const ALL: &[Stop] = &[
    Stop {
        name: "22a an origin stops",
        cores: 2,
        who: 0,
        profiles: &[Profile::Scc, Profile::Weak],
        program: Program::Slots,
    },
    Stop {
        name: "22b a target stops",
        cores: 2,
        who: 1,
        profiles: &[Profile::Scc, Profile::Weak],
        program: Program::Slots,
    },
    Stop {
        name: "22c a notifier stops",
        cores: 2,
        who: 0,
        profiles: &[Profile::Scc, Profile::Weak],
        program: Program::Notified,
    },
    Stop {
        name: "22d a notified rank stops",
        cores: 2,
        who: 1,
        profiles: &[Profile::Scc, Profile::Weak],
        program: Program::Notified,
    },
    Stop {
        name: "22e one of two targets stops",
        cores: 3,
        who: 2,
        profiles: &[Profile::Scc],
        program: Program::Slots,
    },
    Stop {
        name: "22f an origin stops, match vectors",
        cores: 2,
        who: 0,
        profiles: &[Profile::Scc, Profile::Weak],
        program: Program::Vector,
    },
    Stop {
        name: "22g a target stops, match vectors",
        cores: 2,
        who: 1,
        profiles: &[Profile::Scc, Profile::Weak],
        program: Program::Vector,
    },
    Stop {
        name: "22h an origin stops, matching list",
        cores: 2,
        who: 0,
        profiles: &[Profile::Scc, Profile::Weak],
        program: Program::List,
    },
    Stop {
        name: "22i a target stops, matching list",
        cores: 2,
        who: 1,
        profiles: &[Profile::Scc, Profile::Weak],
        program: Program::List,
    },
    Stop {
        name: "22j one of two targets stops, matching list",
        cores: 3,
        who: 2,
        profiles: &[Profile::Scc],
        program: Program::List,
    },
    Stop {
        name: "22k rank 0 stops, shared lock beside an exclusive one",
        cores: 2,
        who: 0,
        profiles: &[Profile::Scc, Profile::Weak],
        program: Program::Lock(How::Shared, How::Exclusive),
    },
    Stop {
        name: "22k rank 1 stops, shared lock beside an exclusive one",
        cores: 2,
        who: 1,
        profiles: &[Profile::Scc, Profile::Weak],
        program: Program::Lock(How::Shared, How::Exclusive),
    },
    Stop {
        name: "22l rank 0 stops, exclusive lock",
        cores: 2,
        who: 0,
        profiles: &[Profile::Scc, Profile::Weak],
        program: Program::Lock(How::Exclusive, How::Exclusive),
    },
    Stop {
        name: "22l rank 1 stops, exclusive lock",
        cores: 2,
        who: 1,
        profiles: &[Profile::Scc, Profile::Weak],
        program: Program::Lock(How::Exclusive, How::Exclusive),
    },
    Stop {
        name: "22m rank 0 stops, queued lock",
        cores: 2,
        who: 0,
        profiles: &[Profile::Scc, Profile::Weak],
        program: Program::Lock(How::Queued, How::Queued),
    },
    Stop {
        name: "22m rank 1 stops, queued lock",
        cores: 2,
        who: 1,
        profiles: &[Profile::Scc, Profile::Weak],
        program: Program::Lock(How::Queued, How::Queued),
    },
    Stop {
        name: "22n rank 0 stops, lock of all beside an exclusive one",
        cores: 2,
        who: 0,
        profiles: &[Profile::Scc, Profile::Weak],
        program: Program::Lock(How::All, How::Exclusive),
    },
    Stop {
        name: "22n rank 1 stops, lock of all beside an exclusive one",
        cores: 2,
        who: 1,
        profiles: &[Profile::Scc, Profile::Weak],
        program: Program::Lock(How::All, How::Exclusive),
    },
    Stop {
        name: "22o rank 0 stops, fence",
        cores: 2,
        who: 0,
        profiles: &[Profile::Scc, Profile::Weak],
        program: Program::Fence,
    },
    Stop {
        name: "22o rank 1 stops, fence",
        cores: 2,
        who: 1,
        profiles: &[Profile::Scc, Profile::Weak],
        program: Program::Fence,
    },
    Stop {
        name: "22p rank 0 stops, collectives",
        cores: 2,
        who: 0,
        profiles: &[Profile::Scc, Profile::Weak],
        program: Program::Collective,
    },
    Stop {
        name: "22p rank 1 stops, collectives",
        cores: 2,
        who: 1,
        profiles: &[Profile::Scc, Profile::Weak],
        program: Program::Collective,
    },
    Stop {
        name: "22q rank 0 stops, accumulates",
        cores: 2,
        who: 0,
        profiles: &[Profile::Scc, Profile::Weak],
        program: Program::Accumulate,
    },
    Stop {
        name: "22q rank 1 stops, accumulates",
        cores: 2,
        who: 1,
        profiles: &[Profile::Scc, Profile::Weak],
        program: Program::Accumulate,
    },
    Stop {
        name: "22r rank 0 stops, dynamic window",
        cores: 2,
        who: 0,
        profiles: &[Profile::Scc, Profile::Weak],
        program: Program::Dynamic(Validation::Counter),
    },
    Stop {
        name: "22r rank 1 stops, dynamic window",
        cores: 2,
        who: 1,
        profiles: &[Profile::Scc, Profile::Weak],
        program: Program::Dynamic(Validation::Counter),
    },
    Stop {
        name: "22s rank 0 stops, dynamic window, told",
        cores: 2,
        who: 0,
        profiles: &[Profile::Scc],
        program: Program::Dynamic(Validation::Invalidation),
    },
    Stop {
        name: "22s rank 1 stops, dynamic window, told",
        cores: 2,
        who: 1,
        profiles: &[Profile::Scc],
        program: Program::Dynamic(Validation::Invalidation),
    },
    Stop {
        name: "22t one of three stops, queued lock",
        cores: 3,
        who: 1,
        profiles: &[Profile::Scc],
        program: Program::Lock(How::Queued, How::Queued),
    },
    Stop {
        name: "22u one of three stops, fence",
        cores: 3,
        who: 1,
        profiles: &[Profile::Scc],
        program: Program::Fence,
    },
    Stop {
        name: "22v one of three stops, collectives",
        cores: 3,
        who: 1,
        profiles: &[Profile::Scc],
        program: Program::Collective,
    },
];

/// Rank 0 puts to all others, in one epoch.
fn epoch<'w, S: Strategy<'w, Mapped<Mortal>>>(
    world: &Living<'_>,
    window: &Window<'w, u32, Mapped<Mortal>, S>,
) -> Result<(), Error> {
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

/// Rank 0's piece is locked, and changed.
fn locked(window: &Shared<'_>, how: How) -> Result<(), Error> {
    let target = Rank::new(0);
    let lock = match how {
        How::Shared => window.lock_shared(target)?,
        How::Exclusive => window.lock_exclusive(target)?,
        How::Queued => window.lock_queued(target)?,
        How::All => window.lock_all()?,
    };
    lock.put(target, 0, &[7])?;
    Ok(lock.unlock()?)
}

/// Rank 0 puts to rank 1 between two fences.
fn fenced(world: &Living<'_>, window: &Shared<'_>) -> Result<(), Error> {
    let epoch = window.fence(Assert::NO_PRECEDE)?;
    if world.rank().get() == 0 {
        epoch.put(Rank::new(1), 0, &[7])?;
    }
    Ok(epoch.end()?)
}

/// A reduction, a broadcast and a barrier.
fn together(world: &Living<'_>) -> Result<(), Error> {
    world.allreduce(&mut [1_u32], |one, other| one + other)
}

fn accumulated(window: &Shared<'_>) -> Result<(), Error> {
    let (target, lock) = (Rank::new(0), window.lock_all()?);
    lock.accumulate(target, 0, &[7], Operation::SUM)?;
    lock.fetch_and_op(target, 1, 1, Operation::SUM)?;
    Ok(lock.unlock()?)
}

/// Rank 1 has attached memory and told rank 0 so, which puts to it, and meets it; then it is detached.
fn dynamic<'w>(
    world: &'w Living<'w>,
    validation: Validation,
    ready: impl FnOnce(),
) -> Result<(), Error> {
    let (owner, memory) = (Rank::new(1), world.reserve(4)?);
    let window = world.dynamic(DynamicOptions {
        regions: 1,
        kept: 1,
        validation,
    })?;
    let mut name = [window.attach(&memory)?.get()];
    world.broadcast(owner, &mut name)?;
    ready();
    if world.rank() != owner {
        let lock = window.window().lock_shared(owner)?;
        window.put(&lock, owner, Displacement::new(name[0]), &[7_u32])?;
        lock.unlock()?;
        return world.barrier();
    }
    world.barrier()?;
    window.detach(&memory)
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
                let end = End::default();
                let bounded = self.search(profile, stop, true, &end, &mut account.effort);
                assert_eq!(
                    bounded.into_iter().next(),
                    None,
                    "{}, {stop}, {profile}",
                    self.name
                );
                let unlimited = self.search(profile, stop, false, &end, &mut account.effort);
                let only_hangs = unlimited.iter().all(|wrong| wrong == DEADLOCK);
                assert!(
                    only_hangs,
                    "{}, {stop}, {profile}: {unlimited:?}",
                    self.name
                );
                account.stops += 1;
                account.hang += u32::from(!unlimited.is_empty());
                if !end.reached.get() {
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
        end: &End,
        effort: &mut Effort,
    ) -> BTreeSet<String> {
        let config = Config {
            cores: self.cores,
            profile,
            oracles: Oracles::ALL,
            line: 8,
            memory_size: match self.program {
                Program::Dynamic(_) => 1024,
                _ => 512,
            },
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
            preemptions: (profile.weak() || self.cores > 2 || self.is_long()).then_some(1),
            ..Bounds::default()
        };
        let explored = explore(&config, &bounds, effort, |core| {
            self.run(core, stop, budgets, end)
        });
        wrongs(&explored)
    }

    /// Too long to try all schedules.
    fn is_long(&self) -> bool {
        matches!(
            self.program,
            Program::Fence | Program::Collective | Program::Dynamic(_)
        )
    }

    /// What a core does: as much of the program as it lives for.
    fn run(&self, core: &Core, stop: u32, budgets: bool, end: &End) -> Outcome {
        let machine = Mortal {
            core: core.clone(),
            left: Rc::new(Cell::new(NEVER)),
            held: match me(core) == self.who {
                true => end.held.clone(),
                false => Rc::default(),
            },
        };
        machine.held.set(0);
        end.fine.set(end.fine.get() & !bit(me(core)));
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
            joined(machine, |world| {
                let ready = || {
                    world.set_budget(budget);
                    begin();
                };
                let done = match self.program {
                    Program::Slots => world.allocate(2).and_then(|window| {
                        ready();
                        epoch(world, &window)
                    }),
                    Program::Vector => {
                        let window = world.allocate_with::<_, MatchVector<'_>>(2, ());
                        window.and_then(|window| {
                            ready();
                            epoch(world, &window)
                        })
                    }
                    Program::List => {
                        let entries = self.cores - 1;
                        let window = world.allocate_with::<_, MatchingList<'_>>(2, entries);
                        window.and_then(|window| {
                            ready();
                            epoch(world, &window)
                        })
                    }
                    Program::Notified => world.allocate(2).and_then(|window| {
                        ready();
                        notified(world, &window)
                    }),
                    Program::Lock(first, others) => world.allocate(2).and_then(|window| {
                        ready();
                        locked(&window, if me(core) == 0 { first } else { others })
                    }),
                    Program::Fence => world.allocate(2).and_then(|window| {
                        ready();
                        fenced(world, &window)
                    }),
                    Program::Collective => {
                        ready();
                        together(world)
                    }
                    Program::Accumulate => world.allocate(2).and_then(|window| {
                        ready();
                        accumulated(&window)
                    }),
                    Program::Dynamic(validation) => dynamic(world, validation, ready),
                };
                match done {
                    Ok(()) => {
                        end.fine.set(end.fine.get() | bit(me(core)));
                        Ok(())
                    }
                    Err(error) => self.blames(me(core), error, end),
                }
            })
        };
        match catch_unwind(AssertUnwindSafe(whole)) {
            Ok(outcome) => outcome,
            Err(reason) if reason.is::<Stopped>() => {
                end.reached.set(true);
                Ok(())
            }
            Err(reason) => resume_unwind(reason),
        }
    }

    /// Time passes only when nobody can go on. So whoever is waited for then has stopped, or waits itself: following the names
    /// one finds who stopped. Of two ranks it is named at once.
    fn blames(&self, me: u16, error: Error, end: &End) -> Outcome {
        let Error::Timeout(timeout) = error else {
            return Err("another error");
        };
        let named = timeout.missing.ranks();
        let named = named.fold(0, |set, rank| set | bit(rank.get()));
        let stopped = bit(self.who);
        let right = match timeout.waiting {
            // A register does not tell who holds it: its owner is named. Who stopped does hold it.
            Waiting::Lock => named.count_ones() == 1 && named & end.held.get() != 0,
            // The words of a lock count who has it, and do not tell: the piece's owner is named. One of all is about no piece.
            Waiting::Unlock => named == self.awaited(me),
            _ if self.cores == 2 => named == stopped,
            _ => named != 0 && named & (end.fine.get() | bit(me)) == 0,
        };
        check(right && me != self.who, "the wrong rank is blamed")
    }

    /// Whose piece this rank waits for.
    fn awaited(&self, me: u16) -> u32 {
        match self.program {
            Program::Lock(How::All, _) if me == 0 => 0,
            Program::Lock(_, How::All) if me != 0 => 0,
            Program::Lock(..) => bit(0),
            _ => u32::MAX, // nobody waits for a lock
        }
    }
}

/// How a run ended, as its ranks tell each other behind the machine's back.
#[derive(Default)]
struct End {
    /// In some run the rank did stop.
    reached: Cell<bool>,
    /// Registers that it holds.
    held: Rc<Cell<u32>>,
    /// Ranks that have ended well.
    fine: Cell<u32>,
}
