//! Calls that need a rank which has ended its program in order.

use flagpost::{Budget, Error, Link, Rank, Request, Tag, Window, World};

/// What waits for a rank that has ended its program fails with its name: `request`, which has
/// started, epochs, and notifications that nobody takes. No budget runs out.
///
/// # Errors
/// The error of a call that should have worked.
///
/// # Panics
/// If a call comes to anything else.
pub(crate) fn needed_calls_fail<L: Link>(
    world: &World<'_, L>,
    window: &Window<'_, u32, L>,
    request: &mut Request<'_, L>,
    gone: Rank,
) -> Result<(), Error> {
    let left = Err(Error::PeerLeft(gone));
    assert_eq!(request.wait().map(drop), left);
    assert_eq!(request.test().map(drop), left);
    let ranks = [gone];
    let group = world.group(&ranks)?;
    let exposure = window.post(&group)?;
    let late = exposure.wait_within(Budget::UNLIMITED);
    let late = late.expect_err("no rank completes");
    assert_eq!(Err(late.error), left);
    let access = window.start(&group)?;
    assert_eq!(access.complete(), left);
    let puts = || window.put_notify(gone, 0, &[1], Tag(3));
    assert_eq!((0..10_000).try_for_each(|_| puts()), left);
    drop(late);
    Ok(())
}
