//! The port on a chip of threads: a core is a thread, its counter a number that the test sets.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Condvar, Mutex};
use std::time::Duration;
use std::{mem, thread};

use flagpost_common::patience;

use flagpost_cortex_m::{Chip, CortexM, Exclusives, Lock, Section, Shared, Stack};
use flagpost_hal::{
    Address, Amo, Clock as _, Coherence as _, CoreId, NativeAtomics as _, Region, Relax as _,
    TestAndSet as _, Topology as _, UncachedMemory as _, Watch,
};

thread_local! {
    static CORE: Cell<u16> = const { Cell::new(0) };
    static COUNTER: Cell<u32> = const { Cell::new(0) };
}

/// Two threads. Their locks know the holder, who takes them as often as it likes.
#[derive(Copy, Clone, Debug)]
struct Threads<const BITS: u32 = 32, const SLEEPS: bool = false>;

// SAFETY: the host's memory is coherent, and the default barrier is a full fence here.
unsafe impl<const BITS: u32, const SLEEPS: bool> Chip for Threads<BITS, SLEEPS> {
    const COUNTER_BITS: u32 = BITS;
    const SLEEPS: bool = SLEEPS;

    fn core() -> u16 {
        CORE.get()
    }

    fn counter() -> u32 {
        COUNTER.get() & (u32::MAX >> (32 - BITS))
    }

    fn hertz() -> u64 {
        1_000_000
    }

    fn test_and_set(lock: Lock<'_>) -> bool {
        let me = u32::from(CORE.get()) + 1;
        let found = lock.word.compare_exchange(0, me, Relaxed, Relaxed);
        found.is_ok() || found == Err(me)
    }

    fn clear(lock: Lock<'_>) {
        lock.free();
    }

    /// No timer: without the event a core would sleep for ever.
    fn sleep() {
        let (event, woken) = &EVENTS[usize::from(CORE.get())];
        let event = event.lock().expect("no core panics");
        let waits = |event: &mut bool| !mem::take(event);
        let (_event, slept) =
            { woken.wait_timeout_while(event, patience(SLEEP), waits) }.expect("no core panics");
        assert!(!slept.timed_out(), "a core sleeps, and nobody wakes it");
    }

    fn wake(core: u16) {
        let (event, woken) = &EVENTS[usize::from(core)];
        *event.lock().expect("no core panics") = true;
        woken.notify_one();
    }

    fn relax() {
        thread::yield_now();
    }
}

/// Longer than any core here sleeps.
const SLEEP: Duration = Duration::from_secs(1);

/// The event registers of both cores.
static EVENTS: [(Mutex<bool>, Condvar); 2] = [const { (Mutex::new(false), Condvar::new()) }; 2];

impl<const BITS: u32, const SLEEPS: bool> Exclusives for Threads<BITS, SLEEPS> {}

critical_section::set_impl!(Section<Threads>);

/// Calls `act` on two cores, each a thread.
fn both(act: impl Fn() + Sync) {
    thread::scope(|scope| {
        for core in 0..2 {
            let act = &act;
            scope.spawn(move || {
                CORE.set(core);
                act();
            });
        }
    });
}

fn at(core: u16, offset: usize) -> Address {
    Region::memory(CoreId::new(core)).at(offset)
}

fn fresh() -> &'static Shared<2, 16> {
    Box::leak(Box::new(Shared::new()))
}

fn machine() -> CortexM<Threads> {
    CortexM::start(fresh()).expect("core 0 of two")
}

