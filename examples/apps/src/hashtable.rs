//! A hash table over all ranks, with an overflow heap on each. A key belongs to one place of one
//! rank, and all ranks insert keys of any rank. A key whose place is taken goes into an element of
//! the heap of the same rank, which is linked in before those that are there.
//!
//! ```text
//!                      table             heap
//!   element     0     1     2     3     4     5     6
//!            ┌─────┬─────┬─────┬─────┬─────┬─────┬─────┐
//!   key      │  2  │  a  │     │  b  │  c  │  d  │     │   a, c and d belong to place 1, and have
//!   next     │     │  5  │     │  0  │  0  │  4  │     │   come in this order; 0 ends a chain
//!            └─────┴─────┴─────┴─────┴─────┴─────┴─────┘
//!              2: elements of the heap that are used
//! ```
//! | variant | a key is inserted by |
//! |---|---|
//! | `messages` | its owner, which serves what it is sent until all ranks have sent all |
//! | `fence` | the rank that has it, by three atomic operations; its owner does nothing for it |
//!
//! No rank waits for a key, so there is nothing to notify: the fence after all keys is enough.
//! Work: keys. The serial run has the keys of all ranks, sorts those of this rank, and finds them
//! in its table, each in the chain of its place.
//!
//! Source: [foMPI] 4.1.
//!
//! [foMPI]: flagpost#sources

use flagpost::{
    Error, Link, Rank, Request, Rma, Tag, TagFilter, Window, World, bytemuck, epoch::Assert,
    rma::Operation,
};

use crate::{
    Job, Outcome, Program, Size, Variant, Wrong, check, product, random, sum, take, timed,
};

/// Its row of the table.
pub fn program<L: Link>() -> Program<L> {
    Program {
        name: "hashtable",
        unit: "insert",
        variants: &[Variant::Messages, Variant::Fence],
        published: None,
        small: Size {
            side: 16,
            steps: 24,
        },
        memory: |ranks, size| {
            let shape = Shape::new(ranks, size);
            // A table, what the serial run expects in it, what is there, and free mailboxes.
            let serial = product([2, shape.elements()]);
            sum([shape.len(), serial, ranks.into()])
        },
        run,
    }
}

/// A place that holds no key.
const FREE: u64 = 0;
/// After the last key of a chain.
const END: u64 = 0;
/// Where a rank counts the elements of its heap that are used.
const USED: usize = 0;

/// How many elements a rank has, and which are for what.
#[derive(Copy, Clone, Debug)]
struct Shape {
    ranks: u16,
    places: usize,
    heap: usize,
}

impl Shape {
    /// As many elements of the heap as a rank inserts keys, and more for the spread: the number of
    /// keys that a rank gets differs by about the root of their mean.
    fn new(ranks: u16, size: Size) -> Self {
        let keys = size.steps as usize;
        Self {
            ranks,
            places: size.side.max(1) as usize,
            heap: keys.saturating_add(8 * keys.isqrt() + 32),
        }
    }

    /// The rank that a key belongs to, and its place there.
    fn home(self, key: u64) -> (Rank, usize) {
        let ranks = u64::from(self.ranks);
        let owner = Rank::new((key % ranks) as u16);
        (owner, 1 + (key / ranks) as usize % self.places)
    }

    /// The element of the heap that is free when `used` are not.
    fn free(self, used: u64) -> Result<usize, Wrong> {
        match (used as usize) < self.heap {
            true => Ok(1 + self.places + used as usize),
            false => Err(Wrong::Full("a heap")),
        }
    }

    fn elements(self) -> usize {
        sum([1, self.places, self.heap])
    }

    /// Words of a table.
    fn len(self) -> usize {
        product([2, self.elements()])
    }
}

/// Where an element has its key,
const fn key(element: usize) -> usize {
    2 * element
}

/// and the number of the next one.
const fn next(element: usize) -> usize {
    2 * element + 1
}

/// The keys of a rank: of all ranks, no two are the same.
fn keys(rank: Rank, size: Size) -> impl Iterator<Item = u64> {
    let first = u64::from(rank.get()) * u64::from(size.steps);
    (first..first + u64::from(size.steps)).map(random)
}

