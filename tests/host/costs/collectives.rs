//! What the table in `collective/mod.rs` says, for one chunk: signals, bytes and waits, of the rank
//! that has most and of all; and of fences.

use std::mem::forget;

use flagpost::epoch::Assert;
use flagpost::{Error, Model, Rank};

use super::{Count, Worlds, costs, more, quiet, run};

/// What ranks do more with a collective call than without: the most of a rank, and in all.
#[derive(Debug, PartialEq, Eq)]
struct More {
    /// Words stored at others.
    signals: [u64; 2],
    /// Bytes stored in bulk, at others and at the own rank.
    bytes: [u64; 2],
    /// Signals that were waited for: after each, and after nothing else here, the machine acquires.
    waits: [u64; 2],
    locks: u64,
    loads: u64,
}

fn more_of(cores: u16, with: &dyn Fn(&Worlds<'_>) -> Result<(), Error>) -> More {
    const ALL: [Count; 5] = [
        |rank| rank.stores_remote,
        |rank| rank.bulk_bytes,
        |rank| rank.acquires,
        |rank| rank.locks,
        |rank| rank.loads_remote,
    ];
    let (with, without) = (run(cores, 4096, with), run(cores, 4096, &|_| Ok(())));
    let found = more(ALL, &with, &without);
    let [signals, bytes, waits, locks, loads] = [0, 1, 2, 3, 4].map(|count: usize| {
        let each = found.iter().map(|rank| rank[count]);
        [each.clone().max().unwrap_or(0), each.sum()]
    });
    More {
        signals,
        bytes,
        waits,
        locks: locks[1],
        loads: loads[1],
    }
}

/// A fence tells as many ranks as the number of all has bits, reads nothing of any, and takes no
/// lock.
#[test]
fn a_fence_tells_log_p_ranks() {
    const REMOTE: [Count; 3] = [
        |rank| rank.stores_remote,
        |rank| rank.loads_remote,
        |rank| rank.locks,
    ];
    for (cores, tells) in [(1, 0), (2, 1), (3, 2), (5, 3), (8, 3), (16, 4), (48, 6)] {
        let found = costs(&quiet(cores), Model::Separate, REMOTE, &|_, window, two| {
            let mut epoch = window.fence(Assert::empty())?;
            if two {
                epoch = epoch.fence(Assert::empty())?;
            }
            forget(epoch);
            Ok(())
        });
        assert!(
            found.iter().all(|fence| *fence == [tells, 0, 0]),
            "{cores}: {found:?}"
        );
    }
}

/// Bytes of the head that says which call data are of, and of the note of a call with a root.
const HEAD: u64 = 8;
const NOTE: u64 = 16;

/// Bytes of an element, a block, a chunk.
const BYTES: u64 = 32;
type Element = [u64; 4];

/// Most ranks.
const RANKS: usize = 48;

#[test]
fn collectives_cost_what_they_say() {
    for p in [2_u16, 3, 5, 8, 13, 48] {
        let log = u64::from(u16::BITS - (p - 1).leading_zeros());
        let (ranks, edges) = (u64::from(p), u64::from(p) - 1);
        // No locks, no remote loads, and each signal is waited for once.
        let expected = |signals: [u64; 2], bytes, most_waits| More {
            signals,
            bytes,
            waits: [most_waits, signals[1]],
            locks: 0,
            loads: 0,
        };
        let barrier = more_of(p, &|world| world.barrier());
        let expect = expected([log, ranks * log], [0, 0], log);
        assert_eq!(barrier, expect, "barrier of {p}");
        let twice = [2 * log, 2 * ranks * log];
        let allgather = more_of(p, &|world| {
            let mut all = [Element::default(); RANKS];
            world.allgather(Element::default(), &mut all[..usize::from(p)])
        });
        // Its own one goes to its own memory, and p - 1 to others, and one head.
        let each = [ranks * BYTES + HEAD, ranks * (ranks * BYTES + HEAD)];
        assert_eq!(
            allgather,
            expected(twice, each, 2 * log),
            "allgather of {p}"
        );
        // No events: there is nothing to clear, and what is left is the agreement.
        let agree = more_of(p, &|world| {
            world.events(0)?;
            Ok(())
        });
        let each = [log * (HEAD + 24), ranks * log * (HEAD + 24)];
        assert_eq!(agree, expected(twice, each, 2 * log), "agreement of {p}");
        let broadcast = more_of(p, &|world| world.broadcast(Rank::new(0), &mut [1_u64; 4]));
        let expect = expected(
            [2 * log, edges + ranks * log],
            [
                log * (HEAD + BYTES) + NOTE,
                edges * (HEAD + BYTES) + ranks * NOTE,
            ],
            1 + log,
        );
        assert_eq!(broadcast, expect, "broadcast to {p}");
        let last = Rank::new(p - 1);
        let reduce = more_of(p, &|world| {
            world.reduce(last, &mut [1_u64; 4], |a, b| a + b)
        });
        let expect = expected(
            [1 + log, edges + ranks * log],
            [HEAD + BYTES + NOTE, edges * (HEAD + BYTES) + ranks * NOTE],
            2 * log,
        );
        assert_eq!(reduce, expect, "reduction to {p}");
        let all = more_of(p, &|world| world.allreduce(&mut [1_u64; 4], |a, b| a + b));
        let ([signals, in_all], [bytes, bytes_in_all]) = (all.signals, all.bytes);
        assert_eq!(in_all, 2 * edges + ranks * log, "allreduce of {p}");
        assert_eq!(
            [bytes_in_all, all.locks, all.loads],
            [2 * edges * (HEAD + BYTES), 0, 0]
        );
        assert!(signals <= 1 + 2 * log && bytes <= (1 + log) * (HEAD + BYTES));
        assert!(all.waits[0] <= 1 + 2 * log && all.waits[1] == in_all);
        let alltoall = more_of(p, &|world| {
            let (from, mut into) = ([1_u64; 4 * RANKS], [0; 4 * RANKS]);
            let len = 4 * usize::from(p);
            world.alltoall(&from[..len], &mut into[..len])
        });
        let each = [ranks * (HEAD + BYTES), ranks * ranks * (HEAD + BYTES)];
        assert_eq!(alltoall, expected(twice, each, 2 * log), "alltoall of {p}");
    }
}
