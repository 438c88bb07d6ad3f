//! What an operation on the network wants, and what its core is answered, as a desk holds them.

use flagpost_hal::fabric::Event;
use flagpost_hal::{Amo, CoreId};

use crate::op::{Bytes, CHUNK, PostKind};

/// What an operation wants besides.
#[derive(Copy, Clone, Default)]
pub(crate) struct Wanted {
    pub(crate) immediate: Option<u32>,
    pub(crate) confirmed: bool,
    pub(crate) into: u32,
    pub(crate) len: u32,
    pub(crate) amo: Option<Amo>,
}

/// Up to four numbers of 8 bytes, as a desk holds them.
pub(super) fn desk(numbers: [u64; 4]) -> Bytes {
    let mut bytes = [0; CHUNK];
    for (place, number) in bytes.chunks_mut(8).zip(numbers) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    bytes
}

fn numbers(bytes: &Bytes) -> [u64; 4] {
    std::array::from_fn(|index| {
        let mut number = [0; 8];
        number.copy_from_slice(&bytes[index * 8..index * 8 + 8]);
        u64::from_le_bytes(number)
    })
}

impl Wanted {
    pub(crate) fn pack(self) -> Bytes {
        match (self.amo, self.immediate) {
            (None, immediate) => {
                let place = u64::from(self.into) << 32 | u64::from(self.len);
                let flags = u64::from(immediate.is_some()) | u64::from(self.confirmed) << 1;
                desk([flags, immediate.unwrap_or(0).into(), place, 0])
            }
            (Some(amo), _) => match amo {
                Amo::Read => desk([0, 0, 0, 0]),
                Amo::Add(value) => desk([1, value, 0, 0]),
                Amo::And(value) => desk([2, value, 0, 0]),
                Amo::Or(value) => desk([3, value, 0, 0]),
                Amo::Xor(value) => desk([4, value, 0, 0]),
                Amo::Swap(value) => desk([5, value, 0, 0]),
                Amo::CompareSwap { expected, new } => desk([6, expected, new, 0]),
            },
        }
    }

    pub(super) fn unpack(kind: PostKind, bytes: &Bytes) -> Self {
        let [first, second, third, _] = numbers(bytes);
        if kind != PostKind::Amo {
            return Self {
                immediate: (first & 1 != 0).then_some(second as u32),
                confirmed: first & 2 != 0,
                into: (third >> 32) as u32,
                len: third as u32,
                amo: None,
            };
        }
        let amo = match first {
            0 => Amo::Read,
            1 => Amo::Add(second),
            2 => Amo::And(second),
            3 => Amo::Or(second),
            4 => Amo::Xor(second),
            5 => Amo::Swap(second),
            _ => Amo::CompareSwap {
                expected: second,
                new: third,
            },
        };
        Self {
            amo: Some(amo),
            ..Self::default()
        }
    }
}

/// An event, as a desk holds it.
pub(super) fn pack(event: Event) -> Bytes {
    match event {
        Event::Done { id, value } => desk([0, id.into(), value, 0]),
        Event::Failed { id } => desk([1, id.into(), 0, 0]),
        Event::Immediate { from, immediate } => {
            desk([2, from.get().into(), u64::from(immediate), 0])
        }
    }
}

pub(crate) fn unpack(bytes: &Bytes) -> Event {
    let [kind, second, third, _] = numbers(bytes);
    match kind {
        0 => Event::Done {
            id: second as u32,
            value: third,
        },
        1 => Event::Failed { id: second as u32 },
        _ => Event::Immediate {
            from: CoreId::new(second as u16),
            immediate: third as u32,
        },
    }
}
