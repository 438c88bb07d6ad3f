//! All accesses, as one table.
//!
//! Tests and benchmarks that are about every access go through [`Verb::ALL`], so that a verb is
//! added in one place. A verb is done in full, on a [`Target`](flagpost::rma::Target) with or
//! without a layout and a notice ([`begin!`]), or by its short form ([`Verb::call`]).
//!
//! This is a crate of its own because `tests/no-panic` is: it uses nothing but the kernel.
#![no_std]
#![allow(
    clippy::result_large_err,
    reason = "accesses go back to their user, without a heap"
)]

use flagpost::rma::{Fetch, Integer, Operation, Request};
use flagpost::{Budget, Error, Link, Rank, Rma, Unfinished};

/// An access.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Of a slice.
    Put,
    /// Of a slice.
    Get,
    /// Of a slice.
    Accumulate,
    /// Of two slices.
    GetAccumulate,
    /// Of one element.
    FetchAndOp,
    /// Of one element.
    CompareAndSwap,
}

impl Verb {
    /// Those of slices first.
    pub const ALL: [Self; 6] = [
        Self::Put,
        Self::Get,
        Self::Accumulate,
        Self::GetAccumulate,
        Self::FetchAndOp,
        Self::CompareAndSwap,
    ];

    /// Of the call.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Get => "get",
            Self::Accumulate => "accumulate",
            Self::GetAccumulate => "get_accumulate",
            Self::FetchAndOp => "fetch_and_op",
            Self::CompareAndSwap => "compare_and_swap",
        }
    }

    /// The verb of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.name() == name)
    }

    /// The short form in an epoch. What combines adds `data`, or 1; what is compared is with 0, and
    /// becomes 1; what is found goes to `into`, or is dropped.
    ///
    /// # Errors
    /// Those of the access.
    #[track_caller]
    pub fn call<'w, T: Integer + From<bool>, L: Link + 'w>(
        self,
        epoch: &impl Rma<'w, T, L>,
        (to, index): (Rank, usize),
        data: &[T],
        into: &mut [T],
    ) -> Result<(), Error> {
        let (one, sum) = (T::from(true), Operation::SUM);
        match self {
            Self::Put => epoch.put(to, index, data),
            Self::Get => epoch.get(to, index, into),
            Self::Accumulate => epoch.accumulate(to, index, data, sum),
            Self::GetAccumulate => epoch.get_accumulate(to, index, data, sum, into),
            Self::FetchAndOp => epoch.fetch_and_op(to, index, one, sum).map(drop),
            Self::CompareAndSwap => epoch
                .compare_and_swap(to, index, T::from(false), one)
                .map(drop),
        }
    }
}

/// An access that has begun.
#[derive(Debug)]
#[must_use = "an access goes on when it is waited for"]
#[allow(clippy::large_enum_variant, reason = "there is no heap")]
pub enum Begun<'r, 'w, T, L: Link> {
    /// Of slices.
    Slices(Request<'r, 'w, L>),
    /// Of one element.
    One(Fetch<'r, 'w, T, L>),
}

impl<T: Integer, L: Link> Begun<'_, '_, T, L> {
    /// Waits until it is done; what one element was.
    ///
    /// # Errors
    /// Those of the access.
    #[track_caller]
    pub fn wait(self) -> Result<Option<T>, Error> {
        match self {
            Self::Slices(request) => request.wait().map(|()| None),
            Self::One(fetch) => fetch.wait().map(Some),
        }
    }

    /// [`wait`](Self::wait), as long as `budget` says.
    ///
    /// # Errors
    /// Those of the access, with what is left of it.
    #[track_caller]
    pub fn wait_within(self, budget: Budget) -> Result<Option<T>, Unfinished<Self>> {
        fn back<A, B>(late: Unfinished<A>, into: impl FnOnce(A) -> B) -> Unfinished<B> {
            Unfinished {
                handle: into(late.handle),
                error: late.error,
            }
        }
        match self {
            Self::Slices(request) => match request.wait_within(budget) {
                Ok(()) => Ok(None),
                Err(late) => Err(back(late, Self::Slices)),
            },
            Self::One(fetch) => match fetch.wait_within(budget) {
                Ok(old) => Ok(Some(old)),
                Err(late) => Err(back(late, Self::One)),
            },
        }
    }
}

/// Begins an access in full: `begin!(verb, target, data, into)` is a `Result` of a [`Begun`]. It
/// does the same as [`Verb::call`], to the elements that `target` names.
#[macro_export]
macro_rules! begin {
    ($verb:expr, $target:expr, $data:expr, $into:expr) => {{
        let (target, one, sum) = ($target, true.into(), ::flagpost::rma::Operation::SUM);
        match $verb {
            $crate::Verb::Put => target.put($data).map($crate::Begun::Slices),
            $crate::Verb::Get => target.get($into).map($crate::Begun::Slices),
            $crate::Verb::Accumulate => target.accumulate($data, sum).map($crate::Begun::Slices),
            $crate::Verb::GetAccumulate => target
                .get_accumulate($data, sum, $into)
                .map($crate::Begun::Slices),
            $crate::Verb::FetchAndOp => target.fetch_and_op(one, sum).map($crate::Begun::One),
            $crate::Verb::CompareAndSwap => target
                .compare_and_swap(false.into(), one)
                .map($crate::Begun::One),
        }
    }};
}
