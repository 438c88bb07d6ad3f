//! Epochs of all kinds, and what can be done in them.

use flagpost::epoch::{Assert, Strategy};
use flagpost::rma::{Block, Element, Gather, Integer, Layout, Operation, Scatter};
use flagpost::{Error, Group, Link, Rma, Unfinished, Window, World};

use flagpost_verbs::{Verb, begin};

use crate::notify::notice;
use crate::{any, budget, index, rank, unknown};

pub(crate) fn epochs<'w, L: Link, S: Strategy<'w, L>>(
    window: &Window<'w, u64, L, S>,
    group: &Group<'_>,
) -> Result<(), Error> {
    let mut exposure = match window.posting(group)?.wait_within(budget()) {
        Ok(exposure) => exposure,
        Err(late) => match late.handle.test() {
            Ok(exposure) => exposure,
            Err(late) => late.handle.wait()?,
        },
    };
    let access = window.start(group)?;
    access.has_posted(rank())?;
    window.world().within(budget(), || access.await_posts())?;
    let mut data = [0; 9];
    combined(&access)?;
    anywhere(&access)?;
    access.get(rank(), index(), &mut data)?;
    access.put(rank(), index(), &data)?;
    if let Err(late) = access.completing().test()
        && let Err(late) = late.handle.wait_within(budget())
    {
        late.handle.wait()?;
    }
    if !exposure.test()?
        && let Err(late) = exposure.wait_within(budget())
    {
        late.handle.wait()?;
    }
    window.start(group)?.complete()?;
    window.post(group)?.wait()?;
    window.local().copy_in(index(), &data)?;
    window.local().copy_out(index(), &mut data)?;
    unknown(data[0] as u32, 0);
    Ok(())
}

pub(crate) fn passive<L: Link>(window: &Window<'_, u64, L>) -> Result<(), Error> {
    for how in 0..any() {
        let locked = match how {
            0 => window.locking_shared(rank())?.wait_within(budget()),
            1 => window.locking_exclusive(rank())?.wait_within(budget()),
            2 => window.locking_queued(rank())?.wait_within(budget()),
            _ => window.locking_all().wait_within(budget()),
        };
        let lock = match locked {
            Ok(lock) => lock,
            Err(late) if any() == 0 => {
                if let Error::Timeout(timeout) = late.error {
                    for rank in timeout.missing.ranks() {
                        unknown(rank.get().into(), timeout.missing.count());
                    }
                }
                if let Err(rest) = late.handle.cancelling().test() {
                    rest.handle
                        .wait_within(budget())
                        .map_err(Unfinished::give_up)?;
                }
                continue;
            }
            Err(late) => late.handle.wait()?,
        };
        lock.put(rank(), index(), &[1])?;
        lock.flush(rank())?;
        lock.flush_all()?;
        if let Err(late) = lock.unlocking().wait_within(budget()) {
            late.handle.wait()?;
        }
    }
    if let Err(late) = window.locking_all().test() {
        late.handle.cancel()?;
    }
    window.lock_shared(rank())?.unlock()?;
    window.lock_exclusive(rank())?.unlock()?;
    window.lock_queued(rank())?.unlock()?;
    window.lock_all()?.unlock()?;
    window.flush(rank())?;
    window.flush_all()?;
    window.sync()
}

pub(crate) fn fences<L: Link>(window: &Window<'_, u64, L>) -> Result<(), Error> {
    let assert = Assert::from_bits_retain(any() as u8);
    let epoch = match window.fencing(assert).wait_within(budget()) {
        Ok(epoch) => epoch,
        Err(late) => late.handle.test().map_err(Unfinished::give_up)?,
    };
    epoch.put(rank(), index(), &[1])?;
    if let Err(late) = epoch.fence(assert)?.ending().test()
        && let Err(late) = late.handle.wait_within(budget())
    {
        late.handle.wait()?;
    }
    window.fence(assert)?.end()?;
    let exposure = window.post_range(index()..index(), [rank(), rank()])?;
    window.start([rank()])?.complete()?;
    exposure.wait()
}

