//! Waiting for several requests at a time, of any kind.
//!
//! A request stands for something that is not complete yet: notifications that have not come, a
//! counter or an event that is too low, an access that is not done. Each kind implements
//! [`Complete`]. So one call polls, or waits for, any mix of them. Each call works on a slice: of
//! requests of one kind, or of `&mut dyn Complete`.
//!
//! # Guarantee
//! G1. Each request is given once: then it is complete, and not open any more.
//! G2. The guarantee of each kind when it is complete holds when it is given.
//! G3. A notification that is taken from the link goes to the first open request that it matches,
//!     else into the unexpected queue.
//!
//! # Open requests
//! | kind | open |
//! |---|---|
//! | [`Request`](crate::Request), [`WordRequest`](crate::WordRequest) | while it is started |
//! | [`rma::Request`](crate::rma::Request), [`Fetch`](crate::rma::Fetch) | until it is given |
//!
//! Requests that are not open are passed over. All open ones belong to one world.

use core::cell::Cell;

use flagpost_link::{Link, Wants};

use crate::{Error, Missing, Timeout, Waiting, World};

/// Something that completes: [`test_any`], [`wait_any`] and [`wait_all`] take a mix of these.
///
/// Implemented by [`Request`](crate::Request), [`WordRequest`](crate::WordRequest),
/// [`rma::Request`](crate::rma::Request), [`Fetch`](crate::rma::Fetch), and by `&mut` of these.
///
/// # Example
/// ```
/// # flagpost_guide::simulate(2, |world| {
/// use flagpost::{Complete, Counter, Rma as _, Tag, wait_all};
///
/// let mut window = world.allocate::<u32>(3)?;
/// let peer = world.rank().next(world.size());
/// window.set_num_notify(1)?;
/// let mut told = window.expect(0..1, Tag(1))?;
/// let mut counted = window.expect_count(1..2, Counter(0), 1)?;
/// told.start()?;
/// counted.start()?;
/// let lock = window.lock_shared(peer)?;
/// let mut got = [9];
/// let mut get = lock.to(peer, 2).get(&mut got)?;
/// window.put_notify(peer, 0, &[7], Tag(1))?;
/// window.put_notify(peer, 1, &[8], Counter(0))?;
/// wait_all(&mut [&mut told as &mut dyn Complete<'_, _>, &mut counted, &mut get])?;
/// assert_eq!((window.local().get(0)?, window.local().get(1)?, got), (7, 8, [0]));
/// lock.unlock()?;
/// # Ok(())
/// # });
/// ```
pub trait Complete<'s, L: Link>: Sealed {
    /// The world that it belongs to.
    #[doc(hidden)]
    fn world(&self) -> &'s World<'s, L>;

    /// True if it is still to be given.
    #[doc(hidden)]
    fn is_open(&self) -> bool;

    /// Continues as far as that is possible now. If it is complete, it is not open any more.
    #[doc(hidden)]
    fn poll(&mut self) -> Result<bool, Error>;

    /// The wait that has not ended.
    #[doc(hidden)]
    fn late(&self) -> Timeout;

    /// Whose notifications it waits for; none if it takes none.
    #[doc(hidden)]
    fn wants(&self) -> Option<Wants> {
        None
    }

    /// Takes a notification if it matches.
    #[doc(hidden)]
    fn offer(&mut self, _immediate: u32) -> bool {
        false
    }
}

pub(crate) use sealed::Sealed;

/// Closed to other types.
mod sealed {
    pub trait Sealed {}

    impl<C: Sealed + ?Sized> Sealed for &mut C {}
}

impl<'s, L: Link, C: Complete<'s, L> + ?Sized> Complete<'s, L> for &mut C {
    fn world(&self) -> &'s World<'s, L> {
        (**self).world()
    }

    fn is_open(&self) -> bool {
        (**self).is_open()
    }

    fn poll(&mut self) -> Result<bool, Error> {
        (**self).poll()
    }

    fn late(&self) -> Timeout {
        (**self).late()
    }

    fn wants(&self) -> Option<Wants> {
        (**self).wants()
    }

    fn offer(&mut self, immediate: u32) -> bool {
        (**self).offer(immediate)
    }
}

