//! Ranks that are lost, or have ended their program.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flagpost_fabric::{Apart, Hub, Job, Network, Secret};
use flagpost_hal::CoreId;
use flagpost_hal::fabric::{Event, Fabric as _};

use super::{
    HERE, MEMORY, job, next, on_each_provider, on_threads, options, post, put, told, until, wait,
};

/// What is in flight to a rank that is lost fails, and what is posted to it later. The rank only
/// sleeps, so the provider itself reports no failure. Over `tcp` only: `shm` stores in the memory
/// of a rank that sleeps.
#[test]
#[ignore = "needs libfabric: cargo xtask fabric --headers"]
fn operations_to_a_rank_that_is_gone_fail() {
    let secret = Secret::new().unwrap();
    let hub = Hub::start(HERE, 2, secret).unwrap();
    let [first, second] = pair(&hub, secret);
    let done = AtomicBool::new(false);
    on_threads(|scope| {
        scope.spawn(|| {
            let network = Network::open(&second, &options("tcp")).unwrap();
            network.meet().unwrap();
            sleep_until(&done);
        });
        scope.spawn(|| {
            let _done = Sets(&done);
            let network = Network::open(&first, &options("tcp")).unwrap();
            let (gone, mut events) = (CoreId::new(1), Vec::new());
            let put = |confirmed| put(0, &[1; 8], None, confirmed);
            // A connection is there from here on.
            post(&network, 0, gone, put(true), &mut events);
            wait(&network, 1, &mut events);
            network.meet().unwrap();
            events.clear();
            post(&network, 1, gone, put(true), &mut events);
            post(&network, 1, gone, put(false), &mut events);
            hub.mark_lost(1);
            until(|| {
                events.extend(network.poll());
                network.lost().is_some() && !events.is_empty()
            });
            assert_eq!(network.lost(), Some(gone));
            let lost = [0, 1].map(|core| network.is_lost(CoreId::new(core)));
            assert_eq!(lost, [false, true]);
            post(&network, 2, gone, put(false), &mut events);
            post(&network, 2, gone, put(true), &mut events);
            wait(&network, 2, &mut events);
            assert_eq!(events, [1, 2].map(|id| Event::Failed { id }));
            assert_eq!(network.meet(), Err(Apart::Lost(1)));
            // What was not confirmed keeps nobody.
            assert_eq!(network.leave(), Err(Apart::Lost(1)));
        });
    });
}

/// A rank that ends its program is known to have left, after what it has sent; and its memory is
/// there until the others end theirs.
#[test]
#[ignore = "needs libfabric: cargo xtask fabric --headers"]
fn a_rank_that_has_ended_has_left_after_what_it_has_sent() {
    const COUNT: u32 = 500;
    let heard = AtomicBool::new(false);
    on_each_provider(3, |network| {
        let gone = CoreId::new(1);
        let mut events = Vec::new();
        if network.core() == gone {
            for at in 0..COUNT {
                let put = put(at as usize * 8, &[7; 8], Some(at), false);
                post(network, at, CoreId::new(0), put, &mut events);
            }
            return;
        }
        if network.core().get() == 0 {
            // While nothing of it is polled it has not left, though its end is heard of.
            until(|| {
                network.pause();
                heard.swap(false, Ordering::Relaxed)
            });
            std::thread::sleep(Duration::from_millis(50));
            assert!(!network.is_lost(gone) && !network.has_left(Some(gone)));
            // What is asked for comes after what is polled.
            until(|| {
                let has_left = network.has_left(Some(gone));
                if !has_left {
                    let _ = network.lost();
                    events.extend(network.poll());
                }
                has_left
            });
            assert!(events.iter().copied().eq(told(1, 0..COUNT)));
            assert!(network.has_left(None) && !network.has_left(Some(network.core())));
            assert_eq!(network.lost(), None);
            events.clear();
            post(network, 1, gone, put(0, &[7; 8], None, true), &mut events);
            wait(network, 1, &mut events);
            assert_eq!(events, [Event::Done { id: 1, value: 0 }]);
        } else {
            until(|| network.lost().is_some() || network.has_left(Some(gone)));
            assert_eq!(network.lost(), None);
            heard.store(true, Ordering::Relaxed);
        }
    });
}

