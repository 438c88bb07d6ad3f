//! Turns are repeated by their seed, ends are judged, and a broken rule fails its turn.

use super::*;

fn plan(seed: u64) -> Plan {
    Plan {
        examples: EXAMPLES.to_vec(),
        providers: PROVIDERS.map(str::to_owned).to_vec(),
        ranks: None,
        seed,
        number: 0,
    }
}

#[test]
fn a_seed_repeats_its_turns_and_all_is_drawn() {
    let words = |seed, number| {
        let turn = plan(seed).turn(number);
        format!(
            "{:?} {} {} {:?}",
            turn.kind, turn.rank, turn.moment, turn.pause
        )
    };
    assert_eq!(words(1, 7), words(1, 7));
    assert!(words(1, 7) != words(2, 7) && words(1, 7) != words(1, 8));
    let turns: Vec<Turn> = (0..300).map(|number| plan(1).turn(number)).collect();
    for example in EXAMPLES {
        for ranks in 2..=example.1 {
            let is = |turn: &&Turn| turn.kind.example == example && turn.kind.ranks == ranks;
            assert!(turns.iter().any(|turn| is(&turn)), "{example:?} {ranks}");
        }
    }
    assert!(turns.iter().all(|turn| turn.rank < turn.kind.ranks));
    let paused = turns.iter().filter(|turn| turn.pause.is_some()).count();
    assert!((50..100).contains(&paused), "{paused}");
    let late = turns.iter().filter(|turn| turn.moment > 0.5).count();
    assert!((120..180).contains(&late), "{late}");
}

#[test]
fn a_broken_rule_fails_its_turn_and_is_told() {
    for end in ENDS {
        let console = Console::new();
        let plan = plan(1);
        let why = Some("why".to_owned());
        let count = plan.tell(&console, 7, &plan.turn(7), (end, why));
        let told = console.failed();
        if matches!(end, BROKEN | ERROR) {
            assert_eq!((count.passed, count.failed), (0, 1), "{end:?}");
            assert!(told[0].starts_with("turn 7 of seed 1: "), "{told:?}");
            assert!(told[0].ends_with(": why"), "{told:?}");
        } else {
            assert_eq!((count.passed, count.failed), (1, 0), "{end:?}");
            assert!(told.is_empty(), "{told:?}");
        }
    }
}

/// Each rule is broken by something.
#[test]
fn ends_are_judged() {
    let undisturbed = Ended {
        out: "a\nb\n".to_owned(),
        ..Ended::default()
    };
    let killed = "flagpost-run: rank 1 (process 7) was ended by signal 9 (SIGKILL)\n";
    let lost = "core 0: rank 1 does not answer any more\nflagpost-run: rank 0 (process 6) ended with status 1\n";
    let counted = "flagpost-run: after that rank 0 ended with status 1\n";
    let meeting = "error: rank 1 is lost\nflagpost-run: rank 0 (process 6) ended with status 2\n";
    let by_us =
        "flagpost-run: rank 0 (process 6) was ended by signal 9 (SIGKILL), by flagpost-run\n";
    let crash = "flagpost-run: rank 0 (process 6) was ended by signal 11 (SIGSEGV)\n";
    let inside = "\nhalo:6 terminated with signal 11 at PC=1 SP=2.  Backtrace:\n\
                  /lib/libfabric.so.1(+0xb83f9)[0x1]\n/bin/halo(+0x2)[0x3]\n";
    let outside = inside.replace("libfabric.so.1", "libc.so.6");
    let ended = |code, printed: &str, err: &str, struck| Ended {
        code,
        out: printed.to_owned(),
        err: err.to_owned(),
        struck,
        ..Ended::default()
    };
    let well = |struck| ended(Some(0), "b\na\n", "", struck);
    let ends = |err: &str| ended(Some(137), "b\n", &format!("{killed}{err}"), true);
    let kill = None;
    let stop = Some(Duration::from_millis(1));
    for (mut ended, pause, expected) in [
        (well(false), kill, BEFORE),
        (well(false), stop, BEFORE),
        (well(true), stop, PAUSED),
        (well(true), kill, BROKEN),
        (ends(lost), kill, PEER_LOST),
        (ends(counted), kill, PEER_LOST),
        (ends(meeting), kill, WHILE_MEETING),
        (ends(""), kill, OTHERS_WELL),
        (ends("core 0: timed out\n"), kill, ERROR),
        (ends(crash), kill, BROKEN),
        (ends(inside), kill, CRASH),
        (ends(&outside), kill, BROKEN),
        (ends(&format!("{inside}{crash}")), kill, BROKEN),
        (ends(by_us), kill, BROKEN),
        (ends("thread 'main' panicked\n"), kill, BROKEN),
        (ends(lost), stop, BROKEN),
        (ended(Some(1), "", lost, true), kill, BROKEN),
        (ended(Some(137), "", killed, false), kill, BROKEN),
        (ended(Some(137), "c\n", killed, true), kill, BROKEN),
        (ended(Some(137), "b\nb\n", killed, true), kill, BROKEN),
        (ended(Some(0), "b\n", "", false), kill, BROKEN),
    ] {
        let mut turn = plan(1).turn(0);
        (turn.rank, turn.pause) = (1, pause);
        turn.kind.provider = "tcp".to_owned();
        let end = judge(&undisturbed, &turn, &ended);
        assert_eq!(end.0, expected, "{ended:?}: {end:?}");
        if expected == CRASH {
            turn.kind.provider = "shm".to_owned();
            assert_eq!(judge(&undisturbed, &turn, &ended).0, BROKEN);
        }
        ended.left.push("a process".to_owned());
        assert_eq!(judge(&undisturbed, &turn, &ended).0, BROKEN);
        ended.left.clear();
        ended.hung = true;
        assert_eq!(judge(&undisturbed, &turn, &ended).0, BROKEN);
    }
}
