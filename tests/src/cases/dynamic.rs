//! Dynamic windows: memory that is attached and detached without the others.

use flagpost::{
    Budget, Config, Differs, Displacement, DynamicOptions, DynamicWindow, Error, Kind, Link,
    Memory, Rank, Rma as _, Tag, Unfinished, Validation, World,
};

use super::handles::{NONE, again};
use super::small::RING;
use super::steps::{NO_ERROR, Signals, differs, neighbours, refused as refuses};
use crate::{Context, Platform, Result, context::check};

/// Few regions and fewer kept descriptors.
fn options(validation: Validation) -> DynamicOptions {
    DynamicOptions {
        regions: 3,
        kept: 2,
        validation,
    }
}

/// Every rank tells a displacement; gives the next one's.
pub(super) fn next_of<L: Link>(world: &World<'_, L>, mine: Displacement) -> Result<Displacement> {
    let next = world.rank().next(world.size());
    let mut theirs = mine;
    world.allgather_with(mine.get(), |rank, raw| {
        if rank == next {
            theirs = Displacement::new(raw);
        }
    })?;
    Ok(theirs)
}

/// An epoch of a ring, in which `access` gets at the next rank's memory.
pub(super) fn epoch<'w, L: Link, S: flagpost::epoch::Strategy<'w, L>>(
    window: &DynamicWindow<'w, L, S>,
    access: impl FnOnce(&flagpost::epoch::pscw::Access<'_, 'w, u8, L, S>, Rank) -> Result,
) -> Result {
    let world = window.window().world();
    let (_, next, prev) = neighbours(world);
    let exposure = window.window().post([prev])?;
    let open = window.window().start([next])?;
    access(&open, next)?;
    open.complete()?;
    Ok(exposure.wait()?)
}

/// Attaches and detaches whose budgets run out at each step that takes an answer: until it is
/// repeated to the end the memory stays what it was; then nobody gets at it by its old name, and
/// everybody by a new one. In between others begin and end.
pub(super) fn detach_late<L: Link>(world: &World<'_, L>, validation: Validation) -> Result {
    let window = world.dynamic(options(validation))?;
    let memories = [world.reserve(32)?, world.reserve(32)?];
    let mut old = None;
    for round in 0..4_u32 {
        let memory = &memories[round as usize % 2];
        let other = &memories[1 - round as usize % 2];
        memory.write(0, &[round; 8])?;
        other.write(0, &[99; 8])?;
        // It may have gone half of the way, or all of it.
        if let Some(_there) = unless_late(world.within(NONE, || window.attach(other)))? {
            again(world, || window.detach(other))?;
        }
        let here = again(world, || window.attach(memory))?;
        let there = next_of(world, here)?;
        epoch(&window, |access, next| {
            let mut seen = [0_u32];
            window.at(access, there).get(next, 0, &mut seen)?;
            check("by its name", seen[0], round)?;
            let Some(old) = old.replace(there) else {
                return Ok(());
            };
            let gone = window.at(access, old).get(next, 0, &mut seen);
            refuses("detached", gone, Error::NotAttached)
        })?;
        world.barrier()?;
        if unless_late(world.within(NONE, || window.detach(memory)))?.is_none() {
            refuses("half done", window.attach(memory), Error::MemoryInUse)?;
            again(world, || window.attach(other))?;
            again(world, || window.detach(other))?;
            again(world, || window.detach(memory))?;
        }
        refuses("done", window.detach(memory), Error::NotAttached)?;
        world.barrier()?;
        epoch(&window, |access, next| {
            let mut seen = [0_u32];
            let gone = window.at(access, there).get(next, 0, &mut seen);
            refuses("detached", gone, Error::NotAttached)
        })?;
    }
    window.free()?;
    for memory in memories {
        memory.release()?;
    }
    Ok(())
}

/// What a call gave, unless its budget ran out.
fn unless_late<T>(answer: Result<T, Error>) -> Result<Option<T>> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(Error::Timeout(_)) => Ok(None),
        Err(other) => Err(other.into()),
    }
}

