//! Several requests at a time.
//!
//! All requests of a call belong to one world; those that are not started are passed over.

use core::cell::Cell;

use flagpost_link::{Link, point};

use super::{Request, Status};
use crate::{Error, Missing, Timeout, Waiting, World};

/// Which of `requests` is complete, if one is, and what it matched last. It is not started any
/// more. Does not wait.
///
/// All look at the unexpected queue, in order; then each notification that the link has goes to the
/// first that it matches, until one is complete.
///
/// # Errors
/// [`Error::QueueFull`] if the queue holds only what others must match first;
/// [`Error::WrongWindow`] if the requests are not of one world; [`Error::PeerLost`] if none is
/// complete and a rank is lost, [`Error::PeerLeft`] if all their sources have left.
///
/// # Example
/// ```
/// # flagpost_guide::simulate(2, |world| {
/// use flagpost::{Tag, notify::test_any};
///
/// let window = world.allocate::<u32>(2)?;
/// let next = world.rank().next(world.size());
/// let mut requests = [
///     window.expect(0..1, Tag(0))?,
///     window.expect(1..2, Tag(1))?,
/// ];
/// for request in &mut requests {
///     request.start()?;
/// }
/// window.put_notify(next, 1, &[7], Tag(1))?;
/// let (index, _) = loop {
///     if let Some(found) = test_any(&mut requests)? {
///         break found;
///     }
/// };
/// assert_eq!((index, window.local().get(1)?), (1, 7));
/// # Ok(())
/// # });
/// ```
#[track_caller]
pub fn test_any<L: Link>(
    requests: &mut [Request<'_, L>],
) -> Result<Option<(usize, Status)>, Error> {
    if let Some(request) = requests.first() {
        called!(request.world());
    }
    let Some(world) = world_of(requests)? else {
        return Ok(None);
    };
    world.wait().once(
        requests,
        |requests| test(world, requests),
        |requests| late(requests, true),
    )
}

/// [`test_any`], once.
fn test<L: Link>(
    world: &World<'_, L>,
    requests: &mut [Request<'_, L>],
) -> Result<Option<(usize, Status)>, Error> {
    for (index, request) in started(requests) {
        // ORDER: what has arrived before comes first.
        point!("notify.several.queue", request.take_queued());
        if let Some(status) = request.complete()? {
            return Ok(Some((index, status)));
        }
    }
    // ROOM: what is taken from the link must be kept.
    while point!("notify.several.room", !world.queue.has_no_spare(); else true) {
        let Some(immediate) = world.next_notification(None) else {
            return Ok(None);
        };
        let taker = started(requests).find_map(|(index, request)| {
            let takes = request.takes(immediate);
            takes.then_some((index, request))
        });
        match taker {
            None => world.queue.push(immediate),
            Some((index, request)) => {
                if let Some(status) = request.complete()? {
                    return Ok(Some((index, status)));
                }
            }
        }
    }
    let capacity = world.queue.capacity();
    Err(Error::QueueFull { capacity })
}

/// Those that are started, with their indices.
fn started<'s, 'r, L: Link>(
    requests: &'s mut [Request<'r, L>],
) -> impl Iterator<Item = (usize, &'s mut Request<'r, L>)> {
    let all = requests.iter_mut().enumerate();
    all.filter(|(_, request)| request.is_started())
}

/// The world of those that are started; none if none is.
fn world_of<'r, L: Link>(requests: &[Request<'r, L>]) -> Result<Option<&'r World<'r, L>>, Error> {
    let started = requests.iter().filter(|request| request.is_started());
    one_world(started.map(Request::world))
}

/// The world that all of these are; none if there are none.
pub(super) fn one_world<'r, 'w, L: Link>(
    mut worlds: impl Iterator<Item = &'r World<'w, L>>,
) -> Result<Option<&'r World<'w, L>>, Error>
where
    'w: 'r,
{
    let first = worlds.next();
    match first {
        Some(first) if worlds.any(|world| !core::ptr::eq(first, world)) => Err(Error::WrongWindow),
        _ => Ok(first),
    }
}

/// Waits until one of `requests` is complete: which, and what it matched last. None if none is
/// started.
///
/// # Errors
/// [`Error::QueueFull`] if the queue holds only what others must match first;
/// [`Error::WrongWindow`] if the requests are not of one world; [`Error::Timeout`] with how many
/// notifications are missing to all of them, and from whom (unless one would take anybody's). They
/// stay started.
#[track_caller]
pub fn wait_any<L: Link>(
    requests: &mut [Request<'_, L>],
) -> Result<Option<(usize, Status)>, Error> {
    if let Some(request) = requests.first() {
        called!(request.world());
    }
    wait(requests, true, |world, requests| {
        Ok(test(world, requests)?.map(Some))
    })
}

/// Waits until all of `requests` are complete: [`Request::status`] says what each matched last.
///
/// # Errors
/// [`Error::QueueFull`] if the queue holds only what others must match first;
/// [`Error::WrongWindow`] if the requests are not of one world; [`Error::Timeout`] with how many
/// notifications are missing to all of them, and from whom (unless one would take anybody's). Some
/// may be complete.
#[track_caller]
pub fn wait_all<L: Link>(requests: &mut [Request<'_, L>]) -> Result<(), Error> {
    if let Some(request) = requests.first() {
        called!(request.world());
    }
    let done = wait(requests, false, |world, requests| {
        while requests.iter().any(Request::is_started) {
            if test(world, requests)?.is_none() {
                return Ok(None);
            }
        }
        Ok(Some(None))
    });
    done.map(|_| ())
}

/// Polls the requests within the budget; nothing at once if none is started.
fn wait<'r, L: Link>(
    requests: &mut [Request<'r, L>],
    any: bool,
    mut poll: impl FnMut(
        &World<'_, L>,
        &mut [Request<'r, L>],
    ) -> Result<Option<Option<(usize, Status)>>, Error>,
) -> Result<Option<(usize, Status)>, Error> {
    let Some(world) = world_of(requests)? else {
        return Ok(None);
    };
    let missing = Cell::new(late(requests, any));
    world.wait().until(
        || {
            let answer = poll(world, requests)?;
            missing.set(late(requests, any));
            Ok(answer)
        },
        || missing.get(),
    )
}

/// What those that are started wait for; `any`: one of them is enough.
fn late<L: Link>(requests: &[Request<'_, L>], any: bool) -> Timeout {
    let started = || requests.iter().filter(|one| one.is_started());
    let sources = started().map(Request::source);
    let known = sources.clone().all(|source| source.is_some());
    let named = sources.flatten().filter(|_| known);
    Timeout {
        waiting: Waiting::Notification,
        missing: Missing::among(named, missing(requests)).of_any(any),
    }
}

/// How many notifications are missing to those that are started.
fn missing<L: Link>(requests: &[Request<'_, L>]) -> u32 {
    let started = requests.iter().filter(|one| one.is_started());
    started.map(Request::left).fold(0, u32::saturating_add)
}
