//! Send and receive: what notified access is compared with.
//!
//! A message goes into a mailbox of its receiver, one for each lane, and a notification says that
//! it is there. The receiver copies it out and tells the sender that the mailbox is free. So a
//! message takes a copy and a notification more than a notified put to its place.
//!
//! ```text
//!   sender                     receiver
//!     │ put_notify(data, lane) ──► mailbox ── copy ──► into
//!     │ ◄── notify(lane) ────────────┘
//! ```
//! A lane has one sender, one receiver, and one message on its way. A message that nobody waits for
//! yet takes room in the receiver's queue of notifications, and so does a notice that a mailbox is
//! free. So there are a few lanes, used in turn, however many messages there are.

use flagpost::{Error, Link, Rank, Tag, Window};

/// Lanes of a window of mailboxes: lane `n` is `len` elements at `n * len`, on each rank.
#[derive(Debug)]
pub struct Mailboxes<'a, 'w, L: Link> {
    window: &'a Window<'w, f64, L>,
    len: usize,
    lanes: u32,
}

impl<'a, 'w, L: Link> Mailboxes<'a, 'w, L> {
    /// So many `lanes` of `len` elements, which the window must have on each rank.
    pub const fn new(window: &'a Window<'w, f64, L>, lanes: u32, len: usize) -> Self {
        Self { window, len, lanes }
    }

    const fn start(&self, lane: u32) -> usize {
        lane as usize * self.len
    }

    /// Sends a message of at most a mailbox. With `first` the mailbox was never used.
    ///
    /// # Errors
    /// Those of [`Window::put_notify`].
    pub fn send(&self, to: Rank, lane: u32, data: &[f64], first: bool) -> Result<(), Error> {
        if !first {
            self.await_free(to, lane)?;
        }
        let at = self.start(lane);
        self.window.put_notify(to, at, data, Tag(lane))
    }

    /// Waits until the message that was sent last has been received. Then the mailbox is as if it
    /// was never used.
    ///
    /// # Errors
    /// Those of [`Window::expect`].
    pub fn await_free(&self, to: Rank, lane: u32) -> Result<(), Error> {
        let mut free = self.window.expect(0..0, self.credit(lane))?.from(to)?;
        free.start()?;
        free.wait()?;
        Ok(())
    }

    /// Receives a message of that length.
    ///
    /// # Errors
    /// Those of [`Window::expect`].
    pub fn receive(&self, from: Rank, lane: u32, into: &mut [f64]) -> Result<(), Error> {
        let at = self.start(lane);
        let mut here = self.window.expect(at..at + into.len(), Tag(lane))?;
        here = here.from(from)?;
        here.start()?;
        here.wait()?;
        self.window.local().copy_out(at, into)?;
        self.window.notify(from, self.credit(lane))
    }

    /// The tag that frees a mailbox.
    const fn credit(&self, lane: u32) -> Tag {
        Tag(self.lanes + lane)
    }
}
