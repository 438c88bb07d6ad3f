//! Every conformance case that any link can run, on a network with remote memory access that delays and reorders
//! whatever is not fenced.
//!
//! `FLAGPOST_SEEDS=n` changes how many seeds each combination gets. A failure prints the run's timeline and the line
//! that replays it.

mod groups;

use flagpost::{
    Budget, Displacement, DynamicOptions, Error, Link, Rank, Rma as _, Tag, Validation, World,
};
use flagpost_explore::{Chip, Setting, cases};
use flagpost_link::{Amo, Op, Place, Refusal, Width};
use flagpost_sim::{Bounds, Config, Mock, Nic, Preset, SimCore, Wire, sweep};

/// Seeds per case and size.
const SEEDS: u64 = 60;

const NETWORK: Chip = Chip::Preset(Preset::Network);

/// All cases that run on so many ranks of the network.
fn settings(cores: u16) -> impl Iterator<Item = Setting> {
    let setting = move |case| Setting {
        case,
        cores,
        chip: NETWORK,
    };
    let fits = move |setting: &Setting| setting.case.admits(cores) && setting.fits();
    cases().map(setting).filter(fits)
}

fn ranks(cores: u16, seeds: u64) {
    let (mut runs, mut steps) = (0, 0);
    for setting in settings(cores) {
        let swept = setting.add_to(sweep(0..seeds), setting.config()).run();
        swept.assert_done();
        runs += swept.runs;
        steps += swept.steps;
    }
    println!("{cores} ranks: {runs} runs, {steps} steps");
}

#[test]
fn one_rank() {
    ranks(1, 1);
}

#[test]
fn two_ranks() {
    ranks(2, groups::seeds(SEEDS));
}

#[test]
fn three_ranks() {
    ranks(3, groups::seeds(SEEDS));
}

#[test]
fn five_ranks() {
    ranks(5, groups::seeds(SEEDS) / 3);
}

#[test]
fn forty_eight_ranks() {
    ranks(48, 1);
}

/// All schedules of small cases, and all orders in which what is under way can arrive.
#[test]
fn all_schedules_of_small_cases() {
    for name in [
        "small.notify",
        "small.ping_pong",
        "small.get",
        "small.fan_out",
    ] {
        let setting = settings(2).find(|setting| setting.case.name == name);
        let setting = setting.expect("any link runs it");
        let explored = setting.explore(&Bounds::default(), setting.config());
        println!("{setting}: {explored}");
        explored.assert_done();
    }
}

/// A budget of nothing runs out at each step that takes an answer; repeated calls go on there, and do nothing twice.
fn attaches_by_steps(core: SimCore, validation: Validation) -> Result<(), Error> {
    let mut arena = [0; 256];
    let world = World::start(
        Mock::start(Nic::open(core))?,
        &mut arena,
        Default::default(),
    )?;
    let options = DynamicOptions {
        validation,
        ..Default::default()
    };
    let window = world.dynamic(options)?;
    let memory = world.reserve(32)?;
    world.set_budget(Budget::microseconds(0));
    let mut late = 0;
    let here = in_the_end(&world, &mut late, || window.attach(&memory))?;
    // Its key, its name.
    assert!(late >= 2);
    world.set_budget(Budget::UNLIMITED);
    let mut there = [0; 2];
    world.allgather_with(here.get(), |rank, raw| there[rank.index()] = raw)?;
    let peers = [Rank::new(1 - world.rank().get())];
    let group = world.group(&peers)?;
    let epoch = |wanted: Result<(), Error>| {
        let exposure = window.window().post(&group)?;
        let access = window.window().start(&group)?;
        let at = Displacement::new(there[peers[0].index()]);
        assert_eq!(window.get(&access, peers[0], at, &mut [0_u8]), wanted);
        access.complete().map_err(|late| late.error)?;
        exposure.wait().map_err(|late| late.error)
    };
    epoch(Ok(()))?;
    world.barrier()?;
    world.set_budget(Budget::microseconds(0));
    late = 0;
    in_the_end(&world, &mut late, || window.detach(&memory))?;
    let steps = match validation {
        // The name, the count.
        Validation::Counter => 2,
        // The name, the block of readers, the reader.
        Validation::Invalidation => 3,
    };
    assert!(late >= steps);
    world.set_budget(Budget::UNLIMITED);
    world.barrier()?;
    epoch(Err(Error::NotAttached))?;
    window.free().map_err(|late| late.error)
}

/// Calls until it is done, and counts how often the budget ran out.
fn in_the_end<L: Link, T>(
    world: &World<'_, L>,
    late: &mut u32,
    mut call: impl FnMut() -> Result<T, Error>,
) -> Result<T, Error> {
    loop {
        match call() {
            Err(Error::Timeout(_)) => *late += 1,
            other => return other,
        }
        world.link().relax();
    }
}

