//! Programs for two small cores, of which `cargo xtask sizes` prints how large they are.
//!
//! They are built and never run: their machine is no chip's, and has what a port to a
//! microcontroller has, bounds checks included. Each program is a file in `bin/`. Its state, a
//! world with its link, lies on the stack; the regions of the cores lie elsewhere.
#![no_std]

mod machine;

use flagpost::{Error, Link, Rank, Tag, Window, World, rma::Operation};
use flagpost_mapped::{LineMail, LoadStore, Mapped, UnderLock};

pub use flagpost;
pub use flagpost_hal;
pub use machine::Core;

/// Bytes of a core's region: for all of these programs.
pub const REGION: usize = 4096;

/// The smallest link, for cores with `COHERENT` caches or none.
pub type Small<const COHERENT: bool> = flagpost_mapped::Small<Core<COHERENT>>;

/// Rings of lines per pair, and tables for two ranks.
pub type Lines = LoadStore<LineMail<Core<true>, UnderLock, 2>, 16>;

/// Tables for 64 ranks.
pub type Usual = Mapped<Core<true>>;

/// A notified put.
///
/// # Errors
/// Any of Flagpost.
pub fn notify<L: Link>(
    _: &World<'_, L>,
    window: &Window<'_, u32, L>,
    peer: Rank,
) -> Result<(), Error> {
    let mut arrived = window.expect(0..1, Tag(7))?;
    arrived.start()?;
    window.put_notify(peer, 0, &[42], Tag(7))?;
    arrived.wait()?;
    Ok(())
}

/// An epoch.
///
/// # Errors
/// Any of Flagpost.
pub fn epoch<L: Link>(
    _: &World<'_, L>,
    window: &Window<'_, u32, L>,
    peer: Rank,
) -> Result<(), Error> {
    let exposure = window.post([peer])?;
    let access = window.start([peer])?;
    flagpost::Rma::put(&access, peer, 1, &[43])?;
    access.complete()?;
    exposure.wait()
}

/// Fences, locks, accumulates, counters and collective calls.
///
/// # Errors
/// Any of Flagpost.
pub fn more<L: Link>(
    world: &World<'_, L>,
    window: &Window<'_, u32, L>,
    peer: Rank,
) -> Result<(), Error> {
    use flagpost::Rma as _;
    let fence = window.fence(flagpost::epoch::Assert::empty())?;
    fence.put(peer, 2, &[44])?;
    fence.end()?;
    let lock = window.lock_exclusive(peer)?;
    let mut seen = [0];
    lock.get(peer, 2, &mut seen)?;
    lock.accumulate(peer, 3, &seen, Operation::SUM)?;
    lock.unlock()?;
    let mut all = [0; 2];
    world.allgather(seen[0], &mut all)?;
    window.local().set(4, all[1])
}

/// A program of a world over this link, which calls these functions.
#[macro_export]
macro_rules! program {
    ($link:ty; [$($call:ident),*]) => {
        #[cfg(not(target_os = "none"))]
        fn main() {}

        #[cfg(target_os = "none")]
        mod image {
            use core::sync::atomic::{AtomicBool, Ordering};

            use $crate::flagpost::{Config, Error, Session, World};

            type Link = $link;

            const WORDS: usize = Config::DEFAULT.words(2, 2);

            /// Bytes of a core's state, which `cargo xtask sizes` prints.
            // SAFETY (`no_mangle`): nothing else bears this name.
            #[unsafe(no_mangle)]
            #[used]
            static FLAGPOST_STATE: usize = size_of::<World<'_, Link>>() + 4 * WORDS;

            static DONE: AtomicBool = AtomicBool::new(false);

            // SAFETY (`no_mangle`): the linker looks for this name, and nothing else bears it.
            #[unsafe(no_mangle)]
            extern "C" fn _start() -> ! {
                DONE.store(start().is_ok(), Ordering::Relaxed);
                loop {
                    core::hint::spin_loop();
                }
            }

            fn start() -> Result<(), Error> {
                let mut words = [0; WORDS];
                let start = || Link::start($crate::Core, Session::FIRST);
                World::run_on(start, &mut words, Config::DEFAULT, program)
            }

            fn program(world: &World<'_, Link>) -> Result<(), Error> {
                let window = world.allocate::<u32>(16)?;
                window.local().set(0, window.local().get(1)?)?;
                $($crate::$call(world, &window, world.rank().next(world.size()))?;)*
                world.barrier()
            }

            #[panic_handler]
            fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
                loop {
                    core::hint::spin_loop();
                }
            }
        }
    };
}
