//! Cases of operations, layouts, memory models, fence, locks and windows.

use crate::cases::{
    ANY, Links, MANY, any_link, attached, case, collective, collective_unfinished, created,
    dynamic, fence, join, lock, lock_timeout, model, rma, rma_layout, rma_request, rma_target,
    small,
};
use crate::{Case, Platform};
use flagpost::{Link, Validation};

impl<P: Platform> Links<P> {
    pub(crate) const LINK: &'static [Case<P>] = cases! {
        ["link.cells", 1..=48, any_link::cells]
        ["link.flushed", 2..=ANY, any_link::flushed]
        ["link.answered", 2..=ANY, any_link::answered]
        ["link.long_get", 2..=ANY, any_link::long_get]
        ["link.own_loops", 2..=ANY, any_link::own_loops]
        ["link.slots_again", 2..=ANY, any_link::slots_again]
    };

    pub(crate) const RMA: &'static [Case<P>] = cases! {
        ["rma.signed", 1..=MANY, rma::signed]
        ["rma.unsigned", 1..=MANY, rma::unsigned]
        ["rma.floats", 1..=ANY, rma::floats]
        ["rma.others", 1..=MANY, rma::others]
        ["rma.placed", 1..=rma::MOST, rma::placed]
        ["rma.concurrent", 1..=rma::MOST, rma::concurrent]
        ["rma.history", 1..=rma::MOST, rma::history]
        ["rma.elects", 1..=rma::MOST, rma::elects]
        ["rma.narrow_layouts", 1..=5, rma_layout::narrow]
        ["rma.wide_layouts", 1..=5, rma_layout::wide]
        ["rma.overlapping_layouts", 1..=MANY, rma_layout::overlapping]
        ["rma.fields", 1..=MANY, rma_layout::fields]
        ["rma.other_elements", 1..=5, rma_layout::other_elements]
        ["rma.requests", 1..=ANY, rma_request::requests]
        ["rma.cells", 1..=ANY, rma_request::cells]
        ["rma.combined", 1..=MANY, rma_target::combine]
        ["rma.misuse", 1..=MANY, rma::misuse]
        ["timeout.accumulates", 1..=rma::MOST, rma_request::accumulates]
        ["small.accumulate", 2..=2, small small::accumulate]
        ["small.fetch", 2..=2, small small::fetch]
        ["small.compare_swap", 2..=2, small small::compare_swap]
    };

    pub(crate) const MODEL: &'static [Case<P>] = cases! {
        ["model.range", 2..=MANY, model::range]
        ["model.unified", 2..=ANY, model::unified]
        ["model.refused", 2..=MANY, model::refused]
    };

    pub(crate) const FENCE: &'static [Case<P>] = cases! {
        ["fence.ring", 1..=ANY, fence::ring]
        ["fence.no_put_here", 2..=MANY, fence::no_put_here]
        ["fence.assertions", 1..=MANY, fence::assertions]
        ["fence.own_stores", 1..=MANY, fence::own_stores]
        ["fence.unified", 1..=ANY, fence::unified]
        ["fence.misuse", 1..=MANY, fence::misuse]
        ["timeout.fence", 2..=ANY, fence::timeout]
        ["small.fence", 2..=3, small fence::small]
    };

    pub(crate) const LOCK: &'static [Case<P>] = cases! {
        ["lock.exclusive", 1..=ANY, lock::counter, lock::EXCLUSIVE]
        ["lock.queued", 1..=ANY, lock::counter, lock::QUEUED]
        ["lock.mixed", 2..=ANY, lock::mixed]
        ["lock.all", 2..=ANY, lock::all]
        ["lock.own", 1..=MANY, lock::own]
        ["lock.own_before", 2..=MANY, lock::own_before]
        ["lock.sync", 2..=MANY, lock::sync]
        ["lock.nested", 1..=MANY, lock::nested]
        ["lock.windows", 1..=MANY, lock::windows]
        ["lock.misuse", 1..=MANY, lock::misuse]
        ["lock.too_many", 9..=MANY, lock::too_many]
        ["lock.flush", 2..=ANY, lock::flush]
        ["lock.flush_tells", 2..=MANY, lock::flush_tells]
        ["timeout.locked", 2..=ANY, lock_timeout::locked]
        ["timeout.locked_all", 2..=ANY, lock_timeout::locked_all]
        ["timeout.locked_turn", 3..=ANY, lock_timeout::turn]
        ["timeout.locked_queue", 3..=ANY, lock_timeout::queue]
        ["timeout.locked_dropped", 2..=MANY, lock_timeout::dropped]
        ["small.lock_shared", 2..=3, small |window| lock::small::looks(window, lock::SHARED)]
        ["small.lock_exclusive", 2..=3, small |window| lock::small::change(window, lock::EXCLUSIVE)]
        ["small.lock_all", 2..=3, small |window| lock::small::looks(window, lock::ALL)]
        ["small.lock_queue", 2..=3, small |window| lock::small::change(window, lock::QUEUED)]
        ["small.lock_own", 2..=2, small lock::small::own]
    };

    pub(crate) const WINDOW: &'static [Case<P>] = cases! {
        ["window.free_dirty", 1..=MANY, created::dirty]
        ["window.free_late", 1..=MANY, created::late]
        ["window.free_full_queue", 1..=MANY, created::full_queue]
        ["window.churn", 1..=MANY, created::churn]
        ["window.full", 1..=MANY, created::full]
        ["window.created", 1..=ANY, created::created]
        ["window.created_notified", 1..=MANY, created::created_notified]
        ["window.released", 1..=ANY, created::released]
        ["window.created_unit", 1..=MANY, created::created_unit]
        ["window.created_refused", 1..=MANY, created::created_refused]
        ["window.shared", 1..=MANY, created::shared]
        ["window.dynamic", 1..=ANY, dynamic::ring, Validation::Counter]
        ["window.dynamic_told", 1..=ANY, dynamic::ring, Validation::Invalidation]
        ["window.dynamic_stale", 1..=MANY, dynamic::stale, Validation::Counter]
        ["window.dynamic_stale_told", 1..=MANY, dynamic::stale, Validation::Invalidation]
        ["window.dynamic_many", 1..=MANY, dynamic::many, Validation::Counter]
        ["window.dynamic_many_told", 1..=MANY, dynamic::many, Validation::Invalidation]
        ["window.dynamic_open", 2..=MANY, dynamic::open, Validation::Counter]
        ["window.dynamic_open_told", 2..=MANY, dynamic::open, Validation::Invalidation]
        ["window.dynamic_race", 2..=MANY, dynamic::race, Validation::Counter]
        ["window.dynamic_race_told", 2..=MANY, dynamic::race, Validation::Invalidation]
        ["timeout.detach", 1..=MANY, dynamic::detach_late, Validation::Counter]
        ["timeout.detach_told", 1..=MANY, dynamic::detach_late, Validation::Invalidation]
        ["window.dynamic_operations", 1..=MANY, attached::operations, Validation::Counter]
        ["window.dynamic_operations_told", 1..=MANY, attached::operations, Validation::Invalidation]
        ["window.dynamic_at_once", 1..=MANY, attached::at_once, Validation::Counter]
        ["window.dynamic_at_once_told", 1..=MANY, attached::at_once, Validation::Invalidation]
        ["window.dynamic_refused", 1..=MANY, dynamic::refused]
        ["window.created_runs", 1..=MANY, created::runs]
        ["small.free", 2..=3, small |world, go| {
            let window = world.allocate::<u32>(2)?;
            go();
            created::small_free(world, window)
        }]
        ["small.created", 2..=2, small |world, go| {
            let memory = created::small_memory(world)?;
            let window = created::small(world, &memory)?;
            go();
            small::ring::<_, _, 1>(&window)
        }]
        ["small.post_range", 2..=2, small small::post_range, |world|
            world.allocate::<u32>(small::WORDS + <P::Link as Link>::LINE / 4)]
        ["small.dynamic", 2..=2, context |c| dynamic::small(c, Validation::Counter)]
        ["small.dynamic_told", 2..=2, context |c| dynamic::small(c, Validation::Invalidation)]
    };

    pub(crate) const COLLECTIVE: &'static [Case<P>] = cases! {
        ["collective.broadcast", 1..=ANY, collective::broadcast]
        ["collective.reduce", 1..=ANY, collective::reduce]
        ["collective.allreduce", 1..=ANY, collective::allreduce]
        ["collective.alltoall", 1..=48, collective::alltoall]
        ["collective.blocks", 1..=48, collective::blocks]
        ["collective.scan", 1..=ANY, collective::scan]
        ["collective.refused", 1..=MANY, collective::refused]
        ["timeout.roots_differ", 2..=collective::FEW, collective::roots_differ]
        ["timeout.differ", 2..=collective::FEW, collective::differ]
        ["timeout.collectives", 1..=ANY, collective::timeouts]
        ["timeout.other_collective", 2..=collective_unfinished::MOST,
            collective_unfinished::other_calls]
        ["timeout.collective_handles", 2..=collective_unfinished::MOST,
            collective_unfinished::handles]
        ["small.broadcast", 2..=4,
            epochs 2, small |window| collective::small_broadcast(window.world())]
        ["small.reduce", 2..=4, epochs 2, small |window| collective::small_reduce(window.world())]
        ["small.allreduce", 2..=4,
            epochs 2, small |window| collective::small_allreduce(window.world())]
        ["small.allgather", 2..=4,
            epochs 2, small |window| collective::small_allgather(window.world())]
        ["small.alltoall", 2..=4,
            epochs 2, small |window| collective::small_alltoall(window.world())]
    };
}
