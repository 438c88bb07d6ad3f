//! The link by itself: where it lets accesses go, and what it promises behind each way of being
//! told.
//!
//! The kernel sleeps between two looks and takes locks for other reasons. Here the waiting rank
//! only looks, so that whatever a look promises is up to it alone.

use flagpost::{Link as _, VectorLink, World};
use flagpost_hal::{Relax, Topology};
use flagpost_link::{
    Access as _, Amo, Key, LocalMemory as _, Op, Place, Refusal, Slot, Telling as _, Waiting as _,
    Wants, Width,
};

use super::join;
use super::steps::{FIRST, SECOND};
use crate::{Context, MachinePlatform, Result, context::check};

type Link<P> = <P as crate::Platform>::Link;

/// The last byte of the memory that ranks share can be had, and the one behind it cannot.
pub(super) fn last_byte<P: MachinePlatform>(context: &mut Context<'_, P>) -> Result {
    let size = context.machine.memory_size();
    let world = join(context)?;
    let (link, me) = (world.link(), world.rank());
    let next = me.next(world.size());
    let rest = match link.allocate(usize::MAX, Place::Symmetric) {
        Err(Refusal::NoMemory { missing }) => usize::MAX - missing,
        _ => 0,
    };
    let missing = Refusal::NoMemory { missing: 1 };
    check(
        "too much",
        link.allocate(rest + 1, Place::Symmetric) == Err(missing),
        true,
    )?;
    let key = link.allocate(rest, Place::Symmetric)?;
    let beyond = Err(Refusal::OutOfRange { end: size + 1 });
    world.barrier()?;
    let edge = [(rest - 4, Ok(())), (rest - 3, beyond)];
    let mut word = [0; 4];
    for (offset, expected) in edge {
        let put = link.put(next, key, offset, &[7; 4]);
        let get = link.get(next, key, offset, &mut word, &Op::new());
        check("a peer's", put == expected && get == expected, true)?;
    }
    let notified = link.put_immediate(next, (key, rest - 3), &[7; 4], 0, true, &Op::new());
    check("a notified put", notified == beyond, true)?;
    world.barrier()?;
    for (offset, expected) in edge {
        let write = link.write_local(key, offset, &[8; 4]);
        let read = link.read_local(key, offset, &mut word);
        let publish = link.publish(key, offset, 4);
        let refresh = link.refresh(key, offset, 4);
        let all = [write, read, publish, refresh];
        check("one's own", all.iter().all(|done| *done == expected), true)?;
    }
    Ok(world.barrier()?)
}

/// The ways in which a link announces that something has happened, each by itself.
#[derive(Copy, Clone)]
struct Announcement<L> {
    /// Rank 0 prepares to be told.
    prepare: fn(&L, Places),
    /// Rank 1 has stored the word.
    order: fn(&L) -> Result<(), Refusal>,
    /// Rank 1 tells rank 0.
    tell: fn(&L, Places, u32) -> Result<(), Refusal>,
    /// Whether rank 0 has been told.
    told: fn(&L, Places, u32) -> Result<bool, Refusal>,
    /// Rank 0 is ready to be told again.
    forget: fn(&L, Places) -> Result<(), Refusal>,
}

/// Where announcements and what they announce lie.
#[derive(Copy, Clone)]
struct Places {
    words: Key,
    data: Key,
    cell: Key,
}

/// Slots that no collective of the kernel uses.
const TOLD: Slot = Slot(31);
const READ: Slot = Slot(30);

/// Repeats `operation` while it is refused for the moment only.
fn insist<M: Relax>(machine: &M, mut operation: impl FnMut() -> Result<(), Refusal>) -> Result {
    loop {
        match operation() {
            Err(refusal) if refusal.is_transient() => machine.relax(&[]),
            other => return Ok(other?),
        }
    }
}

/// Rank 1 stores a word and announces it; rank 0, which looks again and again, must not have loaded
/// the word earlier than the announcement.
fn announced<P: MachinePlatform>(
    context: &mut Context<'_, P>,
    announcement: Announcement<Link<P>>,
) -> Result {
    const ROUNDS: u32 = 6;
    let machine = context.machine.clone();
    let world = join(context)?;
    let link = world.link();
    let at = Places {
        words: link.allocate(link.sync_bytes(), Place::Symmetric)?,
        data: link.allocate(4, Place::Symmetric)?,
        cell: link.allocate(8, Place::Symmetric)?,
    };
    link.reset(at.words)?;
    link.put(link.rank(), at.cell, 0, &[0; 8])?;
    world.barrier()?;
    for round in 1..=ROUNDS {
        if world.rank() == FIRST {
            (announcement.prepare)(link, at);
            link.fence()?;
            link.signal(SECOND, READ, round)?;
            // Without sleeping until something changes: every moment between two looks counts.
            while !(announcement.told)(link, at, round)? {
                machine.relax(&[]);
            }
            let mut seen = [0; 4];
            link.get(FIRST, at.data, 0, &mut seen, &Op::new())?;
            check("what was announced", u32::from_le_bytes(seen), round)?;
            insist(&machine, || (announcement.forget)(link, at))?;
        } else if world.rank() == SECOND {
            while !link.reached(READ, round)? {
                link.relax();
            }
            let put = link.put(FIRST, at.data, 0, &round.to_le_bytes());
            put?;
            (announcement.order)(link)?;
            insist(&machine, || (announcement.tell)(link, at, round))?;
        }
    }
    Ok(())
}

