//! The tests of the port to the SCC, over a model of the chip, as one program.

mod chip;
mod displacement;
mod hazards;
mod map;
mod registers;
