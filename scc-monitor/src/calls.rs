//! What an image may ask of the monitor: `int 0x30`, for runners of cases.
//!
//! The chip has nothing like it. A port needs none of it, and an image that asks for nothing, as
//! `examples/scc`, runs as well. The caller's eax says which call, ecx and edx what of it; the
//! answer is in eax.

/// The interrupt.
pub const VECTOR: u8 = 0x30;

/// The calls.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Call {
    /// Prints a line: ecx its address, edx its bytes.
    Log,
    /// Waits for all cores; ecx is 1 if all is well here. Answers 1 if all said so.
    Barrier,
    /// Ends the run: well if ecx is 1.
    End,
    /// Makes registers, lines and regions of this core as after a reset: the region in memory has
    /// edx bytes, and what a reset leaves there is made of ecx.
    Reset,
    /// Notes ecx as what this core does, for the host to read.
    Status,
    /// Answers this core's number.
    Core,
}

impl Call {
    /// The call of this number.
    pub fn of(number: u32) -> Option<Self> {
        [
            Self::Log,
            Self::Barrier,
            Self::End,
            Self::Reset,
            Self::Status,
            Self::Core,
        ]
        .get(number as usize)
        .copied()
    }
}

/// What the entry of an image is given: `extern "C" fn(&'static Boot) -> !`.
#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct Boot {
    /// How many cores have started.
    pub cores: u32,
    /// Where the boot words are.
    pub words: u32,
    /// Bytes of these.
    pub words_len: u32,
    /// Where the stack begins, and how many bytes of it are free.
    pub stack: u32,
    /// Bytes of these.
    pub stack_len: u32,
}

#[cfg(all(target_os = "none", target_arch = "x86"))]
mod ask {
    use core::sync::atomic::AtomicU32;

    use super::{Boot, Call, VECTOR};

    fn ask(call: Call, ecx: u32, edx: u32) -> u32 {
        let answer;
        // SAFETY: the monitor's handler returns with all registers but eax as they were, and
        // touches no memory of the image but to read a line that it is given.
        unsafe {
            core::arch::asm!(
                "int {vector}",
                vector = const VECTOR,
                inlateout("eax") call as u32 => answer,
                in("ecx") ecx,
                in("edx") edx,
            );
        }
        answer
    }

    /// Prints a line.
    pub fn log(line: &[u8]) {
        ask(Call::Log, line.as_ptr().addr() as u32, line.len() as u32);
    }

    /// Waits for all cores; true if all are well.
    pub fn barrier(well: bool) -> bool {
        ask(Call::Barrier, well.into(), 0) == 1
    }

    /// Ends the run.
    pub fn end(well: bool) -> ! {
        loop {
            ask(Call::End, well.into(), 0);
        }
    }

    /// Makes registers, lines and regions of this core as after a reset, with `memory` bytes of
    /// memory per core.
    pub fn reset(garbage: u32, memory: u32) {
        ask(Call::Reset, garbage, memory);
    }

    /// Notes what this core does.
    pub fn status(status: u32) {
        ask(Call::Status, status, 0);
    }

    /// This core's number, for a panic that knows of no machine.
    pub fn core() -> u32 {
        ask(Call::Core, 0, 0)
    }

    impl Boot {
        /// The part of this core's stack that is below all that the image's entry uses.
        pub fn stack(&'static self) -> &'static [AtomicU32] {
            let start = core::ptr::with_exposed_provenance(self.stack as usize);
            // SAFETY: the monitor gives memory that is mapped, and holds nothing yet but the stack
            // that grows into it; all its words are atomic here. It alone makes a `Boot`.
            unsafe { core::slice::from_raw_parts(start, self.stack_len as usize / 4) }
        }

        /// The boot words.
        pub fn words(&'static self) -> &'static str {
            let start = core::ptr::with_exposed_provenance(self.words as usize);
            // SAFETY: the monitor keeps the words there for ever, and changes them no more; it
            // alone makes a `Boot`.
            let bytes = unsafe { core::slice::from_raw_parts(start, self.words_len as usize) };
            core::str::from_utf8(bytes).unwrap_or("")
        }
    }
}

#[cfg(all(target_os = "none", target_arch = "x86"))]
pub use ask::{barrier, core, end, log, reset, status};
