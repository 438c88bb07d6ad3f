//! Epochs: when peers may access a window's memory.

pub mod misuse;
pub mod pscw;

pub use pscw::{EpochSlots, MatchVector, MatchingList, Strategy};
