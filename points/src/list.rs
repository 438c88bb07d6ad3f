//! All points of a program, in a build with `--cfg mutants` for a host. Each point places itself in
//! a section of the linker, so that none can be forgotten: those that no case reaches are listed,
//! too.

pub use linkme;

/// A point, and where it stands.
#[derive(Copy, Clone, Debug)]
pub struct Point {
    /// Its name.
    pub name: &'static str,
    /// Why its step is there.
    pub why: &'static str,
    /// The expression after `else`, if there is one.
    pub instead: &'static str,
    /// Its source file, from the root of the repository.
    pub file: &'static str,
    /// Its line there, and its column.
    pub at: [u32; 2],
}

/// The points of all crates of the program, in no particular order. A point within the steps of an
/// [`order!`](crate::order) is there twice, at the same place.
#[linkme::distributed_slice]
pub static POINTS: [Point];

/// The site of a point, which is listed.
#[doc(hidden)]
#[macro_export]
macro_rules! listed {
    ([$name:literal, $why:literal, $instead:expr]) => {
        const {
            #[$crate::linkme::distributed_slice($crate::POINTS)]
            #[linkme(crate = $crate::linkme)]
            static POINT: $crate::Point = $crate::Point {
                name: $name,
                why: $why,
                instead: $instead,
                file: file!(),
                at: [line!(), column!()],
            };
            $crate::Site::new($name)
        }
    };
}
