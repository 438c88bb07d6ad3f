//! Virtual addresses: the same bytes, once per memory type.
//!
//! A memory type belongs to a page, so a core that reaches a window both cached and uncached maps
//! it twice. Boot code fills its page tables from [`entry`], page by page; the silicon bus finds
//! its way by [`address`]. Pages of 4 KiB: large ones cannot be had, since their bit is the MPBT
//! bit.
//!
//! ```text
//!   virtual                     physical                         type
//!   0x0000_0000  16 + 41 slots  the same                         normal: private memory, the image
//!   0x4000_0000  64 MiB         0x8000_0000 shared memory        message
//!   0x4400_0000  16 KiB x 24    0xC000_0000 message buffers      message
//!   0x4800_0000  64 MiB         0x8000_0000 shared memory        normal, for `Mapping::Normal`
//!   0x8000_0000  64 MiB         the same                         uncached
//!   0xC000_0000  slots, 16 KiB  the same                         uncached: message buffers
//!   0xE000_0000  slots,  8 KiB  the same                         uncached: register banks, FPGA
//! ```
//! "Message" is `Mpbt` or `MpbtWriteThrough`, one of them for all, as the core's [`Mapping`] says.
//! Everything else is left out, and faults; so does what a wrong entry of the lookup table would
//! hang (H7).

use crate::bus::{Attribute, Physical};
use crate::map::{BUFFER, SLOT, TILE_CORES};
use crate::scc::Mapping;

const PAGE: u32 = 4096;
const PRIVATE_END: u32 = 0x2900_0000;
const MESSAGE_MEMORY: u32 = 0x4000_0000;
const MESSAGE_BUFFERS: u32 = 0x4400_0000;
const NORMAL_MEMORY: u32 = 0x4800_0000;
const MEMORY: u32 = 0x8000_0000;
const BUFFERS: u32 = 0xC000_0000;
const REGISTERS: u32 = 0xE000_0000;
const OWN_REGISTERS: u32 = 0xF800_0000;
const FPGA: u32 = 0xF900_0000;

/// Bytes of shared memory, on all controllers.
const MEMORY_SIZE: u32 = 4 * SLOT;
const TILES: u32 = 24;
/// Bytes of message buffer per tile.
const TILE_BUFFER: u32 = BUFFER * TILE_CORES as u32;
/// Bytes of a register bank.
const BANK: u32 = 8 << 10;
/// Bytes of the FPGA's registers.
const FPGA_SIZE: u32 = 64 << 10;

/// Where a core reaches `at` with this memory type. `None` if it does not.
#[inline]
pub const fn address(at: Physical, attribute: Attribute) -> Option<u32> {
    let at = at.get();
    match (at, attribute) {
        (0..PRIVATE_END, Attribute::Normal) => Some(at),
        (MEMORY.., Attribute::Uncached) => match uncached(at) {
            true => Some(at),
            false => None,
        },
        (MEMORY..0x8400_0000, Attribute::Normal) => Some(at - MEMORY + NORMAL_MEMORY),
        (MEMORY..0x8400_0000, _) => Some(at - MEMORY + MESSAGE_MEMORY),
        (BUFFERS..0xD800_0000, Attribute::Mpbt | Attribute::MpbtWriteThrough) => {
            let (tile, offset) = ((at - BUFFERS) / SLOT, at % SLOT);
            match offset < TILE_BUFFER {
                true => Some(MESSAGE_BUFFERS + tile * TILE_BUFFER + offset),
                false => None,
            }
        }
        _ => None,
    }
}

/// Whether something that may be touched uncached is at this physical address.
const fn uncached(at: u32) -> bool {
    let offset = at % SLOT;
    match at {
        MEMORY..0x8400_0000 => true,
        BUFFERS..0xD800_0000 => offset < TILE_BUFFER,
        REGISTERS..FPGA => offset < BANK,
        FPGA..0xFA00_0000 => offset < FPGA_SIZE,
        _ => false,
    }
}

/// What a core with this mapping has at a virtual address: where it leads, and the memory type.
/// `None` if nothing.
pub const fn page(at: u32, mapping: Mapping) -> Option<(Physical, Attribute)> {
    let message = match mapping {
        Mapping::Mpbt => Attribute::Mpbt,
        Mapping::Normal | Mapping::MpbtWriteThrough => Attribute::MpbtWriteThrough,
    };
    let (physical, attribute) = match at {
        0..PRIVATE_END => (at, Attribute::Normal),
        MESSAGE_MEMORY..MESSAGE_BUFFERS => (at - MESSAGE_MEMORY + MEMORY, message),
        MESSAGE_BUFFERS..NORMAL_MEMORY => {
            let (tile, offset) = ((at - MESSAGE_BUFFERS) / TILE_BUFFER, at % TILE_BUFFER);
            if tile >= TILES {
                return None;
            }
            (BUFFERS + tile * SLOT + offset, message)
        }
        NORMAL_MEMORY..0x4C00_0000 if matches!(mapping, Mapping::Normal) => {
            (at - NORMAL_MEMORY + MEMORY, Attribute::Normal)
        }
        _ if uncached(at) => (at, Attribute::Uncached),
        _ => return None,
    };
    Some((Physical::new(physical), attribute))
}

