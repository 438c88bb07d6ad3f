//! Cache instructions, as the processor has them, and stores that pass the caches by.
//!
//! | | x86_64 | aarch64 |
//! |---|---|---|
//! | `write_back` | `clwb`, else `clflushopt`, else `clflush` | `dc civac` |
//! | `discard` | `clflushopt`, else `clflush` | `dc civac` |
//! | `stored` | `sfence` | `dsb sy` |
//! | `settled` | `mfence` | `dsb sy` |
//! | `stream` | `movnti`, `maskmovdqu` at the ends | stores, then `dc civac` |
//! | [`Monitor`] | `umonitor`, `umwait`, if there | none |
//!
//! # On aarch64
//! There is no store that passes the cache by from a program's own mapping, so a word is stored to
//! its whole line. A line of words with several writers then loses stores where the caches of two
//! hosts write it back at the same time, unless the hosts' interconnect writes back dirty bytes
//! only. One host, or memory that the system maps uncached, is safe.

use crate::bytes::Bytes;

/// Bytes of a line: a bound for layout.
pub(crate) const LINE: usize = if cfg!(target_arch = "x86_64") {
    64
} else {
    128
};

pub(crate) use arch::{Instructions, Monitor, settled, stored};

/// Calls `act` with the lines of `line` bytes that have some of these bytes. How many they are.
#[inline(always)]
fn for_lines(line: usize, bytes: Bytes<'_>, act: impl Fn(*mut u8)) -> u64 {
    if bytes.len() == 0 {
        return 0;
    }
    let past = bytes.as_ptr().addr() % line;
    let first = bytes.as_ptr().wrapping_sub(past);
    let lines = (past + bytes.len()).div_ceil(line);
    for number in 0..lines {
        act(first.wrapping_add(number * line));
    }
    lines as u64
}

#[cfg(all(test, target_arch = "x86_64"))]
pub(crate) mod executed;

#[cfg(target_arch = "x86_64")]
mod arch {
    use std::arch::asm;
    use std::arch::x86_64::{__cpuid, __cpuid_count, _mm_loadu_si128, _mm_maskmoveu_si128, _rdtsc};
    use std::sync::atomic::AtomicU32;

    use super::{Bytes, LINE, for_lines};

    /// The leaf of a processor's features.
    const STRUCTURED: u32 = 7;

    /// Which instructions there are.
    #[derive(Copy, Clone, Debug)]
    pub(crate) struct Instructions {
        clwb: bool,
        clflushopt: bool,
    }

    impl Instructions {
        /// All that a processor like this one may have: what it has, and what older ones have.
        #[cfg(test)]
        pub(crate) fn choices() -> Vec<Self> {
            let own = Self::detect();
            let all = [(true, true), (false, true), (false, false)];
            all.into_iter()
                .filter(|(clwb, clflushopt)| (own.clwb || !clwb) && (own.clflushopt || !clflushopt))
                .map(|(clwb, clflushopt)| Self { clwb, clflushopt })
                .collect()
        }

        pub(crate) fn detect() -> Self {
            const CLFLUSHOPT: u32 = 1 << 23;
            const CLWB: u32 = 1 << 24;
            let features = match __cpuid(0).eax {
                STRUCTURED.. => __cpuid_count(STRUCTURED, 0).ebx,
                _ => 0,
            };
            Self {
                clwb: features & CLWB != 0,
                clflushopt: features & CLFLUSHOPT != 0,
            }
        }

        /// What lines are written back by.
        pub(crate) fn write_back_name(self) -> &'static str {
            match (self.clwb, self.clflushopt) {
                (true, _) => "clwb",
                (_, true) => "clflushopt",
                _ => "clflush",
            }
        }

