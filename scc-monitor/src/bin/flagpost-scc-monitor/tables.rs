//! Page tables: for each page, the entry that [`views::entry`] asks for, with the frame of the PC's
//! memory in it.
//!
//! Each core has a directory and two tables of its own, for private memory. All other tables are
//! the same for all cores. They lie in the monitor's own memory, whose addresses differ from those
//! of the PC by a constant.
//!
//! | page | its entry |
//! |---|---|
//! | memory | as asked for, but with the PC's frame |
//! | a register, or nothing | as asked for, but not present: an access traps |
//! | of message type, if lines are emulated | the same |
//! | private memory that the image only reads | core 0's for all, read-only: see `start` |
//!
//! So the handler of a page fault finds the physical address and the memory type of an access in
//! the very entry that the port's authors wrote down.

use core::ops::Range;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};

use flagpost_hal::CoreId;
use flagpost_scc::{Attribute, Map, Physical, views};
use flagpost_scc_monitor::devices::CORES;
use flagpost_scc_monitor::mesh::{self, PRIVATE, PRIVATES, Place};
use flagpost_scc_monitor::options::{Fault, Options};

use crate::machine::LOCAL_APIC;

/// Addresses of the monitor, less those of the PC. In `start.s` and the linker script, too.
const OFFSET: u32 = 0xFC00_0000;
/// Where the monitor's table begins.
const WINDOW: u32 = OFFSET;
/// Bytes of an image's stack, and where the page below it is, which is left out.
pub(crate) const STACK: u32 = 192 << 10;
pub(crate) const GUARD: u32 = PRIVATE - STACK - 4096;

const PRESENT: u32 = 1 << 0;
const WRITABLE: u32 = 1 << 1;
const PAGE: u32 = 4096;
const ENTRIES: u32 = 1024;
/// Bytes that a table maps.
const REACH: u32 = PAGE * ENTRIES;
/// Bits that say the memory type.
const TYPE: u32 = 0x98;

#[repr(C, align(4096))]
struct Table([AtomicU32; ENTRIES as usize]);

/// Directories come first, one per core.
const TABLES: usize = 320;
static POOL: [Table; TABLES] = [const { Table([const { AtomicU32::new(0) }; _]) }; TABLES];
static NEXT: AtomicUsize = AtomicUsize::new(CORES);

/// What is at a virtual address of a core.
pub(crate) struct Found {
    pub(crate) at: Physical,
    pub(crate) attribute: Attribute,
}

impl Table {
    fn get(&self, index: u32) -> u32 {
        self.0
            .get(index as usize)
            .map_or(0, |entry| entry.load(Relaxed))
    }

    fn set(&self, index: u32, entry: u32) {
        self.0[index as usize].store(entry, Relaxed);
    }

    /// Where the PC has it.
    fn frame(&self) -> u32 {
        ((&raw const *self).addr() as u32).wrapping_sub(OFFSET)
    }
}

/// The directory of a core, for CR3.
pub(crate) fn directory(core: CoreId) -> u32 {
    POOL[core.index()].frame()
}

fn new_table() -> &'static Table {
    let number = NEXT.fetch_add(1, Relaxed);
    POOL.get(number)
        .unwrap_or_else(|| panic!("{TABLES} page tables are not enough"))
}

/// Fills the tables of the first `cores` cores.
pub(crate) fn build(cores: u16, options: &Options) {
    let first = CoreId::new(0);
    for start in (0..ENTRIES).map(|index| index * REACH) {
        if let Some(table) = board(start) {
            enter(cores, start, table);
        } else if start < PRIVATE {
            for core in (0..cores).map(CoreId::new) {
                let table = views(core, start, options);
                POOL[core.index()].set(start / REACH, table.frame() | PRESENT | WRITABLE);
            }
        } else if mapped(first, start, options) {
            enter(cores, start, views(first, start, options));
        }
    }
    // No pointer leads to the first page; no stack is longer than it may be.
    for core in (0..cores).map(CoreId::new) {
        for entry in [0, GUARD].into_iter().filter_map(|at| entry(core, at)) {
            entry.store(0, Relaxed);
        }
    }
    if options.fault == Some(Fault::Page) {
        (0..cores).map(CoreId::new).for_each(mislead);
    }
}

/// Enters a table into the directories of all cores.
fn enter(cores: u16, start: u32, table: &Table) {
    for core in POOL.iter().take(cores.into()) {
        core.set(start / REACH, table.frame() | PRESENT | WRITABLE);
    }
}

