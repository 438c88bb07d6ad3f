//! Several requests at a time.
//!
//! All requests of a call belong to one world; those that are not started are passed over. A notification that matches several
//! goes to the first of the slice.

use core::cell::Cell;

use flagpost_link::Link;

use super::{Request, Status};
use crate::{Error, Missing, Timeout, Waiting};

/// Which of `requests` is complete, if one is, and what it matched last. It is not started any more. Does not wait.
///
/// The same as testing them in order, up to the first that is complete, except that a full queue is an error only if none of
/// them can make room.
///
/// # Errors
/// [`Error::QueueFull`] if the queue holds only what others must match first.
pub fn test_any<L: Link>(
    requests: &mut [Request<'_, L>],
) -> Result<Option<(usize, Status)>, Error> {
    loop {
        let left = missing(requests);
        let mut full = None;
        for (index, request) in requests.iter_mut().enumerate() {
            if !request.is_started() {
                continue;
            }
            match request.test() {
                Ok(Some(status)) => return Ok(Some((index, status))),
                Ok(None) => {}
                Err(Error::QueueFull { capacity }) => full = Some(Error::QueueFull { capacity }),
                Err(other) => return Err(other),
            }
        }
        match full {
            None => return Ok(None),
            // There is room where something has matched.
            Some(_) if missing(requests) < left => {}
            Some(error) => return Err(error),
        }
    }
}

/// Waits until one of `requests` is complete: which, and what it matched last. None if none is started.
///
/// # Errors
/// As [`test_any`]; [`Error::Timeout`] with how many notifications are missing to all of them, and from whom (unless one would
/// take anybody's). They stay started.
pub fn wait_any<L: Link>(
    requests: &mut [Request<'_, L>],
) -> Result<Option<(usize, Status)>, Error> {
    wait(requests, |requests| match test_any(requests)? {
        None => Ok(None),
        some => Ok(Some(some)),
    })
}

/// Waits until all of `requests` are complete: [`Request::status`] says what each matched last.
///
/// # Errors
/// As [`wait_any`]. Some may be complete.
pub fn wait_all<L: Link>(requests: &mut [Request<'_, L>]) -> Result<(), Error> {
    let done = wait(requests, |requests| {
        while test_any(requests)?.is_some() {}
        let all = !requests.iter().any(Request::is_started);
        Ok(all.then_some(None))
    });
    done.map(|_| ())
}

/// Polls the requests within the budget; nothing at once if none is started.
fn wait<'r, L: Link>(
    requests: &mut [Request<'r, L>],
    mut poll: impl FnMut(&mut [Request<'r, L>]) -> Result<Option<Option<(usize, Status)>>, Error>,
) -> Result<Option<(usize, Status)>, Error> {
    let Some(world) = requests
        .iter()
        .find(|one| one.is_started())
        .map(Request::world)
    else {
        return Ok(None);
    };
    let late = Cell::new(None);
    world.wait(
        || {
            let answer = poll(requests)?;
            let started = || requests.iter().filter(|one| one.is_started());
            let sources = started().map(Request::source);
            let known = sources.clone().all(|source| source.is_some());
            let named = sources.flatten().filter(|_| known);
            late.set(Some(Missing::among(named, missing(requests))));
            Ok(answer)
        },
        || Timeout {
            waiting: Waiting::Notification,
            missing: late.get().unwrap_or(Missing::among([].into_iter(), 0)),
        },
    )
}

/// How many notifications are missing to those that are started.
fn missing<L: Link>(requests: &[Request<'_, L>]) -> u32 {
    let started = requests.iter().filter(|one| one.is_started());
    started.map(Request::left).fold(0, u32::saturating_add)
}
