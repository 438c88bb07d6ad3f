//! A peer that falls silent.

use flagpost::{
    Budget, Config as WorldConfig, EpochSlots, Error, Link, MatchingList, PartLink, Rank, Rma as _,
    Room, Tag, World, epoch::Strategy, wait_any,
};
use flagpost_explore::Mock;
use flagpost_link::{
    Access as _, Amo, Op, Place, Refusal, Telling as _, Waiting as _, Wants, Width,
};
use flagpost_network::Networked;
use flagpost_sim::{Nic, Wire};

use crate::going_on::{In, goes_on_from_a_part};
use crate::network::runs;
use crate::network::tap::{Seen, Tap, tapped, tapped_on};
use crate::waits::{calls, told};

const ROOM: Room = Room {
    bytes: 256,
    windows: 1,
};

/// Runs a program under so many schedules on three ranks: in their world, and in that of a part of
/// all. It gets its end of the network, too.
macro_rules! all_and_part {
    ($schedules:expr, |$world:ident, $nic:pat_param| $body:expr) => {{
        runs($schedules, Wire::default(), |$world| {
            let $nic = $world.link().fabric();
            $body
        });
        runs($schedules, Wire::default(), |all| {
            let $nic = all.link().fabric();
            in_a_part(all, |$world| $body)
        });
    }};
}

/// Runs `program` in a part of all.
fn in_a_part<L: Link>(
    all: &World<'_, L>,
    program: impl FnOnce(&World<'_, PartLink<'_, L>>) -> Result<(), Error>,
) -> Result<(), Error> {
    let room = Room {
        bytes: 1024,
        windows: 2,
    };
    let part = all.split(Some(0), 0, room)?;
    let link = part.link().expect("each rank is in it");
    World::run(link, &mut [0; 256], WorldConfig::default(), program)
}

/// Rank 1 falls silent. Whoever has something under way to it, or begins something, is told; all
/// else goes on.
#[test]
fn a_lost_peer_is_an_error_and_the_others_go_on() {
    all_and_part!(300, |world, nic| loses_a_peer(world, nic));
}

fn loses_a_peer<L: Link>(world: &World<'_, L>, nic: &Nic) -> Result<(), Error> {
    const LOST: Rank = Rank::new(1);
    const THIRD: Rank = Rank::new(2);
    let window = world.allocate::<u32>(2)?;
    let (link, me) = (world.link(), world.rank());
    let key = link.allocate(8, Place::Symmetric)?;
    if me == LOST {
        nic.drop_out();
        return Ok(());
    }
    if me == THIRD {
        let mut request = window.expect(0..2, Tag(3))?.from(Rank::new(0))?;
        request.start()?;
        request.wait()?;
        assert_eq!(window.local().get(1)?, 7);
        return Ok(());
    }
    // Until the first failure is known, operations may be accepted.
    let lost = loop {
        if let Err(late) = window.put_notify(LOST, 0, &[1], Tag(1)) {
            break late;
        }
    };
    assert_eq!(lost, Error::PeerLost(LOST));
    // No rank was told; it has found out by itself.
    assert_eq!(Vec::from_iter(world.lost()), [LOST]);
    // A flush of another rank says nothing of it, a fence once: what was to be ordered is not
    // there.
    assert_eq!(settled(link, || link.flush(Some(THIRD))), Ok(()));
    let fence = settled(link, || link.fence());
    assert_eq!(fence, Err(Refusal::PeerLost(LOST)));
    assert_eq!(link.fence(), Ok(()));
    // From now on all is refused at once.
    let gone = Err(Refusal::PeerLost(LOST));
    assert_eq!(link.put(LOST, key, 0, &[0; 4]), gone);
    assert_eq!(link.get(LOST, key, 0, &mut [0; 4], &Op::new()), gone);
    let amo = link.amo(LOST, key, 0, Amo::Read, Width::Whole, &Op::new());
    assert_eq!(amo.map(|_| ()), gone);
    let update = link.update(LOST, key, 0, 4, &mut |_| (), &Op::new());
    assert_eq!(update, gone);
    assert_eq!(
        link.put_immediate(LOST, (key, 0), &[], 1, true, &Op::new()),
        gone
    );
    assert_eq!(link.signal(LOST, flagpost_link::Slot(31), 1), gone);
    window.put_notify(THIRD, 0, &[6, 7], Tag(3))
}

/// A rank that is lost while it is locked: who locked it is told, and has not locked all the others
/// out.
#[test]
fn a_lost_target_leaves_the_other_pieces_free() {
    all_and_part!(300, |world, nic| locks_the_lost(world, nic, false));
}

/// The same, where that is known before the lock is given back.
#[test]
fn a_target_known_to_be_lost_leaves_the_other_pieces_free() {
    all_and_part!(300, |world, nic| locks_the_lost(world, nic, true));
}

