//! A thread that looks at completion queues while its rank computes.

use std::ptr::{NonNull, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::handle::Port;
use crate::bindings::*;

/// A thread that keeps an end's operations moving while its rank computes.
#[derive(Debug)]
pub(super) struct Helper {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// The completion queues of an end.
struct Queues(Vec<NonNull<fid_cq>>);

// SAFETY: the domain was opened as safe for threads (E4), and the queues outlive the thread: `End`
// drops its helper, which waits for the thread, before all handles.
unsafe impl Send for Queues {}

impl Helper {
    /// Looks at the queues of these ports, which outlive the helper, and rests this long between
    /// two looks.
    pub(super) fn start<'a>(
        ports: impl Iterator<Item = &'a Port>,
        pause: Duration,
    ) -> std::io::Result<Self> {
        let queues = ports.filter_map(|port| NonNull::new(port.queue.as_ptr()));
        let queues = Queues(queues.collect());
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let work = move || {
            let queues = queues;
            while !told.load(Ordering::Relaxed) {
                for queue in &queues.0 {
                    // SAFETY: the queue is open, see `Queues`. Nothing is stored: no entry is asked
                    // for.
                    unsafe { ((*(*queue.as_ptr()).ops).read)(queue.as_ptr(), null_mut(), 0) };
                }
                std::thread::sleep(pause);
            }
        };
        let builder = std::thread::Builder::new().name("flagpost-fabric".to_owned());
        let thread = Some(builder.spawn(work)?);
        Ok(Self { stop, thread })
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It does not panic.
            let _ = thread.join();
        }
    }
}
