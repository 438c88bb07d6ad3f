//! Start-up: the fixed part of a rank's memory is laid out, cleared and announced.
//!
//! A core may be reset alone, and begin a session while its peers are in the one before. So a rank
//! starts in two steps. First it says that it has arrived: it stores nothing of an earlier session
//! any more. When all ranks have arrived, it clears its words and says that it is ready: then its
//! peers may store there. A peer's stores of the session before are cleared with the rest.
//!
//! # Steps
//! ```text
//!   start     write back dirty lines, build = this image's, drain, arrived = session
//!   open      all have arrived, and were built like this one:
//!             free the register, clear the words, drain, ready = session
//! ```
//! `open` does not wait. It is tried at the end of `start`, and in each `connect` until it is done.

use core::cell::Cell;

use flagpost_hal::{
    Coherence as _, CoreId, MessageBuffer as _, Region, TestAndSet as _, Topology as _,
    UncachedMemory as _,
};
use flagpost_link::{Heap, Key, Link as _, Rank, Refusal, Session};

use crate::{
    Atomics as _, Base, LoadStore, Mail, Ring,
    build::BUILD,
    layout::{ARRIVED, Layout, UPDATE},
    ring::PAIRS,
};

impl<W: Mail, const PIECES: usize> LoadStore<W, PIECES> {
    /// Pieces of memory start at multiples of this: of a line, and of the most that one update
    /// changes.
    const ALIGN: usize = if Self::LINE > UPDATE {
        Self::LINE
    } else {
        UPDATE
    };

    /// Announces that this rank begins `session`. Its peers may access it when all ranks have done
    /// so, and this rank has found that out: here, or in
    /// [`connect`](flagpost_link::Access::connect). Does not wait for anybody.
    ///
    /// # Errors
    /// [`Refusal::NoMemory`] if the region cannot hold the fixed part for this many cores;
    /// [`Refusal::BadSession`] for that of the last link in this memory, in which nothing has
    /// changed then.
    #[inline]
    pub fn start(machine: W::Machine, session: Session) -> Result<Self, Refusal> {
        Self::start_with_ring(machine, session, None)
    }

    /// [`start`](Self::start) with such rings: for tests, which make them small. The same on all
    /// ranks.
    ///
    /// # Errors
    /// [`Refusal::BadRing`] unless the number of entries is a power of two from 1 to 32,768, and
    /// for a ring per pair of more than [`Mail::PEERS`] ranks, or with bells of more than 128
    /// entries; [`Refusal::NoMemory`]; [`Refusal::BadSession`].
    // The stack that it takes is free again when the program runs.
    #[doc(hidden)]
    #[inline(never)]
    pub fn start_with_ring(
        machine: W::Machine,
        session: Session,
        ring: Option<Ring>,
    ) -> Result<Self, Refusal> {
        const { assert!(W::PEERS > 0 && W::PEERS <= PAIRS, "PEERS: from 1 to 64") };
        // Sums of the layout cannot overflow then.
        const { assert!(Self::LINE.is_power_of_two() && Self::LINE <= 256) };
        if let Some(ring) = ring {
            ring.check(machine.cores(), W::PEERS)?;
        }
        let plan = W::plan(&machine, ring);
        let layout = plan.layout(Self::LINE, machine.cores(), W::Atomics::NATIVE);
        if let Some(missing @ 1..) = (layout.end as usize).checked_sub(machine.memory_size()) {
            return Err(Refusal::NoMemory { missing });
        }
        // Peers of that session would take this rank for started, and may use what is cleared here.
        let arrived = Region::memory(machine.core()).at(ARRIVED);
        if machine.load_u32(arrived) == session.get() {
            return Err(Refusal::BadSession { session });
        }
        Ok(Self::begin(machine, session, layout))
    }

    /// The newest session that a rank has begun in this memory with a link like this; none where it
    /// was cleared, or holds anything. A rank that waits for its peers at the start of an older one
    /// does so in vain: they do not come. Reads two words of each rank.
    pub fn newest_session(machine: &W::Machine) -> Option<Session> {
        let begun = |core| Self::begun(machine, CoreId::new(core)).map_or(0, Session::get);
        Session::new((0..machine.cores()).map(begun).max()?)
    }