fn locks_the_lost<L: Link>(world: &World<'_, L>, nic: &Nic, is_known: bool) -> Result<(), Error> {
    let [first, lost, third] = [0, 1, 2].map(Rank::new);
    let window = world.allocate::<u32>(1)?;
    if world.rank() == first {
        let lock = window.lock_exclusive(lost)?;
        window.notify(lost, Tag(1))?;
        while is_known && lock.put(lost, 0, &[1]).is_ok() {
            world.link().relax();
        }
        // Else it may be given back before the target falls silent.
        match lock.unlock() {
            Err(late) => assert_eq!(late, Error::PeerLost(lost)),
            Ok(()) => assert!(!is_known),
        }
        return window.notify(third, Tag(1));
    }
    let mut told = window.expect(0..0, Tag(1))?.from(first)?;
    told.start()?;
    told.wait()?;
    if world.rank() == lost {
        nic.drop_out();
        return Ok(());
    }
    window.lock_all()?.unlock()
}

type InAPart = fn(&World<'_, PartLink<'_, Mock>>) -> Result<(), Error>;

/// A world of the other two goes on, whichever of its calls is the first after the loss.
#[test]
fn a_part_goes_on_after_a_loss_outside_of_it() {
    let calls: [InAPart; 3] = [
        |mine| mine.barrier(),
        |mine| mine.allreduce(&mut [1_u32], |a, b| a + b),
        |mine| mine.allocate::<u32>(1)?.free(),
    ];
    for call in calls {
        runs(100, Wire::default(), |world| {
            const LOST: Rank = Rank::new(1);
            let part = world.part(&[Rank::new(0), Rank::new(2)], ROOM)?;
            let window = world.allocate::<u32>(1)?;
            let Some(link) = part.link() else {
                world.link().fabric().drop_out();
                return Ok(());
            };
            let is_first = world.rank() == Rank::new(0);
            while is_first && window.put_notify(LOST, 0, &[1], Tag(1)).is_ok() {}
            let mut words = [0; 96];
            World::run(link, &mut words, WorldConfig::default(), |mine| {
                call(mine)?;
                let window = mine.allocate::<u32>(1)?;
                let mut request = window.expect(0..1, Tag(1))?;
                request.start()?;
                mine.barrier()?;
                window.put_notify(mine.rank().next(2), 0, &[7], Tag(1))?;
                request.wait()?;
                assert_eq!(window.local().get(0), Ok(7));
                mine.barrier()
            })
        });
    }
}

/// The ranks of a part that are left go on with all that are.
#[test]
fn the_others_go_on_from_parts() {
    for waits in In::ALL {
        tapped_on(3, 30, |world, seen| {
            let knows = || {
                seen.holds.set(Some(Rank::new(0)));
                seen.lost.set(Some((Rank::new(0), 0)));
            };
            match goes_on_from_a_part(world, waits, &knows)? {
                Some(size) => assert_eq!(size, 2),
                None => world.link().fabric().nic.drop_out(),
            }
            Ok(())
        });
    }
}

/// Two ranks are lost: each one's flush tells of it once, in any order and behind fences, which
/// tell of each once, too.
#[test]
fn each_lost_rank_is_told_of() {
    all_and_part!(300, |world, nic| {
        let [first, one, two] = [0, 1, 2].map(Rank::new);
        let window = world.allocate::<u32>(1)?;
        let link = world.link();
        if world.rank() != first {
            let mut told = window.expect(0..0, Tag(1))?.from(first)?;
            told.start()?;
            told.wait()?;
            nic.drop_out();
            return Ok(());
        }
        let lock = window.lock_all()?;
        for target in [one, two] {
            window.notify(target, Tag(1))?;
            while lock.put(target, 0, &[1]).is_ok() {
                link.relax();
            }
        }
        let mut fenced = Vec::new();
        while let Err(Refusal::PeerLost(rank)) = settled(link, || link.fence()) {
            fenced.push(rank);
        }
        fenced.sort();
        assert_eq!(fenced, [one, two]);
        assert_eq!(Vec::from_iter(world.lost()), fenced);
        for target in [one, two] {
            assert_eq!(lock.flush(target), Err(Error::PeerLost(target)));
            assert_eq!(lock.flush(target), Ok(()));
        }
        std::mem::forget(lock);
        Ok(())
    });
}

/// An origin tells its other targets that it has completed, and then of the one that is lost.
#[test]
fn the_other_targets_of_a_lost_one_are_told() {
    for known in [Known::No, Known::Yes, Known::ToFences] {
        all_and_part!(100, |world, nic| {
            completes_without::<_, EpochSlots<'_>>(world, nic, (), known)
        });
        all_and_part!(100, |world, nic| {
            completes_without::<_, MatchingList<'_>>(world, nic, 2, known)
        });
    }
}

