//! Answers that the link keeps, since somebody may ask for them.

use flagpost::{Budget, Displacement, DynamicOptions, Error, World};
use flagpost_sim::{Mock, Wire};

use crate::{error, peers, runs};

/// Operations on cells whose answer the link keeps, or waits for, since somebody may ask for it.
pub(crate) fn kept_answers(world: &World<'_, Mock>) -> usize {
    let link = format!("{:?}", world.link());
    link.matches("purpose: Cell(").count()
}

/// Calls that run out of their budget before the answer has come, again and again. Fails if each of them leaves its answer with the
/// link, which would keep it for ever.
#[test]
fn answers_that_nobody_asks_for_are_not_kept() {
    runs(20, Wire::default(), |world| {
        let mut window = world.allocate::<u32>(1)?;
        window.set_num_notify(1)?;
        let dynamic = world.dynamic(DynamicOptions::default())?;
        let memory = world.reserve(32)?;
        let (here, mut there) = (dynamic.attach(&memory)?, [0; 3]);
        world.allgather_with(here.get(), |rank, raw| there[rank.index()] = raw)?;
        let all = dynamic.window().lock_all().map_err(error)?;
        let [peer, _] = peers(world);
        let at = Displacement::new(there[peer.index()]);
        world.set_budget(Budget::microseconds(0));
        for _ in 0..50 {
            assert!(matches!(window.notify_value(0), Err(Error::Timeout(_))));
            let got = dynamic.get(&all, peer, at, &mut [0_u8]);
            assert!(matches!(got, Err(Error::Timeout(_))));
        }
        world.set_budget(Budget::UNLIMITED);
        assert_eq!(kept_answers(world), 0);
        all.unlock().map_err(error)?;
        world.barrier()?;
        dynamic.detach(&memory)?;
        dynamic.free().map_err(error)?;
        world.barrier()
    });
}
