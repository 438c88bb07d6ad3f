//! The table, and the cases by what they are about.

mod any_link;
mod collective;
mod count_request;
mod counters;
mod created;
mod dynamic;
mod events;
mod fence;
mod hal;
mod link;
mod lock;
mod lock_timeout;
mod matching_list;
mod model;
mod notify;
mod notify_access;
mod notify_inline;
mod notify_request;
mod pscw;
mod pscw_timeout;
mod rma;
mod rma_layout;
mod rma_request;
mod signals;
mod small;
mod stencil;
mod timeout;
mod window;
mod world;

use core::marker::PhantomData;

use flagpost::{
    Budget, Config, EpochSlots, Error, Link, MatchVector, MatchingList, Model, Validation, World,
};
use flagpost_link::Refusal;

use crate::{Case, Context, Failure, MachinePlatform, Platform, Ring};

/// The cases that any link can run.
pub(crate) struct Links<P>(PhantomData<P>);

/// All cases, for load/store machines.
pub(crate) struct Machines<P>(PhantomData<P>);

/// Any number of cores.
const ANY: u16 = u16::MAX;

/// Sets up a small case's world and window, says `go`, and runs it.
macro_rules! small {
    ($context:ident, $run:expr) => {
        small!($context, EpochSlots, |_| (), |_| 0, $run)
    };
    ($context:ident, $strategy:ident, $options:expr, $posts:expr, $run:expr) => {{
        let machine = $context.machine.clone();
        let world = small::join($context)?;
        let posts: fn(u16) -> u16 = $posts;
        let options = $options(posts(world.size()));
        let window = world.allocate_with::<u32, $strategy<'_>>(small::WORDS, options)?;
        P::go(&machine);
        $run(&world, &window)
    }};
}

/// [`small!`], with a window of so many words and a counter.
macro_rules! small_counted {
    ($context:ident, $words:expr, $run:expr) => {{
        let machine = $context.machine.clone();
        let world = small::join($context)?;
        let mut window = world.allocate::<u32>($words)?;
        window.set_num_notify(1)?;
        P::go(&machine);
        $run(&world, &window)
    }};
}

/// [`small!`] with rings of one's choice.
macro_rules! small_ring {
    ($context:ident, $ring:expr, $run:expr) => {{
        let machine = $context.machine.clone();
        let world = small::join_with($context, $ring)?;
        let window = world.allocate::<u32>(small::WORDS)?;
        P::go(&machine);
        $run(&world, &window)
    }};
}

