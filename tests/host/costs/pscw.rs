//! What the calls of PSCW cost with each strategy, to the access, and what a window takes of
//! memory. Barriers between the steps are in all runs.

use flagpost::epoch::Strategy;
use flagpost::{Config, EpochSlots, Error, MatchVector, MatchingList, Rank, Session, World};
use flagpost_link::{Link, LocalMemory as _, Place};
use flagpost_mapped::Mapped;
use flagpost_sim::{Config as Chip, Sim, SimCore};

use super::{Count, Worlds, more, quiet, run};

/// Which ranks are origins, and which targets.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Shape {
    /// Rank 0 is the origin of all others.
    OneOrigin,
    /// Rank 0 is the target of all others.
    OneTarget,
}

/// The calls in order, each after a barrier.
const STEPS: u16 = 4;

/// Two epochs, of the second one only the first steps; or a window of no elements, and no epoch.
type What = Option<(Shape, u16)>;

fn program<'w, S: Strategy<'w, Mapped<SimCore>>>(
    world: &'w Worlds<'w>,
    options: S::Options,
    what: What,
) -> Result<(), Error> {
    let window = world.allocate_with::<u64, S>(usize::from(what.is_some()), options)?;
    let Some((shape, steps)) = what else {
        return Ok(());
    };
    let first = [Rank::new(0)];
    let others: Vec<_> = (1..world.size()).map(Rank::new).collect();
    let one = world.rank().get() == 0;
    let origin = one == (shape == Shape::OneOrigin);
    let peers = if one { &others[..] } else { &first };
    for steps in [STEPS, steps] {
        let mut exposure = None;
        let mut access = None;
        for step in 0..STEPS {
            world.barrier()?;
            match step {
                _ if step >= steps => {}
                0 if !origin => exposure = Some(window.post(peers)?),
                1 if origin => access = Some(window.start(peers)?),
                2 => access.take().map_or(Ok(()), |access| access.complete())?,
                3 => exposure.take().map_or(Ok(()), |exposure| exposure.wait())?,
                _ => {}
            }
        }
        world.barrier()?;
    }
    Ok(())
}

/// How a window signals its epochs.
#[derive(Copy, Clone)]
enum Signalled {
    Slots,
    Vector,
    List,
}

impl Signalled {
    /// [`program`] with a window whose list has room for `peers`.
    fn run(self, world: &Worlds<'_>, peers: u16, what: What) -> Result<(), Error> {
        match self {
            Self::Slots => program::<EpochSlots<'_>>(world, (), what),
            Self::Vector => program::<MatchVector<'_>>(world, (), what),
            Self::List => program::<MatchingList<'_>>(world, peers, what),
        }
    }
}

/// What counts: remote loads, remote stores, own stores, locks taken (each is freed by one more
/// access). Own loads are left out: how often a barrier polls depends on the schedule.
type Cost = [u64; 4];

const COST: [Count; 4] = [
    |rank| rank.loads_remote,
    |rank| rank.stores_remote,
    |rank| rank.stores_local,
    |rank| rank.locks,
];

/// What rank 0 and rank 1 do in each step: rank 0 has `peers` of them.
fn costs(by: Signalled, peers: u16, shape: Shape) -> Vec<[Cost; 2]> {
    let counted = |steps| {
        run(peers + 1, 256, &|world| {
            by.run(world, peers, Some((shape, steps)))
        })
    };
    let runs: Vec<_> = (0..=STEPS).map(counted).collect();
    let steps = runs.windows(2).map(|run| {
        let found = more(COST, &run[1], &run[0]);
        [found[0], found[1]]
    });
    steps.collect()
}

/// Checks what post and complete of a rank with `peers` peers cost, per peer and besides, and that
/// start and wait cost nothing.
fn check(by: Signalled, post: [Cost; 2], complete: [Cost; 2]) {
    const NONE: Cost = [0; 4];
    for peers in [1, 3, 6, 47] {
        let cost = |[each, once]: [Cost; 2], peers: u16| -> Cost {
            std::array::from_fn(|n| each[n] * u64::from(peers) + once[n])
        };
        // Rank 0 has all of them, rank 1 one.
        let origin = [
            [NONE, cost(post, 1)],
            [NONE; 2],
            [cost(complete, peers), NONE],
            [NONE; 2],
        ];
        assert_eq!(costs(by, peers, Shape::OneOrigin), origin, "{peers}");
        let target = [
            [cost(post, peers), NONE],
            [NONE; 2],
            [NONE, cost(complete, 1)],
            [NONE; 2],
        ];
        assert_eq!(costs(by, peers, Shape::OneTarget), target, "{peers}");
    }
}

// Per peer, then besides: remote loads, remote stores, own stores, locks.

