//! Cases of operations, layouts, memory models, fence, locks and windows.

use crate::cases::{
    ANY, Links, MANY, any_link, attached, case, collective, collective_unfinished, created,
    dynamic, epochs, fence, join, lock, lock_timeout, model, rma, rma_layout, rma_request,
    rma_target, small,
};
use crate::{Case, Platform};
use flagpost::{EpochSlots, Link, Validation};

impl<P: Platform> Links<P> {
    pub(crate) const LINK: &'static [Case<P>] = &[
        case("link.cells", 1, 48, |c| any_link::cells(&join(c)?)),
        case("link.flushed", 2, ANY, |c| any_link::flushed(&join(c)?)),
        case("link.answered", 2, ANY, |c| any_link::answered(&join(c)?)),
        case("link.long_get", 2, ANY, |c| any_link::long_get(&join(c)?)),
        case("link.own_loops", 2, ANY, |c| any_link::own_loops(&join(c)?)),
        case("link.slots_again", 2, ANY, |c| {
            any_link::slots_again(&join(c)?)
        }),
    ];

    pub(crate) const RMA: &'static [Case<P>] = &[
        case("rma.signed", 1, MANY, |c| rma::signed(&join(c)?)),
        case("rma.unsigned", 1, MANY, |c| rma::unsigned(&join(c)?)),
        case("rma.floats", 1, ANY, |c| rma::floats(&join(c)?)),
        case("rma.others", 1, MANY, |c| rma::others(&join(c)?)),
        case("rma.placed", 1, rma::MOST, |c| rma::placed(&join(c)?)),
        case("rma.concurrent", 1, rma::MOST, |c| {
            rma::concurrent(&join(c)?)
        }),
        case("rma.history", 1, rma::MOST, |c| rma::history(&join(c)?)),
        case("rma.elects", 1, rma::MOST, |c| rma::elects(&join(c)?)),
        case("rma.narrow_layouts", 1, 5, |c| {
            rma_layout::narrow(&join(c)?)
        }),
        case("rma.wide_layouts", 1, 5, |c| rma_layout::wide(&join(c)?)),
        case("rma.overlapping_layouts", 1, MANY, |c| {
            rma_layout::overlapping(&join(c)?)
        }),
        case("rma.fields", 1, MANY, |c| rma_layout::fields(&join(c)?)),
        case("rma.other_elements", 1, 5, |c| {
            rma_layout::other_elements(&join(c)?)
        }),
        case("rma.requests", 1, ANY, |c| rma_request::requests(&join(c)?)),
        case("rma.cells", 1, ANY, |c| rma_request::cells(&join(c)?)),
        case("rma.epochs", 1, rma::MOST, |c| rma::epochs(&join(c)?)),
        case("rma.combined", 1, MANY, |c| rma_target::combine(&join(c)?)),
        case("rma.misuse", 1, MANY, |c| rma::misuse(&join(c)?)),
        case("timeout.accumulates", 1, rma::MOST, |c| {
            rma_request::accumulates(&join(c)?)
        }),
        case("small.accumulate", 2, 2, |c| small!(c, small::accumulate)),
        case("small.fetch", 2, 2, |c| small!(c, small::fetch)),
        case("small.compare_swap", 2, 2, |c| {
            small!(c, small::compare_swap)
        }),
    ];

    pub(crate) const MODEL: &'static [Case<P>] = &[
        case("model.range", 2, MANY, |c| model::range(&join(c)?)),
        case("model.unified", 2, ANY, |c| model::unified(&join(c)?)),
        case("model.unified_notify", 2, ANY, |c| {
            model::unified_notify(&join(c)?)
        }),
        case("model.refused", 2, MANY, |c| model::refused(&join(c)?)),
    ];

    pub(crate) const FENCE: &'static [Case<P>] = &[
        case("fence.ring", 1, ANY, |c| fence::ring(&join(c)?)),
        case("fence.behind_locks", 1, MANY, |c| {
            fence::behind_locks(&join(c)?)
        }),
        case("fence.no_put_here", 2, MANY, |c| {
            fence::no_put_here(&join(c)?)
        }),
        case("fence.all_to_all", 1, 48, |c| fence::all_to_all(&join(c)?)),
        case("fence.assertions", 1, MANY, |c| {
            fence::assertions(&join(c)?)
        }),
        case("fence.own_stores", 1, MANY, |c| {
            fence::own_stores(&join(c)?)
        }),
        case("fence.unified", 1, ANY, |c| fence::unified(&join(c)?)),
        case("fence.misuse", 1, MANY, |c| fence::misuse(&join(c)?)),
        case("timeout.fence", 2, ANY, |c| fence::timeout(&join(c)?)),
        case("small.fence", 2, 3, |c| small!(c, fence::small)),
    ];

    pub(crate) const LOCK: &'static [Case<P>] = &[
        case("lock.exclusive", 1, ANY, |c| {
            lock::counter(&join(c)?, lock::EXCLUSIVE)
        }),
        case("lock.queued", 1, ANY, |c| {
            lock::counter(&join(c)?, lock::QUEUED)
        }),
        case("lock.mixed", 2, ANY, |c| lock::mixed(&join(c)?)),
        case("lock.all", 2, ANY, |c| lock::all(&join(c)?)),
        case("lock.own", 1, MANY, |c| lock::own(&join(c)?)),
        case("lock.own_before", 2, MANY, |c| lock::own_before(&join(c)?)),
        case("lock.sync", 2, MANY, |c| lock::sync(&join(c)?)),
        case("lock.nested", 1, MANY, |c| lock::nested(&join(c)?)),
        case("lock.windows", 1, MANY, |c| lock::windows(&join(c)?)),
        case("lock.misuse", 1, MANY, |c| lock::misuse(&join(c)?)),
        case("lock.too_many", 9, MANY, |c| lock::too_many(&join(c)?)),
        case("lock.flush", 2, ANY, |c| lock::flush(&join(c)?)),
        case("lock.flush_tells", 2, MANY, |c| {
            lock::flush_tells(&join(c)?)
        }),
        case("timeout.locked", 2, ANY, |c| {
            lock_timeout::locked(&join(c)?)
        }),
        case("timeout.locked_all", 2, ANY, |c| {
            lock_timeout::locked_all(&join(c)?)
        }),
        case("timeout.locked_turn", 3, ANY, |c| {
            lock_timeout::turn(&join(c)?)
        }),
        case("timeout.locked_queue", 3, ANY, |c| {
            lock_timeout::queue(&join(c)?)
        }),
        case("timeout.locked_dropped", 2, MANY, |c| {
            lock_timeout::dropped(&join(c)?)
        }),
        case("small.lock_shared", 2, 3, |c| {
            small!(c, |world, window| {
                lock::small::looks(world, window, lock::SHARED)
            })
        }),
        case("small.lock_exclusive", 2, 3, |c| {
            small!(c, |_, window| lock::small::change(window, lock::EXCLUSIVE))
        }),
        case("small.lock_all", 2, 3, |c| {
            small!(c, |world, window| {
                lock::small::looks(world, window, lock::ALL)
            })
        }),
        case("small.lock_queue", 2, 3, |c| {
            small!(c, |_, window| lock::small::change(window, lock::QUEUED))
        }),
        case("small.lock_own", 2, 2, |c| small!(c, lock::small::own)),
    ];

    pub(crate) const WINDOW: &'static [Case<P>] = &[
        case("window.free_dirty", 1, MANY, |c| created::dirty(&join(c)?)),
        case("window.free_late", 1, MANY, |c| created::late(&join(c)?)),
        case("window.free_full_queue", 1, MANY, |c| {
            created::full_queue(&join(c)?)
        }),
        case("window.churn", 1, MANY, |c| created::churn(&join(c)?)),
        case("window.full", 1, MANY, |c| created::full(&join(c)?)),
        case("window.created", 1, ANY, |c| created::created(&join(c)?)),
        case("window.created_notified", 1, MANY, |c| {
            created::created_notified(&join(c)?)
        }),
        case("window.released", 1, ANY, |c| created::released(&join(c)?)),
        case("window.created_unit", 1, MANY, |c| {
            created::created_unit(&join(c)?)
        }),
        case("window.created_refused", 1, MANY, |c| {
            created::created_refused(&join(c)?)
        }),
        case("window.shared", 1, MANY, |c| created::shared(&join(c)?)),
        case("window.dynamic", 1, ANY, |c| {
            dynamic::ring(&join(c)?, Validation::Counter)
        }),
        case("window.dynamic_told", 1, ANY, |c| {
            dynamic::ring(&join(c)?, Validation::Invalidation)
        }),
        case("window.dynamic_stale", 1, MANY, |c| {
            dynamic::stale(&join(c)?, Validation::Counter)
        }),
        case("window.dynamic_stale_told", 1, MANY, |c| {
            dynamic::stale(&join(c)?, Validation::Invalidation)
        }),
        case("window.dynamic_many", 1, MANY, |c| {
            dynamic::many(&join(c)?, Validation::Counter)
        }),
        case("window.dynamic_many_told", 1, MANY, |c| {
            dynamic::many(&join(c)?, Validation::Invalidation)
        }),
        case("window.dynamic_open", 2, MANY, |c| {
            dynamic::open(&join(c)?, Validation::Counter)
        }),
        case("window.dynamic_open_told", 2, MANY, |c| {
            dynamic::open(&join(c)?, Validation::Invalidation)
        }),
        case("window.dynamic_race", 2, MANY, |c| {
            dynamic::race(&join(c)?, Validation::Counter)
        }),
        case("window.dynamic_race_told", 2, MANY, |c| {
            dynamic::race(&join(c)?, Validation::Invalidation)
        }),
        case("timeout.detach", 1, MANY, |c| {
            dynamic::detach_late(&join(c)?, Validation::Counter)
        }),
        case("timeout.detach_told", 1, MANY, |c| {
            dynamic::detach_late(&join(c)?, Validation::Invalidation)
        }),
        case("window.dynamic_operations", 1, MANY, |c| {
            attached::operations(&join(c)?, Validation::Counter)
        }),
        case("window.dynamic_operations_told", 1, MANY, |c| {
            attached::operations(&join(c)?, Validation::Invalidation)
        }),
        case("window.dynamic_at_once", 1, MANY, |c| {
            attached::at_once(&join(c)?, Validation::Counter)
        }),
        case("window.dynamic_at_once_told", 1, MANY, |c| {
            attached::at_once(&join(c)?, Validation::Invalidation)
        }),
        case("window.dynamic_refused", 1, MANY, |c| {
            dynamic::refused(&join(c)?)
        }),
        case("window.created_runs", 1, MANY, |c| created::runs(&join(c)?)),
        case("small.free", 2, 3, |c| {
            let machine = c.machine.clone();
            let world = small::join(c)?;
            let window = world.allocate::<u32>(2)?;
            P::go(&machine);
            created::small_free(&world, window)
        }),
        case("small.created", 2, 2, |c| {
            let machine = c.machine.clone();
            let world = small::join(c)?;
            let memory = created::small_memory(&world)?;
            let window = created::small(&world, &memory)?;
            P::go(&machine);
            small::ring::<_, _, 1>(&world, &window)
        }),
        case("small.post_range", 2, 2, |c| {
            let machine = c.machine.clone();
            let world = small::join(c)?;
            let words = small::WORDS + <P::Link as Link>::LINE / 4;
            let window = world.allocate::<u32>(words)?;
            P::go(&machine);
            small::post_range(&world, &window)
        }),
        case("small.dynamic", 2, 2, |c| {
            dynamic::small(c, Validation::Counter)
        }),
        case("small.dynamic_told", 2, 2, |c| {
            dynamic::small(c, Validation::Invalidation)
        }),
    ];

    pub(crate) const COLLECTIVE: &'static [Case<P>] = &[
        case("collective.broadcast", 1, ANY, |c| {
            collective::broadcast(&join(c)?)
        }),
        case("collective.reduce", 1, ANY, |c| {
            collective::reduce(&join(c)?)
        }),
        case("collective.allreduce", 1, ANY, |c| {
            collective::allreduce(&join(c)?)
        }),
        case("collective.alltoall", 1, 48, |c| {
            collective::alltoall(&join(c)?)
        }),
        case("collective.blocks", 1, 48, |c| {
            collective::blocks(&join(c)?)
        }),
        case("collective.scan", 1, ANY, |c| collective::scan(&join(c)?)),
        case("collective.mixed", 1, MANY, |c| {
            collective::mixed(&join(c)?)
        }),
        case("collective.refused", 1, MANY, |c| {
            collective::refused(&join(c)?)
        }),
        case("timeout.roots_differ", 2, collective::FEW, |c| {
            collective::roots_differ(&join(c)?)
        }),
        case("timeout.differ", 2, collective::FEW, |c| {
            collective::differ(&join(c)?)
        }),
        case("timeout.collectives", 1, ANY, |c| {
            collective::timeouts(&join(c)?)
        }),
        case(
            "timeout.other_collective",
            2,
            collective_unfinished::MOST,
            |c| collective_unfinished::other_calls(&join(c)?),
        ),
        case(
            "timeout.collective_handles",
            2,
            collective_unfinished::MOST,
            |c| collective_unfinished::handles(&join(c)?),
        ),
        epochs(
            2,
            case("small.broadcast", 2, 4, |c| {
                small!(c, |world, _| { collective::small_broadcast(world) })
            }),
        ),
        epochs(
            2,
            case("small.reduce", 2, 4, |c| {
                small!(c, |world, _| { collective::small_reduce(world) })
            }),
        ),
        epochs(
            2,
            case("small.allreduce", 2, 4, |c| {
                small!(c, |world, _| { collective::small_allreduce(world) })
            }),
        ),
        epochs(
            2,
            case("small.allgather", 2, 4, |c| {
                small!(c, |world, _| { collective::small_allgather(world) })
            }),
        ),
        epochs(
            2,
            case("small.alltoall", 2, 4, |c| {
                small!(c, |world, _| { collective::small_alltoall(world) })
            }),
        ),
    ];
}
