//! Taking the words of a lock, and giving them back.

use core::cell::Cell;

use flagpost_link::{Amo, Link, Op, Rank, Width, point};

use super::{Kind, queue::Queue};
use crate::{
    Error, Missing, Timeout, Waiting,
    window::{Core, cell},
};

/// Local word: somebody has locked the piece exclusively. The other bits count who shares it.
const WRITER: u32 = 1 << 31;

/// Global word, low half: how many have locked all pieces. High half: how many have locked some
/// piece exclusively.
const ALL: u32 = 0xffff;
const EXCLUSIVE: u32 = 1 << 16;

/// The rank that has the global word.
const MASTER: Rank = Rank::new(0);

/// Most turns of the pause between two looks at a remote word.
const LONGEST_PAUSE: u32 = 16;

/// Attempts that are counted: the longest pause is reached.
const MOST_FAILED: u8 = 4;

/// What a lock has taken, and how it takes more. All steps can be repeated: what was done is not
/// done again.
#[derive(Debug)]
pub(super) struct Words<'e, 'w, L: Link> {
    pub(super) core: &'e Core<'w, L>,
    pub(super) kind: Kind,
    /// Whose piece; if all, this rank's is one of them: what every access looks at first.
    pub(super) usual: Rank,
    /// Its part of the target's word (of the global word, if it is about all pieces) is taken, as a
    /// reader or writer.
    taken: bool,
    /// It is among the exclusive ones of the global word.
    registered: bool,
    /// It counts on this rank's other exclusive locks to be there, and is counted among them.
    counted: bool,
    /// What stands in the way, after an attempt that must be taken back.
    blocked: Option<Word>,
    /// How many attempts failed, and what the next pause is drawn from.
    failed: u8,
    draw: u16,
    pub(super) queue: Queue,
    /// The step's below, or that of a look.
    pub(super) op: Op,
    /// A step, or a look, that has begun and was not answered.
    begun: Option<(Rank, u32, Amo, Step)>,
}

/// A word that is looked at until it is free.
#[derive(Copy, Clone, Debug)]
enum Word {
    Global,
    Local,
}

