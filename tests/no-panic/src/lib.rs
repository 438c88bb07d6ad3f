//! Shows that no call into Flagpost can reach a panic.
//!
//! [`go`] calls everything, with arguments that the optimizer knows nothing about, over a machine
//! of which it knows nothing either. The panic handler calls a function that does not exist. After
//! the optimizer has removed what cannot happen, that function must not be asked for:
//! `cargo xtask ci` builds this and looks.
//!
//! `flagpost_network` has a heap, of which nothing is known either: any request may fail. Left out
//! are `fmt::Display` and `fmt::Debug` of errors: nothing in the library formats.
#![no_std]

mod epochs;
mod machine;
mod network;
mod notify;
mod windows;

use flagpost::rma::{Bool, Complex, Operation, Placed};
use flagpost::{
    Budget, Config, Error, Group, Link, MatchVector, MatchingList, Rank, Rma as _, Room, Session,
    Tag, VectorLink, World,
};
use flagpost_coherent::Coherent;
use flagpost_hal::WithSoftwareLock;
use flagpost_mapped::{Mapped, MappedNative, Ring};
use flagpost_network::Networked;

use crate::epochs::{combined, epochs, fences, once, passive};
use crate::machine::Unknown;
use crate::network::Net;
use crate::notify::{counted, notifications};
use crate::windows::{collectives, created, dynamic};

// SAFETY: nobody links or calls these: the library is only looked at.
unsafe extern "C" {
    safe fn flagpost_can_panic() -> !;
    /// Some number that follows from anything.
    safe fn unknown(a: u32, b: u32) -> u64;
    /// Reads or changes `len` bytes at `start`.
    safe fn bytes(start: *const u8, len: usize, at: u32);
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    flagpost_can_panic()
}

/// A number of which nothing is known.
fn any() -> u32 {
    unknown(0, 12) as u32
}

fn ring() -> Ring {
    let entries = any();
    match any() {
        0 => Ring::Pairs { entries },
        1 => Ring::Bells { entries },
        _ => Ring::Shared { entries },
    }
}

fn index() -> usize {
    unknown(0, 13) as usize
}

fn budget() -> Budget {
    Budget::microseconds(unknown(0, 15))
}

fn session() -> Session {
    Session::new(any()).unwrap_or(Session::FIRST.next())
}

fn rank() -> Rank {
    Rank::new(any() as u16)
}

/// A part and its world, and a part of that.
fn parts<L: Link>(world: &World<'_, L>) -> Result<(), Error> {
    let room = Room {
        bytes: index(),
        windows: any() as u16,
    };
    let (color, key) = ((any() != 0).then_some(any()), any());
    let part = match world.splitting(color, key, room)?.wait_within(budget()) {
        Ok(part) => part,
        Err(late) => late.handle.ok_or(late.error)?.wait()?,
    };
    if let Some(link) = part.link() {
        let mut words = [0; 99];
        let mine = World::start(link, &mut words, Config::default())?;
        used(&mine)?;
        mine.part(&[rank(), rank()], room)?.free()?;
    }
    if let Err(late) = part.freeing().wait_within(budget()) {
        late.handle.wait()?;
    }
    let spare = world.spare(room)?;
    drop(spare.survivors()?.link());
    spare.free()?;
    world.split(None, any(), room)?.free()
}

/// Calls of such a world.
fn used<L: Link>(world: &World<'_, L>) -> Result<(), Error> {
    let window = world.allocate::<u64>(index())?;
    notifications(&window)?;
    passive(&window)?;
    window.free()?;
    counted(world)?;
    collectives(world)
}

/// Epochs by match vectors.
fn published<L: VectorLink>(world: &World<'_, L>, group: &Group<'_>) -> Result<(), Error> {
    epochs(
        &world.allocate_with::<u64, MatchVector<'_>>(index(), ())?,
        group,
    )
}

