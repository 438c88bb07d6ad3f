//! Ranks and groups of a larger world: each call that takes one refuses it first, by its number,
//! and nothing is lost.

use std::cell::Cell;

use flagpost::{
    Config as WorldConfig, Counter, Error, Group, Link, MatchVector, MatchingList, Notice, Rank,
    Rma, Session, Signal, Tag, Window, World,
    epoch::{Assert, Strategy},
};
use flagpost_explore::Mock;
use flagpost_mapped::Mapped;
use flagpost_sim::{Config, Nic, Preset, Sim, SimCore};
use flagpost_verbs::{Verb, begin};

const SIZE: u16 = 2;

/// Ranks that a world of two has not.
const STRANGE: [u16; 4] = [SIZE, SIZE + 1, 1 << 15, u16::MAX];

/// Runs `program` in a world of so many ranks, over memory and over a network.
fn worlds(
    cores: u16,
    memory: impl Fn(&World<'_, Mapped<SimCore>>) -> Result<(), Error>,
    network: impl Fn(&World<'_, Mock>) -> Result<(), Error>,
) {
    let chip = Config {
        cores,
        memory_size: 16 << 10,
        ..Config::default()
    };
    let report = Sim::new(chip).run(|core| {
        let mut arena = [0; 512];
        let link = Mapped::start(core, Session::FIRST)?;
        memory(&World::start(link, &mut arena, WorldConfig::default())?)
    });
    report.assert_done();
    let chip = Config {
        cores,
        memory_size: 16 << 10,
        ..Preset::Network.config()
    };
    let report = Sim::new(chip).run(|core| {
        let mut arena = [0; 512];
        let link = Mock::start_with_queue(Nic::open(core), 64)?;
        network(&World::start(link, &mut arena, WorldConfig::default())?)
    });
    report.assert_done();
}

/// The error of each call, with its name.
type Calls<'c> = &'c mut dyn FnMut(&str, Option<Error>);

fn error<T, E: Into<Error>>(result: Result<T, E>) -> Option<Error> {
    result.err().map(Into::into)
}

/// What every epoch has.
fn accesses<'w, L: Link + 'w>(epoch: &impl Rma<'w, u32, L>, to: Rank, check: Calls<'_>) {
    let mut into = [0];
    for verb in Verb::ALL {
        check(
            verb.name(),
            error(verb.call(epoch, (to, 0), &[1], &mut into)),
        );
        check(
            verb.name(),
            error(begin!(verb, epoch.to(to, 0), &[1], &mut into)),
        );
    }
    // Nor does a wrong place hide the rank.
    check("put nowhere", error(epoch.put(to, usize::MAX, &[1])));
    check("get nowhere", error(epoch.get(to, usize::MAX, &mut into)));
}

/// A group that a larger world has made is refused, and one of this world is not.
fn refuses_group<'w, L: Link, S: Strategy<'w, L>>(
    window: &Window<'w, u32, L, S>,
    larger: &Group<'static>,
) -> Result<(), Error> {
    let strange = larger.ranks().iter().find(|rank| rank.get() >= SIZE);
    let refused = Some(Error::NoSuchRank {
        rank: *strange.expect("it has such a rank"),
        size: SIZE,
    });
    assert_eq!(error(window.start(larger)), refused);
    assert_eq!(error(window.post(larger)), refused);
    assert_eq!(error(window.post_range(0..1, larger)), refused);
    let me = window.world().rank();
    let exposure = window.post([me])?;
    window.start([me])?.complete()?;
    exposure.wait()
}

fn refuses<L: Link>(world: &World<'_, L>, larger: &Group<'static>) -> Result<(), Error> {
    let (me, next) = (world.rank(), world.rank().next(SIZE));
    let mut window = world.allocate::<u32>(2)?;
    window.set_num_notify(1)?;
    let events = world.events(1)?;
    for number in STRANGE {
        let to = Rank::new(number);
        let refused = Error::NoSuchRank {
            rank: to,
            size: SIZE,
        };
        let check: Calls<'_> = &mut |call, found| assert_eq!(found, Some(refused), "{call}");
        check("group", error(world.group(&[to])));
        check("group of more", error(world.group(&[me, to, me])));
        check("lock_shared", error(window.lock_shared(to)));
        check("lock_exclusive", error(window.lock_exclusive(to)));
        check("lock_queued", error(window.lock_queued(to)));
        check("expect", error(window.expect(0..1, Tag(1))?.from(to)));
        check("probe", error(window.probe(to, Tag(1))));
        let notices: [Notice<'_, L::Word>; 4] = [
            Tag(1).into(),
            Counter(0).into(),
            Signal(0).add(1.into()),
            events.event(0)?.into(),
        ];
        let mut into = [0];
        for notice in notices {
            check("notify", error(window.notify(to, notice)));
            check("put_notify", error(window.put_notify(to, 0, &[1], notice)));
            let told = window.get_notify(to, 0, &mut into, notice);
            check("get_notify", error(told));
            for verb in Verb::ALL {
                let target = window.to(to, 0).notify(notice);
                check(verb.name(), error(begin!(verb, target, &[1], &mut into)));
            }
        }
        check("num_notify", error(window.num_notify(to)));
        check("event", error(events.post(to, 0)));
        check("broadcast", error(world.broadcast(to, &mut into)));
        check("reduce", error(world.reduce(to, &mut into, |a, _| a)));
        if L::DIRECT {
            check("peer", error(window.peer(to)));
        }
        let all = window.lock_all()?;
        accesses(&all, to, check);
        check("flush", error(all.flush(to)));
        all.unlock()?;
        let one = window.lock_shared(next)?;
        accesses(&one, to, check);
        check("flush of another", error(one.flush(to)));
        one.unlock()?;
        let fence = window.fence(Assert::empty())?;
        accesses(&fence, to, check);
        fence.end()?;
        let peer = [next];
        let group = world.group(&peer)?;
        let exposure = window.post(&group)?;
        let access = window.start(&group)?;
        accesses(&access, to, check);
        check("has_posted", error(access.has_posted(to)));
        access.complete()?;
        exposure.wait()?;
    }
    refuses_group(&window, larger)?;
    // Nothing has been moved or told, and all is as if it had not been asked for.
    world.barrier()?;
    assert_eq!(window.discard_notifications()?, 0);
    let counted = [window.notify_value(Counter(0))?, events.query(0)?];
    assert_eq!(counted, [0.into(); 2]);
    let lock = window.lock_exclusive(me)?;
    assert_eq!((window.local().get(0)?, window.local().get(1)?), (0, 0));
    lock.unlock()?;
    let peer = [next];
    let group = world.group(&peer)?;
    let exposure = window.post(&group)?;
    let access = window.start(&group)?;
    access.put(next, 0, &[7])?;
    access.complete()?;
    exposure.wait()?;
    assert_eq!(window.local().get(0)?, 7);
    events.free()?;
    window.free()
}

/// A group of `ranks` that a world of four has made.
fn group_of_four(ranks: &'static [Rank]) -> Group<'static> {
    let kept = Cell::new(None);
    let keep = |group| kept.set(Some(group));
    worlds(4, |world| world.group(ranks).map(keep), |_| Ok(()));
    kept.get().expect("a group")
}

#[test]
fn ranks_of_a_larger_world_are_refused() {
    static GROUPS: [&[Rank]; 3] = [
        &[Rank::new(1), Rank::new(3)],
        &[Rank::new(2), Rank::new(0)],
        &[Rank::new(2)],
    ];
    for ranks in GROUPS {
        let larger = group_of_four(ranks);
        let memory = |world: &World<'_, Mapped<SimCore>>| {
            refuses_group(
                &world.allocate_with::<u32, MatchVector<'_>>(1, ())?,
                &larger,
            )?;
            refuses_group(
                &world.allocate_with::<u32, MatchingList<'_>>(1, 2)?,
                &larger,
            )?;
            refuses(world, &larger)
        };
        worlds(SIZE, memory, |world| refuses(world, &larger));
    }
    // One whose ranks are all here may be used.
    static BOTH: [Rank; 2] = [Rank::new(1), Rank::new(0)];
    let larger = group_of_four(&BOTH);
    let uses = |world: &World<'_, Mapped<SimCore>>| {
        let window = world.allocate::<u32>(1)?;
        let exposure = window.post(&larger)?;
        window.start(&larger)?.complete()?;
        exposure.wait()
    };
    worlds(SIZE, uses, |_| Ok(()));
}
