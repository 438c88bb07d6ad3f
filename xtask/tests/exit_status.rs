//! Exit status and sums of `cargo xtask`, told by a program that is not xtask itself.
//!
//! Cargo, the explorer and the cases on Linux are scripts here, which say and do what a test wants:
//! fail, crash, or say that all is well and mean otherwise.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A directory with the scripts that xtask takes for cargo and for what cargo has built.
struct Fake {
    directory: PathBuf,
}

/// How xtask ended: its status, and the last line that it printed.
#[derive(Debug, PartialEq, Eq)]
struct Ended {
    status: Option<i32>,
    last: String,
}

fn ended(status: i32, last: &str) -> Ended {
    Ended {
        status: Some(status),
        last: last.to_owned(),
    }
}

/// What `cargo test` prints of one program.
fn result(passed: u32, failed: u32) -> String {
    let word = if failed > 0 { "FAILED" } else { "ok" };
    format!(
        "echo 'test result: {word}. {passed} passed; {failed} failed; 0 ignored; 0 measured; \
         0 filtered out'"
    )
}

impl Fake {
    fn new(name: &str) -> Self {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(directory.join("debug")).expect("a directory for scripts");
        let fake = Self { directory };
        fake.cargo("exit 0");
        fake
    }

    fn script(&self, name: &str, text: &str) {
        let file = self.directory.join(name);
        fs::write(&file, format!("#!/bin/sh\n{text}\n")).expect("a script");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("a script that runs");
    }

    /// What `cargo` does.
    fn cargo(&self, text: &str) {
        self.script("cargo", text);
    }

    /// What each job of the cases on Linux does.
    fn cases(&self, text: &str) {
        self.script("debug/flagpost-linux-cases", text);
    }

    /// What each call of the explorer does.
    fn explorer(&self, text: &str) {
        self.script("debug/flagpost-explore", text);
    }

    fn run(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_xtask"))
            .args(arguments)
            .env("CARGO", self.directory.join("cargo"))
            .env("CARGO_TARGET_DIR", &self.directory)
            .output()
            .expect("xtask starts")
    }

    /// What xtask prints.
    fn output(&self, arguments: &[&str]) -> String {
        String::from_utf8_lossy(&self.run(arguments).stdout).into_owned()
    }

    fn xtask(&self, arguments: &[&str]) -> Ended {
        let output = self.run(arguments);
        let text = String::from_utf8_lossy(&output.stdout);
        let last = text.lines().last().unwrap_or_default().to_owned();
        Ended {
            status: output.status.code(),
            last,
        }
    }

    fn host(&self) -> Ended {
        self.xtask(&["test", "--part", "host"])
    }
}

#[test]
fn tests_that_pass_end_well() {
    let fake = Fake::new("pass");
    fake.cargo(&format!("{}; {}", result(3, 0), result(4, 0)));
    assert_eq!(fake.host(), ended(0, "7 passed, 0 failed"));
}

#[test]
fn tests_that_fail_end_badly_whatever_cargo_says() {
    let fake = Fake::new("fail");
    for end in ["exit 0", "exit 101", "kill -SEGV $$"] {
        fake.cargo(&format!("{}; {}; {end}", result(9, 0), result(0, 11)));
        assert_eq!(fake.host(), ended(1, "9 passed, 11 failed"), "{end}");
    }
}

/// A skip is no pass: the last line says what was left out, and why.
#[test]
fn what_tests_leave_out_is_told() {
    let fake = Fake::new("skips");
    let skip = "echo 'skipped: no Open MPI'; echo 'skipped: no mount'";
    fake.cargo(&format!(
        "{skip}; {}; {skip}; {}",
        result(3, 0),
        result(4, 0)
    ));
    let last = "7 passed, 0 failed, 4 left out: no Open MPI (2 times); no mount (2 times)";
    assert_eq!(fake.host(), ended(0, last));
}

/// What passes is not printed, and all that a program says in which a test fails.
#[test]
fn only_programs_that_fail_are_heard() {
    let fake = Fake::new("heard");
    let said = |one: u32| {
        let two = "echo 'test d::e ... FAILED'; echo why >&2";
        fake.cargo(&format!(
            "echo 'test a::b ... ok'; {}; {two}; {}",
            result(1, one),
            result(1, 1)
        ));
        let text = fake.output(&["test", "--part", "host"]);
        (
            text.contains("a::b ... ok"),
            text.contains("d::e ... FAILED\nwhy\n"),
        )
    };
    assert_eq!(said(0), (false, true));
    assert_eq!(said(1), (true, true));
}

