//! Windows of all kinds, and collective calls.

use flagpost::{
    Displacement, DynamicOptions, EpochSlots, Error, Group, Link, MatchingList, Model, Options,
    Rma as _, Tag, Unfinished, Validation, World,
};

use crate::{
    any, budget,
    epochs::{anywhere, combined},
    index, rank, unknown,
};

pub(crate) fn created<L: Link>(world: &World<'_, L>) -> Result<(), Error> {
    let memory = world.reserve(index())?;
    let mut data = [0_u64; 9];
    memory.write(index(), &data)?;
    memory.read(index(), &mut data)?;
    let options = Options {
        strategy: any() as u16,
        model: match any() {
            0 => Model::Separate,
            _ => Model::Unified,
        },
    };
    let (range, unit) = (index()..index(), index());
    let listed = world.create_with::<u64, MatchingList<'_>>(&memory, range, unit, options)?;
    listed.set_inline(any() == 0);
    if let Err(late) = listed.freeing().wait_within(budget()) {
        late.handle.wait()?;
    }
    let window = world.create::<u64>(&memory, index()..index(), index())?;
    window.put_notify(rank(), index(), &data, Tag(any()))?;
    window.local().copy_in(index(), &data)?;
    let sizes = [
        window.len_of(rank())?,
        window.bytes_of(rank())?,
        window.unit_of(rank())?,
        window.len(),
    ];
    let peer = window.peer(rank())?;
    peer.set(index(), peer.get(index())?)?;
    unknown(window.kind() as u32, window.is_empty().into());
    if let Err(late) = window.freeing().test() {
        late.handle.keep().free()?;
    }
    unknown(memory.is_empty().into(), memory.len() as u32);
    memory.release().map_err(Unfinished::give_up)?;
    unknown(sizes[0] as u32, data[0] as u32);
    Ok(())
}

pub(crate) fn dynamic<L: Link>(world: &World<'_, L>, group: &Group<'_>) -> Result<(), Error> {
    let options = DynamicOptions {
        regions: any() as u16,
        kept: any() as u16,
        validation: match any() {
            0 => Validation::Counter,
            _ => Validation::Invalidation,
        },
    };
    let published = world.dynamic_with::<MatchingList<'_>>(options, any() as u16)?;
    published.window().post(group)?.wait()?;
    published.window().start(group)?.complete()?;
    if let Err(late) = published.freeing().wait_within(budget()) {
        late.handle.wait()?;
    }
    let mut window = match world
        .making_dynamic::<EpochSlots<'_>>(options, ())?
        .wait_within(budget())
    {
        Ok(window) => window,
        Err(late) => match late.handle {
            Some(making) => making.wait()?,
            None => return Err(late.error),
        },
    };
    unknown(window.validation() as u32, 0);
    window.set_num_notify(any())?;
    let memory = world.reserve(index())?;
    let here = window.attach(&memory)?;
    let there = Displacement::new(unknown(0, 14)).plus(any());
    let mut data = [0_u64; 9];
    window.write(there, &data)?;
    window.read(here.plus(any()), &mut data)?;
    let exposure = window.window().post(group)?;
    let access = window.window().start(group)?;
    let longs = window.at(&access, there);
    longs.put(rank(), index(), &data)?;
    longs.get(rank(), index(), &mut data)?;
    combined(&longs)?;
    anywhere(&window.at::<u16, _>(&access, there))?;
    access.complete()?;
    exposure.wait()?;
    window.detach(&memory)?;
    if let Err(late) = window.freeing().wait_within(budget()) {
        late.handle.wait()?;
    }
    unknown(data[0] as u32, here.get() as u32);
    Ok(())
}

pub(crate) fn collectives<L: Link>(world: &World<'_, L>) -> Result<(), Error> {
    let mut words = [any(); 9];
    world.broadcast(rank(), &mut words)?;
    world.reduce(rank(), &mut words, u32::wrapping_add)?;
    world.allreduce(&mut words, u32::wrapping_add)?;
    let from = words;
    world.alltoall(&from, &mut words)?;
    world.alltoall_uneven(&[&from, &from[..2]], &mut [&mut words])?;
    world.gather(rank(), &from[..3], &mut words)?;
    world.scatter(rank(), &from, &mut words[..3])?;
    world.reduce_scatter(&from, &mut words[..3], u32::wrapping_add)?;
    world.scan(&mut words, u32::wrapping_add)?;
    world.exscan(&mut words, u32::wrapping_add)?;
    if let Err(late) = world.entering()?.test() {
        late.handle.wait()?;
    }
    let mut bytes = [[any() as u8; 3]; 9];
    world.broadcast(rank(), &mut bytes)?;
    world.allreduce(&mut bytes, |one, other| [one[0], other[1], one[2]])?;
    world.allreduce(&mut [(); 5], |(), ()| ())?;
    unknown(words[0], bytes[0][0].into());
    Ok(())
}
