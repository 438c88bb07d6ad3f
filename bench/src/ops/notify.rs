//! Calls that tell their target, and those by which it learns of that.
//!
//! Rank 0 accesses rank 1's piece; or it looks at what rank 1 has told it, which is there before
//! the first mark, whether a request has been started for it or not. One counter, one event; one
//! element, unless a size is given.

#![allow(
    clippy::result_large_err,
    reason = "what accesses give back, to go on with"
)]

use flagpost::rma::Operation;
use flagpost::{Compare, Counter, Rma as _, Signal, Tag, wait_any};
use flagpost_verbs::{Verb, begin};

use super::{OWN, PEER, Stage};
use crate::Failure;

const TAG: Tag = Tag(1);
const COUNTER: Counter = Counter(0);
const INDEX: u32 = 0;

impl Stage<'_, '_> {
    /// Accesses with a tag, which rank 1 waits for; or rank 0's request for what rank 1 puts.
    pub(super) fn notify(&self, part: &str) -> Result<(), Failure> {
        let window = self.window;
        let (puts, requests) = match part {
            "start" | "cancel" | "test" | "wait" | "wait_any" | "probe" | "discard" => (PEER, OWN),
            _ => (OWN, PEER),
        };
        if self.world.rank() == requests {
            let mut request = window.expect(0..self.data.len(), TAG)?.from(puts)?;
            if part == "cancel" {
                request.start()?;
                self.mark(true, || request.cancel())?;
            }
            let is_unexpected = matches!(part, "probe" | "discard");
            if !is_unexpected {
                self.mark(part == "start", || request.start())?;
            }
            self.world.barrier()?;
            self.world.barrier()?;
            // What it waits for is there: one turn.
            match part {
                "discard" => {
                    let count = self.mark(true, || window.discard_notifications())?;
                    return (count == 1).then_some(()).ok_or(Failure::Data);
                }
                "wait" => return Ok(self.mark(true, || request.wait()).map(drop)?),
                "wait_any" => {
                    let mut requests = [request];
                    return Ok(self.mark(true, || wait_any(&mut requests)).map(drop)?);
                }
                "probe" => {
                    let found = self.mark(true, || window.probe(puts, TAG))?;
                    found.ok_or(Failure::Data)?;
                    request.start()?;
                }
                _ => {}
            }
            let done = self.mark(part == "test", || request.test())?;
            return done.map(|_| ()).ok_or(Failure::Data);
        }
        self.world.barrier()?;
        let (to, data) = (requests, &self.data);
        let mut into = data.clone();
        if let Some(verb) = part.strip_suffix("_request").and_then(Verb::named) {
            let target = window.to(to, 0).notify(TAG);
            self.mark(true, || {
                begin!(verb, target, &data[..], &mut into[..])?.wait()
            })?;
            return Ok(self.world.barrier()?);
        }
        match part {
            "get_notify" => self.mark(true, || window.get_notify(to, 0, &mut into, TAG))?,
            "notify" => self.mark(true, || window.notify(to, TAG))?,
            _ => self.mark(part == "put_notify", || window.put_notify(to, 0, data, TAG))?,
        }
        Ok(self.world.barrier()?)
    }

    /// Puts that count or signal, and the calls that look at a counter.
    pub(super) fn counter(&self, part: &str) -> Result<(), Failure> {
        let window = self.window;
        match part {
            "put_notify" | "put_signal" | "by_hand" if !self.measures() => return Ok(()),
            "put_notify" => {
                return Ok(self.mark(true, || window.put_notify(PEER, 0, &self.data, COUNTER))?);
            }
            "by_hand" => {
                let lock = window.lock_shared(PEER)?;
                self.mark(true, || {
                    lock.put(PEER, 0, &self.data)?;
                    lock.flush(PEER)?;
                    lock.accumulate(PEER, window.len() - 1, &[1], Operation::SUM)
                })?;
                return Ok(lock.unlock()?);
            }
            "put_signal" => {
                let signal = Signal(INDEX).add(1);
                return Ok(self.mark(true, || window.put_notify(PEER, 0, &self.data, signal))?);
            }
            _ => {}
        }
        if !self.measures() {
            window.put_notify(OWN, 0, &[7], COUNTER)?;
            return Ok(self.world.barrier()?);
        }
        let mut request = window.expect_count(0..1, Counter(INDEX), 1)?;
        if matches!(part, "test" | "cancel") {
            request.start()?;
        }
        self.world.barrier()?;
        match part {
            "cancel" => self.mark(true, || request.cancel())?,
            "set" => self.mark(true, || window.set_notify_value(Counter(INDEX), 7))?,
            "fetch" => {
                self.mark(true, || window.signal_fetch(Signal(INDEX)))?;
            }
            "value" => {
                self.mark(true, || window.notify_value(Counter(INDEX)))?;
            }
            "test" => {
                let done = self.mark(true, || request.test())?;
                done.ok_or(Failure::Data)?;
            }
            "wait_until" => {
                self.mark(true, || {
                    window.wait_until(0..1, Signal(INDEX), Compare::Ge, 1)
                })?;
            }
            _ => {}
        }
        self.mark(part == "reset", || {
            window.reset_notify_value(Counter(INDEX))
        })?;
        Ok(())
    }

    /// Posts of an event, with data and without, and the calls that look at one.
    pub(super) fn event(&self, part: &str) -> Result<(), Failure> {
        if matches!(part, "make" | "free") {
            return self.repeat(|| {
                let events = self.mark(part == "make", || self.world.events(1))?;
                Ok(self.mark(part == "free", || events.free())?)
            });
        }
        if part == "sync" {
            let (events, other) = (self.world.events(2)?, self.world.rank().next(2));
            self.repeat(|| {
                self.world.barrier()?;
                Ok(self.mark(true, || events.sync([other]))?)
            })?;
            return Ok(events.free()?);
        }
        let events = self.world.events(1)?;
        let event = events.event(INDEX)?;
        self.repeat(|| {
            let takes = match part {
                "post" | "put" => PEER,
                _ => OWN,
            };
            if self.world.rank() == takes {
                self.world.barrier()?;
                self.mark(part == "query", || events.query(INDEX))?;
                self.mark(part == "wait", || events.wait(INDEX, 1))?;
                return Ok(());
            }
            match part {
                "put" => self.mark(true, || self.window.put_notify(takes, 0, &[7], event))?,
                _ => self.mark(part == "post", || events.post(takes, INDEX))?,
            }
            Ok(self.world.barrier()?)
        })?;
        Ok(events.free()?)
    }
}
