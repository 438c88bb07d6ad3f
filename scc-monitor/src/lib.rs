//! An Intel SCC, emulated on QEMU's i386 machine: what one core's access does.
//!
//! An image for the chip runs here unchanged. The binary of this crate starts the cores, gives each
//! the page tables that [`flagpost_scc::views`] asks for, and copies the image into its private
//! memory. Pages of registers are left out of the tables, so an access to a register ends in a page
//! fault. Then the monitor decodes the instruction, does what the register would do, and continues
//! after it. This library is all of that which needs no such machine, and so has tests on the host.
//!
//! | module | concern |
//! |---|---|
//! | [`options`] | boot words |
//! | [`mesh`] | which memory or register a lookup table's entry leads to |
//! | [`decode`] | instructions that load or store: length, operands, flags |
//! | [`devices`] | register banks and the FPGA |
//! | [`lines`] | message lines of L1, and the write-combining buffer |
//! | [`calls`] | what an image may ask of the monitor |
//!
//! # Faults
//! [`options::Fault`] breaks the machine on purpose, one thing at a time: a case must notice.
#![no_std]
#![deny(unsafe_code)]

#[cfg_attr(
    all(target_os = "none", target_arch = "x86"),
    expect(unsafe_code, reason = "the instruction that asks the monitor")
)]
pub mod calls;
pub mod decode;
pub mod devices;
pub mod lines;
pub mod mesh;
pub mod options;

#[cfg(test)]
extern crate std;
