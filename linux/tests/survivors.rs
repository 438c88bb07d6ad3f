//! Ranks that do not wait, but poll: what they are told when another one is lost or has left. And
//! ranks that go on without one.

use std::cell::Cell;
use std::fmt::Display;
use std::process::Command;
use std::sync::atomic::{AtomicU16, Ordering};

use flagpost::{Error, Link, Rank, Tag, World};
use flagpost_link::Gone;
use flagpost_linux::{Coherent, Emulated, Linked, RunError, Setup, SoftwareCoherent, threads_with};

#[path = "../../tests/host/going_on.rs"]
mod going_on;
mod limit;
#[path = "../../tests/host/survivor.rs"]
mod survivor;
#[path = "limit/threads.rs"]
mod threads;
#[path = "../../tests/host/waits.rs"]
mod waits;

use going_on::{In, goes_on, goes_on_from_a_part};
use survivor::LOST;
use threads::within;
use waits::{calls, told};

/// Tests in each mode.
macro_rules! in_each_mode {
    ($($test:ident: $act:ident;)*) => {
        $(
            #[test]
            fn $test() {
                within($act::<Coherent>);
                within($act::<SoftwareCoherent>);
                within($act::<Emulated>);
            }
        )*
    };
}

in_each_mode! {
    polls_tell_that_a_thread_is_lost: polls_of;
    waits_for_a_thread_that_is_gone_end_with_its_name: waits_of;
    threads_go_on_from_parts: go_on_from_parts;
    threads_go_on_after_a_loss: go_on_without;
}

