//! Where the elements of an access lie: in the target's piece, and in the origin's slices. A
//! program names a layout, and the kernel cuts the access into pieces that lie together. Short
//! pieces are packed, so that the link has fewer of them to move.
//!
//! # Mental model
//! ```text
//!   contiguous  ■■■■■■
//!   vector      ■■··■■··■■        blocks of the same length, a stride apart
//!   indexed     ■·■■■··■          blocks anywhere, in the order of the list
//!   fields      ■·■···■·■···      the same bytes of each record
//! ```
//! Both sides have a layout of their own; what counts is that they hold as many bytes. The first
//! byte of the one goes to the first of the other, and so on. Where blocks of one side overlap, a
//! put leaves one of the values, and an accumulate is done to the element once for each.
//!
//! # How they travel
//! A *run* is what lies together on one side: neighbouring blocks are one. An access moves *maximal
//! blocks*, the longest pieces that lie together on both sides. A put or get whose pieces are short
//! while the target's run is longer is *packed* instead: it moves the run through a buffer of
//! [`BUFFER`] bytes, which is filled from, or scattered to, the origin's blocks. Accumulates always
//! are, in pieces of one [`Access::update`](flagpost_link::Access::update).
//!
//! The target's gaps are never touched.
//!
//! # Which is used when
//! Pieces are packed that are shorter than a word (4 bytes), where peers' memory is reached by
//! loads and stores ([`Link::DIRECT`](flagpost_link::Link::DIRECT)); shorter than the buffer on
//! other links, where each piece is a message.
//!
//! The write-combining buffer packs stores anyway, and loads are of words: from a word on, packing
//! would only copy. `cargo test -p flagpost-tests --test host rma::short -- --nocapture` prints the
//! cycles of both ways, and fails if the choice is not the cheaper one.
//!
//! # Source
//! [foMPI] 2.4 packs puts while the target is contiguous, and uses maximal blocks for all else. We
//! differ: gets are packed as well.
//!
//! [foMPI]: crate#sources

use core::marker::PhantomData;

use crate::Error;

/// Bytes of the buffer that short pieces are packed through.
pub const BUFFER: usize = 64;

/// Some consecutive elements (of [`Layout::Fields`]: bytes of a record).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Where they start.
    pub at: usize,
    /// How many there are.
    pub len: usize,
}

/// Which elements of a piece, or of a slice, an access is about. Positions are elements, counted
/// from where the access starts.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Layout<'a> {
    /// All of them, one after the other.
    Contiguous {
        /// How many there are.
        count: usize,
    },
    /// Blocks of the same length.
    Vector {
        /// How many there are.
        blocks: usize,
        /// Elements in each.
        block_len: usize,
        /// From the start of one to the start of the next.
        stride: usize,
    },
    /// Blocks anywhere.
    Indexed {
        /// Where they are, in the order of the elements.
        blocks: &'a [Block],
    },
    /// Some fields of each of a number of records: for puts and gets of windows whose elements are
    /// structures.
    Fields {
        /// Consecutive records.
        records: usize,
        /// Which bytes of each.
        fields: &'a [Block],
    },
}

/// A slice of elements `U`, and which of them an access takes from it for a target of elements `T`.
#[derive(Copy, Clone, Debug)]
pub struct Gather<'a, T, U = T> {
    pub(super) data: &'a [U],
    pub(super) layout: Layout<'a>,
    target: PhantomData<fn(T)>,
}

impl<'a, T, U> Gather<'a, T, U> {
    /// The elements of `data` that `layout` names.
    pub const fn new(data: &'a [U], layout: Layout<'a>) -> Self {
        Self {
            data,
            layout,
            target: PhantomData,
        }
    }
}

/// All of a slice, an array, a vector.
impl<'a, T, A: AsRef<[T]> + ?Sized> From<&'a A> for Gather<'a, T> {
    fn from(data: &'a A) -> Self {
        let data = data.as_ref();
        let count = data.len();
        Self::new(data, Layout::Contiguous { count })
    }
}

/// A slice of elements `U`, and which of them an access to a target of elements `T` fills. The
/// others stay.
#[derive(Debug)]
pub struct Scatter<'a, T, U = T> {
    pub(super) data: &'a mut [U],
    pub(super) layout: Layout<'a>,
    target: PhantomData<fn() -> T>,
}

impl<'a, T, U> Scatter<'a, T, U> {
    /// The elements of `data` that `layout` names.
    pub const fn new(data: &'a mut [U], layout: Layout<'a>) -> Self {
        Self {
            data,
            layout,
            target: PhantomData,
        }
    }
}

/// All of a slice, an array, a vector.
impl<'a, T, A: AsMut<[T]> + ?Sized> From<&'a mut A> for Scatter<'a, T> {
    fn from(data: &'a mut A) -> Self {
        let data = data.as_mut();
        let count = data.len();
        Self::new(data, Layout::Contiguous { count })
    }
}

