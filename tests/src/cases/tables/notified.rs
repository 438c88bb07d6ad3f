//! Cases of notified accesses, requests, counters, signals and events.

use crate::cases::{
    ANY, Links, MANY, case, complete, count_request, counters, epochs, events, join, join_shared,
    notify, notify_access, notify_inline, notify_long, notify_request, notify_stopped, progress,
    signals, small, told,
};
use crate::{Case, MachinePlatform, Platform, Ring};
use flagpost::{Counter, EpochSlots, Link, Model};

impl<P: Platform> Links<P> {
    pub(crate) const NOTIFY: &'static [Case<P>] = notify_cases!("", join, ANY);

    pub(crate) const NOTIFY_SHARED: &'static [Case<P>] =
        notify_cases!("shared.", join_shared, MANY);

    pub(crate) const SMALL_NOTIFY: &'static [Case<P>] = small_notify_cases!("", small::RING);

    pub(crate) const SMALL_NOTIFY_SHARED: &'static [Case<P>] =
        small_notify_cases!("shared.", Ring::Shared { entries: 1 });

    pub(crate) const SMALL_NOTIFY_BELLS: &'static [Case<P>] =
        small_notify_cases!("bells.", Ring::Bells { entries: 2 });

    /// Each put fills the ring; an answer comes before the next. A pair's have too many schedules
    /// for an exhaustive search each time.
    pub(crate) const NOTIFY_FULL: &'static [Case<P>] = &[
        epochs(
            4,
            case("small.shared.notify_full", 2, 2, |c| {
                small_ring!(c, Ring::Shared { entries: 1 }, small::notify::<_, _, 4>)
            }),
        ),
        case("notify.one_entry", 2, 2, |c| {
            small_ring!(c, Ring::Pairs { entries: 1 }, small::notify::<_, _, 4>)
        }),
        case("notify.one_entry_belled", 2, 2, |c| {
            small_ring!(c, Ring::Bells { entries: 1 }, small::notify::<_, _, 4>)
        }),
        case("small.shared.notify_answered", 2, 2, |c| {
            let ring = Ring::Shared { entries: 1 };
            small_ring!(c, ring, notify_inline::small_answered)
        }),
        case("notify.answered", 2, 2, |c| {
            small_ring!(c, small::RING, notify_inline::small_answered)
        }),
        case("notify.queue_stays_full", 2, MANY, |c| {
            small_ring!(c, small::RING, notify_inline::queue_stays_full)
        }),
    ];

    /// Who is told that a rank has been notified.
    pub(crate) const TOLD: &'static [Case<P>] = &[
        case("told.by_fetch", 3, ANY, |c| {
            told::rounds(&join(c)?, told::by_fetch)
        }),
        case("told.by_product", 3, MANY, |c| {
            told::rounds(&join(c)?, told::by_product)
        }),
        case("told.by_put", 3, ANY, |c| {
            told::rounds(&join(c)?, told::by_put)
        }),
        case("told.last_flushed", 2, MANY, |c| {
            told::rounds(&join(c)?, told::last_flushed)
        }),
        case("told.covered", 2, MANY, |c| {
            told::rounds(&join(c)?, told::covered)
        }),
        case("told.behind_puts", 2, MANY, |c| {
            told::rounds(&join(c)?, told::behind_puts)
        }),
        case("told.answered", 2, ANY, |c| {
            told::rounds(&join(c)?, told::answered)
        }),
        case("told.unlocked", 3, ANY, |c| {
            told::rounds(&join(c)?, told::unlocked)
        }),
        case("told.both_answer", 3, MANY, |c| {
            told::rounds(&join(c)?, told::both_answer)
        }),
        case("told.ended", 2, MANY, |c| told::ended(&join(c)?)),
        case("told.answers_wait", 3, MANY, |c| {
            told::rounds(&join(c)?, told::answers_wait::<_, false>)
        }),
        case("told.long_answers_wait", 3, MANY, |c| {
            told::rounds(&join(c)?, told::answers_wait::<_, true>)
        }),
        case("told.long_tells", 3, MANY, |c| {
            told::rounds(&join(c)?, told::at_length)
        }),
    ];

    /// Calls that wait only for what they are about.
    pub(crate) const PROGRESS: &'static [Case<P>] = &[
        case("progress.full_queues", 2, 3, |c| {
            progress::full_queues(&join(c)?)
        }),
        case("progress.refused", 2, MANY, |c| {
            progress::refused(&join(c)?)
        }),
        case("progress.long_through", 3, MANY, |c| {
            progress::through(&join(c)?)
        }),
        case("progress.flushed_while_taken", 2, MANY, |c| {
            progress::flushed_while_taken(&join(c)?)
        }),
        case("progress.polls_by_get", 2, MANY, |c| {
            progress::polled(&join(c)?, Model::Separate, progress::get)
        }),
        case("progress.polls_by_fetch", 2, MANY, |c| {
            progress::polled(&join(c)?, Model::Separate, progress::fetch)
        }),
        case("progress.polls_by_flush", 2, MANY, |c| {
            progress::polled(&join(c)?, Model::Separate, progress::flush)
        }),
        case("progress.polls_by_local", 2, MANY, |c| {
            progress::polled(&join(c)?, Model::Unified, progress::local)
        }),
    ];

    pub(crate) const NOTIFIED: &'static [Case<P>] = &[
        case("notify.changes", 1, ANY, |c| {
            notify_access::changes(&join(c)?)
        }),
        case("notify.gets", 1, ANY, |c| notify_access::gets(&join(c)?)),
        case("notify.cached_get", 1, MANY, |c| {
            notify_access::cached_get(&join(c)?)
        }),
        case("notify.read_before", 2, MANY, |c| {
            notify_access::read_before(&join(c)?)
        }),
        case("notify.strange", 2, MANY, |c| {
            notify_access::strange(&join(c)?)
        }),
        case("notify.mixed", 1, MANY, |c| notify_access::mixed(&join(c)?)),
        case("notify.refused", 1, MANY, |c| {
            notify_access::misuse(&join(c)?)
        }),
        case("timeout.notified", 2, ANY, |c| {
            notify_access::late(&join(c)?)
        }),
        case("notify.flushed_often", 2, MANY, |c| {
            notify_inline::flushed_often(&join(c)?)
        }),
        // Payload in lines of its own, where ranks are few and their message buffers large.
        case("notify.long_flushed", 1, MANY, |c| {
            notify_inline::flushed::<_, 24>(&join(c)?)
        }),
        case("notify.long_fenced", 1, MANY, |c| {
            notify_inline::fenced::<_, 24>(&join(c)?)
        }),
        case("notify.long_forwarded", 3, MANY, |c| {
            notify_inline::forwarded::<_, 24>(&join(c)?)
        }),
        case("notify.long_relayed", 3, MANY, |c| {
            notify_inline::relayed::<_, 24>(&join(c)?)
        }),
        case("notify.across", 1, MANY, |c| {
            notify_inline::across(&join(c)?)
        }),
        case("notify.range_of_bytes", 2, MANY, |c| {
            notify_inline::range_of_bytes(&join(c)?)
        }),
        case("notify.long_around", 1, MANY, |c| {
            notify_long::around::<_, 24>(&join(c)?, Model::Separate)
        }),
        case("notify.long_around_unified", 1, MANY, |c| {
            notify_long::around::<_, 24>(&join(c)?, Model::Unified)
        }),
        case("notify.long_behind", 1, MANY, |c| {
            notify_long::behind(&join(c)?)
        }),
        case("timeout.long_payload", 2, MANY, |c| {
            notify_stopped::late(&join(c)?)
        }),
        case("timeout.long_dropped", 2, MANY, |c| {
            notify_stopped::dropped(&join(c)?)
        }),
        case("timeout.long_dropped_over", 2, MANY, |c| {
            notify_stopped::dropped_over(&join(c)?)
        }),
        case("notify.long_of_two", 3, MANY, |c| {
            notify_long::of_two::<_, 24>(&join(c)?)
        }),
        case("notify.long_lengths", 2, 4, |c| {
            notify_long::lengths(&join(c)?)
        }),
        case("notify.long_streamed", 2, ANY, |c| {
            notify_long::streamed::<_, 6>(&join(c)?)
        }),
        case("notify.long_streamed_lines", 2, MANY, |c| {
            notify_long::streamed::<_, 8>(&join(c)?)
        }),
        case("notify.long_covered", 2, MANY, |c| {
            notify_long::covered(&join(c)?)
        }),
        case("notify.long_both", 2, MANY, |c| {
            notify_long::both(&join(c)?)
        }),
        case("notify.long_crowded", 2, MANY, |c| {
            notify_long::crowded(&join(c)?)
        }),
        case("notify.long_beside_word", 2, MANY, |c| {
            notify_long::beside_word(&join(c)?)
        }),
        case("notify.long_beside_other", 3, MANY, |c| {
            notify_long::beside_other(&join(c)?)
        }),
        case("notify.long_got", 2, MANY, |c| notify_long::got(&join(c)?)),
        case("notify.kinds", 1, MANY, |c| complete::mixed(&join(c)?)),
        case("notify.several", 1, MANY, |c| {
            notify_request::several(&join(c)?)
        }),
        case("notify.requests_overlap", 1, MANY, |c| {
            notify_request::overlap(&join(c)?)
        }),
        case("notify.probe", 1, MANY, |c| {
            notify_request::probe(&join(c)?)
        }),
        case("notify.several_full", 2, MANY, |c| {
            notify_request::full(&join(c)?)
        }),
        case("timeout.several", 2, ANY, |c| {
            notify_request::timeout(&join(c)?)
        }),
        case("window.free_flooded", 1, MANY, |c| {
            notify_request::flooded(&join(c)?)
        }),
        case("small.wait_any", 2, 3, |c| {
            small!(c, notify_request::small_any)
        }),
        case("notify.long_discarded", 2, MANY, |c| {
            notify_long::discarded(&join(c)?)
        }),
        case("notify.long_list", 2, MANY, |c| {
            notify_long::list(&join(c)?)
        }),
        case("notify.long_small", 2, 2, |c| {
            let machine = c.machine.clone();
            let world = small::join(c)?;
            let window = world.allocate::<u32>(notify_long::SMALL)?;
            P::go(&machine);
            notify_long::small(&world, &window)
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

    pub(crate) const COUNTED: &'static [Case<P>] = &[
        case("counters.ring", 1, ANY, |c| counters::ring(&join(c)?)),
        case("counters.everybody", 1, 48, |c| {
            counters::everybody(&join(c)?)
        }),
        case("counters.swaps", 1, MANY, |c| counters::swaps(&join(c)?)),
        case("counters.differing", 1, MANY, |c| {
            counters::differing(&join(c)?)
        }),
        case("counters.again", 1, MANY, |c| counters::again(&join(c)?)),
        case("counters.together", 1, MANY, |c| {
            counters::together(&join(c)?)
        }),
        case("counters.windows", 1, 48, |c| counters::windows(&join(c)?)),
        case("counters.freed", 1, 48, |c| counters::freed(&join(c)?)),
        case("counters.churn", 1, MANY, |c| counters::churn(&join(c)?)),
        case("counters.shared_line", 2, MANY, |c| {
            count_request::shared_line(&join(c)?)
        }),
        case("counters.any", 1, ANY, |c| count_request::any(&join(c)?)),
        case("counters.all", 1, MANY, |c| count_request::all(&join(c)?)),
        case("counters.misuse", 1, MANY, |c| {
            count_request::misuse(&join(c)?)
        }),
        case("counters.progress", 2, MANY, |c| {
            count_request::progress(&join(c)?)
        }),
        case("timeout.counters", 2, MANY, |c| {
            count_request::late(&join(c)?)
        }),
        case("counters.rounds", 1, MANY, |c| {
            count_request::rounds(&join(c)?)
        }),
        case("signals.compared", 1, MANY, |c| {
            signals::compared(&join(c)?)
        }),
        case("signals.pipeline", 1, ANY, |c| signals::pipeline(&join(c)?)),
        case("signals.wide", 1, ANY, |c| signals::wide(&join(c)?)),
        case("signals.sums", 1, MANY, |c| signals::sums(&join(c)?)),
        case("timeout.signals", 1, MANY, |c| signals::looks(&join(c)?)),
        case("signals.refused", 1, MANY, |c| signals::refused(&join(c)?)),
        case("events.ring", 1, ANY, |c| events::ring(&join(c)?)),
        case("events.counts", 1, 48, |c| events::counts(&join(c)?)),
        case("events.orders", 2, MANY, |c| events::orders(&join(c)?)),
        case("events.meets", 1, ANY, |c| events::meets(&join(c)?)),
        case("events.requests", 1, ANY, |c| events::requests(&join(c)?)),
        case("events.misuse", 1, MANY, |c| events::misuse(&join(c)?)),
        case("events.together", 1, MANY, |c| events::together(&join(c)?)),
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
            window.set_notify_value(Counter(0), 9.into())?;
            window.set_num_notify(0)?;
            P::go(&machine);
            counters::small::set(&world, window)
        }),
        case("small.signal", 2, 2, |c| {
            let words = 1 + <P::Link as Link>::LINE / 4;
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
        epochs(
            2,
            case("small.event_ping_pong", 2, 2, |c| {
                let machine = c.machine.clone();
                let world = small::join(c)?;
                let window = world.allocate::<u32>(1)?;
                let events = world.events(1)?;
                P::go(&machine);
                events::small::ping_pong(&world, &window, &events)
            }),
        ),
        case("small.event_made", 2, 2, |c| {
            let machine = c.machine.clone();
            let world = small::join(c)?;
            P::go(&machine);
            events::small::made(&world)
        }),
    ];
}

impl<P: MachinePlatform> crate::cases::Machines<P> {
    /// As [`PROGRESS`](Links::PROGRESS), where peers' memory is used directly.
    pub(crate) const PROGRESS_DIRECT: &'static [Case<P>] =
        &[case("progress.polls_by_peer", 2, MANY, |c| {
            progress::polled(&join(c)?, Model::Separate, progress::peer)
        })];
}
