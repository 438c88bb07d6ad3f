//! Start-up: the fixed part of a rank's memory is laid out, cleared and announced.
//!
//! A core may be reset alone, and begin a session while its peers are in the one before. So a rank
//! starts in two steps. First it says that it has arrived: it stores nothing of an earlier session
//! any more. When all ranks have arrived, it clears its words and says that it is ready: then its
//! peers may store there. What a peer has stored in the session before is cleared with the rest.
//!
//! # Steps
//! ```text
//!   start     write back dirty lines, drain, arrived = session
//!   open      all have arrived: free the register, clear the words, drain, ready = session
//! ```
//! `open` does not wait. It is tried at the end of `start`, and in each `connect` until it is done.

use core::{cell::Cell, marker::PhantomData};

use flagpost_hal::{CoreId, Machine, NativeAtomics, Records, Region};
use flagpost_link::{Heap, Rank, Refusal, Session, order, point};

use crate::{
    Atomics, Mapped, Native,
    deferred::Deferred,
    layout::{Layout, PAIRS},
    mail::{
        bells::Bells,
        line, pairs,
        peer::Peer,
        records::{self, FEW, Facing},
        ring::Ring,
    },
    words::{cells::UPDATE, poll::Polled},
};

impl<M: Machine> Mapped<M> {
    /// Announces that this rank begins `session`. Its peers may access it when all ranks have done
    /// so, and this rank has found that out: here, or in
    /// [`connect`](flagpost_link::Access::connect). Does not wait for anybody.
    ///
    /// # Errors
    /// [`Refusal::NoMemory`] if the region cannot hold the fixed part for this many cores;
    /// [`Refusal::BadSession`] for that of the last link in this memory, in which nothing has
    /// changed then.
    pub fn start(machine: M, session: Session) -> Result<Self, Refusal> {
        let ring = Self::default_ring(&machine);
        Self::start_with_ring(machine, session, ring)
    }

    /// [`start`](Self::start) with other rings than the default: more lines for slow consumers,
    /// fewer where memory is dear. The same on all ranks.
    ///
    /// # Errors
    /// [`Refusal::BadRing`] unless the number of entries is a power of two from 1 to 32,768, and
    /// for a ring per pair of more than 64 ranks, or with bells of more than 128 entries;
    /// [`Refusal::NoMemory`]; [`Refusal::BadSession`].
    pub fn start_with_ring(machine: M, session: Session, ring: Ring) -> Result<Self, Refusal> {
        Self::begin(machine, session, ring)
    }
}

impl<M: Machine + NativeAtomics + Records> Mapped<M, Native> {
    /// [`start`](Mapped::start), or [`start_with_ring`](Mapped::start_with_ring) with such rings,
    /// as a link that changes words by the machine's atomic operations. On all ranks alike.
    ///
    /// # Errors
    /// [`Refusal::NoMemory`] if the region cannot hold the fixed part for this many cores;
    /// [`Refusal::BadRing`] for a ring that [`start_with_ring`](Mapped::start_with_ring) refuses;
    /// [`Refusal::BadSession`].
    pub fn start_native(machine: M, session: Session, ring: Option<Ring>) -> Result<Self, Refusal> {
        let ring = ring.unwrap_or(Self::default_ring(&machine));
        Self::begin(machine, session, ring)
    }
}

