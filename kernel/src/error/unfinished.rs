//! A call that could not finish, with its handle.

use core::fmt;

use super::Error;

/// A call that could not finish, with the handle to continue with.
///
/// `?` does not make it an [`enum@Error`]: that would drop the handle, which abandons an epoch. A
/// program that wants that says so, by [`give_up`](Self::give_up).
///
/// # Example
/// ```
/// # flagpost_guide::simulate(2, |world| {
/// use flagpost::{Budget, Error, Rank};
///
/// let (window, owner) = (world.allocate::<u32>(1)?, Rank::new(0));
/// let lock = match window.locking_exclusive(owner)?.wait_within(Budget::microseconds(20)) {
///     Ok(lock) => lock,
///     Err(late) => {
///         assert!(matches!(late.error, Error::Timeout(_)));
///         // Something else is done here.
///         late.handle.wait()? // until it is there
///     }
/// };
/// lock.unlock()?;
/// # Ok(())
/// # });
/// ```
///
/// It is an [`Error`](core::error::Error) of its own. A box of errors (`Box<dyn Error>`) takes no
/// borrows, and most handles borrow their window: there [`enum@Error`] goes into the box.
#[must_use = "dropping the handle abandons its epoch"]
pub struct Unfinished<H> {
    /// Wait for this again.
    pub handle: H,
    /// Why it could not finish.
    pub error: Error,
}

/// No handle is dropped unseen: nothing implements this.
#[diagnostic::on_unimplemented(
    message = "`?` would drop the handle with which the call continues",
    label = "keep the handle, or give it up",
    note = "`.map_err(Unfinished::give_up)?` drops it, which abandons an epoch or the like"
)]
pub trait Dropped {}

/// There is none: `?` says how to give a handle up.
impl<H: Dropped> From<Unfinished<H>> for Error {
    fn from(late: Unfinished<H>) -> Self {
        late.give_up()
    }
}

/// Handles have no text.
impl<H> fmt::Debug for Unfinished<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { handle: _, error } = self;
        f.debug_struct("Unfinished")
            .field("error", error)
            .finish_non_exhaustive()
    }
}

impl<H> fmt::Display for Unfinished<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = self.error;
        write!(
            f,
            "{error} (if there is a handle, the call continues with it)"
        )
    }
}

impl<H> core::error::Error for Unfinished<H> {}

impl<H> Unfinished<H> {
    /// For `map_err`: the call that had `error` continues with `handle`.
    pub(crate) fn with(handle: H) -> impl FnOnce(Error) -> Self {
        move |error| Self { handle, error }
    }

    /// Drops the handle: what that means is said there.
    pub fn give_up(self) -> Error {
        self.error
    }
}
