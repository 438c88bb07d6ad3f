//! Everything printed goes through here.
//!
//! Standard output carries results only (tables, `--json` lines); progress, log lines and errors
//! go to standard error. A closed pipe on either is not an error: what cannot be printed is
//! dropped, and the exit status still tells the outcome. (`println!` would panic instead, so the
//! crate forbids it.)
//!
//! Lines that only explain a run, such as the toolchain chosen, are *held* until the image has
//! announced its plan. A command refused for bad input then leaves one line and no more.

use std::io::IsTerminal;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

pub use flagpost_common::out;
use indicatif::{ProgressBar, ProgressStyle};

use crate::count::Count;
use crate::parallel::lock;

/// How many failures are listed at the end.
const FAILURES: usize = 40;
/// How often a log that nobody sees live says what is being done.
const EVERY: Duration = Duration::from_secs(15);

/// Standard error with a progress line at its end, if it is a terminal.
pub struct Console {
    terminal: bool,
    /// Also what is no news: passing cases and tests.
    verbose: AtomicBool,
    /// What is being done, if standard error is no terminal.
    step: Mutex<String>,
    /// The progress line, while there is one.
    bar: Mutex<Option<ProgressBar>>,
    /// `Some` until [`Console::release`]: lines not shown yet.
    held: Mutex<Option<Vec<String>>>,
    /// What failed so far, for the end of a long command: there its reader looks first.
    failures: Mutex<Vec<String>>,
    /// What could not be tried here, and why.
    left_out: Mutex<Vec<String>>,
}

impl Console {
    #[expect(clippy::new_without_default, reason = "it looks at the terminal")]
    pub fn new() -> Self {
        Self {
            terminal: std::io::stderr().is_terminal(),
            verbose: AtomicBool::new(false),
            step: Mutex::new(String::new()),
            bar: Mutex::new(None),
            held: Mutex::new(Some(Vec::new())),
            failures: Mutex::new(Vec::new()),
            left_out: Mutex::new(Vec::new()),
        }
    }

    /// From now on, a log that is no terminal has a line every 15 seconds that says what is being
    /// done.
    pub fn watch(&'static self) {
        if !self.terminal {
            let started = Instant::now();
            thread::spawn(move || {
                loop {
                    thread::sleep(EVERY);
                    let step = lock(&self.step).clone();
                    if !step.is_empty() {
                        flagpost_common::say(&format!(
                            "[{} s] {step}",
                            started.elapsed().as_secs()
                        ));
                    }
                }
            });
        }
    }

    /// From now on, [`Console::is_verbose`].
    pub fn be_verbose(&self) {
        // ORDERING: Relaxed: nothing else is published by it.
        self.verbose.store(true, Ordering::Relaxed);
    }

    /// Whether what is no news is printed, too: passing cases and tests.
    pub fn is_verbose(&self) -> bool {
        self.verbose.load(Ordering::Relaxed)
    }

    /// Shows what is being done now; the next step replaces it.
    pub fn step(&self, what: impl Into<String>) {
        if self.terminal {
            lock(&self.bar)
                .get_or_insert_with(spinner)
                .set_message(what.into());
        } else {
            *lock(&self.step) = what.into();
        }
    }

    /// Shows that cargo builds `name`: by its own progress on a terminal, else as a step.
    pub fn building(&self, name: &str, cargo: &mut Command) {
        if self.terminal {
            self.clear();
        } else {
            cargo.arg("--quiet");
            self.step(format!("building {name}"));
        }
    }

    /// Shows how far a thing is of which the end is known.
    pub fn progress(&self, done: u64, total: u64, what: &'static str) {
        if self.terminal {
            let mut bar = lock(&self.bar);
            let bar = bar.get_or_insert_with(spinner);
            if bar.length() != Some(total) {
                bar.set_length(total);
                if let Ok(style) = ProgressStyle::with_template(
                    "[{elapsed}] {bar:40} {pos}/{len} {msg}, {eta} left",
                ) {
                    bar.set_style(style);
                }
            }
            bar.set_message(what);
            bar.set_position(done);
        } else {
            *lock(&self.step) = format!("{done} of {total} {what}");
        }
    }

    /// Takes the progress line away.
    pub fn clear(&self) {
        lock(&self.step).clear();
        if let Some(bar) = lock(&self.bar).take() {
            bar.finish_and_clear();
        }
    }

    /// Prints a line on standard error at once.
    pub fn say(&self, line: &str) {
        let print = || flagpost_common::say(line);
        match &*lock(&self.bar) {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    /// Prints `error: what` on standard error at once, and keeps `what` for the last lines.
    pub fn error(&self, what: &str) {
        self.say(&format!("error: {what}"));
        self.failure(what);
    }

    /// Keeps the name of what failed, and was told elsewhere, for the last lines.
    pub fn failure(&self, what: &str) {
        let first = what.lines().next().unwrap_or_default();
        lock(&self.failures).push(first.to_owned());
    }

    /// What failed so far.
    pub fn failed(&self) -> Vec<String> {
        lock(&self.failures).clone()
    }

    /// Keeps what could not be tried, and why, for the last line.
    pub fn left_out(&self, what: &str) {
        lock(&self.left_out).push(what.to_owned());
    }

    /// Lists on standard output what failed, but not without end; then the last line of a command,
    /// with what was left out. Whether nothing failed.
    pub fn verdict(&self, count: Count) -> bool {
        self.clear();
        let failures = lock(&self.failures);
        if !failures.is_empty() {
            out("\nfailed:");
            let shown = failures.iter().take(FAILURES);
            shown.for_each(|what| out(&format!("  {what}")));
            if let more @ 1.. = failures.len().saturating_sub(FAILURES) {
                out(&format!("  and {more} more"));
            }
        }
        out(&self.last(count));
        count.failed == 0
    }

    /// The last line of a command.
    pub fn last(&self, count: Count) -> String {
        count.line() + &left_out::line(&lock(&self.left_out))
    }

    /// Prints a line on standard error, but not before [`Console::release`].
    pub fn hold(&self, line: String) {
        let mut held = lock(&self.held);
        match held.as_mut() {
            Some(lines) => lines.push(line),
            None => self.say(&line),
        }
    }

    /// Prints the lines held so far; from now on nothing is held.
    pub fn release(&self) {
        let lines = lock(&self.held).take();
        for line in lines.unwrap_or_default() {
            self.say(&line);
        }
    }
}

/// What was left out, at the end of a command's last line.
pub mod left_out {
    const BEFORE: &str = " left out: ";

    /// Such as `, 3 left out: no Open MPI (2 times); no libfabric`.
    pub(super) fn line(all: &[String]) -> String {
        let mut kinds: Vec<&String> = all.iter().collect();
        kinds.sort();
        kinds.dedup();
        let times = |kind: &&String| match all.iter().filter(|other| other == kind).count() {
            1 => (*kind).clone(),
            times => format!("{kind} ({times} times)"),
        };
        let kinds: Vec<String> = kinds.iter().map(times).collect();
        match kinds[..] {
            [] => String::new(),
            _ => format!(", {}{BEFORE}{}", all.len(), kinds.join("; ")),
        }
    }

    /// What such a line says.
    pub fn read(line: &str) -> impl Iterator<Item = &str> {
        let kinds = line.split_once(BEFORE).map(|(_, kinds)| kinds.split("; "));
        kinds.into_iter().flatten()
    }
}

/// A line with the time since the first step.
fn spinner() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} [{elapsed}] {wide_msg}") {
        bar.set_style(style.tick_chars("|/-\\ "));
    }
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}
