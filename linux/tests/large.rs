//! More than 4 GiB per rank, in each mode.

use flagpost_linux::{Coherent, Emulated, Linked, Setup, SoftwareCoherent, threads_with};

#[path = "large/program.rs"]
mod program;
#[path = "limit/threads.rs"]
mod threads;

fn in_mode<M: Linked>() {
    let ran = threads::within(|| {
        threads_with::<M, (), flagpost::Error>(2, program::MEMORY, Setup::default(), |world| {
            program::large(world)
        })
    });
    ran.expect("no rank fails");
}

#[test]
fn six_gibibytes_in_memory_of_one_kind_after_the_other() {
    in_mode::<Coherent>();
    in_mode::<Emulated>();
    in_mode::<SoftwareCoherent>();
}
