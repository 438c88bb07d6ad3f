//! The chip's state as a digest: everything that decides what accesses will return, and what
//! oracles will say, from here on.
//!
//! Tickets and stamps are absolute numbers that differ between paths to one state, so what they
//! *say* is digested instead: which bytes of a cached line are stale, and which old values a load
//! may still return. Orders that decide nothing (of lines in the table, of parcels that may
//! overtake each other) are left out by xor.

use super::{Machine, share_a_word};
use crate::digest::Digest;
use crate::mask::{WORDS, bits};

impl Machine {
    /// Adds the chip's state to `digest`.
    pub(crate) fn digest(&mut self, digest: &mut Digest, fills: bool) {
        digest.long(self.memory.digest());
        let lines = self.caches.all().iter().map(|cached| {
            let mut one = Digest::new(1);
            one.add(u64::from(cached.core) << 32 | u64::from(cached.line));
            one.add(cached.dirty.into());
            one.bytes(&cached.bytes[..self.shape.line() as usize]);
            one.add(cached.older(self.memory.stamps(cached.line)));
            one.add(cached.stored);
            one.value()
        });
        digest.long(lines.fold(0, |all, one| all ^ one));
        for (number, core) in self.cores.iter().enumerate() {
            digest.add(core.combining.mask);
            // An empty buffer holds bytes of no line, whatever it held last.
            if core.combining.mask != 0 {
                digest.add(u64::from(core.combining.line));
            }
            for byte in bits(core.combining.mask) {
                digest.add(core.combining.bytes[byte].into());
            }
            let parcels = core.stores.iter().enumerate().map(|(place, parcel)| {
                let mut one = Digest::new(2);
                let older = core.stores[..place].iter();
                one.add(older.filter(|older| share_a_word(older, parcel)).count() as u64);
                one.add(u64::from(parcel.line) << 1 | u64::from(parcel.write_back));
                one.add(parcel.cached.into());
                one.add(parcel.mask);
                one.add(parcel.intended);
                one.bytes(&parcel.bytes[..self.shape.line() as usize]);
                one.value()
            });
            digest.long(parcels.fold(0, |all, one| all ^ one));
            let early = &core.early;
            let old = self
                .memory
                .changes_since(early.since())
                .map(|(line, index)| {
                    let before = self
                        .memory
                        .before(number as u16, line, index, early.since());
                    let Some((value, changed)) = before else {
                        return 0;
                    };
                    let word = line * WORDS as u32 + index as u32;
                    let mut one = Digest::new(3);
                    one.add(u64::from(word) << 32 | u64::from(value));
                    one.add(early.answers(word, changed).into());
                    one.value()
                });
            digest.long(old.fold(0, |all, one| all ^ one));
        }
        for flags in [&self.registers, &self.bells] {
            for chunk in flags.chunks(64) {
                digest.add(
                    chunk
                        .iter()
                        .fold(0, |bits, &flag| bits << 1 | u64::from(flag)),
                );
            }
        }
        self.digest_network(digest);
        if fills {
            let dropped = self.dropped.iter().map(|&(core, line)| {
                let mut one = Digest::new(4);
                one.add(u64::from(core) << 32 | u64::from(line));
                one.value()
            });
            digest.long(dropped.fold(0, |all, one| all ^ one));
        }
    }
}
