//! The contract of `Fabric` over libfabric's `shm` and `tcp;ofi_rxm`, with threads for ranks.
//!
//! These tests need libfabric, and are ignored without being asked for:
//! `cargo xtask fabric --headers` runs them.

use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Scope;
use std::time::{Duration, Instant};

use flagpost_common::Dice;
use flagpost_fabric::{Hub, Job, Network, OpenError, Options, Secret};
use flagpost_hal::fabric::{Event, Fabric as _, Work};
use flagpost_hal::{Amo, CoreId};

#[path = "network/lost.rs"]
mod lost;
#[path = "../../../linux/tests/limit/threads.rs"]
mod threads;

use threads::within;

const MEMORY: usize = 4 << 20;

/// Where ranks meet.
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn options(provider: &str) -> Options {
    Options {
        name: None,
        provider: provider.to_owned(),
        address: None,
        memory: MEMORY,
        helper: None,
    }
}

/// [`std::thread::scope`], within the limit.
#[track_caller]
fn on_threads<'e>(act: impl for<'s> FnOnce(&'s Scope<'s, 'e>)) {
    within(|| std::thread::scope(act));
}

/// A rank's part in a job that meets at `hub`.
fn job(hub: &Hub, rank: u16, ranks: u16, secret: Secret) -> Job {
    let hub = hub.address();
    Job {
        rank,
        ranks,
        hub,
        secret,
    }
}

/// Opens a network of `ranks` threads, runs `program` on each, and leaves in order.
#[track_caller]
fn on(options: &Options, ranks: u16, program: impl Fn(&Network) + Sync) {
    let secret = Secret::new().unwrap();
    let hub = Hub::start(HERE, ranks, secret).unwrap();
    let (hub, program) = (&hub, &program);
    on_threads(|scope| {
        for rank in 0..ranks {
            let job = job(hub, rank, ranks, secret);
            scope.spawn(move || {
                let network = Network::open(&job, options).unwrap();
                program(&network);
                network.leave().unwrap();
            });
        }
    });
}

#[track_caller]
fn on_each_provider(ranks: u16, program: impl Fn(&Network) + Sync) {
    for provider in ["shm", "tcp"] {
        on(&options(provider), ranks, &program);
    }
}

fn next(network: &Network) -> CoreId {
    CoreId::new((network.core().get() + 1) % network.cores())
}

/// A put.
fn put(at: usize, data: &[u8], immediate: Option<u32>, confirmed: bool) -> Work<'_> {
    Work::Put {
        at,
        data,
        immediate,
        confirmed,
    }
}

/// The arrivals of a rank's immediates.
fn told(from: u16, immediates: impl IntoIterator<Item = u32>) -> impl Iterator<Item = Event> {
    let from = CoreId::new(from);
    let told = move |immediate| Event::Immediate { from, immediate };
    immediates.into_iter().map(told)
}

/// The ends of operations that find nothing.
fn done(ids: impl IntoIterator<Item = u32>) -> impl Iterator<Item = Event> {
    let done = |id| Event::Done { id, value: 0 };
    ids.into_iter().map(done)
}

/// Posts, as often as it takes.
#[track_caller]
fn post(network: &Network, id: u32, to: CoreId, work: Work<'_>, events: &mut Vec<Event>) {
    until(|| {
        let begun = network.post(id, to, work).is_ok();
        if !begun {
            events.extend(network.poll());
        }
        begun
    });
}

/// Asks again and again, for what happens soon.
#[track_caller]
fn until(mut happens: impl FnMut() -> bool) {
    let start = Instant::now();
    while !happens() {
        assert!(start.elapsed() < Duration::from_secs(30), "nothing happens");
    }
}

/// Waits for that many events.
fn wait(network: &Network, count: usize, events: &mut Vec<Event>) {
    while events.len() < count {
        match network.poll() {
            Some(event) => events.push(event),
            None => network.relax(&[]),
        }
    }
}

