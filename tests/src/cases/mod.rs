//! The cases by what they are about, their `tables`, and what they share.

#[macro_use]
mod families;

mod any_link;
mod apps;
mod attached;
mod collective;
mod collective_unfinished;
mod complete;
mod count_request;
mod counters;
mod created;
mod dynamic;
mod events;
mod fence;
mod hal;
mod handles;
mod link;
mod lock;
mod lock_timeout;
mod making;
mod matching_list;
mod model;
mod notify;
mod notify_access;
mod notify_inline;
mod notify_long;
mod notify_request;
mod notify_stopped;
mod part;
mod progress;
mod pscw;
mod pscw_timeout;
mod rma;
mod rma_layout;
mod rma_request;
mod rma_target;
mod signals;
mod small;
mod stencil;
mod steps;
mod tables;
mod timeout;
mod told;
mod window;
mod world;

use core::{marker::PhantomData, ops::RangeInclusive};

use flagpost::{Config, Link, Session, World};
use flagpost_link::Refusal;

use crate::{Case, Context, MachinePlatform, Platform, Result, Ring};

/// The cases that any link can run.
pub(crate) struct Links<P>(PhantomData<P>);

/// All cases, for load/store machines.
pub(crate) struct Machines<P>(PhantomData<P>);

/// Any number of cores.
const ANY: u16 = u16::MAX;

/// Most cores of a case whose work grows with the square of the cores, while another case shows its
/// protocol at [`ANY`] size. A window has words for each peer: with 512 harts on one thread of the
/// host, each window that a case makes costs a hundred million instructions.
const MANY: u16 = 256;

impl<P: Platform> Links<P> {
    pub(crate) const ALL: &'static [&'static [Case<P>]] = &[
        Self::LINK,
        Self::GENERAL,
        Self::NOTIFY,
        Self::NOTIFY_SHARED,
        Self::SMALL_NOTIFY,
        Self::SMALL_NOTIFY_SHARED,
        Self::SMALL_NOTIFY_BELLS,
        Self::NOTIFY_FULL,
        Self::SLOTS,
        Self::LIST,
        Self::SIGNALLED,
        Self::MODEL,
        Self::LOCK,
        Self::FENCE,
        Self::RMA,
        Self::COLLECTIVE,
        Self::WINDOW,
        Self::TOLD,
        Self::PROGRESS,
        Self::NOTIFIED,
        Self::COUNTED,
        // No mutation point needs a whole program to be noticed.
        if P::PROGRAMS && cfg!(not(mutants)) {
            Self::APPS
        } else {
            &[]
        },
    ];
}

impl<P: MachinePlatform> Machines<P> {
    pub(crate) const ALL: &'static [&'static [Case<P>]] = &[
        Self::HAL,
        Self::MACHINE,
        Self::PROGRESS_DIRECT,
        Self::VECTOR,
        Self::VECTOR_LOCKS,
        Self::LIST_LOCKS,
    ];
}

const fn case<P: Platform>(
    name: &'static str,
    cores: RangeInclusive<u16>,
    run: fn(&mut Context<'_, P>) -> Result,
) -> Case<P> {
    Case {
        name,
        min_cores: *cores.start(),
        max_cores: *cores.end(),
        epochs: 1,
        atomics: false,
        lacks: None,
        leftovers: false,
        run,
    }
}

/// `case`, if the platform has what it needs.
const fn needs<P: Platform>(has: bool, what: &'static str, case: Case<P>) -> Case<P> {
    let lacks = if has { None } else { Some(what) };
    Case { lacks, ..case }
}

/// `case`, which uses the machine's atomics.
const fn atomics<P: MachinePlatform>(case: Case<P>) -> Case<P> {
    let atomics = true;
    needs(P::ATOMICS.is_some(), "atomics", Case { atomics, ..case })
}

/// `case`, in which cores ring each other's bells.
const fn rings<P: MachinePlatform>(case: Case<P>) -> Case<P> {
    needs(P::BELL.is_some(), "bells", case)
}

/// `case`, in which ranks find [leftovers](Case::leftovers).
const fn leftovers<P: Platform>(case: Case<P>) -> Case<P> {
    let leftovers = true;
    Case { leftovers, ..case }
}

/// `case`, which makes a call wait for a lock of the machine.
const fn locks<P: MachinePlatform>(case: Case<P>) -> Case<P> {
    needs(P::LOCKS, "words that are changed under locks", case)
}

/// How many notifications to one rank, of which none is matched, are more than the unexpected queue
/// and its spare place hold, and more than any ring; and less than the queue and the ring of one
/// sender. Where there are more than 8 ranks, a ring may have 2 entries.
const fn crowd(size: u16) -> u16 {
    if size > 8 { 65 } else { 70 }
}

/// Repeats `operation` while the link refuses it for the moment only.
fn insist<L: Link, T>(link: &L, mut operation: impl FnMut() -> Result<T, Refusal>) -> Result<T> {
    loop {
        match operation() {
            Err(refusal) if refusal.is_transient() => link.relax(),
            other => return Ok(other?),
        }
    }
}

/// Session `number` of a case that has several worlds, besides the context's: 1 or 2.
fn other(session: Session, number: u32) -> Session {
    // Contexts count from 1, and far below these.
    Session::new(session.get() ^ (number << 30)).unwrap_or(session.next())
}

/// Joins the case's world, with what the context lends.
fn join<'c, P: Platform>(context: &'c mut Context<'_, P>) -> Result<World<'c, P::Link>> {
    join_as(context, context.session, None)
}

/// [`join`], with one ring for all producers.
fn join_shared<'c, P: Platform>(context: &'c mut Context<'_, P>) -> Result<World<'c, P::Link>> {
    join_as(context, context.session, Some(Ring::Shared { entries: 64 }))
}

/// [`join`], as another session than the context's, or with other rings.
fn join_as<'c, P: Platform>(
    context: &'c mut Context<'_, P>,
    session: Session,
    ring: Option<Ring>,
) -> Result<World<'c, P::Link>> {
    let link = P::link(&context.machine, session, ring)?;
    let world = World::start(link, context.arena, Config::default())?;
    P::go(&context.machine);
    Ok(world)
}
