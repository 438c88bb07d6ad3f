//! A hash table over all ranks: who inserts a key swaps it into a free place of the rank that the
//! key belongs to, which does nothing for it.
//!
//! ```sh
//! cargo build --release -p flagpost-linux --bins --examples
//! target/release/flagpost-run -n 4 target/release/examples/hashtable
//! ```
use std::process::ExitCode;

use flagpost::{Error, Link, Rank, Rma, World};

/// Places per rank,
const PLACES: usize = 4096;
/// and keys that each rank inserts. Half of them are inserted by its neighbour as well.
const KEYS: u32 = 2000;
/// A place that holds no key.
const FREE: u32 = 0;

/// Where the search for `key` begins.
fn home(key: u32, size: u16) -> (Rank, usize) {
    let hash = key.wrapping_mul(0x9E37_79B9);
    let owner = (hash >> 16) % u32::from(size);
    (Rank::new(owner as u16), hash as usize % PLACES)
}

/// The key's place and those behind it, round its owner's piece.
fn places(key: u32, size: u16) -> impl Iterator<Item = (Rank, usize)> {
    let (owner, start) = home(key, size);
    (0..PLACES).map(move |step| (owner, (start + step) % PLACES))
}

/// Inserts `key`. Whether it was not there yet; none, if its owner has no place left.
fn insert<'w, L: Link + 'w>(
    table: &impl Rma<'w, u32, L>,
    key: u32,
    size: u16,
) -> Result<Option<bool>, Error> {
    for (owner, place) in places(key, size) {
        match table.compare_and_swap(owner, place, FREE, key)? {
            FREE => return Ok(Some(true)),
            found if found == key => return Ok(Some(false)),
            _ => {}
        }
    }
    Ok(None)
}

/// Whether `key` is there.
fn contains<'w, L: Link + 'w>(
    table: &impl Rma<'w, u32, L>,
    key: u32,
    size: u16,
) -> Result<bool, Error> {
    for (owner, place) in places(key, size) {
        let mut found = [FREE];
        table.get(owner, place, &mut found)?;
        match found[0] {
            FREE => return Ok(false),
            found if found == key => return Ok(true),
            _ => {}
        }
    }
    Ok(false)
}

/// The `index`th key of `rank`.
fn key(rank: u32, index: u32, size: u16) -> u32 {
    1 + (rank * KEYS / 2 + index) % (u32::from(size) * KEYS / 2)
}

fn hashtable<L: Link>(world: &World<'_, L>) -> Result<(), Error> {
    let (me, size) = (u32::from(world.rank().get()), world.size());
    let window = world.allocate::<u32>(PLACES)?; // zeros: all places are free
    let table = window.lock_all()?;
    let mut new = 0_u32;
    for index in 0..KEYS {
        let inserted = insert(&table, key(me, index, size), size)?;
        new += u32::from(inserted.expect("there are more places than keys"));
    }
    table.flush_all()?;
    world.barrier()?;
    for index in 0..KEYS {
        let key = key(me + 1, index, size);
        assert!(contains(&table, key, size)?, "key {key} is missing");
    }
    assert!(!contains(&table, u32::MAX, size)?);
    table.unlock()?;
    let mut sum = [new];
    world.allreduce(&mut sum, |a, b| a + b)?;
    // Every key was new to one rank.
    assert_eq!(sum[0], u32::from(size) * KEYS / 2);
    if me == 0 {
        println!(
            "{} keys, each found by its neighbour, on {size} ranks",
            sum[0]
        );
    }
    Ok(())
}

fn main() -> ExitCode {
    flagpost_linux::run_in_mode!(hashtable)
}
