//! Hello on the simulator: each of four cores puts a number into its neighbour's memory.
//!
//! ```sh
//! cargo run --example hello
//! ```
use flagpost::prelude::*;
use flagpost_mapped::Mapped;
use flagpost_sim::{Sim, SimCore};

/// Every core runs this.
fn hello(core: SimCore) -> Result<(), Error> {
    let mut words = [0; Config::DEFAULT.words(4, 1)]; // for four cores and one window
    let world = World::start(
        Mapped::start(core, Session::FIRST)?,
        &mut words,
        Config::default(),
    )?;
    let me = world.rank();
    let window = world.allocate::<u32>(1)?; // one element on each core

    let mut arrived = window.expect(0..1, Tag(0))?;
    arrived.start()?;
    world.barrier()?; // every rank is ready to receive
    let number = 100 + u32::from(me.get());
    window.put_notify(me.next(world.size()), 0, &[number], Tag(0))?;
    let sender = arrived.wait()?.source;
    println!(
        "hello from rank {me}: rank {sender} has put {}",
        window.local().get(0)?
    );
    Ok(())
}

fn main() {
    let chip = flagpost_sim::Config {
        cores: 4,
        ..Default::default()
    };
    Sim::new(chip).run(hello).assert_done();
}