/// [`threads_with`] what nothing here differs in.
fn threads<M: Linked, T: Send, E: Display + Send>(
    ranks: u16,
    program: impl Fn(&World<'_, M::Link>) -> Result<T, E> + Sync,
) -> Result<Vec<T>, RunError<E>> {
    threads_with::<M, T, E>(ranks, 1 << 20, Setup::default(), program)
}

/// Waits until the loss is known: it is a thread's that has failed.
fn until_lost<L: Link>(world: &World<'_, L>) {
    while !matches!(world.link().gone(None), Some(Gone::Lost(_))) {
        std::thread::yield_now();
    }
}

fn polls_of<M: Linked>() {
    let done = threads::<M, (), _>(2, |world| {
        let polled = survivor::polls(world, || (), || until_lost(world), 10_000);
        match (world.rank(), polled) {
            (LOST, Ok(())) => Err("lost on purpose".to_owned()),
            (_, Ok(())) => Ok(()),
            (_, Err(why)) => panic!("{why:?}"),
        }
    });
    match done {
        Err(RunError::Program(why)) => assert_eq!(why, "lost on purpose"),
        other => panic!("{other:?}"),
    }
}

/// Each call that waits for a rank, which leaves or is lost. No budget runs out.
fn waits_of<M: Linked>() {
    let gone = Rank::new(1);
    for (row, is_lost) in (0..calls::<M::Link>().len()).flat_map(|row| [(row, false), (row, true)])
    {
        let done = threads::<M, (), _>(3, |world| {
            let call = calls()[row];
            let (error, knows): (_, fn(&_)) = match is_lost {
                true => (Error::PeerLost(gone), until_lost),
                false => (Error::PeerLeft(gone), |_| ()),
            };
            match told(world, gone, false, call, || knows(world)) {
                Ok(Some(told)) => assert_eq!(told, Err(error), "{}", call.0),
                Ok(None) if is_lost && world.rank() == gone => return Err("lost on purpose"),
                Ok(None) => {}
                Err(why) => panic!("{}: {why:?}", call.0),
            }
            Ok(())
        });
        assert_eq!(done.is_err(), is_lost);
    }
}

/// Ranks leave as soon as they can: no wait of the others fails that does not need them.
#[test]
fn who_has_done_its_part_may_leave() {
    for round in 0..200_u32 {
        let sums = threads::<Coherent, u32, Error>(4, |world| {
            let (me, size) = (world.rank(), world.size());
            let window = world.allocate::<u32>(1)?;
            let mut request = window.expect(0..1, Tag(1))?.from(me.prev(size))?;
            request.start()?;
            window.put_notify(me.next(size), 0, &[round], Tag(1))?;
            if round % 2 == 0 {
                request.wait()?;
            } else {
                while request.test()?.is_none() {}
            }
            let mut sum = [window.local().get(0)?];
            world.allreduce(&mut sum, |a, b| a + b)?;
            Ok(sum[0])
        });
        assert_eq!(sums.expect("nobody fails"), [4 * round; 4]);
    }
}

/// Rank 0 of three ends; the others wait in the world, and in a part.
fn go_on_from_parts<M: Linked>() {
    for waits in In::ALL {
        let done =
            threads::<M, (), _>(3, |world| match goes_on_from_a_part(world, waits, &|| ()) {
                Ok(Some(2)) => Ok(()),
                Ok(None) => Err("lost on purpose"),
                other => panic!("{other:?} ({:?})", world.last_call()),
            });
        assert!(done.is_err(), "it is lost");
    }
}

/// Rank `lost[i].0` of three ends at the `lost[i].1`-th of its places.
fn goes_on_without<M: Linked>(lost: &[(u16, u32)]) {
    let (ended, well) = (AtomicU16::new(0), AtomicU16::new(0));
    let done = threads::<M, (), _>(3, |world| {
        let me = world.rank().get();
        let dies = lost.iter().find(|(rank, _)| *rank == me);
        let places = Cell::new(0);
        let lives = || {
            places.set(places.get() + 1);
            dies.is_none_or(|(_, at)| *at != places.get())
        };
        match goes_on::<_, 2>(world, &lives) {
            Ok(Some(size)) => {
                assert_eq!(usize::from(size), 3 - lost.len());
                well.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            Ok(None) => {
                ended.fetch_add(1, Ordering::Relaxed);
                Err("lost on purpose")
            }
            Err(why) => panic!("{why:?} ({:?})", world.last_call()),
        }
    });
    assert_eq!(done.is_err(), !lost.is_empty());
    let losses = lost.len() as u16;
    assert_eq!(
        [ended, well].map(AtomicU16::into_inner),
        [losses, 3 - losses]
    );
}

fn go_on_without<M: Linked>() {
    goes_on_without::<M>(&[]);
    for rank in 0..3 {
        for place in 1..=6 {
            goes_on_without::<M>(&[(rank, place)]);
            let next = (rank + 1) % 3;
            goes_on_without::<M>(&[(rank, place), (next, place + 2)]);
            goes_on_without::<M>(&[(rank, 2), (next, place)]);
        }
    }
}

const SEED: &str = "FLAGPOST_TEST_SEED";

/// A rank of a job of three, of which one is killed at a place that its seed says. Not a test by
/// itself.
#[test]
fn rank_by_chance() {
    if std::env::var_os(SEED).is_none() {
        return;
    }
    let code = flagpost_linux::run_in_mode!(by_chance);
    assert_eq!(code, std::process::ExitCode::SUCCESS);
}

fn by_chance<L: Link>(world: &World<'_, L>) -> Result<(), Error> {
    let seed: u32 = std::env::var(SEED)
        .expect("it is set")
        .parse()
        .expect("a number");
    let me = world.rank().get();
    let (places, state) = (Cell::new(0), Cell::new(seed * 3 + u32::from(me) + 1));
    let (lost, place) = (seed % 3, 1 + seed / 3 % 6);
    let lives = || {
        // Ranks get out of step, by up to 64 us or so.
        let next = state.get().wrapping_mul(0x915f_77f5).wrapping_add(1);
        state.set(next);
        (0..next >> 16).for_each(|_| std::hint::spin_loop());
        places.set(places.get() + 1);
        if u32::from(me) == lost && places.get() == place {
            let me = rustix::process::getpid();
            rustix::process::kill_process(me, rustix::process::Signal::KILL).expect("it is mine");
        }
        true
    };
    let size = goes_on::<_, 1>(world, &lives)?;
    println!("rank {me} goes on, of {size:?}");
    Ok(())
}

/// All ranks make the same calls, with a part per round, and one is killed. `FLAGPOST_JOBS=n` for
/// more jobs than a few, `FLAGPOST_RUN` for options of the launcher.
#[test]
fn ranks_go_on_from_parts_by_chance() {
    let number = |name, usual| {
        let text = std::env::var(name);
        text.map_or(usual, |text| text.parse().expect("a number"))
    };
    let options = std::env::var("FLAGPOST_RUN").unwrap_or_default();
    for seed in 0..number("FLAGPOST_JOBS", 6) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flagpost-run"));
        command
            .args(["-n", "3", "--grace", "10"])
            .args(options.split_whitespace());
        command.arg(std::env::current_exe().expect("this program"));
        command.args(["--exact", "rank_by_chance", "--nocapture"]);
        let ended = limit::output(command.env(SEED, seed.to_string()));
        let well = ended.out.matches("goes on, of Some(2)").count();
        // One is dead: signal 9.
        let is_well = well == 2 && ended.codes == [137];
        assert!(is_well, "{seed}: {}{}", ended.out, ended.err);
    }
}