    /// The session that this rank begins next, after a reset or after it has waited in vain: the
    /// newest that a peer has begun, or the one after its own last. It is
    /// [the first](Session::FIRST) in memory in which no link like this has started.
    pub fn next_session(machine: &W::Machine) -> Session {
        let own = Self::begun(machine, machine.core());
        let next = own.map_or(Session::FIRST, Session::next);
        match Self::newest_session(machine) {
            Some(newest) if newest.get() > next.get() && Some(newest) != own => newest,
            _ => next,
        }
    }

    /// The last session that `core` has begun. None if its memory holds anything else, which does
    /// not have this build.
    fn begun(machine: &W::Machine, core: CoreId) -> Option<Session> {
        let layout = W::plan(machine, None).layout(Self::LINE, machine.cores(), W::Atomics::NATIVE);
        let memory = Region::memory(core);
        let session = machine.load_u32(memory.at(ARRIVED));
        // A rank that loads the build too early finds none, and the session when it asks again.
        let is_alike = machine.load_u32(memory.at(BUILD)) == Self::build_of(machine, &layout);
        Session::new(session).filter(|_| is_alike)
    }

    /// The same with such a layout, for which there is room.
    fn begin(machine: W::Machine, session: Session, layout: Layout) -> Self {
        let (memory, buffer) = (machine.memory_size(), machine.message_buffer_size());
        let (unit, lines) = (Key::unit(Self::LINE), memory & !Self::LINE.wrapping_sub(1));
        let link = Self {
            mail: W::new(Base::new(machine, layout)),
            memory: Heap::new(unit, layout.end as usize, lines, Self::ALIGN),
            buffer: Heap::new(1, layout.buffer_end as usize, buffer, Self::LINE),
            session: session.get(),
            missing: Cell::new(Some(Rank::new(0))),
        };
        let (base, machine) = (link.base(), link.machine());
        order!("old lines leave before peers store here": "loadstore.start.write_back<arrived",
            point!(WRITE_BACK "else an earlier program's dirty lines travel over this world":
                "loadstore.start.write_back", machine.write_back(&[base.lines(0, memory)])),
            {
                machine.store_u32(base.own(BUILD), Self::build_of(machine, &base.layout));
                point!(DRAIN "stores of an earlier session come before a peer clears its words":
                    "loadstore.start.leave", machine.drain());
                machine.store_u32(base.own(ARRIVED), link.session);
            }
        );
        // Else `connect` tries again.
        let _ = link.open();
        link
    }

    /// Once all ranks have begun this session: brings this rank's words into their initial state,
    /// and announces that it is ready. Nothing if that is done.
    ///
    /// # Errors
    /// [`Refusal::NotReady`], with a rank that has not begun this session;
    /// [`Refusal::OtherBuild`].
    pub(crate) fn open(&self) -> Result<(), Refusal> {
        let Some(first) = self.missing.get() else {
            return Ok(());
        };
        point!(WAIT "what peers have stored in an earlier session is cleared here":
        "loadstore.start.meet", {
            self.all_arrived(first)?;
            // Builds are looked at after their ranks have arrived.
            self.machine().acquire();
        });
        self.all_alike()?;
        let ready = self.base().own(self.base().layout.ready as usize);
        order!("peers lock the register after `ready`": "loadstore.start.release<ready",
        point!(LOCK "the state of the register is undefined":
            "loadstore.start.release", self.machine().release_at_start(self.machine().core())),
        order!("no peer stores to words that are cleared later": "loadstore.start.clear<ready",
            {
                self.mail.clear_rings();
                self.clear_slots();
            },
            {
                point!(DRAIN "no peer finds words of an earlier run":
                    "loadstore.start.drain", self.machine().drain());
                self.machine().store_u32(ready, self.session);
            }
        ));
        self.missing.set(None);
        Ok(())
    }

    /// `Ok` if all ranks have begun this session. Those before `first` have.
    ///
    /// # Errors
    /// [`Refusal::NotReady`], with the first rank that has not.
    fn all_arrived(&self, first: Rank) -> Result<(), Refusal> {
        for rank in (first.get()..self.machine().cores()).map(Rank::new) {
            let at = Region::memory(CoreId::new(rank.get())).at(ARRIVED);
            let seen = self.machine().load_u32(at);
            if seen != self.session {
                self.missing.set(Some(rank));
                self.base().polled.note(at, seen);
                return Err(Refusal::NotReady(rank));
            }
            self.base().polled.note_arrived(at, seen);
        }
        Ok(())
    }
}
