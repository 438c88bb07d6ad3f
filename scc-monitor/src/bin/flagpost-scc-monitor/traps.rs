//! What is done in a trap.
//!
//! A handler runs on the stack of the code that it interrupts, with interrupts masked. It carries
//! out one access and continues after the instruction; or the run ends here, with a record of where
//! and why.
//!
//! | vector | what |
//! |---|---|
//! | 14 | an access to a register or a message line; all else ends the run |
//! | 6 | `0F 0A` is CL1INVMB; all else ends the run |
//! | 0x30 | a [call](flagpost_scc_monitor::calls) |
//! | 0x40, 0x41 | the bell; the timer |

use core::arch::{asm, global_asm};
use core::fmt;
use core::sync::atomic::{
    AtomicU32,
    Ordering::{Relaxed, SeqCst},
};

use flagpost_hal::{CoreId, Region};
use flagpost_scc::{Attribute, Map, Physical};
use flagpost_scc_monitor::calls::{self, Call};
use flagpost_scc_monitor::decode::{self, Access, Registers, Width};
use flagpost_scc_monitor::devices::{CORES, Devices, Effect};
use flagpost_scc_monitor::lines::Lines;
use flagpost_scc_monitor::mesh::{self, Place};
use flagpost_scc_monitor::options::{Fault, Options};
use spin::once::Once;

use crate::{machine, say, tables};

global_asm!(include_str!("traps.s"), options(att_syntax));

/// The bell's vector, and the timer's.
const BELL: u8 = 0x40;
pub(crate) const TIMER: u8 = 0x41;

/// What a trap has interrupted, as `traps.s` keeps it.
#[repr(C)]
struct Frame {
    /// In the order of `pushal`: from edi down to eax.
    registers: Registers,
    vector: u32,
    error: u32,
    eip: u32,
    cs: u32,
    flags: u32,
}

// SAFETY: `traps.s` defines them, as pairs of a vector and the address of its entry.
unsafe extern "C" {
    static _flagpost_vectors: [u32; 2];
    static _flagpost_vectors_end: [u32; 2];
}

const VECTORS: usize = 66;

/// The processor's table of traps.
#[repr(C, align(8))]
struct Gates([[AtomicU32; 2]; VECTORS]);
static GATES: Gates = Gates([const { [const { AtomicU32::new(0) }; 2] }; VECTORS]);

/// Enters all traps into the processors' table.
pub(crate) fn fill_table() {
    // SAFETY: both name words of `traps.s`, and the second comes after the first, which begins
    // constant pairs.
    let entries = unsafe {
        let start = &raw const _flagpost_vectors;
        let len = (&raw const _flagpost_vectors_end).offset_from_unsigned(start);
        core::slice::from_raw_parts(start, len)
    };
    for [vector, handler] in entries {
        // An interrupt gate to the code segment: interrupts are masked in the handler.
        let [low, high] = &GATES.0[*vector as usize];
        low.store(8 << 16 | handler & 0xFFFF, Relaxed);
        high.store(handler & 0xFFFF_0000 | 0x8E00, Relaxed);
    }
}

/// Makes this core use the table.
pub(crate) fn load_table() {
    #[repr(C, packed)]
    struct Pointer(u16, *const Gates);
    let pointer = Pointer(size_of::<Gates>() as u16 - 1, &raw const GATES);
    // SAFETY: the table is there for ever, and its entries lead to handlers that return all
    // registers as they were; the processor copies the pointer.
    unsafe { asm!("lidt [{}]", in(reg) &raw const pointer, options(readonly, nostack)) };
}

static OPTIONS: Once<Options> = Once::new();
static DEVICES: Devices = Devices::new();
static LINES: [Lines; CORES] = [const { Lines::new() }; CORES];

/// What the boot words ask for: before any image runs.
pub(crate) fn set_options(options: Options) {
    OPTIONS.call_once(|| options);
}

/// What the boot words ask for.
pub(crate) fn options() -> &'static Options {
    OPTIONS.wait()
}

/// Called by `traps.s`.
// SAFETY (`no_mangle`): `traps.s` calls it by this name, and nothing else bears it.
#[unsafe(no_mangle)]
extern "C" fn _flagpost_trap(frame: &mut Frame) {
    const CALL: u32 = calls::VECTOR as u32;
    const RINGS: u32 = BELL as u32;
    const TICKS: u32 = TIMER as u32;
    match frame.vector {
        14 => page_fault(frame),
        6 => invalid(frame),
        CALL => call(frame),
        RINGS | TICKS => interrupt(frame),
        vector => refuse(frame, 0, format_args!("{}", name(vector))),
    }
}

