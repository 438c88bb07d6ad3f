//! Calls that are not alike. The first data that a rank gets in a collective call come with a
//! *head*, which says what all ranks must have the same: the call, its root, the size of an
//! element, the length. It also says whose it is, and is mixed with the number of the call, so that
//! a head that an earlier call has left is none. A rank that hears another head than its own takes
//! no data, and fails before the barrier that ends each chunk. So no rank ends a call with data of
//! one that calls otherwise.
//!
//! Two things go beyond the data. Ranks that name different roots may hear of each other in no
//! round: in such calls each rank leaves a *note* with the next one, which reads it at the end. And
//! a rank that waits long leaves its note, too, and reads the one left with it: where all wait for
//! each other, one at least finds another head than its own. A rank that has failed so says it in
//! its note, and the ranks that wait pass that on.
//!
//! # Memory layout
//! Of scratch memory: data of the calls, each place with a head before it, and two notes at the
//! end. A head and up to 56 bytes travel in one put; of longer data the first chunk has a head in a
//! put of its own. Calls take the notes in turn: the rank before is at most one call ahead.

use bytemuck::{Pod, Zeroable};
use flagpost_link::{Key, Link, Op, Rank};

use super::{Blocks, Call, Collectives, LONG};
use crate::{Differs, Error, World};

/// Bytes of a head.
pub(super) const HEAD: usize = size_of::<u64>();

/// Most bytes of data that travel with their head.
pub(super) const SHORT: usize = 64 - HEAD;

/// Bytes of both notes.
const NOTES: usize = 2 * size_of::<Note>();

/// The note that a rank leaves with the next one.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Note {
    head: u64,
    /// Which call of the world it is, the first is 1. In memory it is mixed with the head, so that
    /// half of a note is of no call.
    number: u32,
    /// An [`Error::Asymmetric`]: the rank, and what differs. 0 if there was none.
    rank: u16,
    differs: u16,
}

impl Note {
    /// With the number mixed, or as it was before.
    fn mixed(self) -> Self {
        let mixed = spread(self.head).wrapping_shr(u32::BITS);
        Self {
            number: self.number ^ mixed as u32,
            ..self
        }
    }

    /// The error that it tells a rank of, which is in the call of `own`; `from` has left it.
    fn tells(self, own: Self, from: Rank) -> Result<(), Error> {
        if let Some(differs) = differs(own.head, self.head) {
            return Err(Error::Asymmetric {
                rank: from,
                differs,
            });
        }
        self.passes_on()
    }

    /// The error that the rank had which has left it.
    fn passes_on(self) -> Result<(), Error> {
        let failed = usize::from(self.differs).checked_sub(1);
        let failed = failed.and_then(|index| Differs::ALL.get(index).copied());
        failed.map_or(Ok(()), |differs| {
            let rank = Rank::new(self.rank);
            Err(Error::Asymmetric { rank, differs })
        })
    }
}

impl Call {
    /// The call, its root, the size of an element, a hash of the length (short lengths are all
    /// different), and 0 for the rank: 8, 16, 8, 16 and 16 bits.
    fn head(self) -> u64 {
        let none = Rank::new(0);
        let (kind, root, element, len) = match self {
            Self::Barrier => (0, none, 0, 0),
            Self::Allgather { element } => (1, none, element, 0),
            Self::Blocks { kind, element, len } => match kind {
                Blocks::Alltoall => (2, none, element, len),
                // Each rank has its own lengths.
                Blocks::AlltoallUneven => (3, none, element, 0),
                Blocks::ReduceScatter => (4, none, element, len),
                Blocks::Gather(root) => (5, root, element, len),
                Blocks::Scatter(root) => (6, root, element, len),
            },
            Self::Broadcast { root, element, len } => (7, root, element, len),
            Self::Reduce { root, element, len } => (8, root, element, len),
            Self::Allreduce { element, len } => (9, none, element, len),
            Self::Scan { own, element, len } => (if own { 11 } else { 10 }, none, element, len),
            Self::Make(_) => (12, none, 0, 0),
            Self::Fence(window) => (13, none, 0, usize::from(window)),
            Self::FreeWindow(window) => (14, none, 0, usize::from(window)),
            Self::SetCounters(window) => (15, none, 0, usize::from(window)),
            Self::FreeEvents(_) => (16, none, 0, 0),
            Self::FreePart(_) => (17, none, 0, 0),
        };
        let element = element.min(u8::MAX.into()) as u64;
        let len = spread(len as u64).wrapping_shr(48);
        kind << 56 | u64::from(root.get()) << 40 | element << 32 | len << 16
    }

