//! Cases of the world, what surrounds it, and what only load/store machines have.

use crate::cases::{
    ANY, Links, MANY, Machines, atomics, case, events, hal, join, leftovers, link, locks, making,
    part, pscw_timeout, rings, rma, rma_request, small, stencil, timeout, window, world,
};
use crate::{Case, MachinePlatform, Platform};
use flagpost::MatchVector;

impl<P: Platform> Links<P> {
    pub(crate) const GENERAL: &'static [Case<P>] = cases! {
        ["world.start", 1..=ANY, world::start]
        ["world.groups", 1..=ANY, world::groups]
        ["world.barrier", 2..=ANY, world::barrier]
        ["world.allgather", 1..=ANY, world::allgather]
        ["window.zero", 1..=ANY, window::zero]
        ["window.zero_again", 1..=MANY, window::zero_again]
        ["window.local", 1..=MANY, window::local]
        ["window.refused", 1..=MANY, window::refused]
        ["window.asymmetric", 2..=MANY, window::asymmetric]
        ["timeout.request", 2..=ANY, timeout::request]
        ["timeout.barrier", 2..=ANY, timeout::barrier]
        ["timeout.making", 1..=MANY, making::late]
        ["timeout.making_fails", 2..=MANY, making::fails]
        ["timeout.making_heard", 2..=MANY, making::heard]
        ["timeout.ring_space", 2..=ANY, timeout::ring_space]
        ["part.split", 2..=48, part::split]
        ["part.apart", 2..=ANY, part::apart]
        ["part.rooms", 1..=16, part::rooms]
        ["part.spare", 2..=48, part::spare]
        ["stencil.notified", 1..=ANY, context stencil::notified]
        ["stencil.pscw", 1..=ANY, context stencil::pscw]
        ["small.start", 2..=2, context small::start]
        ["small.barrier", 2..=MANY, epochs 2, small small::barrier]
    };
}

impl<P: MachinePlatform> Machines<P> {
    pub(crate) const HAL: &'static [Case<P>] = cases! {
        ["hal.topology", 1..=ANY, context hal::topology]
        ["hal.bulk", 1..=MANY, context hal::bulk]
        ["hal.own_stores", 1..=MANY, context hal::own_stores]
        ["hal.write_back", 2..=ANY, context hal::write_back]
        ["hal.invalidate", 2..=ANY, context hal::invalidate]
        ["hal.lock", 1..=ANY, context hal::lock]
        ["hal.told", 1..=ANY, context hal::told]
        ["hal.atomics", 1..=ANY, with atomics, context hal::atomics]
        ["hal.doorbell", 1..=ANY, with rings, context hal::doorbell]
    };

    pub(crate) const MACHINE: &'static [Case<P>] = cases! {
        ["world.restart", 1..=MANY, context world::restart]
        ["world.restarted_call", 2..=MANY, context world::restarted_call]
        ["world.other_build", 2..=ANY, context world::other_build]
        ["world.other_config", 2..=MANY, context world::other_config]
        ["world.dirty_restart", 1..=MANY, with leftovers, context world::dirty_restart]
        ["world.reset_alone", 2..=MANY, context world::reset_alone]
        ["world.late_put", 2..=ANY, context world::late_put]
        ["world.early_peers", 2..=ANY, context world::early_peers]
        ["link.last_byte", 1..=ANY, context link::last_byte]
        ["link.post", 2..=ANY, context link::post]
        ["link.completion", 2..=ANY, context link::completion]
        ["link.signal", 2..=ANY, context link::signal]
        ["link.immediate", 2..=ANY, context link::immediate]
        ["link.room", 1..=MANY, link::room]
        ["pscw.vector.looks_full_ring", 2..=ANY,
            pscw_timeout::looks_full_ring::<_, MatchVector<'_>>]
        ["timeout.vector.missing", 4..=ANY, pscw_timeout::several::<_, MatchVector<'_>>, false]
        ["timeout.start", 2..=ANY, context timeout::start]
        ["timeout.lock", 2..=ANY, with locks, context timeout::lock]
        ["link.watch", 2..=ANY, context link::watch]
        ["link.flush", 2..=ANY, context link::flush]
        ["timeout.event_locked", 2..=MANY, with locks, context events::locked]
        ["timeout.accumulate_locked", 2..=rma::MOST, with locks, context rma_request::locked]
    };
}