/// A lock whose release runs out of its budget at each step is given back once: another exclusive one still keeps everybody from locking
/// all.
fn unlocks_by_steps(core: SimCore) -> Result<(), Error> {
    const ONE: Rank = Rank::new(1);
    const TWO: Rank = Rank::new(2);
    let mut arena = [0; 256];
    let world = World::start(
        Mock::start(Nic::open(core))?,
        &mut arena,
        Default::default(),
    )?;
    let window = world.allocate::<u32>(1)?;
    if world.rank().get() == 0 {
        let first = window.lock_exclusive(ONE).map_err(|late| late.error)?;
        let second = window.lock_exclusive(TWO).map_err(|late| late.error)?;
        world.set_budget(Budget::microseconds(0));
        let (mut late, mut rest) = (0, first.unlock());
        while let Err(unfinished) = rest {
            assert!(matches!(unfinished.error, Error::Timeout(_)));
            late += 1;
            world.link().relax();
            rest = unfinished.handle.go_on();
        }
        assert!(late >= 1);
        world.set_budget(Budget::UNLIMITED);
        world.barrier()?;
        second.put(TWO, 0, &[5])?;
        second.unlock().map_err(|late| late.error)?;
    } else {
        world.barrier()?;
        let all = window.lock_all().map_err(|late| late.error)?;
        let mut found = [0];
        all.get(TWO, 0, &mut found)?;
        // Whoever comes before the release finds nothing yet.
        assert_eq!(found, [5]);
        all.unlock().map_err(|late| late.error)?;
    }
    world.barrier()
}

#[test]
fn an_unlock_goes_on_where_its_budget_ran_out() {
    let config = Config {
        cores: 3,
        ..Preset::Network.config()
    };
    let swept = sweep(0..300).case("unlock", config, unlocks_by_steps).run();
    swept.assert_done();
}

#[test]
fn attach_and_detach_go_on_where_their_budget_ran_out() {
    for validation in [Validation::Counter, Validation::Invalidation] {
        let config = Config {
            cores: 2,
            ..Preset::Network.config()
        };
        let program = move |core| attaches_by_steps(core, validation);
        sweep(0..60)
            .case("steps", config, program)
            .run()
            .assert_done();
    }
}

/// Far more notifications than there is room for, both ways: room is given back for each of them, also for those that the network
/// refused for a while.
fn many_notifications(core: SimCore) -> Result<(), Error> {
    const AT_A_TIME: u16 = 50;
    let mut arena = [0; 256];
    let world = World::start(
        Mock::start(Nic::open(core))?,
        &mut arena,
        Default::default(),
    )?;
    let window = world.allocate::<u32>(1)?;
    let peer = Rank::new(1 - world.rank().get());
    let mut request = window.expect(0..0, peer, Tag(1), AT_A_TIME)?;
    for _ in 0..200 {
        request.start()?;
        for _ in 0..AT_A_TIME {
            window.notify(peer, Tag(1)).map_err(|late| late.error)?;
        }
        request.wait()?;
    }
    world.barrier()
}

#[test]
fn room_comes_back() {
    let config = Config {
        cores: 2,
        // It refuses often.
        network: Some(Wire {
            sends: 2,
            ..Wire::default()
        }),
        ..Preset::Network.config()
    };
    let swept = sweep(0..4).case("many", config, many_notifications).run();
    swept.assert_done();
}

/// Rank 1 falls silent. Whoever has something under way to it, or begins something, is told; all else goes on.
fn loses_a_peer(core: SimCore) -> Result<(), Error> {
    const LOST: Rank = Rank::new(1);
    const THIRD: Rank = Rank::new(2);
    let mut arena = [0; 256];
    let link = Mock::start(Nic::open(core))?;
    let world = World::start(link, &mut arena, Default::default())?;
    let window = world.allocate::<u32>(2)?;
    let (link, me) = (world.link(), world.rank());
    let key = link.allocate(8, Place::Symmetric)?;
    if me == LOST {
        link.fabric().drop_out();
        return Ok(());
    }
    if me == THIRD {
        let mut request = window.expect(0..2, Rank::new(0), Tag(3), 1)?;
        request.start()?;
        request.wait()?;
        assert_eq!(window.local().get(1)?, 7);
        return Ok(());
    }
    // Until the first failure is known, operations may be accepted.
    let lost = loop {
        if let Err(late) = window.put_notify(LOST, 0, &[1], Tag(1)) {
            break late.error;
        }
    };
    assert_eq!(lost, Error::PeerLost(LOST));
    // A fence says once that what was to be ordered is not there.
    let fence = loop {
        match link.fence() {
            Err(refusal) if refusal.is_transient() => link.relax(),
            other => break other,
        }
    };
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
    assert_eq!(link.put_immediate(LOST, key, 0, &[], 1, true), gone);
    assert_eq!(link.signal(LOST, flagpost_link::Slot(31), 1), gone);
    Ok(window.put_notify(THIRD, 0, &[6, 7], Tag(3))?)
}

#[test]
fn a_lost_peer_is_an_error_and_the_others_go_on() {
    let config = Config {
        cores: 3,
        memory_size: 8192,
        ..Preset::Network.config()
    };
    let swept = sweep(0..300).case("lost", config, loses_a_peer).run();
    swept.assert_done();
}
