//! Which line of the program an access belongs to.
//!
//! An access knows the line that called the machine. In a program that uses the kernel, that is a
//! line of the kernel. So the kernel also says where the program has called it, and that is the
//! line to name.

use std::panic::Location;

use flagpost_hal::is_library;

pub(crate) type Place = &'static Location<'static>;

/// Two places of an access: the line that called the machine, and the line that called the kernel
/// last, if any did.
#[derive(Copy, Clone)]
pub(crate) struct Places {
    pub(crate) access: Place,
    pub(crate) called: Option<Place>,
}

impl Places {
    /// The line of the program; none if the library did it on its own account.
    pub(crate) fn of_program(self) -> Option<Place> {
        if is_library(self.access) {
            return self.called;
        }
        Some(self.access)
    }
}
