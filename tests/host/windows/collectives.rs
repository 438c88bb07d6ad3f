//! What the table in `collective/mod.rs` says, for one chunk: signals, bytes and waits, of the rank
//! that has most and of all.

use flagpost::{Error, Rank};
use flagpost_sim::Counters;

use super::{Worlds, run};

/// What the ranks did more in `with` than in `without`: the most of a rank, and in all.
#[derive(Debug, PartialEq, Eq)]
struct More {
    /// Words stored at others.
    signals: [u64; 2],
    /// Bytes stored in bulk, at others and at the own rank.
    bytes: [u64; 2],
    /// Signals that were waited for: behind each, and behind nothing else here, the machine
    /// acquires.
    waits: [u64; 2],
    locks: u64,
    loads: u64,
}

fn more(cores: u16, with: &dyn Fn(&Worlds<'_>) -> Result<(), Error>) -> More {
    let (with, without) = (run(cores, 4096, with), run(cores, 4096, &|_| Ok(())));
    let count = |count: fn(&Counters) -> u64| {
        let ranks = with.iter().zip(&without);
        let more: Vec<u64> = ranks.map(|(a, b)| count(a) - count(b)).collect();
        [more.iter().copied().max().unwrap_or(0), more.iter().sum()]
    };
    More {
        signals: count(|core| core.stores_remote),
        bytes: count(|core| core.bulk_bytes),
        waits: count(|core| core.acquires),
        locks: count(|core| core.locks)[1],
        loads: count(|core| core.loads_remote)[1],
    }
}

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
        let barrier = more(p, &|world| world.barrier());
        let expect = expected([log, ranks * log], [0, 0], log);
        assert_eq!(barrier, expect, "barrier of {p}");
        let twice = [2 * log, 2 * ranks * log];
        let allgather = more(p, &|world| {
            let mut all = [Element::default(); RANKS];
            world.allgather(Element::default(), &mut all[..usize::from(p)])
        });
        // Its own one goes to its own memory, and p - 1 to others.
        let each = [ranks * BYTES, ranks * ranks * BYTES];
        assert_eq!(
            allgather,
            expected(twice, each, 2 * log),
            "allgather of {p}"
        );
        // No events: there is nothing to clear, and what is left is the agreement.
        let agree = more(p, &|world| {
            world.events(0)?;
            Ok(())
        });
        let each = [log * 24, ranks * log * 24];
        assert_eq!(agree, expected(twice, each, 2 * log), "agreement of {p}");
        let broadcast = more(p, &|world| world.broadcast(Rank::new(0), &mut [1_u64; 4]));
        let expect = expected(
            [2 * log, edges + ranks * log],
            [log * BYTES, edges * BYTES],
            1 + log,
        );
        assert_eq!(broadcast, expect, "broadcast to {p}");
        let last = Rank::new(p - 1);
        let reduce = more(p, &|world| {
            world.reduce(last, &mut [1_u64; 4], |a, b| a + b)
        });
        let expect = expected(
            [1 + log, edges + ranks * log],
            [BYTES, edges * BYTES],
            2 * log,
        );
        assert_eq!(reduce, expect, "reduction to {p}");
        let all = more(p, &|world| world.allreduce(&mut [1_u64; 4], |a, b| a + b));
        let ([signals, in_all], [bytes, bytes_in_all]) = (all.signals, all.bytes);
        assert_eq!(in_all, 2 * edges + ranks * log, "allreduce of {p}");
        assert_eq!(
            [bytes_in_all, all.locks, all.loads],
            [2 * edges * BYTES, 0, 0]
        );
        assert!(signals <= 1 + 2 * log && bytes <= (1 + log) * BYTES);
        assert!(all.waits[0] <= 1 + 2 * log && all.waits[1] == in_all);
        let alltoall = more(p, &|world| {
            let (from, mut into) = ([1_u64; 4 * RANKS], [0; 4 * RANKS]);
            let len = 4 * usize::from(p);
            world.alltoall(&from[..len], &mut into[..len])
        });
        let each = [ranks * BYTES, ranks * ranks * BYTES];
        assert_eq!(alltoall, expected(twice, each, 2 * log), "alltoall of {p}");
    }
}
