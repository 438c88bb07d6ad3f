//! Loads and stores of registers, by the addresses that `registers.rs` of a chip names.

use core::ptr::{self, NonNull};

use volatile::VolatilePtr;

fn pointer(register: usize) -> VolatilePtr<'static, u32> {
    let at = ptr::with_exposed_provenance_mut(register);
    // SAFETY: a register of the chip, of those in `registers.rs`, and no memory of Rust's; none has
    // address 0. None of those that are stored to makes the chip access memory.
    unsafe { VolatilePtr::new(NonNull::new_unchecked(at)) }
}

pub(crate) fn load(register: usize) -> u32 {
    pointer(register).read()
}

pub(crate) fn store(register: usize, value: u32) {
    pointer(register).write(value);
}