/// A rank that ends behind large puts that nobody confirms has left once all are in place.
#[test]
#[ignore = "needs libfabric: cargo xtask fabric --headers"]
fn large_puts_of_a_rank_that_has_ended_are_whole() {
    const SIZE: usize = 512 << 10;
    on_each_provider(2, |network| {
        let gone = CoreId::new(1);
        let puts =
            || (0..MEMORY / SIZE).map(|number| (number * SIZE, vec![number as u8 + 1; SIZE]));
        network.meet().unwrap();
        if network.core() == gone {
            for (at, data) in puts() {
                let put = put(at, &data, None, false);
                post(network, 0, CoreId::new(0), put, &mut Vec::new());
            }
            return;
        }
        // Time to end before its data have come.
        std::thread::sleep(Duration::from_millis(50));
        until(|| {
            // The hub is asked each time, the network once.
            (0..4096).for_each(|_| assert_eq!(network.lost(), None));
            let has_left = network.has_left(Some(gone));
            assert!(has_left || network.poll().is_none());
            has_left
        });
        for (at, data) in puts() {
            assert!(has(network, at, &data), "at {at}");
        }
    });
}

/// A rank is lost behind a large put: what its immediate tells of is whole, if that comes. The loss
/// is told. Over `tcp` only: `shm` shares memory between the threads of one process, and the one
/// that ends takes it away. Of processes `cargo xtask kills` kills some in their puts.
#[test]
#[ignore = "needs libfabric: cargo xtask fabric --headers"]
fn what_the_immediate_of_a_lost_rank_tells_of_is_whole() {
    let secret = Secret::new().unwrap();
    let hub = Hub::start(HERE, 2, secret).unwrap();
    let [first, second] = pair(&hub, secret);
    let data = vec![7; 2 << 20];
    on_threads(|scope| {
        scope.spawn(|| {
            let network = Network::open(&second, &options("tcp")).unwrap();
            network.meet().unwrap();
            let (to, put) = (CoreId::new(0), put(0, &data, Some(3), false));
            post(&network, 0, to, put, &mut Vec::new());
        });
        scope.spawn(|| {
            let network = Network::open(&first, &options("tcp")).unwrap();
            let (from, immediate) = (CoreId::new(1), 3);
            network.meet().unwrap();
            until(|| {
                if let Some(event) = network.poll() {
                    assert_eq!(event, Event::Immediate { from, immediate });
                    assert!(has(&network, 0, &data));
                }
                network.lost().is_some()
            });
            assert_eq!(network.lost(), Some(from));
            assert_eq!(network.leave(), Err(Apart::Lost(1)));
        });
    });
}

/// Whether own memory has `data` at `at`.
fn has(network: &Network, at: usize, data: &[u8]) -> bool {
    let mut found = vec![0; data.len()];
    network.read(at, &mut found);
    found == data
}

/// Nobody tells of lost ranks any more.
#[test]
#[ignore = "needs libfabric: cargo xtask fabric --headers"]
fn without_the_hub_all_others_are_lost() {
    let secret = Secret::new().unwrap();
    let hub = Hub::start(HERE, 2, secret).unwrap();
    let jobs = pair(&hub, secret);
    let both = std::sync::Barrier::new(3);
    on_threads(|scope| {
        for job in &jobs {
            scope.spawn(|| {
                let network = Network::open(job, &options("tcp")).unwrap();
                both.wait();
                until(|| network.lost().is_some());
                assert_eq!(network.lost(), Some(next(&network)));
                assert!(matches!(network.meet(), Err(Apart::Hub(_))));
            });
        }
        both.wait();
        drop(hub);
    });
}

/// Two ranks.
fn pair(hub: &Hub, secret: Secret) -> [Job; 2] {
    [0, 1].map(|rank| job(hub, rank, 2, secret))
}

/// Sets a flag at its end, in a panic too: others wait for it.
struct Sets<'a>(&'a AtomicBool);

impl Drop for Sets<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

fn sleep_until(done: &AtomicBool) {
    while !done.load(Ordering::Acquire) {
        std::thread::sleep(Duration::from_millis(1));
    }
}
