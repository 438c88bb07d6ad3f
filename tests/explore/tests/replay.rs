//! The last line of a report, given back to the command.

use std::process::Command;

use flagpost_sim::Config;

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
        .args(["--schedules", "3000"])
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
    let named = explored(&format!("case={setting} {config}"));
    assert_eq!(named, [(format!("\"{setting}\""), 1)]);
    let other = explored(&format!("case=pscw.ring/3/scc {config}"));
    assert_eq!(other, [(format!("\"{setting}\""), 0)]);
}
