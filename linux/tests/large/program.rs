//! A window whose places 32 bits do not name, of which a few pages are touched.

use flagpost::prelude::*;

/// Bytes of a rank's memory, and elements of its piece: 6 GiB.
pub(crate) const MEMORY: u64 = 6 << 30 | 64 << 20;
const LEN: usize = (6 << 30) / size_of::<u64>();

/// The most bytes of pages that a rank may have touched.
const TOUCHED: u64 = 256 << 20;

/// Puts, gets, accumulates and notified puts at the border of 4 GiB, beside it and at the end: of a
/// large window, and of one that lies after it.
pub(crate) fn large<L: Link>(world: &World<'_, L>) -> Result<(), Error> {
    let (me, size) = (world.rank(), world.size());
    let (next, prev) = (me.next(size), me.prev(size));
    // Of whole pages and a few bytes, in a place that was in use: all are zeros.
    for _ in 0..2 {
        let odd = world.allocate::<u8>((1 << 20) + 100)?;
        let mut bytes = vec![1; odd.len()];
        odd.local().copy_out(0, &mut bytes)?;
        assert_eq!(bytes.iter().position(|byte| *byte != 0), None);
        odd.local().copy_in(0, &vec![7; odd.len()])?;
        odd.free()?;
    }
    let large = world.allocate::<u64>(LEN)?;
    let small = world.allocate::<u64>(8)?;
    let value = |of: flagpost::Rank, at: usize| at as u64 + (u64::from(of.get()) << 40);
    for (window, places) in [
        (&large, &[0, (1 << 29) - 1, 1 << 29, LEN - 2][..]),
        (&small, &[0, 6]),
    ] {
        let lock = window.lock_all()?;
        for at in places {
            let mut found = [1; 2];
            lock.get(next, *at, &mut found)?;
            assert_eq!(found, [0; 2], "{at}");
            let data = [value(me, *at), value(me, *at + 1)];
            lock.put(next, *at, &data)?;
            lock.flush(next)?;
            lock.accumulate(next, *at, &[1], Operation::SUM)?;
            lock.flush(next)?;
            lock.get(next, *at, &mut found)?;
            assert_eq!(found, [data[0] + 1, data[1]], "{at}");
            // No other rank puts there; the next place may be beside it.
            lock.put(next, *at, &[0; 2])?;
            lock.flush(next)?;
        }
        lock.unlock()?;
        world.barrier()?;
        for at in places {
            // Data that travel with their notification, data that do not, and many.
            for len in [1, 2, 100.min(window.len() - *at)] {
                let mut arrived = window.expect(*at..*at + len, Tag(7))?;
                arrived.start()?;
                world.barrier()?;
                let data = vec![value(me, *at + len); len];
                window.put_notify(next, *at, &data, Tag(7))?;
                arrived.wait()?;
                let mut found = vec![0; len];
                window.local().copy_out(*at, &mut found)?;
                assert_eq!(found, [value(prev, *at + len)].repeat(len), "{at}, {len}");
                world.barrier()?;
            }
        }
    }
    large.free()?;
    small.free()?;
    let status = std::fs::read_to_string("/proc/self/status").expect("it can be read");
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    let touched = 1024 * kibibytes.unwrap_or(u64::MAX / 1024);
    assert!(touched < TOUCHED, "{touched} bytes of memory were touched");
    Ok(())
}