/// What an atomic operation means when it is done.
#[derive(Copy, Clone, Debug)]
pub(super) enum Step {
    Take,
    Leave,
    Register,
    Unregister,
    /// A step of the queue.
    Queue(super::queue::Step),
    /// Nothing: a cell is looked at.
    Look,
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
            draw: core.world.rank().get(),
            queue: Queue::default(),
            op: Op::new(),
            begun: None,
        }
    }

    /// Whose piece; the master, if all.
    pub(super) fn target(&self) -> Rank {
        match self.kind {
            Kind::All => MASTER,
            _ => self.usual,
        }
    }

    // ---- Steps ----

    /// Does `amo`, or goes on with it, and notes that it was done. Its former value.
    #[inline(always)]
    pub(super) fn step(
        &mut self,
        rank: Rank,
        cell: u32,
        amo: Amo,
        step: Step,
    ) -> Result<u32, Error> {
        // Where caches are kept in step nothing has to go before it, and it has come to an end when
        // it returns.
        let at_once = L::COHERENT
            .then(|| {
                self.core
                    .world
                    .link()
                    .amo_word(rank, self.core.cells, cell, amo)
            })
            .flatten();
        let old = match at_once {
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
        let old = world.retry(|| world.link().amo(rank, key, cell, amo, Width::Half, op));
        Ok(self.answered(old)? as u32)
    }

    /// What came of what has begun: there is nothing left to go on with, if it was answered.
    fn answered<T>(&mut self, found: Result<T, Error>) -> Result<T, Error> {
        if found.is_ok() || !self.op.is_under_way() {
            self.begun = None;
        }
        found
    }

    /// Notes that a step was done, which found `old`.
    #[inline(always)]
    fn done(&mut self, step: Step, old: u32) {
        match step {
            // TAKE: an exclusive one takes a free word only.
            Step::Take
                if self.is_exclusive() && point!("lock.exclusive.take", old != 0; else false) =>
            {
                self.blocked = Some(Word::Local);
            }
            Step::Take => self.taken = true,
            Step::Leave => self.taken = false,
            Step::Register => {
                self.registered = true;
                // BACK OFF: others have locked all pieces.
                if point!("lock.exclusive.all", old & ALL != 0; else false) {
                    self.blocked = Some(Word::Global);
                }
            }
            Step::Unregister => self.registered = false,
            Step::Queue(step) => self.queue.done(step, old),
            Step::Look => (),
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

    /// A look has no effect: who looks there again goes on with it.
    #[cold]
    #[inline(never)]
    fn conclude_long(&mut self, begun: (Rank, u32, Amo, Step)) -> Result<(), Error> {
        let (rank, cell, amo, step) = begun;
        if !matches!(step, Step::Look) {
            self.step(rank, cell, amo, step)?;
        }
        Ok(())
    }

    /// A look at a cell begins, or goes on where the budget of an earlier call ran out: however
    /// short budgets are, its answer is there in the end.
    pub(super) fn look_at(&mut self, rank: Rank, cell: u32) {
        // Where caches are kept in step it has come to an end when it returns.
        if L::COHERENT {
            return;
        }
        let look = (rank, cell, Amo::Read, Step::Look);
        let same = |(at, of, _, step)| matches!(step, Step::Look) && (at, of) == (rank, cell);
        if !self.begun.is_some_and(same) {
            self.drop_look();
            self.begun = Some(look);
        }
    }

    /// What came of a look.
    pub(super) fn looked<T>(&mut self, found: Result<T, Error>) -> Result<T, Error> {
        if L::COHERENT {
            found
        } else {
            self.answered(found)
        }
    }

    /// Nobody goes on with a look.
    pub(super) fn drop_look(&mut self) {
        if let Some((.., Step::Look)) = self.begun {
            self.core.world.link().abandon(&self.op);
            self.begun = None;
        }
    }

    /// Reads a word until it is free, with pauses in between that get longer.
    fn until(&mut self, rank: Rank, cell: u32, is_free: impl Fn(u32) -> bool) -> Result<(), Error> {
        let (world, key) = (self.core.world, self.core.cells);
        let mut pause = self.first_pause();
        self.look_at(rank, cell);
        let (link, op) = (world.link(), &self.op);
        let mut deadline = self.core.passive.deadline.get();
        let (mut looks, seen) = (0_u32, Cell::new(0));
        let free = world.wait_by(
            &mut deadline,
            || {
                looks = looks.saturating_add(1);
                // Whatever is noted: these are turns, and no waiting.
                for _ in 1..pause {
                    link.end_wait();
                    link.relax();
                }
                pause = pause.saturating_mul(2).clamp(1, LONGEST_PAUSE);
                match link.amo(rank, key, cell, Amo::Read, Width::Half, op) {
                    Ok(word) => {
                        seen.set(word as u32);
                        Ok(is_free(word as u32).then_some(()))
                    }
                    Err(refusal) if refusal.is_transient() => Ok(None),
                    Err(refusal) => Err(refusal.into()),
                }
            },
            || self.taken_by_others(seen.get()),
        );
        // One that found it free at once has not looked at the clock.
        let passed = match &deadline {
            Some(deadline) => looks == 1 && deadline.passed(world.link()),
            None => {
                deadline = Some(world.deadline());
                false
            }
        };
        self.core.passive.deadline.set(deadline);
        self.looked(free)?;
        if passed {
            return Err(Error::Timeout(self.taken_by_others(seen.get())));
        }
        Ok(())
    }

    /// Turns before the first look: none, until attempts fail. Then a number that is drawn: ranks
    /// that always meet in the same order would always leave out the same one.
    fn first_pause(&mut self) -> u32 {
        if self.failed < 2 {
            return 0;
        }
        self.draw = self.draw.wrapping_mul(25_173).wrapping_add(13_849);
        let most = 1_u32.wrapping_shl(self.failed.into()).min(LONGEST_PAUSE);
        u32::from(self.draw).wrapping_shr(8) & most.wrapping_sub(1)
    }

    /// Others have it. Words count them, and do not say which ranks these are: of one piece its
    /// owner is named, of all the number of ranks in the global `word`.
    pub(super) fn taken_by_others(&self, word: u32) -> Timeout {
        let (named, count) = match self.kind {
            Kind::All => (None, (word / EXCLUSIVE).max(1)),
            _ => (Some(self.target()), 1),
        };
        Timeout {
            waiting: Waiting::Unlock,
            missing: Missing::among(named.into_iter(), count),
        }
    }

    fn is_exclusive(&self) -> bool {
        matches!(self.kind, Kind::Exclusive | Kind::Queued)
    }

    // ---- Acquiring ----

    /// Takes all that the lock takes.
    pub(super) fn obtain(&mut self) -> Result<(), Error> {
        self.core.passive.deadline.set(None);
        self.conclude()?;
        match self.kind {
            Kind::Shared => self.share(cell::LOCAL, |word| word & WRITER == 0),
            // WAIT: while others have exclusive locks.
            Kind::All => self.share(
                cell::GLOBAL,
                |word| point!("lock.all.exclusive", word < EXCLUSIVE; else true),
            ),
            Kind::Exclusive => self.exclude(),
            Kind::Queued => {
                self.line_up()?;
                self.exclude()
            }
        }
    }

    /// Counts in, and waits until the word has no writer. Others see the count meanwhile: no new
    /// writer comes in between.
    fn share(&mut self, cell: u32, is_free: impl Fn(u32) -> bool) -> Result<(), Error> {
        // WAIT: a piece that is locked exclusively.
        let is_free = |word| point!("lock.shared.wait", is_free(word); else true);
        if !self.taken {
            let old = self.step(self.target(), cell, Amo::Add(1), Step::Take)?;
            if is_free(old) {
                return Ok(());
            }
        }
        self.until(self.target(), cell, is_free)
    }

    /// Registers with the global word, unless this rank is there already; then takes the free local
    /// word. Either failing, all is given back before the next attempt. All attempts together have
    /// the budget.
    #[inline(always)]
    fn exclude(&mut self) -> Result<(), Error> {
        while !self.taken {
            if let Some(word) = self.blocked {
                self.unregister()?;
                self.failed = self.failed.saturating_add(1).min(MOST_FAILED);
                match word {
                    Word::Global => self.until(MASTER, cell::GLOBAL, |word| word & ALL == 0)?,
                    Word::Local => self.until(self.target(), cell::LOCAL, |word| word == 0)?,
                }
                self.blocked = None;
            }
            // REGISTER: no lock of all pieces while there is an exclusive one.
            if point!("lock.exclusive.register", !self.is_registered(); else false) {
                let add = Amo::Add(EXCLUSIVE.into());
                self.step(MASTER, cell::GLOBAL, add, Step::Register)?;
                continue;
            }
            let writer = Amo::CompareSwap {
                expected: 0,
                new: WRITER.into(),
            };
            self.step(self.target(), cell::LOCAL, writer, Step::Take)?;
        }
        Ok(())
    }

    /// Whether the global word has this lock, or another exclusive one of this rank. On the latter
    /// it counts from now on: that one does not take the word along when it goes.
    #[inline(always)]
    fn is_registered(&mut self) -> bool {
        if !self.registered && !self.counted && self.core.passive.is_registered() {
            self.core.passive.add_exclusive();
            self.counted = true;
        }
        self.registered || self.counted
    }

    #[inline(always)]
    fn unregister(&mut self) -> Result<(), Error> {
        if self.counted {
            self.counted = false;
            self.registered = self.core.passive.remove_exclusive();
        }
        if self.registered {
            let less = Amo::Add(EXCLUSIVE.wrapping_neg().into());
            // BACK: else nobody could lock all pieces any more.
            point!("lock.exclusive.unregister", {
                self.step(MASTER, cell::GLOBAL, less, Step::Unregister)?;
            }; else self.registered = false);
        }
        Ok(())
    }

    /// The lock is there: what it takes of the global word is the rank's from now on.
    pub(super) fn hand_over(&mut self) {
        if self.is_exclusive() {
            if !self.counted {
                self.core.passive.add_exclusive();
            }
            (self.registered, self.counted) = (false, false);
        }
    }

    /// The lock goes: what the rank has of the global word goes with its last exclusive one.
    pub(super) fn take_back(&mut self) {
        if self.is_exclusive() {
            self.registered = self.core.passive.remove_exclusive();
        }
    }

    /// The first step of [`exclude`](Self::exclude), where nothing has to go before it: false if
    /// nothing has happened.
    #[inline(always)]
    pub(super) fn register_at_once(&mut self) -> bool {
        let add = Amo::Add(EXCLUSIVE.into());
        let link = self.core.world.link();
        let old = link.amo_word(MASTER, self.core.cells, cell::GLOBAL, add);
        if let Some(old) = old {
            self.done(Step::Register, old);
        }
        self.registered
    }

    /// The second step: whether the lock is taken. Else [`exclude`](Self::exclude) goes on.
    #[inline(always)]
    pub(super) fn take_at_once(&mut self) -> bool {
        if self.blocked.is_some() {
            return false;
        }
        let writer = Amo::CompareSwap {
            expected: 0,
            new: WRITER.into(),
        };
        let link = self.core.world.link();
        let old = link.amo_word(self.usual, self.core.cells, cell::LOCAL, writer);
        if let Some(old) = old {
            self.done(Step::Take, old);
        }
        self.taken
    }

    // ---- Releasing ----

    /// The inverse of both, of the rank's only exclusive lock: false if nothing has happened.
    #[inline(always)]
    pub(super) fn release_at_once(&mut self) -> bool {
        let (link, cells) = (self.core.world.link(), self.core.cells);
        let leave = Amo::Add(WRITER.wrapping_neg().into());
        if !self.taken
            || link
                .amo_word(self.usual, cells, cell::LOCAL, leave)
                .is_none()
        {
            return false;
        }
        self.taken = false;
        let less = Amo::Add(EXCLUSIVE.wrapping_neg().into());
        if link.amo_word(MASTER, cells, cell::GLOBAL, less).is_none() {
            self.registered = true;
            return false;
        }
        true
    }

    /// Gives all back that was taken; what a lost target has is lost, and the global word is given
    /// back all the same.
    #[inline(always)]
    pub(super) fn release(&mut self) -> Result<(), Error> {
        let left = self.leave();
        match (left, self.begun) {
            (Err(Error::PeerLost(lost)), Some((rank, ..))) if rank == lost => {
                self.core.world.link().abandon(&self.op);
                self.begun = None;
            }
            (Ok(()), _) | (Err(Error::PeerLost(_)), None) => (),
            (Err(error), _) => return Err(error),
        }
        self.unregister()?;
        left?;
        self.leave_queue()
    }

    #[inline(always)]
    fn leave(&mut self) -> Result<(), Error> {
        self.conclude()?;
        if self.taken {
            let (cell, amo) = match self.kind {
                Kind::Shared => (cell::LOCAL, Amo::Add(u32::MAX.into())),
                Kind::All => (cell::GLOBAL, Amo::Add(u32::MAX.into())),
                Kind::Exclusive | Kind::Queued => {
                    (cell::LOCAL, Amo::Add(WRITER.wrapping_neg().into()))
                }
            };
            // RELEASE: others wait for it.
            point!("lock.release.word", {
                self.step(self.target(), cell, amo, Step::Leave)?;
            }; else self.taken = false);
        }
        Ok(())
    }
}
