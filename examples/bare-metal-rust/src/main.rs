//! A token round the ring and an epoch between neighbours, on each core of QEMU's riscv64 board.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use flagpost::prelude::*;
use flagpost_mapped::Mapped;
use flagpost_qemu::{Hart, Mapping};

flagpost_qemu::entry!(main);

/// The world's working memory, in words: for one window of as many cores as the board may have.
const ARENA: usize = Config::DEFAULT.words(512, 1);

/// Runs on every core, at the same time. The machine ends when all have returned.
fn main(hart: Hart) -> Result<(), Error> {
    let mut arena = [0; ARENA];
    let link = Mapped::start(hart.machine(Mapping::Normal), Session::FIRST)?; // QEMU clears memory
    let world = World::start(link, &mut arena, Config::default())?;
    ring(&world)?;
    large(&world)
}

/// Knows nothing of the board: the same function runs in the simulator.
fn ring<L: Link>(world: &World<'_, L>) -> Result<(), Error> {
    let (me, size) = (world.rank(), world.size());
    let (left, right) = (me.prev(size), me.next(size));
    let window = world.allocate::<u64>(64)?;

    // Data and notification, one message. No barrier comes first: the window is new, so its owner
    // has no store that could go over the data, and a notification waits for its request.
    let mut arrived = window.expect(0..1, Tag(7))?;
    arrived.start()?;
    window.put_notify(right, 0, &[42 + u64::from(me.get())], Tag(7))?;
    let status = arrived.wait()?;
    let value = window.local().get(0)?;
    defmt::info!("{} from {}", value, status.source);
    defmt::assert_eq!((status.source, value), (left, 42 + u64::from(left.get())));

    // An epoch: my left neighbour may access my piece; I access my right neighbour's.
    let exposure = window.post([left])?;
    let access = window.start([right])?; // never waits
    access.put(right, 1, &[value])?; // waits for this target's post
    access.complete()?;
    exposure.wait()?;
    defmt::info!("{} by an epoch", window.local().get(1)?);
    Ok(())
}

/// Elements of a message of 64 KiB: more than a core shares, if `memory.x` does not ask for more.
const LARGE: usize = 8192;

/// One large message round the ring.
fn large<L: Link>(world: &World<'_, L>) -> Result<(), Error> {
    let (me, size) = (world.rank(), world.size());
    let window = world.allocate::<u64>(LARGE)?;
    let mut arrived = window.expect(0..LARGE, Tag(8))?;
    arrived.start()?;
    window.put_notify(me.next(size), 0, &[u64::from(me.get()); LARGE], Tag(8))?;
    let status = arrived.wait()?;
    let last = window.local().get(LARGE - 1)?;
    defmt::assert_eq!(
        (status.source, last),
        (me.prev(size), u64::from(me.prev(size).get()))
    );
    defmt::info!("{} bytes from {}", LARGE * 8, status.source);
    Ok(())
}
