//! A core's place among the others, its clock, and how it waits.

use core::{fmt, panic::Location};

use crate::{Address, CachedMemory, Coherence, CoreId, Expected, TestAndSet, UncachedMemory};

/// On-chip message buffers: see [`Kind::MessageBuffer`](crate::Kind).
pub trait MessageBuffer {
    /// Bytes of each core's buffer; 0 if the machine has none.
    fn message_buffer_size(&self) -> usize;
}

/// The number of cores, and the number of this one.
pub trait Topology {
    /// True if [`called`](Self::called) does anything.
    const LISTENS: bool = false;

    /// The number of cores of the machine; at least 1.
    fn cores(&self) -> u16;

    /// The core that this handle belongs to.
    fn core(&self) -> CoreId;

    /// Bytes of shared memory of [`Kind::Memory`](crate::Kind) that each core owns.
    fn memory_size(&self) -> usize;

    /// The program has called Flagpost at `place`. For machines that give an account of a run; the
    /// default ignores it.
    #[inline(always)]
    fn called(&self, place: &'static Location<'static>) {
        let _ = place;
    }

    /// The same of a call that tells other cores nothing.
    #[inline(always)]
    fn looks(&self, place: &'static Location<'static>) {
        self.called(place);
    }

    /// The program starts a request for `len` bytes at `at` of this core's, reads them, or ends the
    /// request: for machines that tell of a read before the wait ([`Early`](crate::Early)). The
    /// default ignores it.
    #[inline(always)]
    fn expected(&self, at: Address, len: usize, what: Expected<'_>) {
        let _ = (at, len, what);
    }

    /// A core that will not answer any more, if there is one: its process is gone, say. Waiting
    /// loops ask between two polls. The default is for machines whose cores do not go.
    fn lost(&self) -> Option<CoreId> {
        None
    }

    /// True if `core` will not answer any more. Others may be lost after the one that
    /// [`lost`](Self::lost) names; the default does not know of them.
    fn is_lost(&self, core: CoreId) -> bool {
        self.lost() == Some(core)
    }

    /// True if `core` has ended its program in order (any core, if none is named): its stores are
    /// seen then, and it stores nothing more. The default is for machines that do not know.
    fn has_left(&self, core: Option<CoreId>) -> bool {
        let _ = core;
        false
    }
}

/// A cycle counter, or any other: a timer of 1 MHz is enough.
pub trait Clock {
    /// Cycles since some moment; never goes back on one core. Counters of different cores need not
    /// agree. A port widens a counter of 32 bits, at each call; waits call often.
    fn cycles(&self) -> u64;

    /// Cycles per second.
    fn hertz(&self) -> u64;
}

/// A word that a polling loop waits on: the loop continues once the word differs from `seen`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Watch {
    /// The aligned 32-bit word.
    pub at: Address,
    /// The value that the loop last read there.
    pub seen: u32,
}

/// The time between two polls of a loop.
pub trait Relax {
    /// How often a loop polls before it starts to wait: 0 where a poll crosses the chip.
    const LOOKS: u32 = 0;

    /// True if ranks share processors. Then a loop does not poll [`LOOKS`](Self::LOOKS) times
    /// first: only [`relax`](Self::relax) knows when to give the processor away.
    fn is_crowded(&self) -> bool {
        false
    }

    /// Gives time to others, and returns when one of the `watched` words may differ from what was
    /// seen, or for no reason at all.
    ///
    /// * R1. Returns immediately, or soon, if a word already differs: a change between the poll and
    ///   this call is never lost.
    /// * R2. With no words it only yields, and always returns.
    /// * R3. May return without any change. Sleeping ports wake up often enough for time budgets
    ///   (milliseconds).
    ///
    /// * R4. A port that sleeps until it is [`told`](Self::told) does so only if all of the words
    ///   lie in this core's own regions. Words elsewhere change unannounced.
    ///
    /// Between two calls the loop must poll each word that it waits for. All of these words must be
    /// in `watched`, or `watched` must be empty.
    fn relax(&self, watched: &[Watch]);

    /// This core has changed words or bytes in regions of `core`, which `core` may wait for. A port
    /// whose cores sleep wakes `core`: by an event, an interrupt, a bell. It drains first, so that
    /// the change is in memory. A `core` that does not sleep yet finds the event when it is about
    /// to (R1), and [acquires](Coherence::acquire) when it has woken: no later look is from before.
    ///
    /// The default does nothing: for ports that look at the words again by themselves.
    #[inline(always)]
    fn told(&self, core: CoreId) {
        let _ = core;
    }

    /// Says what this core waits for, and where: `waits for …`. The loop calls it before each
    /// [`relax`](Self::relax). A machine whose user asks what its cores wait for notes it; the
    /// default ignores it.
    #[inline(always)]
    fn waits(&self, what: fmt::Arguments<'_>) {
        let _ = what;
    }

    /// The last wait is over. For machines that wait in another way the longer a wait takes.
    fn ended(&self) {}
}

/// A load/store machine that the kernel can run on: the sum of the required traits.
pub trait Machine:
    UncachedMemory + CachedMemory + Coherence + TestAndSet + MessageBuffer + Topology + Clock + Relax
{
}

impl<M> Machine for M where
    M: UncachedMemory
        + CachedMemory
        + Coherence
        + TestAndSet
        + MessageBuffer
        + Topology
        + Clock
        + Relax
        + ?Sized
{
}
