//! The pieces of a get.

use flagpost_link::Op;

/// How far a get is: some bytes have come, and some more were asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Pieces {
    pub(crate) come: usize,
    pub(crate) asked: usize,
    /// Bytes of the whole, and at most of a piece.
    whole: usize,
    most: usize,
}

impl Pieces {
    /// How far `op` is, which is a get of `whole` bytes.
    pub(crate) fn of(op: &Op, whole: usize, most: usize) -> Self {
        let seen = op.seen.get();
        let bytes = |pieces: u32| (pieces as usize).saturating_mul(most).min(whole);
        Self {
            come: bytes(seen as u32),
            asked: bytes((seen >> 32) as u32),
            whole,
            most,
        }
    }

    /// Notes how far `op` is: how many pieces were asked for, and have come.
    pub(crate) fn keep(&self, op: &Op) {
        let pieces = |bytes: usize| bytes.div_ceil(self.most.max(1)) as u64;
        op.seen.set(pieces(self.asked) << 32 | pieces(self.come));
    }

    pub(crate) fn have_come(&self) -> bool {
        self.come >= self.whole
    }

    /// The next piece to ask for: where it starts, and how long it is.
    pub(crate) fn next(&self) -> Option<(usize, usize)> {
        let rest = self.whole.saturating_sub(self.asked);
        (rest > 0).then_some((self.asked, rest.min(self.most)))
    }

    /// The piece that comes next.
    pub(crate) fn oldest(&self) -> (usize, usize) {
        let rest = self.whole.saturating_sub(self.come);
        (self.come, rest.min(self.most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_the_whole() {
        let op = Op::new();
        let mut covered = 0;
        while let Some((start, len)) = Pieces::of(&op, 1000, 256).next() {
            assert_eq!(start, covered);
            covered += len;
            let mut pieces = Pieces::of(&op, 1000, 256);
            pieces.asked = covered;
            pieces.keep(&op);
        }
        assert_eq!(covered, 1000);
        let mut come = 0;
        while !Pieces::of(&op, 1000, 256).have_come() {
            let mut pieces = Pieces::of(&op, 1000, 256);
            let (start, len) = pieces.oldest();
            assert_eq!(start, come);
            come += len;
            pieces.come = come;
            pieces.keep(&op);
        }
        assert_eq!(come, 1000);
    }
}
