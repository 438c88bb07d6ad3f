//! What an entry of a ring holds: see [`ring`](crate::ring).

/// Words of an entry.
pub(crate) const WORDS: usize = 8;

/// The bytes of a line, by words.
pub(crate) type Line = [[u8; 4]; WORDS];

/// Bytes of payload that it has room for.
pub(crate) const DATA: usize = 16;

/// Bytes of payload in a line of long payload: see [`long`](crate::long). In the entry that
/// announces it, and in a line that goes on with it.
pub(crate) const LINE_DATA: usize = 31;
pub(crate) const FIRST_DATA: usize = 12;
pub(crate) const MORE_DATA: usize = 29;

/// Most lines that directly follow one of these.
pub(crate) const RUN_MOST: u32 = 63;

/// Number of the word with everything that has no room elsewhere: bits 31, and the length.
const REST: u32 = 6;

/// First word of the payload.
const PAYLOAD: usize = 2;

/// Where the body of an entry is, on coherent machines.
pub(crate) const BODY: u32 = 8;

/// Where the second 8 bytes of payload are, on coherent machines.
pub(crate) const SECOND: u32 = 24;

/// Number of the word with [`room`](Entry::room).
pub(crate) const ROOM: u32 = 7;

/// Where the length starts in [`REST`].
const LENGTH: u32 = 8;

/// The bits of the length, there. The two largest numbers are none.
const LENGTHS: u32 = 0xFFFF;
const ASKING: usize = 0xFFFF;
const LONG: usize = 0xFFFE;

/// Where the number of lines that directly follow starts, there.
const RUN: u32 = 24;

/// The bit there that no entry has: the line goes on with long payload.
const MORE: u32 = 1 << 30;

/// Where these are in the bytes of such a line: its own two of four.
const MORE_RUN_AT: usize = 24;
const MORE_AT: usize = 27;
const MORE_BYTE: u8 = 0x40;

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

/// The body of the record that an entry starts with on coherent machines: length and place, and 8
/// bytes of payload; and the 8 behind them.
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

/// Whether the payload is an element of 8 bytes, for an aligned place.
#[inline(always)]
pub(crate) const fn is_element(head: u64) -> bool {
    head & 0x7_FFFF_FFFF == 8
}

/// An entry, unpacked.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// 31 bits.
    pub(crate) immediate: u32,
    /// Where the payload belongs, from the start of the memory region.
    pub(crate) place: u32,
    /// The payload; of long payload, how many bytes it has, and its first ones.
    data: [u8; DATA],
    /// Of the payload, or [`LONG`], or [`ASKING`].
    len: usize,
    /// Lines of long payload that directly follow.
    pub(crate) run: u32,
    /// It is none, but a line that goes on with long payload.
    pub(crate) more: bool,
    /// How many its producer has taken of the ring the other way, but for bit 31: where long
    /// payload travels.
    pub(crate) room: u32,
}

impl Entry {
    /// None.
    pub(crate) const EMPTY: Self = Self {
        immediate: 0,
        place: 0,
        data: [0; DATA],
        len: 0,
        run: 0,
        more: false,
        room: 0,
    };

    /// Asks the owner to place what it holds.
    pub(crate) const ASKING: Self = Self {
        len: ASKING,
        ..Self::EMPTY
    };

    /// An entry with up to [`DATA`] bytes of payload.
    pub(crate) fn new(immediate: u32, place: u32, payload: &[u8]) -> Self {
        let mut data = [0; DATA];
        for (to, from) in data.iter_mut().zip(payload) {
            *to = *from;
        }
        Self {
            immediate,
            place,
            data,
            len: payload.len().min(DATA),
            run: 0,
            more: false,
            room: 0,
        }
    }

    /// An entry that announces long payload: its first bytes; so many lines directly follow.
    pub(crate) fn long(immediate: u32, place: u32, payload: &[u8], run: u32) -> Self {
        let mut data = [0; DATA];
        let total = (payload.len() as u32).to_le_bytes();
        for (to, from) in data.iter_mut().zip(total.iter().chain(payload)) {
            *to = *from;
        }
        Self {
            immediate,
            place,
            data,
            len: LONG,
            run: run & RUN_MOST,
            more: false,
            room: 0,
        }
    }