/// Two regions, put to and read; one goes and another takes its place.
pub(super) fn ring<L: Link>(world: &World<'_, L>, validation: Validation) -> Result {
    let me = u32::from(world.rank().get());
    let prev = u32::from(world.rank().prev(world.size()).get());
    let window = world.dynamic(options(validation))?;
    check("kind", window.window().kind() == Kind::Dynamic, true)?;
    check("validation", window.validation() == validation, true)?;
    let (first, second) = (world.reserve(40)?, world.reserve(100)?);
    first.write(0, &[me; 10])?;
    let here = [window.attach(&first)?, window.attach(&second)?];
    let there = [next_of(world, here[0])?, next_of(world, here[1])?];
    window.write(here[1].plus(96), &[me + 7])?;
    for round in 1..=2_u32 {
        epoch(&window, |access, next| {
            let mut seen = [0_u32; 2];
            window.at(access, there[0]).get(next, 0, &mut seen[..1])?;
            window
                .at(access, there[1].plus(96))
                .get(next, 0, &mut seen[1..])?;
            check("first", seen[0], u32::from(next.get()))?;
            check("second", seen[1], u32::from(next.get()) + 7)?;
            window
                .at(access, there[0].plus(36))
                .put(next, 0, &[me + 10 * round])?;
            Ok(window
                .at(access, there[1].plus(3))
                .put(next, 0, &[round as u8; 5])?)
        })?;
        let (mut word, mut bytes) = ([0_u32], [0_u8; 5]);
        window.read(here[0].plus(36), &mut word)?;
        window.read(here[1].plus(3), &mut bytes)?;
        check("put", word[0], prev + 10 * round)?;
        check("bytes", bytes == [round as u8; 5], true)?;
    }
    window.write(here[0].plus(32), &[me + 99])?; // dirty when it is detached
    window.detach(&first)?;
    let mut word = [0_u32];
    first.read(32, &mut word)?;
    check("own store", word[0], me + 99)?;
    first.read(36, &mut word)?;
    check("put stays", word[0], prev + 20)?;
    let third = world.reserve(40)?;
    third.write(0, &[me + 500; 10])?;
    let fresh = window.attach(&third)?;
    check("another name", fresh != here[0], true)?;
    // The epoch says that the old one is gone.
    let told = next_of(world, fresh)?;
    epoch(&window, |access, next| {
        let mut seen = [0_u32];
        let gone = window.at(access, there[0]).get(next, 0, &mut seen);
        refuses("detached", gone, Error::NotAttached)?;
        let gone = window.at(access, there[0].plus(4)).put(next, 0, &[1_u8]);
        refuses("detached", gone, Error::NotAttached)?;
        window.at(access, told).get(next, 0, &mut seen)?;
        check("in its place", seen[0], u32::from(next.get()) + 500)?;
        window
            .at(access, there[1].plus(96))
            .get(next, 0, &mut seen)?;
        check("still there", seen[0], u32::from(next.get()) + 7)
    })?;
    refuses(
        "own, detached",
        window.read(here[0], &mut word),
        Error::NotAttached,
    )?;
    window.detach(&second)?;
    window.detach(&third)?;
    window.free()?;
    for memory in [first, second, third] {
        memory.release()?;
    }
    Ok(())
}

/// A region that is detached before an epoch, of which nothing else tells: the epoch does.
pub(super) fn stale<L: Link>(world: &World<'_, L>, validation: Validation) -> Result {
    let window = world.dynamic(options(validation))?;
    let memory = world.reserve(64)?;
    for round in 0..3_u32 {
        memory.write(0, &[round; 16])?;
        let there = next_of(world, window.attach(&memory)?)?;
        for _ in 0..2 {
            epoch(&window, |access, next| {
                let mut seen = [u32::MAX];
                window.at(access, there.plus(8)).get(next, 0, &mut seen)?;
                check("attached", seen[0], round)
            })?;
        }
        window.detach(&memory)?;
        epoch(&window, |access, next| {
            let gone = window.at(access, there).get(next, 0, &mut [0_u8]);
            refuses("detached", gone, Error::NotAttached)
        })?;
    }
    window.free()?;
    Ok(memory.release()?)
}

