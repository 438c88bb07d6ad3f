//! Fast paths of locks: see [`window::fast`](crate::window::fast). An exclusive
//! lock that no other rank wants takes two atomic operations of the machine here, and nothing that
//! a wait would need. If anything is unusual the path declines, and the full path continues with
//! the words that were taken.

use flagpost_link::{Amo, Link};

use super::{
    hold::{Hold, Phase},
    words::{EXCLUSIVE, Kind, MASTER, Step, Words, swap_if},
};
use crate::window::{cell, fast::step};

/// Takes an exclusive lock; false if it declines. The full path continues with what has been taken.
#[inline(always)]
pub(crate) fn lock_exclusive<L: Link>(hold: &mut Hold<'_, '_, L>) -> bool {
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
pub(crate) fn unlock_exclusive<L: Link>(hold: &mut Hold<'_, '_, L>) -> bool {
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