/// Which of the open `requests` is complete, if one is: each is given once. Does not wait.
///
/// Takes notifications from the link: for a request that they match until one is complete; else
/// if there is room. A loop of tests keeps the processor: where ranks share one, call [`wait_any`]
/// in [`World::within`] a short budget.
///
/// # Errors
/// [`Error::QueueFull`] if a request waits for a tag, and the queue holds only what others must
/// match first; [`Error::WrongWindow`] if the requests are not of one world; [`Error::PeerLost`] if
/// none is complete and a rank is lost, [`Error::PeerLeft`] if all that they wait for have left.
///
/// # Example
/// ```
/// # flagpost_guide::simulate(2, |world| {
/// use flagpost::{Tag, test_any};
///
/// let window = world.allocate::<u32>(2)?;
/// let next = world.rank().next(world.size());
/// let mut requests = [window.expect(0..1, Tag(0))?, window.expect(1..2, Tag(1))?];
/// for request in &mut requests {
///     request.start()?;
/// }
/// window.put_notify(next, 1, &[7], Tag(1))?;
/// let index = loop {
///     if let Some(index) = test_any(&mut requests)? {
///         break index;
///     }
/// };
/// assert_eq!((index, window.local().get(1)?), (1, 7));
/// # Ok(())
/// # });
/// ```
#[track_caller]
pub fn test_any<'s, L: Link + 's, C: Complete<'s, L>>(
    requests: &mut [C],
) -> Result<Option<usize>, Error> {
    if let Some(request) = requests.first() {
        looks!(request.world());
    }
    let Some(world) = world_of(requests)? else {
        return Ok(None);
    };
    if !open(requests).any(|(_, one)| one.wants().is_some()) {
        point!(PROGRESS "a rank that waits for room here may be the one to count":
            "complete.progress", world.progress(); else false);
    }
    world.wait().once(
        requests,
        |requests| poll(world, requests),
        |requests| late(requests, true),
    )
}

/// Waits until one of the open `requests` is complete, and gives its index: each is given once.
/// None if none is open.
///
/// More than 4 counters and events are polled without pause where the machine cannot watch as many
/// words.
///
/// # Errors
/// [`Error::QueueFull`] if a request waits for a tag, and the queue holds only what others must
/// match first; [`Error::WrongWindow`] if the requests are not of one world; [`Error::PeerLost`] if
/// none can be complete any more, or the link knows a rank to be lost; [`Error::PeerLeft`]. In
/// [`World::within`] [`Error::Timeout`]: how many notifications and accesses are missing to all of
/// them, and of which ranks, unless one waits for any rank. Those that were open stay so.
///
/// # Example
/// ```
/// # flagpost_guide::simulate(2, |world| {
/// use flagpost::{Rank, Rma as _, epoch::Assert, wait_any};
///
/// let window = world.allocate::<u32>(1)?;
/// window.local().set(0, 7)?;
/// let epoch = window.fence(Assert::empty())?;
/// let (mut first, mut second) = ([0], [0]);
/// let mut requests = [
///     epoch.to(Rank::new(0), 0).get(&mut first)?,
///     epoch.to(Rank::new(1), 0).get(&mut second)?,
/// ];
/// while wait_any(&mut requests)?.is_some() {}
/// drop(requests);
/// assert_eq!((first, second), ([7], [7]));
/// epoch.end()?;
/// # Ok(())
/// # });
/// ```
#[track_caller]
pub fn wait_any<'s, L: Link + 's, C: Complete<'s, L>>(
    requests: &mut [C],
) -> Result<Option<usize>, Error> {
    if let Some(request) = requests.first() {
        looks!(request.world());
    }
    wait(requests, true, |world, requests| {
        Ok(poll(world, requests)?.map(Some))
    })
}