/// More regions than descriptors are kept, again and again.
pub(super) fn many<L: Link>(world: &World<'_, L>, validation: Validation) -> Result {
    let window = world.dynamic(DynamicOptions {
        regions: 4,
        ..options(validation)
    })?;
    let memories = [world.reserve(8)?, world.reserve(8)?, world.reserve(8)?];
    let mut there = [Displacement::new(0); 3];
    for (number, (memory, place)) in (0..).zip(memories.iter().zip(&mut there)) {
        memory.write(0, &[u32::from(world.rank().get()) + 100 * number])?;
        *place = next_of(world, window.attach(memory)?)?;
    }
    epoch(&window, |access, next| {
        for number in [0, 1, 2, 0, 2, 2, 1, 0] {
            let mut seen = [0_u32];
            window.at(access, there[number]).get(next, 0, &mut seen)?;
            check(
                "region",
                seen[0],
                u32::from(next.get()) + 100 * number as u32,
            )?;
        }
        Ok(())
    })?;
    for memory in &memories {
        window.detach(memory)?;
    }
    Ok(window.free()?)
}

/// Memory that comes and goes while an exposure is open.
pub(super) fn open<L: Link>(world: &World<'_, L>, validation: Validation) -> Result {
    let [owner, origin] = [0, 1].map(Rank::new);
    let (owners, origins) = ([owner], [origin]);
    let words = world.allocate::<u64>(1)?;
    let window = world.dynamic(options(validation))?;
    let mut word =
        words
            .expect(0..1, Tag(1))?
            .from(if world.rank() == owner { origin } else { owner })?;
    match world.rank().get() {
        0 => {
            let memory = world.reserve(64)?;
            let exposure = window.window().post(origins)?;
            memory.write(0, &[5_u32; 16])?; // dirty when it is attached
            let here = window.attach(&memory)?;
            let refused = window.write(here, &[1_u32]);
            refuses("exposed", refused, Error::Exposed)?;
            words.put_notify(origin, 0, &[here.get()], Tag(1))?;
            word.start()?;
            word.wait()?;
            window.detach(&memory)?;
            let mut seen = [0_u32; 16];
            memory.read(0, &mut seen)?;
            check("put", seen[1], 6_u32)?;
            check("beside", seen[2], 5_u32)?;
            check("behind", seen[9], 5_u32)?;
            words.put_notify(origin, 0, &[0], Tag(1))?;
            exposure.wait()?;
            memory.release()?;
        }
        1 => {
            word.start()?;
            word.wait()?;
            let there = Displacement::new(words.local().get(0)?);
            let access = window.window().start(owners)?;
            let mut seen = [0_u32; 16];
            window.at(&access, there).get(owner, 0, &mut seen)?;
            check("what was dirty", seen == [5; 16], true)?;
            window.at(&access, there.plus(4)).put(owner, 0, &[6_u32])?;
            words.put_notify(owner, 0, &[0], Tag(1))?;
            word.start()?;
            word.wait()?;
            let gone = window.at(&access, there).get(owner, 0, &mut seen);
            refuses("detached", gone, Error::NotAttached)?;
            access.complete()?;
        }
        _ => {}
    }
    Ok(window.free()?)
}

/// Memory is exchanged for other memory while rank 1 asks where it is: it gets the old one's data
/// or an error, never the new one's; and later only the error.
pub(super) fn race<L: Link>(world: &World<'_, L>, validation: Validation) -> Result {
    const ROUNDS: u32 = 8;
    let [owner, origin] = [0, 1].map(Rank::new);
    let (owners, origins) = ([owner], [origin]);
    let window = world.dynamic(DynamicOptions {
        regions: 1,
        ..options(validation)
    })?;
    let (old, new) = (world.reserve(16)?, world.reserve(32)?);
    old.write(0, &[5_u32; 4])?;
    new.write(0, &[9_u32; 8])?;
    for _ in 0..ROUNDS {
        let mut there = Displacement::new(0);
        let here = window.attach(&old)?;
        world.allgather_with(here.get(), |rank, displacement| {
            if rank == owner {
                there = Displacement::new(displacement);
            }
        })?;
        match world.rank().get() {
            0 => {
                let exposure = window.window().post(origins)?;
                window.detach(&old)?;
                window.attach(&new)?;
                world.barrier()?;
                exposure.wait()?;
                window.detach(&new)?;
            }
            1 => {
                let access = window.window().start(owners)?;
                let mut seen = [0_u32; 4];
                match window.at(&access, there).get(owner, 0, &mut seen) {
                    Ok(()) => check("the old memory's", seen == [5; 4], true)?,
                    Err(Error::NotAttached) => {}
                    Err(other) => return Err(other.into()),
                }
                world.barrier()?;
                let gone = window.at(&access, there).get(owner, 0, &mut seen);
                refuses("detached", gone, Error::NotAttached)?;
                access.complete()?;
                window.detach(&old)?;
            }
            _ => {
                world.barrier()?;
                window.detach(&old)?;
            }
        }
    }
    old.release()?;
    new.release()?;
    Ok(window.free()?)
}

