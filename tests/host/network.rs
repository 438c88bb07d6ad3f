//! Every conformance case that any link can run, on a network with remote memory access that delays and reorders
//! whatever is not fenced.
//!
//! `FLAGPOST_SEEDS=n` changes how many seeds each combination gets. A failure prints the run's timeline and the line
//! that replays it.

mod groups;

use flagpost::rma::{BUFFER, Gather, Layout};
use flagpost::{
    Budget, Displacement, DynamicOptions, DynamicWindow, Error, Link, Rank, Rma as _, Tag,
    Unfinished, Validation, World,
};
use flagpost_explore::{Chip, Setting, cases};
use flagpost_link::{Amo, Op, Place, Refusal, Width};
use flagpost_sim::{Bounds, Config, Mock, Nic, Preset, SimCore, Wire, sweep};

/// Seeds per case and size.
const SEEDS: u64 = 60;

/// There is room for one operation of a rank.
const REFUSES: Wire = Wire {
    sends: 1,
    queue: 64,
    deliveries: 192,
};

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
    ranks_on(cores, seeds, None);
}

fn ranks_on(cores: u16, seeds: u64, wire: Option<Wire>) {
    let (mut runs, mut steps) = (0, 0);
    for setting in settings(cores) {
        let usual = setting.config();
        let config = Config {
            network: wire.or(usual.network),
            ..usual
        };
        let swept = setting.add_to(sweep(0..seeds), config).run();
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

/// Nearly everything is refused at first, or arrives late, or waits for room at its target.
#[test]
fn narrow_wires() {
    for (sends, queue, deliveries) in [(1, 64, 192), (2, 3, 192), (3, 8, 8), (2, 64, 2)] {
        let wire = Wire {
            sends,
            queue,
            deliveries,
        };
        for cores in [2, 3, 5] {
            ranks_on(cores, groups::seeds(SEEDS) / 10, Some(wire));
        }
    }
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

fn error<H>(late: Unfinished<H>) -> Error {
    late.error
}

/// Runs `program` on three ranks.
fn runs(
    seeds: u64,
    wire: Wire,
    program: impl Fn(&World<'_, Mock>) -> Result<(), Error> + Send + Sync,
) {
    runs_with_queue(seeds, wire, 64, program);
}

/// [`runs`] with room for so many immediates of each rank.
fn runs_with_queue(
    seeds: u64,
    wire: Wire,
    entries: u32,
    program: impl Fn(&World<'_, Mock>) -> Result<(), Error> + Send + Sync,
) {
    let config = Config {
        cores: 3,
        memory_size: 8192,
        network: Some(wire),
        ..Preset::Network.config()
    };
    let swept = sweep(0..seeds).case("network", config, move |core: SimCore| {
        let mut arena = [0; 256];
        let link = Mock::start_with_queue(Nic::open(core), entries)?;
        let world = World::start(link, &mut arena, Default::default())?;
        program(&world)
    });
    swept.run().assert_done();
}

/// The other two ranks.
fn peers(world: &World<'_, Mock>) -> [Rank; 2] {
    [1, 2].map(|distance| world.rank().ahead(distance, 3))
}

/// Calls until it is done, and counts how often the budget ran out.
fn in_the_end<T>(
    world: &World<'_, Mock>,
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

/// A budget of nothing runs out at each step that takes an answer; repeated calls go on there, and do nothing twice.
fn attaches_by_steps(world: &World<'_, Mock>, validation: Validation) -> Result<(), Error> {
    let options = DynamicOptions {
        validation,
        ..Default::default()
    };
    let window = world.dynamic(options)?;
    let memory = world.reserve(32)?;
    memory.write(0, &[7_u8])?;
    world.set_budget(Budget::microseconds(0));
    let mut late = 0;
    let here = in_the_end(world, &mut late, || window.attach(&memory))?;
    // Its key, its name.
    assert!(late >= 2);
    world.set_budget(Budget::UNLIMITED);
    let mut there = [0; 3];
    world.allgather_with(here.get(), |rank, raw| there[rank.index()] = raw)?;
    reads(&window, &there, Ok(7))?;
    world.barrier()?;
    world.set_budget(Budget::microseconds(0));
    late = 0;
    in_the_end(world, &mut late, || window.detach(&memory))?;
    let steps = match validation {
        // The name, the count.
        Validation::Counter => 2,
        // The name, the block of readers, each reader.
        Validation::Invalidation => 4,
    };
    assert!(late >= steps);
    world.set_budget(Budget::UNLIMITED);
    world.barrier()?;
    reads(&window, &there, Err(Error::NotAttached))?;
    window.free().map_err(error)
}

/// Each reads a byte of both peers', `there`, and finds what is wanted.
fn reads(
    window: &DynamicWindow<'_, Mock>,
    there: &[u64; 3],
    wanted: Result<u8, Error>,
) -> Result<(), Error> {
    let world = window.window().world();
    let peers = peers(world);
    let group = world.group(&peers)?;
    let exposure = window.window().post(&group)?;
    let access = window.window().start(&group)?;
    for peer in peers {
        let (at, mut byte) = (Displacement::new(there[peer.index()]), [0]);
        let found = window.get(&access, peer, at, &mut byte);
        assert_eq!(found.map(|()| byte[0]), wanted);
    }
    access.complete().map_err(error)?;
    exposure.wait().map_err(error)
}

/// Fails if a step is done again or left out, or a reader is forgotten that was not told.
#[test]
fn attach_and_detach_go_on_where_their_budget_ran_out() {
    for validation in [Validation::Counter, Validation::Invalidation] {
        runs(60, Wire::default(), move |world| {
            attaches_by_steps(world, validation)
        });
    }
}

/// An attach that ran out of its budget after so many calls, and a detach, are left for those of other memory, which are done first.
fn leaves_for_another(
    world: &World<'_, Mock>,
    validation: Validation,
    calls: u32,
) -> Result<(), Error> {
    let options = DynamicOptions {
        validation,
        ..Default::default()
    };
    let window = world.dynamic(options)?;
    let memories = [world.reserve(32)?, world.reserve(32)?];
    let [first, second] = &memories;
    first.write(0, &[10_u8])?;
    second.write(0, &[20_u8])?;
    let mut late = 0;
    world.set_budget(Budget::microseconds(0));
    for _ in 0..calls {
        assert!(matches!(window.attach(first), Err(Error::Timeout(_))));
    }
    let here = [second, first].map(|memory| {
        in_the_end(world, &mut late, || window.attach(memory)).map(Displacement::get)
    });
    world.set_budget(Budget::UNLIMITED);
    let mut there = [[0; 3]; 2];
    for (here, there) in here.into_iter().zip(&mut there) {
        world.allgather_with(here?, |rank, raw| there[rank.index()] = raw)?;
    }
    reads(&window, &there[0], Ok(20))?;
    reads(&window, &there[1], Ok(10))?;
    world.barrier()?;
    world.set_budget(Budget::microseconds(0));
    for _ in 0..calls {
        assert!(matches!(window.detach(first), Err(Error::Timeout(_))));
    }
    in_the_end(world, &mut late, || window.detach(second))?;
    in_the_end(world, &mut late, || window.detach(first))?;
    world.set_budget(Budget::UNLIMITED);
    world.barrier()?;
    for there in there {
        reads(&window, &there, Err(Error::NotAttached))?;
    }
    window.free().map_err(error)
}

/// Fails if a step that one of them had begun, or had done, is taken for the other's.
#[test]
fn attach_and_detach_are_left_for_others() {
    for validation in [Validation::Counter, Validation::Invalidation] {
        for calls in 1..=2 {
            runs(60, Wire::default(), move |world| {
                leaves_for_another(world, validation, calls)
            });
        }
    }
}

/// A lock whose release runs out of its budget at each step is given back once: another exclusive one still keeps everybody from locking
/// all.
#[test]
fn an_unlock_goes_on_where_its_budget_ran_out() {
    const ONE: Rank = Rank::new(1);
    const TWO: Rank = Rank::new(2);
    runs(300, Wire::default(), |world| {
        let window = world.allocate::<u32>(1)?;
        if world.rank().get() == 0 {
            let first = window.lock_exclusive(ONE).map_err(error)?;
            let second = window.lock_exclusive(TWO).map_err(error)?;
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
            second.unlock().map_err(error)?;
        } else {
            world.barrier()?;
            let all = window.lock_all().map_err(error)?;
            let mut found = [0];
            all.get(TWO, 0, &mut found)?;
            // Whoever comes before the release finds nothing yet.
            assert_eq!(found, [5]);
            all.unlock().map_err(error)?;
        }
        world.barrier()
    });
}

/// Fails if a queued lock that is cancelled where its budget ran out leaves the rank's turn behind: the next one would wait for ever.
#[test]
fn who_cancelled_a_queued_lock_can_lock_again() {
    const BUSY: Rank = Rank::new(2);
    // What is under way takes about as long as the budget: as there is a rank that never sleeps, it does not arrive sooner.
    let slow = Wire {
        deliveries: 2,
        ..Wire::default()
    };
    runs(60, slow, |world| {
        let window = world.allocate::<u32>(1)?;
        if world.rank() == BUSY {
            let peers = peers(world);
            let expect = |peer| window.expect(0..0, peer, Tag(1), 1);
            for mut request in [expect(peers[0])?, expect(peers[1])?] {
                request.start()?;
                while request.test()?.is_none() {}
            }
            return world.barrier();
        }
        for _ in 0..4 {
            world.set_budget(Budget::microseconds(1));
            let lock = window.lock_queued(BUSY);
            world.set_budget(Budget::UNLIMITED);
            match lock {
                Ok(lock) => lock.unlock().map_err(error)?,
                Err(late) => late.handle.cancel().map_err(error)?,
            }
            let lock = window.lock_queued(BUSY).map_err(error)?;
            lock.unlock().map_err(error)?;
        }
        window.notify(BUSY, Tag(1)).map_err(error)?;
        world.barrier()
    });
}

/// Operations on cells whose answer the link keeps, or waits for, since somebody may ask for it.
fn kept_answers(world: &World<'_, Mock>) -> usize {
    let link = format!("{:?}", world.link());
    link.matches("purpose: Cell(").count()
}

/// Begins, and goes on without a budget until it is done.
fn by_steps<T, H>(
    world: &World<'_, Mock>,
    begin: impl FnOnce() -> Result<T, Unfinished<H>>,
    go_on: impl Fn(H) -> Result<T, Unfinished<H>>,
) -> Result<T, Error> {
    /// More calls than any answers take.
    const PATIENCE: u32 = 10_000;
    world.set_budget(Budget::microseconds(0));
    let mut rest = begin();
    for _ in 0..PATIENCE {
        match rest {
            Ok(done) => {
                world.set_budget(Budget::UNLIMITED);
                return Ok(done);
            }
            Err(late) => {
                assert!(matches!(late.error, Error::Timeout(_)));
                world.link().relax();
                rest = go_on(late.handle);
            }
        }
    }
    panic!("it does not come to an end")
}

/// How the ranks of [`locks_by_steps`] lock the piece of the last one.
#[derive(Copy, Clone, Debug)]
enum How {
    Queued,
    Exclusive,
    Shared,
    All,
}

/// Rank 1 has the lock, rank 2 gives up waiting for it, rank 0 waits until it has it.
fn locks_by_steps(world: &World<'_, Mock>, how: How) -> Result<(), Error> {
    const TWO: Rank = Rank::new(2);
    const TURNS: u32 = 300;
    let window = world.allocate::<u32>(1)?;
    let ask = || match how {
        How::Queued => window.lock_queued(TWO),
        How::Exclusive => window.lock_exclusive(TWO),
        How::Shared => window.lock_shared(TWO),
        How::All => window.lock_all(),
    };
    let has = || match how {
        How::Queued => window.lock_queued(TWO),
        _ => window.lock_exclusive(TWO),
    };
    match world.rank().get() {
        0 => {
            world.barrier()?;
            world.barrier()?;
            let lock = by_steps(world, ask, |rest| rest.go_on())?;
            by_steps(world, || lock.unlock(), |rest| rest.go_on())?;
        }
        1 => {
            let lock = by_steps(world, has, |rest| rest.go_on())?;
            world.barrier()?;
            world.barrier()?;
            (0..TURNS).for_each(|_| world.link().relax());
            by_steps(world, || lock.unlock(), |rest| rest.go_on())?;
        }
        _ => {
            world.barrier()?;
            world.set_budget(Budget::microseconds(0));
            let mut asked = ask();
            for _ in 0..TURNS {
                asked = asked.or_else(|late| {
                    world.link().relax();
                    late.handle.go_on()
                });
            }
            world.set_budget(Budget::UNLIMITED);
            let late = asked.expect_err("it is rank 1's");
            late.handle.cancel().map_err(error)?;
            world.barrier()?;
        }
    }
    assert_eq!(kept_answers(world), 0);
    world.barrier()
}

/// A budget that is shorter than the way of an answer: locks are got, and given back, all the same. Fails if a call asks again for
/// what the one before had asked for.
#[test]
fn locks_go_on_where_their_budget_ran_out() {
    for how in [How::Queued, How::Exclusive, How::Shared, How::All] {
        runs(60, Wire::default(), move |world| locks_by_steps(world, how));
    }
}

/// Calls that run out of their budget before the answer has come, again and again. Fails if each of them leaves its answer with the
/// link, which would keep it for ever.
#[test]
fn answers_that_nobody_asks_for_are_not_kept() {
    runs(20, Wire::default(), |world| {
        let mut window = world.allocate::<u32>(1)?;
        window.set_num_notify(1)?;
        let dynamic = world.dynamic(DynamicOptions::default())?;
        let memory = world.reserve(32)?;
        let (here, mut there) = (dynamic.attach(&memory)?, [0; 3]);
        world.allgather_with(here.get(), |rank, raw| there[rank.index()] = raw)?;
        let all = dynamic.window().lock_all().map_err(error)?;
        let [peer, _] = peers(world);
        let at = Displacement::new(there[peer.index()]);
        world.set_budget(Budget::microseconds(0));
        for _ in 0..50 {
            assert!(matches!(window.notify_value(0), Err(Error::Timeout(_))));
            let got = dynamic.get(&all, peer, at, &mut [0_u8]);
            assert!(matches!(got, Err(Error::Timeout(_))));
        }
        world.set_budget(Budget::UNLIMITED);
        assert_eq!(kept_answers(world), 0);
        all.unlock().map_err(error)?;
        world.barrier()?;
        dynamic.detach(&memory)?;
        dynamic.free().map_err(error)?;
        world.barrier()
    });
}

/// Each is told something by both peers, and frees the window; the network refuses to give room back while the barrier's last signal is
/// under way. Fails if that is taken for nothing having arrived.
#[test]
fn a_network_that_refuses_hides_no_notification() {
    runs_with_queue(300, REFUSES, 2, |world| {
        for _ in 0..3 {
            let window = world.allocate::<u32>(1)?;
            for peer in peers(world) {
                window.notify(peer, Tag(1)).map_err(error)?;
            }
            let unmatched = match window.free() {
                Ok(()) => panic!("nothing had arrived"),
                Err(unmatched) => unmatched,
            };
            assert_eq!(unmatched.error, Error::Unmatched { count: 2 });
            let window = unmatched.handle;
            assert_eq!(window.discard_notifications()?, 2);
            window.free().map_err(error)?;
        }
        world.barrier()
    });
}

/// A network that refuses most of the time, and room for one: each notification needs the room of the one before. Fails if room that the
/// network refused to give back is never given back.
#[test]
fn room_that_could_not_be_given_back_is_given_back_later() {
    runs_with_queue(60, REFUSES, 1, |world| {
        let window = world.allocate::<u32>(1)?;
        let peers = peers(world);
        let expect = |peer| window.expect(0..0, peer, Tag(1), 5);
        let mut requests = [expect(peers[0])?, expect(peers[1])?];
        for _ in 0..20 {
            for request in &mut requests {
                request.start()?;
            }
            for _ in 0..5 {
                for peer in peers {
                    window.notify(peer, Tag(1)).map_err(error)?;
                }
            }
            for request in &mut requests {
                request.wait()?;
            }
        }
        world.barrier()
    });
}

/// Far more notifications than there is room for, to and from all: room is given back for each of them. Fails if one that the
/// network refused takes room: it refuses what is for one peer while something is under way to the other.
#[test]
fn room_comes_back() {
    const AT_A_TIME: u16 = 30;
    runs(4, REFUSES, |world| {
        let window = world.allocate::<u32>(1)?;
        let peers = peers(world);
        let expect = |peer| window.expect(0..0, peer, Tag(1), AT_A_TIME);
        let mut requests = [expect(peers[0])?, expect(peers[1])?];
        for _ in 0..100 {
            for request in &mut requests {
                request.start()?;
            }
            for _ in 0..AT_A_TIME {
                for peer in peers {
                    window.notify(peer, Tag(1)).map_err(error)?;
                }
            }
            for request in &mut requests {
                request.wait()?;
            }
        }
        world.barrier()
    });
}

/// A network with room for one operation refuses all others, and each is begun again. Fails if a post is counted, a block of an
/// `alltoall` marked as placed, or a packed put taken further, before it was accepted.
#[test]
fn what_was_refused_is_begun_again() {
    const RUN: usize = 3 * BUFFER;
    runs(60, REFUSES, |world| {
        let window = world.allocate::<u8>(2 * RUN)?;
        let (me, peers) = (world.rank(), peers(world));
        let group = world.group(&peers)?;
        let every_other = Layout::Vector {
            blocks: RUN,
            block_len: 1,
            stride: 2,
        };
        let run = Layout::Contiguous { count: RUN };
        for round in 0..2 {
            let data: [u8; 2 * RUN] = core::array::from_fn(|i| (i / 2) as u8 + round);
            let exposure = window.post(&group)?;
            let access = window.start(&group)?;
            for peer in peers {
                let place = usize::from(me == peer.ahead(1, 3)) * RUN;
                access.put_layout(peer, place, run, Gather::new(&data, every_other))?;
            }
            access.complete().map_err(error)?;
            exposure.wait().map_err(error)?;
            for i in 0..2 * RUN {
                assert_eq!(window.local().get(i)?, (i % RUN) as u8 + round);
            }
        }
        world.set_budget(Budget::microseconds(0));
        let (mut late, mut into) = (0, [0; 3]);
        let from = [1, 2, 3].map(|number| number + 10 * me.get());
        in_the_end(world, &mut late, || world.alltoall(&from, &mut into))?;
        assert_eq!(into, [1, 11, 21].map(|number| number + me.get()));
        world.set_budget(Budget::UNLIMITED);
        world.barrier()
    });
}

/// Rank 0 has no room for what others tell it, so it takes nothing from the link, and begins more than the network, or the link, has
/// room for. Fails if only who takes notifications finds out that there is room again.
#[test]
fn a_full_queue_holds_up_no_access() {
    const ONE: Rank = Rank::new(1);
    // As many as are kept.
    const TOLD: usize = 64;
    runs(60, Wire::default(), |world| {
        let window = world.allocate::<u32>(1)?;
        let (me, all) = (world.rank().get(), window.lock_all().map_err(error)?);
        if me == 1 {
            for _ in 0..TOLD {
                window.notify(Rank::new(0), Tag(1)).map_err(error)?;
            }
        }
        world.barrier()?;
        if me == 0 {
            for value in 0..40 {
                all.put(ONE, 0, &[value])?;
            }
            let mut words = [[0]; 6];
            for request in words
                .each_mut()
                .map(|word| all.rget(ONE, 0, word))
                .into_iter()
                .rev()
            {
                request?.wait().map_err(error)?;
            }
        }
        all.unlock().map_err(error)?;
        world.barrier()?;
        if me == 0 {
            let mut request = window.expect(0..0, ONE, Tag(1), TOLD as u16)?;
            request.start()?;
            request.wait()?;
        }
        world.barrier()
    });
}

/// Rank 1 falls silent. Whoever has something under way to it, or begins something, is told; all else goes on.
#[test]
fn a_lost_peer_is_an_error_and_the_others_go_on() {
    runs(300, Wire::default(), loses_a_peer);
}

fn loses_a_peer(world: &World<'_, Mock>) -> Result<(), Error> {
    const LOST: Rank = Rank::new(1);
    const THIRD: Rank = Rank::new(2);
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