#[test]
fn copies_change_the_bytes_that_they_name_and_no_others() {
    let machine = machine();
    for start in 0..9 {
        for len in 0..20 {
            let mut model = [0xee; 32];
            machine.store_bytes(at(1, 0), &model);
            let data: Vec<u8> = (1..=len).collect();
            let end = start + data.len();
            model[start..end].copy_from_slice(&data);
            machine.store_bytes(at(1, start), &data);
            let mut seen = [0; 32];
            machine.load_bytes(at(1, 0), &mut seen);
            assert_eq!(seen, model, "{len} bytes at {start}");
            let mut seen = vec![0; data.len()];
            machine.load_bytes(at(1, start), &mut seen);
            assert_eq!(seen, data, "{len} bytes at {start}");
        }
    }
    machine.store_u8(at(0, 5), 7);
    assert_eq!(machine.load_u32(at(0, 4)).to_ne_bytes(), [0, 7, 0, 0]);
    assert_eq!(machine.load_u8(at(0, 5)), 7);
    // The regions lie side by side, and have their ends.
    machine.store_bytes(at(0, 60), &[1; 4]);
    machine.store_bytes(at(0, 64), &[]);
    assert_eq!(machine.load_u32(at(1, 0)), u32::from_ne_bytes([0xee; 4]));
}

#[test]
fn an_access_outside_of_a_region_stops_the_core() {
    type Access = fn(CortexM<Threads>);
    let accesses: [(&str, Access); 8] = [
        ("a word behind the end", |m| m.store_u32(at(0, 64), 1)),
        ("a word that is not aligned", |m| m.store_u32(at(0, 2), 1)),
        ("a byte behind the end", |m| m.store_u8(at(0, 64), 1)),
        ("bytes over the end", |m| m.store_bytes(at(0, 60), &[1; 5])),
        ("loads over the end", |m| {
            m.load_bytes(at(0, 60), &mut [0; 5])
        }),
        ("a far offset", |m| m.store_u8(at(0, usize::MAX), 1)),
        ("no such core", |m| m.store_u8(at(2, 0), 1)),
        ("no such buffer", |m| {
            m.store_u8(Region::message_buffer(CoreId::new(0)).at(0), 1)
        }),
    ];
    for (what, access) in accesses {
        let stopped = thread::spawn(move || access(machine())).join().is_err();
        assert!(stopped, "{what}");
    }
}

#[test]
fn a_core_that_the_memory_has_no_place_for_gets_no_handle() {
    CORE.set(2);
    assert!(CortexM::<Threads>::start(fresh()).is_none());
}

#[test]
fn the_clock_has_64_bits_whatever_the_counter_has() {
    fn passes<const BITS: u32>() {
        COUNTER.set(u32::MAX - 5);
        let machine = CortexM::<Threads<BITS>>::start(fresh()).expect("core 0");
        let mut total = 0;
        for step in [1, 10, 0, 1 << (BITS - 1), 1 << (BITS - 1), 7] {
            COUNTER.set(COUNTER.get().wrapping_add(step));
            total += u64::from(step);
            assert_eq!(machine.cycles(), total, "{BITS} bits");
            let copy = machine;
            assert_eq!(copy.cycles(), total, "copies are one clock");
        }
    }
    passes::<32>();
    passes::<24>();
    // 32 bits overflow.
    let machine = machine();
    let mut last = 0;
    for _ in 0..9 {
        COUNTER.set(COUNTER.get().wrapping_add(0xf000_0000));
        assert_eq!(machine.cycles(), last + 0xf000_0000);
        last = machine.cycles();
    }
}

#[test]
fn a_holder_fails_to_take_its_lock_again_even_if_the_chip_grants_it() {
    let machine = machine();
    let (zero, one) = (CoreId::new(0), CoreId::new(1));
    assert!(machine.test_and_set(one) && !machine.test_and_set(one));
    assert!(machine.test_and_set(zero), "another lock");
    machine.clear(one);
    assert!(machine.test_and_set(one));
    machine.release_at_start(zero);
    assert!(machine.test_and_set(zero), "free after a start");
    assert!(!machine.test_and_set(CoreId::new(2)), "no such lock");
}