/// Bad use is an error value, and changes nothing.
pub(super) fn refused<L: Link>(world: &World<'_, L>) -> Result {
    let me = world.rank();
    let window = world.dynamic(DynamicOptions {
        regions: 2,
        ..DynamicOptions::default()
    })?;
    let other = world.dynamic(DynamicOptions::default())?;
    let [one, two, three] = [world.reserve(32)?, world.reserve(0)?, world.reserve(16)?];
    refuses("never attached", window.detach(&one), Error::NotAttached)?;
    let here = window.attach(&one)?;
    refuses("twice", window.attach(&one), Error::MemoryInUse)?;
    refuses("to another", other.attach(&one), Error::MemoryInUse)?;
    refuses("of another", other.detach(&one), Error::NotAttached)?;
    refuses("in use", one.read(0, &mut [0_u8]), Error::MemoryInUse)?;
    let empty = window.attach(&two)?;
    refuses(
        "empty",
        window.read(empty, &mut [0_u8]),
        Error::OutOfRange { end: 1, len: 0 },
    )?;
    let full = Error::TooManyAttached { max: 2 };
    refuses("too many", window.attach(&three), full)?;
    three.read(0, &mut [0_u8])?;

    let group = [me];
    let exposure = window.window().post(group)?;
    let access = window.window().start(group)?;
    let mut bytes = [0_u8; 8];
    refuses(
        "beyond",
        window.at(&access, here.plus(25)).get(me, 0, &mut bytes),
        Error::OutOfRange { end: 8, len: 7 },
    )?;
    refuses(
        "far beyond",
        window.at(&access, here.plus(u32::MAX)).put(me, 0, &bytes),
        Error::OutOfRange {
            end: u32::MAX.into(),
            len: 32,
        },
    )?;
    let none = Displacement::new(0);
    refuses(
        "no name",
        window.at(&access, none).get(me, 0, &mut bytes),
        Error::NotAttached,
    )?;
    let high = Displacement::new(u64::MAX);
    refuses(
        "no region",
        window.at(&access, high).get(me, 0, &mut bytes),
        Error::NotAttached,
    )?;
    refuses(
        "its window",
        other.at(&access, here).get(me, 0, &mut bytes),
        Error::WrongWindow,
    )?;
    let (rank, size) = (Rank::new(world.size()), world.size());
    let nobody = Error::NoSuchRank { rank, size };
    refuses(
        "nobody",
        window.at(&access, here).get(rank, 0, &mut bytes),
        nobody,
    )?;
    let elements = Error::OutOfRange { end: 1, len: 0 };
    refuses("no elements", access.put(me, 0, &[1]), elements)?;
    window.at(&access, here.plus(24)).put(me, 0, &[3_u8; 8])?;
    access.complete()?;
    exposure.wait()?;
    window.read(here.plus(24), &mut bytes)?;
    check("put", bytes == [3; 8], true)?;
    let Err(Unfinished { handle, error }) = window.freeing().wait_within(Budget::UNLIMITED) else {
        return Err(NO_ERROR);
    };
    check("still attached", error == Error::MemoryInUse, true)?;
    let window = handle.keep();
    window.detach(&two)?;
    window.detach(&one)?;
    refuses("detached", window.detach(&one), Error::NotAttached)?;
    window.free()?;
    for regions in [0, 129] {
        let bad = world.dynamic(DynamicOptions {
            regions,
            ..DynamicOptions::default()
        });
        refuses("regions", bad, Error::BadRegions { regions, max: 128 })?;
    }
    if world.size() > 1 {
        let odd = me.get() == 0;
        let validation = if odd {
            Validation::Counter
        } else {
            Validation::Invalidation
        };
        let named = Rank::new(u16::from(odd));
        let different = world.dynamic(options(validation));
        refuses(
            "validation differs",
            different.map(|_| ()),
            differs(named, Differs::Other),
        )?;
    }
    Ok(other.free()?)
}

