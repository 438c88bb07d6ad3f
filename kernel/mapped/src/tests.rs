//! Data that are kept, and the ranks that wait for them. One rank of a simulated chip keeps data as
//! if peers had sent them. Each test compares what the rank reads with memory past its cache, which
//! is what others see.

#![allow(clippy::arithmetic_side_effects, reason = "sums here are small")]

extern crate std;

use std::vec::Vec;

use flagpost_common::Dice;
use flagpost_hal::{Coherence as _, Topology as _, UncachedMemory as _};
use flagpost_link::{LocalMemory as _, Place, Rank, Refusal, Session};
use flagpost_sim::{Config, Sim, SimCore};

use crate::{
    Mapped,
    deferred::{Kept, PLACES, SPANS},
    peer::{Outbox, counts},
};
use flagpost_loadstore::Mail as _;
use flagpost_loadstore::ring::FIRST;

type Memory = Mapped<SimCore>;

/// Bytes that data come for.
const BYTES: usize = 1024;

/// From this byte on long data come, of one rank.
const LONG: usize = 512;

/// Runs `program` as rank 0 of four, whose peers do nothing by themselves.
fn alone(seed: u64, program: impl Fn(&Memory, usize)) {
    let chip = Config {
        cores: 4,
        memory_size: 16 << 10,
        buffer_size: 8 << 10,
        seed,
        ..Config::default()
    };
    let first = |core| {
        let link = Mapped::start(core, Session::FIRST)?;
        let key = link.allocate(BYTES, Place::Symmetric)?;
        link.write_local(key, 0, &[0; BYTES])?;
        link.publish(key, 0, BYTES)?;
        program(&link, link.mail().base.resolve(key, 0, BYTES)?);
        Ok::<_, Refusal>(())
    };
    let report = Sim::new(chip).run(|core| match core.core().get() {
        0 => first(core).map_err(|_| "the link refuses"),
        _ => Ok(()),
    });
    report.assert_done();
}

/// The contents of memory, past the cache.
fn in_memory(link: &Memory, start: usize) -> [u8; BYTES] {
    let mut found = [0; BYTES];
    let at = link.mail().base.own(start);
    link.machine().load_bytes(at, &mut found);
    found
}

/// Where data come that have `len` bytes and a place in `range`: before the last ones, after
/// them, at them, or anywhere.
fn place(dice: &mut Dice, last: &mut usize, len: usize, range: (usize, usize)) -> usize {
    let most = range.1 - len;
    *last = match dice.below(8) {
        0..=3 => last.saturating_sub(len),
        4 => *last + len,
        5 => *last,
        _ => dice.below(range.1),
    };
    *last = (*last).clamp(range.0, most);
    *last
}

/// D1, D2: data come upwards, downwards and over each other, of several ranks, short and long; the
/// owner's stores in between, and what publishes and refreshes. The owner finds the newest after
/// each of them, and memory once all is placed.
#[test]
fn what_is_kept_is_read_and_placed_as_it_came() {
    for seed in 0..50 {
        alone(seed, |link, start| {
            let (mut dice, mut model) = (Dice::new(seed), [0; BYTES]);
            let key = flagpost_link::Key::new((start / 32) as u32);
            let (mut short, mut long) = (LONG, BYTES);
            for step in 0..120_u8 {
                match dice.below(8) {
                    0..=3 => {
                        let len = 1 + dice.below(20);
                        let mut at = place(&mut dice, &mut short, len, (0, LONG));
                        // The rank that has put there: no other one puts to the same bytes
                        // meanwhile.
                        let end = at + len;
                        while at < end {
                            let rest = (at / 20 + 1) * 20;
                            let (len, ring) = (rest.min(end) - at, 1 + at / 20 % 3);
                            model[at..at + len].fill(step);
                            let data = &model[at..at + len];
                            link.mail().keep(ring as u32, start + at, data, false);
                            at += len;
                        }
                    }
                    4 | 5 => {
                        let len = 32 * (1 + dice.below(3)) - dice.below(2) * 12;
                        let at = place(&mut dice, &mut long, len, (LONG, BYTES));
                        model[at..at + len].fill(step);
                        link.mail().keep(1, start + at, &model[at..at + len], true);
                    }
                    6 => {
                        let at = dice.below(BYTES - 4);
                        model[at..at + 4].fill(step);
                        link.write_local(key, at, &[step; 4]).unwrap();
                        // No dirty line is left where data may come.
                        link.publish(key, at, 4).unwrap();
                    }
                    _ => {
                        let at = dice.below(BYTES);
                        let len = 1 + dice.below(BYTES - at);
                        link.refresh(key, at, len).unwrap();
                        let kept = [Kept::Pieces, Kept::All][dice.below(2)];
                        if dice.below(4) == 0 {
                            link.mail().place_kept(kept);
                        }
                    }
                }
                let at = dice.below(BYTES);
                let len = 1 + dice.below(BYTES - at);
                let mut found = [0; BYTES];
                link.mail().read_own(start + at, &mut found[..len]);
                assert_eq!(found[..len], model[at..at + len], "{seed} {step} {at}");
            }
            link.mail().place_kept(Kept::All);
            assert!(!link.mail().deferred.is_busy());
            assert_eq!(in_memory(link, start), model, "{seed}");
        });
    }
}