/// The cases of PSCW, with epochs signalled as `$strategy` does. `$options` makes its options of how many posts can be under
/// way to a rank at the same time.
macro_rules! pscw_cases {
    ($prefix:literal, $strategy:ident, $options:expr) => {
        &[
            case(concat!("pscw.", $prefix, "ring"), 1, ANY, |c| {
                let world = join(c)?;
                pscw::ring::<_, $strategy<'_>>(&world, $options(1))
            }),
            case(concat!("pscw.", $prefix, "get"), 2, ANY, |c| {
                let world = join(c)?;
                pscw::get::<_, $strategy<'_>>(&world, $options(1))
            }),
            case(concat!("pscw.", $prefix, "fan_in"), 2, ANY, |c| {
                let world = join(c)?;
                pscw::fan_in::<_, $strategy<'_>>(&world, $options(1))
            }),
            case(concat!("pscw.", $prefix, "fan_out"), 2, ANY, |c| {
                let world = join(c)?;
                pscw::fan_out::<_, $strategy<'_>>(&world, $options(world.size() - 1))
            }),
            case(concat!("pscw.", $prefix, "all_to_all"), 2, 48, |c| {
                let world = join(c)?;
                pscw::all_to_all::<_, $strategy<'_>>(&world, $options(world.size() - 1))
            }),
            case(concat!("pscw.", $prefix, "switch"), 3, ANY, |c| {
                let world = join(c)?;
                pscw::switch::<_, $strategy<'_>>(&world, $options(2))
            }),
            case(concat!("pscw.", $prefix, "early_posts"), 3, ANY, |c| {
                let world = join(c)?;
                pscw::early_posts::<_, $strategy<'_>>(&world, $options((world.size() - 1).min(4)))
            }),
            case(concat!("pscw.", $prefix, "windows"), 2, ANY, |c| {
                let world = join(c)?;
                pscw::windows::<_, $strategy<'_>>(&world, $options(1))
            }),
            case(concat!("pscw.", $prefix, "test"), 2, ANY, |c| {
                let world = join(c)?;
                pscw::test::<_, $strategy<'_>>(&world, $options(1))
            }),
            case(concat!("pscw.", $prefix, "immediate"), 3, ANY, |c| {
                let world = join(c)?;
                pscw::immediate::<_, $strategy<'_>>(&world, $options(2))
            }),
            case(concat!("pscw.", $prefix, "strangers"), 3, ANY, |c| {
                let world = join(c)?;
                pscw::strangers::<_, $strategy<'_>>(&world, $options(2))
            }),
            case(concat!("pscw.", $prefix, "full_ring"), 2, ANY, |c| {
                let world = join(c)?;
                pscw::full_ring::<_, $strategy<'_>>(&world, $options(1))
            }),
            case(concat!("pscw.", $prefix, "groups"), 1, 48, |c| {
                let world = join(c)?;
                pscw::groups::<_, $strategy<'_>>(&world, $options(world.size()))
            }),
            case(concat!("pscw.", $prefix, "misuse"), 1, ANY, |c| {
                let world = join(c)?;
                pscw::misuse::<_, $strategy<'_>>(&world, $options(1))
            }),
            case(concat!("timeout.", $prefix, "post"), 2, ANY, |c| {
                let world = join(c)?;
                pscw_timeout::post::<_, $strategy<'_>>(&world, $options(1))
            }),
            case(concat!("timeout.", $prefix, "second_post"), 3, ANY, |c| {
                let world = join(c)?;
                pscw_timeout::second_post::<_, $strategy<'_>>(&world, $options(2))
            }),
            case(concat!("timeout.", $prefix, "wait"), 2, ANY, |c| {
                let world = join(c)?;
                pscw_timeout::wait::<_, $strategy<'_>>(&world, $options(1))
            }),
            case(concat!("timeout.", $prefix, "every_call"), 1, 48, |c| {
                let world = join(c)?;
                pscw_timeout::every_call::<_, $strategy<'_>>(&world, $options(world.size()))
            }),
            case(concat!("timeout.", $prefix, "dropped"), 3, ANY, |c| {
                let world = join(c)?;
                pscw_timeout::dropped::<_, $strategy<'_>>(&world, $options(2))
            }),
            case(concat!("small.", $prefix, "fan_out"), 2, 4, |c| {
                small!(
                    c,
                    $strategy,
                    $options,
                    |size| size - 1,
                    small::fan_out::<_, _, 1>
                )
            }),
            case(concat!("small.", $prefix, "fan_out_twice"), 2, 3, |c| {
                small!(
                    c,
                    $strategy,
                    $options,
                    |size| size - 1,
                    small::fan_out::<_, _, 2>
                )
            }),
            case(concat!("small.", $prefix, "fan_in"), 3, 3, |c| {
                small!(c, $strategy, $options, |_| 1, small::fan_in::<_, _, 1>)
            }),
            case(concat!("small.", $prefix, "fan_in_twice"), 3, 3, |c| {
                small!(c, $strategy, $options, |_| 1, small::fan_in::<_, _, 2>)
            }),
            case(concat!("small.", $prefix, "switch"), 3, 3, |c| {
                small!(c, $strategy, $options, |_| 2, small::switch)
            }),
            case(concat!("small.", $prefix, "ring"), 2, ANY, |c| {
                small!(c, $strategy, $options, |_| 1, small::ring::<_, _, 1>)
            }),
            case(concat!("small.", $prefix, "ring_twice"), 2, ANY, |c| {
                small!(c, $strategy, $options, |_| 1, small::ring::<_, _, 2>)
            }),
            case(concat!("small.", $prefix, "get"), 2, 2, |c| {
                small!(c, $strategy, $options, |_| 1, small::get)
            }),
        ]
    };
}

