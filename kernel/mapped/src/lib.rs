//! The link for load/store machines without cache coherence.
//!
//! All ranks reach all shared memory by loads and stores, and the hardware does not keep their
//! caches coherent. [`Mapped`] is a link over such a machine. A program starts it once on each
//! core, and gives it to its world:
//!
//! ```
//! use flagpost_link::{Link as _, Refusal, Session};
//! use flagpost_mapped::Mapped;
//! use flagpost_sim::{Config, Sim, SimCore};
//!
//! fn program(core: SimCore) -> Result<(), Refusal> {
//!     let link = Mapped::start(core, Session::FIRST)?; // memory is cleared before
//!     assert!(link.rank().get() < link.size());
//!     Ok(())
//! }
//!
//! Sim::new(Config::default()).run(program).assert_done();
//! ```
//!
//! The link itself is a [`LoadStore`], which lays memory out and changes words that ranks share.
//! This crate has its [`mail`]: notifications with their data, in rings of lines.
//!
//! Where memory is dear, take [`Small`]: its ranks share one ring of words. Or give [`Mapped`]
//! smaller tables; the type names them, the same on all ranks:
//!
//! ```
//! use flagpost_link::{Link as _, Refusal, Session};
//! use flagpost_mapped::{LineMail, LoadStore, UnderLock};
//! use flagpost_sim::{Config, Sim, SimCore};
//!
//! /// For two cores, and five windows at a time.
//! type TwoRanks = LoadStore<LineMail<SimCore, UnderLock, 2>, 16>;
//!
//! let report = Sim::new(Config { cores: 2, ..Config::default() }).run(|core| {
//!     let link = TwoRanks::start(core, Session::FIRST)?;
//!     assert_eq!(link.size(), 2);
//!     Ok::<(), Refusal>(())
//! });
//! report.assert_done();
//! ```
//!
//! # Sources
//! [PSCW-SCC] Christgau & Schnor, PSCW synchronization on the Intel SCC; [foMPI] Gerstenberger,
//! Besta, Hoefler 2013/14; [NA] Belli & Hoefler, Notified Access 2015.
//!
//! [PSCW-SCC]: crate#sources
//! [foMPI]: crate#sources
//! [NA]: crate#sources
#![no_std]

#[macro_use]
extern crate flagpost_points;

pub mod bells;
pub mod deferred;
pub mod line;
pub mod mail;
pub mod pairs;
pub mod peer;
pub mod ring;
pub mod small;
#[cfg(test)]
mod tests;

pub use flagpost_loadstore::{LoadStore, Native, Ring, UnderLock};
pub use mail::LineMail;
pub use small::SmallMail;

/// A link over the memory of any machine `M`; words are changed under their owner's lock.
pub type Mapped<M> = LoadStore<LineMail<M, UnderLock>>;

/// A link over the memory of any machine `M` with atomic operations that reach all cores: these
/// change words.
pub type MappedNative<M> = LoadStore<LineMail<M, Native>>;

/// The smallest link, for two ranks or a few, and five windows at a time: see [`small`].
pub type Small<M> = LoadStore<SmallMail<M, UnderLock>, 16>;
