//! Commands with a module of their own.

mod cross;
mod micro;
mod model;
mod pingpong;
mod results;
mod tree;

pub(crate) use cross::Cross;
pub(crate) use micro::Micro;
pub(crate) use model::Models;
pub(crate) use pingpong::Pingpong;
pub(crate) use results::Results;
pub(crate) use tree::Tree;
