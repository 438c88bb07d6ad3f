//! The life of a lock: it takes what it needs of the words, has it, and gives it back. Each call
//! may fail, or run out of its budget, after any step; the next one continues, or takes all back.
//! [`Words`] remembers the steps; here stands their order. [`super`] says why they are in order.

use flagpost_link::{Amo, Link, Rank};

use super::words::{
    ALL, EXCLUSIVE, Kind, MASTER, READERS, Step, WANT, Word, Words, is_steadfast, swap_if, wants,
};
use crate::{
    Error,
    window::{
        Core, cell,
        fast::step,
        passive::{Aside, WRITER, Want},
    },
};

/// Attempts that are counted: the pause gets no shorter than between looks.
const MOST_FAILED: u8 = 3;

/// How far a lock has come.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing has happened.
    New,
    Acquiring,
    Held,
    Releasing,
    Done,
}

/// A lock, and what is left to do of it.
#[derive(Debug)]
pub(crate) struct Hold<'e, 'w, L: Link> {
    pub(crate) words: Words<'e, 'w, L>,
    pub(crate) phase: Phase,
}

impl<'e, 'w, L: Link> Hold<'e, 'w, L> {
    #[inline(always)]
    pub(super) fn new(core: &'e Core<'w, L>, kind: Kind, target: Rank) -> Self {
        Self {
            words: Words::new(core, kind, target),
            phase: Phase::New,
        }
    }

    /// True if this rank's piece is locked.
    fn owns(&self) -> bool {
        let words = &self.words;
        words.kind == Kind::All || words.target() == words.core.world.rank()
    }

    fn begin(&mut self) -> Result<(), Error> {
        let target = self.words.target();
        let Words { core, kind, .. } = self.words;
        if core.abandoned.get() {
            return Err(Error::EpochAbandoned);
        }
        if kind == Kind::All {
            core.open(&core.access_open)?;
            core.passive.wait_for()
        } else if core.access_open.get() {
            return Err(Error::EpochOpen);
        } else {
            core.passive.add(target, kind == Kind::Queued)?;
        }
        core.world.add_lock();
        self.phase = Phase::Acquiring;
        Ok(())
    }

    /// Takes the lock, or continues to.
    pub(super) fn obtain(&mut self) -> Result<(), Error> {
        if self.phase == Phase::New {
            self.begin()?;
        }
        self.words.obtain()?;
        let core = self.words.core;
        if self.owns() {
            order!("dirty lines are not dropped": "lock.own.publish<refresh",
                point!(PUBLISH "stores from before the lock are not lost":
                    "lock.own.publish", core.publish(core.all())?),
                point!(REFRESH "G2: this rank finds what earlier holders have put":
                    "lock.own.refresh", core.refresh(core.all())?));
        }
        self.got();
        Ok(())
    }

    /// The lock is there: what it takes of the global word is the rank's from now on.
    #[inline(always)]
    pub(super) fn got(&mut self) {
        let words = &mut self.words;
        if words.is_exclusive() {
            if !words.counted {
                words.core.passive.add_exclusive();
            }
            (words.registered, words.counted) = (false, false);
        }
        words.core.passive.got();
        self.phase = Phase::Held;
    }

    /// Ends the epoch, if it has begun, and takes everything back.
    pub(super) fn release(&mut self) -> Result<(), Error> {
        let core = self.words.core;
        let world = core.world;
        if self.phase == Phase::New {
            self.phase = Phase::Done;
            return Ok(());
        }
        if self.phase == Phase::Held {
            order!("G2: accesses end before the next holder's": "lock.unlock.flush<release",
                {
                    let to = (self.words.kind != Kind::All).then_some(self.words.target());
                    point!(FLUSH "G2: this rank's accesses are complete": "lock.unlock.flush", {
                        let link = world.link();
                        if !link.fast_flush(true) {
                            world.wait().retry(|| link.flush(to))?;
                        }
                    });
                    if self.owns() {
                        point!(PUBLISH "G2: the next holder finds this rank's stores":
                            "lock.unlock.publish", core.publish(core.all())?);
                    }
                },
                {
                    // Its part of the global word goes with the rank's last exclusive lock.
                    if self.words.is_exclusive() {
                        self.words.registered = core.passive.remove_exclusive();
                    }
                    self.phase = Phase::Releasing;
                    self.words.release()?;
                }
            );
        } else {
            self.words.release()?;
        }
        if self.phase == Phase::Acquiring {
            core.passive.got();
        }
        if self.words.kind == Kind::All {
            core.access_open.set(false);
        } else {
            core.passive
                .remove(self.words.target(), self.words.kind == Kind::Queued);
        }
        world.remove_lock();
        self.phase = Phase::Done;
        Ok(())
    }
}

