//! The three strategies and the three classes in simulated time, by the formulas only: what
//! `docs/log/pscw.md` states.

use flagpost_bench::pscw::{Class, Measured, Setup, Strategy, measure};

fn run(setup: Setup) -> Measured {
    let setup = Setup {
        epochs: 101,
        ..setup
    };
    measure(&setup).unwrap_or_else(|report| panic!("{report}"))
}

/// Nanoseconds of the origin's start and complete.
fn origin(strategy: Strategy, targets: u16, cores: u16) -> u64 {
    let setup = Setup {
        strategy,
        cores: Some(cores),
        ..Setup::new(targets)
    };
    run(setup).origin().nanoseconds()
}

/// The published figure's number of targets, with the posts as they come, and with all of them
/// there.
#[test]
fn slots_take_less_than_a_quarter_of_the_time_of_match_vectors() {
    for lead in [0, 20_000] {
        let time = |strategy| {
            let setup = Setup {
                strategy,
                lead,
                ..Setup::new(13)
            };
            run(setup).origin().nanoseconds()
        };
        let (slots, vector) = (time(Strategy::EpochSlots), time(Strategy::MatchVector));
        assert!(4 * slots < vector, "{slots} {vector}");
        let list = time(Strategy::MatchingList);
        assert!(list < vector, "{list} {vector}");
    }
}

/// On the whole chip.
#[test]
fn slots_are_four_times_faster() {
    for targets in [1, 2, 6, 13, 24, 47] {
        let time = |strategy| origin(strategy, targets, 48);
        let (slots, vector) = (time(Strategy::EpochSlots), time(Strategy::MatchVector));
        // One target and its origin keep step, in one of three phases: see `docs/results.md`.
        let least = if targets == 1 { 3 } else { 4 };
        assert!(least * slots < vector, "{targets}: {slots} {vector}");
    }
}

/// Six neighbours cost what they cost, however many ranks there are: but for how attempts at locks
/// happen to meet, which a start-up of another length changes. Turns of a wait have other lengths,
/// too: notifications are looked for by bells, in a shared ring nearby, or in one in memory. Worlds
/// that look in the same place are compared with each other.
#[test]
fn six_neighbours_are_flat() {
    use Strategy::{EpochSlots, MatchVector, MatchingList};
    let worlds = [[24, 48], [96, 512], [768, 1024]];
    for (strategy, alike, all) in [
        (EpochSlots, 1, 1),
        (MatchVector, 1, 9),
        (MatchingList, 4, 8),
    ] {
        let times = worlds.map(|pair| pair.map(|cores| origin(strategy, 6, cores)));
        println!("{strategy:?}: {times:?}");
        let is_flat = |times: &[u64], percent| {
            let (least, most) = (times.iter().min(), times.iter().max());
            let (&least, &most) = (least.unwrap(), most.unwrap());
            (most - least) * 100 < least * percent
        };
        for pair in times {
            assert!(is_flat(&pair, alike), "{strategy:?}: {pair:?}");
        }
        let [[_, chip], [_, near], [_, far]] = times;
        assert!(is_flat(&[chip, near, far], all), "{strategy:?}: {times:?}");
    }
}

/// Late posts, and work before each put: whoever waits for all posts first works only then. Noting
/// puts gains nothing where the core itself makes them.
#[test]
fn waiting_for_all_posts_first_costs_the_overlap() {
    let time = |class| {
        let setup = Setup {
            strategy: Strategy::EpochSlots,
            class,
            words: 4,
            work: 1000,
            skew: 1000,
            ..Setup::new(13)
        };
        run(setup).origin().nanoseconds()
    };
    let [trigger_only, immediate, deferred] =
        [Class::TriggerOnly, Class::Immediate, Class::Deferred].map(time);
    // A turn of a wait may end some cycles later: a thousandth.
    assert!(
        trigger_only * 1_000 <= deferred * 1_001,
        "{trigger_only} {deferred}"
    );
    assert!(3 * deferred < 2 * immediate, "{deferred} {immediate}");
}