/// The page table entry for the page at `at`: present, writable, supervisor; 0 for what is left
/// out.
pub const fn entry(at: u32, mapping: Mapping) -> u32 {
    const PRESENT: u32 = 1 << 0;
    const WRITABLE: u32 = 1 << 1;
    match page(at & !(PAGE - 1), mapping) {
        Some((to, attribute)) => to.get() | attribute.page_bits() | PRESENT | WRITABLE,
        None => 0,
    }
}

const _: () = assert!(MESSAGE_BUFFERS == MESSAGE_MEMORY + MEMORY_SIZE);
const _: () = assert!(OWN_REGISTERS < FPGA);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Map;
    use flagpost_hal::CoreId;

    const MAPPINGS: [Mapping; 3] = [Mapping::Normal, Mapping::Mpbt, Mapping::MpbtWriteThrough];

    /// Each page that is mapped is the one that `address` names, and no page has two types per
    /// view.
    #[test]
    fn page_is_the_inverse_of_address() {
        for mapping in MAPPINGS {
            let mut pages = 0;
            for number in 0..1 << 20 {
                let at = number * PAGE;
                let Some((physical, attribute)) = page(at, mapping) else {
                    assert_eq!(entry(at, mapping), 0);
                    continue;
                };
                pages += 1;
                assert_eq!(
                    address(physical, attribute),
                    Some(at),
                    "{mapping:?} {at:#x}"
                );
                let bits = entry(at, mapping);
                assert_eq!(bits & !0xFFF, physical.get());
                assert_eq!(bits & 0xFFF, 3 | attribute.page_bits());
            }
            let normal = if mapping == Mapping::Normal {
                0x4000
            } else {
                0
            };
            // Private, message, normal, uncached: memory, buffers, banks and the own one, FPGA.
            let expected = 0x2_9000 + 0x4000 + 96 + normal + 0x4000 + 96 + 50 + 16;
            assert_eq!(pages, expected, "{mapping:?}");
        }
    }

    /// All that the port touches is mapped, with every type that it uses there.
    #[test]
    fn everything_that_the_port_touches_is_mapped() {
        use Attribute::{Mpbt, MpbtWriteThrough, Normal, Uncached};
        for core in (0..48).map(CoreId::new) {
            let memory = flagpost_hal::Region::memory(core).at(0);
            let memory = Map::SCC.physical(memory, 1).unwrap();
            for attribute in [Uncached, Mpbt, MpbtWriteThrough, Normal] {
                for offset in [0, Map::SCC.memory_size() - 4] {
                    assert!(address(memory.plus(offset), attribute).is_some());
                }
            }
            for attribute in [Uncached, Mpbt, MpbtWriteThrough] {
                let buffer = Map::SCC.buffer(core);
                assert!(address(buffer, attribute).is_some());
                assert!(address(buffer.plus(0x1FFC), attribute).is_some());
            }
            let bank = Map::SCC.registers(core);
            assert!(address(bank.plus(0x400), Uncached).is_some());
            assert_eq!(address(bank, MpbtWriteThrough), None);
        }
        let area = crate::bus::DISPLACEMENT_AREA;
        assert!(address(area.plus((256 << 10) - 4), Normal).is_some());
        assert!(address(Map::own_registers().plus(0x100), Uncached).is_some());
        assert!(address(Map::fpga().plus(0xF17C), Uncached).is_some());
        // The bypass (H1), and what is behind it.
        assert_eq!(address(Physical::new(0xD800_0000), Uncached), None);
        assert_eq!(address(Physical::new(0xFA00_0000), Uncached), None);
    }

    #[test]
    fn page_bits_are_the_documents() {
        let bits = |attribute: Attribute| attribute.page_bits();
        assert_eq!(bits(Attribute::Normal), 0);
        assert_eq!(bits(Attribute::Uncached), 0x18);
        assert_eq!(bits(Attribute::Mpbt), 0x80);
        assert_eq!(bits(Attribute::MpbtWriteThrough), 0x88);
    }
}