impl<L: Link> Drop for Hold<'_, '_, L> {
    fn drop(&mut self) {
        // A lock that is dropped while it is held is a mistake, which the window shows; peers
        // continue all the same.
        let mistake = matches!(self.phase, Phase::Held | Phase::Releasing);
        if self.phase != Phase::Done && (self.release().is_err() || mistake) {
            let core = self.words.core;
            core.abandoned.set(true);
            core.world.link().abandon(&self.words.op);
        }
    }
}

impl<L: Link> Words<'_, '_, L> {
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
            let writer = swap_if(free, new);
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

// ---- Fast paths: see [`window::fast`](crate::window::fast) ----
//
// An exclusive lock that no other rank wants takes two atomic operations of the machine here, and
// nothing that a wait would need. If anything is unusual the path declines, and the full path
// continues with the words that were taken.

/// Takes an exclusive lock; false if it declines. The full path continues with what has been taken.
#[inline(always)]
pub(super) fn lock_exclusive<L: Link>(hold: &mut Hold<'_, '_, L>) -> bool {
    let core = hold.words.core;
    let (world, target) = (core.world, hold.words.usual);
    if !L::FAST
        || target.get() >= world.size()
        || target == world.rank()
        || core.abandoned.get() | core.access_open.get()
        || !core.passive.is_idle()
        || !register(&mut hold.words)
    {
        return false;
    }
    core.passive.insert_first(target);
    world.add_lock();
    hold.phase = Phase::Acquiring;
    if !take(&mut hold.words) {
        return false;
    }
    hold.got();
    true
}

/// The first step of [`lock_exclusive`]: false if nothing has happened.
#[inline(always)]
fn register<L: Link>(words: &mut Words<'_, '_, L>) -> bool {
    let add = Amo::Add(EXCLUSIVE.into());
    if let Some(old) = step(words.core, MASTER, cell::GLOBAL, add) {
        words.done(Step::Register, old);
    }
    words.registered
}

/// The second step: whether the lock is taken.
#[inline(always)]
fn take<L: Link>(words: &mut Words<'_, '_, L>) -> bool {
    if words.blocked.is_some() {
        return false;
    }
    let writer = swap_if(0, words.core.passive.mark);
    if let Some(old) = step(words.core, words.usual, cell::LOCAL, writer) {
        words.done(Step::Take(0), old);
    }
    words.taken
}

/// Gives back an exclusive lock, which is the only lock that this rank has; false if it declines.
/// The full path continues with what has not been given back.
#[inline(always)]
pub(super) fn unlock_exclusive<L: Link>(hold: &mut Hold<'_, '_, L>) -> bool {
    let core = hold.words.core;
    let (world, target) = (core.world, hold.words.usual);
    if !L::FAST
        || hold.phase != Phase::Held
        || hold.words.kind != Kind::Exclusive
        || target == world.rank()
        || !core.passive.is_only(target)
        // FLUSH: G2 of `epoch::lock`.
        || !world.link().fast_flush(true)
        || !leave(&mut hold.words)
    {
        return false;
    }
    core.passive.remove_first();
    world.remove_lock();
    hold.phase = Phase::Done;
    true
}

/// Both steps of [`lock_exclusive`] the other way round.
#[inline(always)]
fn leave<L: Link>(words: &mut Words<'_, '_, L>) -> bool {
    let core = words.core;
    let free = Amo::Add(core.passive.mark.wrapping_neg().into());
    if !words.taken || step(core, words.usual, cell::LOCAL, free).is_none() {
        return false;
    }
    words.taken = false;
    let less = Amo::Add(EXCLUSIVE.wrapping_neg().into());
    if step(core, MASTER, cell::GLOBAL, less).is_none() {
        words.registered = true;
        return false;
    }
    true
}
