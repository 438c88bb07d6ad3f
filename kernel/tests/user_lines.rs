//! The message of the simulator about a program that breaks a rule. It names the line of the
//! program, and not one of the library. Each public call notes its caller for that (`tracked.rs`).

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::result_large_err,
    reason = "a test, not the kernel"
)]

use std::cell::Cell;
use std::panic::Location;

use flagpost::rma::Operation;
use flagpost::{
    Budget, Config, DynamicOptions, Error, Link, Rank, Request, Rma, Session, Tag, Window, World,
    epoch::Assert, wait_any,
};
use flagpost_mapped::Mapped;
use flagpost_sim::{Alarm, Config as Chip, End, Oracle, Profile, Report, Sim, SimCore};

const ZERO: Rank = Rank::new(0);
const ONE: Rank = Rank::new(1);

/// The lines that the report must name, as programs note them: of the access, and of the store of
/// the other core.
#[derive(Default)]
struct Expected {
    access: Cell<u32>,
    other: Cell<u32>,
}

/// Runs a program on two cores. It breaks a rule of `oracle`.
fn breaks(
    oracle: Oracle,
    program: impl Fn(&World<'_, Mapped<SimCore>>, &Expected) -> Result<(), Error>,
) -> Alarm {
    let expected = Expected::default();
    let chip = Chip {
        cores: 2,
        evictions: 0,
        prefetches: 0,
        ..Chip::default()
    };
    let run = |seed| {
        let chip = Chip {
            seed,
            ..chip.clone()
        };
        let report = two(chip, |world| {
            program(world, &expected)?;
            world.barrier()
        });
        broken(&report, oracle, &expected)
    };
    let alarms: Vec<_> = (0..16).map(run).collect();
    alarms[0].clone()
}

/// The rule that the program of this account broke: names the lines that are expected.
fn broken(report: &Report, oracle: Oracle, expected: &Expected) -> Alarm {
    let End::Oracle(alarm) = &report.end else {
        panic!("no rule is broken: {report}");
    };
    assert_eq!(alarm.oracle, oracle, "{report}");
    let named =
        |place: Option<&Location<'_>>| place.map(|place| (place.file().to_owned(), place.line()));
    let of = |line: &Cell<u32>| (line.get() > 0).then(|| (file!().to_owned(), line.get()));
    assert_eq!(named(alarm.place), of(&expected.access), "{report}");
    if expected.other.get() > 0 {
        assert_eq!(named(alarm.other_place), of(&expected.other), "{report}");
    }
    let line = format!("{}:{}", file!(), expected.access.get());
    assert!(report.to_string().contains(&line), "{report}");
    alarm.clone()
}

/// Puts from a function of the program's own, as a trait method on a type parameter.
fn put_first<'w, L: Link + 'w>(
    epoch: &impl Rma<'w, u32, L>,
    expected: &Cell<u32>,
) -> Result<(), Error> {
    expected.set(line!() + 1);
    epoch.put(ZERO, 0, &[9])
}

/// A line with two writers: its owner, through the cache, and a neighbour.
#[test]
fn two_writers_of_a_line_are_both_named() {
    let alarm = breaks(Oracle::PendingClobber, |world, expected| {
        let window = world.allocate::<u32>(8)?;
        if world.rank() == ZERO {
            expected.other.set(line!() + 1);
            window.local().set(1, 5)?;
        }
        world.barrier()?;
        if world.rank() == ONE {
            let lock = window.lock_shared(ZERO)?;
            put_first(&lock, &expected.access)?;
            lock.unlock()?;
        }
        Ok(())
    });
    assert_eq!(alarm.other.map(|core| core.get()), Some(0));
}

/// The same by a notified put, in a closure.
#[test]
fn a_notified_put_into_a_dirty_line_is_named() {
    breaks(Oracle::PendingClobber, |world, expected| {
        let window = world.allocate::<u64>(16)?;
        let data = [9; 16];
        if world.rank() == ZERO {
            expected.other.set(line!() + 1);
            window.local().copy_in(0, &data)?;
        }
        world.barrier()?;
        let send = |tag| {
            expected.access.set(line!() + 1);
            window.put_notify(ZERO, 0, &data, tag)
        };
        if world.rank() == ONE {
            send(Tag(7))?;
        }
        Ok(())
    });
}

/// A piece is read while peers store to it, with no epoch that would refresh it.
#[test]
fn a_stale_read_is_named() {
    breaks(Oracle::StaleRead, |world, expected| {
        let window = world.allocate::<u32>(8)?;
        window.local().get(0)?;
        world.barrier()?;
        if world.rank() == ONE {
            expected.other.set(line!() + 1);
            window.peer(ZERO)?.set(0, 9)?;
        }
        world.barrier()?;
        if world.rank() == ZERO {
            expected.access.set(line!() + 1);
            window.local().get(0)?;
        }
        Ok(())
    });
}

/// A piece is read while it is exposed.
#[test]
fn a_read_of_an_exposed_piece_is_named() {
    breaks(Oracle::StaleRead, |world, expected| {
        let window = world.allocate::<u32>(8)?;
        if world.rank() == ZERO {
            window.local().set(0, 1)?;
            let exposure = window.post(&world.group(&[ONE])?)?;
            window.local().get(0)?;
            world.barrier()?;
            world.barrier()?;
            expected.access.set(line!() + 1);
            window.local().get(0)?;
            exposure.wait()?;
        } else {
            let access = window.start(&world.group(&[ZERO])?)?;
            world.barrier()?;
            expected.other.set(line!() + 1);
            access.put(ZERO, 0, &[9])?;
            access.complete()?;
            world.barrier()?;
        }
        Ok(())
    });
}

/// A store into a line of which memory has newer bytes.
#[test]
fn a_store_beside_newer_bytes_is_named() {
    breaks(Oracle::StaleMerge, |world, expected| {
        let window = world.allocate::<u32>(8)?;
        window.local().get(0)?;
        world.barrier()?;
        if world.rank() == ONE {
            window.peer(ZERO)?.set(0, 9)?;
        }
        world.barrier()?;
        if world.rank() == ZERO {
            expected.access.set(line!() + 1);
            window.local().set(1, 5)?;
        }
        Ok(())
    });
}

/// The most natural mistake: an owner stores through its cache, and a peer gets after a barrier,
/// without an epoch that publishes the piece. In each of 16 seeds, and by each call that loads.
#[test]
fn a_get_of_what_its_owner_has_not_published_is_named() {
    type Get = fn(&Window<'_, u32, Mapped<SimCore>>, &Cell<u32>) -> Result<(), Error>;
    let gets: [(&str, Rank, Get); 4] = [
        ("get", ONE, |window, access| {
            let lock = window.lock_shared(ZERO)?;
            access.set(line!() + 1);
            lock.get(ZERO, 1, &mut [0])?;
            lock.unlock()
        }),
        ("peer", ONE, |window, access| {
            access.set(line!() + 1);
            window.peer(ZERO)?.get(1).map(drop)
        }),
        ("fetch", ONE, |window, access| {
            let lock = window.lock_all()?;
            access.set(line!() + 1);
            lock.fetch_and_op(ZERO, 1, 0, Operation::NO_OP)?;
            lock.unlock()
        }),
        ("own", ZERO, |window, access| {
            access.set(line!() + 1);
            window.peer(ZERO)?.get(1).map(drop)
        }),
    ];
    for (name, by, get) in gets {
        let alarm = breaks(Oracle::HiddenStore, |world, expected| {
            let window = world.allocate::<u32>(8)?;
            if world.rank() == ZERO {
                expected.other.set(line!() + 1);
                window.local().set(1, 5)?;
            }
            world.barrier()?;
            if world.rank() == by {
                get(&window, &expected.access)?;
            }
            Ok(())
        });
        let other = alarm.other.map(|core| core.get());
        let owner = (by == ONE).then_some(0);
        assert_eq!((other, alarm.bytes), (owner, 4), "{name}");
    }
}

/// How rank 0 reads and waits; the line of the read goes to the cell.
type Reads = fn(
    &Window<'_, u32, Mapped<SimCore>>,
    Request<'_, Mapped<SimCore>>,
    &Cell<u32>,
) -> Result<(), Error>;

/// A natural mistake: a rank starts a request, and reads the bytes before it waits. In each of 16
/// seeds, and by each call that reads or waits.
#[test]
fn a_read_before_the_wait_is_named() {
    let all: [(&str, u32, Reads); 4] = [
        ("get", 4, |window, mut request, access| {
            access.set(line!() + 1);
            let early = window.local().get(1)?;
            window.local().set(9, early)?; // tells nobody
            request.wait().map(drop)
        }),
        ("copy_out", 32, |window, mut request, access| {
            access.set(line!() + 1);
            window.local().copy_out(0, &mut [0; 8])?;
            window.local().get(8)?; // in another line
            while request.test()?.is_none() {}
            Ok(())
        }),
        ("loop", 12, |window, mut request, access| {
            for index in 0..3 {
                access.set(line!() + 1);
                window.local().get(index)?;
            }
            while request.wait_within(Budget::microseconds(1)).is_err() {}
            Ok(())
        }),
        ("any", 4, |window, request, access| {
            access.set(line!() + 1);
            window.local().get(1)?;
            wait_any(&mut [request]).map(drop)
        }),
    ];
    for (name, bytes, reads) in all {
        let alarm = breaks(Oracle::EarlyRead, |world, expected| {
            let window = world.allocate::<u32>(16)?;
            let mut request = window.expect(0..8, Tag(7))?;
            if world.rank() == ZERO {
                expected.other.set(line!() + 1);
                request.start()?;
            }
            world.barrier()?;
            match world.rank() {
                ZERO => reads(&window, request, &expected.access),
                _ => window.put_notify(ZERO, 1, &[9], Tag(7)),
            }
        });
        assert_eq!((alarm.other, alarm.bytes), (None, bytes), "{name}");
    }
}

/// Data that do not travel inline may be there before the read, or come between two reads of one
/// line: all seeds tell the line that reads.
#[test]
fn a_read_before_the_wait_for_long_data_is_named() {
    let line = Cell::new(0);
    let mut oracles = Vec::new();
    for (seed, profile) in (0..16).flat_map(|seed| Profile::ALL.map(|profile| (seed, profile))) {
        let chip = Chip {
            cores: 2,
            seed,
            profile,
            ..Chip::default()
        };
        let report = two(chip, |world| {
            let window = world.allocate::<u32>(8)?;
            window.set_inline(false);
            if world.rank() == ONE {
                world.barrier()?;
                return window.put_notify(ZERO, 0, &[9; 8], Tag(7));
            }
            let mut request = window.expect(0..8, Tag(7))?;
            request.start()?;
            world.barrier()?;
            line.set(line!() + 1);
            window.local().get(1)?;
            request.wait().map(drop)
        });
        let End::Oracle(alarm) = &report.end else {
            panic!("it is not told: {report}");
        };
        assert_eq!(
            alarm.place.map(Location::line),
            Some(line.get()),
            "{report}"
        );
        oracles.push(alarm.oracle);
    }
    assert!(oracles.contains(&Oracle::EarlyRead));
    let known = [Oracle::EarlyRead, Oracle::StaleRead];
    assert!(oracles.iter().all(|oracle| known.contains(oracle)));
}

/// Reads of bytes for which a request is started are none of the programs's mistakes if no peer can
/// put them before the rank says so, if others are put, or none.
#[test]
fn reads_that_no_put_can_meet_are_not_told() {
    let put = |window: &Window<'_, u32, Mapped<SimCore>>, index: usize, inline| {
        window.set_inline(inline);
        window.put_notify(ZERO, index, &[9; 2], Tag(index as u32))
    };
    for (seed, profile) in (0..16).flat_map(|seed| Profile::ALL.map(|profile| (seed, profile))) {
        let chip = Chip {
            cores: 2,
            seed,
            profile,
            ..Chip::default()
        };
        let report = two(chip, |world| {
            let window = world.allocate::<u32>(8)?;
            let local = window.local();
            let request = |index: u32| window.expect(0..8, Tag(index))?.from(ONE);
            let mut places = [request(0)?, request(2)?];
            let mut word = window.expect(0..0, Tag(5))?;
            for inline in [true, false] {
                if world.rank() == ONE {
                    word.start()?;
                    word.wait()?;
                    put(&window, 0, inline)?;
                    put(&window, 2, inline)?;
                    window.get_notify(ZERO, 0, &mut [0; 4], Tag(0))?;
                } else {
                    places.iter_mut().try_for_each(|place| place.start())?;
                    local.copy_out(0, &mut [0; 8])?;
                    window.notify(ONE, Tag(5))?; // the peer puts after this
                    places[0].wait()?;
                    local.copy_out(0, &mut [0; 2])?; // the second put is beside these
                    places[1].wait()?;
                    places[0].start()?; // for the get: it changes nothing
                    local.copy_out(0, &mut [0; 8])?;
                    places[0].wait()?;
                }
                world.barrier()?;
            }
            Ok(())
        });
        report.assert_done();
    }
}

/// Runs a program on two cores.
fn two(chip: Chip, program: impl Fn(&World<'_, Mapped<SimCore>>) -> Result<(), Error>) -> Report {
    Sim::new(chip).run(|core| {
        let mut arena = [0; 1024];
        let link = Mapped::start(core, Session::FIRST)?;
        World::run(link, &mut arena, Config::default(), &program)
    })
}

/// A promise that is not kept: a fence that is told that nothing was stored.
#[test]
fn a_fence_that_loses_a_store_is_named() {
    breaks(Oracle::LostStore, |world, expected| {
        let window = world.allocate::<u32>(8)?;
        window.local().set(1, 5)?;
        expected.access.set(line!() + 1);
        window.fence(Assert::NO_STORE)?.end()?;
        Ok(())
    });
}

/// The end of `program` on two cores, and the line that it has noted on the second.
fn ends(
    program: impl Fn(&World<'_, Mapped<SimCore>>, &Cell<u32>) -> Result<(), Error>,
) -> (Report, String) {
    let line = Cell::new(0);
    let chip = Chip {
        cores: 2,
        ..Chip::default()
    };
    let report = two(chip, |world| program(world, &line));
    (report, format!("{}:{}:", file!(), line.get()))
}

/// Core 1 waits for a notification that is not sent, core 0 in a barrier.
#[test]
fn a_deadlock_names_the_calls_that_wait() {
    let (report, line) = ends(|world, line| {
        let window = world.allocate::<u32>(1)?;
        if world.rank() == ONE {
            let mut never = window.expect(0..1, Tag(7))?;
            never.start()?;
            line.set(line!() + 1);
            never.wait()?;
        }
        world.barrier()
    });
    assert_eq!(report.end, End::Deadlock, "{report}");
    let [zero, one] = &report.waiting[..] else {
        panic!("two cores wait: {report}")
    };
    assert!(one.to_string().contains(&format!(", at {line}")), "{one}");
    assert!(
        zero.to_string().contains(&format!(", at {}:", file!())),
        "{zero}"
    );
    assert!(zero.place.line() > one.place.line(), "{report}");
    let words = "core 1 waits for a notification by any rank (1 missing; nothing says from which); \
                 it polls";
    assert!(one.to_string().starts_with(words), "{one}");
    let words = "core 0 waits for a collective call by 1, or by a rank that it waits for, in a \
                 barrier; it polls";
    assert!(zero.to_string().starts_with(words), "{zero}");
}

/// A notification has come in another window than that of the request.
#[test]
fn a_deadlock_names_what_has_come_and_does_not_match() {
    let (report, _) = ends(|world, _| {
        let (window, other) = (world.allocate::<u32>(1)?, world.allocate::<u32>(1)?);
        if world.rank() == ZERO {
            return other.notify(ONE, Tag(7));
        }
        let mut never = window.expect(0..1, Tag(7))?;
        never.start()?;
        never.wait().map(drop)
    });
    assert_eq!(report.end, End::Deadlock, "{report}");
    let words = "; one by 0 with tag 7 has come that it does not match, in window 1; it polls";
    assert!(report.waiting[0].to_string().contains(words), "{report}");
}

/// The last call of the core that fails, and not one of the other core.
#[test]
fn a_failure_names_the_last_call() {
    let (report, line) = ends(|world, line| {
        let window = world.allocate::<u32>(1)?;
        world.barrier()?;
        if world.rank() == ONE {
            line.set(line!() + 1);
            window.local().get(1)?;
        }
        world.barrier()
    });
    let [failure] = &report.failures[..] else {
        panic!("one core fails: {report}")
    };
    assert_eq!(failure.core.get(), 1);
    let text = Error::OutOfRange { end: 2, len: 1 };
    let end = format!("core 1 returned an error: {text} (last call at {line}");
    assert!(failure.to_string().contains(&end), "{failure}");
    // The text, the waits, and the program's own accesses: it has made none.
    let account = report.to_string();
    let rest = account.split_once("FAILED").unwrap().1;
    assert!(rest.lines().nth(1).unwrap().contains(&end), "{account}");
    assert!(rest.lines().count() < 6, "{account}");
}

/// One core fails while the other waits: for a completion, or for a lock that the first one holds.
#[test]
fn a_failure_beside_waits_says_what_these_are_for() {
    type Program = fn(&World<'_, Mapped<SimCore>>, &Window<'_, u32, Mapped<SimCore>>);
    let waits: [(&str, Program); 2] = [
        (
            "core 0 waits for completion by 1 (1 missing); it polls",
            |world, window| {
                if world.rank() == ZERO {
                    let exposure = window.post([ONE]).unwrap();
                    exposure.wait().unwrap();
                }
            },
        ),
        (
            "core 0 waits for the exclusive lock that is held by 1",
            |world, window| {
                if world.rank() == ONE {
                    std::mem::forget(window.lock_exclusive(ONE).unwrap());
                    world.barrier().unwrap();
                } else {
                    world.barrier().unwrap();
                    window.lock_exclusive(ONE).unwrap().unlock().unwrap();
                }
            },
        ),
    ];
    for (words, program) in waits {
        for fails in [true, false] {
            let report = Sim::new(Chip::quiet(2)).run(|core| {
                let mut arena = [0; 1024];
                let link = Mapped::start(core, Session::FIRST)?;
                let world = World::start(link, &mut arena, Config::default())?;
                let window = world.allocate::<u32>(1)?;
                program(&world, &window);
                match fails {
                    true => Err(Error::CountZero),
                    false => world.barrier(),
                }
            });
            let waits = report
                .waiting
                .iter()
                .any(|w| w.to_string().starts_with(words));
            assert!(waits, "{report}");
        }
    }
}

/// After a call, its place is the world's last one: also of calls that are made by way of others.
#[test]
fn the_world_knows_the_last_call() {
    let program = |world: &World<'_, Mapped<SimCore>>| -> Result<(), Error> {
        let next = world.rank().next(world.size());
        let is_here = |line: u32| {
            let place = world.last_call().expect("a call was made");
            assert_eq!((place.file(), place.line()), (file!(), line));
        };
        let window = world.allocate::<u32>(2)?;
        is_here(line!() - 1);
        let events = world.events(1)?;
        is_here(line!() - 1);
        let dynamic = world.dynamic(DynamicOptions::default())?;
        is_here(line!() - 1);
        let memory = world.reserve(64)?;
        is_here(line!() - 1);
        let over = world.create::<u32>(&memory, 0..64, 4)?;
        is_here(line!() - 1);
        let lock = window.lock_exclusive(next)?;
        is_here(line!() - 1);
        lock.put(next, 0, &[1])?;
        lock.flush(next)?;
        lock.unlock()?;
        is_here(line!() - 1);
        let mut request = window.expect(0..1, Tag(1))?;
        request.start()?;
        window.put_notify(next, 0, &[7], Tag(1))?;
        request.wait()?;
        is_here(line!() - 1);
        let (exposure, access) = (window.post([next])?, window.start([next])?);
        access.complete()?;
        is_here(line!() - 1);
        exposure.wait()?;
        is_here(line!() - 1);
        window.fence(Assert::empty())?.end()?;
        is_here(line!() - 1);
        assert_eq!(window.local().get(0)?, 7);
        is_here(line!() - 1);
        world.allreduce(&mut [1_u32], |a, b| a + b)?;
        is_here(line!() - 1);
        over.free()?;
        is_here(line!() - 1);
        dynamic.free()?;
        is_here(line!() - 1);
        events.free()?;
        is_here(line!() - 1);
        assert!(window.put_notify(next, 9, &[7], Tag(1)).is_err());
        is_here(line!() - 1);
        Ok(())
    };
    let (report, _) = ends(|world, _| program(world));
    report.assert_done();
}
