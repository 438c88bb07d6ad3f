//! A hang is a verdict, for threads of a test: they cannot be ended alone, so this process ends.

use std::io::Write as _;
use std::panic::Location;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use flagpost_common::patience;

/// Longer than anything takes on a machine at rest: see [`patience`].
const LIMIT: Duration = Duration::from_secs(30);

/// Does what may hang. If it has not ended within the limit, this process ends, and the last line
/// says which test it was.
#[track_caller]
pub(crate) fn within<T>(act: impl FnOnce() -> T) -> T {
    let (running, ended) = channel::<()>();
    // A test's thread has its name, unless it is the only one.
    let test = std::thread::current().name().unwrap_or_default().to_owned();
    let place = Location::caller();
    std::thread::spawn(move || {
        let limit = patience(LIMIT);
        if ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            let line = format!("{test}, {place}: no end in sight after {limit:?}\n");
            // The harness does not keep it.
            let _ = std::io::stderr().write_all(line.as_bytes());
            std::process::exit(101);
        }
    });
    let result = act();
    drop(running);
    result
}
