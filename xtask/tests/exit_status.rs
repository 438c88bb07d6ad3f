//! Exit status and sums of `cargo xtask`, told by a program that is not xtask itself.
//!
//! Cargo, and a program that cargo has built, are scripts here, which say and do what a test wants:
//! fail, crash, or say that all is well and mean otherwise.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What scripts can say: sums of a test program and of a job on Linux; a crash.
const WORDS: &str = r#"#!/bin/sh
sums() { echo "test result: any. $1 passed; $2 failed; 0 ignored; 0 measured; 0 filtered out"; }
job() { echo "$1 passed, $2 failed, 1 skipped"; }
built() { [ "$2" = --no-run ] && exit 0; }
crash() { kill -SEGV $$; }
"#;

const CARGO: &str = "cargo";
/// Each job of the cases on Linux.
const JOBS: &str = "debug/flagpost-linux-cases";
/// The explorer of the tests, and of `cargo xtask explore`.
const EXPLORER: &str = "debug/flagpost-explore";
const FAST_EXPLORER: &str = "explore/explore/flagpost-explore";
const BENCH: &str = "explore/flagpost-bench";

/// A directory with the scripts that xtask takes for cargo and for what cargo has built.
struct Fake {
    directory: PathBuf,
}

impl Fake {
    /// Cargo does nothing, and does it well.
    fn new(name: &str) -> Self {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&directory);
        let fake = Self { directory };
        fake.script(CARGO, "exit 0");
        fake
    }

    fn script(&self, name: &str, text: &str) {
        let file = self.directory.join(name);
        fs::create_dir_all(file.parent().expect("a directory")).expect("a directory for scripts");
        fs::write(&file, format!("{WORDS}{text}\n")).expect("a script");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("a script that runs");
    }

    fn run(&self, arguments: &str) -> Output {
        Command::new(env!("CARGO_BIN_EXE_xtask"))
            .args(arguments.split_whitespace())
            .env("CARGO", self.directory.join(CARGO))
            .env("CARGO_TARGET_DIR", &self.directory)
            .output()
            .expect("xtask starts")
    }

    /// The exit status and the last line of each of these calls: arguments, a script, and what is
    /// expected.
    fn ends(&self, program: &str, calls: &[(&str, &str, i32, &str)]) {
        for &(arguments, script, status, last) in calls {
            self.script(program, script);
            let output = self.run(arguments);
            let text = String::from_utf8_lossy(&output.stdout);
            let found = (output.status.code(), text.lines().last().unwrap_or(""));
            assert_eq!(found, (Some(status), last), "{arguments}: {script}");
        }
    }

    /// As [`ends`](Self::ends), of calls whose last line says nothing.
    fn statuses(&self, program: &str, arguments: &str, calls: &[(&str, i32)]) {
        for &(script, status) in calls {
            self.script(program, script);
            let output = self.run(arguments);
            assert_eq!(output.status.code(), Some(status), "{arguments}: {script}");
        }
    }

    fn remove(&self, program: &str) {
        fs::remove_file(self.directory.join(program)).expect("it was there");
    }
}

const HOST: &str = "test --part host";

/// A build that fails, or a test program that dies, prints no sums. A part that tests nothing is no
/// success, and one that errors lets the others run.
#[test]
fn tests_of_the_host_are_summed() {
    let fake = Fake::new("host");
    let skip = "echo 'skipped: no Open MPI'; echo 'skipped: no mount'";
    let skips = format!("{skip}; sums 3 0; {skip}; sums 4 0");
    let left_out = "7 passed, 0 failed, 4 left out: no Open MPI (2 times); no mount (2 times)";
    let both = "test --part host --part linux";
    // Once the programs are built.
    let after = |script: &str| format!("built $*; {script}");
    let failed = "9 passed, 11 failed";
    fake.ends(
        CARGO,
        &[
            (HOST, "sums 3 0; sums 4 0", 0, "7 passed, 0 failed"),
            (HOST, &skips, 0, left_out),
            (HOST, "sums 9 0; sums 0 11", 1, failed),
            (HOST, &after("sums 9 0; sums 0 11; exit 101"), 1, failed),
            (HOST, &after("sums 9 0; sums 0 11; crash"), 1, failed),
            (HOST, &after("sums 9 0; exit 101"), 1, "9 passed, 1 failed"),
            (HOST, &after("sums 9 0; crash"), 1, "9 passed, 1 failed"),
            (
                HOST,
                &after("sums 9 0; kill -KILL $$"),
                1,
                "9 passed, 1 failed",
            ),
            (HOST, &after("exit 101"), 1, "0 passed, 1 failed"),
            (HOST, "sums 9 0; exit 101", 1, "0 passed, 1 failed"),
            (HOST, "crash", 1, "0 passed, 1 failed"),
            (HOST, "exit 0", 1, "0 passed, 1 failed"),
            (HOST, "sums 0 0", 1, "0 passed, 1 failed"),
            (both, "[ $1 = test ] && sums 3 0", 1, "3 passed, 1 failed"),
        ],
    );
    fake.remove(CARGO);
    let output = fake.run(HOST);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("\nfailed:\n  cannot run cargo"), "{text}");
    assert_eq!(output.status.code(), Some(1));
}

