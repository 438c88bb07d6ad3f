//! Cards: what the ranks tell each other of their ends, before there is a network.

use crate::attach::Place;

/// What a peer needs to know of an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Card {
    /// The names of its endpoints: one or two.
    pub(crate) names: Vec<Vec<u8>>,
    pub(crate) key: u64,
    pub(crate) base: u64,
    /// Its provider grants order of puts.
    pub(crate) ordered: bool,
    pub(crate) place: Place,
}

impl Card {
    /// The card as bytes, with the size of memory, which is the same on all ranks.
    pub(crate) fn pack(&self, memory: usize) -> Vec<u8> {
        let mut bytes = memory.to_le_bytes().to_vec();
        bytes.push(self.ordered.into());
        bytes.extend(self.key.to_le_bytes());
        bytes.extend(self.base.to_le_bytes());
        bytes.extend(self.place.process.to_le_bytes());
        bytes.extend(self.place.start.to_le_bytes());
        bytes.extend(self.place.proof);
        for name in &self.names {
            bytes.extend((name.len() as u16).to_le_bytes());
            bytes.extend(name);
        }
        bytes
    }

    /// Reads [`pack`](Self::pack). None if the sizes differ, or the bytes make no sense.
    pub(crate) fn unpack(bytes: &[u8], memory: usize) -> Option<Self> {
        let rest = bytes.strip_prefix(&memory.to_le_bytes())?;
        let (ordered, rest) = rest.split_first()?;
        let (key, rest) = rest.split_first_chunk()?;
        let (base, rest) = rest.split_first_chunk()?;
        let (process, rest) = rest.split_first_chunk()?;
        let (start, rest) = rest.split_first_chunk()?;
        let (proof, mut rest) = rest.split_first_chunk()?;
        let mut names = Vec::new();
        while !rest.is_empty() {
            let (len, after) = rest.split_first_chunk()?;
            let (name, after) = after.split_at_checked(u16::from_le_bytes(*len).into())?;
            names.push(name.to_vec());
            rest = after;
        }
        Some(Self {
            names,
            key: u64::from_le_bytes(*key),
            base: u64::from_le_bytes(*base),
            ordered: *ordered != 0,
            place: Place {
                process: i32::from_le_bytes(*process),
                start: u64::from_le_bytes(*start),
                proof: *proof,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_are_read_as_they_were_written() {
        for names in [vec![], vec![vec![1; 16]], vec![vec![2; 300], vec![]]] {
            let card = Card {
                names,
                key: u64::MAX - 1,
                base: 7 << 40,
                ordered: true,
                place: Place {
                    process: 12_345,
                    start: 9 << 40,
                    proof: *b"some ran",
                },
            };
            let bytes = card.pack(4096);
            assert_eq!(Card::unpack(&bytes, 4096), Some(card));
            assert_eq!(Card::unpack(&bytes, 8192), None);
            assert_eq!(Card::unpack(&bytes[..20], 4096), None);
            assert_eq!(Card::unpack(&[&bytes[..], &[1]].concat(), 4096), None);
        }
    }
}