/// The cases of notified accesses, with rings as `$join` makes them.
macro_rules! notify_cases {
    ($prefix:literal, $join:ident) => {
        &[
            case(concat!("notify.", $prefix, "ring"), 1, ANY, |c| {
                notify::ring(&$join(c)?)
            }),
            case(concat!("notify.", $prefix, "sizes"), 2, ANY, |c| {
                notify::sizes(&$join(c)?)
            }),
            case(concat!("notify.", $prefix, "tags"), 2, ANY, |c| {
                notify::tags(&$join(c)?)
            }),
            case(concat!("notify.", $prefix, "any_source"), 2, ANY, |c| {
                notify::any_source(&$join(c)?)
            }),
            case(concat!("notify.", $prefix, "mutual"), 1, ANY, |c| {
                notify::mutual(&$join(c)?)
            }),
            case(concat!("notify.", $prefix, "mutual_tested"), 1, ANY, |c| {
                notify::mutual_tested(&$join(c)?)
            }),
            case(concat!("notify.", $prefix, "sources"), 2, ANY, |c| {
                notify::sources(&$join(c)?)
            }),
            case(concat!("notify.", $prefix, "flood"), 2, ANY, |c| {
                notify::flood(&$join(c)?)
            }),
            case(concat!("notify.", $prefix, "order"), 2, ANY, |c| {
                notify::order(&$join(c)?)
            }),
            case(concat!("notify.", $prefix, "shared_line"), 2, ANY, |c| {
                notify::shared_line(&$join(c)?)
            }),
            case(concat!("notify.", $prefix, "queue_full"), 2, ANY, |c| {
                notify::queue_full(&$join(c)?)
            }),
            case(concat!("notify.", $prefix, "windows"), 2, ANY, |c| {
                notify::windows(&$join(c)?)
            }),
            case(concat!("notify.", $prefix, "overlap"), 1, ANY, |c| {
                notify::overlap(&$join(c)?)
            }),
            case(concat!("notify.", $prefix, "barrier"), 2, ANY, |c| {
                notify::barrier(&$join(c)?)
            }),
            case(concat!("notify.", $prefix, "count"), 1, ANY, |c| {
                notify::count(&$join(c)?)
            }),
            case(
                concat!("notify.", $prefix, "queue_just_full"),
                2,
                ANY,
                |c| notify::queue_just_full(&$join(c)?),
            ),
            case(concat!("notify.", $prefix, "cancel"), 1, ANY, |c| {
                notify::cancel(&$join(c)?)
            }),
            case(concat!("notify.", $prefix, "misuse"), 1, ANY, |c| {
                notify::misuse(&$join(c)?)
            }),
            case(concat!("notify.", $prefix, "flushed"), 1, ANY, |c| {
                notify_inline::flushed(&$join(c)?)
            }),
            case(concat!("notify.", $prefix, "fenced"), 1, ANY, |c| {
                notify_inline::fenced(&$join(c)?)
            }),
            case(concat!("notify.", $prefix, "forwarded"), 3, ANY, |c| {
                notify_inline::forwarded(&$join(c)?)
            }),
            case(concat!("notify.", $prefix, "relayed"), 3, ANY, |c| {
                notify_inline::relayed(&$join(c)?)
            }),
            case(concat!("notify.", $prefix, "around"), 1, ANY, |c| {
                notify_inline::around(&$join(c)?, Model::Separate)
            }),
            case(concat!("notify.", $prefix, "around_unified"), 1, ANY, |c| {
                notify_inline::around(&$join(c)?, Model::Unified)
            }),
        ]
    };
}

/// Notified accesses in small cases, with rings as `$ring` says.
macro_rules! small_notify_cases {
    ($prefix:literal, $ring:expr) => {
        &[
            case(concat!("small.", $prefix, "notify"), 2, 3, |c| {
                small_ring!(c, $ring, small::notify::<_, _, 1>)
            }),
            case(concat!("small.", $prefix, "notify_twice"), 2, 3, |c| {
                small_ring!(c, $ring, small::notify::<_, _, 2>)
            }),
            case(concat!("small.", $prefix, "notify_full"), 2, 2, |c| {
                small_ring!(c, $ring, small::notify::<_, _, 4>)
            }),
            case(concat!("small.", $prefix, "ping_pong"), 2, 2, |c| {
                small_ring!(c, $ring, small::ping_pong)
            }),
            case(concat!("small.", $prefix, "notify_flushed"), 2, 2, |c| {
                small_ring!(c, $ring, notify_inline::small_flushed)
            }),
            case(concat!("small.", $prefix, "notify_answered"), 2, 2, |c| {
                small_ring!(c, $ring, notify_inline::small_answered)
            }),
        ]
    };
}

/// Cases of strategies that take locks.
macro_rules! lock_cases {
    ($prefix:literal, $strategy:ident, $options:expr) => {
        &[
            case(concat!("timeout.", $prefix, "rest_of_post"), 3, ANY, |c| {
                let machine = c.machine.clone();
                let world = join(c)?;
                pscw_timeout::rest_of_post::<_, _, $strategy<'_>>(&machine, &world, $options(2))
            }),
            case(
                concat!("timeout.", $prefix, "rest_of_complete"),
                3,
                ANY,
                |c| {
                    let machine = c.machine.clone();
                    let world = join(c)?;
                    pscw_timeout::rest_of_complete::<_, _, $strategy<'_>>(
                        &machine,
                        &world,
                        $options(2),
                    )
                },
            ),
        ]
    };
}

