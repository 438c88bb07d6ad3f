//! Mistakes that the epoch types make impossible. Each is shown by a program that does not compile,
//! beside its twin that does. So a later change of the types cannot allow one of them unnoticed.
//!
//! There is no plain put outside an access epoch: a window has none.
//! ```compile_fail
//! # use flagpost::*;
//! fn f<L: Link>(window: &Window<'_, u64, L>, to: Rank) -> Result<(), Error> {
//!     window.put(to, 0, &[1])
//! }
//! ```
//! ```
//! # use flagpost::*;
//! fn f<L: Link>(window: &Window<'_, u64, L>, to: Rank, all: &Group<'_>) -> Result<(), Error> {
//!     let access = window.start(all)?;
//!     access.put(to, 0, &[1])?;
//!     Ok(access.complete()?)
//! }
//! ```
//! None after its end: `complete` takes the epoch.
//! ```compile_fail
//! # use flagpost::*;
//! # fn f<L: Link>(window: &Window<'_, u64, L>, to: Rank, all: &Group<'_>) -> Result<(), Error> {
//! let access = window.start(all)?;
//! access.complete()?;
//! access.put(to, 0, &[1])
//! # }
//! ```
//! None while it is ending: its handle can only be waited for.
//! ```compile_fail
//! # use flagpost::*;
//! # fn f<L: Link>(window: &Window<'_, u64, L>, to: Rank, all: &Group<'_>) -> Result<(), Error> {
//! if let Err(late) = window.start(all)?.completing().wait_within(Budget::seconds(1)) {
//!     late.handle.put(to, 0, &[1])?;
//! }
//! # Ok(())
//! # }
//! ```
//! ```
//! # use flagpost::*;
//! # fn f<L: Link>(window: &Window<'_, u64, L>, all: &Group<'_>) -> Result<(), Error> {
//! if let Err(late) = window.start(all)?.completing().wait_within(Budget::seconds(1)) {
//!     late.handle.wait()?;
//! }
//! # Ok(())
//! # }
//! ```
//! `?` drops no handle: an unfinished call is no [`enum@Error`](crate::Error).
//! ```compile_fail
//! # use flagpost::*;
//! # fn f<L: Link>(window: &Window<'_, u64, L>, all: &Group<'_>) -> Result<(), Error> {
//! window.start(all)?.completing().wait_within(Budget::seconds(1))?;
//! # Ok(())
//! # }
//! ```
//! ```
//! # use flagpost::*;
//! # fn f<L: Link>(window: &Window<'_, u64, L>, all: &Group<'_>) -> Result<(), Error> {
//! let done = window.start(all)?.completing().wait_within(Budget::seconds(1));
//! done.map_err(Unfinished::give_up)?;
//! # Ok(())
//! # }
//! ```
//! An exposure epoch is waited for once.
//! ```compile_fail
//! # use flagpost::*;
//! # fn f<L: Link>(window: &Window<'_, u64, L>, all: &Group<'_>) -> Result<(), Error> {
//! let exposure = window.post(all)?;
//! exposure.wait()?;
//! exposure.wait()
//! # }
//! ```
//! ```
//! # use flagpost::*;
//! # fn f<L: Link>(window: &Window<'_, u64, L>, all: &Group<'_>) -> Result<(), Error> {
//! let exposure = window.post(all)?;
//! exposure.wait()
//! # }
//! ```
//! A lock is given back once, and a fence epoch ends once.
//! ```compile_fail
//! # use flagpost::*;
//! # fn f<L: Link>(window: &Window<'_, u64, L>, to: Rank) -> Result<(), Error> {
//! let lock = window.lock_shared(to)?;
//! lock.unlock()?;
//! lock.unlock()
//! # }
//! ```
//! ```
//! # use flagpost::*;
//! # fn f<L: Link>(window: &Window<'_, u64, L>, to: Rank) -> Result<(), Error> {
//! let lock = window.lock_shared(to)?;
//! lock.put(to, 0, &[1])?;
//! lock.unlock()
//! # }
//! ```
//! ```compile_fail
//! # use flagpost::{*, epoch::Assert};
//! # fn f<L: Link>(window: &Window<'_, u64, L>, to: Rank) -> Result<(), Error> {
//! let first = window.fence(Assert::NO_PRECEDE)?;
//! let second = first.fence(Assert::empty())?;
//! first.put(to, 0, &[1])?;
//! second.end()
//! # }
//! ```
//! ```
//! # use flagpost::{*, epoch::Assert};
//! # fn f<L: Link>(window: &Window<'_, u64, L>, to: Rank) -> Result<(), Error> {
//! let first = window.fence(Assert::NO_PRECEDE)?;
//! let second = first.fence(Assert::empty())?;
//! second.put(to, 0, &[1])?;
//! second.end()
//! # }
//! ```
//! A forgotten epoch is a warning (`must_use`), here made an error.
//! ```compile_fail
//! #![deny(unused_must_use)]
//! # use flagpost::*;
//! fn f<L: Link>(window: &Window<'_, u64, L>, all: &Group<'_>) -> Result<(), Error> {
//!     window.post(all)?;
//!     Ok(())
//! }
//! ```
//! A window does not outlive its world, nor an epoch its ranks.
//! ```compile_fail
//! # use flagpost::*;
//! # fn f<L: Link>(window: &Window<'_, u64, L>, world: &World<'_, L>) -> Result<(), Error> {
//! let access = {
//!     let ranks = [world.rank()];
//!     window.start(&ranks)?
//! };
//! access.complete()
//! # }
//! ```
//! ```
//! # use flagpost::*;
//! # fn f<L: Link>(window: &Window<'_, u64, L>, world: &World<'_, L>) -> Result<(), Error> {
//! let ranks = [world.rank()];
//! let access = window.start(&ranks)?;
//! access.complete()
//! # }
//! ```
//! Elements are plain data: no references, no padding.
//! ```compile_fail
//! # use flagpost::*;
//! # fn f<L: Link>(world: &World<'_, L>) -> Result<(), Error> {
//! let window = world.allocate::<&'static str>(1)?;
//! # Ok(())
//! # }
//! ```
//! A world belongs to one core: it is not `Sync`.
//! ```compile_fail
//! # use flagpost::*;
//! fn shared<T: Sync>() {}
//! fn f<L: Link + Sync>() {
//!     shared::<World<'static, L>>()
//! }
//! ```
