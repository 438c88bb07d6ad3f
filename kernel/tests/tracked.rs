//! Each public call notes its caller, for accounts that name the program's line: read from the
//! sources.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test, not the kernel"
)]

/// Each public call that may access memory says where it was called. Those that return immediately
/// what the rank knows by itself need not.
#[test]
fn every_public_call_says_where_it_was_called() {
    const KNOWN: [&str; 8] = [
        "bytes_of",
        "event",
        "group",
        "len_of",
        "num_notify",
        "peer",
        "unit_of",
        "new", // a grid
    ];
    let kernel = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
    let mut directories = vec![std::path::PathBuf::from(kernel)];
    let (mut calls, mut silent) = (0, vec![]);
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let public = |start: &str| {
                let of_trait = path.ends_with("rma/mod.rs") && start.starts_with("    fn ");
                of_trait || start.trim_start().starts_with("pub fn ")
            };
            let lines: Vec<_> = text.lines().collect();
            for (number, start) in lines.iter().enumerate().filter(|(_, line)| public(line)) {
                let length = lines[number..].iter().position(|line| line.ends_with('{'));
                let Some(length) = length else { continue };
                let head = lines[number..=number + length].join(" ");
                let result = head.split_once("->").map_or("", |(_, result)| result);
                let fails = ["Result<", "Made<", "Fenced<", "Locked<", "Posted<"];
                let name = start.split("fn ").nth(1).unwrap();
                let name = name.split(['(', '<']).next().unwrap();
                if !fails.iter().any(|kind| result.contains(kind)) || KNOWN.contains(&name) {
                    continue;
                }
                calls += 1;
                let tracked = lines[..number]
                    .iter()
                    .rev()
                    .take_while(|line| line.trim_start().starts_with("#["))
                    .any(|line| line.contains("track_caller"));
                let body = lines[number + length + 1..].iter().take(3);
                // `test` of a handle is a wait with a budget of 0.
                let tells = [
                    "called!(",
                    "looks!(",
                    "called(",
                    ".wait_within(Budget::ZERO)",
                    "run_on(",
                ];
                let told = { body.clone() }.any(|line| tells.iter().any(|t| line.contains(t)));
                // A call with a fast path notes its place where that declines, or lets another call
                // do so.
                let tries = body.clone().any(|line| line.contains("tries!("));
                let mut rest = { lines[number..].iter() }.take_while(|line| **line != "    }");
                let notes = [
                    "note_place()",
                    "noted(",
                    "Caller::place()",
                    ".wait()",
                    ".wait_for(",
                ];
                let told = told || tries && rest.any(|line| notes.iter().any(|n| line.contains(n)));
                if !tracked || !told {
                    silent.push(format!("{}:{}: {name}", path.display(), number + 1));
                }
            }
        }
    }
    assert!(calls > 100, "only {calls} public calls were found");
    assert!(silent.is_empty(), "{silent:#?}");
}