        /// What lines are dropped by.
        pub(crate) fn discard_name(self) -> &'static str {
            if self.clflushopt {
                "clflushopt"
            } else {
                "clflush"
            }
        }

        /// Writes the lines of these bytes back. How many there are.
        pub(crate) fn write_back(self, bytes: Bytes<'_>) -> u64 {
            if self.clwb {
                return for_lines(LINE, bytes, |line| {
                    // SAFETY: the processor has the instruction; the line is mapped, and no byte
                    // changes for this program.
                    unsafe { asm!("clwb [{}]", in(reg) line, options(nostack, preserves_flags)) }
                });
            }
            self.discard(bytes)
        }

        /// Writes the lines of these bytes back, and drops them. How many there are.
        pub(crate) fn discard(self, bytes: Bytes<'_>) -> u64 {
            if self.clflushopt {
                return for_lines(LINE, bytes, |line| {
                    // SAFETY: as above.
                    unsafe {
                        asm!("clflushopt [{}]", in(reg) line, options(nostack, preserves_flags));
                    }
                });
            }
            for_lines(LINE, bytes, |line| {
                // SAFETY: as above; every x86_64 processor has this one.
                unsafe { asm!("clflush [{}]", in(reg) line, options(nostack, preserves_flags)) }
            })
        }

        /// Stores `from` past the cache: the lines are dropped before, else a store to one that is
        /// held stays there.
        pub(crate) fn stream(self, to: Bytes<'_>, from: &[u8]) -> u64 {
            let lines = self.discard(to);
            stored();
            let len = to.len().min(from.len());
            let mut done = 0;
            while done < len {
                let at = to.as_ptr().wrapping_add(done);
                let past = at.addr() % 16;
                let rest = &from[done..len];
                done += match rest {
                    _ if at.addr() % 8 == 0 && rest.len() >= 8 => {
                        let mut long = [0; 8];
                        long.copy_from_slice(&rest[..8]);
                        let long = u64::from_le_bytes(long);
                        // SAFETY: eight mapped bytes of `to`; see `Bytes` for why no access is a
                        // data race.
                        unsafe {
                            asm!("movnti [{}], {}", in(reg) at, in(reg) long, options(nostack, preserves_flags));
                        }
                        8
                    }
                    _ if at.addr() % 4 == 0 && rest.len() >= 4 => {
                        let mut word = [0; 4];
                        word.copy_from_slice(&rest[..4]);
                        let word = u32::from_le_bytes(word);
                        // SAFETY: as above, four bytes.
                        unsafe {
                            asm!("movnti [{}], {:e}", in(reg) at, in(reg) word, options(nostack, preserves_flags));
                        }
                        4
                    }
                    _ => {
                        // Up to the next multiple of 4, so that longer stores can follow.
                        let count = (4 - at.addr() % 4).min(rest.len());
                        let (mut data, mut mask) = ([0; 16], [0_u8; 16]);
                        data[past..past + count].copy_from_slice(&rest[..count]);
                        mask[past..past + count].fill(0x80);
                        // SAFETY: the instruction stores the masked bytes only, which are mapped
                        // bytes of `to`. It may look at the page of the others: the 16 bytes are
                        // aligned, so it is the same. SSE2 is part of x86_64.
                        unsafe {
                            let data = _mm_loadu_si128(data.as_ptr().cast());
                            let mask = _mm_loadu_si128(mask.as_ptr().cast());
                            _mm_maskmoveu_si128(data, mask, at.wrapping_sub(past).cast());
                        }
                        count
                    }
                };
            }
            lines
        }
    }

    /// The processor can watch a line, and rest until somebody stores there (WAITPKG).
    #[derive(Copy, Clone, Debug)]
    pub(crate) struct Monitor(());

    impl Monitor {
        /// That of this processor, if it has one.
        pub(crate) fn detect() -> Option<Self> {
            const WAITPKG: u32 = 1 << 5;
            let has = __cpuid(0).eax >= STRUCTURED;
            (has && __cpuid_count(STRUCTURED, 0).ecx & WAITPKG != 0).then_some(Self(()))
        }

        /// One whether the processor has it or not.
        #[cfg(test)]
        pub(crate) fn assumed() -> Self {
            Self(())
        }

        /// Watches the line of `word` from now on.
        #[inline(always)]
        pub(crate) fn watch(self, word: &AtomicU32) {
            let line = word.as_ptr();
            // SAFETY: the processor has the instruction, as `self` tells. It changes no memory and
            // no register, and looks at the line, which is mapped. It is not said to leave memory
            // alone: the compiler moves no access across.
            unsafe { asm!("umonitor {}", in(reg) line, options(nostack, preserves_flags)) }
        }

        /// Rests until there was a store to the line that is watched, an interrupt, or so many
        /// ticks have passed.
        #[inline(always)]
        pub(crate) fn wait(self, ticks: u64) {
            /// The state that is left fastest (C0.1).
            const LIGHT: u32 = 1;
            // SAFETY: reads a counter. Every x86_64 processor has it; where the system forbids it,
            // the process is stopped.
            let end = unsafe { _rdtsc() }.wrapping_add(ticks);
            let (low, high) = (end as u32, (end >> 32) as u32);
            // SAFETY: the processor has the instruction. It changes flags, and nothing else.
            unsafe {
                asm!("umwait {:e}", in(reg) LIGHT, in("eax") low, in("edx") high, options(nostack))
            }
        }
    }

    /// Earlier stores, write-backs and streams are in memory before later stores are.
    pub(crate) fn stored() {
        // SAFETY: orders, and does nothing else. It is not said to leave memory alone: the compiler
        // moves no access across.
        unsafe { asm!("sfence", options(nostack, preserves_flags)) }
    }

    /// The same, and before later loads are satisfied.
    pub(crate) fn settled() {
        // SAFETY: as above.
        unsafe { asm!("mfence", options(nostack, preserves_flags)) }
    }
}