/// Waits until all open `requests` are complete. None of them is open then.
///
/// # Errors
/// Those of [`wait_any`]; where one can never be complete, the others are complete. After
/// [`Error::Timeout`] some may be.
///
/// # Example
/// ```
/// # flagpost_guide::simulate(2, |world| {
/// use flagpost::{Tag, wait_all};
///
/// let window = world.allocate::<u32>(2)?;
/// let next = world.rank().next(world.size());
/// let mut both = [window.expect(0..1, Tag(0))?, window.expect(1..2, Tag(1))?];
/// for request in &mut both {
///     request.start()?;
/// }
/// window.put_notify(next, 1, &[8], Tag(1))?;
/// window.put_notify(next, 0, &[7], Tag(0))?;
/// wait_all(&mut both)?;
/// assert_eq!((window.local().get(0)?, window.local().get(1)?), (7, 8));
/// # Ok(())
/// # });
/// ```
#[track_caller]
pub fn wait_all<'s, L: Link + 's, C: Complete<'s, L>>(requests: &mut [C]) -> Result<(), Error> {
    if let Some(request) = requests.first() {
        looks!(request.world());
    }
    let done = wait(requests, false, |world, requests| {
        while requests.iter().any(C::is_open) {
            if poll(world, requests)?.is_none() {
                return Ok(None);
            }
        }
        Ok(Some(None))
    });
    done.map(|_| ())
}

/// Polls until there is an answer; none immediately if none is open. `any`: one is enough.
fn wait<'s, L: Link + 's, C: Complete<'s, L>>(
    requests: &mut [C],
    any: bool,
    mut poll: impl FnMut(&'s World<'s, L>, &mut [C]) -> Result<Option<Option<usize>>, Error>,
) -> Result<Option<usize>, Error> {
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

/// The first that is complete. An error of one counts when no other one waits.
fn poll<'s, L: Link + 's, C: Complete<'s, L>>(
    world: &World<'s, L>,
    requests: &mut [C],
) -> Result<Option<usize>, Error> {
    let (mut failed, mut waits, mut tagged) = (None, false, false);
    for (index, one) in open(requests) {
        match one.poll() {
            Ok(true) => return Ok(Some(index)),
            Ok(false) => waits = true,
            Err(error) => failed = failed.or(Some(error)),
        }
        tagged |= one.wants().is_some();
    }
    match failed {
        Some(error) if !waits => Err(error),
        _ if tagged => take(world, requests),
        _ => Ok(None),
    }
}

/// Gives each notification of the link to the first open request that it matches, until one is
/// complete.
fn take<'s, L: Link + 's, C: Complete<'s, L>>(
    world: &World<'s, L>,
    requests: &mut [C],
) -> Result<Option<usize>, Error> {
    while point!(ROOM "what is taken from the link must be kept":
        "notify.several.room", !world.queue.has_no_spare(); else true)
    {
        let Some(immediate) = next(world, requests) else {
            return Ok(None);
        };
        match open(requests).find_map(|(index, one)| one.offer(immediate).then_some((index, one))) {
            None => world.queue.push(immediate),
            Some((index, one)) => {
                if one.poll()? {
                    return Ok(Some(index));
                }
            }
        }
    }
    let capacity = world.queue.capacity();
    Err(Error::QueueFull { capacity })
}

/// The next notification of a rank that an open request waits for, or of another one.
fn next<'s, L: Link + 's, C: Complete<'s, L>>(
    world: &World<'s, L>,
    requests: &mut [C],
) -> Option<u32> {
    let mut asked = None;
    open(requests).find_map(|(_, one)| {
        let wants = one.wants()?;
        let again = asked.replace(wants) == Some(wants);
        let ask = || world.next_notification(None, wants);
        (!again).then(ask).flatten()
    })
}

/// Those that are open, with their indices.
fn open<'r, 's, L: Link + 's, C: Complete<'s, L>>(
    requests: &'r mut [C],
) -> impl Iterator<Item = (usize, &'r mut C)> {
    let all = requests.iter_mut().enumerate();
    all.filter(|(_, one)| one.is_open())
}

