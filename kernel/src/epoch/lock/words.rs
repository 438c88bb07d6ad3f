//! Taking the words of a lock, and giving them back. A lock is one or two changes of words in
//! shared memory, and each change may fail, wait, or be answered later. So [`Words`] remembers
//! which steps were done: a call whose budget ran out continues, or takes all back. [`super`] says
//! what the words mean.

use core::cell::Cell;

use flagpost_link::{Amo, Link, Op, Rank, Width};

use super::queue::Queue;
use crate::{
    Error, Missing, Timeout, Waiting,
    window::{
        Core, cell, fast,
        passive::{Aside, Want, holder},
    },
};

/// Both words: an exclusive lock waits for the readers that are there to go; new ones stand aside.
pub(super) const WANT: u32 = 1 << 31;

/// Local word, low half: how many ranks share the piece.
pub(super) const READERS: u32 = 0xffff;

/// Global word, low half: how many have locked all pieces. High half, without [`WANT`]: how many
/// have locked some piece exclusively.
pub(super) const ALL: u32 = 0xffff;
pub(crate) const EXCLUSIVE: u32 = 1 << 16;

/// The rank that has the global word.
pub(crate) const MASTER: Rank = Rank::new(0);

/// Most turns of the pause after an attempt that failed, and between two looks at a remote word:
/// powers of 2.
const LONGEST_PAUSE: u32 = 16;
const BETWEEN_LOOKS: u32 = 4;

/// The piece or pieces that are locked, and how.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Shared,
    Exclusive,
    /// Exclusively, in turn.
    Queued,
    /// All pieces, shared.
    All,
}

/// The words that a lock has taken, and the steps that take more. All steps can be repeated: none
/// is done twice.
#[derive(Debug)]
pub(crate) struct Words<'e, 'w, L: Link> {
    pub(crate) core: &'e Core<'w, L>,
    pub(crate) kind: Kind,
    /// The rank whose piece is locked; of a lock of all pieces, this rank. Accesses look at this
    /// first.
    pub(crate) usual: Rank,
    /// Its part of the target's word (of the global word, if it is about all pieces) is taken, as a
    /// reader or writer.
    pub(crate) taken: bool,
    /// It is among the exclusive ones of the global word.
    pub(crate) registered: bool,
    /// It counts on this rank's other exclusive locks to be there, and is counted among them.
    pub(super) counted: bool,
    /// The word that stands in the way, after an attempt that must be taken back.
    pub(crate) blocked: Option<Word>,
    /// How many attempts failed.
    pub(super) failed: u8,
    pub(super) queue: Queue,
    /// The step's below, or that of a look.
    pub(super) op: Op,
    /// A step, or a look, that has begun and was not answered.
    pub(super) begun: Option<(Rank, u32, Amo, Step)>,
}

/// One of the two words.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    Global,
    Local,
}

/// The meaning of an atomic operation when it is done.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Step {
    /// Of an exclusive lock: it takes a word that holds this.
    Take(u32),
    Leave,
    /// A reader asks how many turns writers had, and stands aside.
    Turns,
    Aside,
    /// A writer keeps new readers out, does not any more, and tells those that stand aside.
    Want(Word),
    Unwant(Word),
    Tell(Word),
    Register,
    Unregister,
    /// A step of the queue.
    Queue(super::queue::Step),
    /// Nothing: a cell is looked at.
    Look,
}

/// The operation that changes a word from `expected` to `new`.
#[inline]
pub(super) fn swap_if(expected: u32, new: u32) -> Amo {
    let (expected, new) = (expected.into(), new.into());
    Amo::CompareSwap { expected, new }
}

/// The wish of this rank, as a writer, to keep readers out of `word`.
pub(super) fn wants<'c, L>(core: &'c Core<'_, L>, word: Word) -> &'c Cell<Want> {
    let [local, global] = &core.passive.wants;
    match word {
        Word::Global => global,
        Word::Local => local,
    }
}

/// This rank has another lock, which those that wait may be waiting for: it stands in line with
/// none of them.
pub(super) fn is_steadfast<L>(core: &Core<'_, L>) -> bool {
    core.world.locks.get() > 1
}

impl<'e, 'w, L: Link> Words<'e, 'w, L> {
    pub(super) fn new(core: &'e Core<'w, L>, kind: Kind, target: Rank) -> Self {
        Self {
            core,
            kind,
            usual: match kind {
                Kind::All => core.world.rank(),
                _ => target,
            },
            taken: false,
            registered: false,
            counted: false,
            blocked: None,
            failed: 0,
            queue: Queue::default(),
            op: Op::new(),
            begun: None,
        }
    }

    /// The rank whose piece is locked; the master, if all are.
    pub(super) fn target(&self) -> Rank {
        match self.kind {
            Kind::All => MASTER,
            _ => self.usual,
        }
    }