/// What is known of a loss before an epoch is completed.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Known {
    /// Nothing, or something.
    No,
    /// Operations are refused.
    Yes,
    /// A fence has told of it, too.
    ToFences,
}

fn completes_without<'w, L: Link, S: Strategy<'w, L>>(
    world: &'w World<'_, L>,
    nic: &Nic,
    options: S::Options,
    known: Known,
) -> Result<(), Error> {
    let [origin, lost, third] = [0, 1, 2].map(Rank::new);
    let (only_origin, both, only_third) = ([origin], [lost, third], [third]);
    let (origins, targets) = (world.group(&only_origin)?, world.group(&both)?);
    let window = world.allocate_with::<u32, S>(1, options)?;
    if world.rank() == lost {
        let exposure = window.post(&origins)?;
        let mut told = window.expect(0..0, Tag(1))?.from(origin)?;
        told.start()?;
        told.wait()?;
        nic.drop_out();
        std::mem::forget(exposure);
        return Ok(());
    }
    if world.rank() == third {
        for epoch in 1..=2 {
            window.post(&origins)?.wait()?;
            assert_eq!(window.local().get(0)?, epoch);
        }
        return Ok(());
    }
    let access = window.start(&targets)?;
    access.await_posts()?;
    access.put(third, 0, &[1])?;
    window.notify(lost, Tag(1))?;
    while access.put(lost, 0, &[1]).is_ok() && known != Known::No {
        world.link().relax();
    }
    if known == Known::ToFences {
        let fence = settled(world.link(), || world.link().fence());
        assert_eq!(fence, Err(Refusal::PeerLost(lost)));
    }
    match access.completing().wait_within(Budget::UNLIMITED) {
        // The epoch has ended: there is nothing left to do, and nothing to abandon.
        Err(late) => {
            assert_eq!(late.error, Error::PeerLost(lost));
            if known == Known::Yes {
                late.handle.wait()?;
            }
        }
        Ok(()) => assert!(known == Known::No),
    }
    let access = window.start(&world.group(&only_third)?)?;
    access.put(third, 0, &[2])?;
    match access.complete() {
        // That it was told is what came to nothing.
        Err(late) if known == Known::No => assert_eq!(late, Error::PeerLost(lost)),
        other => other?,
    }
    Ok(())
}

/// A target tells its other origins that it has posted, and then of the one that is lost.
#[test]
fn the_other_origins_of_a_lost_one_are_told() {
    all_and_part!(100, |world, nic| {
        posts_without::<_, EpochSlots<'_>>(world, nic, ())
    });
    all_and_part!(100, |world, nic| {
        posts_without::<_, MatchingList<'_>>(world, nic, 2)
    });
}

fn posts_without<'w, L: Link, S: Strategy<'w, L>>(
    world: &'w World<'_, L>,
    nic: &Nic,
    options: S::Options,
) -> Result<(), Error> {
    let [target, lost, third] = [0, 1, 2].map(Rank::new);
    let (only_target, both) = ([target], [lost, third]);
    let window = world.allocate_with::<u32, S>(1, options)?;
    if world.rank() == lost {
        nic.drop_out();
        return Ok(());
    }
    if world.rank() == third {
        let access = window.start(&world.group(&only_target)?)?;
        access.put(target, 0, &[7])?;
        access.complete()?;
        return window.notify(target, Tag(2));
    }
    while window.put_notify(lost, 0, &[1], Tag(1)).is_ok() {}
    let Err(late) = window
        .posting(&world.group(&both)?)?
        .wait_within(Budget::UNLIMITED)
    else {
        panic!("an origin is lost");
    };
    assert_eq!(late.error, Error::PeerLost(lost));
    // All that can be told are: the epoch is open.
    let exposure = late.handle.wait()?;
    let mut done = window.expect(0..0, Tag(2))?.from(third)?;
    done.start()?;
    done.wait()?;
    // Its end may wait for the lost one.
    std::mem::forget(exposure);
    assert_eq!(window.local().get(0)?, 7);
    Ok(())
}

/// Each kind of wait for a rank that falls silent ends with its name.
#[test]
fn waits_for_a_lost_rank_end_with_its_name() {
    let gone = Rank::new(1);
    for call in calls() {
        tapped_on(3, 3, |world, seen| {
            let knows = || seen.lost.set(Some((gone, 0)));
            match told(world, gone, false, call, knows)? {
                Some(told) => assert_eq!(told, Err(Error::PeerLost(gone)), "{}", call.0),
                None if world.rank() == gone => world.link().fabric().nic.drop_out(),
                None => {}
            }
            Ok(())
        });
    }
}