    /// One rank is named.
    const fn has_root(self) -> bool {
        matches!(
            self,
            Self::Broadcast { .. }
                | Self::Reduce { .. }
                | Self::Blocks {
                    kind: Blocks::Gather(_) | Blocks::Scatter(_),
                    ..
                }
        )
    }
}

/// A number to mix with: those of numbers that are near are far from each other.
const fn spread(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// The first thing that two heads have different. Only ranks with other roots hear of others than
/// they expect.
fn differs(one: u64, other: u64) -> Option<Differs> {
    match (one ^ other).leading_zeros() {
        0..8 => Some(Differs::Call),
        8..24 | 48..64 => Some(Differs::Root),
        24..32 => Some(Differs::Element),
        32..48 => Some(Differs::Length),
        _ => None,
    }
}

impl Collectives {
    /// This rank's note of the call that it is in.
    fn note(&self) -> Note {
        Note {
            head: self.under_way.get().map_or(0, Call::head),
            number: self.number.get(),
            ..Note::default()
        }
    }
}

impl<L: Link> World<'_, L> {
    /// Key and size of the scratch memory that is before the notes.
    pub(super) fn scratch(&self) -> (Key, usize) {
        let (key, bytes) = self.link().scratch();
        (key, bytes.saturating_sub(NOTES))
    }

    /// A head, mixed with the number of this rank's call; or as it was before.
    fn sealed(&self, head: u64) -> u64 {
        head ^ spread(self.collectives.number.get().into())
    }

    /// Puts the head of this rank's call and up to [`SHORT`] bytes at `at` in the scratch memory of
    /// `to`.
    pub(super) fn put_headed(&self, to: Rank, at: usize, part: &[u8]) -> Result<(), Error> {
        let (link, (key, _)) = (self.link(), self.scratch());
        let head = self.sealed(self.collectives.note().head | u64::from(self.rank().get()));
        let mut both = [0; HEAD + SHORT];
        let both = { both.get_mut(..HEAD.saturating_add(part.len())) }.unwrap_or(&mut []);
        for (to, from) in both
            .iter_mut()
            .zip(bytemuck::bytes_of(&head).iter().chain(part))
        {
            *to = *from;
        }
        self.wait().retry(|| link.put(to, key, at, both))
    }

    /// Puts this round's `part` after a head at `at`: what has not been put in earlier attempts. Of
    /// long data only the first chunk has a head.
    pub(super) fn tell(&self, to: Rank, at: usize, part: &[u8]) -> Result<(), Error> {
        let (state, (key, _)) = (&self.collectives, self.scratch());
        let (placed, is_short) = (&state.gather.placed, part.len() <= SHORT);
        if placed.get() == 0 {
            if is_short || state.chunk.get() == 0 {
                self.put_headed(to, at, if is_short { part } else { &[] })?;
            }
            placed.set(if is_short { 2 } else { 1 });
        }
        if placed.get() == 1 {
            let at = at.saturating_add(HEAD);
            self.wait().retry(|| self.link().put(to, key, at, part))?;
            placed.set(2);
        }
        Ok(())
    }

    /// Gets what [`tell`](Self::tell) of `from` has put at `at`, as long as `into`.
    pub(super) fn heard(&self, from: Rank, at: usize, into: &mut [u8]) -> Result<(), Error> {
        let (link, me, (key, _)) = (self.link(), self.rank(), self.scratch());
        let expected = self.collectives.note().head | u64::from(from.get());
        let check = |theirs: &[u8]| {
            let head = bytemuck::try_pod_read_unaligned(theirs).unwrap_or_default();
            let head = self.sealed(head);
            // Of a call that is not this one it can be anybody's.
            let sender = Rank::new(head as u16);
            let rank = if sender < Rank::new(self.size()) {
                sender
            } else {
                from
            };
            point!(CHECK "I3: data of another call are not taken": "collective.alike.heard",
                differs(expected, head).map_or(Ok(()), |differs| {
                    Err(Error::Asymmetric { rank, differs })
                }); else Ok(()))
        };
        let mut both = [0; HEAD + SHORT];
        if let Some(both) = both.get_mut(..HEAD.saturating_add(into.len())) {
            link.get(me, key, at, both, &Op::new())?;
            let (head, data) = both.split_at_checked(HEAD).unwrap_or_default();
            check(head)?;
            for (to, from) in into.iter_mut().zip(data) {
                *to = *from;
            }
            return Ok(());
        }
        if self.collectives.chunk.get() == 0 {
            self.heard(from, at, &mut [])?;
        }
        link.get(me, key, at.saturating_add(HEAD), into, &Op::new())?;
        Ok(())
    }

    /// Where the notes of this call lie.
    fn note_at(&self) -> (Key, usize) {
        self.note_of(self.collectives.number.get())
    }

    /// Where those of call `number` lie.
    fn note_of(&self, number: u32) -> (Key, usize) {
        let (key, notes) = self.scratch();
        let odd = number as usize & 1;
        (key, notes.saturating_add(odd.saturating_mul(NOTES / 2)))
    }

    /// This rank has no note of an earlier session, when peers hear from it: its first signal comes
    /// after a fence.
    pub(super) fn clear_notes(&self) -> Result<(), Error> {
        let ((key, notes), link) = (self.scratch(), self.link());
        self.wait()
            .retry(|| link.put(self.rank(), key, notes, &[0; NOTES]))
    }

    /// A call with a root begins, or is repeated.
    pub(super) fn leave_note(&self, call: Call) -> Result<(), Error> {
        let state = &self.collectives;
        if call.has_root() && self.size() > 1 && !state.noted.get() {
            let ((key, at), note) = (self.note_at(), state.note().mixed());
            let (next, note) = (self.rank().next(self.size()), bytemuck::bytes_of(&note));
            self.wait().retry(|| self.link().put(next, key, at, note))?;
            state.noted.set(true);
        }
        Ok(())
    }

    /// The note that the rank before has left with this one, in call `number`.
    fn note(&self, number: u32) -> Result<Note, Error> {
        let ((key, at), mut note) = (self.note_of(number), Note::default());
        let bytes = bytemuck::bytes_of_mut(&mut note);
        self.link().get(self.rank(), key, at, bytes, &Op::new())?;
        Ok(note.mixed())
    }

    /// A call with a root has ended: so the rank before has left its note.
    pub(super) fn check_note(&self, call: Call) -> Result<(), Error> {
        let state = &self.collectives;
        if !state.noted.replace(false) || !call.has_root() {
            return Ok(());
        }
        let (rank, own) = (self.rank().prev(self.size()), state.note());
        let theirs = self.note(own.number)?;
        if theirs.number != own.number {
            let differs = Differs::Call;
            return Err(Error::Asymmetric { rank, differs });
        }
        theirs.tells(own, rank)
    }

    /// This rank has polled in vain, or counts for as much. After [`LONG`] polls it leaves its
    /// note, once, and reads that of the rank before.
    pub(super) fn has_polled(&self, polls: u32) -> Result<(), Error> {
        let state = &self.collectives;
        let polls = state.polls.get().saturating_add(polls);
        state.polls.set(polls);
        if polls < LONG || state.under_way.get().is_none() {
            return Ok(());
        }
        state.polls.set(0);
        self.suspect()
    }

    #[cold]
    #[inline(never)]
    fn suspect(&self) -> Result<(), Error> {
        let state = &self.collectives;
        let own = state.note();
        // First this: of two ranks that leave notes at the same time, one finds the other's.
        state.noted.set(self.send_note(own, state.noted.get()));
        let theirs = self.note(own.number)?;
        if theirs.number == own.number {
            return theirs.tells(own, self.rank().prev(self.size()));
        }
        // It may have failed in the call before, which has ended well here.
        let before = own.number.wrapping_sub(1);
        let earlier = self.note(before)?;
        if earlier.number == before {
            return earlier.passes_on();
        }
        Ok(())
    }

    /// Puts `note`, unless it is put already. True if it is.
    fn send_note(&self, note: Note, is_put: bool) -> bool {
        let ((key, at), next) = (self.note_at(), self.rank().next(self.size()));
        let (link, note) = (self.link(), note.mixed());
        let note = bytemuck::bytes_of(&note);
        let sent = is_put || link.put(next, key, at, note).is_ok();
        if sent {
            // A network sends without it, too.
            point!(ORDER "the note leaves, though nothing follows it":
                "collective.alike.note.fence", link.fence().ok(); else None);
        }
        sent
    }

    /// This rank's call has failed: the rank after it, which waits, finds that out.
    #[cold]
    #[inline(never)]
    pub(super) fn say_failed(&self, rank: Rank, differs: Differs) {
        let own = self.collectives.note();
        let failed = Note {
            rank: rank.get(),
            differs: (differs as u16).saturating_add(1),
            ..own
        };
        self.send_note(failed, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each fact of a call alone, and of several the first.
    #[test]
    fn the_first_fact_that_differs_is_told() {
        let call = |root, element, len| Call::Reduce {
            root: Rank::new(root),
            element,
            len,
        };
        let own = call(1, 4, 8);
        let (element, len) = (4, 8);
        let table = [
            (own, None),
            (call(1, 4, 12), Some(Differs::Length)),
            (call(1, 4, 8 + (1 << 40)), Some(Differs::Length)),
            (call(1, 4, 8 + (1 << 16)), Some(Differs::Length)),
            (call(1, 8, 8), Some(Differs::Element)),
            (call(1, 8, 16), Some(Differs::Element)),
            (call(0x8001, 4, 8), Some(Differs::Root)),
            (call(0, 8, 16), Some(Differs::Root)),
            (Call::Allreduce { element, len }, Some(Differs::Call)),
            (Call::Barrier, Some(Differs::Call)),
        ];
        for (other, expected) in table {
            assert_eq!(differs(own.head(), other.head()), expected, "{other:?}");
        }
        let kinds = [
            Call::Barrier,
            Call::Allgather { element },
            Call::Allreduce { element, len },
            Call::Scan {
                own: false,
                element,
                len,
            },
            Call::Scan {
                own: true,
                element,
                len,
            },
            Call::Make(1),
            Call::Fence(1),
            Call::FreeWindow(1),
            Call::SetCounters(1),
            Call::FreeEvents(Key::new(1)),
            Call::FreePart(Key::new(1)),
        ];
        for (index, one) in kinds.iter().enumerate() {
            for other in &kinds[..index] {
                assert_eq!(differs(one.head(), other.head()), Some(Differs::Call));
            }
        }
        // Another rank's, and those of the calls around.
        assert_eq!(differs(own.head(), own.head() | 1), Some(Differs::Root));
        for apart in 1..32 {
            assert_ne!(spread(1) >> 56, spread(1 + apart) >> 56, "{apart}");
        }
    }
}
