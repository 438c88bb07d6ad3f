//! The image of the Cortex-M4.
#![no_std]
#![no_main]

use stm32h745::start;

#[cortex_m_rt::entry]
fn main() -> ! {
    start::own_core();
    stm32h745::run::<1>()
}
