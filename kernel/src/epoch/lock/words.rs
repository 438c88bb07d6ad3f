//! Taking the words of a lock, and giving them back. A lock is one or two changes of words in
//! shared memory, and each change may fail, wait, or be answered later. So [`Words`] remembers
//! which steps were done: a call whose budget ran out continues, or takes all back. [`super`] says
//! what the words mean.

use core::cell::Cell;

use flagpost_link::{Amo, Link, Op, Rank, Width};

use super::{Kind, queue::Queue};
use crate::{
    Error, Missing, Timeout, Waiting,
    window::{
        Core, cell, fast,
        passive::{Aside, WRITER, Want, holder},
    },
};

/// Both words: an exclusive lock waits for the readers that are there to go; new ones stand aside.
const WANT: u32 = 1 << 31;

/// Local word, low half: how many ranks share the piece.
const READERS: u32 = 0xffff;

/// Global word, low half: how many have locked all pieces. High half, without [`WANT`]: how many
/// have locked some piece exclusively.
const ALL: u32 = 0xffff;
pub(crate) const EXCLUSIVE: u32 = 1 << 16;

/// The rank that has the global word.
pub(crate) const MASTER: Rank = Rank::new(0);

/// Most turns of the pause after an attempt that failed, and between two looks at a remote word:
/// powers of 2.
const LONGEST_PAUSE: u32 = 16;
const BETWEEN_LOOKS: u32 = 4;

/// Attempts that are counted: the pause gets no shorter than between looks.
const MOST_FAILED: u8 = 3;

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
    counted: bool,
    /// The word that stands in the way, after an attempt that must be taken back.
    pub(crate) blocked: Option<Word>,
    /// How many attempts failed.
    failed: u8,
    pub(super) queue: Queue,
    /// The step's below, or that of a look.
    pub(super) op: Op,
    /// A step, or a look, that has begun and was not answered.
    begun: Option<(Rank, u32, Amo, Step)>,
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

/// The wish of this rank, as a writer, to keep readers out of `word`.
fn wants<'c, L>(core: &'c Core<'_, L>, word: Word) -> &'c Cell<Want> {
    let [local, global] = &core.passive.wants;
    match word {
        Word::Global => global,
        Word::Local => local,
    }
}

