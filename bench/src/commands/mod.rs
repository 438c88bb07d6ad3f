//! Commands with a module of their own.

mod pingpong;
mod tree;

pub(crate) use pingpong::Pingpong;
pub(crate) use tree::Tree;
