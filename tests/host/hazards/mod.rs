//! The hazards of machines without coherence, one by one: each is shown to fail without its remedy
//! and to be harmless with it, by trying everything within small bounds.
//!
//! # What is claimed of a hazard ([`Hazard`](bench::Hazard))
//! On its profiles, and for all numbers of evictions, prefetches and so on up to its own bounds:
//! 1. With the remedy no schedule fails, and no oracle objects.
//! 2. Without it and without oracles, exactly its consequences show where they are said to show:
//!    old data, lost puts, deadlocks. Elsewhere (no eviction, no prefetch, no weak memory) leaving
//!    the remedy out is equivalent: no schedule fails.
//! 3. Without it and with oracles, its oracle sees it, if it is one that an oracle can see, and
//!    exactly where it is said to; where the consequence takes an eviction, the oracle needs none.
//! 4. Explicit states and sleep sets find the same verdicts and the same outcomes, where the latter
//!    end.
//!
//! `cargo test -p flagpost-tests --test host hazards:: -- --nocapture` prints the table.
#![allow(unreachable_pub, reason = "a test's modules have no outside")]

mod bench;
mod budgets;
mod caches;
mod late;
mod mortal;
mod profiles;
mod resets;
mod stops;
mod tagged;
mod words;

use std::time::Instant;

use bench::Hazard;
use flagpost_sim::Profile;
use stops::Bound;

use crate::groups;

/// Shows all hazards of a table, and prints what it took.
fn show<const LINE: usize>(hazards: &[Hazard<LINE>]) {
    show_every(1, hazards);
}

/// Shows one in `step` of the hazards of a table, and prints what it took.
fn show_every<const LINE: usize>(step: usize, hazards: &[Hazard<LINE>]) {
    for hazard in hazards.iter().step_by(step) {
        let started = Instant::now();
        let effort = hazard.show();
        println!(
            "{}: {}\n    shows on: {}\n    tried: cores={} {}; {effort}, {:.1?}",
            hazard.name,
            hazard.consequences.join(" or "),
            hazard.needs(),
            hazard.cores,
            hazard.most,
            started.elapsed(),
        );
    }
}

/// In a quick run every second.
#[test]
fn caches() {
    show_every(groups::step(2), caches::ALL);
}

/// In a quick run without the first, which takes longest.
#[test]
fn words() {
    show(&words::ALL[groups::step(2) - 1..]);
}

#[test]
fn tagged() {
    show(tagged::ALL);
}

#[test]
fn profiles() {
    show(profiles::ALL);
}

/// In a quick run every third.
#[test]
fn budgets() {
    show_every(groups::step(3), budgets::ALL);
}

/// In a quick run every fourth.
#[test]
fn late_calls() {
    show_every(groups::step(4), late::ALL);
}

#[test]
#[ignore = "takes minutes: cargo xtask test --deep"]
fn late_calls_that_take_long() {
    show(late::LONG);
}

/// In a quick run five, with one preemption at the most. Of two ranks: one that is notified, one
/// that locks, one of collectives. Of three: collectives and a broadcast.
#[test]
fn stopped_peers() {
    let bound = if groups::is_deep() {
        Bound::Table
    } else {
        Bound::One
    };
    let (skipped, step) = if groups::is_deep() { (0, 1) } else { (3, 9) };
    for stop in stops::ALL.iter().skip(skipped).step_by(step) {
        show_stop(stop, bound);
    }
}

#[test]
#[ignore = "takes minutes: cargo xtask test --deep"]
fn stopped_peers_that_take_long() {
    let long = |stop: &&stops::Stop| stops::LONG.iter().any(|name| stop.name.starts_with(name));
    for stop in stops::ALL.iter().filter(long) {
        show_stop(stop, Bound::None);
    }
}

fn show_stop(stop: &stops::Stop, bound: Bound) {
    let started = Instant::now();
    let account = stop.show(bound);
    let on = |profile: &Profile| match stop.bound(*profile, bound) {
        Some(most) => format!("{profile} (at most {most} preemptions)"),
        None => format!("{profile} (every schedule)"),
    };
    let profiles: Vec<String> = stop.profiles.iter().map(on).collect();
    println!(
        "{}\n    tried: cores={} on {}; {account}, {:.1?}",
        stop.name,
        stop.cores,
        profiles.join(", "),
        started.elapsed()
    );
}

/// The list has 14 hazards. The numbers are those of a list of 22, of which mutation points have
/// replaced the others.
#[test]
fn none_is_left_out() {
    let tables = [
        caches::ALL,
        words::ALL,
        profiles::ALL,
        budgets::ALL,
        late::ALL,
    ];
    let names = tables
        .iter()
        .flat_map(|table| table.iter().map(|hazard| hazard.name));
    let names = names.chain(stops::ALL.iter().map(|stop| stop.name));
    let number = |name: &str| -> Option<u32> {
        let (number, _) = name.split_once(' ')?;
        number.trim_end_matches(char::is_alphabetic).parse().ok()
    };
    let mut numbers: Vec<Option<u32>> = names.map(number).collect();
    numbers.dedup();
    let kept = (1..=6).chain([10, 11, 12, 15]).chain(18..=22);
    assert_eq!(numbers, kept.map(Some).collect::<Vec<_>>());
}