/// What a trap is called that nobody expects.
fn name(vector: u32) -> &'static str {
    match vector {
        0 => "division error",
        3 => "breakpoint",
        7 => "no floating point",
        8 => "double fault",
        13 => "general protection",
        17 => "alignment",
        _ => "trap",
    }
}

/// Ends the run with a record of what was refused.
fn refuse(frame: &Frame, value: u32, why: fmt::Arguments<'_>) -> ! {
    let core = machine::core().get();
    let (cause, pc) = (frame.vector, frame.eip);
    say::line(format_args!(
        "@trap core={core} cause={cause} pc={pc:#x} value={value:#x} case=? what={why}"
    ));
    say::end(false)
}

/// Carries out the access that the page tables did not.
fn page_fault(frame: &mut Frame) {
    let (core, address) = (machine::core(), machine::fault_address());
    let Some(found) = tables::find(core, address) else {
        refuse(frame, address, format_args!("page fault: nothing is there"));
    };
    let Some(code) = machine::code(frame.eip) else {
        refuse(
            frame,
            address,
            format_args!("page fault: by no code of an image"),
        );
    };
    let Some(instruction) = decode::decode(&code) else {
        refuse(
            frame,
            address,
            format_args!("an access that is not known: {code:02x?}"),
        );
    };
    let mut registers = frame.registers;
    registers.reverse();
    let admitted = frame.flags & INTERRUPTS != 0;
    let done = instruction.run(&mut registers, &mut frame.flags, |access| {
        match found.attribute {
            Attribute::Uncached => register(core, found.at, access, admitted),
            Attribute::Mpbt => message(core, found.at, access, false),
            Attribute::MpbtWriteThrough => message(core, found.at, access, true),
            Attribute::Normal => Err("not a memory type for this address"),
        }
    });
    if let Err(why) = done {
        refuse(
            frame,
            address,
            format_args!("{why}: {instruction:?} at {:x?}", found.at),
        );
    }
    registers.reverse();
    frame.registers = registers;
    frame.eip = frame.eip.wrapping_add(instruction.length);
}

/// In the flags: interrupts are admitted.
const INTERRUPTS: u32 = 1 << 9;

/// One access to a register.
fn register(
    core: CoreId,
    at: Physical,
    access: Access,
    admitted: bool,
) -> Result<u32, &'static str> {
    let options = options();
    let place = match mesh::place(core, at).ok_or("no register")? {
        Place::Bank { tile: 0, offset }
            if core.get() == 1 && options.fault == Some(Fault::Register) =>
        {
            Place::Bank { tile: 1, offset }
        }
        place => place,
    };
    match access {
        Access::Load(Width::Word) => {
            // The board's clock has 125 MHz, and a core's 1 GHz here.
            let time = machine::cycles() / 8;
            let value = DEVICES.load(core, place, time, options.fault);
            // The worst moment for an interrupt is now.
            if admitted && value == Some(1) && DEVICES.holds(core) {
                return Err("a test-and-set register is taken with interrupts admitted (H6)");
            }
            value.ok_or("a register that is not known, or only stored to")
        }
        Access::Store(Width::Word, value) => {
            match DEVICES.store(core, place, value) {
                None => return Err("a register that is not known, or only loaded"),
                Some(Effect::Rings(core)) if options.interrupts => machine::interrupt(core, BELL),
                Some(_) => {}
            }
            if options.until_heard && DEVICES.heard() == u32::from(machine::cores()) {
                say::line(format_args!(
                    "{} cores have heard their bells",
                    DEVICES.heard()
                ));
                say::end(true);
            }
            Ok(0)
        }
        _ => Err("registers are words"),
    }
}

