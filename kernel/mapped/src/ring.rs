//! Which rings a world has by default. With few ranks each pair has a ring of its own, which needs
//! no lock. With more, a rank cannot look at each ring, so producers ring a bell. With very many
//! all producers share one ring.
//!
//! | ranks | ring |
//! |---|---|
//! | up to 4 | pairs, of 64 lines per rank; 128 for two, if half of the message buffer has room |
//! | up to 64 | bells, of up to 128 lines per rank, if half of the message buffer has room for 2 |
//! | | lines per peer; if it has not for 4, of three quarters: on the SCC 4 for each of 48 ranks |
//! | else | a shared ring of 64 lines |
//!
//! More ranks than the link has [places](crate::LineMail) for share a ring, too.
//!
//! Rings of pairs lie in the message buffer if their lines fill no more than three quarters of it,
//! since a core polls its own buffer fastest; else in memory. So does a shared ring, if the slots
//! of a window have room beside it (on the SCC: up to 760 ranks), and tickets are not taken by
//! native atomics.

use flagpost_loadstore::ring::{PAIRS, Ring, half, share};

/// Lines per rank, unless asked for otherwise.
const LINES: u32 = 64;
/// Lines per rank if they fit half of the message buffer. Two ranks: long data wait half as often.
/// More ranks: bells make it cheap to find the ring.
const MOST_LINES: u32 = 128;
/// Least lines of a pair's ring without bells: a producer loads `head` once in as many puts. And a
/// rank that waits looks at four words then at most.
const LEAST: u32 = 16;
/// Lines with bells that are enough for a short message.
const ENOUGH: u32 = 4;
/// Least lines with bells.
const LEAST_BELLED: u32 = 2;

/// The default for `ranks`, where entries have `entry` bytes and may lie in message buffers of
/// `buffer` bytes (0: none).
pub(crate) const fn for_ranks(ranks: u16, buffer: u32, entry: u32) -> Ring {
    let near = match half(buffer).checked_div(entry) {
        Some(lines) => lines,
        None => 0,
    };
    let is_large = near >= MOST_LINES;
    let lines = if ranks == 2 && is_large {
        MOST_LINES
    } else {
        LINES
    };
    let pairs = share(lines, ranks);
    if pairs >= LEAST {
        return Ring::Pairs { entries: pairs };
    }
    let near = if is_large { MOST_LINES } else { near };
    let belled = match share(near, ranks) {
        // Half as much again, where a short message would not fit.
        LEAST_BELLED..ENOUGH => share(near.saturating_add(near.wrapping_shr(1)), ranks),
        lines => lines,
    };
    if belled >= LEAST_BELLED && ranks as usize <= PAIRS {
        return Ring::Bells { entries: belled };
    }
    Ring::SHARED
}

#[cfg(test)]
mod tests {
    use flagpost_loadstore::layout::{Layout, Parts};

    use super::*;

    #[test]
    fn few_ranks_have_a_ring_per_pair() {
        let pairs = |entries| Ring::Pairs { entries };
        let shared = Ring::SHARED;
        let expected = [
            (1, pairs(64)),
            (2, pairs(32)),
            (3, pairs(16)),
            (4, pairs(16)),
            (5, shared),
            (48, shared),
            (u16::MAX, shared),
        ];
        for (ranks, ring) in expected {
            assert_eq!(for_ranks(ranks, 0, 32), ring, "{ranks}");
            assert_eq!(ring.check(ranks, PAIRS), Ok(()));
        }
        let near = |ranks, buffer| for_ranks(ranks, buffer, 32);
        assert_eq!(near(2, 8 << 10), pairs(64));
        assert_eq!(near(2, (8 << 10) - 32), pairs(64));
        for (ranks, buffer) in [(2, 4 << 10), (3, 8 << 10), (4, u32::MAX)] {
            assert_eq!(near(ranks, buffer), near(ranks, 0));
        }
    }

    #[test]
    fn more_ranks_have_bells_where_the_buffer_has_room() {
        let bells = |entries| Ring::Bells { entries };
        let shared = Ring::SHARED;
        let expected = [
            (5, 8 << 10, bells(16)),
            (8, 8 << 10, bells(16)),
            (8, (8 << 10) - 32, bells(16)),
            (32, (8 << 10) - 32, bells(4)),
            (64, (8 << 10) - 32, bells(2)),
            (8, u32::MAX, bells(16)),
            (9, 8 << 10, bells(8)),
            (32, 8 << 10, bells(4)),
            (48, 8 << 10, bells(4)),
            (64, 8 << 10, bells(2)),
            (65, 8 << 10, shared),
            (65, u32::MAX, shared),
            (48, (4 << 10) + 1, bells(4)),
            (48, 4 << 10, shared),
        ];
        for (ranks, buffer, ring) in expected {
            assert_eq!(for_ranks(ranks, buffer, 32), ring, "{ranks}");
            assert_eq!(ring.check(ranks, PAIRS), Ok(()));
        }
        assert_eq!(for_ranks(48, 8 << 10, 64), shared);
    }

    #[test]
    fn rings_of_pairs_lie_in_the_message_buffer() {
        let in_buffer = |ranks, buffer| {
            let ring = for_ranks(ranks, buffer, 32);
            let bells = if let Ring::Bells { .. } = ring {
                ranks.into()
            } else {
                0
            };
            let parts = Parts {
                entry: 32,
                bells,
                behind: 0,
            };
            Layout::new(32, ranks, ring, parts, buffer as usize).in_buffer
        };
        assert!(in_buffer(2, 8 << 10) && in_buffer(4, 4 << 10));
        assert!(in_buffer(5, 8 << 10) && in_buffer(64, 8 << 10) && in_buffer(8, 1 << 10));
        assert!(in_buffer(65, 8 << 10) && in_buffer(760, 8 << 10));
        assert!(!in_buffer(4, 2 << 10) && !in_buffer(761, 8 << 10) && !in_buffer(1, 0));
    }
}
