//! The pieces of a get.

use flagpost_link::Op;

/// How far a get is: some bytes have come, and some more were asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Pieces {
    pub(crate) come: u32,
    pub(crate) asked: u32,
    /// Bytes of the whole, and at most of a piece.
    whole: u32,
    most: u32,
}

impl Pieces {
    /// How far `op` is, which is a get of `whole` bytes.
    pub(crate) fn of(op: &Op, whole: u32, most: u32) -> Self {
        let seen = op.seen.get();
        Self {
            come: (seen as u32).min(whole),
            asked: ((seen >> 32) as u32).min(whole),
            whole,
            most,
        }
    }

    /// Notes how far `op` is.
    pub(crate) fn keep(&self, op: &Op) {
        op.seen
            .set(u64::from(self.asked) << 32 | u64::from(self.come));
    }

    pub(crate) fn have_come(&self) -> bool {
        self.come >= self.whole
    }

    /// The next piece to ask for: where it starts, and how long it is.
    pub(crate) fn next(&self) -> Option<(u32, u32)> {
        let rest = self.whole.saturating_sub(self.asked);
        (rest > 0).then_some((self.asked, rest.min(self.most)))
    }

    /// The piece that comes next.
    pub(crate) fn oldest(&self) -> (u32, u32) {
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