impl<P: Platform> Links<P> {
    pub(crate) const ALL: &'static [&'static [Case<P>]] = &[
        Self::LINK,
        Self::GENERAL,
        Self::NOTIFY,
        Self::NOTIFY_SHARED,
        Self::SMALL_NOTIFY,
        Self::SMALL_NOTIFY_SHARED,
        Self::SLOTS,
        Self::LIST,
        Self::SIGNALLED,
        Self::MODEL,
        Self::LOCK,
        Self::FENCE,
        Self::RMA,
        Self::COLLECTIVE,
        Self::WINDOW,
        Self::NOTIFIED,
        Self::COUNTED,
    ];

    const NOTIFIED: &'static [Case<P>] = &[
        case("notify.changes", 1, ANY, |c| {
            notify_access::changes(&join(c)?)
        }),
        case("notify.gets", 1, ANY, |c| notify_access::gets(&join(c)?)),
        case("notify.cached_get", 1, ANY, |c| {
            notify_access::cached_get(&join(c)?)
        }),
        case("notify.mixed", 1, ANY, |c| notify_access::mixed(&join(c)?)),
        case("notify.refused", 1, ANY, |c| {
            notify_access::misuse(&join(c)?)
        }),
        case("timeout.notified", 2, ANY, |c| {
            notify_access::late(&join(c)?)
        }),
        case("notify.several", 1, ANY, |c| {
            notify_request::several(&join(c)?)
        }),
        case("notify.probe", 1, ANY, |c| notify_request::probe(&join(c)?)),
        case("notify.several_full", 2, ANY, |c| {
            notify_request::full(&join(c)?)
        }),
        case("timeout.several", 2, ANY, |c| {
            notify_request::timeout(&join(c)?)
        }),
        case("window.free_flooded", 1, ANY, |c| {
            notify_request::flooded(&join(c)?)
        }),
        case("small.wait_any", 2, 3, |c| {
            small!(c, notify_request::small_any)
        }),
        case("small.notify_accumulate", 2, 3, |c| {
            small!(c, notify_access::small::accumulate)
        }),
        case("small.notify_fetch", 2, 2, |c| {
            small!(c, notify_access::small::fetch)
        }),
        case("small.notify_get", 2, 2, |c| {
            let machine = c.machine.clone();
            let world = small::join(c)?;
            let unified = flagpost::Model::Unified;
            let window = world.allocate_with::<u32, EpochSlots<'_>>(small::WORDS, unified)?;
            P::go(&machine);
            notify_access::small::get(&world, &window)
        }),
    ];

    const COUNTED: &'static [Case<P>] = &[
        case("counters.ring", 1, ANY, |c| counters::ring(&join(c)?)),
        case("counters.everybody", 1, 48, |c| {
            counters::everybody(&join(c)?)
        }),
        case("counters.swaps", 1, ANY, |c| counters::swaps(&join(c)?)),
        case("counters.differing", 1, ANY, |c| {
            counters::differing(&join(c)?)
        }),
        case("counters.again", 1, ANY, |c| counters::again(&join(c)?)),
        case("counters.together", 1, ANY, |c| {
            counters::together(&join(c)?)
        }),
        case("counters.windows", 1, 48, |c| counters::windows(&join(c)?)),
        case("counters.freed", 1, 48, |c| counters::freed(&join(c)?)),
        case("counters.churn", 1, ANY, |c| counters::churn(&join(c)?)),
        case("counters.shared_line", 2, ANY, |c| {
            count_request::shared_line(&join(c)?)
        }),
        case("counters.any", 1, ANY, |c| count_request::any(&join(c)?)),
        case("counters.misuse", 1, ANY, |c| {
            count_request::misuse(&join(c)?)
        }),
        case("counters.progress", 2, ANY, |c| {
            count_request::progress(&join(c)?)
        }),
        case("timeout.counters", 2, ANY, |c| {
            count_request::late(&join(c)?)
        }),
        case("signals.compared", 1, ANY, |c| signals::compared(&join(c)?)),
        case("signals.pipeline", 1, ANY, |c| signals::pipeline(&join(c)?)),
        case("signals.sums", 1, ANY, |c| signals::sums(&join(c)?)),
        case("signals.refused", 1, ANY, |c| signals::refused(&join(c)?)),
        case("events.ring", 1, ANY, |c| events::ring(&join(c)?)),
        case("events.counts", 1, 48, |c| events::counts(&join(c)?)),
        case("events.orders", 2, ANY, |c| events::orders(&join(c)?)),
        case("events.requests", 1, ANY, |c| events::requests(&join(c)?)),
        case("events.misuse", 1, ANY, |c| events::misuse(&join(c)?)),
        case("events.together", 1, ANY, |c| events::together(&join(c)?)),
        case("timeout.events", 2, ANY, |c| events::late(&join(c)?)),
        case("small.counter", 2, 3, |c| {
            small_counted!(c, 2, counters::small::count)
        }),
        case("small.counter_reset", 2, 3, |c| {
            small_counted!(c, 2, counters::small::reset)
        }),
        case("small.counter_set", 2, 2, |c| {
            let machine = c.machine.clone();
            let world = small::join(c)?;
            let mut window = world.allocate::<u32>(1)?;
            window.set_num_notify(1)?;
            window.set_notify_value(0, 9)?;
            window.set_num_notify(0)?;
            P::go(&machine);
            counters::small::set(&world, window)
        }),
        case("small.signal", 2, 2, |c| {
            let words = 1 + <P::Link as Link>::LINE as usize / 4;
            small_counted!(c, words, signals::small::put)
        }),
        case("small.signal_set", 2, 2, |c| {
            small_counted!(c, 1, signals::small::set_and_add)
        }),
        case("small.event", 2, 3, |c| {
            let machine = c.machine.clone();
            let world = small::join(c)?;
            let events = world.events(1)?;
            P::go(&machine);
            events::small::post(&world, &events)
        }),
        case("small.event_ping_pong", 2, 2, |c| {
            let machine = c.machine.clone();
            let world = small::join(c)?;
            let window = world.allocate::<u32>(1)?;
            let events = world.events(1)?;
            P::go(&machine);
            events::small::ping_pong(&world, &window, &events)
        }),
        case("small.event_made", 2, 2, |c| {
            let machine = c.machine.clone();
            let world = small::join(c)?;
            P::go(&machine);
            events::small::made(&world)
        }),
    ];

    const RMA: &'static [Case<P>] = &[
        case("rma.signed", 1, ANY, |c| rma::signed(&join(c)?)),
        case("rma.unsigned", 1, ANY, |c| rma::unsigned(&join(c)?)),
        case("rma.floats", 1, ANY, |c| rma::floats(&join(c)?)),
        case("rma.concurrent", 1, rma::MOST, |c| {
            rma::concurrent(&join(c)?)
        }),
        case("rma.history", 1, rma::MOST, |c| rma::history(&join(c)?)),
        case("rma.elects", 1, rma::MOST, |c| rma::elects(&join(c)?)),
        case("rma.narrow_layouts", 1, 5, |c| {
            rma_layout::narrow(&join(c)?)
        }),
        case("rma.wide_layouts", 1, 5, |c| rma_layout::wide(&join(c)?)),
        case("rma.fields", 1, ANY, |c| rma_layout::fields(&join(c)?)),
        case("rma.requests", 1, ANY, |c| rma_request::requests(&join(c)?)),
        case("rma.cells", 1, ANY, |c| rma_request::cells(&join(c)?)),
        case("rma.epochs", 1, rma::MOST, |c| rma::epochs(&join(c)?)),
        case("rma.misuse", 1, ANY, |c| rma::misuse(&join(c)?)),
        case("timeout.accumulates", 1, rma::MOST, |c| {
            rma_request::accumulates(&join(c)?)
        }),
        case("small.accumulate", 2, 2, |c| small!(c, small::accumulate)),
        case("small.fetch", 2, 2, |c| small!(c, small::fetch)),
        case("small.compare_swap", 2, 2, |c| {
            small!(c, small::compare_swap)
        }),
    ];

    const NOTIFY: &'static [Case<P>] = notify_cases!("", join);

    const NOTIFY_SHARED: &'static [Case<P>] = notify_cases!("shared.", join_shared);

    const SMALL_NOTIFY: &'static [Case<P>] = small_notify_cases!("", small::RING);

    const SMALL_NOTIFY_SHARED: &'static [Case<P>] =
        small_notify_cases!("shared.", Ring::Shared { entries: 1 });

    const SLOTS: &'static [Case<P>] = pscw_cases!("", EpochSlots, |_: u16| ());

    const LIST: &'static [Case<P>] = pscw_cases!("list.", MatchingList, |posts: u16| posts);

    /// What differs between slots and lists.
    const SIGNALLED: &'static [Case<P>] = &[
        case("pscw.list.options", 1, ANY, |c| {
            matching_list::options(&join(c)?)
        }),
        case("pscw.list.reuse", 2, ANY, |c| {
            matching_list::reuse(&join(c)?)
        }),
        case("timeout.who", 3, ANY, |c| {
            pscw_timeout::who::<_, EpochSlots<'_>>(&join(c)?, (), true)
        }),
        case("timeout.list.who", 3, ANY, |c| {
            pscw_timeout::who::<_, MatchingList<'_>>(&join(c)?, 1, false)
        }),
        case("timeout.list.full", 3, ANY, |c| {
            matching_list::full(&join(c)?)
        }),
    ];

    const FENCE: &'static [Case<P>] = &[
        case("fence.ring", 1, ANY, |c| fence::ring(&join(c)?)),
        case("fence.all_to_all", 1, 48, |c| fence::all_to_all(&join(c)?)),
        case("fence.assertions", 1, ANY, |c| fence::assertions(&join(c)?)),
        case("fence.unified", 1, ANY, |c| fence::unified(&join(c)?)),
        case("fence.misuse", 1, ANY, |c| fence::misuse(&join(c)?)),
        case("timeout.fence", 2, ANY, |c| fence::timeout(&join(c)?)),
        case("small.fence", 2, 3, |c| small!(c, fence::small)),
    ];

    const LOCK: &'static [Case<P>] = &[
        case("lock.exclusive", 1, ANY, |c| {
            lock::counter(&join(c)?, lock::EXCLUSIVE)
        }),
        case("lock.queued", 1, ANY, |c| {
            lock::counter(&join(c)?, lock::QUEUED)
        }),
        case("lock.mixed", 2, ANY, |c| lock::mixed(&join(c)?)),
        case("lock.all", 2, ANY, |c| lock::all(&join(c)?)),
        case("lock.own", 1, ANY, |c| lock::own(&join(c)?)),
        case("lock.own_before", 2, ANY, |c| lock::own_before(&join(c)?)),
        case("lock.sync", 2, ANY, |c| lock::sync(&join(c)?)),
        case("lock.nested", 1, ANY, |c| lock::nested(&join(c)?)),
        case("lock.windows", 1, ANY, |c| lock::windows(&join(c)?)),
        case("lock.misuse", 1, ANY, |c| lock::misuse(&join(c)?)),
        case("lock.flush_tells", 2, ANY, |c| lock::flush_tells(&join(c)?)),
        case("timeout.locked", 2, ANY, |c| {
            lock_timeout::locked(&join(c)?)
        }),
        case("timeout.locked_all", 2, ANY, |c| {
            lock_timeout::locked_all(&join(c)?)
        }),
        case("timeout.locked_queue", 3, ANY, |c| {
            lock_timeout::queue(&join(c)?)
        }),
        case("timeout.locked_dropped", 2, ANY, |c| {
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

    const MODEL: &'static [Case<P>] = &[
        case("model.range", 2, ANY, |c| model::range(&join(c)?)),
        case("model.unified", 2, ANY, |c| model::unified(&join(c)?)),
        case("model.unified_notify", 2, ANY, |c| {
            model::unified_notify(&join(c)?)
        }),
        case("model.refused", 2, ANY, |c| model::refused(&join(c)?)),
    ];

    const LINK: &'static [Case<P>] = &[
        case("link.cells", 1, 48, |c| any_link::cells(&join(c)?)),
        case("link.flushed", 2, ANY, |c| any_link::flushed(&join(c)?)),
        case("link.long_get", 2, ANY, |c| any_link::long_get(&join(c)?)),
        case("link.own_loops", 2, ANY, |c| any_link::own_loops(&join(c)?)),
        case("link.slots_again", 2, ANY, |c| {
            any_link::slots_again(&join(c)?)
        }),
    ];

    const WINDOW: &'static [Case<P>] = &[
        case("window.free_dirty", 1, ANY, |c| created::dirty(&join(c)?)),
        case("window.free_late", 1, ANY, |c| created::late(&join(c)?)),
        case("window.free_full_queue", 1, ANY, |c| {
            created::full_queue(&join(c)?)
        }),
        case("window.churn", 1, ANY, |c| created::churn(&join(c)?)),
        case("window.full", 1, ANY, |c| created::full(&join(c)?)),
        case("window.created", 1, ANY, |c| created::created(&join(c)?)),
        case("window.created_notified", 1, ANY, |c| {
            created::created_notified(&join(c)?)
        }),
        case("window.released", 1, ANY, |c| created::released(&join(c)?)),
        case("window.created_unit", 1, ANY, |c| {
            created::created_unit(&join(c)?)
        }),
        case("window.created_refused", 1, ANY, |c| {
            created::created_refused(&join(c)?)
        }),
        case("window.shared", 1, ANY, |c| created::shared(&join(c)?)),
        case("window.dynamic", 1, ANY, |c| {
            dynamic::ring(&join(c)?, Validation::Counter)
        }),
        case("window.dynamic_told", 1, ANY, |c| {
            dynamic::ring(&join(c)?, Validation::Invalidation)
        }),
        case("window.dynamic_stale", 1, ANY, |c| {
            dynamic::stale(&join(c)?, Validation::Counter)
        }),
        case("window.dynamic_stale_told", 1, ANY, |c| {
            dynamic::stale(&join(c)?, Validation::Invalidation)
        }),
        case("window.dynamic_many", 1, ANY, |c| {
            dynamic::many(&join(c)?, Validation::Counter)
        }),
        case("window.dynamic_many_told", 1, ANY, |c| {
            dynamic::many(&join(c)?, Validation::Invalidation)
        }),
        case("window.dynamic_open", 2, ANY, |c| {
            dynamic::open(&join(c)?, Validation::Counter)
        }),
        case("window.dynamic_open_told", 2, ANY, |c| {
            dynamic::open(&join(c)?, Validation::Invalidation)
        }),
        case("window.dynamic_race", 2, ANY, |c| {
            dynamic::race(&join(c)?, Validation::Counter)
        }),
        case("window.dynamic_race_told", 2, ANY, |c| {
            dynamic::race(&join(c)?, Validation::Invalidation)
        }),
        case("timeout.detach", 1, ANY, |c| {
            dynamic::detach_late(&join(c)?, Validation::Counter)
        }),
        case("timeout.detach_told", 1, ANY, |c| {
            dynamic::detach_late(&join(c)?, Validation::Invalidation)
        }),
        case("window.dynamic_refused", 1, ANY, |c| {
            dynamic::refused(&join(c)?)
        }),
        case("small.free", 2, 3, |c| {
            let machine = c.machine.clone();
            let world = small::join(c)?;
            let window = world.allocate::<u32>(2)?;
            P::go(&machine);
            created::small_free(&world, window)
        }),
        case("small.dynamic", 2, 2, |c| {
            dynamic::small(c, Validation::Counter)
        }),
        case("small.dynamic_told", 2, 2, |c| {
            dynamic::small(c, Validation::Invalidation)
        }),
    ];

    const COLLECTIVE: &'static [Case<P>] = &[
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
        case("collective.mixed", 1, ANY, |c| collective::mixed(&join(c)?)),
        case("collective.refused", 1, ANY, |c| {
            collective::refused(&join(c)?)
        }),
        case("timeout.collectives", 1, ANY, |c| {
            collective::timeouts(&join(c)?)
        }),
        case("small.broadcast", 2, 4, |c| {
            small!(c, |world, _| { collective::small_broadcast(world) })
        }),
        case("small.reduce", 2, 4, |c| {
            small!(c, |world, _| { collective::small_reduce(world) })
        }),
        case("small.allreduce", 2, 4, |c| {
            small!(c, |world, _| { collective::small_allreduce(world) })
        }),
        case("small.alltoall", 2, 4, |c| {
            small!(c, |world, _| { collective::small_alltoall(world) })
        }),
    ];

    const GENERAL: &'static [Case<P>] = &[
        case("world.start", 1, ANY, |c| world::start(&join(c)?)),
        case("world.groups", 1, ANY, |c| world::groups(&join(c)?)),
        case("world.barrier", 2, ANY, |c| world::barrier(&join(c)?)),
        case("world.allgather", 1, ANY, |c| world::allgather(&join(c)?)),
        case("window.zero", 1, ANY, |c| window::zero(&join(c)?)),
        case("window.local", 1, ANY, |c| window::local(&join(c)?)),
        case("window.refused", 1, ANY, |c| window::refused(&join(c)?)),
        case("window.asymmetric", 2, ANY, |c| {
            window::asymmetric(&join(c)?)
        }),
        case("timeout.request", 2, ANY, |c| timeout::request(&join(c)?)),
        case("timeout.barrier", 2, ANY, |c| timeout::barrier(&join(c)?)),
        case("timeout.ring_space", 2, ANY, |c| {
            timeout::ring_space(&join(c)?)
        }),
        case("stencil.notified", 1, ANY, stencil::notified),
        case("stencil.pscw", 1, ANY, stencil::pscw),
        case("small.start", 2, 2, small::start),
        case("small.barrier", 2, ANY, |c| small!(c, small::barrier)),
    ];
}

