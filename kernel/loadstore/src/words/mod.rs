//! Words that ranks share: each is loaded and stored past the caches.
//!
//! | | what | changed by |
//! |---|---|---|
//! | [`slots`] | counters by which ranks signal each other | one rank each |
//! | [`cells`] | 8 bytes, and other bytes | all ranks, under their owner's [lock] |
//! | [`atomics`] | the same, by atomic operations of the machine | all ranks |
//! | [`match_vector`] | a bit per peer, and a count, of [PSCW-SCC] | all ranks, under the lock |
//!
//! A loop that waits notes what it polls ([`poll`]), so that relaxing can sleep until a word
//! changes.
//!
//! [PSCW-SCC]: crate#sources

pub mod atomics;
pub mod cells;
pub mod change;
pub mod lock;
pub mod look;
pub mod match_vector;
pub mod poll;
pub mod slots;
#[cfg(mutants)]
mod wrong;
