//! The commands, a file each.

mod bench_compare;
mod bench_fabric;
pub(crate) mod ci;
pub(crate) mod doctor;
pub(crate) mod explore;
pub(crate) mod fabric;
pub(crate) mod features;
pub(crate) mod handed;
pub(crate) mod kills;
pub(crate) mod linux;
pub(crate) mod panics;
pub(crate) mod qemu;
pub(crate) mod scc;
pub(crate) mod selftest;
pub(crate) mod sizes;
pub(crate) mod test;
pub(crate) mod tidy;
