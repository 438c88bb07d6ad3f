//! The figures.

mod apps;
mod calls;
mod many;
mod two;

use anyhow::{Result, anyhow};
use flagpost_sim::Report;

use crate::figure::Plan;

/// All, in the order of the documents.
pub(crate) fn all() -> Vec<Plan> {
    vec![
        two::puts(),
        two::gets(),
        two::bandwidth(),
        two::overlap(),
        calls::pscw_calls(),
        calls::pscw_epochs(),
        calls::fence_or_pscw(),
        many::fence(),
        many::ring(),
        many::tree(),
        apps::stencil(),
        apps::cholesky(),
        apps::hashtable(),
        apps::sparse(),
        apps::programs(),
    ]
}

/// The value of a run.
fn ran<T>(run: Result<T, Box<Report>>) -> Result<T> {
    run.map_err(|report| anyhow!("{report}"))
}

/// The curve of every `step`-th value, from `first` on, over its x.
fn points(xs: &[f64], ys: impl IntoIterator<Item = f64>) -> Vec<(f64, f64)> {
    xs.iter().copied().zip(ys).collect()
}

/// `x` to the nearest tenth, such as `2.3`.
fn tenths(x: f64) -> String {
    format!("{x:.1}")
}