/// The world of those that are open; none if none is.
fn world_of<'s, L: Link + 's, C: Complete<'s, L>>(
    requests: &[C],
) -> Result<Option<&'s World<'s, L>>, Error> {
    let mut worlds = requests
        .iter()
        .filter(|one| one.is_open())
        .map(Complete::world);
    match worlds.next() {
        Some(first) if worlds.any(|world| !core::ptr::eq(first, world)) => Err(Error::WrongWindow),
        first => Ok(first),
    }
}

/// The waits of those that are open; `any`: one of them is enough.
fn late<'s, L: Link + 's, C: Complete<'s, L>>(requests: &[C], any: bool) -> Timeout {
    let lates = || requests.iter().filter(|one| one.is_open()).map(C::late);
    let names = || lates().map(|late| late.missing.ranks().next());
    let known = names().all(|name| name.is_some());
    let count = lates().map(|late| late.missing.count());
    // A wait for any rank decides how the mix can end.
    let waiting = lates()
        .map(|late| late.waiting)
        .reduce(|one, other| match one {
            Waiting::Notification => one,
            _ => other,
        });
    Timeout {
        waiting: waiting.unwrap_or(Waiting::Notification),
        missing: Missing::among(
            names().flatten().filter(|_| known),
            count.fold(0, u32::saturating_add),
        )
        .of_any(any),
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::{collections::VecDeque, vec, vec::Vec};

    use flagpost_link::{Rank, Waiting as _};
    use flagpost_mapped::Mapped;
    use flagpost_sim::{Config as Chip, Sim, SimCore};

    use super::*;
    use crate::{Config, Session};

    type Memory = Mapped<SimCore>;

    /// Something that ends when it is told to.
    struct Told<'s> {
        world: &'s World<'s, Memory>,
        /// The answers to polls; the last one again and again.
        found: VecDeque<Result<bool, Error>>,
        late: Timeout,
        open: bool,
    }

    impl Sealed for Told<'_> {}

    impl<'s> Complete<'s, Memory> for Told<'s> {
        fn world(&self) -> &'s World<'s, Memory> {
            self.world
        }

        fn is_open(&self) -> bool {
            self.open
        }

        fn poll(&mut self) -> Result<bool, Error> {
            assert!(self.open, "it was given");
            let found = match self.found.len() {
                1 => self.found[0],
                _ => self.found.pop_front().expect("something is found"),
            };
            self.open = found != Ok(true);
            // Nothing wakes this rank up.
            self.world.link().step(flagpost_link::Step::End);
            found
        }

        fn late(&self) -> Timeout {
            self.late
        }
    }

    /// As a request that waits for these ranks.
    fn of(waiting: Waiting, ranks: &[u16]) -> Timeout {
        let missing = Missing::among(ranks.iter().copied().map(Rank::new), 1);
        Timeout { waiting, missing }
    }

    fn alone(program: impl Fn(&World<'_, Memory>)) {
        let chip = Chip {
            cores: 1,
            ..Chip::default()
        };
        let report = Sim::new(chip).run(|core| {
            let mut words = [0; 64];
            let link = Mapped::start(core, Session::FIRST)?;
            World::run(link, &mut words, Config::default(), |world| {
                program(world);
                Ok::<_, Error>(())
            })
        });
        report.assert_done();
    }

    const LOST: Error = Error::PeerLost(Rank::new(1));
    const LEFT: Error = Error::PeerLeft(Rank::new(2));

    /// Those that find this, in the order that is named.
    fn requests<'s>(
        world: &'s World<'s, Memory>,
        found: &[&[Result<bool, Error>]],
    ) -> Vec<Told<'s>> {
        let told = |found: &&[_]| Told {
            world,
            found: found.iter().copied().collect(),
            late: of(Waiting::Answer, &[1]),
            open: true,
        };
        found.iter().map(told).collect()
    }

    /// One fails and one waits: that one is given all the same, and then the failure, wherever they
    /// are.
    #[test]
    fn a_failure_counts_when_no_other_one_waits() {
        const FAILS: &[Result<bool, Error>] = &[Err(LOST)];
        const FAILS_LATER: &[Result<bool, Error>] = &[Ok(false), Err(LOST)];
        const WAITS: &[Result<bool, Error>] = &[Ok(false), Ok(false), Ok(false), Ok(true)];
        let orders: [&[&[_]]; 6] = [
            &[FAILS, WAITS],
            &[WAITS, FAILS],
            &[FAILS_LATER, WAITS],
            &[WAITS, FAILS_LATER],
            &[FAILS, WAITS, FAILS],
            &[WAITS, FAILS, WAITS],
        ];
        for order in orders {
            let places = (0..order.len()).filter(|place| order[*place] == WAITS);
            let places: Vec<_> = places.collect();
            alone(|world| {
                let mut all = requests(world, order);
                for place in &places {
                    assert_eq!(wait_any(&mut all), Ok(Some(*place)), "{order:?}");
                }
                assert_eq!(wait_any(&mut all), Err(LOST), "{order:?}");
                let mut all = requests(world, order);
                let mut given = vec![];
                while given.len() < places.len() {
                    given.extend(test_any(&mut all).expect("one waits"));
                }
                assert_eq!(given, places);
                assert_eq!(test_any(&mut all), Err(LOST), "{order:?}");
                let mut all = requests(world, order);
                assert_eq!(wait_all(&mut all), Err(LOST), "{order:?}");
                for (one, found) in all.iter().zip(order) {
                    assert_eq!(one.open, *found != WAITS, "the others are complete");
                }
            });
        }
    }

    /// The first one's, where several fail.
    #[test]
    fn of_several_failures_the_first_counts() {
        for (first, second) in [(LOST, LEFT), (LEFT, LOST)] {
            alone(|world| {
                let both = || requests(world, &[&[Err(first)], &[Err(second)]]);
                assert_eq!(wait_any(&mut both()), Err(first));
                assert_eq!(test_any(&mut both()), Err(first));
                assert_eq!(wait_all(&mut both()), Err(first));
                let mut later = requests(world, &[&[Ok(false), Err(first)], &[Err(second)]]);
                assert_eq!(wait_any(&mut later), Err(first));
            });
        }
    }

    /// The wait of a mix, in both orders. If one of it may come from any rank, that is a reason to
    /// wait on, and then no rank is named.
    #[test]
    fn a_mix_waits_for_any_rank_if_one_of_it_does() {
        use Waiting::{Answer, Notification};
        let table: [(Timeout, Timeout, Waiting, &[u16]); 6] = [
            (
                of(Notification, &[]),
                of(Notification, &[2]),
                Notification,
                &[],
            ),
            (
                of(Notification, &[]),
                of(Notification, &[]),
                Notification,
                &[],
            ),
            (of(Notification, &[]), of(Answer, &[2]), Notification, &[]),
            (
                of(Notification, &[1]),
                of(Notification, &[2]),
                Notification,
                &[1, 2],
            ),
            (
                of(Notification, &[1]),
                of(Answer, &[2]),
                Notification,
                &[1, 2],
            ),
            (of(Answer, &[1]), of(Answer, &[2]), Answer, &[1, 2]),
        ];
        alone(|world| {
            for (first, second, waiting, ranks) in table {
                for reversed in [false, true] {
                    let mut both = requests(world, &[&[Ok(false)][..]; 2]);
                    (both[0].late, both[1].late) = (first, second);
                    let mut ranks: Vec<_> = ranks.iter().copied().map(Rank::new).collect();
                    if reversed {
                        both.reverse();
                        ranks.reverse();
                    }
                    for any in [false, true] {
                        let missing = Missing::among(ranks.iter().copied(), 2).of_any(any);
                        assert_eq!(late(&both, any), Timeout { waiting, missing });
                    }
                    // One that is complete is not waited for.
                    both[0].open = false;
                    assert_eq!(late(&both, false), both[1].late);
                }
            }
        });
    }
}