/// A bit of the match vector.
pub(super) fn post<P: MachinePlatform>(context: &mut Context<'_, P>) -> Result {
    let announcement = Announcement::<Link<P>> {
        prepare: |_, _| (),
        order: |link| link.fence(),
        tell: |link, at, _| link.post(at.words, FIRST),
        told: |link, at, _| Ok(link.posted(at.words, 0) & 0b10 != 0),
        forget: |link, at| link.retire(at.words, SECOND),
    };
    announced(context, announcement)
}

/// A completion counter that comes to 0.
pub(super) fn completion<P: MachinePlatform>(context: &mut Context<'_, P>) -> Result {
    let announcement = Announcement::<Link<P>> {
        prepare: |link, at| link.expect(at.words, 1),
        order: |link| link.fence(),
        tell: |link, at, _| link.complete(at.words, FIRST),
        told: |link, at, _| Ok(link.missing(at.words) == 0),
        forget: |_, _| Ok(()),
    };
    announced(context, announcement)
}

/// A slot.
pub(super) fn signal<P: MachinePlatform>(context: &mut Context<'_, P>) -> Result {
    let announcement = Announcement::<Link<P>> {
        prepare: |_, _| (),
        order: |link| link.fence(),
        tell: |link, _, round| link.signal(FIRST, TOLD, round),
        told: |link, _, round| link.reached(TOLD, round),
        forget: |_, _| Ok(()),
    };
    announced(context, announcement)
}

/// An entry of the ring.
pub(super) fn immediate<P: MachinePlatform>(context: &mut Context<'_, P>) -> Result {
    let announcement = Announcement::<Link<P>> {
        prepare: |_, _| (),
        order: |link| link.fence(),
        tell: |link, at, round| {
            link.put_immediate(FIRST, (at.data, 0), &[], round, true, &Op::new())
        },
        told: |link, _, round| {
            Ok(link.progress(Wants::Any).map(|arrival| arrival.immediate) == Some(round))
        },
        forget: |_, _| Ok(()),
    };
    announced(context, announcement)
}

/// A ring that is full has room for one entry more with each that its owner takes, once the owner
/// has attended.
pub(super) fn room<L: flagpost::Link>(world: &World<'_, L>) -> Result {
    const MOST: usize = 1 << 16;
    let (link, me, op) = (world.link(), world.rank(), Op::new());
    let key = link.allocate(8, Place::Symmetric)?;
    let has_room = || match link.put_immediate(me, (key, 0), &[], 5, true, &op) {
        Err(Refusal::Full(_)) => Ok(false),
        told => told.map(|()| true),
    };
    let mut sent = 0;
    while sent < MOST && has_room()? {
        sent += 1;
    }
    for _ in 0..3 {
        let taken = (0..10).find_map(|_| link.progress(Wants::Any));
        check("taken", taken.is_some(), true)?;
        link.attend();
        check("room for one more", has_room()?, true)?;
        check("and for no other", has_room()?, false)?;
    }
    while link.progress(Wants::Any).is_some() {}
    Ok(world.barrier()?)
}

/// A cell.
pub(super) fn watch<P: MachinePlatform>(context: &mut Context<'_, P>) -> Result {
    let announcement = Announcement::<Link<P>> {
        prepare: |_, _| (),
        order: |link| link.fence(),
        tell: |link, at, round| {
            let amo = Amo::Swap(round.into());
            let told = link.amo(FIRST, at.cell, 0, amo, Width::Half, &Op::new());
            told.map(|_| ())
        },
        told: |link, at, round| {
            let seen = link.watch(at.cell, 0, |value| value == round, &Op::new())?;
            Ok(seen == Some(round))
        },
        forget: |_, _| Ok(()),
    };
    announced(context, announcement)
}

/// A slot, behind a flush: the word is at its target then.
pub(super) fn flush<P: MachinePlatform>(context: &mut Context<'_, P>) -> Result {
    let announcement = Announcement::<Link<P>> {
        prepare: |_, _| (),
        order: |link| link.flush(Some(FIRST)),
        tell: |link, _, round| link.signal(FIRST, TOLD, round),
        told: |link, _, round| link.reached(TOLD, round),
        forget: |_, _| Ok(()),
    };
    announced(context, announcement)
}