/// Operations on one element.
pub(crate) fn once<T: Element, L: Link>(
    world: &World<'_, L>,
    operations: &[Operation<T>],
) -> Result<(), Error> {
    let window = world.allocate::<T>(index())?;
    let lock = window.lock_shared(rank())?;
    let mut value = T::zeroed();
    for operation in operations {
        value = lock.fetch_and_op(rank(), index(), value, *operation)?;
        value = operation.apply(value, value);
    }
    lock.unlock()
}

/// Every access, by its short form and in full.
pub(crate) fn combined<'w, T: Integer + From<bool>, L: Link + 'w>(
    access: &impl Rma<'w, T, L>,
) -> Result<(), Error> {
    let operations = [
        Operation::SUM,
        Operation::PROD,
        Operation::MIN,
        Operation::MAX,
        Operation::AND,
        Operation::OR,
        Operation::XOR,
        Operation::LOGICAL_AND,
        Operation::LOGICAL_OR,
        Operation::LOGICAL_XOR,
        Operation::REPLACE,
        Operation::NO_OP,
    ];
    let (mut words, mut old) = ([T::zeroed(); 9], [T::zeroed(); 9]);
    for operation in operations {
        access.accumulate(rank(), index(), &words, operation)?;
        access
            .to(rank(), index())
            .accumulate(&words, operation)?
            .wait()?;
    }
    for verb in Verb::ALL {
        verb.call(access, (rank(), index()), &words, &mut old)?;
        let begun = begin!(verb, access.to(rank(), index()), &words, &mut old)?;
        if let Err(late) = begun.wait_within(budget()) {
            late.handle.wait()?;
        }
    }
    let mut put = access.to(rank(), index()).put(&words)?;
    while !put.test()? {}
    let data = [T::zeroed(); 5];
    let add = access
        .to(rank(), index())
        .accumulate(&data, Operation::SUM)?;
    let both = access.to(rank(), index());
    let both = both.get_accumulate(&data, Operation::SUM, &mut words)?;
    let mut requests = [add, both];
    while let Some(done) = flagpost::wait_any(&mut requests)? {
        unknown(done as u32, requests[0].has_begun().into());
    }
    let fetch = access
        .to(rank(), index())
        .fetch_and_op(data[0], Operation::SUM)?;
    unknown(fetch.has_begun().into(), 0);
    fetch.wait().map(drop)
}

/// Every access, in layouts of which nothing is known, with any notice.
pub(crate) fn anywhere<'w, T: Integer + From<bool>, L: Link + 'w>(
    access: &impl Rma<'w, T, L>,
) -> Result<(), Error> {
    let block = || Block {
        at: index(),
        len: index(),
    };
    let blocks = [block(), block(), block()];
    let layout = || match any() {
        0 => Layout::Contiguous { count: index() },
        1 => Layout::Vector {
            blocks: index(),
            block_len: index(),
            stride: index(),
        },
        2 => Layout::Indexed { blocks: &blocks },
        _ => Layout::Fields {
            records: index(),
            fields: &blocks,
        },
    };
    let (data, mut into) = ([T::zeroed(); 9], [T::zeroed(); 9]);
    for verb in Verb::ALL {
        let (from, to) = (
            Gather::new(&data, layout()),
            Scatter::new(&mut into, layout()),
        );
        let target = access.to(rank(), index()).layout(layout());
        begin!(verb, target, from, to)?.wait()?;
        let (from, to) = (
            Gather::new(&data, layout()),
            Scatter::new(&mut into, layout()),
        );
        let target = access.to(rank(), index()).layout(layout());
        let target = target.notify(notice());
        begin!(verb, target, from, to)?.wait()?;
    }
    Ok(())
}
