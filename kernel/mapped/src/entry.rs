//! What an entry of a ring holds: see [`ring`](crate::ring).

/// Words of an entry.
pub(crate) const WORDS: usize = 8;

/// Bytes of payload that it has room for.
pub(crate) const DATA: usize = 16;

/// Number of the word with everything that has no room elsewhere: bits 31, and the length.
const REST: u32 = 6;

/// First word of the payload.
const PAYLOAD: usize = 2;

/// Where the body of an entry is, on coherent machines.
pub(crate) const BODY: u32 = 8;

/// Where the second 8 bytes of payload are, on coherent machines.
pub(crate) const SECOND: u32 = 24;

/// Where the length starts in [`REST`].
const LENGTH: u32 = 8;

/// The bit that tells laps apart.
const PHASE: u32 = 1 << 31;

/// The phase of `lap`: bit 31, or nothing.
pub(crate) const fn phase(lap: u32) -> u32 {
    lap.wrapping_shl(31)
}

/// An entry without payload as one word, in a lap.
pub(crate) const fn word(immediate: u32, lap: u32) -> u32 {
    (immediate & !PHASE) | phase(lap)
}

/// The immediate of a [`word`].
pub(crate) const fn immediate(word: u32) -> u32 {
    word & !PHASE
}

/// The body of the record that an entry starts with on coherent machines: length and place, and 8 bytes of payload; and the 8 behind
/// them.
#[inline]
pub(crate) fn body(place: u32, payload: &[u8]) -> ([u64; 2], [u8; 8]) {
    let mut parts = [[0; 8]; 2];
    if let ([one], []) = payload.as_chunks() {
        parts = [*one, [0; 8]];
    } else {
        for (to, from) in parts.as_flattened_mut().iter_mut().zip(payload) {
            *to = *from;
        }
    }
    let [first, second] = parts;
    let head = head(place, payload.len().min(DATA) as u32);
    ([head, u64::from_le_bytes(first)], second)
}

/// The first part of a [`body`].
#[inline]
pub(crate) const fn head(place: u32, len: u32) -> u64 {
    (place as u64).wrapping_shl(32) | len as u64
}

/// The [`word`] of an immediate in a lap whose phase is the top bit of `lap`.
#[inline]
pub(crate) const fn announcing(immediate: u32, lap: u32) -> u32 {
    (immediate & !PHASE) | (lap & PHASE)
}

/// Place and length of the payload, in the first part of a [`body`].
#[inline]
pub(crate) const fn of_body(head: u64) -> (u32, usize) {
    (head.wrapping_shr(32) as u32, head as u32 as usize)
}

/// An entry, unpacked.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// 31 bits.
    pub(crate) immediate: u32,
    /// Where the payload belongs, from the start of the memory region.
    pub(crate) place: u32,
    data: [u8; DATA],
    len: usize,
}

impl Entry {
    /// None.
    pub(crate) const EMPTY: Self = Self {
        immediate: 0,
        place: 0,
        data: [0; DATA],
        len: 0,
    };

    /// An entry with up to [`DATA`] bytes of payload; of more, the first.
    pub(crate) fn new(immediate: u32, place: u32, payload: &[u8]) -> Self {
        let mut data = [0; DATA];
        let len = payload.len().min(DATA);
        if let (Some(to), Some(from)) = (data.get_mut(..len), payload.get(..len)) {
            to.copy_from_slice(from);
        }
        Self {
            immediate,
            place,
            data,
            len,
        }
    }

    /// What a [`word`] stands for.
    pub(crate) const fn of_word(word: u32) -> Self {
        Self {
            immediate: word & !PHASE,
            place: 0,
            data: [0; DATA],
            len: 0,
        }
    }

    /// The payload.
    pub(crate) fn payload(&self) -> &[u8] {
        self.data.get(..self.len).unwrap_or(&[])
    }

    /// Whether `word` of an entry belongs to a lap of this phase.
    pub(crate) const fn is_of(word: u32, phase: u32) -> bool {
        word & PHASE == phase
    }

    /// The bytes of the entry in a lap.
    pub(crate) fn pack(&self, lap: u32) -> [u8; 4 * WORDS] {
        let phase = phase(lap);
        let [a, b, c, d] = self.data_words();
        let full = [self.immediate, self.place, a, b, c, d];
        let mut rest = (self.len as u32).wrapping_shl(LENGTH);
        let mut words = [0; WORDS];
        for (bit, (to, from)) in (0_u32..).zip(words.iter_mut().zip(full)) {
            *to = from;
            rest |= from.wrapping_shr(31).wrapping_shl(bit);
        }
        if let Some(word) = words.get_mut(REST as usize) {
            *word = rest;
        }
        let mut bytes = [0; 4 * WORDS];
        let (chunks, _) = bytes.as_chunks_mut::<4>();
        for (to, word) in chunks.iter_mut().zip(words) {
            *to = ((word & !PHASE) | phase).to_le_bytes();
        }
        bytes
    }

