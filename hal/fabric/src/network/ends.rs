//! Ranks that end: this one, in order, and others that are gone.

use std::fmt;
use std::io::Write as _;

use flagpost_hal::fabric::Fabric as _;

use super::Network;
use crate::meet::Apart;

/// Of how many turns of waiting, and questions for lost ranks, one asks the hub's connection: some
/// milliseconds pass in between.
const ASKS: u32 = 4096;

impl Network {
    /// Waits until all that any rank has begun is done, and forgets what was told to this one: for
    /// another use of the same network. All ranks call it.
    ///
    /// # Errors
    /// [`Apart`]: not all will.
    pub fn clear(&self) -> Result<(), Apart> {
        self.settle();
        self.meet()?;
        self.forget();
        self.meet()
    }

    /// Forgets what was told to this rank.
    fn forget(&self) {
        while self.poll().is_some() || self.0.end.has_completions() {}
    }

    /// Waits until all that this rank has begun is in place.
    fn settle(&self) {
        while let Some(to) = self.0.end.unconfirmed() {
            // If there is no room, again; unless the rank is lost.
            let _ = self.put(0, to, 0, &[], None, true);
            self.ask();
            self.forget();
        }
        while self.0.end.in_flight() > 0 {
            self.ask();
            self.pass();
            self.forget();
        }
    }

    /// Ends this rank's part in order. The others are told, after all that this rank has begun is
    /// done: [`has_left`](flagpost_hal::fabric::Fabric::has_left). Then waits until all ranks end
    /// theirs, for which this one's end may still be needed. Without, it is lost to the others.
    ///
    /// # Errors
    /// [`Apart`]: a rank is gone, and so this one has not waited for all. It has left.
    pub fn leave(&self) -> Result<(), Apart> {
        if !self.is_own() {
            return Err(Apart::Hub("another process has joined the job".to_owned()));
        }
        self.settle();
        if let Some(meeting) = self.0.meeting.borrow_mut().as_mut() {
            meeting.end();
        }
        let met = self.clear();
        if let Some(meeting) = self.0.meeting.borrow_mut().take() {
            meeting.leave();
        }
        met
    }

    /// Asks the hub's connection for lost ranks, at some calls. Whatever else happens: a rank may
    /// poll without waiting, or wait while others talk to it.
    #[inline]
    pub(super) fn ask(&self) {
        let asked = self.0.asked.get();
        self.0.asked.set(asked.wrapping_add(1));
        if asked % ASKS == ASKS - 1 {
            self.hear_of_the_gone();
        }
    }

    /// Says on standard error what this rank waits for, in one piece among the lines of others.
    #[cold]
    pub(super) fn say_what(&self, what: fmt::Arguments<'_>) {
        let line = format!("rank {} {what}\n", self.0.rank);
        // If nobody reads it, that is no reason to fail.
        let _ = std::io::stderr().write_all(line.as_bytes());
        self.0.is_asked.set(false);
        if let Some(meeting) = self.0.meeting.borrow_mut().as_mut() {
            meeting.answer();
        }
    }

    #[cold]
    pub(super) fn hear_of_the_gone(&self) {
        // While this rank is at a meeting, the meeting tells.
        let Ok(mut meeting) = self.0.meeting.try_borrow_mut() else {
            return;
        };
        let Some(meeting) = meeting.as_mut() else {
            return;
        };
        let mut ended = self.0.ended.borrow_mut();
        let known = ended.len();
        ended.extend(&meeting.ended()[known..]);
        let mut known = self.0.lost.borrow_mut();
        let lost = meeting.lost();
        for rank in &lost[known.len().min(lost.len())..] {
            self.0.end.lose(usize::from(*rank));
            known.push(*rank);
        }
        // One that leaves while this rank does not has lost another, and answers no more.
        let left = meeting.left();
        for rank in &left[self.0.left.replace(left.len())..] {
            self.0.end.lose(usize::from(*rank));
        }
        self.0.is_asked.set(meeting.is_asked());
        // Without a hub nobody tells who is lost: all others may be.
        if meeting.is_broken() {
            for rank in (0..self.0.ranks).filter(|rank| *rank != self.0.rank) {
                if !known.contains(&rank) {
                    self.0.end.lose(usize::from(rank));
                    known.push(rank);
                }
            }
        }
    }
}
