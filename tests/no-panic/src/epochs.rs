//! Epochs of all kinds, and what can be done in them.

use flagpost::epoch::{Assert, Strategy};
use flagpost::rma::{Block, Element, Gather, Integer, Layout, Operation, Scatter, wait_any};
use flagpost::{Error, Group, Link, Rma, Window};

use crate::{any, index, rank, unknown};

pub(crate) fn epochs<'w, L: Link, S: Strategy<'w, L>>(
    window: &Window<'w, u64, L, S>,
    group: &Group<'_>,
) -> Result<(), Error> {
    let mut exposure = match window.post(group) {
        Ok(exposure) => exposure,
        Err(late) => late.handle.go_on()?,
    };
    let access = window.start(group)?;
    access.has_posted(rank())?;
    access.await_posts()?;
    let mut data = [0; 9];
    combined(&access)?;
    anywhere(&access)?;
    access.get(rank(), index(), &mut data)?;
    access.put(rank(), index(), &data)?;
    if let Err(late) = access.complete() {
        late.handle.go_on()?;
    }
    if !exposure.test()? {
        exposure.wait()?;
    }
    window.local().copy_in(index(), &data)?;
    window.local().copy_out(index(), &mut data)?;
    unknown(data[0] as u32, 0);
    Ok(())
}

pub(crate) fn passive<L: Link>(window: &Window<'_, u64, L>) -> Result<(), Error> {
    for how in 0..any() {
        let locked = match how {
            0 => window.lock_shared(rank()),
            1 => window.lock_exclusive(rank()),
            2 => window.lock_queued(rank()),
            _ => window.lock_all(),
        };
        let lock = match locked {
            Ok(lock) => lock,
            Err(late) if any() == 0 => {
                if let Error::Timeout(timeout) = late.error {
                    for rank in timeout.missing.ranks() {
                        unknown(rank.get().into(), timeout.missing.count());
                    }
                }
                late.handle.cancel()?;
                continue;
            }
            Err(late) => late.handle.go_on()?,
        };
        lock.put(rank(), index(), &[1])?;
        lock.flush(rank())?;
        lock.flush_all()?;
        lock.flush_local(rank())?;
        lock.flush_local_all()?;
        if let Err(late) = lock.unlock() {
            late.handle.go_on()?;
        }
    }
    window.sync()
}

pub(crate) fn fences<L: Link>(window: &Window<'_, u64, L>) -> Result<(), Error> {
    let assert = Assert::from_bits_retain(any() as u8);
    let epoch = match window.fence(assert) {
        Ok(epoch) => epoch,
        Err(late) => late.handle.go_on()?,
    };
    epoch.put(rank(), index(), &[1])?;
    if let Err(late) = epoch.fence(assert)?.end() {
        late.handle.go_on()?;
    }
    let origins = [rank()];
    let origins = window.world().group(&origins)?;
    let exposure = window.post_range(index()..index(), &origins)?;
    Ok(exposure.wait()?)
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
        if let Err(late) = access.accumulate(rank(), index(), &words, operation) {
            match late.handle {
                Some(request) => request.wait()?,
                None => return Err(late.error),
            }
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
    while let Some(done) = wait_any(&mut requests)? {
        unknown(done as u32, requests[0].has_begun().into());
    }
    let fetched = match access.fetch_and_op(rank(), index(), data[0], any_operation) {
        Ok(fetched) => fetched,
        Err(late) => match late.handle {
            Some(fetch) => {
                unknown(fetch.has_begun().into(), 0);
                fetch.go_on()?
            }
            None => return Err(late.error),
        },
    };
    access.compare_and_swap(rank(), index(), fetched, data[0])?;
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
    Ok(())
}
