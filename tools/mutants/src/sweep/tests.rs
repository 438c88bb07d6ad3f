//! Points that survive, and killers that lapse: what a sweep says of them, and counts.

use super::*;

fn sources() -> Sources {
    Sources {
        names: ["a", "b", "c"].map(str::to_owned).to_vec(),
        equivalent: BTreeSet::new(),
        errors: 0,
    }
}

fn heard(lines: &[Value]) -> Sweep {
    let console = Console::new();
    let mut sweep = Sweep::default();
    for line in lines {
        sweep.hear(&console, line.clone()).unwrap();
    }
    sweep
}

fn kill(point: &str, replay: &str, how: &str) -> Value {
    json!({"is": "result", "point": point, "killed": true, "schedules": 1, "how": how, "replay": replay})
}

fn recorded<'a>(points: &[&'a str], killer: &'a Killer) -> Plan<'a> {
    Plan {
        points: vec!["a", "b", "c"],
        killers: points.iter().map(|point| (*point, killer)).collect(),
        schedules: 1,
    }
}

#[test]
fn what_kills_as_recorded_is_no_news() {
    let killer = Killer::parse("case/2/scc:0", "panic").unwrap();
    let sweep = heard(&[kill("a", "case/2/scc:0", "panic")]);
    let news = sweep.news(&recorded(&["a"], &killer), "; record");
    assert_eq!(news, [""; 0]);
    assert_eq!(sweep.wrong(&sources()), 0);
}

#[test]
fn a_killer_that_kills_no_longer_is_told_and_replaced() {
    let killer = Killer::parse("case/2/scc:0", "panic").unwrap();
    let sweep = heard(&[
        json!({"is": "lapsed", "point": "a", "why": "case/2/scc:0 passes"}),
        kill("b", "case/2/scc:0", "deadlock"),
        kill("a", "other/3/weak:7", "panic"),
        kill("c", "third/2/scc:1", "panic"),
    ]);
    let plan = recorded(&["a", "b"], &killer);
    assert_eq!(
        sweep.news(&plan, "; record"),
        [
            "killer of b kills by deadlock now, not by panic; record",
            "killer of a no longer kills (case/2/scc:0 passes): found another, other/3/weak:7; record",
            "no killer of c is recorded: found third/2/scc:1; record",
        ]
    );
    assert_eq!(sweep.wrong(&sources()), 0);
    let mut killers = Killers::default();
    for point in ["a", "gone"] {
        killers.0.insert(point.to_owned(), killer.clone());
    }
    assert_eq!(sources().gone(&killers).collect::<Vec<_>>(), ["gone"]);
    assert_eq!(killers.update(&["gone".to_owned()], sweep.killers()), 4);
    let now: Vec<String> = killers.0.values().map(Killer::replay).collect();
    assert_eq!(now, ["other/3/weak:7", "case/2/scc:0", "third/2/scc:1"]);
}

#[test]
fn a_point_that_nothing_kills_any_more_fails_the_command() {
    let killer = Killer::parse("case/2/scc:0", "panic").unwrap();
    let sweep = heard(&[
        json!({"is": "lapsed", "point": "a", "why": "case/2/scc:0 passes"}),
        json!({"is": "result", "point": "a", "killed": false, "schedules": 9}),
    ]);
    let news = sweep.news(&recorded(&["a"], &killer), "; record");
    let told = "killer of a no longer kills (case/2/scc:0 passes): found no other";
    assert_eq!(news, [told]);
    assert_eq!(sweep.wrong(&sources()), 1);
}

/// A point that survives, one that is argued to and does not, a sweep that stopped, and none.
#[test]
fn each_trouble_of_a_sweep_fails_the_command_and_names_the_point() {
    let survives = json!({"is": "result", "point": "b", "killed": false, "schedules": 9});
    let killed = |points: &[&str]| -> Vec<Value> {
        let kill = |point: &&str| kill(point, "case/2/scc:0", "panic");
        points.iter().map(kill).collect()
    };
    let one_survives = [killed(&["a", "c"]), vec![survives]].concat();
    let all = killed(&["a", "b", "c"]);
    for (lines, ended_well, argued, expected, named) in [
        (&all, true, None, (3, 0), None),
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
        (&Vec::new(), true, None, (2, 1), None),
    ] {
        let console = Console::new();
        let sweep = Sweep {
            ended_well,
            ..heard(lines)
        };
        let sources = Sources {
            equivalent: argued.map(str::to_owned).into_iter().collect(),
            ..sources()
        };
        let count = sweep.count(&console, &sources, 3, true);
        assert_eq!((count.passed, count.failed), expected, "{named:?}");
        let told = console.failed();
        assert_eq!(told.len(), named.iter().len(), "{told:?}");
        let begins = |(told, named): (&String, &str)| told.starts_with(named);
        assert!(told.iter().zip(named).all(begins), "{told:?}");
    }
}
