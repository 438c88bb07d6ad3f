//! The table of `docs/costs.md` is what `bench ops` prints.

use flagpost_bench::ops;

const DOCUMENT: &str = include_str!("../../docs/costs.md");

/// The rows of the table, without its head: words.
fn documented() -> Vec<Vec<&'static str>> {
    let (_, table) = DOCUMENT.split_once("```text\n").expect("a table");
    let (table, _) = table.split_once("```").expect("its end");
    let rows = table.lines().skip(1);
    rows.map(|row| row.split_whitespace().collect()).collect()
}

#[test]
fn documented_costs_are_what_calls_cost() {
    let rows = documented();
    assert_eq!(rows.len(), ops::all().count());
    let mut wrong = Vec::new();
    for ((call, bytes), row) in ops::all().zip(rows) {
        let cost = ops::measure(call, bytes).unwrap_or_else(|report| panic!("{report}"));
        let figures = [
            cost.remote_reads,
            cost.remote_writes,
            cost.local_accesses,
            cost.locks,
            cost.misses,
            cost.cycles,
        ];
        let figures = figures.map(|figure| figure.to_string());
        let measured = [&[call.to_owned(), bytes.to_string()], &figures[..]].concat();
        if measured != row {
            wrong.push(format!("{measured:?}, not {row:?}"));
        }
    }
    let wrong = wrong.join("\n");
    assert!(
        wrong.is_empty(),
        "`cargo xtask bench ops --on sim` prints the table:\n{wrong}"
    );
}