impl<P: MachinePlatform> Machines<P> {
    pub(crate) const ALL: &'static [&'static [Case<P>]] = &[
        Self::MACHINE,
        Self::VECTOR,
        Self::VECTOR_LOCKS,
        Self::LIST_LOCKS,
    ];

    const VECTOR: &'static [Case<P>] = pscw_cases!("vector.", MatchVector, |_: u16| ());

    const VECTOR_LOCKS: &'static [Case<P>] = lock_cases!("vector.", MatchVector, |_: u16| ());

    const LIST_LOCKS: &'static [Case<P>] = lock_cases!("list.", MatchingList, |posts: u16| posts);

    const MACHINE: &'static [Case<P>] = &[
        case("hal.topology", 1, ANY, hal::topology),
        case("hal.bulk", 1, ANY, hal::bulk),
        case("hal.write_back", 2, ANY, hal::write_back),
        case("hal.invalidate", 2, ANY, hal::invalidate),
        case("hal.lock", 1, ANY, hal::lock),
        Case {
            atomics: true,
            possible: P::ATOMICS.is_some(),
            ..case("hal.atomics", 1, ANY, hal::atomics)
        },
        case("hal.doorbell", 1, ANY, hal::doorbell),
        case("world.restart", 1, ANY, world::restart),
        case("world.dirty_restart", 1, ANY, world::dirty_restart),
        case("world.early_peers", 2, ANY, world::early_peers),
        case("lock.flush", 2, ANY, lock::flush),
        case("link.last_byte", 1, ANY, link::last_byte),
        case("link.post", 2, ANY, link::post),
        case("link.completion", 2, ANY, link::completion),
        case("link.signal", 2, ANY, link::signal),
        case("link.immediate", 2, ANY, link::immediate),
        case("timeout.vector.who", 3, ANY, |c| {
            pscw_timeout::who::<_, MatchVector<'_>>(&join(c)?, (), false)
        }),
        case("timeout.start", 2, ANY, timeout::start),
        case("timeout.lock", 2, ANY, timeout::lock),
        case("link.watch", 2, ANY, link::watch),
        case("link.flush", 2, ANY, link::flush),
        case("timeout.event_locked", 2, ANY, events::locked),
        case(
            "timeout.accumulate_locked",
            2,
            rma::MOST,
            rma_request::locked,
        ),
    ];
}

