//! Work on several processors.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::Result;

/// Locks, also after a panic elsewhere.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does `work` for each item, by as many threads as the host has processors, and `most` at most;
/// what came of them is in their order. `told` is called after each, with how many are done. After
/// an error no other item is begun.
pub fn each<T: Sync, R: Send>(
    items: &[T],
    most: usize,
    work: impl Fn(&T) -> Result<R> + Sync,
    told: impl Fn(usize, &R) + Sync,
) -> Result<Vec<R>> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let run = || {
        // ORDERING: Relaxed: only that each number is drawn once counts.
        while let number = next.fetch_add(1, Ordering::Relaxed)
            && let Some(item) = items.get(number)
        {
            let result = work(item).inspect_err(|_| next.store(items.len(), Ordering::Relaxed));
            let mut done = lock(&done);
            if let Ok(result) = &result {
                told(done.len() + 1, result);
            }
            done.push((number, result));
        }
    };
    let host = thread::available_parallelism().map_or(1, |n| n.get());
    // A panic of a worker is one here.
    thread::scope(|scope| {
        (0..host.min(most).min(items.len())).for_each(|_| drop(scope.spawn(run)));
    });
    let mut all = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    all.sort_by_key(|(number, _)| *number);
    all.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_their_items_and_each_is_told() {
        let told = AtomicUsize::new(0);
        let items: Vec<usize> = (0..50).collect();
        let results = each(
            &items,
            8,
            |item| Ok(item * 2),
            |done, _| {
                told.fetch_max(done, Ordering::Relaxed);
            },
        );
        assert!(
            results
                .unwrap()
                .iter()
                .enumerate()
                .all(|(at, result)| *result == 2 * at)
        );
        assert_eq!(told.into_inner(), items.len());
    }

    #[test]
    fn an_error_ends_it() {
        let begun = AtomicUsize::new(0);
        let work = |item: &usize| {
            begun.fetch_add(1, Ordering::Relaxed);
            if *item == 2 {
                Err(anyhow::anyhow!("two"))
            } else {
                Ok(())
            }
        };
        let items: Vec<usize> = (0..50).collect();
        let why = each(&items, 1, work, |_, ()| {}).unwrap_err();
        assert_eq!((why.to_string(), begun.into_inner()), ("two".to_owned(), 3));
    }
}
