//! How a call that may have to wait ends.
//!
//! Such a call gives a handle. The handle remembers which steps are done. Its `wait` does the other
//! steps, and waits for peers. Its `wait_within` stops when a budget has run out, and gives the
//! handle back. Its `test` does not wait.

/// The three calls of a handle. `$finish` does the steps that are not done. `$gives`, if there is
/// one, makes the result from the handle. The docs of a call stand above its name.
macro_rules! ends {
    (
        impl[$($of:tt)*] $handle:ty,
        in $($world:ident).+, by $($finish:ident).+ $(then $gives:ident)?;
        $(#[$wait:meta])*
        wait -> $output:ty;
        $(#[$within:meta])*
        wait_within;
        $(
            $(#[$test:meta])*
            test;
        )?
    ) => {
        impl<$($of)*> $handle {
            $(#[$wait])*
            #[track_caller]
            pub fn wait(mut self) -> Result<$output, Error> {
                called!(self.$($world).+);
                let given = self.$($finish).+().map_err(Error::dropped)?;
                Ok(ends!(self, given $(, $gives)?))
            }

            /// [`wait`](Self::wait), as long as `budget` says.
            ///
            $(#[$within])*
            #[track_caller]
            pub fn wait_within(mut self, budget: Budget) -> Result<$output, Unfinished<Self>> {
                called!(self.$($world).+);
                let world = self.$($world).+;
                match world.within(budget, || self.$($finish).+()) {
                    Ok(given) => Ok(ends!(self, given $(, $gives)?)),
                    Err(error) => Err(Unfinished::with(self)(error)),
                }
            }

            $(
                $(#[$test])*
                /// [`wait_within`](Self::wait_within) with a budget of 0: nothing is waited for. A
                /// loop of tests keeps the processor: where ranks share one, give a short budget.
                ///
                /// # Errors
                /// Those of [`wait_within`](Self::wait_within).
                #[track_caller]
                pub fn test(self) -> Result<$output, Unfinished<Self>> {
                    self.wait_within(Budget::ZERO)
                }
            )?
        }
    };
    ($handle:expr, $given:expr) => {
        $given
    };
    ($handle:expr, $given:expr, $gives:ident) => {{
        let () = $given;
        $handle.$gives()
    }};
}
