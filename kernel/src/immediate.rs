//! The 32 bits that travel with a notified access. They say which rank notifies, in which window,
//! and with which tag. The split is made once, when the world starts; [`Limits`] tells it. RDMA
//! networks carry exactly 32 bits with a write ([NA] IV-A), and so do we everywhere.
//!
//! ```text
//!   31   30 …                                   … 0
//!   ┌───┬──────────────┬──────────┬───────────────┐
//!   │ 0 │ source rank  │ window   │ tag           │
//!   └───┴──────────────┴──────────┴───────────────┘
//!        ceil(log2 p)    6 bits     what is left
//! ```
//!
//! [NA]: crate#sources

use flagpost_link::Rank;

/// Bits for the window.
const WINDOW_BITS: u32 = 6;

/// Bits for everything: the top one is kept for links' own control messages.
const BITS: u32 = 31;

/// The subject of a notification: a number that origin and target agree on, up to [`Limits::tag`].
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Tag(pub u32);

/// The numbers that a world's immediates can tell apart.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Limits {
    /// Most windows of the world.
    pub windows: u16,
    /// Largest tag.
    pub tag: u32,
    tag_bits: u32,
}

/// The meaning of an immediate.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notification {
    pub(crate) source: Rank,
    pub(crate) window: u16,
    pub(crate) tag: Tag,
}

impl Limits {
    /// The split for a world whose link has [room](flagpost_link::Link::room) for `ranks` and
    /// `windows`.
    pub(crate) const fn new((ranks, windows): (u16, u16)) -> Self {
        let rank_bits = u16::BITS.wrapping_sub(ranks.saturating_sub(1).leading_zeros());
        let most = 1_u16.wrapping_shl(WINDOW_BITS);
        let tag_bits = BITS.wrapping_sub(WINDOW_BITS).wrapping_sub(rank_bits);
        Self {
            windows: if windows < most { windows } else { most },
            tag: low_bits(tag_bits),
            tag_bits,
        }
    }

    /// Packs; all parts are within the limits.
    pub(crate) const fn pack(&self, notification: Notification) -> u32 {
        let source = (notification.source.get() as u32).wrapping_shl(WINDOW_BITS);
        let high = source | notification.window as u32;
        high.wrapping_shl(self.tag_bits) | notification.tag.0
    }

    /// Bits of a tag.
    pub(crate) const fn tag_bits(&self) -> u32 {
        self.tag_bits
    }

    /// The inverse of [`Limits::pack`].
    pub(crate) const fn unpack(&self, immediate: u32) -> Notification {
        unpack(self.tag_bits, immediate)
    }
}

/// [`Limits::unpack`], where a tag has `tag_bits`.
pub(crate) const fn unpack(tag_bits: u32, immediate: u32) -> Notification {
    Notification::of(
        immediate.wrapping_shr(tag_bits),
        immediate & low_bits(tag_bits),
    )
}

impl Notification {
    /// Source and window as one number, and a tag.
    const fn of(high: u32, tag: u32) -> Self {
        Self {
            source: Rank::new(high.wrapping_shr(WINDOW_BITS) as u16),
            window: (high & low_bits(WINDOW_BITS)) as u16,
            tag: Tag(tag),
        }
    }
}

/// Bits in which two immediates may differ and still be the same to a request, if the source, or
/// the tag, does not matter.
pub(crate) const fn wildcards(tag_bits: u32, any_source: bool, any_tag: bool) -> u32 {
    let tag = if any_tag { low_bits(tag_bits) } else { 0 };
    let fixed = low_bits(WINDOW_BITS.wrapping_add(tag_bits));
    let source = if any_source {
        low_bits(BITS) & !fixed
    } else {
        0
    };
    tag | source
}

/// The lowest `count` bits set.
const fn low_bits(count: u32) -> u32 {
    1_u32.wrapping_shl(count).wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn immediates_come_back_for_all_world_sizes() {
        for size in [1, 2, 3, 48, 512, 513, 1024, u16::MAX] {
            let limits = Limits::new((size, u16::MAX));
            assert!(limits.tag >= 511, "{size}: {limits:?}");
            for source in [0, size - 1] {
                for window in [0, limits.windows - 1] {
                    for tag in [0, limits.tag] {
                        let sent = Notification {
                            source: Rank::new(source),
                            window,
                            tag: Tag(tag),
                        };
                        let immediate = limits.pack(sent);
                        let any = |source, tag| immediate & wildcards(limits.tag_bits, source, tag);
                        assert_eq!(any(false, true), tag);
                        assert_eq!(any(true, false) | any(false, true), any(true, true));
                        let rest = Notification {
                            source: Rank::new(0),
                            ..sent
                        };
                        assert_eq!(any(true, false), immediate - limits.pack(rest));
                        assert_eq!(immediate >> 31, 0);
                        assert_eq!(limits.unpack(immediate), sent);
                    }
                }
            }
        }
    }
}
