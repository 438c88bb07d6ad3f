//! Lines as bytes, and sets of their bytes.

/// Bytes of the largest cache line that can be simulated.
pub(crate) const LINE_MAX: usize = 64;

/// Room for the words of a line.
pub(crate) const WORDS: usize = LINE_MAX / 4;

/// Room for the bytes of a line.
pub(crate) type Bytes = [u8; LINE_MAX];

/// One bit for each byte of a line.
pub(crate) type Mask = u64;

/// The word `index` of a line.
#[inline]
pub(crate) fn word(bytes: &Bytes, index: usize) -> u32 {
    let at = index * 4;
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The byte mask of `len` bytes from `start`.
#[inline]
pub(crate) const fn span(start: usize, len: usize) -> Mask {
    match len {
        0 => 0,
        _ => (Mask::MAX >> (LINE_MAX - len)) << start,
    }
}

/// The numbers of the set bits.
#[inline]
pub(crate) fn bits(mut mask: Mask) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (mask != 0).then(|| mask.trailing_zeros() as usize);
        mask &= mask.wrapping_sub(1);
        bit
    })
}

/// Copies the masked bytes.
#[inline]
pub(crate) fn blend(into: &mut Bytes, from: &Bytes, mask: Mask) {
    bits(mask).for_each(|bit| into[bit] = from[bit]);
}
