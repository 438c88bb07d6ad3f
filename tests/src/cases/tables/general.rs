//! Cases of the world, what surrounds it, and what only load/store machines have.

use crate::cases::{
    ANY, Links, MANY, Machines, case, epochs, events, hal, join, lacks, leftovers, link, locks,
    making, part, pscw_timeout, rma, rma_request, small, stencil, timeout, window, world,
};
use crate::{Case, MachinePlatform, Platform};
use flagpost::{EpochSlots, MatchVector};

impl<P: Platform> Links<P> {
    pub(crate) const GENERAL: &'static [Case<P>] = &[
        case("world.start", 1, ANY, |c| world::start(&join(c)?)),
        case("world.groups", 1, ANY, |c| world::groups(&join(c)?)),
        case("world.barrier", 2, ANY, |c| world::barrier(&join(c)?)),
        case("world.allgather", 1, ANY, |c| world::allgather(&join(c)?)),
        case("window.zero", 1, ANY, |c| window::zero(&join(c)?)),
        case("window.zero_again", 1, MANY, |c| {
            window::zero_again(&join(c)?)
        }),
        case("window.local", 1, MANY, |c| window::local(&join(c)?)),
        case("window.refused", 1, MANY, |c| window::refused(&join(c)?)),
        case("window.asymmetric", 2, MANY, |c| {
            window::asymmetric(&join(c)?)
        }),
        case("timeout.request", 2, ANY, |c| timeout::request(&join(c)?)),
        case("timeout.barrier", 2, ANY, |c| timeout::barrier(&join(c)?)),
        case("timeout.making", 1, MANY, |c| making::late(&join(c)?)),
        case("timeout.making_fails", 2, MANY, |c| {
            making::fails(&join(c)?)
        }),
        case("timeout.making_heard", 2, MANY, |c| {
            making::heard(&join(c)?)
        }),
        case("timeout.ring_space", 2, ANY, |c| {
            timeout::ring_space(&join(c)?)
        }),
        case("part.split", 2, 48, |c| part::split(&join(c)?)),
        case("part.apart", 2, ANY, |c| part::apart(&join(c)?)),
        case("part.rooms", 1, 16, |c| part::rooms(&join(c)?)),
        case("part.spare", 2, 48, |c| part::spare(&join(c)?)),
        case("stencil.notified", 1, ANY, stencil::notified),
        case("stencil.pscw", 1, ANY, stencil::pscw),
        case("small.start", 2, 2, small::start),
        epochs(
            2,
            case("small.barrier", 2, MANY, |c| small!(c, small::barrier)),
        ),
    ];
}

impl<P: MachinePlatform> Machines<P> {
    pub(crate) const HAL: &'static [Case<P>] = &[
        case("hal.topology", 1, ANY, hal::topology),
        case("hal.bulk", 1, MANY, hal::bulk),
        case("hal.own_stores", 1, MANY, hal::own_stores),
        case("hal.write_back", 2, ANY, hal::write_back),
        case("hal.invalidate", 2, ANY, hal::invalidate),
        case("hal.lock", 1, ANY, hal::lock),
        case("hal.told", 1, ANY, hal::told),
        Case {
            atomics: true,
            lacks: lacks(P::ATOMICS.is_some(), "atomics"),
            ..case("hal.atomics", 1, ANY, hal::atomics)
        },
        Case {
            lacks: lacks(P::BELL.is_some(), "bells"),
            ..case("hal.doorbell", 1, ANY, hal::doorbell)
        },
    ];

    pub(crate) const MACHINE: &'static [Case<P>] = &[
        case("world.restart", 1, MANY, world::restart),
        case("world.restarted_call", 2, MANY, world::restarted_call),
        case("world.other_build", 2, ANY, world::other_build),
        case("world.other_config", 2, MANY, world::other_config),
        leftovers(case("world.dirty_restart", 1, MANY, world::dirty_restart)),
        case("world.reset_alone", 2, MANY, world::reset_alone),
        case("world.late_put", 2, ANY, world::late_put),
        case("world.early_peers", 2, ANY, world::early_peers),
        case("link.last_byte", 1, ANY, link::last_byte),
        case("link.post", 2, ANY, link::post),
        case("link.completion", 2, ANY, link::completion),
        case("link.signal", 2, ANY, link::signal),
        case("link.immediate", 2, ANY, link::immediate),
        case("link.room", 1, MANY, |c| link::room(&join(c)?)),
        case("pscw.vector.looks_full_ring", 2, ANY, |c| {
            pscw_timeout::looks_full_ring::<_, MatchVector<'_>>(&join(c)?, ())
        }),
        case("timeout.vector.who", 3, ANY, |c| {
            pscw_timeout::who::<_, MatchVector<'_>>(&join(c)?, (), false)
        }),
        case("timeout.vector.missing", 4, ANY, |c| {
            pscw_timeout::several::<_, MatchVector<'_>>(&join(c)?, (), false)
        }),
        case("timeout.start", 2, ANY, timeout::start),
        locks(case("timeout.lock", 2, ANY, timeout::lock)),
        case("link.watch", 2, ANY, link::watch),
        case("link.flush", 2, ANY, link::flush),
        locks(case("timeout.event_locked", 2, MANY, events::locked)),
        locks(case(
            "timeout.accumulate_locked",
            2,
            rma::MOST,
            rma_request::locked,
        )),
    ];
}
