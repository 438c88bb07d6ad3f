//! Points that survive, and killers that lapse: what a sweep says of them, and counts.

use super::*;

fn heard(lines: &[Value]) -> Sweep {
    let mut sweep = Sweep {
        ended_well: true,
        ..Sweep::default()
    };
    for line in lines {
        sweep.hear(&Console::new(), line.clone()).unwrap();
    }
    sweep
}

fn kill(point: &str, replay: &str, how: &str) -> Value {
    json!({"is": "result", "point": point, "killed": true, "schedules": 1, "how": how, "replay": replay})
}

fn survives(point: &str) -> Value {
    json!({"is": "result", "point": point, "killed": false, "schedules": 9})
}

#[test]
fn a_killer_that_kills_no_longer_or_in_another_way_is_told() {
    let killer = |replay: &str| Killer {
        replay: replay.to_owned(),
        how: "panic".to_owned(),
    };
    let recorded = killer("case/2/scc:0");
    let plan = Plan {
        points: vec!["a", "b", "c", "d", "e"],
        killers: ["a", "b", "d", "e"].map(|point| (point, &recorded)).into(),
        equivalent: &[],
        arguments: &Arguments::default(),
    };
    let sweep = heard(&[
        json!({"is": "lapsed", "point": "a", "why": "it passes"}),
        json!({"is": "lapsed", "point": "e", "why": "it passes"}),
        kill("b", "case/2/scc:0", "deadlock"),
        kill("a", "other/3/weak:7", "panic"),
        kill("c", "third/2/scc:1", "panic"),
        kill("d", "case/2/scc:0", "panic"),
        survives("e"),
    ]);
    assert_eq!(
        sweep.news(&plan, "record"),
        [
            "killer of b: recorded case/2/scc:0 (panic), found case/2/scc:0 (deadlock); record",
            "killer of a: recorded case/2/scc:0 (panic), found other/3/weak:7 (panic); it passes; record",
            "killer of c: recorded none, found third/2/scc:1 (panic); record",
            "killer of e: recorded case/2/scc:0 (panic), found none; it passes; record",
        ]
    );
    let found: Killers = sweep.rows.iter().filter_map(Row::killer).collect();
    assert_eq!(found["a"], killer("other/3/weak:7"));
    assert!(!found.contains_key("e"));
}

/// A point that survives, one that is argued to and does not, a sweep that stopped, and none.
#[test]
fn each_trouble_of_a_sweep_fails_the_command_and_names_the_point() {
    let all = ["a", "b", "c"].map(|point| kill(point, "case/2/scc:0", "panic"));
    let one_survives = [all[0].clone(), survives("b"), all[2].clone()];
    for (lines, ended_well, argued, expected, named) in [
        (&all[..], true, None, (3, 0), None),
        (
            &one_survives,
            true,
            None,
            (2, 1),
            Some("b: nothing notices"),
        ),
        (&one_survives, true, Some("b"), (3, 0), None),
        (&all, true, Some("c"), (2, 1), Some("c: docs/equivalent-")),
        (&all, false, None, (2, 1), None),
        (&[], true, None, (2, 1), None),
    ] {
        let console = Console::new();
        let sweep = Sweep {
            ended_well,
            ..heard(lines)
        };
        let plan = Plan {
            points: vec!["a", "b", "c"],
            killers: BTreeMap::new(),
            equivalent: &argued.map(str::to_owned).into_iter().collect::<Vec<_>>(),
            arguments: &Arguments::default(),
        };
        let count = sweep.count(&console, &plan);
        assert_eq!((count.passed, count.failed), expected, "{named:?}");
        let told = console.failed();
        assert_eq!(told.len(), named.iter().len(), "{told:?}");
        let begins = |(told, named): (&String, &str)| told.starts_with(named);
        assert!(told.iter().zip(named).all(begins), "{told:?}");
    }
}
