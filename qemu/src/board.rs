//! The board: its bounds, and what the device tree and the image say of it.

use spin::once::Once;

use crate::csr::Yield;

/// Most harts that an image can have: as many as QEMU's board, and as many cores as a map has room
/// for.
pub const MAX_HARTS: usize = 512;

/// What the device tree says, and the image.
pub(crate) struct Board {
    pub(crate) harts: u16,
    /// Bytes of memory that each core shares.
    pub(crate) memory_size: usize,
    pub(crate) boot_args: &'static str,
}

static BOARD: Once<Board, Yield> = Once::new();

/// Reads the device tree, on hart 0.
pub(crate) fn learn(read: impl FnOnce() -> Board) {
    BOARD.call_once(read);
}

/// What the device tree and the image say; waits until hart 0 has read it.
pub(crate) fn board() -> &'static Board {
    BOARD.wait()
}

/// The words that were given to QEMU with `-append`.
pub fn boot_args() -> &'static str {
    board().boot_args
}