/// One access of message type.
fn message(core: CoreId, at: Physical, access: Access, through: bool) -> Result<u32, &'static str> {
    let (Access::Load(width) | Access::Store(width, _)) = access;
    if matches!(width, Width::Word) && !at.get().is_multiple_of(4) {
        return Err("a word that is not aligned");
    }
    let lines = &LINES[core.index()];
    let dummy = Map::SCC.dummy_line(core);
    Ok(match access {
        Access::Load(width) => {
            let word = lines.load(at, &machine::Shared);
            match width {
                Width::Word => word,
                Width::Byte => word >> (8 * (at.get() % 4)),
            }
        }
        Access::Store(..) if at.line() == dummy && options().fault == Some(Fault::Drain) => 0,
        Access::Store(width, value) => {
            let bytes = match width {
                Width::Word => 4,
                Width::Byte => 1,
            };
            lines.store(at, value, bytes, through, &machine::Shared);
            0
        }
    })
}

/// CL1INVMB, which no other processor has.
fn invalid(frame: &mut Frame) {
    const CL1INVMB: [u8; 2] = [0x0F, 0x0A];
    match machine::code(frame.eip) {
        Some([first, second, ..]) if [first, second] == CL1INVMB => {
            if options().fault != Some(Fault::Cl1invmb) {
                LINES[machine::core().index()].drop_lines();
            }
            frame.eip = frame.eip.wrapping_add(2);
        }
        code => refuse(frame, 0, format_args!("no instruction: {code:02x?}")),
    }
}

/// The bell, or the timer. The image has no handler of its own: this is what one would find.
fn interrupt(frame: &Frame) {
    if DEVICES.holds(machine::core()) {
        let why = "interrupted while this core holds a test-and-set register (H6)";
        refuse(frame, 0, format_args!("{why}"));
    }
    machine::end_of_interrupt();
}

/// What each core does, for the host.
// SAFETY (`no_mangle`): nothing else bears this name.
#[unsafe(no_mangle)]
static FLAGPOST_STATUS: [AtomicU32; CORES] = [const { AtomicU32::new(0) }; CORES];

/// In [`FLAGPOST_STATUS`]: the core waits for the others.
const WAITING: u32 = 1;

/// Carries out a call of the image.
fn call(frame: &mut Frame) {
    let [.., edx, ecx, eax] = &mut frame.registers;
    let core = machine::core();
    *eax = match Call::of(*eax) {
        Some(Call::Log) => match machine::private(*ecx, *edx) {
            Some(line) => {
                say::bytes(line);
                0
            }
            None => refuse(
                frame,
                0,
                format_args!("a line that is not in private memory"),
            ),
        },
        Some(Call::Barrier) => {
            FLAGPOST_STATUS[core.index()].store(WAITING, Relaxed);
            u32::from(barrier(*ecx == 1))
        }
        Some(Call::End) => say::end(*ecx == 1),
        Some(Call::Reset) => {
            DEVICES.reset(core, *ecx);
            LINES[core.index()].reset();
            let map = Map::SCC.with_cores(machine::cores()).with_memory(*edx);
            for region in [Region::memory(core), Region::message_buffer(core)] {
                let size = map.region_size(region.kind);
                match map.physical(region.at(0), size) {
                    Some(at) => machine::fill(at, size / 4, *ecx),
                    None => refuse(frame, 0, format_args!("no such memory")),
                }
            }
            0
        }
        Some(Call::Status) => {
            FLAGPOST_STATUS[core.index()].store(*ecx, Relaxed);
            0
        }
        Some(Call::Core) => core.get().into(),
        None => refuse(frame, 0, format_args!("no such call")),
    };
}

static ARRIVED: AtomicU32 = AtomicU32::new(0);
static UNWELL: AtomicU32 = AtomicU32::new(0);
static VERDICT: AtomicU32 = AtomicU32::new(0);
static ROUND: AtomicU32 = AtomicU32::new(0);

/// Waits for all cores; true if all of them said `well`. By the PC's own atomics, which no protocol
/// under test may use: they would repair what it should show.
pub(crate) fn barrier(well: bool) -> bool {
    let round = ROUND.load(SeqCst);
    UNWELL.fetch_add(u32::from(!well), SeqCst);
    if ARRIVED.fetch_add(1, SeqCst) + 1 == u32::from(machine::cores()) {
        // Nobody arrives for the next round before the round changes.
        ARRIVED.store(0, SeqCst);
        VERDICT.store(u32::from(UNWELL.swap(0, SeqCst) == 0), SeqCst);
        ROUND.store(round.wrapping_add(1), SeqCst);
    } else {
        while ROUND.load(SeqCst) == round {
            core::hint::spin_loop();
        }
    }
    VERDICT.load(SeqCst) == 1
}
