//! What libfabric's queues say.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::atomic::{Ordering, fence};

use super::handle::Handle;
use super::slots::{Flight, Kind};
use super::{End, Peer};
use crate::bindings::*;

/// Completions that are read in one call.
const BATCH: usize = 16;

/// Of how many looks at the first queue one is at the second as well, while no own operation is in
/// flight there; and how many looks an idle turn counts as.
const SELDOM: u32 = 64;
const IDLE: u32 = 4;

/// Turns of a spin loop for which this rank rests before the next look: per completion of the last
/// one, if there were several; and in a long wait.
const REST: u32 = 3;
const LONG_REST: u32 = 64;

/// What has happened.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Completion {
    /// Operation `id` is done; the former value of a cell.
    Done { id: u32, value: u64 },
    /// Operation `id` has failed.
    Failed { id: u32 },
    /// A peer's 64 bits.
    Told(u64),
}

impl End {
    /// The oldest completion that was not taken. After those that one look at libfabric's queues
    /// has brought, there is none until the next call: a look costs more than a completion.
    pub(crate) fn poll(&self) -> Option<Completion> {
        let next = self.completions.borrow_mut().pop_front();
        if next.is_some() || self.drained.take() {
            return next;
        }
        self.pump();
        let next = self.completions.borrow_mut().pop_front();
        self.drained.set(next.is_some());
        next
    }

    /// Whether there is a completion to take. Gives libfabric time.
    pub(crate) fn has_completions(&self) -> bool {
        if self.completions.borrow().is_empty() {
            self.pump();
        }
        !self.completions.borrow().is_empty()
    }

    /// Operations that are not done.
    pub(crate) fn in_flight(&self) -> usize {
        self.slots.in_flight()
    }

    /// A rank that was put to after what is confirmed.
    pub(crate) fn unconfirmed(&self) -> Option<usize> {
        let open = |peer: &Peer| peer.unconfirmed.get() && !peer.failed.get();
        self.known().iter().position(open)
    }

    /// A rank to which something has failed of which no completion tells.
    pub(crate) fn failed(&self) -> Option<u16> {
        self.failed.get()
    }

    /// `to` is gone: what is in flight to it fails, and what is posted to it. Providers would try
    /// for ever to reach it.
    pub(crate) fn lose(&self, to: usize) {
        let peer = self.peer(to);
        peer.lost.set(true);
        self.fails(peer);
        self.fail_all(|flight| flight.to == to);
    }

    /// From now on all puts to `peer` fail, and none is injected.
    pub(super) fn fails(&self, peer: &Peer) {
        peer.failed.set(true);
        peer.credits.end();
        self.failed.set(Some(peer.rank));
    }

    /// The operations that `which` picks have failed. Their slots stay in use: libfabric may still
    /// know them.
    fn fail_all(&self, which: impl Fn(&Flight) -> bool) {
        let mut completions = self.completions.borrow_mut();
        self.slots.for_each(|flight| {
            if which(flight) && !flight.silent {
                flight.silent = true;
                completions.push_back(Completion::Failed { id: flight.id });
            }
        });
    }

    /// Gives libfabric time, and reads from its queues what one look brings.
    pub(crate) fn pump(&self) {
        if self.broken.get() {
            return;
        }
        for _ in 0..self.rest.take() {
            std::hint::spin_loop();
        }
        self.read(&self.first.queue);
        if let Some(second) = &self.second {
            let looks = self.looks.get();
            self.looks.set(looks.saturating_add(1));
            if self.changing.get() > 0 || looks >= SELDOM {
                self.looks.set(0);
                self.read(&second.queue);
            }
        }
    }

    /// Nothing has come: there is time for the second queue; and to rest, in a long wait.
    pub(crate) fn idle(&self, long: bool) {
        self.looks.set(self.looks.get().saturating_add(IDLE));
        if long {
            self.rest.set(LONG_REST);
        }
    }

    fn read(&self, queue: &Handle<fid_cq>) {
        let mut entries = [const { MaybeUninit::<fi_cq_data_entry>::uninit() }; BATCH];
        let queue = queue.as_ptr();
        // SAFETY: the queue is open, and has entries of this format; there is room for as many as
        // are asked for.
        let read =
            unsafe { ((*(*queue).ops).read)(queue, entries.as_mut_ptr().cast(), entries.len()) };
        match usize::try_from(read) {
            Ok(count) => {
                if count > 1 {
                    self.rest.set(REST * count as u32);
                }
                // M3: what the network has stored before is seen from here on.
                fence(Ordering::Acquire);
                for entry in &entries[..count.min(BATCH)] {
                    // SAFETY: the call has stored that many entries.
                    let entry = unsafe { entry.assume_init_ref() };
                    if entry.flags & FI_REMOTE_CQ_DATA != 0 {
                        self.tell(Completion::Told(entry.data));
                    } else {
                        self.ended(entry.op_context, true);
                    }
                }
            }
            Err(_) if read == -(FI_EAGAIN as isize) => {}
            Err(_) if read == -(FI_EAVAIL as isize) => self.take_error(queue),
            Err(_) => {
                self.note(format!("fi_cq_read: {}", self.library.error(read as i64)));
                self.broken.set(true);
                (0..self.known().len()).for_each(|to| self.lose(to));
            }
        }
    }

    /// Takes an operation that has failed from libfabric's queue, if there is one.
    fn take_error(&self, queue: *mut fid_cq) {
        // SAFETY: numbers and bare pointers, for which zeros are values: no room for more details.
        let mut entry = unsafe { MaybeUninit::<fi_cq_err_entry>::zeroed().assume_init() };
        // SAFETY: the queue is open; there is room for one entry.
        let read = unsafe { ((*(*queue).ops).readerr)(queue, &mut entry, 0) };
        if read != 1 {
            return;
        }
        let what = self.library.error(entry.err.into());
        self.note(format!(
            "an operation has failed: {what} ({})",
            entry.prov_errno
        ));
        if !self.ended(entry.op_context, false) {
            // It may be a put without a completion: of which rank, nothing tells.
            let open = self.known().iter().filter(|peer| peer.unconfirmed.get());
            open.for_each(|peer| self.fails(peer));
        }
    }

    pub(super) fn tell(&self, completion: Completion) {
        self.completions.borrow_mut().push_back(completion);
    }

    /// libfabric is done with the operation of this context. False if it is none of ours.
    fn ended(&self, context: *mut c_void, well: bool) -> bool {
        let Some((number, mut flight)) = self.slots.ended(context) else {
            return false;
        };
        if flight.kind == Kind::Change {
            self.changing.set(self.changing.get() - 1);
        }
        let (id, peer) = (flight.id, self.peer(flight.to));
        if well && flight.kind == Kind::Put && !peer.failed.get() {
            // E5.
            peer.credits.come_back();
        }
        match (well, flight.silent) {
            (true, true) => (),
            (false, true) => self.fails(peer),
            (true, false) => {
                let value = self.landed(number, &mut flight);
                self.tell(Completion::Done { id, value });
            }
            (false, false) => self.tell(Completion::Failed { id }),
        }
        self.slots.give_back(number);
        if let Some(buffer) = flight.buffer {
            self.pool.give_back(buffer);
        }
        true
    }
}