/// D2: bytes for a line that is kept in the cache are placed with it, not under it. Of two pieces,
/// the first leaves the write-combining buffer before the line is written back.
#[test]
fn bytes_of_a_line_in_the_cache_are_placed_with_it() {
    alone(0, |link, start| {
        for kept in [Kept::Pieces, Kept::All] {
            link.mail().keep(1, start, &[1; 32], true);
            link.mail().keep(1, start + 4, &[2; 20], true);
            link.mail().keep(1, start + 64, &[3; 20], true);
            assert_eq!(link.mail().deferred.pieces(), 2);
            link.mail().place_kept(kept);
            link.mail().place_kept(Kept::All);
            let mut line = [1; 32];
            line[4..24].fill(2);
            assert_eq!(in_memory(link, start)[..32], line);
        }
    });
}

/// As many pieces, and runs of lines, are kept as there are places; one more has all placed. Again
/// once there is room again, from wherever they come.
#[test]
fn as_much_is_kept_as_there_are_places() {
    alone(0, |link, start| {
        for lap in 1..=6_u8 {
            let place = |nth: usize| match lap % 2 {
                0 => 32 * nth,
                _ => BYTES - 32 * (nth + 1),
            };
            for nth in 0..=PLACES {
                link.mail().keep(1, start + place(nth), &[lap], false);
                let (kept, memory) = (nth % PLACES + 1, in_memory(link, start));
                assert_eq!(link.mail().deferred.pieces(), kept, "{lap}");
                for (before, full) in (0..nth).map(|nth| (nth, nth < PLACES)) {
                    let placed = nth == PLACES && full;
                    assert_eq!(memory[place(before)] == lap, placed, "{lap} {before} {nth}");
                }
            }
            link.mail().place_kept(Kept::All);
            // Runs of lines, apart from each other.
            let place = |nth: usize| match lap % 2 {
                0 => 128 * nth,
                _ => BYTES - 128 * (nth + 1),
            };
            for nth in 0..=SPANS {
                for line in [1, 2, 0] {
                    let at = start + place(nth) + 32 * line;
                    link.mail().keep(1, at, &[lap + 100; 32], true);
                }
                let lines: Vec<_> = link.mail().deferred.runs().collect();
                assert_eq!(lines, [96].repeat(nth % SPANS + 1), "{lap}");
                assert_eq!(link.mail().deferred.pieces(), 0);
            }
            link.mail().place_kept(Kept::All);
            let memory = in_memory(link, start);
            assert!((0..=SPANS).all(|nth| memory[place(nth)..][..96] == [lap + 100; 96]));
        }
    });
}

/// The ring at `rank`, as this rank knows it.
fn out(link: &Memory, rank: Rank) -> &Outbox {
    &link.mail().peers[rank.index()].out
}

/// Data for `rank` are in flight, and it has told something since.
fn hears(link: &Memory, rank: Rank) {
    let after = out(link, rank).claims(1).wrapping_add(1);
    if out(link, rank).flight.leaves(after, 64, 68) {
        let in_flight = &link.mail().in_flight;
        in_flight.set(in_flight.get() + 1);
    }
    assert!(out(link, rank).hears());
    link.mail().deferred.hears(rank);
}

/// `rank` says how much of what it has been sent is placed: all, or nothing.
fn says(link: &Memory, rank: Rank, all: bool) {
    let sent = out(link, rank).claims(0);
    let placed = if all { sent } else { FIRST };
    let rings = link.mail().base.rings_of(rank).unwrap();
    let head = link.mail().base.layout.head(rings, 0);
    link.machine().store_u32(head, counts(sent, placed));
    link.machine().drain();
}

