//! What must never exceed a bound, after many batches: entries that were sent and not taken.

use std::sync::atomic::{AtomicU32, Ordering};

use flagpost::{Config as WorldConfig, Error, Rank, Session, World};
use flagpost_explore::{Mock, coherent::Coherent};
use flagpost_hal::Relax as _;
use flagpost_link::{Key, Link, Op, Place, Refusal, Wants};
use flagpost_mapped::{Mapped, Ring};
use flagpost_sim::{Config, Nic, Preset, Sim, SimCore};

/// Batches that the receiver takes.
const BATCHES: u32 = 200;

/// Refusals one after the other after which nothing moves any more.
const STILL: u32 = 200;

// ORDERING: Relaxed: cores are coroutines of one thread.
const RELAXED: Ordering = Ordering::Relaxed;

/// Rank 1 (and 2, if it `shares` the ring) sends to rank 0 until there is no room; then rank 0
/// takes some, of another number each time. Of those that were sent `bound` are not taken, at the
/// most, and as many at some time. Each has so many bytes.
fn stays_bounded<L: Link>(
    what: &str,
    chip: Config,
    bound: u32,
    (shares, bytes): (bool, usize),
    start: impl Fn(SimCore) -> Result<L, Refusal>,
) {
    let [sent, taken, wanted, still, most] = [const { AtomicU32::new(0) }; 5];
    let total = BATCHES * (bound / 2 + 1);
    let cores = if shares { 3 } else { 2 };
    let chip = Config { cores, ..chip };
    let report = Sim::new(chip).run(|core| -> Result<(), Error> {
        let mut arena = [0; 256];
        let machine = core.clone();
        let world = World::start(start(core)?, &mut arena, WorldConfig::default())?;
        let link = world.link();
        let key = link.allocate(64, Place::Symmetric)?;
        world.barrier()?;
        if world.rank().get() == 0 {
            let mut batch = 0;
            while taken.load(RELAXED) < total {
                if wanted.load(RELAXED) == taken.load(RELAXED)
                    && still.load(RELAXED) >= u32::from(world.size()) - 1
                {
                    batch = batch % bound + 1;
                    still.store(0, RELAXED);
                    wanted.fetch_add(batch.min(total - taken.load(RELAXED)), RELAXED);
                }
                if wanted.load(RELAXED) > taken.load(RELAXED) && link.progress(Wants::Any).is_some()
                {
                    taken.fetch_add(1, RELAXED);
                }
                machine.relax(&[]);
            }
        } else {
            let (op, data) = (Op::new(), vec![7; bytes]);
            let mut refused = 0;
            while taken.load(RELAXED) < total {
                if sent.load(RELAXED) == total {
                    // Nothing is left to be sent: the rest is taken.
                    wanted.store(total, RELAXED);
                    machine.relax(&[]);
                    continue;
                }
                match tell(link, Rank::new(0), key, &data, &op) {
                    Ok(()) => {
                        let under_way = sent.fetch_add(1, RELAXED) + 1 - taken.load(RELAXED);
                        most.fetch_max(under_way, RELAXED);
                        refused = 0;
                    }
                    Err(refusal) if refusal.is_transient() => refused += 1,
                    Err(refusal) => return Err(refusal.into()),
                }
                if refused > 0 && refused % STILL == 0 {
                    still.fetch_add(1, RELAXED);
                }
                // On a network that is how credits come back.
                assert_eq!(link.progress(Wants::Any), None);
                machine.relax(&[]);
            }
        }
        world.barrier()
    });
    report.assert_done();
    println!("{what}: {} of {bound}", most.load(RELAXED));
    assert_eq!(most.into_inner(), bound, "{what}");
}

/// Tells `to` as the kernel does: on the fast path of the link, if it has one that takes it.
fn tell<L: Link>(link: &L, to: Rank, key: Key, data: &[u8], op: &Op) -> Result<(), Refusal> {
    if link.fast_put(to, (key, 0), data, 5) {
        return Ok(());
    }
    link.put_immediate(to, (key, 0), data, 5, true, op)
}

/// The same of a rank and itself: there is room for as many as `bound`, and for one more with each
/// that it takes, however often.
fn holds_its_own<L: Link>(
    what: &str,
    chip: &Config,
    bound: u32,
    start: &impl Fn(SimCore) -> Result<L, Refusal>,
) {
    let report = Sim::new(chip.clone()).run(|core| -> Result<(), Error> {
        let mut arena = [0; 256];
        let world = World::start(start(core)?, &mut arena, WorldConfig::default())?;
        let (link, me, op) = (world.link(), world.rank(), Op::new());
        let key = link.allocate(64, Place::Symmetric)?;
        let mut room = bound;
        for lap in 0..2 * bound.min(20) + 2 {
            for nth in 0..room {
                let told = tell(link, me, key, &[], &op);
                assert_eq!(told, Ok(()), "{what}: {nth} of {room}, {bound}");
            }
            for _ in 0..2 {
                let refused = tell(link, me, key, &[], &op);
                assert_eq!(refused, Err(Refusal::Full(me)), "{what}: {room} of {bound}");
            }
            room = lap % bound + 1;
            for _ in 0..room {
                let taken = (0..10).find_map(|_| link.progress(Wants::Any));
                assert_eq!(taken.map(|taken| taken.immediate), Some(5), "{what}");
            }
            // What an owner of lines says of room it says now and then.
            link.attend();
        }
        while link.progress(Wants::Any).is_some() {}
        world.barrier()
    });
    report.assert_done();
}

#[test]
fn entries_under_way_are_as_many_as_there_are_places() {
    for bound in [1, 2, 8, 16, 64] {
        let chip = || Config {
            memory_size: 64 << 10,
            ..Config::default()
        };
        for (what, ring, shares) in [
            ("pairs", Ring::Pairs { entries: bound }, false),
            ("bells", Ring::Bells { entries: bound }, false),
            ("shared", Ring::Shared { entries: bound }, true),
        ] {
            let start = |core| Mapped::start_with_ring(core, Session::FIRST, Some(ring));
            holds_its_own(what, &chip(), bound, &start);
            stays_bounded(what, chip(), bound, (shares, 8), start);
            // Bells are pairs there.
            if matches!(ring, Ring::Bells { .. }) || bound == 64 {
                continue;
            }
            let start = |core| {
                flagpost_coherent::Coherent::start_with_ring(
                    Coherent::new(core),
                    Session::FIRST,
                    Some(ring),
                )
            };
            let what = &format!("{what}, coherent");
            holds_its_own(what, &chip(), bound, &start);
            stays_bounded(what, chip(), bound, (shares, 8), start);
        }
        // Two lines each: rings in message buffers take these.
        let lines = Ring::Pairs { entries: 2 * bound };
        let buffers = Config {
            buffer_size: 16 << 10,
            ..chip()
        };
        stays_bounded("lines", buffers, bound, (false, 43), |core| {
            Mapped::start_with_ring(core, Session::FIRST, Some(lines))
        });
        let network = Config {
            memory_size: 64 << 10,
            ..Preset::Network.config()
        };
        let start = |core| Mock::start_with_queue(Nic::open(core), bound);
        holds_its_own("network", &network, bound, &start);
        stays_bounded("network", network, bound, (false, 8), start);
    }
}