/// Every call of the library; and `more`.
fn everything<L: Link>(
    link: L,
    arena: &mut [u32],
    more: impl FnOnce(&World<'_, L>, &Group<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let config = Config {
        unexpected: any() as u16,
    };
    let starting = World::starting(link, arena, config)?;
    let world = match starting.meet_within(budget()) {
        Ok(()) => starting.wait()?,
        Err(_) => starting.wait_within(budget())?,
    };
    world.within(budget(), || world.barrier())?;
    let mut sum = 0_u64;
    world.allgather_with([unknown(0, 0); 3], |_, element| {
        sum = sum.wrapping_add(element[0])
    })?;
    let mut all = [0_u16; 9];
    world.allgather(any() as u16, &mut all)?;
    unknown(sum as u32, all[0].into());

    if cfg!(feature = "panics") {
        assert!(any() != 0);
        return Ok(()); // one panic is enough, and the rest takes minutes to compile
    }
    let ranks = [rank(), rank(), rank()];
    let group = world.group(&ranks)?;
    let words = world.allocate::<u64>(index())?;
    epochs(&words, &group)?;
    let (size, limits) = (world.size(), world.limits());
    unknown(
        rank().next(size).get().into(),
        rank().prev(size).get().into(),
    );
    unknown(limits.tag, limits.windows.into());
    passive(&words)?;
    fences(&words)?;
    let listed = world.allocate_with::<u64, MatchingList<'_>>(index(), any() as u16)?;
    epochs(&listed, &group)?;
    more(&world, &group)?;
    notifications(&words)?;
    counted(&world)?;
    let odd = world.allocate::<[u8; 3]>(index())?;
    odd.put_notify(rank(), index(), &[[1, 2, 3]; 7], Tag(any()))?;
    odd.local().set(index(), [0; 3])?;
    let floats = world.allocate::<f32>(index())?;
    let access = floats.start(&group)?;
    let mut old = [0.0; 3];
    let target = access.to(rank(), index());
    target
        .get_accumulate(&[1.0; 3], Operation::SUM, &mut old)?
        .wait()?;
    access.fetch_and_op(rank(), index(), old[0], Operation::MAX)?;
    access.complete()?;
    once::<Bool, _>(&world, &[Operation::LOGICAL_AND, Operation::NO_OP])?;
    once::<Complex<f32>, _>(&world, &[Operation::SUM, Operation::PROD])?;
    once::<Placed<i32>, _>(&world, &[Operation::MIN, Operation::REPLACE])?;
    once::<Placed<f32>, _>(&world, &[Operation::MAX, Operation::MIN])?;
    let bytes = world.allocate::<i8>(index())?;
    let access = bytes.start(&group)?;
    combined(&access)?;
    access.complete()?;
    collectives(&world)?;
    parts(&world)?;
    created(&world)?;
    dynamic(&world, &group)?;
    let empty = world.allocate::<()>(index())?;
    empty.local().get(index())?;
    Ok(())
}

/// The way in.
///
/// # Safety
/// `arena` is valid for `words` words, and nobody else's.
// SAFETY (`no_mangle`): nothing else in this library has the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn go(arena: *mut u32, words: usize) -> bool {
    // SAFETY: the caller's promise.
    let arena = unsafe { core::slice::from_raw_parts_mut(arena, words) };
    if any() != 0 {
        return Mapped::start(Unknown::<false>, session())
            .is_ok_and(|link| everything(link, arena, published).is_ok());
    }
    if cfg!(feature = "panics") {
        return false;
    }
    if any() != 0 {
        let link = MappedNative::start_with_ring(Unknown::<false>, session(), Some(ring()));
        return link.is_ok_and(|link| everything(link, arena, published).is_ok());
    }
    if any() != 0 {
        let link = Coherent::start_with_ring(Unknown::<true>, session(), Some(ring()));
        return link.is_ok_and(|link| everything(link, arena, published).is_ok());
    }
    if any() != 0 {
        let link = Networked::start_with_queue(Net, any());
        return link.is_ok_and(|link| everything(link, arena, |_, _| Ok(())).is_ok());
    }
    let machine = WithSoftwareLock::<_>::new(Unknown::<false>);
    let link = machine.map(|machine| Mapped::start(machine, session()));
    link.is_some_and(|link| link.is_ok_and(|link| everything(link, arena, published).is_ok()))
}
