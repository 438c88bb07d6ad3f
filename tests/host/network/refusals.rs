//! What a network, or a peer, has no room for.

use flagpost::{Budget, Error, Rank, Rma as _, Tag, World};
use flagpost_explore::Mock;
use flagpost_sim::Wire;

use crate::network::{REFUSES, peers, runs, runs_with_queue};

/// Each is told something by both peers, and frees the window; the network refuses to give room
/// back while the barrier's last signal is under way. Fails if that is taken for nothing having
/// arrived.
#[test]
fn a_network_that_refuses_hides_no_notification() {
    runs_with_queue(300, REFUSES, 2, |world| {
        for _ in 0..3 {
            let window = world.allocate::<u32>(1)?;
            for peer in peers(world) {
                window.notify(peer, Tag(1))?;
            }
            let unmatched = match window.freeing().wait_within(Budget::UNLIMITED) {
                Ok(()) => panic!("nothing had arrived"),
                Err(unmatched) => unmatched,
            };
            assert_eq!(unmatched.error, Error::Unmatched { count: 2 });
            let window = unmatched.handle.keep();
            assert_eq!(window.discard_notifications()?, 2);
            window.free()?;
        }
        world.barrier()
    });
}

/// Each tells both peers `at_a_time` times, and hears as much, round after round.
fn tell_all(world: &World<'_, Mock>, rounds: u32, at_a_time: u16) -> Result<(), Error> {
    let window = world.allocate::<u32>(1)?;
    let peers = peers(world);
    let expect = |peer| window.expect(0..0, Tag(1))?.from(peer)?.times(at_a_time);
    let mut requests = [expect(peers[0])?, expect(peers[1])?];
    for _ in 0..rounds {
        for request in &mut requests {
            request.start()?;
        }
        for _ in 0..at_a_time {
            for peer in peers {
                window.notify(peer, Tag(1))?;
            }
        }
        for request in &mut requests {
            request.wait()?;
        }
    }
    world.barrier()
}

/// A network that refuses most of the time, and room for one: each notification needs the room of
/// the one before. Fails if room that the network refused to give back is never given back.
#[test]
fn room_that_could_not_be_given_back_is_given_back_later() {
    runs_with_queue(60, REFUSES, 1, |world| tell_all(world, 20, 5));
}

/// Far more notifications than there is room for, to and from all: room is given back for each of
/// them. Fails if one that the network refused takes room: it refuses what is for one peer while
/// something is under way to the other.
#[test]
fn room_comes_back() {
    runs(4, REFUSES, |world| tell_all(world, 100, 30));
}

/// Rank 0 has no room for what others tell it, so it takes nothing from the link, and begins more
/// than the network, or the link, has room for. Fails if only who takes notifications finds out
/// that there is room again.
#[test]
fn a_full_queue_holds_up_no_access() {
    const ONE: Rank = Rank::new(1);
    // As many as are kept.
    const TOLD: usize = 64;
    runs(60, Wire::default(), |world| {
        let window = world.allocate::<u32>(1)?;
        let (me, all) = (world.rank().get(), window.lock_all()?);
        if me == 1 {
            for _ in 0..TOLD {
                window.notify(Rank::new(0), Tag(1))?;
            }
        }
        world.barrier()?;
        if me == 0 {
            for value in 0..40 {
                all.put(ONE, 0, &[value])?;
            }
            let mut words = [[0]; 6];
            for request in words
                .each_mut()
                .map(|word| all.to(ONE, 0).get(word))
                .into_iter()
                .rev()
            {
                request?.wait()?;
            }
        }
        all.unlock()?;
        world.barrier()?;
        if me == 0 {
            let mut request = window.expect(0..0, Tag(1))?.from(ONE)?.times(TOLD as u16)?;
            request.start()?;
            request.wait()?;
        }
        world.barrier()
    });
}
