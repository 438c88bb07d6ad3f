//! Hazard 22: peers that stop at any step. Through the kernel itself.

mod programs;
mod table;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

use flagpost::{Budget, Error, Waiting};
use flagpost_sim::{Bounds, Config, Oracles, Profile};

use self::programs::{How, Program};
pub use self::table::{ALL, LONG};
use crate::hazards::bench::*;
use crate::hazards::budgets::joined;
use crate::hazards::mortal::{Mortal, NEVER, Stopped, bit};

/// A program in which one rank stops.
pub struct Stop {
    pub name: &'static str,
    /// Most preemptions in a schedule, where it is long: on weak chips, with three ranks, or by
    /// itself. Bounds are the largest with which all searches for it end within seconds.
    pub preemptions: Option<u8>,
    pub cores: u16,
    /// The rank that stops.
    who: u16,
    pub profiles: &'static [Profile],
    program: Program,
}

/// How many preemptions the schedules have at the most.
#[derive(Copy, Clone)]
pub enum Bound {
    /// One: what a quick run tries.
    One,
    /// As the table says, where it matters.
    Table,
    /// Every schedule.
    None,
}

/// What came of all the searches for one program.
pub struct Account {
    /// Accesses after which the rank was stopped: from 0 to one less than this, when it ended
    /// before.
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
    pub fn show(&self, bound: Bound) -> Account {
        let mut account = Account {
            stops: 0,
            hang: 0,
            effort: Effort::default(),
        };
        for &profile in self.profiles {
            // Until the rank comes to its end first.
            for stop in 0.. {
                let end = End::default();
                let bounded = self.search(profile, bound, stop, true, &end, &mut account.effort);
                assert_eq!(
                    bounded.into_iter().next(),
                    None,
                    "{}, {stop}, {profile}",
                    self.name
                );
                let unlimited = self.search(profile, bound, stop, false, &end, &mut account.effort);
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
        bound: Bound,
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
                Program::Dynamic(_) | Program::Attach(_) => 1024,
                _ => 512,
            },
            buffer_size: 0,
            // Everybody gives up when its budget runs out. It may have to twice: a budget that runs
            // out on the first attempt on a lock had not begun.
            budgets_expire: if budgets {
                2 * u32::from(self.cores)
            } else {
                0
            },
            ..Default::default()
        };
        let bounds = Bounds {
            preemptions: self.bound(profile, bound),
            ..Bounds::default()
        };
        let explored = explore(&config, &bounds, effort, |core| {
            self.run(core, stop, budgets, end)
        });
        wrongs(&explored)
    }

    /// Most preemptions in a schedule on that chip, if there is a most.
    pub fn bound(&self, profile: Profile, bound: Bound) -> Option<u8> {
        match bound {
            Bound::One => Some(1),
            Bound::Table => {
                let matters = profile.weak() || self.cores > 2 || self.is_long();
                self.preemptions.filter(|_| matters)
            }
            Bound::None => None,
        }
    }

    /// Too long to try all schedules, even of two ranks on the SCC.
    fn is_long(&self) -> bool {
        matches!(
            self.program,
            Program::Fence
                | Program::Collective
                | Program::Allgather
                | Program::Dynamic(_)
                | Program::Attach(_)
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
                let run = || self.program.run(world, me(core), budget, begin);
                let done = world.within(budget, run);
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

    /// Time passes only when nobody can go on. So whoever is waited for then has stopped, or waits
    /// itself: following the names one finds who stopped. Of two ranks it is named at once.
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
            // The words of a lock count who has it, and do not tell: the piece's owner is named.
            // One of all is about no piece.
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
