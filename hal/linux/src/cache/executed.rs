//! Which cache instructions are executed, one by one: their effect on one host cannot be seen, so
//! the processor is made to stop at each instruction (the trap flag), and what is about to be
//! executed is read.

use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, Once, PoisonError};

use flagpost_hal::{
    Address, CachedMemory as _, Coherence as _, CoreId, Lines, Region, UncachedMemory as _,
};

use super::{Instructions, settled, stored};
use crate::SoftwareCoherent;
use crate::machine::Linux;
use crate::part::on_ranks;

/// Instructions that are looked for.
const NAMES: [&str; 10] = [
    "",
    "clflush",
    "clflushopt",
    "clwb",
    "sfence",
    "mfence",
    "movnti",
    "maskmovdqu",
    "umonitor",
    "umwait",
];

/// Those that were executed, as indices.
static SEEN: [AtomicU8; 256] = [const { AtomicU8::new(0) }; 256];
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// The index of the instruction that begins with these bytes, 0 if it is another one; and how long
/// it is, if it has only registers.
fn instruction(code: &[u8; 8]) -> (u8, usize) {
    let (mut prefix, mut at) = (0, 0);
    // Prefixes that change what an instruction is, or that only widen it.
    while let 0x66 | 0xF2 | 0xF3 | 0x67 | 0x40..=0x4F = code[at] {
        if let 0x66 | 0xF2 | 0xF3 = code[at] {
            prefix = code[at];
        }
        at += 1;
        if at > 4 {
            return (0, 0);
        }
    }
    let [0x0F, opcode, operands] = code[at..at + 3] else {
        return (0, 0);
    };
    let (register, is_memory) = (operands >> 3 & 7, operands >> 6 != 3);
    let name = match (opcode, prefix, register, is_memory) {
        (0xAE, 0, 7, true) => "clflush",
        (0xAE, 0x66, 7, true) => "clflushopt",
        (0xAE, 0x66, 6, true) => "clwb",
        (0xAE, 0, 7, false) => "sfence",
        (0xAE, 0, 6, false) => "mfence",
        (0xC3, 0, _, true) => "movnti",
        (0xF7, 0x66, _, false) => "maskmovdqu",
        (0xAE, 0xF3, 6, false) => "umonitor",
        (0xAE, 0xF2, 6, false) => "umwait",
        _ => "",
    };
    let index = NAMES.iter().position(|known| *known == name);
    (index.unwrap_or(0) as u8, at + 3)
}

/// What the instruction at the program counter of `context` is; and where that counter is kept.
///
/// # Safety
/// `context` is what a signal's handler was given.
unsafe fn next(context: *mut libc::c_void) -> ((u8, usize), *mut i64) {
    // SAFETY: it is a context, as promised; the counter points at code, which is mapped, and behind
    // which there is more.
    unsafe {
        let context = context.cast::<libc::ucontext_t>();
        let counter = &raw mut (*context).uc_mcontext.gregs[libc::REG_RIP as usize];
        let code = std::ptr::with_exposed_provenance::<[u8; 8]>(*counter as usize);
        (instruction(&code.read_unaligned()), counter)
    }
}

/// Before each instruction. Notes it.
extern "C" fn stopped(_: i32, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: this handles a signal.
    let ((name, _), _) = unsafe { next(context) };
    if name != 0
        && let Some(place) = SEEN.get(COUNT.fetch_add(1, SeqCst))
    {
        place.store(name, SeqCst);
    }
}

/// The processor does not have an instruction. It was noted; goes on behind it.
extern "C" fn unknown(_: i32, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: this handles a signal.
    let ((name, length), counter) = unsafe { next(context) };
    if name == 0 {
        std::process::abort();
    }
    // SAFETY: the counter of the context, which is this handler's.
    unsafe { *counter += length as i64 }
}

type Handler = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);

fn handle(signal: i32, handler: Handler) {
    // SAFETY: all zeros are an action without flags and mask. The handlers call nothing that must
    // not be called there.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        assert_eq!(libc::sigaction(signal, &action, std::ptr::null_mut()), 0);
    }
}

/// Sets the trap flag, or clears it.
#[inline(always)]
fn stop_at_each(yes: bool) {
    const TRAP: u64 = 1 << 8;
    let (set, keep) = if yes { (TRAP, !0) } else { (0, !TRAP) };
    // SAFETY: the flags are as before but for that one, which makes the processor raise a signal
    // behind each instruction.
    unsafe {
        std::arch::asm!(
            "pushfq",
            "or qword ptr [rsp], {set}",
            "and qword ptr [rsp], {keep}",
            "popfq",
            set = in(reg) set,
            keep = in(reg) keep,
        );
    }
}

