//! A hang is a verdict, for what a process prints.

use std::io::{BufRead as _, BufReader, Read};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Longer than anything takes on a machine at rest: see [`patience`].
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

/// The lines of `out`, each for [`Receiver::recv_timeout`].
pub(crate) fn lines_of(out: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            // All is read, whether or not it is asked for.
            let _ = sender.send(line);
        }
    });
    lines
}