#[test]
fn epoch_slots_store_once_per_peer() {
    check(
        Signalled::Slots,
        [[0, 1, 0, 0], [0; 4]],
        [[0, 1, 0, 0], [0; 4]],
    );
}

/// A post: its bit, under the origin's lock; and the counter, once. A completion: the own bit and
/// the target's counter, each under a lock.
#[test]
fn match_vectors_cost_a_lock_for_each_word() {
    check(
        Signalled::Vector,
        [[1, 1, 0, 1], [0, 0, 1, 0]],
        [[1, 1, 1, 2], [0; 4]],
    );
}

/// A post: one claim. A completion: the own entry and the target's counter.
#[test]
fn matching_lists_cost_an_atomic_for_each_cell() {
    check(
        Signalled::List,
        [[1, 1, 0, 1], [0; 4]],
        [[1, 1, 1, 2], [0; 4]],
    );
}

/// Three targets whose search begins at the same entry of three: six claims at first, three from
/// then on, as each begins where its last one was.
#[test]
fn posts_find_their_entries_again() {
    let locks = |epochs: u16| {
        let counters = run(8, 256, &|world| {
            let window = world.allocate_with::<u64, MatchingList<'_>>(1, 3)?;
            let (origin, targets) = (Rank::new(0), [1, 4, 7].map(Rank::new));
            for _ in 0..epochs {
                let mut exposure = None;
                if targets.contains(&world.rank()) {
                    exposure = Some(window.post([origin])?);
                }
                world.barrier()?;
                if world.rank() == origin {
                    window.start(targets)?.complete()?;
                }
                if let Some(exposure) = exposure {
                    exposure.wait()?;
                }
            }
            Ok(())
        });
        let targets = [1, 4, 7].map(|rank: usize| counters[rank].locks);
        targets.iter().sum::<u64>()
    };
    let locks = [0, 1, 2, 3].map(locks);
    let each = [0, 1, 2].map(|epoch: usize| locks[epoch + 1] - locks[epoch]);
    assert_eq!(each, [6, 3, 3]);
}

/// Words of the arena and bytes of shared memory that a window of no elements takes beside its
/// piece.
fn memory(by: Signalled, cores: u16, peers: u16) -> [u32; 2] {
    let sizes = std::cell::Cell::new([0; 2]);
    let chip = Chip {
        // So that slots lie in memory, too.
        buffer_size: 0,
        memory_size: 64 << 10,
        ..quiet(cores)
    };
    let report = Sim::new(chip).run(|core| -> Result<(), Error> {
        let config = Config::default();
        // What the world itself takes.
        let own = usize::from(config.unexpected) - 1;
        let mut arena = vec![0; own];
        let session = Session::FIRST;
        let link = Mapped::start(core.clone(), session)?;
        let words = {
            let world = World::start(link, &mut arena, config)?;
            match by.run(&world, peers, None) {
                Err(Error::ArenaFull { missing_words }) => missing_words,
                other => panic!("{other:?}"),
            }
        };
        let mut arena = vec![0; own + words as usize];
        let link = Mapped::start(core, session.next())?;
        let world = World::start(link, &mut arena, config)?;
        let begin = world.link().allocate(1, Place::Symmetric)?;
        by.run(&world, peers, None)?;
        let end = world.link().allocate(1, Place::Symmetric)?;
        // Keys count lines.
        let lines = end.get() - begin.get() - 2;
        sizes.set([words, lines * <Mapped<SimCore> as Link>::LINE as u32]);
        Ok(())
    });
    report.assert_done();
    sizes.get()
}

/// Bytes of a window's cells.
const CELLS: u32 = 64;

/// Rounded up to whole lines.
fn lines(bytes: u32) -> u32 {
    bytes.next_multiple_of(<Mapped<SimCore> as Link>::LINE as u32)
}

/// What of a window does not depend on its strategy is the same on any number of ranks: nothing of
/// the arena, and eight cells beside the piece.
#[test]
fn windows_take_what_their_strategies_say() {
    for cores in [2, 33, 300] {
        let ranks = u32::from(cores);
        let sets = ranks.div_ceil(32);
        assert_eq!(
            memory(Signalled::Slots, cores, 1),
            [2 * ranks + sets + 1, CELLS + lines(8 * ranks)]
        );
        assert_eq!(
            memory(Signalled::Vector, cores, 1),
            [sets + 1, CELLS + lines(4 * sets + 4)]
        );
        for peers in [1, 6, 47] {
            let entries = u32::from(peers);
            assert_eq!(
                memory(Signalled::List, cores, peers),
                [2 * entries + 1, CELLS + lines(8 * entries + 8)]
            );
        }
    }
}
