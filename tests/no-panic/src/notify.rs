//! Notifications: matched, counted, and with every access.

use flagpost::{
    Compare, Complete, Counter, Error, Link, Notice, Rank, Request, Signal, Tag, TagFilter,
    Unfinished, Window, Word, World, test_any, wait_all, wait_any,
};
use flagpost_verbs::{Verb, begin};

use crate::{any, budget, index, rank, unknown};

pub(crate) fn notifications<L: Link>(window: &Window<'_, u64, L>) -> Result<(), Error> {
    window.put_notify(rank(), index(), &[1; 2], Tag(any()))?;
    window.put_notify(rank(), index(), &[1; 20], Tag(any()))?;
    let range = index()..index();
    let mut one = window
        .expect(range.clone(), Tag(any()))?
        .from(rank())?
        .times(any() as u16)?;
    let mut other = window.expect(range, TagFilter::Any)?.times(any() as u16)?;
    one.start()?;
    other.start()?;
    if other.test()?.is_none() {
        let status = one.wait_within(budget())?;
        unknown(status.source.get().into(), status.tag.0);
    }
    let mut both = [one, other];
    both.iter_mut().try_for_each(Request::start)?;
    let complete = (test_any(&mut both)?, wait_any(&mut both)?);
    wait_all(&mut both)?;
    for request in both {
        let status = request.status();
        unknown(
            request.is_started().into(),
            status.map_or(0, |status| status.tag.0),
        );
        unknown(complete.0.is_some().into(), complete.1.is_some().into());
        request.free()?;
    }
    if window.probe(Rank::new(any() as u16), Tag(any()))?.is_none() {
        unknown(window.discard_notifications()?, 0);
    }
    told(window)
}

/// Any notice.
pub(crate) fn notice<W: Word>() -> Notice<'static, W> {
    match any() {
        0 => Tag(any()).into(),
        1 => Counter(any()).into(),
        2 => Signal(any()).set(any().into()),
        _ => Signal(any()).add(any().into()),
    }
}

/// All accesses that tell, without an epoch.
fn told<L: Link>(window: &Window<'_, u64, L>) -> Result<(), Error> {
    let mut old = [0; 9];
    window.notify(rank(), notice())?;
    window.put_notify(rank(), index(), &[1; 3], notice())?;
    window.get_notify(rank(), index(), &mut old, notice())?;
    for verb in Verb::ALL {
        let target = window.to(rank(), index()).notify(notice());
        let begun = begin!(verb, target, &[1; 9], &mut old)?;
        if let Err(late) = begun.wait_within(budget()) {
            late.handle.wait()?;
        }
    }
    Ok(())
}

pub(crate) fn counted<L: Link>(world: &World<'_, L>) -> Result<(), Error> {
    let mut window = world.allocate::<u64>(index())?;
    window.set_num_notify(any())?;
    window.set_num_notify(any())?;
    let events = world.events(any())?;
    let compare = match any() {
        0 => Compare::Eq,
        1 => Compare::Gt,
        _ => Compare::Le,
    };
    window.notify(rank(), Counter(any()))?;
    window.put_notify(rank(), index(), &[1; 9], Signal(any()).set(any().into()))?;
    window.notify(rank(), Signal(any()).add(any().into()))?;
    window.set_notify_value(Counter(any()), any().into())?;
    let mut value: u64 = window.notify_value(Counter(any()))?.into();
    value ^= window.reset_notify_value(Counter(any()))?.into();
    value ^= u64::from(window.num_notify(rank())?);
    value ^= window.signal_fetch(Signal(any()))?.into();
    let range = index()..index();
    value ^= window
        .wait_until(range, Signal(any()), compare, any().into())?
        .into();
    events.post(rank(), any())?;
    if let Err(late) = events.posting(rank(), any())?.test()
        && let Err(late) = late.handle.wait_within(budget())
    {
        late.handle.wait()?;
    }
    if let Err(late) = events.syncing([rank()])?.test() {
        late.handle.wait_within(budget()).map_err(Unfinished::give_up)?;
    }
    value ^= events.query(any())?.into();
    world.within(budget(), || events.wait(any(), any()))?;
    let event = events.event(any())?;
    window.put_notify(rank(), index(), &[1; 9], event)?;
    let mut requests = [
        window.expect_count(index()..index(), Counter(any()), any())?,
        window.expect_word(index()..index(), event, compare, any().into())?,
        window.expect_word(index()..index(), Signal(any()), compare, any().into())?,
    ];
    for request in &mut requests {
        request.start()?;
    }
    while let Some(done) = wait_any(&mut requests)? {
        unknown(done as u32, 0);
    }
    let mut told = window.expect(index()..index(), Tag(any()))?;
    let mut put = window.to(rank(), index()).notify(Tag(any())).put(&[1; 9])?;
    let [first, ..] = &mut requests;
    let mut mixed = [first as &mut dyn Complete<'_, _>, &mut told, &mut put];
    if let Some(done) = test_any(&mut mixed)? {
        unknown(done as u32, 1);
    }
    wait_any(&mut mixed)?;
    wait_all(&mut mixed)?;
    let [mut one, other, _] = requests;
    one.test()?;
    one.wait_within(budget())?;
    one.cancel()?;
    other.free().map_err(Unfinished::give_up)?;
    unknown(value as u32, events.len() ^ u32::from(events.is_empty()));
    if let Err(late) = events.freeing().wait_within(budget()) {
        late.handle.wait()?;
    }
    if let Err(late) = window.freeing().wait_within(budget()) {
        late.handle.wait()?;
    }
    Ok(())
}