#[test]
#[ignore = "needs libfabric: cargo xtask fabric --headers"]
fn data_of_any_size_are_in_place_when_their_immediate_arrives() {
    on_each_provider(3, |network| {
        let (me, to) = (network.core(), next(network));
        let from = CoreId::new((me.get() + 2) % 3);
        for size in [0, 1, 8, 255, 256, 257, 4096, 65_537, 2 << 20] {
            let data = |rank: CoreId| -> Vec<u8> {
                (0..size)
                    .map(|at| at as u8 ^ rank.get() as u8 ^ 0x55)
                    .collect()
            };
            let (at, immediate) = (5, 0x8000_0000 | size);
            let (mut events, data_of_me) = (Vec::new(), data(me));
            let put = put(at, &data_of_me, Some(immediate), true);
            post(network, size, to, put, &mut events);
            wait(network, 2, &mut events);
            let expected = told(from.get(), [immediate]).chain(done([size]));
            let come = expected.filter(|event| events.contains(event)).count();
            assert_eq!(come, 2, "{events:?}");
            let mut found = vec![0; size as usize];
            network.read(at, &mut found);
            assert_eq!(found, data(from), "{size} bytes");
            network.meet().unwrap();
        }
    });
}

#[test]
#[ignore = "needs libfabric: cargo xtask fabric --headers"]
fn gets_bring_what_the_peer_has_stored() {
    on_each_provider(2, |network| {
        let size = 1 << 20;
        let data = |rank: CoreId| vec![rank.get() as u8 + 1; size];
        network.write(64, &data(network.core()));
        network.meet().unwrap();
        let (into, len) = (2 << 20, size);
        let mut events = Vec::new();
        let get = Work::Get { at: 64, into, len };
        post(network, 9, next(network), get, &mut events);
        wait(network, 1, &mut events);
        let mut found = vec![0; size];
        network.read(into, &mut found);
        assert_eq!(found, data(next(network)));
    });
}

/// All ranks add to one cell, and a rank to its own by the network, too: no sum is lost.
#[test]
#[ignore = "needs libfabric: cargo xtask fabric --headers"]
fn operations_on_a_cell_do_not_overlap() {
    const TIMES: u64 = 500;
    on_each_provider(3, |network| {
        let first = CoreId::new(0);
        let mut former = Vec::new();
        for _ in 0..TIMES {
            let (mut events, amo) = (Vec::new(), Amo::Add(1));
            post(network, 1, first, Work::Amo { at: 128, amo }, &mut events);
            wait(network, 1, &mut events);
            match events[0] {
                Event::Done { value, .. } => former.push(value),
                other => panic!("{other:?}"),
            }
        }
        assert!(former.is_sorted_by(|a, b| a < b));
        network.meet().unwrap();
        let (mut events, amo) = (Vec::new(), Amo::Read);
        post(network, 2, first, Work::Amo { at: 128, amo }, &mut events);
        wait(network, 1, &mut events);
        let (id, value) = (2, 3 * TIMES);
        assert_eq!(events, [Event::Done { id, value }]);
    });
}

/// More puts than there are slots, or than may be injected, to a rank that takes nothing for a
/// while: each is done once, and each immediate arrives. Those that nobody confirms do so in order.
#[test]
#[ignore = "needs libfabric: cargo xtask fabric --headers"]
fn nothing_is_lost_while_the_target_sleeps() {
    for (count, confirmed) in [(2000_u32, true), (20_000, false)] {
        on_each_provider(2, |network| {
            let (mut events, all) = (Vec::new(), count as usize);
            if network.core().get() == 1 {
                std::thread::sleep(Duration::from_millis(200));
                wait(network, all, &mut events);
                if confirmed {
                    events.sort_unstable_by_key(|event| match event {
                        Event::Immediate { immediate, .. } => *immediate,
                        other => panic!("{other:?}"),
                    });
                }
                assert!(events.into_iter().eq(told(0, 0..count)));
                return network.clear().unwrap();
            }
            for id in 0..count {
                let put = put(id as usize % 2000 * 8, &[1; 8], Some(id), confirmed);
                post(network, id, CoreId::new(1), put, &mut events);
            }
            wait(network, if confirmed { all } else { 0 }, &mut events);
            events.sort_unstable_by_key(|event| match event {
                Event::Done { id, .. } => *id,
                other => panic!("{other:?}"),
            });
            assert!(
                events
                    .into_iter()
                    .eq(done(0..if confirmed { count } else { 0 }))
            );
            network.clear().unwrap();
        });
    }
}

