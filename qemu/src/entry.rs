//! What a program gives the board, and what it gives back.

use crate::hart::Hart;

/// How a hart, or the machine, ended.
#[derive(Copy, Clone, Debug, PartialEq, Eq, defmt::Format)]
pub enum Exit {
    /// Well. The machine's exit status is 0 if all harts end so.
    Pass,
    /// Not well. The machine's exit status is 1.
    Fail,
}

/// What the function named to [`entry!`](crate::entry) may return.
pub trait Outcome {
    /// How the hart ended.
    fn exit(self) -> Exit;
}

impl Outcome for Exit {
    fn exit(self) -> Exit {
        self
    }
}

impl Outcome for () {
    fn exit(self) -> Exit {
        Exit::Pass
    }
}

impl<T: Outcome, E: defmt::Format> Outcome for Result<T, E> {
    /// Logs the error, and where the program has called Flagpost last.
    fn exit(self) -> Exit {
        match self {
            Ok(value) => value.exit(),
            Err(error) => {
                match Hart::current().silence().last_call() {
                    Some(place) => defmt::error!(
                        "main returned an error: {} (last call at {=str}:{=u32})",
                        error,
                        place.file(),
                        place.line()
                    ),
                    None => defmt::error!("main returned an error: {}", error),
                }
                Exit::Fail
            }
        }
    }
}

/// Names the function that every hart runs: `fn(Hart) -> T` where `T:` [`Outcome`].
///
/// Once per image. The function is called on all harts after the last one has booted; the machine
/// ends when all calls have returned.
#[macro_export]
macro_rules! entry {
    ($main:path) => {
        const _: () = {
            // SAFETY (`no_mangle`): the board declares exactly this signature under this name, and
            // a second definition fails to link.
            #[unsafe(no_mangle)]
            fn flagpost_main(hart: $crate::Hart) -> $crate::Exit {
                $crate::Outcome::exit($main(hart))
            }
        };
    };
}