/// Side: places of a rank's table. Steps: keys that each rank inserts.
fn run<L: Link>(world: &World<'_, L>, job: Job<'_>) -> Result<Outcome, Wrong> {
    let (size, mut memory) = (job.size, job.memory);
    let (me, shape) = (world.rank(), Shape::new(world.size(), size));
    let table: &mut [u64] = bytemuck::cast_slice_mut(take(&mut memory, shape.len())?);
    table.fill(FREE);
    let outcome = match job.variant {
        Variant::Messages => {
            let window = world.allocate(shape.ranks.into())?;
            let free = take(&mut memory, shape.ranks.into())?;
            let mut owner = Owner::new(&window, shape, table, free)?;
            let outcome = timed(world, || owner.insert_all(keys(me, size)))?;
            owner.messages.free()?;
            outcome
        }
        _ => {
            let window = world.allocate(shape.len())?;
            let outcome = timed(world, || {
                let epoch = window.fence(Assert::empty())?;
                for key in keys(me, size) {
                    insert(&epoch, shape, key)?;
                }
                Ok(epoch.end()?)
            })?;
            window.local().copy_out(0, table)?;
            outcome
        }
    };
    let all = (0..shape.ranks).flat_map(|rank| keys(Rank::new(rank), size));
    let mine = all.filter(|&key| shape.home(key).0 == me);
    compare(shape, table, mine, &mut memory)?;
    Ok(Outcome {
        work: u64::from(size.steps) * u64::from(shape.ranks),
        ..outcome
    })
}

/// Inserts a key into the table of its owner, by atomic operations.
fn insert<'w, L: Link + 'w>(
    tables: &impl Rma<'w, u64, L>,
    shape: Shape,
    new: u64,
) -> Result<(), Wrong> {
    let (owner, place) = shape.home(new);
    if tables.compare_and_swap(owner, key(place), FREE, new)? == FREE {
        return Ok(());
    }
    let used = tables.fetch_and_op(owner, USED, 1, Operation::SUM)?;
    let element = shape.free(used)?;
    let mut first = END;
    loop {
        let found = tables.compare_and_swap(owner, next(place), first, element as u64)?;
        if found == first {
            break;
        }
        first = found;
    }
    // No rank follows the chain before the fence: its elements may be filled after they are linked.
    Ok(tables.put(owner, key(element), &[new, first])?)
}

/// The same for a table of this rank.
fn insert_here(table: &mut [u64], shape: Shape, new: u64) -> Result<(), Wrong> {
    let (_, place) = shape.home(new);
    if table[key(place)] == FREE {
        table[key(place)] = new;
        return Ok(());
    }
    let element = shape.free(table[USED])?;
    table[USED] += 1;
    table[key(element)] = new;
    table[next(element)] = core::mem::replace(&mut table[next(place)], element as u64);
    Ok(())
}

/// A message is a key,
const KEY: Tag = Tag(0);
/// an answer: it is in the table, and the mailbox free;
const DONE: Tag = Tag(1);
/// or there will be no more keys.
const LAST: Tag = Tag(2);

/// A rank that inserts what it is sent. It has a mailbox for each rank.
struct Owner<'a, 'w, L: Link> {
    mailboxes: &'a Window<'w, u64, L>,
    /// Any of any rank.
    messages: Request<'a, L>,
    shape: Shape,
    table: &'a mut [u64],
    /// For each rank 1 if this rank's mailbox there is free.
    free: &'a mut [f64],
    /// Ranks that have keys left.
    busy: u16,
}

impl<'a, 'w, L: Link> Owner<'a, 'w, L> {
    fn new(
        mailboxes: &'a Window<'w, u64, L>,
        shape: Shape,
        table: &'a mut [u64],
        free: &'a mut [f64],
    ) -> Result<Self, Error> {
        free.fill(1.0);
        let mut messages = mailboxes.expect(0..shape.ranks.into(), TagFilter::Any)?;
        messages.start()?;
        Ok(Self {
            mailboxes,
            messages,
            shape,
            table,
            free,
            busy: shape.ranks - 1,
        })
    }

    /// Sends keys to their owners, and serves other ranks meanwhile and until they have no more.
    fn insert_all(&mut self, keys: impl Iterator<Item = u64>) -> Result<(), Wrong> {
        let me = self.mailboxes.world().rank();
        for key in keys {
            let (owner, _) = self.shape.home(key);
            if owner == me {
                insert_here(self.table, self.shape, key)?;
                continue;
            }
            while self.free[owner.index()] == 0.0 {
                self.serve()?;
            }
            self.free[owner.index()] = 0.0;
            self.mailboxes.put_notify(owner, me.index(), &[key], KEY)?;
        }
        while self.free.contains(&0.0) {
            self.serve()?;
        }
        for rank in (0..self.shape.ranks).map(Rank::new) {
            if rank != me {
                self.mailboxes.notify(rank, LAST)?;
            }
        }
        while self.busy > 0 {
            self.serve()?;
        }
        Ok(())
    }