const ONE: Rank = Rank::new(1);
const TWO: Rank = Rank::new(2);
const THREE: Rank = Rank::new(3);

/// D2: a rank that this one tells something waits for the data of all that have answered, but for
/// its own: the first that has answered, the last, each.
#[test]
fn telling_waits_for_all_that_have_answered_but_the_one_that_is_told() {
    let orders: [&[Rank]; 8] = [
        &[ONE],
        &[THREE],
        &[ONE, TWO],
        &[TWO, ONE],
        &[ONE, ONE, THREE],
        &[THREE, ONE, THREE],
        &[ONE, TWO, THREE],
        &[THREE, TWO, ONE],
    ];
    for answered in orders {
        for told in [None, Some(ONE), Some(TWO), Some(THREE)] {
            alone(0, |link, _| {
                for rank in answered {
                    hears(link, *rank);
                    says(link, *rank, false);
                }
                let awaited = |to| {
                    let all = [ONE, TWO, THREE].into_iter();
                    let others = all.filter(|rank| answered.contains(rank));
                    others.filter(move |rank| Some(*rank) != to)
                };
                for rank in awaited(told) {
                    let told = link.mail().before_telling(told);
                    assert_eq!(told, Err(Refusal::Busy(rank)), "{answered:?}");
                    says(link, rank, true);
                }
                assert_eq!(
                    link.mail().before_telling(told),
                    Ok(()),
                    "{answered:?} {told:?}"
                );
                // The one that was told has its data: it is still heard of.
                let left: Vec<_> = told
                    .into_iter()
                    .filter(|to| answered.contains(to))
                    .collect();
                for rank in &left {
                    for other in awaited(told).map(Some).chain([None]) {
                        let told = link.mail().before_telling(other);
                        assert_eq!(told, Err(Refusal::Busy(*rank)), "{answered:?} {other:?}");
                    }
                    assert_eq!(link.mail().before_telling(told), Ok(()));
                    says(link, *rank, true);
                }
                assert_eq!(link.mail().before_telling(None), Ok(()));
                assert!(!link.mail().deferred.is_busy());
                // Nothing of it is left.
                for rank in answered {
                    hears(link, *rank);
                    says(link, *rank, false);
                    assert_eq!(link.mail().before_telling(Some(*rank)), Ok(()));
                    let all = link.mail().before_telling(None);
                    assert_eq!(all, Err(Refusal::Busy(*rank)));
                    says(link, *rank, true);
                    assert_eq!(link.mail().before_telling(None), Ok(()));
                }
            });
        }
    }
}

/// An answer leaves before what is kept is placed only if all of that is of the rank that it is
/// for; and not before the data of others that have answered.
#[test]
fn an_answer_leaves_first_if_it_is_for_the_only_producer() {
    for of in [&[1][..], &[2], &[1, 2], &[2, 1], &[1, 3], &[3, 1]] {
        for heard in [None, Some(ONE), Some(TWO)] {
            alone(0, |link, start| {
                for ring in of {
                    link.mail()
                        .keep(*ring, start + 64 * *ring as usize, &[5; 8], false);
                }
                if let Some(rank) = heard {
                    hears(link, rank);
                    says(link, rank, false);
                }
                if let Some(rank) = heard.filter(|rank| *rank != ONE) {
                    assert_eq!(link.mail().may_send(ONE), Err(Refusal::Busy(rank)));
                    says(link, rank, true);
                }
                let first = link.mail().may_send(ONE);
                let expected = *of == [1];
                // An entry that does not leave first finds nothing kept, once it may leave.
                if heard != Some(TWO) || expected {
                    assert_eq!(first, Ok(expected), "{of:?} {heard:?}");
                }
                assert_eq!(
                    link.mail().deferred.rings() != 0,
                    expected,
                    "{of:?} {heard:?}"
                );
            });
        }
    }
}

/// The number of the last session is followed by the first, for a rank that is reset there.
#[test]
fn sessions_go_round() {
    for (session, next) in [(1, 2), (u32::MAX - 1, u32::MAX), (u32::MAX, 1)] {
        let [session, next] = [session, next].map(Session::new);
        let chip = Config {
            cores: 1,
            ..Config::default()
        };
        let report = Sim::new(chip).run(|core| {
            let begun = session.expect("no session is 0");
            let link = Mapped::start(core.clone(), begun).expect("there is room");
            assert_eq!(session.map(Session::next), next);
            assert_eq!(Some(Memory::next_session(&core)), next);
            drop(link);
            Ok::<_, &str>(())
        });
        report.assert_done();
    }
}
