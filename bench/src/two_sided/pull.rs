//! Local put, remote get: the receiver reads the sender's buffer.

use flagpost_hal::Machine;

use super::{Channel, FULL_AT};

impl<M: Machine> Channel<'_, M> {
    /// Lays a chunk out, and says so.
    pub(super) fn offer(&self, chunk: &[u8]) {
        self.await_room();
        let sent = self.sent.get();
        let next = sent.wrapping_add(1);
        self.machine.store_bytes(self.cell(self.own, sent), chunk);
        self.machine.drain();
        self.machine.store_u32(self.peer.plus(FULL_AT), next.into());
        self.sent.set(next);
    }

    /// Fetches a chunk of `len` bytes into the front of `buffer`.
    pub(super) fn fetch(&self, len: usize, buffer: &mut [u8]) {
        let received = self.received.get();
        let next = received.wrapping_add(1);
        let passed = |full: u32| (full as u16).wrapping_sub(next) <= u16::MAX / 2;
        self.poll(self.own.plus(FULL_AT), passed);
        if len > 0 {
            self.read(self.cell(self.peer, received), &mut buffer[..len]);
        }
        self.received.set(next);
        self.tell();
    }
}