impl<'a> Layout<'a> {
    /// Elements from the start to after the last one, and bytes in all of `T`s, if they can be
    /// counted.
    fn measure<T>(&self) -> Option<(usize, usize)> {
        let size = size_of::<T>();
        let furthest = |blocks: &[Block]| {
            blocks
                .iter()
                .filter(|block| block.len > 0)
                .try_fold(0_usize, |end, block| {
                    Some(end.max(block.at.checked_add(block.len)?))
                })
        };
        let sum = |blocks: &[Block]| {
            let mut lens = blocks.iter().map(|block| block.len);
            lens.try_fold(0_usize, usize::checked_add)
        };
        match *self {
            Self::Contiguous { count } => Some((count, count.checked_mul(size)?)),
            Self::Vector {
                blocks,
                block_len,
                stride,
            } => {
                let Some(last) = blocks.checked_sub(1).filter(|_| block_len > 0) else {
                    return Some((0, 0));
                };
                let end = last.checked_mul(stride)?.checked_add(block_len)?;
                let count = blocks.checked_mul(block_len)?;
                Some((end, count.checked_mul(size)?))
            }
            Self::Indexed { blocks } => Some((furthest(blocks)?, sum(blocks)?.checked_mul(size)?)),
            Self::Fields { records, fields } => {
                let inside = furthest(fields)? <= size;
                let bytes = sum(fields)?.checked_mul(records)?;
                inside.then_some((records, bytes))
            }
        }
    }

    /// Checks that it lies within `len` elements `T`, and gives its bytes.
    ///
    /// # Errors
    /// [`Error::OutOfRange`].
    pub(super) fn check<T>(&self, len: usize) -> Result<usize, Error> {
        let (end, bytes) = self.extent::<T>(len)?;
        if end > len {
            return Err(Error::OutOfRange {
                end: end as u64,
                len: len as u64,
            });
        }
        Ok(bytes)
    }

    /// Elements from the start to after the last one, and bytes in all.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], if they cannot be counted, or fields lie outside of their records.
    pub(super) fn extent<T>(&self, len: usize) -> Result<(usize, usize), Error> {
        self.measure::<T>().ok_or(Error::OutOfRange {
            end: u64::MAX,
            len: len as u64,
        })
    }

    /// True if its elements lie one after the other, by its own words.
    pub(super) const fn is_contiguous(&self) -> bool {
        matches!(self, Self::Contiguous { .. })
    }

    /// True if its blocks are bytes, not elements.
    pub(super) const fn is_in_bytes(&self) -> bool {
        matches!(self, Self::Fields { .. })
    }

    /// Block number `index`, in bytes. Nothing overflows if it was measured.
    fn block(&self, index: usize, size: usize) -> Option<Block> {
        let scaled = |at: usize, len: usize| Block {
            at: at.wrapping_mul(size),
            len: len.wrapping_mul(size),
        };
        match *self {
            Self::Contiguous { count } => (index == 0).then(|| scaled(0, count)),
            Self::Vector {
                blocks,
                block_len,
                stride,
            } => (index < blocks).then(|| scaled(index.wrapping_mul(stride), block_len)),
            Self::Indexed { blocks } => blocks.get(index).map(|block| scaled(block.at, block.len)),
            Self::Fields { records, fields } => {
                let record = index.checked_div(fields.len())?;
                let field = fields.get(index.checked_rem(fields.len())?)?;
                (record < records).then(|| Block {
                    at: record.wrapping_mul(size).wrapping_add(field.at),
                    len: field.len,
                })
            }
        }
    }
}

/// A place in a layout that has been checked: walks over its runs, in bytes.
#[derive(Copy, Clone, Debug)]
pub(super) struct Cursor<'a> {
    layout: Layout<'a>,
    size: usize,
    /// The next block.
    next: usize,
    /// The rest of the run.
    run: Block,
}

impl<'a> Cursor<'a> {
    /// The start of a layout of elements `T`.
    pub(super) fn new<T>(layout: Layout<'a>) -> Self {
        Self {
            layout,
            size: size_of::<T>(),
            next: 0,
            run: Block { at: 0, len: 0 },
        }
    }

    /// The bytes that lie together from here on; nothing at the end.
    pub(super) fn run(&mut self) -> Option<Block> {
        while let Some(block) = self.layout.block(self.next, self.size) {
            if self.run.len == 0 {
                self.run = block;
            } else if block.at == self.run.at.wrapping_add(self.run.len) {
                self.run.len = self.run.len.wrapping_add(block.len);
            } else if block.len > 0 {
                break;
            }
            self.next = self.next.wrapping_add(1);
        }
        (self.run.len > 0).then_some(self.run)
    }

    /// Goes `bytes` further on in this run.
    pub(super) fn advance(&mut self, bytes: usize) {
        self.run = Block {
            at: self.run.at.wrapping_add(bytes),
            len: self.run.len.saturating_sub(bytes),
        };
    }

