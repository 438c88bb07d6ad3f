//! A hang is a verdict: a rank that does not end its part of a case says so and ends, and the job
//! with it.
//!
//! A rank that has done its part has more time: those that hang end first, and its wait for them
//! ends since they are lost.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use flagpost_common::patience;

/// How long a case may take on a machine at rest: the longest takes about a second.
const PATIENCE: Duration = Duration::from_secs(10);

/// How much longer a rank that has done its part waits for the others.
const MORE: Duration = Duration::from_secs(5);

/// How long a rank whose part has failed waits for the others: they may wait for it, and are told
/// that it is gone when it ends.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

/// What runs, how long it may, and when that ends.
type Running = (&'static str, Duration, Instant);

/// The limit of a rank.
pub(crate) struct Limit(Arc<Mutex<Running>>);

impl Limit {
    /// `rank` begins, and meets the others.
    pub(crate) fn start(rank: u16) -> Self {
        let running = Arc::new(Mutex::new(from_now("meeting", patience(PATIENCE))));
        let limit = Self(Arc::clone(&running));
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(Duration::from_millis(500));
                let (case, patience, end) = *running.lock().unwrap_or_else(PoisonError::into_inner);
                if Instant::now() > end {
                    println!("        {case}: rank {rank}: no end in sight after {patience:?}");
                    std::process::exit(1);
                }
            }
        });
        limit
    }

    /// This rank's part of `case` begins.
    pub(crate) fn begin(&self, case: &'static str) {
        self.set(case, patience(PATIENCE));
    }

    /// Its part has ended.
    pub(crate) fn end(&self, case: &'static str, well: bool) {
        let patience = match well {
            true => patience(PATIENCE) + MORE,
            false => AFTER_FAILURE,
        };
        self.set(case, patience);
    }

    fn set(&self, case: &'static str, patience: Duration) {
        let running = from_now(case, patience);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = running;
    }
}

fn from_now(case: &'static str, patience: Duration) -> Running {
    (case, patience, Instant::now() + patience)
}