    // ---- Steps ----

    /// Does `amo`, or continues it, and notes that it was done. Gives the former value.
    #[inline(always)]
    pub(super) fn step(
        &mut self,
        rank: Rank,
        cell: u32,
        amo: Amo,
        step: Step,
    ) -> Result<u32, Error> {
        let old = match fast::step(self.core, rank, cell, amo) {
            Some(old) => old,
            None => self.step_long(rank, cell, amo, step)?,
        };
        self.done(step, old);
        Ok(old)
    }

    #[inline(never)]
    fn step_long(&mut self, rank: Rank, cell: u32, amo: Amo, step: Step) -> Result<u32, Error> {
        let (world, key) = (self.core.world, self.core.cells);
        self.drop_look();
        self.begun = Some((rank, cell, amo, step));
        let op = &self.op;
        let old = world.wait().retry(|| {
            world
                .link()
                .amo(rank, key, cell as usize, amo, Width::Half, op)
        });
        Ok(self.answered(old)? as u32)
    }

    /// Passes on the answer of an operation: nothing is left to continue, if it was answered.
    fn answered<T>(&mut self, found: Result<T, Error>) -> Result<T, Error> {
        if found.is_ok() || !self.op.is_under_way() {
            self.begun = None;
        }
        found
    }

    /// Notes that a step was done, which found `old`.
    #[inline(always)]
    pub(crate) fn done(&mut self, step: Step, old: u32) {
        match step {
            Step::Take(free)
                if self.is_exclusive()
                    && point!(LOCK "an exclusive lock takes a free word only":
                        "lock.exclusive.take", old != free; else false) =>
            {
                self.blocked = Some(Word::Local);
                Self::note_readers(self.core, Word::Local, old & (READERS | WANT));
            }
            Step::Take(free) => {
                self.taken = true;
                if free != 0 {
                    Self::turned(self.core);
                } else if !self.is_exclusive() && old & WANT != 0 {
                    Self::give_way(self.core);
                }
            }
            Step::Leave => self.taken = false,
            Step::Turns => self.core.passive.aside.set(Aside::Leaves(old)),
            Step::Aside => {
                self.taken = false;
                let aside = match self.core.passive.aside.get() {
                    // It is waiting still: it ends its turn later than the turns were asked for.
                    Aside::Leaves(turns) if old & WANT != 0 => Aside::Until(turns),
                    _ => Aside::No,
                };
                self.core.passive.aside.set(aside);
            }
            Step::Want(word) => {
                let is_first = old & WANT == 0;
                let want = if is_first { Want::Mine } else { Want::No };
                wants(self.core, word).set(want);
            }
            Step::Unwant(word) => wants(self.core, word).set(Want::Ended),
            Step::Tell(word) => wants(self.core, word).set(Want::No),
            Step::Register => {
                self.registered = true;
                if point!(LOCK "others have locked all pieces: it backs off":
                    "lock.exclusive.all", old & ALL != 0; else false)
                {
                    self.blocked = Some(Word::Global);
                    Self::note_readers(self.core, Word::Global, old & (ALL | WANT));
                }
            }
            Step::Unregister => self.registered = false,
            Step::Queue(step) => self.queue.done(step, old),
            Step::Look => (),
        }
    }

    /// An attempt at `word` failed, where there are `readers`, or a writer that waits.
    // A lock that is taken immediately stays in registers: its address is not taken here.
    #[cold]
    #[inline(never)]
    fn note_readers(core: &Core<'w, L>, word: Word, readers: u32) {
        if readers != 0 && readers & WANT == 0 {
            wants(core, word).set(Want::Due);
        }
    }

    /// Ends what has begun: it may have had its effect.
    #[inline(always)]
    pub(super) fn conclude(&mut self) -> Result<(), Error> {
        match self.begun {
            None => Ok(()),
            Some(begun) => self.conclude_long(begun),
        }
    }

    /// A look has no effect: the next look there continues it.
    #[cold]
    #[inline(never)]
    fn conclude_long(&mut self, begun: (Rank, u32, Amo, Step)) -> Result<(), Error> {
        let (rank, cell, amo, step) = begun;
        if !matches!(step, Step::Look) {
            self.step(rank, cell, amo, step)?;
        }
        Ok(())
    }

    /// A look at a cell begins, or continues where the budget of an earlier call ran out: however
    /// short budgets are, its answer is there in the end.
    pub(super) fn look_at(&mut self, rank: Rank, cell: u32) {
        // Where caches are kept in step it has ended when it returns.
        if L::FAST {
            return;
        }
        let look = (rank, cell, Amo::Read, Step::Look);
        let same = |(at, of, _, step)| matches!(step, Step::Look) && (at, of) == (rank, cell);
        if !self.begun.is_some_and(same) {
            self.drop_look();
            self.begun = Some(look);
        }
    }

