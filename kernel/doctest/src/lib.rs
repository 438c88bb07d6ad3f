//! Runs the examples of Flagpost's documentation on a simulated chip.
//!
//! An example of a kernel function needs a world of several ranks. Its hidden lines get one here:
//!
//! ```
//! # flagpost_doctest::on(2, |world| {
//! world.barrier()?;
//! assert_eq!(world.size(), 2);
//! # Ok(())
//! # });
//! ```
#![forbid(unsafe_code)]

use flagpost::{Config, Error, World};
use flagpost_mapped::Mapped;
use flagpost_sim::{Profile, Sim, SimCore};

/// The link of an example's world.
pub type Link = Mapped<SimCore>;

/// Words for the world of an example.
const ARENA: usize = 512;

/// Runs `example` on each of `cores` simulated cores: on chips of all profiles, and under several
/// interleavings.
///
/// # Panics
/// If the example fails, panics or never ends on a core. The message names the core and the reason.
pub fn on(cores: u16, example: impl Fn(&World<'_, Link>) -> Result<(), Error>) {
    for profile in Profile::ALL {
        let mut sim = Sim::new(flagpost_sim::Config {
            cores,
            profile,
            memory_size: 16 << 10,
            ..Default::default()
        });
        for seed in 0..4 {
            let report = sim.reseed(seed).run(|core| {
                let mut words = [0; ARENA];
                let link = Mapped::start(core, 1)?;
                example(&World::start(link, &mut words, Config::default())?)
            });
            report.assert_done();
        }
    }
}