/// A build that fails, or a test program that dies, prints no sums.
#[test]
fn a_cargo_that_fails_after_good_sums_counts_as_one_failure() {
    let fake = Fake::new("crash");
    for end in ["exit 101", "kill -SEGV $$", "kill -KILL $$"] {
        fake.cargo(&format!("{}; {end}", result(9, 0)));
        assert_eq!(fake.host(), ended(1, "9 passed, 1 failed"), "{end}");
        fake.cargo(end);
        assert_eq!(fake.host(), ended(1, "0 passed, 1 failed"), "{end}");
    }
}

/// Nothing was tested: that is no success.
#[test]
fn a_part_that_tests_nothing_has_failed() {
    let fake = Fake::new("nothing");
    assert_eq!(fake.host(), ended(1, "0 passed, 1 failed"));
    fake.cargo(&result(0, 0));
    assert_eq!(fake.host(), ended(1, "0 passed, 1 failed"));
    fake.cargo("exit 0");
    fake.explorer("exit 0");
    let explored = fake.xtask(&["test", "--part", "exploration"]);
    assert_eq!(explored, ended(1, "0 passed, 6 failed"), "six explorations");
    assert_eq!(fake.xtask(&["explore"]).status, Some(1));
}

#[test]
fn a_cargo_that_does_not_start_has_failed() {
    let fake = Fake::new("none");
    fs::remove_file(fake.directory.join("cargo")).expect("it was there");
    assert_eq!(fake.host(), ended(1, "0 passed, 1 failed"));
}

/// A part that errors counts, and the others still run.
#[test]
fn a_part_that_errors_counts_as_failed() {
    let fake = Fake::new("error");
    fake.cargo(&format!(
        "case $1 in test) {};; *) exit 1;; esac",
        result(3, 0)
    ));
    let both = fake.xtask(&["test", "--part", "host", "--part", "linux"]);
    assert_eq!(both, ended(1, "3 passed, 1 failed"));
}

const SUMS: &str = "echo '5 passed, 0 failed, 1 skipped'";

/// Four platforms at one size.
#[test]
fn jobs_on_linux_are_summed() {
    let fake = Fake::new("jobs");
    let linux = |text: &str| {
        fake.cases(text);
        fake.xtask(&["linux", "--ranks", "2"])
    };
    assert_eq!(linux(SUMS), ended(0, "20 passed, 0 failed, 4 skipped"));
    let failed = "echo '4 passed, 1 failed, 1 skipped'";
    assert_eq!(
        linux(failed),
        ended(1, "16 passed, 4 failed, 4 skipped"),
        "exit 0"
    );
    assert_eq!(
        linux(&format!("{failed}; exit 1")),
        ended(1, "16 passed, 4 failed, 4 skipped")
    );
}

#[test]
fn a_job_on_linux_that_crashes_has_failed() {
    let fake = Fake::new("dead-job");
    let one = |text: &str| {
        fake.cases(text);
        fake.xtask(&["linux", "--ranks", "2", "--platform", "coherent"])
    };
    assert_eq!(
        one(&format!("{SUMS}; kill -SEGV $$")),
        ended(1, "5 passed, 1 failed, 1 skipped")
    );
    assert_eq!(
        one(&format!("{SUMS}; exit 3")),
        ended(1, "5 passed, 1 failed, 1 skipped")
    );
    assert_eq!(one("kill -SEGV $$"), ended(1, "0 passed, 1 failed"));
    assert_eq!(one("exit 0"), ended(1, "0 passed, 1 failed"), "no sums");
    fs::remove_file(fake.directory.join("debug/flagpost-linux-cases")).expect("it was there");
    let missing = fake.xtask(&["linux", "--ranks", "2"]);
    assert_eq!(missing.status, Some(1));
    let parts = fake.xtask(&["test", "--part", "linux"]);
    assert_eq!(parts, ended(1, "0 passed, 1 failed"));
}

const SETTING: &str = r#"echo '{"is":"result","setting":"a","schedules":1,"steps":1,"seconds":0}'"#;

