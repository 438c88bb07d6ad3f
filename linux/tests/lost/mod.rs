//! Two ranks die, after one has ended well: which ranks the last one finds lost.

use std::time::{Duration, Instant};

use flagpost::{Error, Link, Rank, Tag, World};

/// How many ranks such a job has.
pub(crate) const RANKS: u16 = 4;

/// What takes longer will not come.
const LIMIT: Duration = Duration::from_secs(20);

/// Ends this process, as by a mistake in it: without a chance to tell anybody.
pub(crate) fn die() -> ! {
    let own = rustix::process::getpid();
    let _ = rustix::process::kill_process(own, rustix::process::Signal::KILL);
    std::process::abort();
}

/// Rank 2 ends well. Then ranks 1 and 3 die, and rank 0 says which ranks are lost.
pub(crate) fn two_die<L: Link>(world: &World<'_, L>) -> Result<(), Error> {
    let [survivor, one, well, other] = [0, 1, 2, 3].map(Rank::new);
    let window = world.allocate::<u32>(1)?;
    let mut told = window.expect(0..0, Tag(1))?.from(survivor)?;
    told.start()?;
    world.barrier()?;
    match world.rank() {
        rank if rank == well => return Ok(()),
        rank if rank != survivor => {
            // Until it is told, or the other one is dead.
            let _ = told.wait();
            die();
        }
        _ => {}
    }
    let mut never = window.expect(0..0, Tag(2))?.from(well)?;
    never.start()?;
    assert_eq!(never.wait().err(), Some(Error::PeerLeft(well)));
    assert_eq!(world.lost().next(), None);
    for dies in [other, one] {
        let _ = window.notify(dies, Tag(1));
    }
    let end = Instant::now() + LIMIT;
    while world.lost().count() < 2 && Instant::now() < end {
        std::thread::yield_now();
    }
    let lost: Vec<u16> = world.lost().map(Rank::get).collect();
    println!("lost: {lost:?}");
    let told = never.wait().err();
    assert!(told == Some(Error::PeerLost(one)) || told == Some(Error::PeerLost(other)));
    Ok(())
}

/// Whether the output is that of the job above.
pub(crate) fn are_named(out: &str) {
    assert!(out.contains("lost: [1, 3]\n"), "{out}");
}
