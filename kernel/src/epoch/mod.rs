//! Epochs: when peers may access a window's memory.

pub mod fence;
pub mod flush;
pub mod lock;
pub mod misuse;
pub mod pscw;

pub use fence::{Assert, Ending, Fence, Fenced, Fencing};
pub use lock::{Lock, Locked, Locking, Unlocking};
pub use pscw::{EpochSlots, MatchVector, MatchingList, Strategy};