    /// Passes on the answer of a look.
    pub(super) fn looked<T>(&mut self, found: Result<T, Error>) -> Result<T, Error> {
        if L::FAST { found } else { self.answered(found) }
    }

    /// Nobody continues a look.
    pub(super) fn drop_look(&mut self) {
        if let Some((.., Step::Look)) = self.begun {
            self.core.world.link().abandon(&self.op);
            self.begun = None;
        }
    }

    /// Reads a word until it is free, with pauses in between that get longer. Gives its value then.
    pub(super) fn until(
        &mut self,
        rank: Rank,
        cell: u32,
        is_free: impl Fn(u32) -> bool,
    ) -> Result<u32, Error> {
        let (world, key) = (self.core.world, self.core.cells);
        let mut pause = self.first_pause();
        self.look_at(rank, cell);
        let (link, op) = (world.link(), &self.op);
        let is_timed = &self.core.passive.is_timed;
        let (mut looks, seen) = (0_u32, Cell::new(0));
        let free = world.wait().one_of_several(!is_timed.get()).until(
            || {
                looks = looks.saturating_add(1);
                // Whatever is noted: these are turns, and no waiting.
                for _ in 1..pause {
                    link.step(flagpost_link::Step::End);
                    link.relax();
                }
                pause = pause.saturating_mul(2).clamp(1, BETWEEN_LOOKS);
                match link.amo(rank, key, cell as usize, Amo::Read, Width::Half, op) {
                    Ok(word) => {
                        let word = word as u32;
                        seen.set(word);
                        Ok(is_free(word).then_some(word))
                    }
                    Err(refusal) if refusal.is_transient() => Ok(None),
                    Err(refusal) => Err(refusal.into()),
                }
            },
            || self.taken_by_others(cell, seen.get()),
        );
        // One that found it free immediately has not read the clock: attempts that fail again and
        // again end by it all the same, but for the first one.
        let passed = match (is_timed.replace(true), looks) {
            (true, 1) => world.is_late(),
            (false, 1) => {
                world.look_at_clock();
                false
            }
            _ => false,
        };
        let found = self.looked(free)?;
        if passed {
            return Err(Error::Timeout(self.taken_by_others(cell, seen.get())));
        }
        Ok(found)
    }

    /// Turns before the first look: none, until an attempt fails. Then a number that is drawn:
    /// ranks that always meet in the same order would always leave out the same one. Each further
    /// failure makes it smaller, so that the rank that has waited longest looks most often.
    fn first_pause(&self) -> u32 {
        let most = match self.failed {
            0 => return 0,
            failed => LONGEST_PAUSE.wrapping_shr(u32::from(failed).wrapping_sub(1)),
        };
        u32::from(self.core.passive.draw()) & most.wrapping_sub(1)
    }

    /// Others have what this one waits for, as `word` of `cell` says. Of one piece the rank is
    /// named that holds it exclusively, if one does, else its owner; of all, how many hold one.
    pub(super) fn taken_by_others(&self, cell: u32, word: u32) -> Timeout {
        let size = self.core.world.size();
        let holder = holder(word).filter(|rank| cell == cell::LOCAL && rank.get() < size);
        let (waiting, named, count) = match (self.kind, holder) {
            (Kind::All, _) => {
                let count = (word & !WANT) / EXCLUSIVE;
                (Waiting::Unlock, None, count.max(1))
            }
            (_, Some(holder)) => (Waiting::Holder, Some(holder), 1),
            (_, None) => (Waiting::Unlock, Some(self.target()), 1),
        };
        Timeout {
            waiting,
            missing: Missing::among(named.into_iter(), count),
        }
    }

    pub(super) fn is_exclusive(&self) -> bool {
        matches!(self.kind, Kind::Exclusive | Kind::Queued)
    }

    /// A word's rank, its cell, and the cell that counts the turns of those that waited for it.
    pub(super) fn place(&self, word: Word) -> (Rank, u32, u32) {
        match word {
            Word::Global => (MASTER, cell::GLOBAL, cell::GLOBAL_TURNS),
            Word::Local => (self.target(), cell::LOCAL, cell::LOCAL_TURNS),
        }
    }

    /// A reader has counted in, and found a writer that waits.
    #[cold]
    #[inline(never)]
    pub(super) fn give_way(core: &Core<'w, L>) {
        let aside = &core.passive.aside;
        let asks = point!(LOCK "else readers could follow each other for ever":
            "lock.shared.aside", !is_steadfast(core); else false);
        if aside.get() == Aside::No && asks {
            aside.set(Aside::Asks);
        }
    }

    /// It took the local word, in which somebody waited.
    #[cold]
    fn turned(core: &Core<'w, L>) {
        let want = wants(core, Word::Local);
        want.set(match want.get() {
            Want::Mine => Want::Ended,
            _ => Want::No,
        });
    }
}
