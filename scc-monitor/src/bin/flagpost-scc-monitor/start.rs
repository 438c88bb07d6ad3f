//! From the first instruction to the image's.
//!
//! 1. The first core runs with large pages: the PC's memory at its own addresses, the monitor above
//!    them. It reads what multiboot says, builds the page tables, and copies the image into each
//!    core's private memory. Then it starts the others.
//! 2. Each core takes its own page tables, turns the message type on as [`silicon`] says, waits for
//!    all, and jumps to the image on a stack at the top of its private memory.
//!
//! Below the stack one page is left out: a stack that overflows faults there, with no place for the
//! fault's own frame, and the machine ends.

use core::arch::{asm, global_asm};
use core::ptr::with_exposed_provenance;
use core::slice;
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering::SeqCst};

use flagpost_hal::CoreId;
use flagpost_scc::silicon;
use flagpost_scc_monitor::calls::Boot;
use flagpost_scc_monitor::devices::CORES;
use flagpost_scc_monitor::mesh::{PRIVATE, PRIVATES};
use flagpost_scc_monitor::options::Options;

use crate::tables::{GUARD, STACK};
use crate::{machine, tables, traps};

global_asm!(include_str!("start.s"), options(att_syntax));

/// The page of the first code of the other cores.
const TRAMPOLINE: u8 = 8;
/// Bytes at the top of the stack that an image's entry may use before it looks at the rest.
const USED: u32 = 16 << 10;
/// Ticks of a core's timer between two interrupts, per core of the machine: 1 ns each, with
/// `-icount shift=0`. All cores share the time: so each is interrupted after as much of its work.
const PERIOD: u32 = 200_000;

/// Boot words, as many as are kept.
static WORDS: [AtomicU8; 1024] = [const { AtomicU8::new(0) }; _];
static WORDS_LEN: AtomicU32 = AtomicU32::new(0);
/// The image's first instruction.
static ENTRY: AtomicU32 = AtomicU32::new(0);

// SAFETY: `start.s` defines them; all that is used of them is where they are.
unsafe extern "C" {
    static _flagpost_trampoline: u8;
    static _flagpost_trampoline_end: u8;
}

/// Called by `start.s` on each core, on a stack of the monitor's.
// SAFETY (`no_mangle`): `start.s` calls it by this name, and nothing else bears it.
#[unsafe(no_mangle)]
extern "C" fn _flagpost_boot(core: u32, number: u32, multiboot: u32) -> ! {
    traps::load_table();
    if core == 0 {
        prepare(number, multiboot);
        machine::start_others(TRAMPOLINE);
    }
    enter(CoreId::new(core as u16))
}

/// `len` bytes of the PC's memory.
///
/// # Safety
/// The large pages are in use, and nothing writes to these bytes.
unsafe fn bytes(start: u32, len: u32) -> &'static [u8] {
    // SAFETY: the caller's word; all of the PC's memory is at its own address.
    unsafe { slice::from_raw_parts(with_exposed_provenance(start as usize), len as usize) }
}

/// What the first core does for all.
fn prepare(number: u32, multiboot: u32) {
    const LOADED: u32 = 0x2BAD_B002;
    traps::fill_table();
    // Both old interrupt controllers: masked.
    machine::out8(0x21, 0xFF);
    machine::out8(0xA1, 0xFF);
    // How many cores there are: QEMU's configuration, key 5.
    machine::out16(0x510, 5);
    let cores = u16::from(machine::in8(0x511)) | u16::from(machine::in8(0x511)) << 8;
    assert!(
        (1..=CORES as u16).contains(&cores),
        "{cores} cores: the chip has {CORES}"
    );
    machine::set_cores(cores);

    assert_eq!(number, LOADED, "not loaded by multiboot");
    // SAFETY: multiboot has put its structure there, words that nothing changes; of the words that
    // are used, its first says that they are there.
    let said = unsafe { bytes(multiboot, 28) };
    let field = |from: &[u8], index: usize| word(from, 4 * index).unwrap_or(0);
    assert_eq!(
        field(said, 0) & 0b1100,
        0b1100,
        "no command line, or no image"
    );
    // SAFETY: as above, and so for what it names.
    let (words, image) = unsafe {
        let line = bytes(field(said, 4), WORDS.len() as u32);
        let module = bytes(field(said, 6), 8);
        let (start, end) = (field(module, 0), field(module, 1));
        (line, bytes(start, end.saturating_sub(start)))
    };
    let len = words
        .iter()
        .position(|byte| *byte == 0)
        .expect("the boot words are too long");
    for (kept, byte) in WORDS.iter().zip(&words[..len]) {
        kept.store(*byte, SeqCst);
    }
    WORDS_LEN.store(len as u32, SeqCst);
    let words = str::from_utf8(&words[..len]).unwrap_or("");
    let options = Options::parse(words).unwrap_or_else(|word| panic!("boot word {word}"));

    tables::build(cores, &options);
    traps::set_options(options);
    load(image, cores).expect("the image is no ELF file for such a core, or has no room");
    copy_trampoline();
}

