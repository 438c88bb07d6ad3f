//! Payload that is held back, between two or three ranks, and what waits for it. Timed runs, of a
//! chip that does nothing on its own account, but for one; what each test must notice is said with
//! it.

use flagpost::{Budget, Config, Error, Rank, Rma as _, Session, Tag, Window, World};
use flagpost_mapped::Mapped;
use flagpost_sim::{Config as Chip, Schedule, Sim, SimCore};

const ZERO: Rank = Rank::new(0);
const ONE: Rank = Rank::new(1);
const TWO: Rank = Rank::new(2);

/// Elements of a window, which a ring has no room for at once.
const WORDS: usize = 640;

/// Elements that are long payload.
const LONG: usize = 32;

/// Longer than anything takes that others do meanwhile, in cycles.
const WHILE: u32 = 100_000;

type Words<'w> = Window<'w, u32, Mapped<SimCore>>;

/// A chip whose message buffers have room for long payload.
fn large() -> Chip {
    Chip {
        memory_size: 32 << 10,
        buffer_size: 8 << 10,
        schedule: Schedule::Mixed,
        ..Chip::default()
    }
}

fn timed(cores: u16, program: impl Fn(&SimCore, &World<'_, Mapped<SimCore>>) -> Result<(), Error>) {
    let chip = Chip {
        memory_size: large().memory_size,
        buffer_size: large().buffer_size,
        schedule: Schedule::Timed,
        ..Chip::quiet(cores)
    };
    let report = Sim::new(chip).run(|core| -> Result<(), Error> {
        let mut arena = [0; 1024];
        let link = Mapped::start(core.clone(), Session::FIRST)?;
        let world = World::start(link, &mut arena, Config::default())?;
        program(&core, &world)?;
        world.barrier()
    });
    report.assert_done();
}

/// Waits until `from` has told so often; any of its payload may come.
fn hear(window: &Words<'_>, from: Rank, count: u16) -> Result<(), Error> {
    let mut told = window.expect(0..WORDS, Tag(1))?.from(from)?.times(count)?;
    told.start()?;
    told.wait().map(|_| ())
}

fn say<const N: usize>(
    window: &Words<'_>,
    to: Rank,
    index: usize,
    data: [u32; N],
) -> Result<(), Error> {
    window.put_notify(to, index, &data, Tag(1))
}

/// What `rank`'s memory holds.
fn look<const N: usize>(window: &Words<'_>, rank: Rank, index: usize) -> Result<[u32; N], Error> {
    let lock = window.lock_shared(rank)?;
    let mut found = [0; N];
    lock.get(rank, index, &mut found)?;
    lock.unlock()?;
    Ok(found)
}

/// Fails if a put past the ring does not wait for older payload for the same bytes, where newer
/// payload lies below that.
#[test]
fn newer_payload_below_hides_no_older_one() {
    timed(2, |core, world| {
        let window = world.allocate::<u32>(WORDS)?;
        if world.rank() == ZERO {
            say(&window, ONE, 32, [7])?;
            say(&window, ONE, 0, [8])?;
            window.set_inline(false);
            say(&window, ONE, 32, [9])?;
        } else {
            core.spend(WHILE);
            hear(&window, ZERO, 3)?;
            assert_eq!(window.local().get(32)?, 9);
            assert_eq!(window.local().get(0)?, 8);
        }
        world.barrier()?;
        assert_eq!(look(&window, ONE, 32)?, [9]);
        world.barrier()
    });
}

/// A barrier waits for payload that its caller has heard of, longer than budgets last. Fails if it
/// signals once more when it is called again: the next one would not wait.
#[test]
fn a_barrier_that_was_late_is_one_barrier() {
    timed(3, |core, world| {
        let window = world.allocate::<u32>(WORDS)?;
        match world.rank() {
            ZERO => {
                say(&window, TWO, 0, [7; LONG])?;
                hear(&window, TWO, 1)?;
                let mut late = 0;
                let barrier = || world.within(Budget::microseconds(0), || world.barrier());
                while let Err(error) = barrier() {
                    assert!(matches!(error, Error::Timeout(_)), "{error}");
                    late += 1;
                    core.spend(WHILE / 100);
                }
                assert!(late > 1);
                core.spend(10 * WHILE);
                let lock = window.lock_exclusive(ONE)?;
                lock.put(ONE, 100, &[5])?;
                lock.unlock()?;
            }
            ONE => world.barrier()?,
            _ => {
                hear(&window, ZERO, 1)?;
                say(&window, ZERO, 0, [])?;
                core.spend(WHILE);
                world.barrier()?;
            }
        }
        world.barrier()?;
        if world.rank() == ONE {
            assert_eq!(look(&window, ONE, 100)?, [5]);
        }
        world.barrier()
    });
}

/// Fails if a line counts as taken before what it brought is kept: it ends in a line of the window
/// of which another rank's payload has the rest, which is placed then, and with it the producer is
/// told how far its ring is placed.
#[test]
fn a_flush_covers_the_line_in_hand() {
    for (mine, theirs) in [(204, 20), (300, 12), (452, 12)] {
        for delay in (0..20_000).step_by(1_000) {
            timed(3, |core, world| {
                let window = world.allocate::<u32>(WORDS)?;
                world.barrier()?;
                match world.rank() {
                    ZERO => {
                        let mut told = window.expect(0..WORDS, Tag(1))?.times(2)?;
                        told.start()?;
                        told.wait()?;
                        core.spend(20 * WHILE);
                    }
                    TWO => {
                        core.spend(1 + delay);
                        let data = vec![6; theirs];
                        let put = window.put_notify(ZERO, mine, &data, Tag(1));
                        put?;
                    }
                    _ => {
                        let data = vec![7; mine];
                        let put = window.to(ZERO, 0).notify(Tag(1)).put(&data)?;
                        core.spend(WHILE / 5);
                        put.wait()?;
                        core.spend(WHILE);
                        let lock = window.lock_all()?;
                        lock.flush(ZERO)?;
                        let mut found = vec![0; mine];
                        lock.get(ZERO, 0, &mut found)?;
                        assert_eq!(found, data, "{mine} words, {theirs} beside, {delay}");
                        lock.unlock()?;
                    }
                }
                Ok(())
            });
        }
    }
}