/// This rank has another lock, which those that wait may be waiting for: it stands in line with
/// none of them.
fn is_steadfast<L>(core: &Core<'_, L>) -> bool {
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
        let old = world
            .wait()
            .retry(|| world.link().amo(rank, key, cell, amo, Width::Half, op));
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
    fn until(
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
                match link.amo(rank, key, cell, Amo::Read, Width::Half, op) {
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

    fn is_exclusive(&self) -> bool {
        matches!(self.kind, Kind::Exclusive | Kind::Queued)
    }

    // ---- Acquiring ----

    /// Takes all that the lock takes.
    pub(super) fn obtain(&mut self) -> Result<(), Error> {
        self.core.passive.is_timed.set(false);
        self.conclude()?;
        match self.kind {
            Kind::Shared => self.share(Word::Local, |word| word & WRITER == 0),
            Kind::All => self.share(Word::Global, |word| {
                point!(WAIT "others have exclusive locks":
                    "lock.all.exclusive", word & !WANT < EXCLUSIVE; else true)
            }),
            Kind::Exclusive => self.exclude(),
            // One that has exclusive locks waits for no queue: its first may wait for one of all,
            // and that for this rank.
            Kind::Queued if self.core.passive.is_registered() && self.queue.is_out() => {
                self.exclude()
            }
            Kind::Queued => {
                self.line_up()?;
                self.exclude()
            }
        }
    }

    /// A word's rank, its cell, and the cell that counts the turns of those that waited for it.
    fn place(&self, word: Word) -> (Rank, u32, u32) {
        match word {
            Word::Global => (MASTER, cell::GLOBAL, cell::GLOBAL_TURNS),
            Word::Local => (self.target(), cell::LOCAL, cell::LOCAL_TURNS),
        }
    }

    /// A reader has counted in, and found a writer that waits.
    #[cold]
    #[inline(never)]
    fn give_way(core: &Core<'w, L>) {
        let aside = &core.passive.aside;
        let asks = point!(LOCK "else readers could follow each other for ever":
            "lock.shared.aside", !is_steadfast(core); else false);
        if aside.get() == Aside::No && asks {
            aside.set(Aside::Asks);
        }
    }

    /// Counts in, and waits until the word has no writer. Others see the count meanwhile: no new
    /// writer comes in between. It gives way to a writer that waits already, once.
    fn share(&mut self, word: Word, is_free: impl Fn(u32) -> bool) -> Result<(), Error> {
        let (rank, cell, turns) = self.place(word);
        let is_free = |word| {
            point!(WAIT "another rank has an exclusive lock":
            "lock.shared.wait", is_free(word); else true)
        };
        let core = self.core;
        let aside = &core.passive.aside;
        loop {
            match aside.get() {
                // ORDER: while it is counted in, no turn of a writer comes.
                Aside::Asks => {
                    self.step(rank, turns, Amo::Read, Step::Turns)?;
                }
                Aside::Leaves(_) => {
                    let less = Amo::Add(u32::MAX.into());
                    self.step(rank, cell, less, Step::Aside)?;
                }
                Aside::Until(before) => {
                    // After an attempt that ran out of its budget.
                    let waits = point!(LOCK "a rank that has got another lock stands aside no more":
                        "lock.shared.back", !is_steadfast(core); else true);
                    if waits {
                        self.until(rank, turns, |turns| turns != before)?;
                    }
                    aside.set(Aside::Been);
                }
                Aside::No | Aside::Been if !self.taken => {
                    let old = self.step(rank, cell, Amo::Add(1), Step::Take(0))?;
                    if is_free(old) && aside.get() != Aside::Asks {
                        break;
                    }
                }
                Aside::No | Aside::Been => {
                    self.until(rank, cell, is_free)?;
                    break;
                }
            }
        }
        aside.set(Aside::No);
        Ok(())
    }

    /// Registers with the global word, unless this rank is there already; then takes the free local
    /// word. Either failing, all is given back before the next attempt, but for what keeps new
    /// readers out. All attempts together have the budget.
    #[inline(always)]
    fn exclude(&mut self) -> Result<(), Error> {
        while !self.taken {
            if let Some(word) = self.blocked {
                self.want(word)?;
                self.unregister()?;
                self.failed = self.failed.saturating_add(1).min(MOST_FAILED);
                self.await_turn(word)?;
                self.blocked = None;
            }
            if point!(LOCK "a lock of all pieces waits for exclusive ones":
                "lock.exclusive.register", !self.is_registered(); else false)
            {
                let add = Amo::Add(EXCLUSIVE.into());
                self.step(MASTER, cell::GLOBAL, add, Step::Register)?;
                continue;
            }
            let mark = self.core.passive.mark;
            let (free, new) = match wants(self.core, Word::Local).get() {
                Want::Mine => (WANT, mark),
                Want::Others => (WANT, WANT | mark),
                Want::No | Want::Due | Want::Ended => (0, mark),
            };
            let writer = Amo::CompareSwap {
                expected: free.into(),
                new: new.into(),
            };
            self.step(self.target(), cell::LOCAL, writer, Step::Take(free))?;
        }
        self.end_turn(Word::Local)?;
        self.end_turn(Word::Global)
    }

    /// Keeps new readers out of `word`, if there are some and no other writer does.
    fn want(&mut self, word: Word) -> Result<(), Error> {
        if wants(self.core, word).get() == Want::Due {
            let (rank, cell, _) = self.place(word);
            let want = Amo::Or(WANT.into());
            point!(LOCK "else readers could follow each other for ever":
                "lock.exclusive.want", _ = self.step(rank, cell, want, Step::Want(word))?;
                else wants(self.core, word).set(Want::No));
        }
        Ok(())
    }

    /// Waits until `word` may be free. While readers have it, new ones are kept out: by this rank,
    /// or by another that waits as well.
    #[inline(never)]
    fn await_turn(&mut self, word: Word) -> Result<(), Error> {
        if word == Word::Local {
            // No waiting for the local word's turn while others wait for the global one's.
            self.end_turn(Word::Global)?;
        }
        let (rank, cell, _) = self.place(word);
        loop {
            self.want(word)?;
            let is_mine = wants(self.core, word).get() == Want::Mine;
            let (readers, taken) = match word {
                Word::Global => (ALL, ALL),
                Word::Local if is_mine || is_steadfast(self.core) => (READERS, READERS | WRITER),
                Word::Local => (READERS, u32::MAX),
            };
            let may_want = |word| !is_mine && word & WANT == 0 && word & readers != 0;
            let found = self.until(rank, cell, |word| word & taken == 0 || may_want(word))?;
            let is_free = found & taken == 0;
            if !is_mine {
                let want = match (is_free, word) {
                    (false, _) => Want::Due,
                    (true, Word::Local) if found & WANT != 0 => Want::Others,
                    (true, _) => Want::No,
                };
                wants(self.core, word).set(want);
            }
            if is_free {
                return Ok(());
            }
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

    /// Keeps readers out of `word` no longer, if it did.
    fn end_turn(&mut self, word: Word) -> Result<(), Error> {
        match wants(self.core, word).get() {
            Want::No => Ok(()),
            _ => self.end_turn_long(word),
        }
    }

    #[inline(never)]
    fn end_turn_long(&mut self, word: Word) -> Result<(), Error> {
        let (rank, cell, turns) = self.place(word);
        if wants(self.core, word).get() == Want::Mine {
            let rest = Amo::And((!WANT).into());
            point!(LOCK "else new readers would stand aside for nobody":
                "lock.exclusive.unwant", _ = self.step(rank, cell, rest, Step::Unwant(word))?;
                else wants(self.core, word).set(Want::Ended));
        }
        if wants(self.core, word).get() == Want::Ended {
            point!(NOTIFY "readers that stand aside wait for it":
                "lock.exclusive.tell", _ = self.step(rank, turns, Amo::Add(1), Step::Tell(word))?);
        }
        wants(self.core, word).set(Want::No);
        Ok(())
    }

    /// True if the global word has this lock, or another exclusive one of this rank. On the latter
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
            point!(LOCK "else nobody could lock all pieces any more":
                "lock.exclusive.unregister", _ = self.step(MASTER, cell::GLOBAL, less, Step::Unregister)?;
                else self.registered = false);
        }
        Ok(())
    }

    /// The lock is there: what it takes of the global word is the rank's from now on.
    pub(crate) fn hand_over(&mut self) {
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

    // ---- Releasing ----

    /// Gives all back that was taken; what a lost target has is lost, and the global word is given
    /// back all the same.
    #[inline(always)]
    pub(super) fn release(&mut self) -> Result<(), Error> {
        let left = self.leave();
        match (left, self.begun) {
            (Err(Error::PeerLost(lost) | Error::PeerLeft(lost)), Some((rank, ..)))
                if rank == lost =>
            {
                self.core.world.link().abandon(&self.op);
                self.begun = None;
            }
            (Ok(()), _) | (Err(Error::PeerLost(_)), None) => (),
            (Err(error), _) => return Err(error),
        }
        if left.is_err() {
            wants(self.core, Word::Local).set(Want::No);
        }
        self.end_turn(Word::Global)?;
        self.unregister()?;
        left?;
        self.leave_queue()
    }

    #[inline(always)]
    fn leave(&mut self) -> Result<(), Error> {
        self.conclude()?;
        self.end_turn(Word::Local)?;
        if self.taken {
            let (cell, amo) = match self.kind {
                Kind::Shared => (cell::LOCAL, Amo::Add(u32::MAX.into())),
                Kind::All => (cell::GLOBAL, Amo::Add(u32::MAX.into())),
                Kind::Exclusive | Kind::Queued => (
                    cell::LOCAL,
                    Amo::Add(self.core.passive.mark.wrapping_neg().into()),
                ),
            };
            point!(LOCK "others wait for the word": "lock.release.word",
                _ = self.step(self.target(), cell, amo, Step::Leave)?; else self.taken = false);
        }
        if !self.is_exclusive() {
            self.core.passive.aside.set(Aside::No);
        }
        Ok(())
    }
}
