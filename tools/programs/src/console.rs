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
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

pub use flagpost_common::out;
use indicatif::{ProgressBar, ProgressStyle};

/// How many failures are listed at the end.
const FAILURES: usize = 40;

/// Standard error with a progress line at its end, if it is a terminal.
pub struct Console {
    terminal: bool,
    /// The progress line, while there is one.
    bar: Mutex<Option<ProgressBar>>,
    /// `Some` until [`Console::release`]: lines not shown yet.
    held: Mutex<Option<Vec<String>>>,
    /// What failed so far, for the end of a long command: there its reader looks first.
    failures: Mutex<Vec<String>>,
}

impl Console {
    #[expect(clippy::new_without_default, reason = "it looks at the terminal")]
    pub fn new() -> Self {
        Self {
            terminal: std::io::stderr().is_terminal(),
            bar: Mutex::new(None),
            held: Mutex::new(Some(Vec::new())),
            failures: Mutex::new(Vec::new()),
        }
    }

    /// Shows what is being done now; the next step replaces it.
    pub fn step(&self, what: impl Into<String>) {
        if self.terminal {
            lock(&self.bar)
                .get_or_insert_with(spinner)
                .set_message(what.into());
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
        }
    }

    /// Takes the progress line away.
    pub fn clear(&self) {
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

    /// Prints `error: what` on standard error at once, and keeps `what` for [`Console::failures`].
    pub fn error(&self, what: &str) {
        self.say(&format!("error: {what}"));
        self.failure(what);
    }

    /// Keeps the name of what failed, and was told elsewhere, for [`Console::failures`].
    pub fn failure(&self, what: &str) {
        lock(&self.failures).push(what.to_owned());
    }

    /// What failed so far.
    pub fn failed(&self) -> Vec<String> {
        lock(&self.failures).clone()
    }

    /// Lists on standard output what failed, if anything did, but not without end.
    pub fn failures(&self) {
        let failures = lock(&self.failures);
        if failures.is_empty() {
            return;
        }
        out("\nfailed:");
        let shown = failures.iter().take(FAILURES);
        shown.for_each(|what| out(&format!("  {what}")));
        if let more @ 1.. = failures.len().saturating_sub(FAILURES) {
            out(&format!("  and {more} more"));
        }
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

/// A line with the time since the first step.
fn spinner() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} [{elapsed}] {wide_msg}") {
        bar.set_style(style.tick_chars("|/-\\ "));
    }
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

/// A panic elsewhere is no reason to print nothing.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
