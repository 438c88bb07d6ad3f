//! Commands with a module of their own.

mod cross;
mod micro;
mod model;
mod pingpong;
mod results;
mod tree;

use std::fmt::Display;

use flagpost_bench::micro::{Row, cost};
use flagpost_common::{Json, out, table};
use flagpost_sim::Report;

pub(crate) use cross::Cross;
pub(crate) use micro::Micro;
pub(crate) use model::Models;
pub(crate) use pingpong::Pingpong;
pub(crate) use results::Results;
pub(crate) use tree::Tree;

/// Prints what each variant costs at each of these points: a table with this title and this name of
/// the points; or, if there is none, an object per variant and point.
fn print<P: Copy + Display>(
    title: Option<(&str, &str)>,
    points: &[P],
    object: impl Fn(&str, P, u64) -> Json,
    at: impl Fn(P) -> Result<Row, Box<Report>>,
) -> Result<(), Box<Report>> {
    let mut made = Vec::new();
    for &point in points {
        let row = at(point)?;
        if title.is_none() {
            let objects = row
                .iter()
                .map(|&(variant, cost)| object(variant, point, cost));
            objects.for_each(Json::print);
        }
        made.push((point, row));
    }
    let Some((title, over)) = title else {
        return Ok(());
    };
    let mut head = vec![over];
    for &(variant, _) in made.iter().flat_map(|(_, row)| row) {
        if !head.contains(&variant) {
            head.push(variant);
        }
    }
    let cells = |(point, row): &(P, Row)| {
        let cell = |variant: &&str| cost(row, variant).map_or("-".into(), |cost| cost.to_string());
        let cells = head[1..].iter().map(cell);
        std::iter::once(point.to_string()).chain(cells).collect()
    };
    out(title);
    table(&head, &made.iter().map(cells).collect::<Vec<_>>());
    Ok(())
}
