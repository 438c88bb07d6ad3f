//! Epochs of all kinds, and what can be done in them.

use flagpost::epoch::{Assert, Strategy};
use flagpost::rma::{Block, Element, Gather, Integer, Layout, Operation, Scatter};
use flagpost::{Error, Group, Link, Rma, Unfinished, Window};

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

/// Everything that changes what is there.
pub(crate) fn combined<'w, T: Integer, L: Link + 'w>(
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
        Operation::REPLACE,
        Operation::NO_OP,
    ];
    let mut words = [T::zeroed(); 9];
    for operation in operations {
        access.accumulate(rank(), index(), &words, operation)?;
        let request = access.raccumulate(rank(), index(), &words, operation)?;
        if let Err(late) = request.wait_within(budget()) {
            late.handle.wait()?;
        }
    }
    let [any_operation, ..] = operations;
    let mut old = words;
    access.get_accumulate(rank(), index(), &words, any_operation, &mut old)?;
    let mut put = access.rput(rank(), index(), &words)?;
    while !put.test()? {}
    access.rget(rank(), index(), &mut words)?.wait()?;
    let data = [T::zeroed(); 5];
    let add = access.raccumulate(rank(), index(), &data, any_operation)?;
    let both = access.rget_accumulate(rank(), index(), &data, any_operation, &mut words)?;
    let mut requests = [add, both];
    while let Some(done) = flagpost::wait_any(&mut requests)? {
        unknown(done as u32, requests[0].has_begun().into());
    }
    access.fetch_and_op(rank(), index(), data[0], any_operation)?;
    let fetch = access.rfetch_and_op(rank(), index(), data[0], any_operation)?;
    let fetched = match fetch.wait_within(budget()) {
        Ok(fetched) => fetched,
        Err(late) => {
            unknown(late.handle.has_begun().into(), 0);
            late.handle.wait()?
        }
    };
    access.compare_and_swap(rank(), index(), fetched, data[0])?;
    let swap = access.rcompare_and_swap(rank(), index(), fetched, data[0])?;
    swap.wait()?;
    Ok(())
}

/// Layouts of which nothing is known.
pub(crate) fn anywhere<'w, T: Element, L: Link + 'w>(
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
    let from = || Gather::new(&data, layout());
    access.put_layout(rank(), index(), layout(), from())?;
    access.get_layout(rank(), index(), layout(), Scatter::new(&mut into, layout()))?;
    access.accumulate_layout(rank(), index(), layout(), from(), Operation::SUM)?;
    let into = Scatter::new(&mut into, layout());
    let at = (rank(), index());
    access.get_accumulate_layout(at, layout(), from(), Operation::SUM, into)?;
    let add = access.raccumulate_layout(rank(), index(), layout(), from(), Operation::SUM)?;
    add.wait()
}