#[test]
fn an_exploration_that_fails_or_crashes_has_failed() {
    let fake = Fake::new("explore");
    let tests = |text: &str| {
        fake.explorer(text);
        fake.xtask(&["test", "--part", "exploration"])
    };
    assert_eq!(tests(SETTING), ended(0, "6 passed, 0 failed"));
    assert_eq!(
        tests(&format!("{SETTING}; exit 1")),
        ended(1, "6 passed, 6 failed")
    );
    assert_eq!(
        tests(&format!("{SETTING}; kill -SEGV $$")),
        ended(1, "6 passed, 6 failed")
    );
    assert_eq!(tests("kill -SEGV $$"), ended(1, "0 passed, 6 failed"));
    // Not JSON: the part errors.
    assert_eq!(tests("echo panicked"), ended(1, "0 passed, 1 failed"));
    let failure = r#"echo '{"is":"failure","setting":"a","account":"","trace":{}}'"#;
    assert_eq!(
        tests(&format!("{SETTING}; {failure}")),
        ended(1, "6 passed, 6 failed"),
        "exit 0"
    );
    fake.explorer(SETTING);
    fs::create_dir_all(fake.directory.join("explore/explore")).expect("a directory");
    fake.script("explore/explore/flagpost-explore", SETTING);
    assert_eq!(fake.xtask(&["explore"]).status, Some(0));
    for bad in [
        format!("{SETTING}; exit 1"),
        format!("{SETTING}; {failure}"),
    ] {
        fake.script("explore/explore/flagpost-explore", &bad);
        assert_eq!(fake.xtask(&["explore"]).status, Some(1), "{bad}");
    }
}

#[test]
fn steps_of_ci_that_fail_or_error_count() {
    let fake = Fake::new("ci");
    let step = |name: &str| fake.xtask(&["ci", "--only", name]);
    assert_eq!(step("format"), ended(0, "1 passed, 0 failed"));
    for bad in ["exit 1", "kill -SEGV $$"] {
        fake.cargo(bad);
        assert_eq!(step("format"), ended(1, "0 passed, 1 failed"), "{bad}");
        assert_eq!(
            step("dependencies"),
            ended(1, "0 passed, 1 failed"),
            "{bad}: an error"
        );
        let both = step("clippy");
        assert_eq!(
            both,
            ended(1, "0 passed, 3 failed"),
            "{bad}: the others still run"
        );
    }
    assert_eq!(step("no such step").status, Some(2));
}

#[test]
fn benchmarks_hand_their_status_on() {
    let fake = Fake::new("bench");
    fs::create_dir_all(fake.directory.join("explore")).expect("a directory");
    for (script, status) in [
        ("exit 0", 0),
        ("exit 1", 1),
        ("exit 2", 2),
        ("kill -SEGV $$", 1),
    ] {
        fake.script("explore/flagpost-bench", script);
        assert_eq!(
            fake.xtask(&["bench", "ops"]).status,
            Some(status),
            "{script}"
        );
    }
    fake.cargo("exit 101");
    assert_eq!(
        fake.xtask(&["bench", "ops"]).status,
        Some(1),
        "it does not build"
    );
}

/// A run beside a saved one, which both print objects.
#[test]
fn a_benchmark_that_is_slower_than_a_saved_one_fails() {
    let fake = Fake::new("compare");
    fs::create_dir_all(fake.directory.join("explore")).expect("a directory");
    let saved = fake.directory.join("saved");
    let two = [r#"{"case":"a","cycles":100}"#, r#"{"case":"b","cycles":7}"#];
    fs::write(&saved, two.join("\n")).expect("a saved run");
    let slower = r#"{"case":"a","cycles":111}"#;
    for (objects, end, status) in [
        (&two[..], 0, 0),
        (&[two[0], two[1], slower], 0, 1), // two objects of a name
        (&[slower, two[1]], 0, 1),
        (&two[..1], 0, 1), // a saved object without a match
        (&[], 0, 1),
        (&two, 1, 1),
    ] {
        let lines = objects.iter().map(|object| format!("echo '{object}'; "));
        let script = format!("{} exit {end}", lines.collect::<String>());
        fake.script("explore/flagpost-bench", &script);
        let file = saved.to_str().expect("a name");
        let status_now = fake.run(&["bench", "ops", "--compare", file]).status;
        assert_eq!(status_now.code(), Some(status), "{script}");
    }
}