    /// The entry whose first word is `first`; `load` brings the others by number, those that matter. None if it has none.
    pub(crate) fn unpack(first: u32, load: impl Fn(u32) -> Option<u32>) -> Option<Self> {
        let rest = load(REST)?;
        let top = |number: u32, word: u32| {
            let top = rest.wrapping_shr(number).wrapping_shl(31);
            (word & !PHASE) | top
        };
        let len = (rest.wrapping_shr(LENGTH) & 0x1F) as usize;
        let mut entry = Self {
            immediate: top(0, first),
            place: 0,
            data: [0; DATA],
            len: len.min(DATA),
        };
        if len == 0 {
            return Some(entry);
        }
        entry.place = top(1, load(1)?);
        let (words, _) = entry.data.as_chunks_mut::<4>();
        let count = entry.len.div_ceil(4);
        for (number, to) in (PAYLOAD as u32..).zip(words.iter_mut().take(count)) {
            *to = top(number, load(number)?).to_le_bytes();
        }
        Some(entry)
    }

    fn data_words(&self) -> [u32; DATA / 4] {
        let (words, _) = self.data.as_chunks::<4>();
        let mut all = [0; DATA / 4];
        for (to, from) in all.iter_mut().zip(words) {
            *to = u32::from_le_bytes(*from);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(bytes: &[u8; 4 * WORDS], number: u32) -> u32 {
        let (words, _) = bytes.as_chunks::<4>();
        u32::from_le_bytes(words[number as usize])
    }

    #[test]
    fn what_is_packed_comes_back() {
        let ones = [0xFF; DATA];
        for lap in [0, 1, u32::MAX] {
            for len in 0..=DATA {
                for data in [&[0; DATA], &ones, b"0123456789abcdef"] {
                    for (immediate, place) in [(0, 0), (u32::MAX >> 1, u32::MAX), (7, 1 << 31)] {
                        let entry = Entry::new(immediate, place, &data[..len]);
                        let bytes = entry.pack(lap);
                        let first = word(&bytes, 0);
                        let back = Entry::unpack(first, |number| Some(word(&bytes, number)));
                        let back = back.unwrap();
                        assert_eq!(back.immediate, immediate);
                        assert_eq!(back.payload(), &data[..len]);
                        assert!(len == 0 || back.place == place);
                    }
                }
            }
        }
    }

    #[test]
    fn a_body_comes_back() {
        for len in 0..=DATA {
            let payload = &b"0123456789abcdef"[..len];
            for place in [0, 12, u32::MAX] {
                let ([head, first], second) = body(place, payload);
                assert_eq!(of_body(head), (place, len));
                let data = [first.to_le_bytes(), second];
                assert_eq!(&data.as_flattened()[..len], payload);
            }
        }
    }

    #[test]
    fn an_announcing_word_is_the_entry_of_its_lap() {
        // Rings of 32: the bit that tells laps apart is the sixth.
        for ticket in [0, 31, 32, 63, 64, u32::MAX] {
            let to_top = 31 - 5;
            assert_eq!(
                announcing(u32::MAX, ticket << to_top),
                super::word(u32::MAX, ticket >> 5)
            );
        }
    }

    #[test]
    fn every_word_tells_its_lap() {
        for (lap, other) in [(0, 1), (1, 2), (u32::MAX, 0)] {
            let bytes = Entry::new(u32::MAX, u32::MAX, &[0xFF; DATA]).pack(lap);
            for number in 0..WORDS as u32 {
                assert!(Entry::is_of(word(&bytes, number), phase(lap)));
                assert!(!Entry::is_of(word(&bytes, number), phase(other)));
            }
        }
    }

    #[test]
    fn an_entry_that_is_not_whole_is_none() {
        let bytes = Entry::new(1, 2, &[3; 9]).pack(0);
        for missing in [1, 2, 3, 4, REST] {
            let load = |number| (number != missing).then(|| word(&bytes, number));
            assert_eq!(Entry::unpack(word(&bytes, 0), load), None);
        }
        // Words without payload do not matter.
        let load = |number| (number != 5).then(|| word(&bytes, number));
        assert!(Entry::unpack(word(&bytes, 0), load).is_some());
    }
}