#[cfg(target_arch = "aarch64")]
mod arch {
    use std::arch::asm;
    use std::sync::atomic::AtomicU32;

    use super::{Bytes, for_lines};

    /// Which instructions there are: the true size of a line is the processor's.
    #[derive(Copy, Clone, Debug)]
    pub(crate) struct Instructions {
        line: usize,
    }

    impl Instructions {
        pub(crate) fn detect() -> Self {
            let types: u64;
            // SAFETY: reads a register that Linux lets programs read.
            unsafe { asm!("mrs {}, ctr_el0", out(reg) types, options(nomem, nostack)) }
            Self {
                line: 4 << (types >> 16 & 0xF),
            }
        }

        pub(crate) fn write_back_name(self) -> &'static str {
            "dc civac"
        }

        pub(crate) fn discard_name(self) -> &'static str {
            "dc civac"
        }

        pub(crate) fn write_back(self, bytes: Bytes<'_>) -> u64 {
            self.discard(bytes)
        }

        pub(crate) fn discard(self, bytes: Bytes<'_>) -> u64 {
            for_lines(self.line, bytes, |at| {
                // SAFETY: the line is mapped, and no byte changes for this program. Linux lets
                // programs do this.
                unsafe { asm!("dc civac, {}", in(reg) at, options(nostack, preserves_flags)) }
            })
        }

        pub(crate) fn stream(self, to: Bytes<'_>, from: &[u8]) -> u64 {
            let lines = self.discard(to);
            settled();
            to.store(from);
            lines + self.discard(to)
        }
    }

    /// None: `wfe` behind a load that is exclusive would do, and has not been tried.
    #[derive(Copy, Clone, Debug)]
    pub(crate) enum Monitor {}

    impl Monitor {
        pub(crate) fn detect() -> Option<Self> {
            None
        }

        pub(crate) fn watch(self, _: &AtomicU32) {
            match self {}
        }

        pub(crate) fn wait(self, _: u64) {
            match self {}
        }
    }

    pub(crate) fn stored() {
        settled();
    }

    pub(crate) fn settled() {
        // SAFETY: orders, and does nothing else.
        unsafe { asm!("dsb sy", options(nostack, preserves_flags)) }
    }
}
