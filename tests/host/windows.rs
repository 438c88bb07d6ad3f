//! What windows take of memory, and what is another world's; rings that are full.

#![allow(
    clippy::result_large_err,
    reason = "what is made goes back to its user, without a heap"
)]

use flagpost::rma::{Gather, Layout};
use flagpost::{
    Budget, Compare, Config, DynamicOptions, DynamicWindow, EpochSlots, Error, Made, Rank,
    Rma as _, Session, Tag, Unfinished, Validation, Waiting, Window, World,
};
use flagpost_link::{LocalMemory as _, Slots, Telling as _, Waiting as _, Wants};
use flagpost_mapped::{Mapped, Ring};
use flagpost_sim::{Config as Chip, Sim, SimCore};

use crate::costs::{Worlds, run};

/// Words of the arena that a world takes for itself.
fn own_words() -> usize {
    usize::from(Config::default().unexpected) - 1
}

/// Checks that `make` takes exactly `words` of the arena.
fn takes(ranks: u16, words: usize, make: &dyn Fn(&Worlds<'_>) -> Result<(), Error>) {
    run(ranks, own_words() + words, make);
    run(ranks, own_words() + words - 1, &|world| {
        assert_eq!(make(world), Err(Error::ArenaFull { missing_words: 1 }));
        Ok(())
    });
}

/// With a budget a call gives its handle back.
const ANY: Budget = Budget::UNLIMITED;

/// Why nothing was made: on all ranks together.
fn refused<L, M>(made: Made<'_, L, M>) -> Error {
    let Err(Unfinished { handle, error }) = made else {
        panic!("made");
    };
    assert!(handle.is_none(), "{error}");
    error
}

/// Words of the arena per rank and window, beside those of its epochs: those of its peers' pieces
/// if it was created, of attached memory if it is dynamic.
#[test]
fn memory_per_rank_and_window() {
    const KEPT: u16 = 8;
    const REGIONS: u16 = 16;
    for ranks in [1, 2, 3, 48] {
        let p = usize::from(ranks);
        // One more for each piece of the arena.
        let epochs = 2 * p + p.div_ceil(32) + 1;
        // A piece's length has as many words as `usize`.
        takes(
            ranks,
            epochs + (3 + size_of::<usize>() / 4) * p + 1,
            &|world| {
                let memory = world.reserve(64)?;
                world.create::<u64>(&memory, 0..64, 8)?;
                Ok(())
            },
        );
        let own = 3 * usize::from(REGIONS) + 5 * usize::from(KEPT) + p.div_ceil(32) + 1;
        for validation in [Validation::Counter, Validation::Invalidation] {
            let options = DynamicOptions {
                regions: REGIONS,
                kept: KEPT,
                validation,
            };
            takes(ranks, epochs + own, &|world| {
                world.dynamic(options)?;
                Ok(())
            });
        }
    }
    // As many as the configuration says.
    for (ranks, windows) in [(1, 1), (2, 3), (33, 2), (48, 1)] {
        let words = Config::DEFAULT.words(ranks, windows) - own_words();
        takes(ranks, words, &|world| {
            let mut all = Vec::new();
            for _ in 0..windows {
                all.push(world.allocate::<u64>(1)?);
            }
            Ok(())
        });
    }
    // Beside that, what does not grow with the number of ranks.
    assert!(size_of::<Window<'_, u64, Mapped<SimCore>>>() <= 960);
    assert!(size_of::<DynamicWindow<'_, Mapped<SimCore>>>() <= 1096);
}

/// Shared memory per rank: a window's elements in whole lines, its epochs' slots in the message
/// buffer.
#[test]
fn shared_memory_per_rank() {
    const HUGE: usize = 1 << 30;
    run(8, 1024, &|world| {
        let largest = || match world.reserve(HUGE) {
            Err(Error::MemoryFull { missing_bytes }) => HUGE - missing_bytes,
            _ => panic!("{HUGE} bytes"),
        };
        let before = largest();
        let allocated = world.allocate::<u64>(10)?;
        assert_eq!(before - largest(), 96 + 64);
        allocated.free()?;
        assert_eq!(before, largest());
        let dynamic = world.dynamic(DynamicOptions::default())?;
        assert_eq!(
            before - largest(),
            64 + (16 + 16 * 16 + 8_usize).next_multiple_of(32)
        );
        dynamic.free()?;
        assert_eq!(before, largest());
        Ok(())
    });
}

/// Two ranks whose rings share what a sender remembers of them: one is full, whatever it knows of
/// the other.
#[test]
fn rings_are_full_each_for_itself() {
    const ENTRIES: u16 = 4;
    let [sender, takes, full] = [1, 2, 66].map(Rank::new);
    let chip = Chip {
        memory_size: 32 << 10,
        budgets_expire: 1,
        ..Chip::quiet(67)
    };
    let report = Sim::new(chip).run(|core| {
        let mut arena = vec![0; 1024];
        let ring = Ring::Shared {
            entries: ENTRIES.into(),
        };
        let link = Mapped::start_with_ring(core, Session::FIRST, Some(ring))?;
        let world = World::start(link, &mut arena, Config::default())?;
        let window = world.allocate::<u32>(1)?;
        // A rank takes its notifications whenever it waits: `full` waits for its slot alone, past
        // the world.
        let (link, slot) = (world.link(), world.link().allocate_slots(Slots::Count(1))?);
        world.barrier()?;
        if world.rank() == sender {
            let tell = |to| window.put_notify(to, 0, &[], Tag(1));
            for _ in 0..ENTRIES {
                tell(takes)?;
            }
            take(&window, takes, 1)?;
            for _ in 0..ENTRIES {
                tell(full)?;
            }
            tell(takes)?;
            let put = window.to(full, 0).notify(Tag(1)).put(&[])?;
            let late = put
                .wait_within(Budget::microseconds(100))
                .map_err(|late| late.error);
            let Err(Error::Timeout(late)) = late else {
                panic!("{late:?}");
            };
            assert_eq!(late.waiting, Waiting::RingSpace);
            assert!(late.missing.ranks().eq([full]));
            link.signal(full, slot, 1)?;
            tell(full)?;
        } else if world.rank() == takes {
            take(&window, sender, ENTRIES)?;
            window.put_notify(sender, 0, &[], Tag(1))?;
            take(&window, sender, 1)?;
        } else if world.rank() == full {
            while !link.reached(slot, 1)? {
                link.relax();
            }
            take(&window, sender, ENTRIES + 1)?;
        }
        world.barrier()
    });
    report.assert_done();
}

/// Fails if a rank that always finds the next entry of one producer never looks at the bells of the
/// others.
#[test]
fn one_producer_does_not_keep_another_waiting() {
    const TAKEN: u32 = 8;
    let [owner, many, one] = [0, 1, 2].map(Rank::new);
    for seed in 0..20 {
        let chip = Chip {
            memory_size: 32 << 10,
            seed,
            ..Chip::quiet(3)
        };
        let report = Sim::new(chip).run(|core| {
            let mut arena = vec![0; 256];
            let link =
                Mapped::start_with_ring(core, Session::FIRST, Some(Ring::Bells { entries: 4 }))?;
            let world = World::start(link, &mut arena, Config::default())?;
            let window = world.allocate::<u32>(1)?;
            let link = world.link();
            let [put, taken, go, gone] = [(); 4].map(|()| link.allocate_slots(Slots::Count(1)));
            let (put, taken, go, gone) = (put?, taken?, go?, gone?);
            world.barrier()?;
            let reached = |slot, value| -> Result<(), Error> {
                while !link.reached(slot, value)? {
                    link.relax();
                }
                Ok(())
            };
            if world.rank() == many {
                for number in 1..=TAKEN {
                    window.notify(owner, Tag(1))?;
                    link.signal(owner, put, number)?;
                    reached(taken, number)?;
                }
            } else if world.rank() == one {
                reached(go, 1)?;
                window.notify(owner, Tag(1))?;
                link.signal(owner, gone, 1)?;
            } else {
                let mut from = Vec::new();
                for number in 1..=TAKEN {
                    reached(put, number)?;
                    let arrival = link.progress(Wants::Any);
                    assert!(arrival.is_some());
                    from.extend(arrival.and_then(|arrival| arrival.sender));
                    if number == 1 {
                        link.signal(one, go, 1)?;
                        reached(gone, 1)?;
                    }
                    link.signal(many, taken, number)?;
                }
                assert!(from[..4].contains(&one), "{from:?}");
            }
            world.barrier()
        });
        report.assert_done();
    }
}

/// Waits for notifications of `from`.
fn take(window: &Window<'_, u32, Mapped<SimCore>>, from: Rank, count: u16) -> Result<(), Error> {
    let mut request = window.expect(0..0, Tag(1))?.from(from)?.times(count)?;
    request.start()?;
    request.wait().map(drop)
}

/// Memory is one world's: another one's windows do not take it.
#[test]
fn memory_of_another_world_is_refused() {
    let report = Sim::new(Chip::quiet(1)).run(|core| -> Result<(), Error> {
        let (mut one, mut other) = ([0; 256], [0; 256]);
        let link = Mapped::start(core.clone(), Session::FIRST)?;
        let one = World::start(link, &mut one, Config::default())?;
        let memory = one.reserve(64)?;
        let link = Mapped::start(core, Session::FIRST.next())?;
        let other = World::start(link, &mut other, Config::default())?;
        let wrong = |refused: Error| assert_eq!(refused, Error::WrongWindow);
        let created = other
            .creating::<u32, EpochSlots<'_>>(&memory, 0..64, 4, ())?
            .wait_within(ANY);
        wrong(refused(created));
        let dynamic = other.dynamic(DynamicOptions::default())?;
        wrong(dynamic.attach(&memory).map(|_| ()).unwrap_err());
        wrong(dynamic.detach(&memory).unwrap_err());
        // Nor does one wait for requests of both.
        let (first, second) = (one.allocate::<u32>(1)?, other.allocate::<u32>(1)?);
        let (first, second) = (first.lock_all()?, second.lock_all()?);
        let (mut here, mut there) = ([0], [0]);
        let mut requests = [
            first.to(Rank::new(0), 0).get(&mut here)?,
            second.to(Rank::new(0), 0).get(&mut there)?,
        ];
        wrong(flagpost::wait_any(&mut requests).unwrap_err());
        // Nor does a window tell or await another one's events.
        let (events, window) = (one.events(1)?, other.allocate::<u32>(1)?);
        let event = events.event(0)?;
        let told = window.put_notify(other.rank(), 0, &[7], event);
        wrong(told.unwrap_err());
        let request = window.expect_word(0..1, event, Compare::Ge, 1);
        wrong(request.map(drop).unwrap_err());
        assert_eq!((events.query(0)?, window.local().get(0)?), (0, 0));
        Ok(())
    });
    report.assert_done();
}

/// Arguments are checked before the target is waited for: here it never posts.
#[test]
fn what_is_wrong_is_refused_before_the_target_has_posted() {
    run(2, 1024, &|world| {
        let window = world.allocate::<u32>(4)?;
        if world.rank().get() == 0 {
            let targets = [Rank::new(1)];
            let access = window.start(&world.group(&targets)?)?;
            let (two, one) = (Layout::Contiguous { count: 2 }, Gather::from(&[1_u32][..]));
            let (target, origin) = (8, 4);
            let put = || {
                access
                    .to(targets[0], 0)
                    .layout(two)
                    .put(one)
                    .and_then(flagpost::rma::Request::wait)
            };
            let refused = world.within(Budget::microseconds(0), put);
            assert_eq!(refused, Err(Error::LengthsDiffer { target, origin }));
            std::mem::forget(access);
        }
        Ok(())
    });
}
