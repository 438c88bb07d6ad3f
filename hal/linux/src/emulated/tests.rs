use flagpost_hal::Topology;

use super::*;
use crate::part::on_ranks;

fn lines(at: Address, len: usize) -> [Lines; 1] {
    [Lines::covering::<Linux<Emulated>>(at, len)]
}

/// Rank 0 does something to its first bytes; what rank 1 then finds there, past the caches.
fn found(act: impl Fn(&Linux<Emulated>, Address) + Sync) -> u32 {
    let found = on_ranks(2, |machine: Linux<Emulated>| {
        let at = Region::memory(CoreId::new(0)).at(64);
        let is_first = flagpost_hal::Topology::core(&machine) == CoreId::new(0);
        if is_first {
            act(&machine, at);
        }
        assert!(machine.meet());
        // Rank 0 does not look: it would let go of what it has stored there.
        machine.mode().set_oracle(false); // it may be old
        let found = if is_first { 0 } else { machine.load_u32(at) };
        // Nothing is put back before rank 1 has looked.
        assert!(machine.meet());
        found
    });
    found[1]
}

#[test]
fn a_register_is_free_once_its_holder_is_lost() {
    on_ranks(3, |machine: Linux<Emulated>| {
        let (me, of) = (machine.rank, CoreId::new(2));
        assert!(me != 0 || machine.test_and_set(of));
        assert!(machine.meet());
        assert!(me == 0 || !machine.test_and_set(of));
        assert!(machine.meet());
        if me == 1 {
            machine.segment().mark_lost(0);
            assert!(machine.test_and_set(of));
            assert!(!machine.test_and_set(of));
        }
        while me == 0 && machine.segment().lock_of(2).load(Relaxed) != 2 {
            std::thread::yield_now();
        }
        if me == 0 {
            machine.clear(of); // it is the other rank's
            assert_eq!(machine.segment().lock_of(2).load(Relaxed), 2);
        }
    });
}

#[test]
fn what_is_not_written_back_does_not_arrive() {
    let write = |machine: &Linux<Emulated>, at| machine.write(at, &[7, 0, 0, 0]);
    assert_eq!(found(write), 0);
    let remedy = |machine: &Linux<Emulated>, at| {
        write(machine, at);
        machine.write_back(&lines(at, 4));
    };
    assert_eq!(found(remedy), 7);
}

#[test]
fn what_is_not_drained_does_not_arrive() {
    let store = |machine: &Linux<Emulated>, at| machine.store_bytes(at, &[7, 0, 0, 0]);
    assert_eq!(found(store), 0);
    let remedy = |machine: &Linux<Emulated>, at| {
        store(machine, at);
        machine.drain();
    };
    assert_eq!(found(remedy), 7);
    let other_line = |machine: &Linux<Emulated>, at: Address| {
        store(machine, at);
        machine.store_bytes(at.plus(64), &[1]);
    };
    assert_eq!(found(other_line), 7);
}

#[test]
fn what_is_not_invalidated_is_old() {
    for (invalidates, seen) in [(false, 0), (true, 7)] {
        let then = found(|machine, at| {
            let mut bytes = [0; 4];
            machine.read(at, &mut bytes);
            machine.store_u32(at, 7);
            if invalidates {
                machine.invalidate(&lines(at, 4));
            }
            machine.read(at, &mut bytes);
            machine.store_u32(at, u32::from_le_bytes(bytes));
        });
        assert_eq!(then, seen);
    }
}

#[test]
fn own_bulk_stores_are_seen_in_order() {
    let seen = found(|machine, at| {
        machine.store_bytes(at.plus(1), &[1, 2, 3]);
        assert_eq!(machine.load_u8(at.plus(2)), 2);
        machine.store_bytes(at, &[4]);
        machine.store_u8(at, 5);
        assert_eq!(machine.load_u32(at), u32::from_le_bytes([5, 1, 2, 3]));
    });
    assert_eq!(seen, u32::from_le_bytes([5, 1, 2, 3]));
}

type Act<'a> = &'a (dyn Fn(&Linux<Emulated>, Address) + Sync);

/// Two ranks act by turns, at rank 0's line. What the one that acts last panics with.
fn told(before: [(u16, Act<'_>); 2], (last, act): (u16, Act<'_>)) -> Option<String> {
    let said = std::sync::Mutex::new(None);
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        on_ranks(2, |machine: Linux<Emulated>| {
            let at = Region::memory(CoreId::new(0)).at(64);
            for (rank, act) in before {
                if rank == machine.rank {
                    act(&machine, at);
                }
                assert!(machine.meet());
            }
            if machine.rank == last {
                let act = std::panic::AssertUnwindSafe(|| act(&machine, at));
                let why = std::panic::catch_unwind(act).err();
                let why = why.and_then(|why| why.downcast::<String>().ok());
                *said.lock().unwrap() = why.map(|why| *why);
            }
        })
    }));
    ended.expect("nobody else panics");
    said.into_inner().unwrap()
}

/// What the rank that stores through its cache says when it is the second writer of a line.
fn second_writer(act: impl Fn(&Linux<Emulated>, Address) + Sync) -> Option<String> {
    let read: Act<'_> = &|machine, at| machine.read(at, &mut [0; 8]);
    let store: Act<'_> = &|machine, at| machine.store_u32(at.plus(4), 7);
    told([(0, read), (1, store)], (0, &act))
}

