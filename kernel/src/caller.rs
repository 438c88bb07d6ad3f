//! The place in a program from which it has called the library.
//!
//! A world remembers the last one, so that a program whose call has failed can say which call that
//! was. Every place is a file's name and two numbers in the image, and an argument of the call.
//! Small chips save these bytes: see the feature `places`.

use core::panic::Location;

/// Are places noted? The feature `places` says so for bare metal.
const NOTED: bool = cfg!(any(feature = "places", not(target_os = "none")));

/// A place in a program, or nothing at all where places are not noted.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Caller([&'static Location<'static>; NOTED as usize]);

impl Caller {
    /// That of the caller of the function that calls this, if that is `#[track_caller]`.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn place() -> Self {
        Location::caller().into()
    }

    /// As a location, for a message.
    pub(crate) fn location(self) -> Option<&'static Location<'static>> {
        self.0.first().copied()
    }
}

impl From<&'static Location<'static>> for Caller {
    fn from(place: &'static Location<'static>) -> Self {
        Self([place; NOTED as usize])
    }
}
