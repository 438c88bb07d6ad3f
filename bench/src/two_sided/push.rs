//! Remote put, local get: the sender writes the receiver's buffer.

use flagpost_hal::{Machine, Watch};

use super::{Channel, LINE, LINES_MAX};

/// Bytes of a cell's number, at its end.
const NUMBER: usize = size_of::<u32>();

impl<M: Machine> Channel<'_, M> {
    /// Sends a chunk, which with its number fits a cell.
    pub(super) fn push(&self, chunk: &[u8]) {
        self.await_room();
        let (sent, taken) = (self.sent.get(), self.received.get());
        let next = sent.wrapping_add(1);
        // Whole lines, which leave the write-combining buffer one by one, the one with the number
        // last.
        let mut lines = [0; LINE * LINES_MAX as usize];
        let len = whole(chunk.len());
        let number = u32::from(next) << 16 | u32::from(taken);
        lines[..chunk.len()].copy_from_slice(chunk);
        lines[len - NUMBER..len].copy_from_slice(&number.to_le_bytes());
        let at = self.tail(self.peer, sent, len);
        self.machine.store_bytes(at, &lines[..len]);
        self.sent.set(next);
        self.told.set(taken);
    }

    /// Receives a chunk of `len` bytes into the front of `buffer`.
    pub(super) fn take(&self, len: usize, buffer: &mut [u8]) {
        let received = self.received.get();
        let next = received.wrapping_add(1);
        let whole = whole(len);
        let at = |bytes| self.tail(self.own, received, bytes);
        let (front, last) = buffer[..whole].split_at_mut(whole - LINE);
        // The last line is polled as a whole: if the number is there, so is its payload.
        let number = loop {
            self.read(at(LINE), last);
            let word = last[LINE - NUMBER..].try_into().map(u32::from_le_bytes);
            let word = word.expect("4 bytes");
            if (word >> 16) as u16 == next {
                break word;
            }
            self.machine.relax(&[Watch {
                at: at(NUMBER),
                seen: word,
            }]);
        };
        self.machine.acquire();
        if !front.is_empty() {
            self.read(at(whole), front);
        }
        self.received.set(next);
        self.learn(number as u16);
        let due = next.wrapping_sub(self.told.get());
        if due > self.shape.cells / 2 {
            self.tell();
        }
    }
}

/// Bytes of the lines that a chunk and its number take.
const fn whole(chunk: usize) -> usize {
    (chunk + NUMBER).next_multiple_of(LINE)
}
