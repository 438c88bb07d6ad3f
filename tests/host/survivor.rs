//! What a rank that polls is told when another one is lost: by each call that does not wait.
//!
//! Two ranks. Rank 1 does what rank 0 may still find, and is lost. Then rank 0 makes each call in a
//! loop: the loop finds what has arrived, and ends with [`Error::PeerLost`].

use flagpost::{
    Compare, Counter, Error, Link, Model, Options, Rank, Rma as _, Signal, Tag, Word as _, World,
    rma::{Layout, Operation, Scatter},
    test_any,
};

const SURVIVOR: Rank = Rank::new(0);
/// The rank that is lost.
pub(crate) const LOST: Rank = Rank::new(1);

/// Rank 0 polls. `lose` is called by rank 1, as the last thing that it does; `know` by rank 0,
/// which knows of the loss when that returns, or after `tries` polls at the most.
///
/// # Errors
/// What went wrong; the name of the call that says nothing.
pub(crate) fn polls<L: Link>(
    world: &World<'_, L>,
    lose: impl FnOnce(),
    know: impl FnOnce(),
    tries: u32,
) -> Result<(), Error> {
    let mut window = world.allocate::<u32>(4)?;
    window.set_num_notify(1)?;
    let events = world.events(1)?;
    let unified = world.allocate_with::<u32, flagpost::EpochSlots<'_>>(
        1,
        Options {
            strategy: (),
            model: Model::Unified,
        },
    )?;
    if world.rank() == LOST {
        for tag in [1, 2, 3] {
            window.notify(SURVIVOR, Tag(tag))?;
        }
        window.notify(SURVIVOR, Counter(0))?;
        events.post(SURVIVOR, 0)?;
        world.barrier()?;
        let mut ready = window.expect(0..0, Tag(9))?.from(SURVIVOR)?;
        ready.start()?;
        ready.wait()?;
        lose();
        return Ok(());
    }
    world.barrier()?;
    let lost = [LOST];
    let group = world.group(&lost)?;
    let mut exposure = window.post(&group)?;
    let access = window.start(&group)?;
    let shared = unified.lock_shared(LOST)?;
    window.notify(LOST, Tag(9))?;
    know();

    let told = |what, poll: &mut dyn FnMut() -> Result<(), Error>| {
        for _ in 0..tries {
            match poll() {
                Ok(()) => {}
                Err(Error::PeerLost(LOST)) => return Ok(()),
                Err(other) => return Err(other),
            }
        }
        panic!("{what} does not say that the rank is lost")
    };
    let drained = |found: bool| if found { Err(Error::CountZero) } else { Ok(()) };

    let mut request = window.expect(0..0, Tag(1))?.from(LOST)?;
    request.start()?;
    assert!(request.test()?.is_some(), "what has arrived, by test");
    request.start()?;
    told("Request::test", &mut || drained(request.test()?.is_some()))?;
    let probe = |tag| window.probe(LOST, Tag(tag));
    assert!(probe(2)?.is_some(), "what has arrived, by probe");
    told("probe", &mut || drained(probe(4)?.is_some()))?;
    let mut requests = [window.expect(0..0, Tag(3))?.from(LOST)?];
    requests[0].start()?;
    let found = test_any(&mut requests)?;
    assert!(found.is_some(), "what has arrived, by test_any");
    requests[0].start()?;
    let mut any = || drained(test_any(&mut requests)?.is_some());
    told("test_any", &mut any)?;

    // One call in 64 says that the rank is lost. (A network is asked for own words, too, and its
    // answer is not there yet: it may be lost.)
    let found = |what: &str, value: &mut dyn FnMut() -> Result<L::Word, Error>| match value()
        .or_else(|_| value())
    {
        Err(Error::PeerLost(LOST)) if !L::DIRECT => Ok::<(), Error>(()),
        value => {
            assert_eq!(value?, 1.into(), "{what}");
            Ok(())
        }
    };
    found("events", &mut || events.query(0))?;
    found("counter", &mut || window.notify_value(Counter(0)))?;
    let mut count = window.expect_count(0..0, Counter(0), 1)?;
    count.start()?;
    found("count, by test", &mut || {
        Ok(count.test()?.unwrap_or_default())
    })?;
    told("query", &mut || events.query(0).map(drop))?;
    let mut event = window.expect_word(0..0, events.event(0)?, Compare::Ge, 1.into())?;
    event.start()?;
    let taken = |left: L::Word| left.wrapping_add(1.into());
    let mut taken = || Ok(event.test()?.map(taken).unwrap_or_default());
    found("event, by test", &mut taken)?;
    if !event.is_started() {
        event.start()?;
    }
    told("test of an event", &mut || drained(event.test()?.is_some()))?;
    told("notify_value", &mut || {
        window.notify_value(Counter(0)).map(drop)
    })?;
    told("signal_fetch", &mut || {
        window.signal_fetch(Signal(0)).map(drop)
    })?;
    let mut more = window.expect_count(0..0, Counter(0), 2)?;
    more.start()?;
    told("WordRequest::test", &mut || drained(more.test()?.is_some()))?;
    let mut counts = [more];
    let mut any = || drained(test_any(&mut counts)?.is_some());
    told("test_any of a counter", &mut any)?;
    let mut reset = || window.reset_notify_value(Counter(0)).map(drop);
    told("reset_notify_value", &mut reset)?;

    let posted = |found| if found { Err(Error::CountZero) } else { Ok(()) };
    told("has_posted", &mut || posted(access.has_posted(LOST)?))?;
    told("Exposure::test", &mut || posted(exposure.test()?))?;

    let mut word = [0];
    told("get", &mut || shared.get(LOST, 0, &mut word))?;
    let all = Layout::Contiguous { count: 1 };
    told("get_layout", &mut || {
        shared
            .to(LOST, 0)
            .layout(all)
            .get(Scatter::from(&mut word[..]))
            .and_then(flagpost::rma::Request::wait)
    })?;
    told("fetch_and_op", &mut || {
        shared.fetch_and_op(LOST, 0, 1, Operation::SUM).map(drop)
    })?;
    told("compare_and_swap", &mut || {
        shared.compare_and_swap(LOST, 0, 7, 8).map(drop)
    })?;
    told("get_accumulate", &mut || {
        shared.get_accumulate(LOST, 0, &[1], Operation::SUM, &mut word)
    })?;
    if L::DIRECT {
        let peer = unified.peer(LOST)?;
        told("Peer::get", &mut || peer.get(0).map(drop))?;
    }
    told("Local::get", &mut || unified.local().get(0).map(drop))?;

    // The ring of the lost rank is full at some time.
    told("rma::Request::test", &mut || {
        let mut put = window.to(LOST, 0).notify(Tag(5)).put(&[1])?;
        for _ in 0..tries {
            if put.test()? {
                return Ok(());
            }
        }
        Err(Error::CountZero)
    })?;
    core::mem::forget((shared, access, exposure));
    Ok(())
}