    /// Waits for a message, and does what it says.
    fn serve(&mut self) -> Result<(), Wrong> {
        let message = self.messages.wait()?;
        let source = message.source;
        match message.tag {
            KEY => {
                let key = self.mailboxes.local().get(source.index())?;
                insert_here(self.table, self.shape, key)?;
                self.mailboxes.notify(source, DONE)?;
            }
            DONE => self.free[source.index()] = 1.0,
            _ => self.busy -= 1,
        }
        Ok(self.messages.start()?)
    }
}

/// `Ok` if the table holds the keys of this rank, each once, in the chain of its place.
fn compare(
    shape: Shape,
    table: &[u64],
    mine: impl Iterator<Item = u64>,
    memory: &mut &mut [f64],
) -> Result<(), Wrong> {
    let expected = take(memory, shape.elements())?;
    let found = take(memory, shape.elements())?;
    let expected = sorted(expected, mine)?;
    let found = sorted(found, chains(shape, table))?;
    let twice = found.windows(2).filter(|pair| pair[0] == pair[1]).count();
    check("keys that are there twice", twice as f64, 0.0)?;
    check("keys", found.len() as f64, expected.len() as f64)?;
    for (&found, &expected) in found.iter().zip(expected) {
        check("key", found, expected)?;
    }
    for place in 1..=shape.places {
        for key in chain(table, place) {
            check("place", shape.home(key).1 as f64, place as f64)?;
        }
    }
    Ok(())
}

/// The keys, sorted, in `memory`.
fn sorted(memory: &mut [f64], keys: impl Iterator<Item = u64>) -> Result<&[f64], Wrong> {
    let mut count = 0;
    for key in keys {
        *memory.get_mut(count).ok_or(Wrong::Full("a table"))? = key as f64;
        count += 1;
    }
    let keys = &mut memory[..count];
    keys.sort_unstable_by(f64::total_cmp);
    Ok(keys)
}

/// The keys of all chains.
fn chains(shape: Shape, table: &[u64]) -> impl Iterator<Item = u64> {
    (1..=shape.places).flat_map(|place| chain(table, place))
}

/// The keys from the place on, or none if it is free.
fn chain(table: &[u64], place: usize) -> impl Iterator<Item = u64> {
    let first = (table[key(place)] != FREE).then_some(place);
    let after = |&element: &usize| match table.get(next(element)) {
        None | Some(&END) => None,
        Some(&element) => Some(element as usize),
    };
    // As many as there are elements at most: a chain that is broken may go round.
    core::iter::successors(first, after)
        .take(table.len() / 2)
        .map(|element| table.get(key(element)).copied().unwrap_or(FREE))
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec;

    use super::*;

    /// Whichever it is of the keys that a rank gets.
    #[test]
    fn a_key_that_is_missing_or_there_twice_is_found() {
        let size = Size { side: 4, steps: 12 };
        let shape = Shape::new(2, size);
        let all = || (0..2).flat_map(|rank| keys(Rank::new(rank), size));
        let mine = || all().filter(|&key| shape.home(key).0 == Rank::new(0));
        let told = |inserted: &mut dyn Iterator<Item = u64>| {
            let table = &mut vec![FREE; shape.len()];
            inserted.for_each(|key| insert_here(table, shape, key).unwrap());
            compare(
                shape,
                table,
                mine(),
                &mut &mut *vec![0.0; 2 * shape.elements()],
            )
        };
        assert_eq!(told(&mut mine()), Ok(()));
        for key in mine() {
            let is_told = |outcome| matches!(outcome, Err(Wrong::Value { .. }));
            assert!(is_told(told(&mut mine().filter(|other| *other != key))));
            assert!(is_told(told(&mut mine().chain([key]))));
        }
    }

    #[test]
    fn a_heap_has_room_for_all_keys_of_its_rank() {
        for ranks in [2, 4, 48] {
            for steps in [1, 24, 1024, 16_384] {
                let size = Size { side: 1, steps };
                let shape = Shape::new(ranks, size);
                let mut counts = vec![0; usize::from(ranks)];
                for key in (0..ranks).flat_map(|rank| keys(Rank::new(rank), size)) {
                    counts[shape.home(key).0.index()] += 1;
                }
                assert!(counts.iter().all(|&count| count <= shape.heap), "{shape:?}");
            }
        }
    }
}
