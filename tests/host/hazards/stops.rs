//! Hazard 22: peers that stop at any step. Through the kernel itself.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

use flagpost::epoch::Strategy;
use flagpost::{
    Budget, Error, MatchVector, MatchingList, Rank, Rma as _, Tag, Waiting, Window, World,
};
use flagpost_mapped::Mapped;
use flagpost_sim::{Bounds, Config, Oracles, Profile};

use crate::bench::*;
use crate::budgets::joined;
use crate::mortal::{Mortal, NEVER, Stopped};

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
    ) -> BTreeSet<String> {
        let config = Config {
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
            joined(machine, |world| {
                let ready = || {
                    world.set_budget(budget);
                    begin();
                };
                let end = match self.program {
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
                };
                end.or_else(|error| self.blames(me(core), error))
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