/// What the ranks of a small case have before it starts.
struct Small<'w, 'm, L> {
    window: &'m DynamicWindow<'w, L>,
    /// Attached, holds ones; not attached, holds twos.
    memories: [&'m Memory<'w, L>; 2],
    /// Where the next rank's ones are.
    there: Displacement,
}

/// Rank 1 detaches a region and attaches another in its place, while rank 0 looks for the first:
/// that, or nothing.
pub(super) fn small<P: Platform>(context: &mut Context<'_, P>, validation: Validation) -> Result {
    let machine = context.machine.clone();
    let link = P::link(&machine, context.session, Some(RING))?;
    let config = Config { unexpected: 2 };
    let world = World::start(link, context.arena, config)?;
    let window = world.dynamic(DynamicOptions {
        regions: 1,
        kept: 1,
        validation,
    })?;
    let (ones, twos) = (world.reserve(4)?, world.reserve(4)?);
    ones.write(0, &[1_u32])?;
    twos.write(0, &[2_u32])?;
    let there = next_of(&world, window.attach(&ones)?)?;
    world.barrier()?;
    P::go(&machine);
    swap(&Small {
        window: &window,
        memories: [&ones, &twos],
        there,
    })
}

fn swap<L: Link>(small: &Small<'_, '_, L>) -> Result {
    let Small {
        window,
        memories: [ones, twos],
        there,
    } = *small;
    let world = window.window().world();
    let [origin, owner] = [0, 1].map(Rank::new);
    if world.rank() == owner {
        let origins = [origin];
        let exposure = window.window().post(origins)?;
        window.detach(ones)?;
        window.attach(twos)?;
        exposure.wait()?;
        return Ok(window.window().post(origins)?.wait()?);
    }
    let targets = [owner];
    let access = window.window().start(targets)?;
    let mut seen = [1_u32];
    match window.at(&access, there).get(owner, 0, &mut seen) {
        Ok(()) => check("what was named", seen[0], 1_u32)?,
        Err(Error::NotAttached) => {}
        Err(other) => return Err(other.into()),
    }
    access.complete()?;
    // Posted behind the detach: whatever is kept is out of date.
    let access = window.window().start(targets)?;
    let gone = window.at(&access, there).get(owner, 0, &mut seen);
    refuses("detached", gone, Error::NotAttached)?;
    Ok(access.complete()?)
}

/// Attached memory in epochs of any strategy, with both ways to validate.
pub(super) fn with<'w, L: Link, S: Signals<'w, L>>(world: &'w World<'w, L>) -> Result {
    let (me, size) = (world.rank(), world.size());
    let from = |rank: Rank| 10 * (u32::from(rank.get()) + 1);
    for validation in [Validation::Counter, Validation::Invalidation] {
        let window = world.dynamic_with::<S>(options(validation), S::posts(1))?;
        // As many as there can be, of several lines: the last bytes of each are read and put to.
        let memories = [world.reserve(8)?, world.reserve(40)?, world.reserve(100)?];
        let end = |memory: &Memory<'_, L>| memory.len() as u32 - 8;
        let mut names = [(Displacement::new(0), Displacement::new(0)); 3];
        for (memory, names) in memories.iter().zip(&mut names) {
            let here = window.attach(memory)?.plus(end(memory));
            *names = (here, next_of(world, here)?);
        }
        for round in 1..=3 {
            for (here, _) in names {
                window.write(here, &[from(me) + round])?; // dirty when it is exposed
            }
            epoch(&window, |access, next| {
                for (_, there) in names {
                    let mut seen = [0_u32];
                    window.at(access, there).get(next, 0, &mut seen)?;
                    check("its own", seen[0], from(next) + round)?;
                    window
                        .at(access, there.plus(4))
                        .put(next, 0, &[from(me) + round])?;
                }
                Ok(())
            })?;
            for (here, _) in names {
                let mut seen = [0_u32; 2];
                window.read(here, &mut seen)?;
                check("its own stays", seen[0], from(me) + round)?;
                check("put", seen[1], from(me.prev(size)) + round)?;
            }
        }
        world.barrier()?;
        for memory in &memories {
            window.detach(memory)?;
        }
        window.free()?;
        for memory in memories {
            let mut seen = [0_u32];
            memory.read(end(&memory) as usize + 4, &mut seen)?;
            check("stays", seen[0], from(me.prev(size)) + 3)?;
            memory.release()?;
        }
    }
    Ok(())
}
