//! A window's counters: where they lie on each rank, and how their owner changes them. Numbers of
//! counters differ from rank to rank, so each rank keeps a table of all.
//! [`notify::words`](crate::notify::words) says what they are for.

use core::cell::Cell;

use flagpost_link::{Amo, Key, Link, Op, Place, Rank, Width, Word as _};

use super::Core;
use crate::{Error, World};

/// Bytes of a cell.
pub(crate) const CELL: usize = 8;

/// Words per rank of a table: key and number of its counters.
const ROW: usize = 2;

/// A window's counters as a rank knows them.
#[derive(Debug)]
pub(crate) struct Counters<'w> {
    /// A [`ROW`] per rank; then, per counter of this rank, the largest number that a request for
    /// it has reached since it was changed last. Empty as long as nobody has any.
    pub(crate) table: &'w [Cell<u32>],
    /// A new set that not all ranks have answered yet.
    pub(crate) coming: Option<Coming<'w>>,
    /// A change of a counter of this rank that has begun and was not answered.
    pub(crate) begun: Cell<Option<(usize, Amo)>>,
    op: Op,
}

/// A new set of counters.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Coming<'w> {
    /// The cells that this rank has taken for it.
    pub(crate) taken: Result<Taken<'w>, Error>,
    /// These counters are 0.
    pub(crate) cleared: bool,
    /// The first rank that has none, or called for another window.
    pub(crate) differs: Option<Rank>,
}

/// The memory of a set.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Taken<'w> {
    pub(crate) table: &'w [Cell<u32>],
    key: Key,
    count: u32,
}

impl Coming<'_> {
    /// Clears this rank's counters of `window`, and waits for all ranks.
    pub(crate) fn hear<L: Link>(&mut self, world: &World<'_, L>, window: u16) -> Result<(), Error> {
        if let (Ok(Taken { key, count, .. }), false) = (self.taken, self.cleared) {
            let bytes = (count as usize).saturating_mul(CELL);
            point!(CLEAR "G2: the cells hold what this memory was":
                "counters.set.clear", world.clear_cells(key, bytes)?);
            self.cleared = true;
        }
        // Not 0 but for a failure.
        let window = u32::from(window).saturating_add(1);
        let mine = match self.taken {
            Ok(Taken { key, count, .. }) => [window, key.get(), count],
            Err(_) => [0; 3],
        };
        world.tell_all(mine, |rank, [theirs, key, count]: [u32; 3]| {
            if theirs != window {
                self.differs = self.differs.or(Some(rank));
            }
            if let Ok(Taken { table, .. }) = self.taken {
                let (rows, _) = table.as_chunks::<ROW>();
                for (word, value) in rows
                    .get(rank.index())
                    .into_iter()
                    .flatten()
                    .zip([key, count])
                {
                    Cell::set(word, value);
                }
            }
        })
    }
}

impl Counters<'_> {
    pub(crate) const fn none() -> Self {
        Self {
            table: &[],
            coming: None,
            begun: Cell::new(None),
            op: Op::new(),
        }
    }

    /// Key and number of `rank`'s counters.
    pub(crate) fn row(&self, rank: Rank) -> (Key, u32) {
        row(self.table, rank)
    }
}

fn row(table: &[Cell<u32>], rank: Rank) -> (Key, u32) {
    let (rows, _) = table.as_chunks::<ROW>();
    match rows.get(rank.index()) {
        Some([key, count]) => (Key::new(key.get()), count.get()),
        None => (Key::new(0), 0),
    }
}

impl<'w, L: Link> World<'w, L> {
    /// Takes memory for `count` counters of this rank, and for a table. Takes nothing if it fails.
    pub(crate) fn take_counters(&'w self, count: u32) -> Result<Taken<'w>, Error> {
        let bytes = (count as usize)
            .checked_mul(CELL)
            .ok_or(Error::MemoryFull {
                missing_bytes: usize::MAX,
            })?;
        let key = match count {
            0 => Key::new(0),
            _ => self.link().allocate(bytes, Place::Own)?,
        };
        let words = self.reached_at(count);
        let table = self.arena.take(words).inspect_err(|_| {
            if count > 0 {
                self.link().withdraw(key);
            }
        })?;
        Ok(Taken { table, key, count })
    }

    /// Where a table has the number that requests for counter `index` have reached.
    fn reached_at(&self, index: u32) -> usize {
        let rows = usize::from(self.size()).saturating_mul(ROW);
        rows.saturating_add(index as usize)
    }

    pub(crate) fn give_counters_back(&self, Taken { table, key, count }: Taken<'_>) {
        if count > 0 {
            self.link().withdraw(key);
        }
        self.arena.give_back(table);
    }

    /// Gives back what a window's counters took.
    pub(crate) fn discard_counters(&self, counters: &Counters<'_>) {
        self.link().abandon(&counters.op);
        let table = counters.table;
        if !table.is_empty() {
            let (key, count) = counters.row(self.rank());
            self.give_counters_back(Taken { table, key, count });
        }
        if let Some(Coming {
            taken: Ok(taken), ..
        }) = counters.coming
        {
            self.give_counters_back(taken);
        }
    }
}

impl<'w, L: Link> Core<'w, L> {
    /// Where counter `index` of `rank`'s lies.
    pub(crate) fn counter(&self, rank: Rank, index: u32) -> Result<(Key, usize), Error> {
        self.world.check_rank(rank)?;
        let (key, count) = self.counters.row(rank);
        if index >= count {
            return Err(Error::NoSuchCounter { rank, index, count });
        }
        Ok((key, (index as usize).saturating_mul(CELL)))
    }

    /// The number that requests for a counter of this rank have reached since its last change.
    pub(crate) fn reached(&self, index: u32) -> Option<&'w Cell<u32>> {
        self.counters.table.get(self.world.reached_at(index))
    }

    /// Where a counter of this rank lies.
    pub(crate) fn own_counter(&self, index: u32) -> Result<(Key, usize), Error> {
        self.counter(self.world.rank(), index)
    }

    /// Does `amo` to a counter of this rank, or continues it. Gives its former value.
    pub(crate) fn change_counter(&self, index: u32, amo: Amo) -> Result<L::Word, Error> {
        let (key, offset) = self.own_counter(index)?;
        self.world.note_poll()?;
        let (counters, wanted) = (&self.counters, (offset, amo));
        // One that was given up may have had its effect: it has it before the next one.
        if let Some((offset, amo)) = counters.begun.get().filter(|begun| *begun != wanted) {
            self.go_on_with(key, offset, amo)?;
        }
        self.go_on_with(key, offset, amo)
    }

    /// Does it, or continues it. The counter has reached nothing yet for requests.
    fn go_on_with(&self, key: Key, offset: usize, amo: Amo) -> Result<L::Word, Error> {
        let (world, Counters { begun, op, .. }) = (self.world, &self.counters);
        let (link, me) = (world.link(), world.rank());
        begun.set(Some((offset, amo)));
        let old = world
            .wait()
            .retry(|| link.amo(me, key, offset, amo, Width::of::<L::Word>(), op));
        if old.is_ok() || !op.is_under_way() {
            begun.set(None);
        }
        let old = old?;
        let index = u32::try_from(offset.checked_div(CELL).unwrap_or(0)).unwrap_or(u32::MAX);
        if let Some(reached) = self.reached(index) {
            reached.set(0);
        }
        Ok(L::Word::low(old))
    }
}
