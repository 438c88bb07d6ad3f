//! Payload that travels in notifications, and who is told of it: whoever learns, by any way, that a rank has been notified finds
//! the payload in that rank's memory. Three ranks, seeded schedules; what each test must notice is said with it.
//!
//! The protocol: `kernel/mapped/src/held.rs`. Rank 0 is the producer, rank 1 the first consumer.

use std::ops::Range;

use flagpost::epoch::Lock;
use flagpost::rma::Operation;
use flagpost::{Config, Error, Link, Rank, Rma as _, Tag, Unfinished, Window, World};
use flagpost_mapped::{Mapped, Native};
use flagpost_sim::{Config as Chip, Profile, Schedule, SimCore, sweep};

const ZERO: Rank = Rank::new(0);
const ONE: Rank = Rank::new(1);
const TWO: Rank = Rank::new(2);

type Plain = Mapped<SimCore>;
type Words<'w, L = Plain> = Window<'w, u32, L>;

fn error<H>(late: Unfinished<H>) -> Error {
    late.error
}

/// Runs `program` on three cores, with a window of 64 words and all pieces locked.
fn runs<L: Link>(
    seeds: u64,
    profile: Profile,
    link: fn(SimCore) -> Result<L, flagpost_link::Refusal>,
    program: fn(&Words<'_, L>, Rank) -> Result<(), Error>,
) {
    let chip = Chip {
        cores: 3,
        memory_size: 16 << 10,
        quiet_turns: 1 << 20,
        schedule: Schedule::Mixed,
        profile,
        ..Chip::default()
    };
    let swept = sweep(0..seeds).case("told", chip, move |core: SimCore| {
        let mut arena = [0; 512];
        let world = World::start(link(core)?, &mut arena, Config::default())?;
        let window = world.allocate::<u32>(64)?;
        program(&window, world.rank())?;
        world.barrier()
    });
    swept.run().assert_done();
}

fn plain(core: SimCore) -> Result<Plain, flagpost_link::Refusal> {
    Mapped::start(core, 1)
}

fn native(core: SimCore) -> Result<Mapped<SimCore, Native>, flagpost_link::Refusal> {
    Mapped::start_native(core, 1, None)
}

/// Puts `value` at `at`, in the notification.
fn say(window: &Words<'_, impl Link>, to: Rank, at: usize, value: u32) -> Result<(), Error> {
    window.put_notify(to, at, &[value], Tag(1)).map_err(error)
}

fn tell(window: &Words<'_, impl Link>, to: Rank) -> Result<(), Error> {
    window.notify(to, Tag(1)).map_err(error)
}

/// Waits for `count` notifications.
fn hear(
    window: &Words<'_, impl Link>,
    from: Rank,
    range: Range<usize>,
    count: u16,
) -> Result<(), Error> {
    let mut request = window.expect(range, from, Tag(1), count)?;
    request.start()?;
    request.wait()?;
    Ok(())
}

type All<'e, 'w, L = Plain> = Lock<'e, 'w, u32, L>;

/// What is in a peer's piece.
fn look<L: Link>(all: &All<'_, '_, L>, at: Rank, index: usize) -> Result<u32, Error> {
    let mut word = [0];
    all.get(at, index, &mut word)?;
    Ok(word[0])
}

/// Rank 1 has been notified and says so in a word of rank 2's by `say_so`. Rank 2 then looks at rank 1's memory. Both have locked all
/// pieces before: to lock one tells, too.
fn by_a_word<L: Link>(
    window: &Words<'_, L>,
    me: Rank,
    say_so: fn(&All<'_, '_, L>) -> Result<(), Error>,
) -> Result<(), Error> {
    if me == ZERO {
        return say(window, ONE, 0, 7);
    }
    let all = window.lock_all().map_err(error)?;
    if me == ONE {
        hear(window, ZERO, 0..1, 1)?;
        say_so(&all)?;
    } else {
        while look(&all, TWO, 16)? != 1 {
            window.world().link().relax();
        }
        assert_eq!(look(&all, ONE, 0)?, 7);
    }
    all.unlock().map_err(error)
}

fn by_fetch<L: Link>(all: &All<'_, '_, L>) -> Result<(), Error> {
    let old = all.fetch_and_op(TWO, 16, 1, Operation::SUM);
    old.map(drop).map_err(error)
}

fn by_put<L: Link>(all: &All<'_, '_, L>) -> Result<(), Error> {
    all.put(TWO, 16, &[1])?;
    all.flush(TWO)
}

/// Fails if an atomic operation of the machine leaves before the payload is placed.
#[test]
fn a_native_atomic_tells() {
    runs(1500, Profile::Scc, native, |window, me| {
        by_a_word(window, me, by_fetch)
    });
}

/// Fails if one under a lock does.
#[test]
fn an_atomic_under_a_lock_tells() {
    runs(1500, Profile::Scc, plain, |window, me| {
        by_a_word(window, me, by_fetch)
    });
}

/// Fails if a put does.
#[test]
fn a_put_tells() {
    runs(1500, Profile::Scc, plain, |window, me| {
        by_a_word(window, me, by_put)
    });
}

/// Fails if a flush waits for any but the last payload.
#[test]
fn a_flush_waits_for_the_last_payload() {
    runs(1500, Profile::Scc, plain, |window, me| {
        if me == ZERO {
            let lock = window.lock_all().map_err(error)?;
            say(window, ONE, 0, 7)?;
            say(window, ONE, 16, 8)?;
            lock.flush(ONE)?;
            let mut word = [0];
            lock.get(ONE, 16, &mut word)?;
            assert_eq!(word, [8]);
            lock.unlock().map_err(error)
        } else if me == ONE {
            hear(window, ZERO, 0..32, 2)
        } else {
            Ok(())
        }
    });
}

/// Fails if longer data, which are stored in place, overtake older payload of the same bytes, though newer payload lies elsewhere.
#[test]
fn longer_data_come_behind_older_payload() {
    runs(1500, Profile::Scc, plain, |window, me| {
        if me == ZERO {
            say(window, ONE, 0, 7)?;
            say(window, ONE, 32, 8)?;
            window.put_notify(ONE, 0, &[9; 8], Tag(1)).map_err(error)
        } else if me == ONE {
            hear(window, ZERO, 0..64, 3)?;
            assert_eq!(window.local().get(0)?, 9);
            Ok(())
        } else {
            Ok(())
        }
    });
}

/// Fails if a notification overtakes a put that was no notified one.
#[test]
fn a_notification_comes_behind_older_puts() {
    for profile in [Profile::Scc, Profile::Weak] {
        runs(1500, profile, plain, |window, me| {
            if me == ZERO {
                let all = window.lock_all().map_err(error)?;
                // What came before is in memory: it does not order what follows.
                all.flush(ONE)?;
                all.put(ONE, 0, &[5; 16])?;
                tell(window, ONE)?;
                all.unlock().map_err(error)
            } else if me == ONE {
                hear(window, ZERO, 0..16, 1)?;
                assert_eq!(window.local().get(15)?, 5);
                Ok(())
            } else {
                Ok(())
            }
        });
    }
}

/// Ranks 1 and 2 answer payload for them; rank 0, which has heard both, then tells `first` and `then`, and `then` looks at the
/// other's memory.
fn both_answer(window: &Words<'_>, me: Rank, first: Option<Rank>, then: Rank) -> Result<(), Error> {
    if me == ZERO {
        for peer in [ONE, TWO] {
            say(window, peer, 0, 7)?;
        }
        for peer in [ONE, TWO] {
            hear(window, peer, 0..0, 1)?;
        }
        if let Some(first) = first {
            tell(window, first)?;
        }
        return tell(window, then);
    }
    hear(window, ZERO, 0..1, 1)?;
    tell(window, ZERO)?;
    if Some(me) == first || me == then {
        hear(window, ZERO, 0..0, 1)?;
    }
    if me == then {
        let other = if me == ONE { TWO } else { ONE };
        let all = window.lock_all().map_err(error)?;
        assert_eq!(look(&all, other, 0)?, 7);
        all.unlock().map_err(error)?;
    }
    Ok(())
}

/// Fails if only one of those is remembered that have answered.
#[test]
fn two_that_have_answered_are_remembered() {
    runs(3000, Profile::Scc, plain, |window, me| {
        both_answer(window, me, None, TWO)
    });
    runs(3000, Profile::Scc, plain, |window, me| {
        both_answer(window, me, None, ONE)
    });
}

/// Fails if the one that need not be waited for, since it is who is told, is forgotten then.
#[test]
fn who_is_told_is_remembered_for_the_next() {
    runs(3000, Profile::Scc, plain, |window, me| {
        both_answer(window, me, Some(TWO), ONE)
    });
    runs(3000, Profile::Scc, plain, |window, me| {
        both_answer(window, me, Some(ONE), TWO)
    });
}

/// Fails if an answer to one rank leaves before what another has answered is in place.
#[test]
fn an_answer_waits_for_what_was_heard() {
    runs(6000, Profile::Scc, plain, |window, me| {
        if me == ZERO {
            say(window, ONE, 0, 7)?;
            hear(window, ONE, 0..0, 1)?;
            hear(window, TWO, 16..17, 1)?;
            tell(window, TWO)
        } else if me == ONE {
            hear(window, ZERO, 0..1, 1)?;
            tell(window, ZERO)
        } else {
            say(window, ZERO, 16, 5)?;
            hear(window, ZERO, 0..0, 1)?;
            let all = window.lock_all().map_err(error)?;
            assert_eq!(look(&all, ONE, 0)?, 7);
            all.unlock().map_err(error)
        }
    });
}