    /// Of long payload: how many bytes it has, and the first ones.
    pub(crate) fn announced(&self) -> Option<(u32, &[u8])> {
        let (total, first) = self.data.split_first_chunk()?;
        (self.len == LONG).then_some((u32::from_le_bytes(*total), first))
    }

    /// What a [`word`] stands for.
    pub(crate) const fn of_word(word: u32) -> Self {
        Self {
            immediate: word & !PHASE,
            place: 0,
            data: [0; DATA],
            len: 0,
            run: 0,
            more: false,
            room: 0,
        }
    }

    /// The payload, if it is short.
    pub(crate) fn payload(&self) -> &[u8] {
        self.data.get(..self.len).unwrap_or(&[])
    }

    /// Whether it is [`ASKING`](Self::ASKING).
    pub(crate) const fn asks(&self) -> bool {
        self.len == ASKING
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
        let mut rest = (self.len as u32).wrapping_shl(LENGTH) | self.run.wrapping_shl(RUN);
        let mut words = [0; WORDS];
        for (bit, (to, from)) in (0_u32..).zip(words.iter_mut().zip(full)) {
            *to = from;
            rest |= from.wrapping_shr(31).wrapping_shl(bit);
        }
        let [.., to, room] = &mut words;
        (*to, *room) = (rest, self.room);
        let mut bytes = [0; 4 * WORDS];
        let (chunks, _) = bytes.as_chunks_mut::<4>();
        for (to, word) in chunks.iter_mut().zip(words) {
            *to = ((word & !PHASE) | phase).to_le_bytes();
        }
        bytes
    }