/// Bytes that the tests of order use, in words of 4.
const ORDERED: usize = 2 << 20;

/// Where some puts go, and how many words each has: of 0 bytes to 1 MiB, mixed, over one another.
fn places(seed: u32, most: usize) -> Vec<(usize, usize)> {
    let mut dice = Dice::new(seed.into());
    let mut draw = |below: usize| dice.below(below);
    let few = [0_usize, 1, 2, 15, 31, 64, 300, 1024, 5000];
    let sizes = few.into_iter().chain([14, 16, 18].map(|bits| 1 << bits));
    let sizes: Vec<usize> = sizes.filter(|size| *size <= most).collect();
    { 0..40 }
        .map(|_| {
            let size = sizes[draw(sizes.len())];
            (draw(ORDERED / 4 - size) * 4, size)
        })
        .collect()
}

/// What put `number` of a round stores.
fn data_of(round: u32, number: usize, words: usize) -> Vec<u8> {
    ((round << 8) | (number as u32 + 1))
        .to_le_bytes()
        .repeat(words)
}

/// Runs of words, each with the last of the `places` that has them.
fn owners(places: &[(usize, usize)]) -> Vec<(usize, Range<usize>)> {
    let mut owners = vec![None; ORDERED / 4];
    for (number, (at, words)) in places.iter().enumerate() {
        owners[*at / 4..][..*words].fill(Some(number));
    }
    let mut end = 0;
    let runs = owners.chunk_by(|a, b| a == b).filter_map(|run| {
        let start = end;
        end += run.len();
        run[0].map(|owner| (owner, start..end))
    });
    runs.collect()
}

/// Whether own memory has all that the places in `done` should have left there.
fn check(network: &Network, round: u32, owners: &[(usize, Range<usize>)], done: Range<usize>) {
    for (owner, words) in owners.iter().filter(|(owner, _)| done.contains(owner)) {
        let mut found = vec![0; 4 * words.len()];
        network.read(4 * words.start, &mut found);
        let is_there = found == data_of(round, *owner, words.len());
        assert!(is_there, "words {words:?} of put {owner}");
    }
}

/// F9: the data of all puts before an immediate are in place when it arrives, and immediates arrive
/// in order, although nothing is confirmed.
#[test]
#[ignore = "needs libfabric: cargo xtask fabric --headers"]
fn puts_of_any_size_are_in_place_in_the_order_in_which_they_were_posted() {
    const ROUNDS: u32 = 12;
    on_each_provider(2, |network| {
        assert!(network.orders_puts());
        let sender = network.core().get() == 0;
        for round in 0..ROUNDS {
            let places = places(round, usize::MAX);
            let mut events = Vec::new();
            if sender {
                for (number, (at, words)) in places.iter().enumerate() {
                    let data = data_of(round, number, *words);
                    let immediate = (number % 3 == 0).then_some(number as u32);
                    let put = put(*at, &data, immediate, false);
                    post(network, number as u32, CoreId::new(1), put, &mut events);
                }
                // No event tells of them.
                assert_eq!(events, []);
            } else {
                let owners = owners(&places);
                let mut before = 0;
                for number in (0..places.len()).step_by(3) {
                    events.clear();
                    wait(network, 1, &mut events);
                    assert!(events.iter().copied().eq(told(0, [number as u32])));
                    check(network, round, &owners, before..number + 1);
                    before = number + 1;
                }
            }
            network.clear().unwrap();
            if !sender {
                check(network, round, &owners(&places), 0..places.len());
            }
            network.meet().unwrap();
        }
    });
}

