//! Memory models: whether a window has one copy or two.
//!
//! | | [`Separate`](Model::Separate), the default | [`Unified`](Model::Unified) |
//! |---|---|---|
//! | the owner's accesses ([`Local`](crate::Local)) | through its cache | past its cache |
//! | what peers put is seen | when the epoch or request has ended | immediately; see below |
//! | the owner's stores while peers may put | are refused, or lose | are as good as peers' puts |
//! | `post`, a request's start, … | write lines back, drain | order earlier stores |
//! | `wait`, a match, … | invalidate lines | nothing |
//! | good for data that | are accessed often between epochs | pass through; flags, counters |
//!
//! In the unified model what peers put may be seen immediately. The owner sees it for certain after
//! the epoch or request. In the separate one a store that is refused gives
//! [`Error::Exposed`](crate::Error::Exposed).
//!
//! These are MPI-3's models of the same names, chosen per window. On a machine whose caches are
//! coherent the actions of the separate model are empty, and the choice is one of rules only.
//!
//! # Which lines
//! *Target*: the lines of the range that was given to
//! [`Window::post_range`](crate::Window::post_range), or of the whole piece; of those, only what
//! the cache holds costs anything. *Origin*: none. An origin's accesses go past its cache, so it
//! has touched no line: there is nothing to write back at `complete`, nor to invalidate at `start`.
//! (Accesses of a rank to its own piece go past the cache too: they are an origin's.)

/// Does the owner of a piece cache it? See the table above.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Model {
    /// It does: what it sees, and what peers see, agree at the bounds of epochs and requests.
    #[default]
    Separate,
    /// It does not: there is one copy, in memory.
    Unified,
}

/// The choices of a window's maker; the same on all ranks. Made of its parts by `into`.
#[derive(Copy, Clone, Debug, Default)]
pub struct Options<O = ()> {
    /// The signalling strategy's own options.
    pub strategy: O,
    /// Are pieces cached?
    pub model: Model,
}

impl<O> From<O> for Options<O> {
    fn from(strategy: O) -> Self {
        Self {
            strategy,
            model: Model::default(),
        }
    }
}

impl From<Model> for Options {
    fn from(model: Model) -> Self {
        Self {
            strategy: (),
            model,
        }
    }
}
