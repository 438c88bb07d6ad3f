//! How an access tells its target of itself, once its arguments have been checked.

use flagpost_link::{Amo, Key, Link, Op, Rank, Refusal, Width};

/// A notice whose arguments have been checked.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Checked {
    /// Goes through the target's queue.
    Immediate { immediate: u32, inline: bool },
    /// Changes a word of the target's.
    Cell { key: Key, offset: usize, amo: Amo },
}

/// A notice that is being told.
#[derive(Debug)]
pub(crate) struct Telling<'r> {
    to: Rank,
    notice: Checked,
    /// The data that go with an immediate, and their place.
    data: &'r [u8],
    place: (Key, usize),
    /// Earlier accesses are ordered.
    ordered: bool,
    told: bool,
}

impl<'r> Telling<'r> {
    /// `notice` to `to`. `data` is put to `place` of it by the same message: nothing, but for an
    /// immediate.
    pub(crate) fn new(to: Rank, notice: Checked, place: (Key, usize), data: &'r [u8]) -> Self {
        Self {
            to,
            notice,
            data,
            place,
            ordered: false,
            told: false,
        }
    }

    /// True if it has been told.
    pub(crate) fn is_done(&self) -> bool {
        self.told
    }

    /// Tells, unless that is done. `op` is that of the access, which has been answered.
    pub(crate) fn attempt<L: Link>(&mut self, link: &L, op: &Op) -> Result<(), Refusal> {
        if self.told {
            return Ok(());
        }
        match self.notice {
            Checked::Immediate { immediate, inline } => {
                link.put_immediate(self.to, self.place, self.data, immediate, inline, op)?;
            }
            Checked::Cell { key, offset, amo } => {
                if !self.ordered {
                    point!(ORDER "G2: the access comes before the cell that notifies of it":
                        "notify.notice.fence", link.fence()?);
                    self.ordered = true;
                }
                link.amo(self.to, key, offset, amo, Width::of::<L::Word>(), op)?;
            }
        }
        self.told = true;
        Ok(())
    }
}