impl<M: Machine, A: Atomics<M>, const PEERS: usize, const PIECES: usize>
    Mapped<M, A, PEERS, PIECES>
{
    /// [`start`](Mapped::start), or [`start_with_ring`](Mapped::start_with_ring) with such rings,
    /// as a link whose tables have the [sizes](Mapped#sizes) that its type names. On all ranks
    /// alike.
    ///
    /// # Errors
    /// [`Refusal::NoMemory`] if the region cannot hold the fixed part for this many cores;
    /// [`Refusal::BadRing`] for a ring that [`start_with_ring`](Mapped::start_with_ring) refuses,
    /// and for a ring per pair of more than `PEERS` ranks; [`Refusal::BadSession`].
    pub fn start_sized(machine: M, session: Session, ring: Option<Ring>) -> Result<Self, Refusal> {
        let () = const { assert!(PEERS > 0 && PEERS <= PAIRS, "PEERS: from 1 to 64") };
        let ring = ring.unwrap_or(Self::default_ring(&machine));
        Self::begin(machine, session, ring)
    }

    // Sums of the layout cannot overflow then; and entries lie at multiples of their size.
    const LINE_FITS: () =
        assert!(M::LINE.is_power_of_two() && M::LINE <= 256 && (M::LINE >= 32 || !M::COHERENT));

    /// What pieces of memory start at multiples of: lines, and what one update may change.
    const ALIGN: u32 = if M::LINE as u32 > UPDATE {
        M::LINE as u32
    } else {
        UPDATE
    };

    fn default_ring(machine: &M) -> Ring {
        let (ranks, buffer) = (machine.cores(), Self::buffer_for_rings(machine));
        Ring::for_ranks(ranks, buffer, Self::ENTRY, Self::RECORDS).for_peers(ranks, PEERS)
    }

    /// Bytes of the message buffers that rings may lie in.
    fn buffer_for_rings(machine: &M) -> u32 {
        if M::COHERENT {
            0
        } else {
            machine.message_buffer_size()
        }
    }

    /// See [`Mapped::start_with_ring`].
    fn begin(machine: M, session: Session, ring: Ring) -> Result<Self, Refusal> {
        let () = Self::LINE_FITS;
        ring.check(machine.cores(), PEERS)?;
        let ring = match ring {
            Ring::Bells { entries } if M::COHERENT => Ring::Pairs { entries },
            _ => ring,
        };
        let (memory, buffer) = (machine.memory_size(), machine.message_buffer_size());
        let for_rings = match ring {
            // Atomic operations are for words of memory.
            Ring::Shared { .. } if A::NATIVE => 0,
            _ => Self::buffer_for_rings(&machine),
        };
        let layout = Layout::new(
            (M::LINE as u32, Self::RECORDS),
            Self::ENTRY,
            machine.cores(),
            ring,
            for_rings,
        );
        let free = layout.end;
        if free > memory {
            let missing = free.saturating_sub(memory);
            return Err(Refusal::NoMemory { missing });
        }
        // Peers of that session would take this rank for started, and may use what is cleared here.
        let arrived = Region::memory(machine.core()).at(layout.arrived);
        if machine.load_u32(arrived) == session.get() {
            return Err(Refusal::BadSession { session });
        }
        let most_inline = match M::COHERENT {
            true if A::NATIVE => records::DATA,
            true => 0,
            false if layout.in_buffer && M::LINE == 32 => pairs::most_inline(ring.entries()),
            false => line::DATA,
        };
        let link = Self {
            machine,
            atomics: PhantomData,
            layout,
            polled: Polled::new(),
            peers: [const { Peer::new() }; PEERS],
            bells: Bells::new(),
            turn: Cell::new(Rank::new(0)),
            sender: Cell::new(Rank::new(0)),
            at_once: Cell::new(layout.faces),
            deferred: Deferred::new(),
            facing: [const { Facing::new() }; FEW],
            most_inline,
            under_way: Cell::new(0),
            unordered: Cell::new(false),
            memory: Heap::new(free, memory, Self::ALIGN),
            buffer: Heap::new(layout.buffer_end, buffer, M::LINE as u32),
            session: session.get(),
            missing: Cell::new(Some(Rank::new(0))),
        };
        link.take_turns();
        order!(
            "mapped.start.write_back<arrived",
            // WRITE BACK: the cache may hold dirty lines of an earlier program or world in this
            // memory. One that is evicted later would travel over words and windows of this one.
            point!(
                "mapped.start.write_back",
                link.machine
                    .write_back(&[link.lines(0, link.machine.memory_size())])
            ),
            {
                // DRAIN: what this rank has stored in an earlier session is in memory before a peer
                // clears its own.
                point!("mapped.start.leave", link.machine.drain());
                link.machine.store_u32(arrived, link.session);
            }
        );
        match link.open() {
            Ok(()) | Err(Refusal::NotReady(_)) => Ok(link),
            Err(refusal) => Err(refusal),
        }
    }

    /// Once all ranks have begun this session: brings this rank's words into their initial state,
    /// and announces that it is ready. Nothing if that is done.
    ///
    /// # Errors
    /// [`Refusal::NotReady`], with a rank that has not begun this session.
    pub(crate) fn open(&self) -> Result<(), Refusal> {
        let Some(first) = self.missing.get() else {
            return Ok(());
        };
        // ORDER: what peers have stored in an earlier session is cleared here.
        point!("mapped.start.meet", self.all_arrived(first)?);
        let ready = self.own(self.layout.ready);
        order!(
            "mapped.start.release<ready",
            // RELEASE: the register's state is undefined; a peer that knew us to be up might hold
            // it.
            point!(
                "mapped.start.release",
                self.machine.release_at_start(self.machine.core())
            ),
            order!(
                "mapped.start.clear<ready",
                {
                    self.clear_rings()?;
                    if self.layout.faces {
                        self.place_facing();
                    }
                    self.clear_slots();
                },
                {
                    // DRAIN: before `ready`: no peer may find words of an earlier run.
                    point!("mapped.start.drain", self.machine.drain());
                    self.machine.store_u32(ready, self.session);
                }
            )
        );
        self.missing.set(None);
        Ok(())
    }

    /// Whether all ranks have begun this session. Those before `first` have.
    ///
    /// # Errors
    /// [`Refusal::NotReady`], with the first rank that has not.
    fn all_arrived(&self, first: Rank) -> Result<(), Refusal> {
        for rank in (first.get()..self.machine.cores()).map(Rank::new) {
            let at = Region::memory(CoreId::new(rank.get())).at(self.layout.arrived);
            let seen = self.machine.load_u32(at);
            if seen != self.session {
                self.missing.set(Some(rank));
                self.polled.note(at, seen);
                return Err(Refusal::NotReady(rank));
            }
            self.polled.note_arrived(at, seen);
        }
        Ok(())
    }
}
