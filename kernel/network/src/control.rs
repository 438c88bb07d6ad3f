//! Immediates, as this link uses them.
//!
//! ```text
//!   31  30  29 …                        … 0
//!   ┌───┬──────────────────────────────────┐
//!   │ 0 │ the kernel's                     │
//!   ├───┼───┬──────────────────────────────┤
//!   │ 1 │ 0 │ a slot is signalled: which   │
//!   ├───┼───┼──────────────────────────────┤
//!   │ 1 │ 1 │ credits come back: how many  │
//!   └───┴───┴──────────────────────────────┘
//! ```

/// The link's own immediates.
const CONTROL: u32 = 1 << 31;

/// Those of them that bring credits.
const CREDITS: u32 = 1 << 30;

/// The meaning of an immediate.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// Something of the kernel's.
    User(u32),
    /// The slot is signalled once more.
    Signal(u32),
    /// That many more immediates may be sent.
    Credits(u32),
}

impl Said {
    pub(crate) const fn pack(self) -> u32 {
        match self {
            Self::User(immediate) => immediate & !CONTROL,
            Self::Signal(slot) => CONTROL | slot & !CREDITS,
            Self::Credits(count) => CONTROL | CREDITS | count,
        }
    }

    pub(crate) const fn unpack(immediate: u32) -> Self {
        let rest = immediate & !(CONTROL | CREDITS);
        match (immediate & CONTROL, immediate & CREDITS) {
            (0, _) => Self::User(immediate),
            (_, 0) => Self::Signal(rest),
            _ => Self::Credits(rest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_back() {
        for number in [0, 1, (1 << 30) - 1] {
            for said in [
                Said::User(number),
                Said::User(number | 1 << 30),
                Said::Signal(number),
                Said::Credits(number),
            ] {
                assert_eq!(Said::unpack(said.pack()), said);
            }
        }
    }
}