/// The names of those of [`NAMES`] that `act` executes, in order, and what it returns. It should
/// not panic: that takes a million stops.
pub(crate) fn executed<T>(act: impl FnOnce() -> T) -> (Vec<&'static str>, T) {
    static ALONE: Mutex<()> = Mutex::new(());
    static HANDLERS: Once = Once::new();
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    HANDLERS.call_once(|| {
        handle(libc::SIGTRAP, stopped);
        handle(libc::SIGILL, unknown);
    });
    COUNT.store(0, SeqCst);
    stop_at_each(true);
    let result = act();
    stop_at_each(false);
    let count = COUNT.load(SeqCst);
    assert!(count <= SEEN.len(), "{count} instructions");
    let seen = SEEN[..count].iter();
    let names = seen.map(|name| NAMES[usize::from(name.load(SeqCst))]);
    (names.collect(), result)
}

/// What a rank of one, in mode `software-coherent`, does with its memory.
fn alone(act: impl Fn(&Linux<SoftwareCoherent>, Address) + Sync) {
    on_ranks(1, |machine| {
        act(&machine, Region::memory(CoreId::new(0)).at(4096));
    });
}

#[test]
fn fences_are_executed() {
    assert_eq!(executed(stored).0, ["sfence"]);
    assert_eq!(executed(settled).0, ["mfence"]);
    assert!(executed(|| {}).0.is_empty());
}

#[test]
fn each_line_is_written_back_or_dropped() {
    alone(|machine, at| {
        // The end of one line, two lines, and the beginning of one.
        let bytes = machine.regions().bytes(at.plus(60), 4 + 128 + 1);
        let none = machine.regions().bytes(at, 0);
        for choice in Instructions::choices() {
            let back = vec![choice.write_back_name(); 4];
            assert_eq!(executed(|| choice.write_back(bytes)), (back, 4));
            let drop = vec![choice.discard_name(); 4];
            assert_eq!(executed(|| choice.discard(bytes)), (drop, 4));
            assert_eq!(executed(|| choice.write_back(none)), (vec![], 0));
        }
    });
}

#[test]
fn streams_pass_the_cache() {
    alone(|machine, at| {
        let bytes = machine.regions().bytes(at.plus(61), 3 + 8 + 4 + 1);
        for choice in Instructions::choices() {
            let drop = choice.discard_name();
            let [drops, middle, end] =
                [&[drop, drop, "sfence"][..], &["movnti"; 2], &["maskmovdqu"]];
            let streamed = [drops, end, middle, end].concat();
            let (names, lines) = executed(|| choice.stream(bytes, &[1; 16]));
            assert_eq!((&names[..], lines), (&streamed[..], 2));
        }
    });
}

/// The table of [`software`](crate::software).
#[test]
fn accesses_take_what_the_mode_says() {
    alone(|machine, at| {
        let [back, drop] = machine.mode().names();
        assert_eq!(executed(|| machine.load_u32(at)), (vec![drop, "mfence"], 0));
        assert_eq!(executed(|| machine.load_u8(at)), (vec![drop, "mfence"], 0));
        let takes = |names: &[&str], act: &dyn Fn()| assert_eq!(executed(act).0, names);
        takes(&[drop, "sfence", "movnti", "sfence"], &|| {
            machine.store_u32(at, 1)
        });
        takes(&[drop, "sfence", "maskmovdqu", "sfence"], &|| {
            machine.store_u8(at, 1)
        });
        let streamed = [&[drop, drop, "sfence"][..], &["movnti"; 9]].concat();
        takes(&streamed, &|| machine.store_bytes(at, &[1; 72]));
        takes(&["sfence", drop, drop, "mfence"], &|| {
            machine.load_bytes(at, &mut [0; 72])
        });
        let lines = [Lines::covering::<Linux<SoftwareCoherent>>(at, 72)];
        takes(&[back, back], &|| {
            machine.write(at, &[2; 72]);
            machine.write_back(&lines);
        });
        takes(&[drop, drop, "mfence"], &|| {
            machine.invalidate(&lines);
            machine.read(at, &mut [0; 72]);
        });
        takes(&["sfence"], &|| machine.drain());
        takes(&["mfence"], &|| machine.acquire());
        takes(&["mfence"], &|| machine.settle());
    });
}
