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

/// The notifications of a window that a request matches: source and tag as in an immediate, 0 where
/// any would do, and in the window's place which of both that is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Filter(u32);

impl Filter {
    /// No notification.
    pub(crate) const NONE: Self = Self(u32::MAX);

    /// Those like `immediate`, but for what does not matter.
    pub(crate) const fn new(tag_bits: u32, immediate: u32, [source, tag]: [bool; 2]) -> Self {
        let any = (source as u32) | (tag as u32).wrapping_shl(1);
        let kept = low_bits(BITS) & !open(tag_bits, any);
        Self(immediate & kept | any.wrapping_shl(tag_bits))
    }

    /// True if there is a notification that both match.
    pub(crate) const fn meets(self, other: Self, tag_bits: u32) -> bool {
        let any = (self.0 | other.0).wrapping_shr(tag_bits);
        let apart = (self.0 ^ other.0) & !open(tag_bits, any);
        apart | self.0.wrapping_shr(BITS) == 0
    }
}

/// The bits of a window, and of what is `any`.
const fn open(tag_bits: u32, any: u32) -> u32 {
    let window = low_bits(WINDOW_BITS).wrapping_shl(tag_bits);
    window | wildcards(tag_bits, any & 1 != 0, any & 2 != 0)
}

/// The lowest `count` bits set.
const fn low_bits(count: u32) -> u32 {
    1_u32.wrapping_shl(count).wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Filters meet if a notification passes both: here one of these with another source or tag.
    fn filters(limits: &Limits, size: u16, sent: Notification) {
        let (bits, Tag(tag)) = (limits.tag_bits, sent.tag);
        let source = Rank::new(if sent.source.get() == 0 {
            size.saturating_sub(1)
        } else {
            0
        });
        let near = [
            sent,
            Notification { source, ..sent },
            Notification {
                tag: Tag(tag ^ 1),
                ..sent
            },
        ];
        let any = [false, true].map(|source| [false, true].map(|tag| [source, tag]));
        for (a, b) in near.iter().flat_map(|a| near.iter().map(move |b| (a, b))) {
            let (other_source, other_tag) = (a.source != b.source, a.tag != b.tag);
            let [a, b] = [a, b].map(|one| limits.pack(*one));
            for (one, two) in any
                .iter()
                .flatten()
                .flat_map(|one| any.iter().flatten().map(move |two| (one, two)))
            {
                let [a, b] = [Filter::new(bits, a, *one), Filter::new(bits, b, *two)];
                let apart = [(other_source, 0), (other_tag, 1)];
                let apart = apart.map(|(other, at)| other && !one[at] && !two[at]);
                assert_eq!(a.meets(b, bits), apart == [false; 2], "{a:?} {b:?}");
                for (a, b) in [
                    (a, Filter::NONE),
                    (Filter::NONE, b),
                    (Filter::NONE, Filter::NONE),
                ] {
                    assert!(!a.meets(b, bits));
                }
            }
        }
    }

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
                        filters(&limits, size, sent);
                        assert_eq!(limits.unpack(immediate), sent);
                    }
                }
            }
        }
    }
}
