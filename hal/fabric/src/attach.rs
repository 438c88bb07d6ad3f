//! Copies between processes of one host, which the system makes: *cross-memory attach*.
//!
//! A provider that reaches this host only (it has no `FI_REMOTE_COMM`) has peers whose memory the
//! system can load and store in one call, if both processes are the same user's. Large puts without
//! an immediate and all gets go that way: they are copied once, and need nothing of the target. A
//! rank that cannot attach to a peer uses libfabric.
//!
//! # Invariants
//! * A1. What was attached to is a rank's memory: the peer's process has shown random bytes there,
//!   which only that rank has told.
//! * A2. The addresses of a rank's memory are never used for anything else while its process lives
//!   (M4). So a late copy finds the memory, or nothing. Once a copy has failed, none is tried
//!   again.
//! * A3. The process is another one. Ranks that are threads of one process do not attach.
//!
//! # What is left
//! The system may give the number of a process that has ended to another one of the same user. A
//! copy that comes after that, but before any other copy has failed and before the hub has told the
//! loss, goes to the new process, if that has memory at the same random addresses. libfabric's
//! `shm` takes the same risk.

use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{Ordering, fence};

use crate::memory::Memory;
use crate::random::random;

/// Where a rank's memory can be attached to, and how to know it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) process: i32,
    pub(crate) start: u64,
    /// What stands in the last 8 bytes until the first confirmed put without data.
    pub(crate) proof: [u8; PROOF],
}

/// Bytes of a proof.
const PROOF: usize = 8;

impl Place {
    /// That of this process's `memory`, in whose last bytes the proof is stored.
    ///
    /// # Errors
    /// No random numbers.
    pub(crate) fn of(memory: &Memory) -> std::io::Result<Self> {
        let proof = random()?;
        memory.write(memory.len() - PROOF, &proof);
        Ok(Self {
            process: std::process::id() as i32,
            start: memory.start().as_ptr() as u64,
            proof,
        })
    }
}

/// A peer's memory that the system can reach.
#[derive(Debug)]
pub(crate) struct Attached {
    process: i32,
    start: u64,
    len: usize,
    /// A copy has failed.
    failed: Cell<bool>,
}

impl Attached {
    /// Attaches to the `len` bytes at `place`. None if they are not there, or may not be reached.
    pub(crate) fn new(place: &Place, len: usize) -> Option<Self> {
        let attached = Self {
            process: place.process,
            start: place.start,
            len,
            failed: Cell::new(false),
        };
        let mut proof = [0; PROOF];
        let found = attached.read(len - PROOF, &mut proof);
        (found && proof == place.proof).then_some(attached)
    }

    /// Stores `from` at `at`. False if not all of it could be stored.
    ///
    /// # Panics
    /// Unless the bytes lie inside.
    pub(crate) fn write(&self, at: usize, from: &[u8]) -> bool {
        let own = part(from.as_ptr().cast_mut().cast(), from.len());
        let peer = self.part(at, from.len());
        // M3: what was stored to own memory before is seen by the peer.
        fence(Ordering::Release);
        // SAFETY: the call loads the bytes of `from`. It stores to a process that has shown that it
        // is a rank's (A1), inside of its memory (`part`), where this rank's puts belong (A2); that
        // is not this process (A3).
        self.whole(from.len(), || unsafe {
            libc::process_vm_writev(self.process, &own, 1, &peer, 1, 0)
        })
    }

    /// Loads the bytes at `at`. False if not all of them could be loaded.
    ///
    /// # Panics
    /// Unless they lie inside.
    pub(crate) fn read(&self, at: usize, into: &mut [u8]) -> bool {
        let own = part(into.as_mut_ptr().cast(), into.len());
        let peer = self.part(at, into.len());
        // SAFETY: the call stores bytes to `into`, nowhere else.
        let whole = self.whole(into.len(), || unsafe {
            libc::process_vm_readv(self.process, &own, 1, &peer, 1, 0)
        });
        // M3: what the peer had stored before is seen from here on.
        fence(Ordering::Acquire);
        whole
    }

    /// Whether `copy` has copied all `len` bytes. Once one has not, none is tried (A2).
    fn whole(&self, len: usize, copy: impl FnOnce() -> isize) -> bool {
        let whole = !self.failed.get() && copy() == len as isize;
        self.failed.set(!whole);
        whole
    }

    /// The `len` bytes at `at`.
    fn part(&self, at: usize, len: usize) -> libc::iovec {
        let inside = self.len.checked_sub(at) >= Some(len);
        assert!(inside, "{len} bytes at {at} of a peer's {}", self.len);
        part((self.start + at as u64) as *mut c_void, len)
    }
}

fn part(start: *mut c_void, len: usize) -> libc::iovec {
    libc::iovec {
        iov_base: start,
        iov_len: len,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_copied_as_long_as_the_memory_is_there() {
        let memory = Memory::new(8192).unwrap();
        let place = Place::of(&memory).unwrap();
        // A3 does not matter: this thread does nothing else meanwhile.
        let attached = Attached::new(&place, memory.len()).unwrap();
        let sent: Vec<u8> = (0..200).collect();
        assert!(attached.write(4000, &sent));
        let (mut there, mut back) = ([0; 200], [0; 200]);
        memory.read(4000, &mut there);
        assert!(attached.read(4000, &mut back));
        assert_eq!((&there[..], &back[..]), (&sent[..], &sent[..]));
        drop(memory);
        // M4: nothing else comes to these addresses.
        let others: Vec<_> = (0..8).map(|_| Memory::new(8192)).collect();
        assert!(!attached.write(4000, &sent) && !attached.read(4000, &mut back));
        drop(others);
    }

    #[test]
    fn what_lies_outside_of_the_peers_memory_stops_the_rank() {
        const LEN: usize = 4096;
        let memory = Memory::new(2 * LEN).unwrap();
        let place = Place {
            proof: [0; PROOF],
            ..Place::of(&memory).unwrap()
        };
        let attached = Attached::new(&place, LEN).unwrap();
        let stops =
            |act: &dyn Fn()| std::panic::catch_unwind(std::panic::AssertUnwindSafe(act)).is_err();
        for (at, len) in [
            (LEN - 7, 8),
            (LEN, 1),
            (LEN + 1, 0),
            (usize::MAX, 8),
            (0, 4097),
        ] {
            let write = stops(&|| _ = attached.write(at, &vec![1; len]));
            let read = stops(&|| _ = attached.read(at, &mut vec![1; len]));
            assert!(write && read, "{at} {len}");
        }
        let mut behind = [1; 8];
        memory.read(LEN, &mut behind);
        assert_eq!(behind, [0; 8]);
        for (at, len) in [(LEN - 8, 8), (0, 4096)] {
            assert!(attached.write(at, &vec![1; len]) && attached.read(at, &mut vec![1; len]));
        }
    }

    #[test]
    fn what_does_not_show_its_proof_is_not_attached_to() {
        let memory = Memory::new(4096).unwrap();
        let place = Place::of(&memory).unwrap();
        assert!(Attached::new(&place, memory.len()).is_some());
        let [first, ..] = place.proof;
        memory.write(memory.len() - PROOF, &[!first]);
        assert!(Attached::new(&place, memory.len()).is_none());
        let nowhere = Place { start: 8, ..place };
        assert!(Attached::new(&nowhere, memory.len()).is_none());
    }
}