    /// Copies the next bytes of `from` to the start of `into`, as many as there are; how many.
    pub(super) fn gather(&mut self, from: &[u8], into: &mut [u8]) -> usize {
        let mut done = 0_usize;
        while let Some(run) = self.run() {
            let rest = into.get_mut(done..).unwrap_or_default();
            let len = run.len.min(rest.len());
            if len == 0 {
                break;
            }
            let source = from.get(run.at..).unwrap_or_default();
            for (to, byte) in rest.iter_mut().zip(source).take(len) {
                *to = *byte;
            }
            self.advance(len);
            done = done.wrapping_add(len);
        }
        done
    }

    /// Copies `from` to the next bytes of `into`.
    pub(super) fn scatter(&mut self, from: &[u8], into: &mut [u8]) {
        let mut done = 0_usize;
        while let Some(run) = self.run() {
            let rest = from.get(done..).unwrap_or_default();
            let len = run.len.min(rest.len());
            if len == 0 {
                break;
            }
            let target = into.get_mut(run.at..).unwrap_or_default();
            for (to, byte) in target.iter_mut().zip(rest).take(len) {
                *to = *byte;
            }
            self.advance(len);
            done = done.wrapping_add(len);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn block(at: usize, len: usize) -> Block {
        Block { at, len }
    }

    fn runs<T>(layout: Layout<'_>) -> Vec<(usize, usize)> {
        let mut cursor = Cursor::new::<T>(layout);
        let mut runs = Vec::new();
        while let Some(run) = cursor.run() {
            runs.push((run.at, run.len));
            cursor.advance(run.len);
        }
        runs
    }

    extern crate std;
    use std::vec::Vec;

    #[test]
    fn neighbours_are_one_run() {
        let vector = |blocks, block_len, stride| Layout::Vector {
            blocks,
            block_len,
            stride,
        };
        assert_eq!(runs::<u32>(Layout::Contiguous { count: 3 }), [(0, 12)]);
        assert_eq!(runs::<u32>(vector(3, 2, 2)), [(0, 24)]);
        assert_eq!(runs::<u16>(vector(2, 1, 3)), [(0, 2), (6, 2)]);
        assert_eq!(runs::<u16>(vector(2, 0, 3)), []);
        let blocks = [block(4, 1), block(9, 0), block(5, 2), block(1, 1)];
        let indexed = Layout::Indexed { blocks: &blocks };
        assert_eq!(runs::<u8>(indexed), [(4, 3), (1, 1)]);
        let fields = [block(0, 1), block(4, 4)];
        let fields = Layout::Fields {
            records: 2,
            fields: &fields,
        };
        // The last field of a record and the first of the next are neighbours.
        assert_eq!(runs::<u64>(fields), [(0, 1), (4, 5), (12, 4)]);
        assert_eq!(runs::<()>(Layout::Contiguous { count: 9 }), []);
    }

    #[test]
    fn what_cannot_be_counted_is_out_of_range() {
        let far = [block(usize::MAX, 1)];
        let long = [block(0, usize::MAX), block(0, 1)];
        let outside = [block(7, 2)];
        for layout in [
            Layout::Contiguous { count: usize::MAX },
            Layout::Vector {
                blocks: 3,
                block_len: 1,
                stride: usize::MAX,
            },
            Layout::Vector {
                blocks: usize::MAX,
                block_len: 2,
                stride: 0,
            },
            Layout::Indexed { blocks: &far },
            Layout::Indexed { blocks: &long },
            Layout::Fields {
                records: 1,
                fields: &outside,
            },
            Layout::Fields {
                records: 9,
                fields: &long[..1],
            },
        ] {
            let end = u64::MAX;
            assert_eq!(
                layout.check::<u64>(100),
                Err(Error::OutOfRange { end, len: 100 }),
                "{layout:?}"
            );
        }
        let last = Layout::Vector {
            blocks: 2,
            block_len: 1,
            stride: 99,
        };
        assert_eq!(last.check::<u64>(100), Ok(16));
        let beyond = Error::OutOfRange { end: 100, len: 99 };
        assert_eq!(last.check::<u64>(99), Err(beyond));
    }

    #[test]
    fn bytes_go_through_a_buffer_and_back() {
        let data: [u8; 12] = core::array::from_fn(|i| i as u8);
        let every_other = Layout::Vector {
            blocks: 6,
            block_len: 1,
            stride: 2,
        };
        let mut cursor = Cursor::new::<u8>(every_other);
        let mut buffer = [0; 4];
        assert_eq!(cursor.gather(&data, &mut buffer), 4);
        assert_eq!(buffer, [0, 2, 4, 6]);
        assert_eq!(cursor.gather(&data, &mut buffer), 2);
        assert_eq!(buffer, [8, 10, 4, 6]);
        let mut back = [9; 12];
        let mut cursor = Cursor::new::<u8>(every_other);
        cursor.scatter(&[1, 2], &mut back);
        cursor.scatter(&[3], &mut back);
        assert_eq!(back, [1, 9, 2, 9, 3, 9, 9, 9, 9, 9, 9, 9]);
    }
}
