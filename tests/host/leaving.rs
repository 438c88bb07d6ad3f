//! Ranks that leave or are lost: waits that need them end, and no other wait does; polls are told.
//!
//! The machine knows which cores have left or are lost, as Linux does. A rank leaves as soon as its
//! program has ended, in every phase of what the others still do.

use std::cell::Cell;
use std::rc::Rc;

use flagpost::{
    Config as WorldConfig, Counter, EpochSlots, Error, Link, MatchingList, PartLink, Rank,
    Rma as _, Room, Session, Source, Tag, World, epoch::Strategy, rma::Operation,
};
use flagpost_explore::forward;
use flagpost_hal::{Clock as _, Coherence, CoreId, Lines, Relax, Topology as _, Watch};
use flagpost_link::Waiting as _;
use flagpost_mapped::Mapped;
use flagpost_sim::{Config, Sim, SimCore};

use crate::going_on::{In, goes_on, goes_on_from_a_part};
use crate::groups;
use crate::survivor::{LOST, polls};
use crate::waits::{calls, told};

/// What all cores know.
#[derive(Default)]
struct Fates {
    /// Which have left, a bit each.
    left: Cell<u32>,
    /// The first one that is lost.
    lost: Cell<Option<CoreId>>,
    /// Which are lost after it, a bit each.
    more: Cell<u32>,
}

/// A core that knows of the others' ends.
struct Known {
    core: SimCore,
    fates: Rc<Fates>,
}

// SAFETY: `SimCore` keeps the promises; each call here is one of its own.
#[expect(unsafe_code, reason = "the trait is unsafe to implement")]
unsafe impl Coherence for Known {
    const LINE: usize = <SimCore as Coherence>::LINE;

    forward!(in Coherence => core:
        write_back(spans: &[Lines]); invalidate(spans: &[Lines]); drain(); acquire());
}

forward!(UncachedMemory, CachedMemory, TestAndSet, MessageBuffer, Clock for Known => core);

forward!(Topology for Known => core {
    fn lost(&self) -> Option<CoreId> {
        self.fates.lost.get().or(self.core.lost())
    }

    fn is_lost(&self, core: CoreId) -> bool {
        self.lost() == Some(core) || self.fates.more.get() & (1 << core.get()) != 0
    }

    fn has_left(&self, core: Option<CoreId>) -> bool {
        // A step: others may end between a poll and this question.
        self.core.cycles();
        let left = self.fates.left.get();
        core.map_or(left != 0, |core| left & (1 << core.get()) != 0)
    }
});

impl Relax for Known {
    /// No store says that a core has left.
    fn relax(&self, _: &[Watch]) {
        self.core.relax(&[]);
    }
}

type KnownLink = Mapped<Known>;

/// Runs a program on so many ranks under many schedules, or so many: in their world, and in that of
/// a part of all. Each leaves when it has ended.
macro_rules! leave {
    ($cores:expr, |$world:ident, $fates:pat_param| $body:expr) => {
        leave!(groups::seeds(600); $cores, |$world, $fates| $body)
    };
    ($schedules:expr; $cores:expr, |$world:ident, $fates:pat_param| $body:expr) => {{
        leave_under($schedules, $cores, |$world, $fates: &Fates| $body);
        leave_under($schedules, $cores, |all, $fates: &Fates| in_a_part(all, |$world| $body));
    }};
}

fn in_a_part(
    all: &World<'_, KnownLink>,
    program: impl FnOnce(&World<'_, PartLink<'_, KnownLink>>) -> Result<(), Error>,
) -> Result<(), Error> {
    let room = Room {
        bytes: 4096,
        windows: 4,
    };
    let part = all.split(Some(0), 0, room)?;
    let link = part.link().expect("each rank is in it");
    World::run(link, &mut [0; 512], WorldConfig::default(), program)
}