/// Waits until `call` is not refused for the moment only.
fn settled<L: Link>(link: &L, call: impl Fn() -> Result<(), Refusal>) -> Result<(), Refusal> {
    loop {
        match call() {
            Err(refusal) if refusal.is_transient() => link.relax(),
            other => break other,
        }
    }
}

/// Whoever flushes learns that what it has put is nowhere, whether it flushes the target or all of
/// them.
#[test]
fn a_flush_tells_of_a_lost_target() {
    for all in [false, true] {
        all_and_part!(300, |world, nic| {
            let [first, lost, third] = [0, 1, 2].map(Rank::new);
            let window = world.allocate::<u32>(1)?;
            if world.rank() == third {
                return Ok(());
            }
            if world.rank() == lost {
                let mut told = window.expect(0..0, Tag(1))?.from(first)?;
                told.start()?;
                told.wait()?;
                nic.drop_out();
                return Ok(());
            }
            let lock = window.lock_shared(lost)?;
            window.notify(lost, Tag(1))?;
            let told = loop {
                // Nothing else is under way: the flush is the first that can know.
                lock.put(lost, 0, &[1])?;
                let flushed = if all {
                    lock.flush_all()
                } else {
                    lock.flush(lost)
                };
                match flushed {
                    Ok(()) => world.link().relax(),
                    Err(told) => break told,
                }
            };
            assert_eq!(told, Error::PeerLost(lost));
            let unlocked = lock.unlock();
            assert_eq!(unlocked, Err(Error::PeerLost(lost)));
            Ok(())
        });
    }
}

/// Of two requests one can never be done: the other one is told of all the same, and then the
/// failure.
#[test]
fn any_request_but_that_of_a_lost_peer() {
    all_and_part!(300, |world, nic| {
        const LOST: Rank = Rank::new(1);
        const THIRD: Rank = Rank::new(2);
        let window = world.allocate::<u32>(2)?;
        if world.rank() == LOST {
            nic.drop_out();
            return Ok(());
        }
        if world.rank() == THIRD {
            let mut told = window.expect(0..0, Tag(1))?.from(Rank::new(0))?;
            told.start()?;
            told.wait()?;
            return Ok(());
        }
        let all = window.lock_all()?;
        let (mut one, mut other) = ([0], [0]);
        let begun = (
            all.to(LOST, 0).get(&mut one),
            all.to(THIRD, 0).get(&mut other),
        );
        // Else the loss was known before it began.
        if let (Ok(one), other) = begun {
            let mut requests = [one, other?];
            let mut told = [false; 2];
            while !told[1] {
                match wait_any(&mut requests)? {
                    Some(index) => told[index] = true,
                    None => panic!("{told:?}"),
                }
            }
            if !told[0] {
                // The answer may have come before the target fell silent.
                let late = wait_any(&mut requests);
                assert!(
                    matches!(late, Ok(Some(0)) | Err(Error::PeerLost(LOST))),
                    "{late:?}"
                );
            }
        }
        std::mem::forget(all);
        window.notify(THIRD, Tag(1))
    });
}

/// What a rank did before it was lost is there for who waits for it, if it comes no later than the
/// look behind the news.
#[test]
fn what_a_lost_peer_did_before_counts() {
    // A turn of a wait looks twice: for what it waits for, and for notifications.
    for looks in 0..=2 {
        tapped(|world, seen| last_post(world, seen, looks, true));
    }
    // A post that comes with the news of the loss is seen by who does not wait.
    tapped(|world, seen| last_post(world, seen, 1, false));
}

fn last_post(
    world: &World<'_, Networked<Tap>>,
    seen: &Seen,
    looks: u32,
    waits: bool,
) -> Result<(), Error> {
    const LOST: Rank = Rank::new(1);
    let (window, link) = (world.allocate::<u32>(1)?, world.link());
    let (origin, target) = ([Rank::new(0)], [LOST]);
    if world.rank() == LOST {
        let mut request = window.expect(0..0, Tag(1))?.from(origin[0])?;
        request.start()?;
        request.wait()?;
        std::mem::forget(window.post(&world.group(&origin)?)?);
        return Ok(());
    }
    let access = window.start(&world.group(&target)?)?;
    seen.holds.set(Some(LOST));
    window.put_notify(LOST, 0, &[], Tag(1))?;
    while seen.held.borrow().is_empty() {
        assert_eq!(link.progress(Wants::Any), None);
        link.relax();
    }
    seen.lost.set(Some((LOST, looks)));
    if waits {
        access.await_posts()?;
    } else {
        assert_eq!(access.has_posted(LOST), Ok(true));
    }
    std::mem::forget(access);
    Ok(())
}