#[test]
fn a_load_of_what_its_owner_has_not_written_back_is_told() {
    let here = Location::caller();
    let write: Act<'_> = &|machine, at| {
        machine.mode().called.set(Some(here));
        machine.write(at.plus(62), &[1; 3]);
    };
    let nothing: Act<'_> = &|_, _| {};
    let drop: Act<'_> = &|machine, at| {
        machine.invalidate(&lines(at, 65));
    };
    let put: Act<'_> = &|machine, at| {
        machine.write_back(&lines(at, 65));
    };
    let evict: Act<'_> = &|machine, at| machine.read(at.plus(LINES * LINE), &mut [0; 128]);
    let beside: Act<'_> = &|machine, at| assert_eq!(machine.load_u32(at.plus(56)), 0);
    let loads: [(&str, u16, Act<'_>); 4] = [
        ("2 bytes from memory[0]+0x7e", 1, &|machine, at| {
            machine.load_bytes(at, &mut [0; 80]);
        }),
        ("1 bytes from memory[0]+0x80", 1, &|machine, at| {
            machine.load_u32(at.plus(64));
        }),
        ("1 bytes from memory[0]+0x7f", 1, &|machine, at| {
            machine.load_u8(at.plus(63));
        }),
        ("2 bytes from memory[0]+0x7e", 0, &|machine, at| {
            machine.load_u32(at.plus(60));
        }),
    ];
    for (what, rank, load) in loads {
        let why = told([(0, write), (1, beside)], (rank, load)).expect("it is old");
        let stored = format!("stored by {}:{},", here.file(), here.line());
        assert!(why.contains(what) && why.contains(&stored), "{why}");
        for remedy in [drop, put, evict] {
            assert_eq!(told([(0, write), (0, remedy)], (rank, load)), None);
        }
        let meant: Act<'_> = &|machine, at| {
            machine.mode().set_oracle(false);
            load(machine, at);
        };
        assert_eq!(told([(0, write), (0, nothing)], (rank, meant)), None);
    }
}

#[test]
fn a_read_before_the_wait_is_told() {
    let here = Location::caller();
    let reads: Act<'_> = &|machine, at| {
        machine.mode().called.set(Some(here));
        machine.expected(at, 64, Expected::Starts);
        let mut bytes = [0; 4];
        machine.read(at.plus(4), &mut bytes);
        machine.expected(at.plus(4), 4, Expected::Reads(&bytes));
        machine.invalidate(&lines(at, 4));
    };
    let ends: Act<'_> = &|machine, at| {
        let now = |distance, into: &mut [u8]| machine.read(at.plus(distance), into);
        machine.expected(at, 64, Expected::Ends(Some(&now)));
    };
    let put = |beside| {
        move |machine: &Linux<Emulated>, at: Address| {
            machine.store_u32(at.plus(beside), 7);
        }
    };
    let why = told([(0, reads), (1, &put(4))], (0, ends)).expect("it was old");
    let name = name_of(Some(here));
    let place = format!("read by {name}, started by {name}");
    assert!(why.contains("4 bytes from memory[0]+0x44"), "{why}");
    assert!(why.contains(&place), "{why}");
    assert_eq!(told([(0, reads), (1, &put(8))], (0, ends)), None);
    let tells: Act<'_> = &|machine, at| {
        reads(machine, at);
        Topology::called(machine, here);
    };
    assert_eq!(told([(0, tells), (1, &put(4))], (0, ends)), None);
    let meant: Act<'_> = &|machine, at| {
        machine.mode().set_oracle(false);
        ends(machine, at);
    };
    assert_eq!(told([(0, reads), (1, &put(4))], (0, meant)), None);
}

#[test]
fn the_second_writer_of_a_line_is_told() {
    let here = Location::caller();
    let why = second_writer(|machine, at| {
        machine.mode().called.set(Some(here));
        machine.write(at, &[1, 0, 0, 0]);
        machine.write_back(&lines(at, 4));
    });
    let why = why.expect("7 would be lost");
    assert!(why.contains("memory[0]+0x40"), "{why}");
    assert!(why.contains("over 1 bytes"), "{why}");
    let place = format!("stored by {}:{}", here.file(), here.line());
    assert!(why.contains(&place), "{why}");
    // By eviction, too: a line in the same place of the image.
    let why = second_writer(|machine, at| {
        machine.write(at, &[1, 0, 0, 0]);
        machine.read(at.plus(LINES * LINE), &mut [0; 4]);
    });
    assert!(why.is_some());
}

#[test]
fn an_owner_that_drops_its_old_copy_first_is_no_second_writer() {
    let why = second_writer(|machine, at| {
        machine.invalidate(&lines(at, 4));
        machine.write(at, &[1, 0, 0, 0]);
        machine.write_back(&lines(at, 4));
        machine.write(at, &[2, 0, 0, 0]);
        machine.write_back(&lines(at, 4));
        assert_eq!(machine.load_u32(at.plus(4)), 7);
    });
    assert_eq!(why, None);
}