/// A table of the monitor's own, or of the interrupt controllers.
fn board(start: u32) -> Option<&'static Table> {
    let entry: fn(u32) -> u32 = match start {
        WINDOW => |at| (at - OFFSET) | PRESENT | WRITABLE,
        at if at == LOCAL_APIC & !(REACH - 1) => |at| match at {
            LOCAL_APIC => LOCAL_APIC | Attribute::Uncached.page_bits() | PRESENT | WRITABLE,
            _ => 0,
        },
        _ => return None,
    };
    let table = new_table();
    (0..ENTRIES).for_each(|i| table.set(i, entry(start + i * PAGE)));
    Some(table)
}

/// Whether anything is in a table's reach: each of the views' areas begins with one.
fn mapped(core: CoreId, start: u32, options: &Options) -> bool {
    // The displacement area is the only part of its table that is there.
    of_views(core, start, options) != 0
}

fn views(core: CoreId, start: u32, options: &Options) -> &'static Table {
    let table = new_table();
    (0..ENTRIES).for_each(|i| table.set(i, of_views(core, start + i * PAGE, options)));
    table
}

/// The entry for a page of the views.
fn of_views(core: CoreId, at: u32, options: &Options) -> u32 {
    let asked = views::entry(at, options.mapping);
    match mesh::place(core, Physical::new(asked & !(PAGE - 1))) {
        _ if asked == 0 => 0,
        None => 0,
        Some(Place::Memory(frame)) if !(options.lines && is_message(asked)) => {
            frame | asked & (PAGE - 1)
        }
        Some(_) => asked & !PRESENT,
    }
}

fn is_message(entry: u32) -> bool {
    matches!(
        attribute(entry),
        Some(Attribute::Mpbt | Attribute::MpbtWriteThrough)
    )
}

fn attribute(entry: u32) -> Option<Attribute> {
    use Attribute::{Mpbt, MpbtWriteThrough, Normal, Uncached};
    [Uncached, Mpbt, MpbtWriteThrough, Normal]
        .into_iter()
        .find(|attribute| attribute.page_bits() == entry & TYPE)
}

/// Gives all cores the pages of these bytes of core 0's private memory, only to be read. No other
/// segment may be in them: linkers see to that.
pub(crate) fn share(cores: u16, bytes: Range<u32>) {
    let first = bytes.start & !(PAGE - 1);
    for at in (first..bytes.end).step_by(PAGE as usize) {
        for core in (0..cores).map(CoreId::new) {
            if let Some(entry) = entry(core, at) {
                entry.store((PRIVATES + at) | PRESENT, Relaxed);
            }
        }
    }
}

/// A core's entry for the page at `at`.
fn entry(core: CoreId, at: u32) -> Option<&'static AtomicU32> {
    let directory = POOL.get(core.index())?;
    let frame = directory.get(at / REACH) & !(PAGE - 1);
    let offset = frame.checked_sub(POOL[0].frame())?;
    let table = POOL.get((offset / PAGE) as usize)?;
    table.0.get((at / PAGE % ENTRIES) as usize)
}

/// What a core has asked for at an address that is not present. `None` if nothing is there.
pub(crate) fn find(core: CoreId, at: u32) -> Option<Found> {
    let entry = entry(core, at)?.load(Relaxed);
    if entry == 0 || entry & PRESENT != 0 {
        return None;
    }
    Some(Found {
        at: Physical::new(entry & !(PAGE - 1) | (at % PAGE)),
        attribute: attribute(entry)?,
    })
}

/// [`Fault::Page`]: each core has its own copy of one table, with one wrong entry: of the last page
/// of its own message buffer, as message data. It leads to the page before.
fn mislead(core: CoreId) {
    let own = Map::SCC.dummy_line(core);
    let Some(at) = views::address(own, Attribute::MpbtWriteThrough) else {
        return;
    };
    let table = new_table();
    for i in 0..ENTRIES {
        let right = entry(core, at & !(REACH - 1) | (i * PAGE));
        table.set(i, right.map_or(0, |entry| entry.load(Relaxed)));
    }
    let index = at / PAGE % ENTRIES;
    table.set(index, table.get(index - 1));
    POOL[core.index()].set(at / REACH, table.frame() | PRESENT | WRITABLE);
}
