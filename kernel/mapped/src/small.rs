//! [`SmallMail`]: mail for a few ranks where memory is dear. All ranks share one ring of words.
//!
//! A notified put stores its data in their place, and then a word that announces them
//! ([`announced`](flagpost_loadstore::announced)). No data travel in entries. So nothing is kept,
//! nothing is in flight, and a flush waits for no call of the target. Its price: a producer takes
//! the owner's lock for each notification. Where caches are not coherent, data pass them by.
//!
//! | | [`LineMail`](crate::LineMail) | [`SmallMail`] |
//! |---|---|---|
//! | a ring | per pair, of lines | one per rank, of words |
//! | a notified put takes | no lock | the owner's lock, or an atomic operation |
//! | short data are stored | in the ring, and later in their place | in their place |
//! | bytes of the ring, two ranks | 1,120 and more | 128 and two lines |

use flagpost_hal::Machine;
use flagpost_link::{Arrival, Op, Rank, Refusal, Wants};
use flagpost_loadstore::{
    Atomics, Base, Mail, Ring, announced::Announced, layout::Parts, mail::Plan, ring::FIRST,
};

/// Bytes of an entry: the word that announces data.
const ENTRY: u32 = 4;

/// Entries, unless asked for otherwise.
const ENTRIES: u32 = 32;

/// Notifications in one ring of words, after their data.
///
/// `PEERS` is of how many peers something is remembered: from 1 to 64. More ranks share a place.
#[derive(Debug)]
pub struct SmallMail<M: Machine, A: Atomics<M>, const PEERS: usize = 2> {
    base: Base<M, A>,
    ring: Announced<PEERS>,
}

impl<M: Machine, A: Atomics<M>, const PEERS: usize> SmallMail<M, A, PEERS> {
    /// The ring, with message buffers of `buffer` bytes.
    const fn planned(buffer: usize, asked: Option<Ring>) -> Plan {
        let entries = match asked {
            Some(ring) => ring.entries(),
            None => ENTRIES,
        };
        let parts = Parts {
            entry: ENTRY,
            bells: 0,
            behind: 0,
        };
        Plan {
            ring: Ring::Shared { entries },
            parts,
            buffer,
        }
    }

    /// Bytes of each rank's memory that the link takes for itself, with message buffers of `buffer`
    /// bytes. Windows lie after them.
    ///
    /// # Example
    /// ```
    /// use flagpost_mapped::{SmallMail, UnderLock};
    /// use flagpost_sim::SimCore;
    ///
    /// type Link = SmallMail<SimCore, UnderLock>;
    ///
    /// /// Bytes of a core's region, with 1 KiB for windows.
    /// const REGION: usize = Link::fixed_bytes(2, 0) + 1024;
    /// assert_eq!(REGION, 1504);
    /// # use {flagpost_link::Session, flagpost_mapped::Small, flagpost_sim::{Config, Sim}};
    /// # for (bytes, fits) in [(REGION - 1024, true), (REGION - 1056, false)] {
    /// #     let memory_size = bytes as u32;
    /// #     let chip = Config { cores: 2, buffer_size: 0, memory_size, ..Config::default() };
    /// #     let start = |core| Small::start(core, Session::FIRST).map(drop);
    /// #     assert_eq!(Sim::new(chip).run(start).is_done(), fits);
    /// # }
    /// ```
    pub const fn fixed_bytes(ranks: u16, buffer: usize) -> usize {
        let plan = Self::planned(buffer, None);
        plan.fixed_bytes(M::LINE, ranks, A::NATIVE)
    }
}

impl<M: Machine, A: Atomics<M>, const PEERS: usize> Mail for SmallMail<M, A, PEERS> {
    type Machine = M;
    type Atomics = A;
    const COHERENT: bool = M::COHERENT;
    const PEERS: usize = PEERS;

    fn plan(machine: &M, asked: Option<Ring>) -> Plan {
        Self::planned(machine.message_buffer_size(), asked)
    }

    #[inline(always)]
    fn new(base: Base<M, A>) -> Self {
        let ring = Announced::nothing();
        Self { base, ring }
    }

    #[inline(always)]
    fn base(&self) -> &Base<M, A> {
        &self.base
    }

    fn clear_rings(&self) {
        self.base.clear_tail();
        self.base.empty_rings(ENTRY, FIRST);
    }

    fn send(
        &self,
        to: Rank,
        data: (usize, &[u8]),
        immediate: u32,
        _: bool,
        _: &Op,
    ) -> Result<(), Refusal> {
        self.base.region_of(to)?;
        self.ring.send(self, to, data, immediate, ENTRY)
    }

    fn take(&self, _: Wants) -> Option<Arrival> {
        self.ring.take(&self.base, ENTRY)
    }

    fn must_drain(&self) -> bool {
        true
    }

    fn has_settled(&self, _: bool) -> bool {
        self.base.finish_puts();
        true
    }

    fn placed(&self, _: Option<Rank>) -> Result<(), Refusal> {
        Ok(())
    }

    fn read_own(&self, start: usize, into: &mut [u8]) {
        self.base.machine.read(self.base.own(start), into);
    }
}
