//! Match vectors and completion counters: the synchronization words of [PSCW-SCC]. A post sets the
//! bit of the target in the origin's vector; a completion counts down the target's counter. Several
//! ranks share a byte, so each change is made under the owner's lock.
//!
//! # Guarantee
//! G1. A post sets one bit and changes no other, even if other ranks post or reset at the same
//! time.
//! G2. A completion counts once.
//!
//! # Memory layout (per window, in each rank's region)
//! ```text
//!   0                                    4 * ceil(p / 32)
//!   ┌───────────────────────────────────┬──────────────────────┐
//!   │ match vector: bit t = rank t has  │ completion counter   │
//!   │ posted to this rank               │ (u32)                │
//!   └───────────────────────────────────┴──────────────────────┘
//!     written under this rank's lock      set by this rank; counted down under its lock
//! ```
//! All of it is read and written past the caches. A cached copy of the vector's line would be
//! written back over a newer post ([PSCW-SCC] IV-B2).
//!
//! # Steps
//! | call       | core   | memory actions, in order                                        |
//! |------------|--------|-----------------------------------------------------------------|
//! | `expect`   | target | store its counter                                               |
//! | `post`     | target | lock(origin), acquire; load, store a byte; drain; unlock        |
//! | `posted`   | origin | load a word of its vector; acquire if a bit is set              |
//! | `retire`   | origin | lock(self), acquire; load, store a byte; drain; unlock          |
//! | `complete` | origin | lock(target), acquire; load, store the counter; drain; unlock   |
//! | `missing`  | target | load its counter; acquire if 0                                  |
//!
//! # Invariants
//! I1. The vector and, between `post` and `wait`, the counter change only under the owner's lock:
//!     eight ranks share a byte of the vector.
//! I2. An origin counts down only after `retire`, whose lock the `post` it answers has held until
//!     its drain. So it finds the counter that was set before that post.
//!
//! # Source
//! [PSCW-SCC] IV-B, Algorithms 1 and 2. We differ: the reset of a bit in `COMPLETE` takes the lock
//! as well. As printed it does not, and then it loses a neighbour's post that falls between its
//! load and its store.
//!
//! [PSCW-SCC]: crate#sources

use flagpost_hal::{Address, Held, UncachedMemory as _};
use flagpost_link::{Key, Link, Rank, Refusal, VectorLink};
use flagpost_points::{Guard, Site};

use crate::{LoadStore, Mail};

impl<W: Mail, const PIECES: usize> LoadStore<W, PIECES> {
    /// Bytes of a match vector: whole words.
    fn vector_bytes(&self) -> usize {
        usize::from(self.size()).div_ceil(32).saturating_mul(4)
    }

    fn counter_offset(&self, sync: Key) -> usize {
        sync.start(Self::LINE).saturating_add(self.vector_bytes())
    }

    /// Sets or clears bit `bit` of `owner`'s vector, under `owner`'s lock.
    fn write_bit(
        &self,
        sync: Key,
        owner: Rank,
        bit: Rank,
        set: bool,
        [lock, drain]: [Site; 2],
    ) -> Result<(), Refusal> {
        let byte = sync
            .start(Self::LINE)
            .saturating_add(usize::from(bit.get() >> 3));
        let mask = 1_u8.wrapping_shl(u32::from(bit.get() & 7));
        let at = self.base().region_of(owner)?.at(byte);
        let held = self.lock_telling(owner, lock)?;
        let old = self.machine().load_u8(at);
        let new = if set { old | mask } else { old & !mask };
        self.machine().store_u8(at, new);
        self.base().unlock(held, drain);
        self.base().told(owner);
        Ok(())
    }

    /// Takes the lock of a rank that is to be told something.
    fn lock_telling(&self, to: Rank, lock: Site) -> Result<Guard<Held<'_, W::Machine>>, Refusal> {
        point!(PLACE "D2 of `deferred`: the owner waits for its word":
            "loadstore.match_vector.told", self.mail.before_telling(Some(to))?);
        self.base().lock(to, lock)
    }

    fn own_counter(&self, sync: Key) -> Address {
        self.base().own(self.counter_offset(sync))
    }
}

impl<W: Mail, const PIECES: usize> VectorLink for LoadStore<W, PIECES> {
    fn sync_bytes(&self) -> usize {
        self.vector_bytes().saturating_add(4)
    }

    fn reset(&self, sync: Key) -> Result<(), Refusal> {
        self.base()
            .check(sync.start(Self::LINE), self.sync_bytes())?;
        for word in 0..self.sync_bytes() >> 2 {
            let offset = sync
                .start(Self::LINE)
                .saturating_add(word.saturating_mul(4));
            self.machine().store_u32(self.base().own(offset), 0);
        }
        Ok(())
    }

    fn post(&self, sync: Key, origin: Rank) -> Result<(), Refusal> {
        let sites = [
            site!(LOCK "nobody else changes the word": "loadstore.match_vector.post.lock"),
            site!(DRAIN "earlier steps come before the post": "loadstore.match_vector.post.drain"),
        ];
        self.write_bit(sync, origin, self.rank(), true, sites)
    }

    fn posted(&self, sync: Key, word: u16) -> u32 {
        let offset = usize::from(word).saturating_mul(4);
        let sites = [
            site!(ORDER "loaded before the acquire": "loadstore.match_vector.posted.poll<acquire"),
            site!(ACQUIRE "accesses come after the post": "loadstore.match_vector.posted.acquire"),
        ];
        let at = self
            .base()
            .own(sync.start(Self::LINE).saturating_add(offset));
        let bits = self.base().poll_for(at, |bits| bits != 0, sites);
        // Another one's bit may be waited for, though some are there.
        if bits != 0 {
            self.base().polled.note(at, bits);
        }
        bits
    }

    fn retire(&self, sync: Key, target: Rank) -> Result<(), Refusal> {
        let sites = [
            site!(LOCK "nobody else changes the word": "loadstore.match_vector.retire.lock"),
            site!(DRAIN "earlier steps stay earlier": "loadstore.match_vector.retire.drain"),
        ];
        self.write_bit(sync, self.rank(), target, false, sites)
    }

    fn expect(&self, sync: Key, origins: u16) {
        self.machine()
            .store_u32(self.own_counter(sync), u32::from(origins));
        // No drain is needed. An origin counts down only after it has cleared our bit under its own
        // lock, which our post holds until it has drained: this store is in memory by then.
    }

    fn complete(&self, sync: Key, target: Rank) -> Result<(), Refusal> {
        let at = self.base().region_of(target)?.at(self.counter_offset(sync));
        let site = site!(LOCK "nobody else changes it": "loadstore.match_vector.complete.lock");
        let held = self.lock_telling(target, site)?;
        let left = self.machine().load_u32(at);
        // An origin that is not expected would wrap the counter round: it is left at 0.
        self.machine().store_u32(at, left.saturating_sub(1));
        let site = site!(DRAIN "the next holder loads it": "loadstore.match_vector.complete.drain");
        self.base().unlock(held, site);
        self.base().told(target);
        Ok(())
    }

    fn missing(&self, sync: Key) -> u32 {
        let sites = [
            site!(ORDER "loaded before the acquire": "loadstore.match_vector.missing.poll<acquire"),
            site!(ACQUIRE "data come after the completion":
                "loadstore.match_vector.missing.acquire"),
        ];
        self.base()
            .poll_for(self.own_counter(sync), |left| left == 0, sites)
    }
}
