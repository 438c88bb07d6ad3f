//! The tests of the kernel and its links on the simulator, as one program: the conformance cases
//! are generic, and each program that runs them compiles all of them again.
//!
//! * `sim`, `presets`, `scc`, `coherent`, `network`: every case, on each kind of chip.
//! * `programs`, `matching`: random programs, compared with models of what they mean.
//! * `hazards`: what caches and weak order do. Small programs with and without a remedy, in every
//!   schedule; and a core that is reset at any access.
//! * `fast`: what short ways must leave to the long ones.
//! * `abandoned`, `bounds`, `held`, `lines`, `locks`, `many`, `own_piece`, `payload`, `rma`,
//!   `windows`: what no case can show.
//! * `builds`: ranks whose images were built otherwise.
//! * `parts`: what every link promises, over a part's.
//! * `given_back`: after each call that fails or frees, all is as before.
//! * `waits`: calls that wait, for ranks that do not come, have left or are lost.
//! * `leaving`: ranks that leave or are lost, on a machine that knows of it.
//! * `misuse`: wrong arguments, one call deeper.
//! * `sizes`: links with small tables.
//! * `costs`: how many accesses calls take, beside those of docs/costs.md.
//!
//! `FLAGPOST_DEEP=1` gives each combination more seeds ([`groups::seeds`]), and what takes minutes
//! is ignored by default: `cargo xtask test --deep` runs both.

mod abandoned;
mod bounds;
mod builds;
mod coherent;
mod costs;
mod fast;
mod given_back;
mod going_on;
mod groups;
mod hazards;
mod held;
mod leaving;
mod lines;
mod locks;
mod many;
mod matching;
mod misuse;
mod network;
mod own_piece;
mod parts;
mod payload;
mod presets;
mod programs;
mod rma;
mod scc;
mod sim;
mod sizes;
mod survivor;
mod waits;
mod windows;
mod within;
