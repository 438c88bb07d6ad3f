//! A rank forks, and its child comes back through `run`, or panics in it: nobody takes that for an
//! end of the rank.

use std::process::ExitCode;

use flagpost::{Error, Rank, World};
use flagpost_linux::{HostLink, run};

use super::{Launcher, job};

/// The rank that forks.
const FORKS: Rank = Rank::new(1);

pub(super) fn rank(part: &str) -> ExitCode {
    let ran = std::panic::catch_unwind(|| run(|world| play(world, part)));
    // The child's panic is on purpose.
    ran.unwrap_or(ExitCode::SUCCESS)
}

fn play(world: &World<'_, HostLink>, part: &str) -> Result<(), Error> {
    if world.rank() == FORKS {
        // SAFETY: the child calls nothing that needs another thread of this process.
        let child = unsafe { libc::fork() };
        match (child, part) {
            (0, "returns") => return Ok(()),
            (0, "fails") => return Err(Error::CountZero),
            (0, _) => std::panic::resume_unwind(Box::new("on purpose")),
            _ => {}
        }
        let mut status = 0;
        // SAFETY: `status` is there for the call to store to.
        let waited = unsafe { libc::waitpid(child, &mut status, 0) };
        assert_eq!(waited, child, "it has ended");
    }
    world.barrier()?;
    world.barrier()?;
    println!("rank {} has met the others", world.rank());
    Ok(())
}

#[test]
fn a_forked_child_does_not_end_its_parent() {
    for launcher in [Launcher::Ours, Launcher::Other] {
        for part in ["returns", "fails", "panics"] {
            let ended = job(launcher, 3, &format!("forks {part}"));
            let met = ended.out.matches("has met the others").count();
            assert_eq!(met, 3, "{launcher:?} {part}: {ended:?}");
            assert!(ended.codes.iter().all(|code| *code == 0), "{ended:?}");
        }
    }
}
