//! What a victim has, and does with it.

use flagpost::rma::Operation;
use flagpost::{
    Budget, Compare, Counter, Displacement, DynamicOptions, DynamicWindow, EpochSlots, Error,
    Events, MatchVector, MatchingList, Memory, Rank, Request, Rma as _, Signal, Source, Tag,
    TagFilter, Unfinished, Validation, VectorLink, Window, World,
};

use crate::Chance;

/// How many kinds of operations there are.
pub(crate) const KINDS: u32 = 26;
/// Those of them that go through the directory of attached memory.
pub(crate) const ATTACHED: std::ops::Range<usize> = 18..22;

/// What a victim has.
pub(crate) struct Stage<'w, L: VectorLink> {
    world: &'w World<'w, L>,
    pub(crate) slots: Window<'w, u32, L, EpochSlots<'w>>,
    vector: Window<'w, u32, L, MatchVector<'w>>,
    list: Window<'w, u64, L, MatchingList<'w>>,
    counted: Window<'w, u64, L>,
    created: Window<'w, u64, L>,
    events: Events<'w, L>,
    dynamic: DynamicWindow<'w, L>,
    /// Where each rank has attached memory.
    attached: Displacement,
}

impl<'w, L: VectorLink> Stage<'w, L> {
    pub(crate) fn new(
        world: &'w World<'w, L>,
        memory: [&'w Memory<'w, L>; 2],
        validation: Validation,
        meeting: Budget,
    ) -> Result<Self, Error> {
        let mut counted = ends(world.allocating(20, ())?.wait_within(meeting))?;
        counted.set_num_notify(2)?;
        let options = DynamicOptions {
            regions: 2,
            validation,
            ..DynamicOptions::default()
        };
        let dynamic = ends(world.making_dynamic(options, ())?.wait_within(meeting))?;
        let attached = dynamic.attach(memory[0])?;
        Ok(Self {
            world,
            slots: ends(world.allocating(20, ())?.wait_within(meeting))?,
            vector: ends(world.allocating(20, ())?.wait_within(meeting))?,
            list: ends(world.allocating(20, 4)?.wait_within(meeting))?,
            counted,
            created: ends(
                world
                    .creating(memory[1], 0..256, 8, ())?
                    .wait_within(meeting),
            )?,
            events: ends(world.making_events(2)?.wait_within(meeting))?,
            dynamic,
            attached,
        })
    }
}

/// What a call gives that does not continue.
pub(crate) fn ends<T, H>(call: Result<T, Unfinished<H>>) -> Result<T, Error> {
    call.map_err(Unfinished::give_up)
}

/// One operation, whatever comes of it; in the scope of a budget.
pub(crate) fn operate<L: VectorLink>(
    stage: &Stage<'_, L>,
    request: &mut Request<'_, L>,
    kind: u32,
    chance: &mut Chance,
) -> Result<(), Error> {
    let peer = Rank::new(chance.below(stage.world.size().into()) as u16);
    let index = chance.below(20) as usize;
    let (slots, counted, created) = (&stage.slots, &stage.counted, &stage.created);
    let (dynamic, attached) = (&stage.dynamic, stage.attached);
    let group = [peer];
    let group = stage.world.group(&group)?;
    match kind {
        0 => {
            slots.put_notify(peer, index, &[1; 4], Tag(1))?;
        }
        1 => {
            request.start()?;
        }
        2 => {
            request.test()?;
        }
        3 => {
            request.wait()?;
        }
        4 => {
            let lock = slots.lock_exclusive(peer)?;
            lock.put(peer, index, &[1, 2])?;
            lock.unlock()?;
        }
        5 => {
            let lock = slots.lock_queued(peer)?;
            lock.fetch_and_op(peer, index, 3, Operation::SUM)?;
            lock.unlock()?;
        }
        6 => {
            let lock = slots.lock_all()?;
            lock.compare_and_swap(peer, index, 0, 1)?;
            lock.accumulate(peer, index, &[1; 9], Operation::MAX)?;
            lock.flush(peer)?;
            lock.unlock()?;
        }
        7 => {
            let epoch = slots.start(&group)?;
            epoch.put(peer, index, &[1])?;
            epoch.complete()?;
        }
        8 => slots.post(&group)?.wait()?,
        9 => {
            let epoch = stage.vector.start(&group)?;
            epoch.put(peer, index, &[1])?;
            epoch.complete()?;
        }
        10 => stage.vector.post(&group)?.wait()?,
        11 => {
            let epoch = stage.list.start(&group)?;
            epoch.get(peer, index, &mut [0; 3])?;
            epoch.complete()?;
        }
        12 => stage.list.post(&group)?.wait()?,
        13 => stage.world.barrier()?,
        14 => {
            let mut data = [index as u64; 5];
            stage.world.allreduce(&mut data, u64::wrapping_add)?;
            stage.world.broadcast(peer, &mut data)?;
        }
        15 => {
            counted.put_notify(peer, index, &[1], Counter(0))?;
        }
        16 => {
            counted.wait_until(0..1, Signal(0), Compare::Ge, 1.into())?;
        }
        17 => {
            counted.reset_notify_value(Counter(0))?;
            counted.probe(Source::Any, TagFilter::Any)?;
        }
        18..=22 => {
            let lock = dynamic.window().lock_shared(peer)?;
            let (longs, words) = (dynamic.at(&lock, attached), dynamic.at(&lock, attached));
            match kind {
                18 => longs.get(peer, index, &mut [0_u64; 2])?,
                19 => longs.put(peer, index, &[7; 5])?,
                20 => {
                    longs.fetch_and_op(peer, index, 3, Operation::SUM)?;
                    longs.accumulate(peer, index, &[3; 9], Operation::SUM)?;
                }
                21 => {
                    words.compare_and_swap(peer, index, 0, 3_u32)?;
                    words.accumulate(peer, index, &[3; 9], Operation::SUM)?;
                }
                _ => {
                    // Nothing is there, most likely.
                    let memory = dynamic.at(&lock, Displacement::new(chance.next().into()));
                    memory.get(peer, 0, &mut [0_u64; 2])?;
                }
            }
            lock.unlock()?;
        }
        23 => {
            let lock = created.lock_shared(peer)?;
            lock.get(peer, index, &mut [0; 3])?;
            lock.fetch_and_op(peer, index, 3, Operation::SUM)?;
            lock.accumulate(peer, index, &[3; 2], Operation::SUM)?;
            lock.unlock()?;
        }
        24 => {
            created.put_notify(peer, index, &[3; 3], Tag(1))?;
            stage.events.post(peer, 0)?;
            stage.events.query(0)?;
        }
        _ => {
            let _ = slots.local().get(index)?;
            slots.local().set(index, 1)?;
        }
    }
    Ok(())
}