/// F9: the event of a confirmed put comes when all puts before it are in place. The target gives
/// the network time seldom, so that there is no more of it between the put and the check.
#[test]
#[ignore = "needs libfabric: cargo xtask fabric --headers"]
fn a_confirmed_put_is_done_after_all_before_it() {
    for provider in ["shm", "tcp"] {
        let is_done = AtomicBool::new(false);
        on(&options(provider), 2, |network| {
            for round in 0..8 {
                let places = places(round, 16 << 10);
                network.meet().unwrap();
                if network.core().get() == 0 {
                    let (mut events, to) = (Vec::new(), CoreId::new(1));
                    for (number, (at, words)) in places.iter().enumerate() {
                        let data = data_of(round, number, *words);
                        let put = put(*at, &data, None, number + 1 == places.len());
                        post(network, number as u32, to, put, &mut events);
                    }
                    let last = places.len() as u32 - 1;
                    let done = Event::Done { id: last, value: 0 };
                    until(|| {
                        events.extend(network.poll());
                        events.contains(&done)
                    });
                    is_done.store(true, Ordering::Release);
                    assert_eq!(events, [done]);
                } else {
                    until(|| {
                        assert_eq!(network.poll(), None);
                        std::thread::sleep(Duration::from_millis(2));
                        is_done.load(Ordering::Acquire)
                    });
                    check(network, round, &owners(&places), 0..places.len());
                    is_done.store(false, Ordering::Release);
                }
                network.meet().unwrap();
            }
        });
    }
}

/// Rank 0 changes a cell of rank 1, and sets `done` when that is done; rank 1 runs `meanwhile`
/// until then.
#[track_caller]
fn changes_a_cell(options: &Options, meanwhile: impl Fn(&Network) + Sync) {
    let done = AtomicBool::new(false);
    on(options, 2, |network| {
        network.meet().unwrap();
        if network.core().get() == 1 {
            return until(|| {
                meanwhile(network);
                done.load(Ordering::Acquire)
            });
        }
        let (mut events, amo) = (Vec::new(), Amo::Add(7));
        let change = Work::Amo { at: 64, amo };
        post(network, 1, CoreId::new(1), change, &mut events);
        wait(network, 1, &mut events);
        assert_eq!(events, [Event::Done { id: 1, value: 0 }]);
        done.store(true, Ordering::Release);
    });
}

/// F8, as far as it is kept: with a helper, an operation is done while its target makes no call.
#[test]
#[ignore = "needs libfabric: cargo xtask fabric --headers"]
fn a_helper_keeps_the_network_going_while_the_target_computes() {
    for provider in ["shm", "tcp"] {
        let options = Options {
            helper: Some(Duration::from_micros(50)),
            ..options(provider)
        };
        changes_a_cell(&options, |_| std::thread::yield_now());
    }
}

/// A rank that only looks at its own memory keeps the network going, too.
#[test]
#[ignore = "needs libfabric: cargo xtask fabric --headers"]
fn a_rank_that_polls_its_own_memory_keeps_the_network_going() {
    for provider in ["shm", "tcp"] {
        changes_a_cell(&options(provider), |network| network.read(64, &mut [0; 8]));
    }
}

#[test]
#[ignore = "needs libfabric: cargo xtask fabric --headers"]
fn what_cannot_be_opened_says_why_in_one_line() {
    let secret = Secret::new().unwrap();
    let hub = Hub::start(HERE, 1, secret).unwrap();
    let job = job(&hub, 0, 1, secret);
    let why = |options: &Options| -> OpenError { Network::open(&job, options).unwrap_err() };
    let odd = Options {
        memory: 12,
        ..options("shm")
    };
    assert!(why(&odd).to_string().contains("12 bytes of memory"));
    let unknown = why(&options("carrier-pigeon")).to_string();
    assert!(
        unknown.contains("carrier-pigeon") && !unknown.contains('\n'),
        "{unknown}"
    );
}

/// Each rank alone is a network of one.
#[test]
#[ignore = "needs libfabric: cargo xtask fabric --headers"]
fn abilities_are_told() {
    on_each_provider(1, |network| {
        let abilities = network.abilities();
        assert!(abilities.immediate_bytes >= 8 && abilities.operations > 0);
        println!("{abilities}");
        network.clear().unwrap();
    });
}
