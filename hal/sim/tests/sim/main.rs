//! The simulator's own tests, as one program.

mod bulk;
mod caches;
mod common;
mod explore;
mod knobs;
mod network;
mod oracles;
mod outcomes;
mod prefetch;
mod registers;
mod scc;
mod software_lock;
mod timed;
mod waiting;
mod weak;
