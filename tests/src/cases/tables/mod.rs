//! The tables: each case with its name and the least and most cores that it takes.

mod access;
mod apps;
mod general;
mod notified;
mod signalled;