    /// The entry whose first word is `first`; `load` brings the others by number, those that
    /// matter. None if it has none.
    pub(crate) fn unpack(first: u32, load: impl Fn(u32) -> Option<u32>) -> Option<Self> {
        let rest = load(REST)?;
        let top = |number: u32, word: u32| {
            let top = rest.wrapping_shr(number).wrapping_shl(31);
            (word & !PHASE) | top
        };
        let len = (rest.wrapping_shr(LENGTH) & LENGTHS) as usize;
        let mut entry = Self {
            immediate: top(0, first),
            place: 0,
            data: [0; DATA],
            len,
            run: rest.wrapping_shr(RUN) & RUN_MOST,
            more: rest & MORE != 0,
            room: 0,
        };
        if len == 0 || entry.more {
            return Some(entry);
        }
        entry.place = top(1, load(1)?);
        let (words, _) = entry.data.as_chunks_mut::<4>();
        let count = len.min(DATA).div_ceil(4);
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

/// A line behind an entry, in a lap: [`LINE_DATA`] bytes, or fewer. The top bits of all words but
/// the last are the last one's bits 24 to 30.
pub(crate) fn pack_line(data: &[u8], lap: u32) -> Line {
    let mut words = [[0; 4]; WORDS];
    for (to, from) in words
        .as_flattened_mut()
        .iter_mut()
        .zip(data)
        .take(LINE_DATA)
    {
        *to = *from;
    }
    let mut tops = 0;
    for (bit, word) in (24..).zip(&mut words) {
        let raw = u32::from_le_bytes(*word);
        let all = if bit < TOPS_END {
            tops |= raw.wrapping_shr(31).wrapping_shl(bit);
            raw & !PHASE
        } else {
            raw | tops
        };
        *word = (all | phase(lap)).to_le_bytes();
    }
    words
}

/// The bytes of such a line.
pub(crate) fn unpack_line(words: Line) -> [u8; LINE_DATA] {
    let [.., last] = words;
    let tops = u32::from_le_bytes(last);
    let mut plain = words;
    for (bit, word) in (24..TOPS_END).zip(&mut plain) {
        let raw = u32::from_le_bytes(*word) & !PHASE;
        *word = (raw | tops.wrapping_shr(bit).wrapping_shl(31)).to_le_bytes();
    }
    let mut data = [0; LINE_DATA];
    for (to, from) in data.iter_mut().zip(plain.as_flattened()) {
        *to = *from;
    }
    data
}

/// A line that goes on with long payload: up to [`MORE_DATA`] bytes; so many lines directly follow.
pub(crate) fn pack_more(data: &[u8], run: u32, lap: u32) -> Line {
    let mut bytes = [0; LINE_DATA];
    let (own, data) = ([run as u8, MORE_BYTE], data.iter().copied());
    let mut own = own.into_iter();
    let mut data = data;
    for (at, to) in bytes.iter_mut().enumerate() {
        let from = match at {
            MORE_RUN_AT | MORE_AT => own.next(),
            _ => data.next(),
        };
        *to = from.unwrap_or(0);
    }
    pack_line(&bytes, lap)
}

/// How many lines directly follow such a line, and its payload.
pub(crate) fn unpack_more(words: Line) -> (u32, [u8; MORE_DATA]) {
    let bytes = unpack_line(words);
    let mut run = 0;
    let mut data = [0; MORE_DATA];
    let mut to = data.iter_mut();
    for (at, from) in bytes.iter().enumerate() {
        match at {
            MORE_RUN_AT => run = u32::from(*from),
            MORE_AT => {}
            _ => {
                if let Some(to) = to.next() {
                    *to = *from;
                }
            }
        }
    }
    (run, data)
}

/// Behind the bits, in the last word of a line, that are the top ones of the others.
const TOPS_END: u32 = 31;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_comes_back_and_each_word_tells_its_lap() {
        let patterns: [fn(u8) -> u8; 4] = [|_| 0, |_| 0xFF, |n| n, |n| 0xFF ^ n.wrapping_mul(83)];
        for (lap, other) in [(0, 1), (1, 2), (u32::MAX, 0)] {
            for pattern in patterns {
                for len in 0..=LINE_DATA {
                    let mut data = [0; LINE_DATA];
                    for (number, byte) in (0..).zip(&mut data[..len]) {
                        *byte = pattern(number);
                    }
                    let words = pack_line(&data[..len], lap);
                    assert_eq!(unpack_line(words), data);
                    for word in words.map(u32::from_le_bytes) {
                        assert!(Entry::is_of(word, phase(lap)));
                        assert!(!Entry::is_of(word, phase(other)));
                    }
                }
            }
        }
    }

    #[test]
    fn a_line_that_goes_on_is_no_entry() {
        for (len, run) in [(0, 0), (1, RUN_MOST), (MORE_DATA, 5)] {
            let data = [0xFF; MORE_DATA];
            let words = pack_more(&data[..len], run, 1);
            let (of, found) = unpack_more(words);
            assert_eq!((of, &found[..len]), (run, &data[..len]));
            let load = |number: u32| Some(u32::from_le_bytes(words[number as usize]));
            assert!(Entry::unpack(load(0).unwrap(), load).unwrap().more);
        }
    }

    fn word(bytes: &[u8; 4 * WORDS], number: u32) -> u32 {
        let (words, _) = bytes.as_chunks::<4>();
        u32::from_le_bytes(words[number as usize])
    }

    #[test]
    fn what_is_packed_comes_back() {
        let ones = [0xFF; DATA];
        for lap in [0, 1, u32::MAX] {
            let long = [0x5A; 70_000];
            for (len, run) in [(DATA + 1, 0), (300, 1), (long.len(), RUN_MOST)] {
                let bytes = Entry::long(7, 1 << 31, &long[..len], run).pack(lap);
                let back = Entry::unpack(word(&bytes, 0), |number| Some(word(&bytes, number)));
                let back = back.unwrap();
                assert_eq!((back.immediate, back.place, back.run), (7, 1 << 31, run));
                assert_eq!(back.announced(), Some((len as u32, &long[..FIRST_DATA])));
                assert!(back.payload().is_empty() && !back.more && !back.asks());
            }
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