/// Runs `program` on `cores` ranks under so many schedules.
fn leave_under(
    schedules: u64,
    cores: u16,
    program: impl Fn(&World<'_, KnownLink>, &Fates) -> Result<(), Error>,
) {
    for seed in 0..schedules {
        let chip = Config {
            cores,
            memory_size: 16 << 10,
            // Every other one has room for long data.
            buffer_size: [512, 8 << 10][seed as usize % 2],
            seed,
            ..Config::default()
        };
        let fates = Rc::<Fates>::default();
        let report = Sim::new(chip).run(|core| {
            let (me, mut arena) = (core.core().get(), [0; 512]);
            let known = Known {
                core,
                fates: Rc::clone(&fates),
            };
            let link = Mapped::start(known, Session::FIRST)?;
            let world = World::start(link, &mut arena, WorldConfig::default())?;
            let done = program(&world, &fates);
            if world.link().is_lost(Rank::new(me)) {
                // What it keeps, it places for nobody.
                std::mem::forget(world);
                return done;
            }
            // What it has stored is in memory before anybody is told that it has left.
            world.link().machine().core.drain();
            fates.left.set(fates.left.get() | 1 << me);
            done
        });
        report.assert_done();
    }
}

/// A rank that polls finds what has come, and is told then that the other one is lost.
#[test]
fn polls_tell_that_a_core_is_lost() {
    leave!(2, |world, fates| {
        let lose = || fates.lost.set(Some(CoreId::new(LOST.get())));
        let know = || {
            while fates.lost.get().is_none() {
                world.link().relax();
            }
        };
        match polls(world, lose, know, 10_000) {
            Ok(()) => Ok(()),
            Err(why) => panic!("{why:?}"),
        }
    });
}

/// All are listed, but for one that has ended well before: its process has failed after that.
#[test]
fn all_lost_ranks_are_listed() {
    let started = Cell::new(0);
    leave!(1; 5, |world, fates| {
        started.set(started.get() + 1);
        while started.get() % 5 != 0 {
            world.link().relax();
        }
        let lost = || world.lost().map(Rank::get).collect::<Vec<_>>();
        if world.rank() != Rank::new(0) {
            while fates.left.get() & 1 == 0 {
                world.link().relax();
            }
            return Ok(());
        }
        assert!(lost().is_empty());
        fates.lost.set(Some(CoreId::new(3)));
        assert_eq!(lost(), [3]);
        fates.more.set(1 << 1 | 1 << 2);
        fates.left.set(1 << 2 | 1 << 4);
        assert_eq!(lost(), [1, 3]);
        Ok(())
    });
}

/// Rank `lost[i].0` of three ends at the `lost[i].1`-th of its places, and the others go on.
fn goes_on_without(lost: &[(u16, u32)]) {
    leave_under(groups::seeds(30), 3, |world, fates| {
        let me = world.rank().get();
        let dies = lost.iter().find(|(rank, _)| *rank == me);
        let places = Cell::new(0);
        let lives = || {
            places.set(places.get() + 1);
            dies.is_none_or(|(_, at)| *at != places.get())
        };
        match goes_on::<_, 2>(world, &lives) {
            Ok(Some(size)) => assert_eq!(usize::from(size), 3 - lost.len()),
            Ok(None) => {
                let first = fates.lost.get().unwrap_or(CoreId::new(me));
                fates.lost.set(Some(first));
                fates.more.set(fates.more.get() | 1 << me);
            }
            Err(why) => panic!("{why:?} ({:?})", world.last_call()),
        }
        Ok(())
    });
}

#[test]
fn the_others_go_on_after_a_loss() {
    goes_on_without(&[]);
    for rank in 0..3 {
        for place in 1..=6 {
            goes_on_without(&[(rank, place)]);
            let next = (rank + 1) % 3;
            goes_on_without(&[(rank, place), (next, place + 2)]);
            goes_on_without(&[(rank, 2), (next, place)]);
        }
    }
}

/// Data that a lost rank has answered, and kept as dirty lines, hold up none of the others.
#[test]
fn what_a_lost_rank_kept_is_not_waited_for() {
    let [first, gone] = [0, 1].map(Rank::new);
    leave_under(groups::seeds(200), 3, |world, fates| {
        let spare = world.spare(ROOM)?;
        let window = world.allocate::<u32>(32)?;
        let mut request = window.expect(0..32, Tag(1))?;
        request.start()?;
        world.barrier()?;
        if world.rank() == gone {
            request.wait()?;
            window.notify(first, Tag(1))?;
            fates.lost.set(Some(CoreId::new(gone.get())));
            return Ok(());
        }
        if world.rank() == first {
            window.put_notify(gone, 0, &[7; 32], Tag(1))?;
            request.wait()?;
        }
        assert_eq!(world.barrier(), Err(Error::PeerLost(gone)));
        let link = spare.survivors()?.link().expect("it has survived");
        World::run(link, &mut [0; 128], WorldConfig::default(), World::barrier)
    });
}

/// A rank that waits in a part nobody of which is lost hears that the others go on.
#[test]
fn the_others_go_on_from_parts() {
    for waits in In::ALL {
        leave_under(groups::seeds(400), 3, |world, fates| {
            let lost = fates.lost.get();
            match goes_on_from_a_part(world, waits, &|| ()) {
                Ok(Some(size)) => assert_eq!((size, lost), (2, None)),
                Ok(None) => fates.lost.set(Some(CoreId::new(0))),
                Err(why) => panic!("{why:?} ({:?})", world.last_call()),
            }
            Ok(())
        });
    }
}

const ROOM: Room = Room {
    bytes: 1024,
    windows: 1,
};

/// A rank that has left before its process failed is not lost to a part's world either.
#[test]
fn a_rank_of_a_part_that_has_left_is_not_lost() {
    leave_under(groups::seeds(200), 4, |world, fates| {
        let [first, gone, last] = [0, 1, 2].map(Rank::new);
        let part = world.part(&[first, gone, last], ROOM)?;
        let gone_is_known = || fates.left.get() & 2 != 0;
        let Some(link) = part.link() else {
            while !gone_is_known() {
                world.link().relax();
            }
            fates.lost.set(Some(CoreId::new(3)));
            fates.more.set(1 << gone.get());
            return Ok(());
        };
        World::run(link, &mut [0; 128], WorldConfig::default(), |mine| {
            let window = mine.allocate::<u32>(1)?;
            let mut request = window.expect(0..0, Tag(1))?.from(last)?;
            request.start()?;
            if mine.rank() == first {
                request.wait()?;
                let mut never = window.expect(0..0, Tag(2))?.from(gone)?;
                never.start()?;
                left(never.wait(), gone);
            } else if mine.rank() == last {
                while fates.more.get() == 0 {
                    world.link().relax();
                }
                (0..20).for_each(|_| world.link().relax());
                window.notify(first, Tag(1))?;
            }
            Ok(())
        })
    });
}

/// Whoever leaves behind a collective call has done its part of it.
#[test]
fn who_has_done_its_part_of_a_collective_may_leave() {
    for cores in [2, 3, 5] {
        leave!(cores, |world, _| world.barrier());
        leave!(cores, |world, _| {
            let (me, root) = (world.rank(), Rank::new(cores - 1));
            let mut all = [u32::from(me.get()) + 1; 3];
            world.allreduce(&mut all, |a, b| a + b)?;
            let mut one = [u32::from(me == root)];
            world.broadcast(root, &mut one)?;
            world.reduce(root, &mut one, |a, b| a + b)?;
            let total = u32::from(cores);
            assert_eq!(all, [total * (total + 1) / 2; 3]);
            world.allgather_with(1_u32, |_, each| one[0] += each)
        });
    }
}

/// What it has sent arrives: notifications, long ones, counters, events, and the ends of epochs.
#[test]
fn what_a_rank_has_sent_arrives_after_it_has_left() {
    leave!(3, |world, _| {
        let (me, size) = (world.rank(), world.size());
        let mut window = world.allocate::<u32>(64)?;
        window.set_num_notify(1)?;
        let events = world.events(1)?;
        let mut short = window.expect(0..1, Tag(1))?.from(me.prev(size))?;
        let mut long = window.expect(8..40, Tag(2))?.from(me.prev(size))?;
        let mut count = window.expect_count(0..0, Counter(0), 1)?;
        short.start()?;
        long.start()?;
        count.start()?;
        world.barrier()?;
        let next = me.next(size);
        window.put_notify(next, 0, &[7], Tag(1))?;
        window.put_notify(next, 8, &[9; 32], Tag(2))?;
        window.notify(next, Counter(0))?;
        events.post(next, 0)?;
        events.wait(0, 1)?;
        count.wait()?;
        long.wait()?;
        while short.test()?.is_none() {
            world.link().relax();
        }
        assert_eq!(
            [0, 8, 39].map(|at| window.local().get(at)),
            [Ok(7), Ok(9), Ok(9)]
        );
        Ok(())
    });
    leave!(3, |world, _| epochs::<_, EpochSlots<'_>>(world, ()));
    leave!(3, |world, _| epochs::<_, MatchingList<'_>>(world, 4));
}

/// A rank that looks whether anything is left finds nothing, and what it sends to itself.
#[test]
fn tests_for_any_ranks_notifications_do_not_fail_when_all_others_have_left() {
    for cores in [2, 3] {
        leave!(cores, |world, fates| {
            let mut window = world.allocate::<u32>(1)?;
            window.set_num_notify(1)?;
            let mut any = window.expect(0..0, Tag(1))?;
            any.start()?;
            let mut count = window.expect_count(0..0, Counter(0), 1)?;
            count.start()?;
            world.barrier()?;
            if world.rank() != Rank::new(0) {
                return Ok(());
            }
            while fates.left.get().count_ones() < u32::from(cores) - 1 {
                world.link().relax();
            }
            assert_eq!(window.probe(Source::Any, Tag(2)), Ok(None));
            assert_eq!(any.test(), Ok(None));
            assert_eq!(count.test(), Ok(None));
            window.notify(Rank::new(0), Tag(1))?;
            window.notify(Rank::new(0), Counter(0))?;
            assert_eq!(any.wait()?.source, Rank::new(0));
            assert_eq!(count.wait(), Ok(1));
            any.start()?;
            let left = any.wait().map(|_| ());
            assert!(matches!(left, Err(Error::PeerLeft(_))), "{left:?}");
            Ok(())
        });
    }
}

/// The last thing that it does before it leaves, too: a test that has found nothing tests again,
/// once it is told that the rank has left.
#[test]
fn what_a_rank_has_sent_last_is_found_by_tests() {
    leave!(2, |world, _| {
        let [tester, sender] = [0, 1].map(Rank::new);
        let window = world.allocate::<u32>(4)?;
        let ranks = [Rank::new(1 - world.rank().get())];
        let group = world.group(&ranks)?;
        if world.rank() == sender {
            window.start(&group)?.complete()?;
            return window.put_notify(tester, 0, &[7], Tag(1));
        }
        let mut exposure = window.post(&group)?;
        let mut request = window.expect(0..1, Tag(1))?.from(sender)?;
        request.start()?;
        while request.test()?.is_none() {}
        while !exposure.test()? {}
        Ok(())
    });
}

/// Each puts to both others, and leaves.
fn epochs<'w, L: Link, S: Strategy<'w, L>>(
    world: &'w World<'_, L>,
    options: S::Options,
) -> Result<(), Error> {
    let (me, size) = (world.rank(), world.size());
    let window = world.allocate_with::<u32, S>(4, options)?;
    let peers = [me.next(size), me.prev(size)];
    let group = world.group(&peers)?;
    let mut exposure = window.post(&group)?;
    let access = window.start(&group)?;
    for peer in peers {
        access.put(peer, me.index(), &[5])?;
    }
    access.complete()?;
    while !exposure.test()? {
        world.link().relax();
    }
    for peer in peers {
        assert_eq!(window.local().get(peer.index())?, 5);
    }
    Ok(())
}

/// The memory of a rank that has left is there: locks, gets and atomics need nothing of it.
#[test]
fn the_memory_of_a_rank_that_has_left_is_there() {
    leave!(3, |world, _| {
        let window = world.allocate::<u32>(1)?;
        let owner = Rank::new(1);
        if world.rank() == owner {
            return Ok(());
        }
        for _ in 0..3 {
            let lock = window.lock_exclusive(owner)?;
            let mut count = [0];
            lock.get(owner, 0, &mut count)?;
            lock.put(owner, 0, &[count[0] + 1])?;
            lock.unlock()?;
            let lock = window.lock_queued(owner)?;
            lock.fetch_and_op(owner, 0, 1, Operation::SUM)?;
            lock.unlock()?;
        }
        let lock = window.lock_shared(owner)?;
        assert!((6..=12).contains(&lock.fetch_and_op(owner, 0, 0, Operation::SUM)?));
        lock.unlock()
    });
}

/// The error of a call that needs `gone`, which has left.
fn left<T, E: Into<Error>>(call: Result<T, E>, gone: Rank) {
    let error = call.err().map(Into::into);
    assert_eq!(error, Some(Error::PeerLeft(gone)));
}

/// Each kind of wait for a rank that has left, or is lost, ends with its name.
#[test]
fn waits_for_a_rank_that_is_gone_end_with_its_name() {
    let gone = Rank::new(1);
    for is_lost in [false, true] {
        for row in 0..calls::<KnownLink>().len() {
            leave!(groups::seeds(60); 3, |world, fates| {
                let knows = || {
                    while is_lost && fates.lost.get().is_none() {
                        world.link().relax();
                    }
                };
                let call = calls()[row];
                match told(world, gone, false, call, knows)? {
                    Some(told) if is_lost => assert_eq!(told, Err(Error::PeerLost(gone)), "{}", call.0),
                    Some(told) => assert_eq!(told, Err(Error::PeerLeft(gone)), "{}", call.0),
                    None if is_lost && world.rank() == gone => {
                        fates.lost.set(Some(CoreId::new(gone.get())));
                    }
                    None => {}
                }
                Ok(())
            });
        }
    }
}

/// Tests in a loop end, too.
#[test]
fn polls_for_a_rank_that_has_left_end_with_its_name() {
    leave!(3, |world, _| {
        let gone = Rank::new(1);
        let window = world.allocate::<u32>(4)?;
        if world.rank() == gone {
            return Ok(());
        }
        left(world.barrier(), gone);
        let mut request = window.expect(0..1, Tag(1))?.from(gone)?;
        request.start()?;
        left(request.wait(), gone);
        left(request.test(), gone);
        left(window.probe(gone, Tag(2)), gone);
        left(flagpost::wait_all(&mut [request]), gone);
        let mut exposure = window.post([gone])?;
        left(exposure.test(), gone);
        let access = window.start([gone])?;
        left(access.has_posted(gone), gone);
        core::mem::forget((exposure, access));
        Ok(())
    });
}

/// A wait that any rank can end goes on as long as there is another one.
#[test]
fn a_wait_for_any_rank_ends_with_the_last_one() {
    use flagpost::{TagFilter, wait_any};
    let [waiter, first, second] = [0, 1, 2].map(Rank::new);
    leave!(3, |world, _| {
        let window = world.allocate::<u32>(4)?;
        if world.rank() == first {
            return Ok(());
        }
        if world.rank() == second {
            // The other one has left by now, as a rule.
            (0..50).for_each(|_| world.link().relax());
            return window.notify(waiter, Tag(1));
        }
        let mut both = [
            window.expect(0..0, Tag(1))?.from(first)?,
            window.expect(0..0, Tag(1))?.from(second)?,
        ];
        both.iter_mut().try_for_each(flagpost::Request::start)?;
        assert_eq!(wait_any(&mut both)?, Some(1));
        assert_eq!(both[1].status().map(|status| status.source), Some(second));
        let mut any = window.expect(0..0, TagFilter::Any)?;
        any.start()?;
        left(any.wait(), first);
        Ok(())
    });
}

/// A wait for several of which one is any rank's, and one of a rank that has left: for any of them
/// it continues, since another rank may end it; for all of them it ends once only the other one is
/// left. In both orders.
#[test]
fn a_wait_for_several_ends_as_its_requests_can() {
    use flagpost::{test_any, wait_all, wait_any};
    let [waiter, gone, second] = [0, 1, 2].map(Rank::new);
    for (how, named_first) in [0, 1, 2]
        .into_iter()
        .flat_map(|how| [(how, false), (how, true)])
    {
        leave!(groups::seeds(200); 3, |world, _| {
            let window = world.allocate::<u32>(1)?;
            if world.rank() == gone {
                return Ok(());
            }
            if world.rank() == second {
                (0..50).for_each(|_| world.link().relax());
                return window.notify(waiter, Tag(1));
            }
            let mut both = [
                window.expect(0..0, Tag(1))?,
                window.expect(0..0, Tag(2))?.from(gone)?,
            ];
            both.iter_mut().try_for_each(flagpost::Request::start)?;
            if named_first {
                both.reverse();
            }
            let any = usize::from(named_first);
            match how {
                0 => assert_eq!(wait_any(&mut both)?, Some(any)),
                1 => left(wait_all(&mut both), gone),
                _ => {
                    let index = loop {
                        match test_any(&mut both)? {
                            Some(index) => break index,
                            None => world.link().relax(),
                        }
                    };
                    assert_eq!(index, any);
                }
            }
            assert!(!both[any].is_started() && both[1 - any].is_started());
            left(wait_any(&mut both), gone);
            left(wait_all(&mut both), gone);
            left(test_any(&mut both), gone);
            Ok(())
        });
    }
}
