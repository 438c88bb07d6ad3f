//! A hostile peer makes a ring of a queue's links, all of whose ranks have given up: who passes the
//! turn on would go round for ever.

use flagpost::{Budget, Config, Error, Rank, Session, Unfinished, World};
use flagpost_hal::{CoreId, Region, Topology as _, UncachedMemory as _};
use flagpost_linux::{Coherent, Linked as _, Linux, RunError, machines_with};

#[path = "limit/threads.rs"]
mod threads;

use threads::within;

const RANKS: u16 = 3;
const MEMORY: u64 = 64 << 10;
/// Has the lock,
const HOLDER: u16 = 0;
/// of this one,
const TARGET: u16 = 1;
/// and is told to pass it on to ranks that are not in the queue.
const HOSTILE: u16 = 2;
const BUDGET: Budget = Budget::microseconds(50);

/// Where a cell of the queue is behind its tail, which is at the target: each rank's next.
const NEXT_BEHIND_TAIL: usize = 8;

/// The words of the target.
fn words(machine: &Linux<Coherent>) -> Vec<u32> {
    let at = |index| Region::memory(CoreId::new(TARGET)).at(4 * index);
    let indices = 0..machine.memory_size() / 4;
    indices.map(|index| machine.load_u32(at(index))).collect()
}

/// The offset of the word that was 0 and names the holder now: the tail.
fn tail(before: &[u32], after: &[u32]) -> usize {
    let changed = (0..).zip(before.iter().zip(after));
    let mut named = changed.filter(|(_, change)| *change == (&0, &(u32::from(HOLDER) + 1)));
    4 * named.next().expect("the holder has come to the queue").0
}

fn rank(machine: &Linux<Coherent>) -> Result<(), Error> {
    let me = machine.core().get();
    let mut arena = vec![0; 4096];
    let world = World::start(
        Coherent::link(machine.clone(), Session::FIRST)?,
        &mut arena,
        Config::default(),
    )?;
    let window = world.allocate::<u32>(20)?;
    let before = words(machine);
    assert!(machine.meet());
    let lock = match me {
        HOLDER => Some(window.lock_queued(Rank::new(TARGET))?),
        _ => None,
    };
    assert!(machine.meet());
    if me == HOSTILE {
        let next = tail(&before, &words(machine)) + NEXT_BEHIND_TAIL;
        // The holder, then 1, 2, 1, 2, …; each number is one more than the rank's.
        for (rank, then) in [(0, 1), (1, 2), (2, 1)] {
            let at = Region::memory(CoreId::new(rank)).at(next);
            machine.store_u32(at, then + 1);
        }
    }
    assert!(machine.meet());
    if let Some(lock) = lock {
        let ended = world.within(BUDGET, || {
            let late = lock.unlocking().wait_within(BUDGET);
            late.map_err(Unfinished::give_up)
        });
        assert!(matches!(ended, Err(Error::Timeout(_))), "{ended:?}");
    }
    assert!(machine.meet());
    Ok(())
}

#[test]
fn an_unlock_comes_back() {
    let ended = within(|| {
        machines_with::<Coherent, (), Error>(RANKS, MEMORY, |machine| {
            rank(&machine).map_err(RunError::Program)
        })
    });
    ended.expect("nothing else is in the way");
}
