//! The last line of a report, given back to the command.

use std::process::Command;

use flagpost_sim::Config;
use serde_json::json;

/// Settings that were run, and how often.
fn explored(line: &str) -> Vec<(String, u64)> {
    let output = Command::new(env!("CARGO_BIN_EXE_flagpost-explore"))
        .args([
            "explore",
            "--case",
            "world.restart",
            "--cores",
            "1",
            "--profile",
            "scc",
        ])
        .args(["--schedules", "3000", "--json"])
        .env("FLAGPOST_SIM_REPLAY", line)
        .output()
        .expect("runs");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    let results = text.lines().map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let result = line["is"] == "result";
        result.then(|| {
            (
                line["setting"].to_string(),
                line["schedules"].as_u64().expect("a number"),
            )
        })
    });
    results.flatten().collect()
}

#[test]
fn a_line_is_one_run_of_the_setting_that_it_names() {
    let config = Config {
        cores: 1,
        ..Config::default()
    };
    let setting = "world.restart/1/scc";
    let named = explored(&json!({"case": setting, "config": config}).to_string());
    assert_eq!(named, [(format!("\"{setting}\""), 1)]);
    let other = explored(&json!({"case": "pscw.ring/3/scc", "config": config}).to_string());
    assert_eq!(other, [(format!("\"{setting}\""), 0)]);
}

/// A trace of other code: what ran then, and what runs now.
#[test]
fn a_trace_of_other_code_says_so() {
    let config = Config {
        cores: 1,
        ..Config::default()
    };
    let trace = json!({
        "case": "world.restart", "cores": 1, "chip": "scc", "hash": "0", "code": "0123abc\n",
        "config": config,
    });
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("other.json");
    std::fs::write(&file, trace.to_string()).expect("written");
    let output = Command::new(env!("CARGO_BIN_EXE_flagpost-explore"))
        .arg("replay")
        .arg(&file)
        .env("FLAGPOST_CODE", "4567def-dirty")
        .output()
        .expect("runs");
    let text = String::from_utf8(output.stdout).expect("text");
    let last = text.lines().last().expect("a line");
    assert_eq!(
        last, r#"the trace is of "0123abc\n", this is "4567def-dirty""#,
        "{text}"
    );
}
