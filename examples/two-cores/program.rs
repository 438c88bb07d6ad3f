//! The program: knows nothing of the chip.

use flagpost::prelude::*;
use flagpost_hal::Machine;
use flagpost_mapped::Mapped;

/// Runs on both cores.
pub fn run(machine: impl Machine) -> Result<(), Error> {
    let mut words = [0; Config::DEFAULT.words(2, 1)];
    // What the cores share is zero at each start.
    let link = Mapped::start(machine, Session::FIRST)?;
    let world = World::start(link, &mut words, Config::default())?;
    let (me, size) = (world.rank(), world.size());
    let other = me.next(size);
    let window = world.allocate::<u32>(2)?;

    // Data and notification, one message. No barrier comes first: the window is new, so its owner
    // has no store that could go over the data, and a notification waits for its request.
    let mut arrived = window.expect(0..1, Tag(7))?;
    arrived.start()?;
    window.put_notify(other, 0, &[42 + u32::from(me.get())], Tag(7))?;
    arrived.wait()?;

    // An epoch: each may access the other's piece.
    let exposure = window.post([other])?;
    let access = window.start([other])?;
    access.put(other, 1, &[window.local().get(0)?])?;
    access.complete()?;
    exposure.wait()?;

    // What has come back is what this core has sent.
    assert!(window.local().get(1)? == 42 + u32::from(me.get()));
    Ok(())
}
