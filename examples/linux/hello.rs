//! Hello on Linux: each rank puts a number into its neighbour's memory. A rank is a process.
//!
//! ```sh
//! cargo build --release -p flagpost-linux --bins --examples
//! target/release/flagpost-run -n 4 target/release/examples/hello-linux
//! ```
use std::process::ExitCode;

use flagpost::prelude::*;

/// Every rank runs this.
fn hello<L: Link>(world: &World<'_, L>) -> Result<(), Error> {
    let me = world.rank();
    let window = world.allocate::<u32>(1)?; // one element on each rank

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

fn main() -> ExitCode {
    flagpost_linux::run_in_mode!(hello)
}