/// What passes is not printed, and all that a program says in which a test fails.
#[test]
fn only_programs_that_fail_are_heard() {
    let fake = Fake::new("heard");
    for failed in [0, 1] {
        let fails = "echo 'test d::e ... FAILED'; echo why >&2; sums 1 1";
        let script = format!("echo 'test a::b ... ok'; sums 1 {failed}; {fails}");
        fake.script(CARGO, &script);
        let text = String::from_utf8_lossy(&fake.run(HOST).stdout).into_owned();
        assert_eq!(text.contains("a::b ... ok"), failed > 0);
        assert!(text.contains("d::e ... FAILED\nwhy\n"));
    }
}

/// One platform of four, and all.
#[test]
fn jobs_on_linux_are_summed_and_one_that_crashes_has_failed() {
    let fake = Fake::new("jobs");
    let (all, one) = ("linux --ranks 2", "linux --ranks 2 --platform coherent");
    fake.ends(
        JOBS,
        &[
            (all, "job 5 0", 0, "20 passed, 0 failed, 4 skipped"),
            (all, "job 4 1", 1, "16 passed, 4 failed, 4 skipped"),
            (all, "job 4 1; exit 1", 1, "16 passed, 4 failed, 4 skipped"),
            (one, "job 5 0; crash", 1, "5 passed, 1 failed, 1 skipped"),
            (one, "job 5 0; exit 3", 1, "5 passed, 1 failed, 1 skipped"),
            (one, "job 1 2; exit 1", 1, "1 passed, 2 failed, 1 skipped"),
            (one, "crash", 1, "0 passed, 1 failed"),
            (one, "exit 0", 1, "0 passed, 1 failed"),
            (one, "echo 'ok 0.1 ms a'; crash", 1, "1 passed, 1 failed"),
            (
                one,
                "echo 'ok over tcp'; echo 'FAILED 3.0 ms b'; echo 'ok 0.2 ms c'; exit 1",
                1,
                "1 passed, 1 failed",
            ),
        ],
    );
    fake.remove(JOBS);
    assert_eq!(fake.run(all).status.code(), Some(1));
    assert_eq!(fake.run("test --part linux").status.code(), Some(1));
}

#[test]
fn an_exploration_that_fails_or_crashes_has_failed() {
    let fake = Fake::new("explore");
    let tests = "test --part exploration";
    fake.ends(
        EXPLORER,
        &[
            (tests, "exit 0", 0, "5 passed, 0 failed"),
            (tests, "exit 1", 1, "0 passed, 5 failed"),
            (tests, "exit 2", 1, "0 passed, 5 failed"),
            (tests, "crash", 1, "0 passed, 5 failed"),
        ],
    );
    // Those of the explorer, which has said what is wrong.
    let statuses = [("exit 0", 0), ("exit 1", 1), ("exit 2", 2), ("crash", 1)];
    fake.statuses(FAST_EXPLORER, "explore", &statuses);
    fake.statuses(FAST_EXPLORER, "replay any", &statuses);
}

#[test]
fn steps_of_ci_that_fail_or_error_count() {
    let fake = Fake::new("ci");
    fake.ends(
        CARGO,
        &[
            ("ci --only format", "exit 0", 0, "1 passed, 0 failed"),
            ("ci --only format", "exit 1", 1, "0 passed, 1 failed"),
            ("ci --only format", "crash", 1, "0 passed, 1 failed"),
            ("ci --only dependencies", "exit 1", 1, "0 passed, 1 failed"),
            // The others still run.
            ("ci --only clippy", "exit 1", 1, "0 passed, 3 failed"),
        ],
    );
    assert_eq!(fake.run("ci --only none").status.code(), Some(2));
}

#[test]
fn benchmarks_hand_their_status_on() {
    let fake = Fake::new("bench");
    let statuses = [("exit 0", 0), ("exit 1", 1), ("exit 2", 2), ("crash", 1)];
    fake.statuses(BENCH, "bench ops", &statuses);
    fake.statuses(CARGO, "bench ops", &[("exit 101", 1)]);
}

/// A run beside a saved one, which both print objects.
#[test]
fn a_benchmark_that_is_slower_than_a_saved_one_fails() {
    let fake = Fake::new("compare");
    let saved = fake.directory.join("saved");
    let (a, b) = (r#"{"case":"a","cycles":100}"#, r#"{"case":"b","cycles":7}"#);
    fs::write(&saved, format!("{a}\n{b}")).expect("a saved run");
    let slower = r#"{"case":"a","cycles":111}"#;
    for (objects, end, status) in [
        (&[a, b][..], 0, 0),
        (&[a, b, slower], 0, 1), // two objects of a name
        (&[slower, b], 0, 1),
        (&[a], 0, 1), // a saved object without a match
        (&[], 0, 1),
        (&[a, b], 1, 1),
    ] {
        let script = format!("printf '%s\\n' '{}'; exit {end}", objects.join("' '"));
        let arguments = format!("bench ops --compare {}", saved.display());
        fake.statuses(BENCH, &arguments, &[(&script, status)]);
    }
}