/// A segment of an image.
struct Segment<'i> {
    at: u32,
    /// Bytes in memory.
    room: u32,
    /// Those that the file has; the rest are zero.
    bytes: &'i [u8],
    writable: bool,
}

/// The `number`th segment of an ELF file. `None` if the file does not say.
fn segment(image: &[u8], number: u16) -> Option<Segment<'_>> {
    let header = word(image, 28)? as usize + usize::from(half(image, 42)?) * usize::from(number);
    let field = |index: usize| word(image, header + 4 * index);
    let (kind, offset, at, len) = (field(0)?, field(1)?, field(2)?, field(4)?);
    let room = if kind == 1 { field(5)? } else { 0 };
    let len = if kind == 1 { len as usize } else { 0 };
    Some(Segment {
        at,
        room,
        bytes: image.get(offset as usize..)?.get(..len)?,
        writable: field(6)? & 2 != 0,
    })
}

fn half(image: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*image.get(at..)?.first_chunk()?))
}

fn word(image: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*image.get(at..)?.first_chunk()?))
}

/// Copies an image's segments to the private memories of all cores, whose bytes are zero. What is
/// never written to is there once for all: an emulator translates code once per place.
///
/// `None` if it is no ELF file for such a core, or has no room.
fn load(image: &[u8], cores: u16) -> Option<()> {
    // Of 32 bits, little-endian, executable, for the 386.
    const MAGIC: [u32; 2] = [0x464C_457F, 0x0003_0002];
    if [word(image, 0)?, word(image, 16)?] != MAGIC || image.get(4) != Some(&1) {
        return None;
    }
    ENTRY.store(word(image, 24)?, SeqCst);
    for number in 0..half(image, 44)? {
        let segment = segment(image, number)?;
        let end = segment.at.checked_add(segment.room)?;
        if segment.room == 0 {
            continue;
        }
        if segment.at < 4096 || end > GUARD {
            return None;
        }
        let copies = if segment.writable { cores } else { 1 };
        for core in 0..u32::from(copies) {
            let to = (PRIVATES + PRIVATE * core + segment.at) as usize;
            let to = core::ptr::with_exposed_provenance_mut(to);
            // SAFETY: private memory of a core that does not run yet, mapped at its own address,
            // apart from the image's file: QEMU puts that behind the monitor, below 32 MiB.
            unsafe {
                core::ptr::copy_nonoverlapping(segment.bytes.as_ptr(), to, segment.bytes.len());
            }
        }
        if !segment.writable {
            tables::share(cores, segment.at..end);
        }
    }
    Some(())
}

fn copy_trampoline() {
    // SAFETY: both name bytes of `start.s`, and the second comes after the first.
    let code = unsafe {
        let start = &raw const _flagpost_trampoline;
        let len = (&raw const _flagpost_trampoline_end).offset_from_unsigned(start);
        slice::from_raw_parts(start, len)
    };
    let to = core::ptr::with_exposed_provenance_mut(usize::from(TRAMPOLINE) << 12);
    // SAFETY: the PC's memory there is free, mapped at its own address, and longer than that.
    unsafe { core::ptr::copy_nonoverlapping(code.as_ptr(), to, code.len()) };
}

/// What each core does: its own page tables, then the image.
fn enter(core: CoreId) -> ! {
    let options = traps::options();
    let directory = tables::directory(core);
    // SAFETY: the tables map the monitor, this stack included, where it is; what else was mapped is
    // used no more. Then: no page that is in use has bit 7 set, which would name another type: that
    // is of message pages only, and no image runs yet.
    unsafe {
        asm!("mov cr3, {}", in(reg) directory, options(nostack, preserves_flags));
        silicon::enable_message_type();
        asm!("mov cr3, {}", in(reg) directory, options(nostack, preserves_flags));
    }
    machine::enable_apic(
        options
            .interrupts
            .then(|| (traps::TIMER, PERIOD * u32::from(machine::cores()))),
    );
    traps::barrier(true);
    let boot = Boot {
        cores: machine::cores().into(),
        words: WORDS.as_ptr().expose_provenance() as u32,
        words_len: WORDS_LEN.load(SeqCst),
        stack: PRIVATE - STACK,
        stack_len: STACK - USED,
    };
    let entry = ENTRY.load(SeqCst);
    let flags = if options.interrupts { 0x202_u32 } else { 0x2 };
    // SAFETY: the image's first instruction, with a stack that is its own; `boot` lies on the
    // monitor's stack of this core, which nothing uses after this.
    unsafe {
        asm!(
            "mov esp, {stack}",
            "xor ebp, ebp",
            "push {boot}",
            "push 0",
            "push {flags}",
            "popfd",
            "jmp {entry}",
            stack = in(reg) PRIVATE - 12,
            boot = in(reg) &raw const boot,
            flags = in(reg) flags,
            entry = in(reg) entry,
            options(noreturn),
        );
    }
}
