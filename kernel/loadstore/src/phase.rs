//! The phase: how a word of a ring tells by itself that it has come.
//!
//! Each word arrives whole, and words arrive in any order. So the top bit of a word, its *phase*,
//! changes with each lap of the ring. A reader that finds the phase of its lap in a word knows that
//! the word has come.

/// Words of an entry.
pub const WORDS: usize = 8;

/// The bit that tells laps apart.
const PHASE: u32 = 1 << 31;

/// The phase of `lap`: bit 31, or nothing.
#[inline(always)]
pub const fn phase(lap: u32) -> u32 {
    lap.wrapping_shl(31)
}

/// True if `word` belongs to a lap of this phase.
#[inline(always)]
pub const fn is_of(word: u32, phase: u32) -> bool {
    // Equal top bits. As a sign this is one instruction fewer than as `word & PHASE == phase`.
    (word ^ phase) as i32 >= 0
}

/// An immediate as a word, in a lap whose phase is the top bit of `lap`.
#[inline(always)]
pub const fn announcing(immediate: u32, lap: u32) -> u32 {
    (immediate & !PHASE) | (lap & PHASE)
}

/// The immediate of such a word.
#[inline(always)]
pub const fn immediate(word: u32) -> u32 {
    word & !PHASE
}