const fn case<P: Platform>(
    name: &'static str,
    min_cores: u16,
    max_cores: u16,
    run: fn(&mut Context<'_, P>) -> Result<(), Failure>,
) -> Case<P> {
    Case {
        name,
        min_cores,
        max_cores,
        atomics: false,
        possible: true,
        run,
    }
}

/// Repeats `operation` while the link refuses it for the moment only.
fn insist<L: Link, T>(
    link: &L,
    mut operation: impl FnMut() -> Result<T, Refusal>,
) -> Result<T, Failure> {
    loop {
        match operation() {
            Err(refusal) if refusal.is_transient() => link.relax(),
            other => return Ok(other?),
        }
    }
}

/// Repeats `call` while it times out.
fn again<L: Link, T>(
    world: &World<'_, L>,
    mut call: impl FnMut() -> Result<T, Error>,
) -> Result<T, Failure> {
    loop {
        match call() {
            Err(Error::Timeout(_)) => world.link().relax(),
            other => return Ok(other?),
        }
    }
}

/// Joins the case's world, with what the context lends. Argument `budget`: how many microseconds its calls wait.
fn join<'c, P: Platform>(context: &'c mut Context<'_, P>) -> Result<World<'c, P::Link>, Failure> {
    join_as(context, context.session, None)
}

/// [`join`], with one ring for all producers.
fn join_shared<'c, P: Platform>(
    context: &'c mut Context<'_, P>,
) -> Result<World<'c, P::Link>, Failure> {
    join_as(context, context.session, Some(Ring::Shared { entries: 64 }))
}

/// [`join`], as another session than the context's, or with other rings.
fn join_as<'c, P: Platform>(
    context: &'c mut Context<'_, P>,
    session: u32,
    ring: Option<Ring>,
) -> Result<World<'c, P::Link>, Failure> {
    let mut config = Config::default();
    if context.args.text("budget").is_some() {
        let budget = context.args.number("budget", 0);
        let budget = budget.ok_or(Failure::Argument("budget is not a number"))?;
        config.budget = Budget::microseconds(budget.into());
    }
    let link = P::link(&context.machine, session, ring)?;
    let world = World::start(link, context.arena, config)?;
    P::go(&context.machine);
    Ok(world)
}
