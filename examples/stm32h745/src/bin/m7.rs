//! The image of the Cortex-M7, which starts the other.
#![no_std]
#![no_main]

use stm32h745::start;

#[cortex_m_rt::entry]
fn main() -> ! {
    start::caches();
    start::own_core();
    start::second_core();
    stm32h745::run::<0>()
}