#[test]
fn locks_atomics_and_bells_reach_the_other_core() {
    const TIMES: u32 = 1000;
    let shared = fresh();
    both(|| {
        let machine = CortexM::<Threads>::start(shared).expect("a core of two");
        let first = CoreId::new(0);
        for _ in 0..TIMES {
            let held = loop {
                match machine.try_lock(first) {
                    Some(held) => break held,
                    None => Threads::<32>::relax(),
                }
            };
            machine.acquire();
            machine.store_u32(at(0, 8), machine.load_u32(at(0, 8)) + 1);
            machine.drain();
            drop(held);
            machine.atomic_u32(at(0, 12), Amo::Add(1));
        }
        // A ring that came before its core's start would be lost.
        machine.store_u32(at(machine.core().get(), 16), 1);
        let other = CoreId::new(1 - machine.core().get());
        while machine.load_u32(at(other.get(), 16)) == 0 {
            Threads::<32>::relax();
        }
        machine.ring(other);
        machine.wait_for_ring();
    });
    let machine = CortexM::<Threads>::start(shared).expect("core 0");
    assert_eq!(machine.load_u32(at(0, 8)), 2 * TIMES);
    assert_eq!(machine.load_u32(at(0, 12)), 2 * TIMES);
}

/// Each core counts in the other's region what it finds in its own, and sleeps meanwhile.
#[test]
fn a_core_sleeps_until_it_is_told() {
    let shared = fresh();
    both(|| {
        let machine = CortexM::<Threads<32, true>>::start(shared).expect("a core of two");
        let (me, other) = (machine.core(), CoreId::new(1 - machine.core().get()));
        let mut count = 0;
        while count < 1000 {
            if me.get() == 0 {
                machine.store_u32(at(other.get(), 20), count + 1);
                machine.told(other);
            }
            let own = at(me.get(), 20);
            loop {
                let seen = machine.load_u32(own);
                if seen > count {
                    count = seen;
                    break;
                }
                machine.relax(&[Watch { at: own, seen }]);
            }
            if me.get() == 1 {
                machine.store_u32(at(other.get(), 20), count);
                machine.told(other);
            }
        }
    });
}

/// The other core tells nobody of a change of its own words.
#[test]
fn a_core_that_waits_for_others_words_does_not_sleep() {
    let machine = CortexM::<Threads<32, true>>::start(fresh()).expect("core 0 of two");
    let watch = |core| Watch {
        at: at(core, 20),
        seen: 0,
    };
    for watched in [
        &[watch(0), watch(1)][..],
        &[watch(1), watch(0)],
        &[watch(1)],
        &[],
    ] {
        machine.relax(watched);
    }
}

#[test]
fn a_bell_rings_once() {
    static RUNG: AtomicU32 = AtomicU32::new(0);
    let shared = fresh();
    let first = CoreId::new(0);
    both(|| {
        let machine = CortexM::<Threads>::start(shared).expect("a core of two");
        if machine.core() == first {
            for _ in 0..2 {
                // A ring that came before its core's start would be lost.
                machine.store_u32(at(0, 16), 1);
                machine.wait_for_ring();
                RUNG.fetch_add(1, Relaxed);
            }
            return;
        }
        while machine.load_u32(at(0, 16)) == 0 {
            Threads::<32>::relax();
        }
        machine.ring(first);
        while RUNG.load(Relaxed) == 0 {
            Threads::<32>::relax();
        }
        thread::sleep(Duration::from_millis(20));
        let rung = RUNG.load(Relaxed);
        machine.ring(first);
        assert_eq!(rung, 1, "nobody has rung again");
    });
}

#[test]
fn a_critical_section_keeps_the_other_core_out() {
    static SUM: AtomicU32 = AtomicU32::new(0);
    let add = || SUM.store(SUM.load(Relaxed) + 1, Relaxed);
    both(|| {
        for _ in 0..1000 {
            critical_section::with(|_| {
                critical_section::with(|_| add()); // nested
                add();
            });
        }
    });
    assert_eq!(SUM.load(Relaxed), 4000);
}

#[test]
fn regions_are_whole_lines_and_a_stack_begins_at_its_end() {
    assert_eq!(align_of::<Shared<2, 16>>(), CortexM::<Threads>::LINE);
    assert_eq!(size_of::<Shared<2, 16>>() % CortexM::<Threads>::LINE, 0);
    static STACK: Stack<64> = Stack::new();
    let end = STACK.words().as_ptr_range().end;
    assert_eq!(STACK.top().addr(), end.addr());
    assert_eq!(STACK.top().addr() % 8, 0);
}
