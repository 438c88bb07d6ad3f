//! Cases of notified accesses, requests, counters, signals and events.

use crate::cases::{
    ANY, Links, MANY, case, complete, count_request, counters, events, join, join_shared, notify,
    notify_access, notify_inline, notify_long, notify_request, notify_stopped, progress, signals,
    small, told,
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
    pub(crate) const NOTIFY_FULL: &'static [Case<P>] = cases! {
        ["small.shared.notify_full", 2..=2,
            epochs 4, ringed Ring::Shared { entries: 1 }, small::notify::<_, _, 4>]
        ["notify.one_entry", 2..=2, ringed Ring::Pairs { entries: 1 }, small::notify::<_, _, 4>]
        ["notify.one_entry_belled", 2..=2,
            ringed Ring::Bells { entries: 1 }, small::notify::<_, _, 4>]
        ["small.shared.notify_answered", 2..=2,
            ringed Ring::Shared { entries: 1 }, notify_inline::small_answered]
        ["notify.answered", 2..=2, ringed small::RING, notify_inline::small_answered]
        ["notify.queue_stays_full", 2..=MANY, ringed small::RING, notify_inline::queue_stays_full]
    };

    /// Who is told that a rank has been notified.
    pub(crate) const TOLD: &'static [Case<P>] = cases! {
        ["told.by_fetch", 3..=ANY, told::rounds, told::by_fetch]
        ["told.by_product", 3..=MANY, told::rounds, told::by_product]
        ["told.by_put", 3..=ANY, told::rounds, told::by_put]
        ["told.last_flushed", 2..=MANY, told::rounds, told::last_flushed]
        ["told.covered", 2..=MANY, told::rounds, told::covered]
        ["told.behind_puts", 2..=MANY, told::rounds, told::behind_puts]
        ["told.answered", 2..=ANY, told::rounds, told::answered]
        ["told.unlocked", 3..=ANY, told::rounds, told::unlocked]
        ["told.ended", 2..=MANY, told::ended]
        ["told.long_answers_wait", 3..=MANY, told::rounds, told::answers_wait]
    };

    /// Calls that wait only for what they are about.
    pub(crate) const PROGRESS: &'static [Case<P>] = cases! {
        ["progress.full_queues", 2..=3, progress::full_queues]
        ["progress.refused", 2..=MANY, progress::refused]
        ["progress.long_through", 3..=MANY, progress::through]
        ["progress.flushed_while_taken", 2..=MANY, progress::flushed_while_taken]
        ["progress.polls_by_get", 2..=MANY, progress::polled, Model::Separate, progress::get]
        ["progress.polls_by_fetch", 2..=MANY, progress::polled, Model::Separate, progress::fetch]
        ["progress.polls_by_flush", 2..=MANY, progress::polled, Model::Separate, progress::flush]
        ["progress.polls_by_local", 2..=MANY, progress::polled, Model::Unified, progress::local]
    };

    pub(crate) const NOTIFIED: &'static [Case<P>] = cases! {
        ["notify.changes", 1..=ANY, notify_access::changes]
        ["notify.gets", 1..=ANY, notify_access::gets]
        ["notify.cached_get", 1..=MANY, notify_access::cached_get]
        ["notify.read_before", 2..=MANY, notify_access::read_before]
        ["notify.strange", 2..=MANY, notify_access::strange]
        ["notify.mixed", 1..=MANY, notify_access::mixed]
        ["notify.refused", 1..=MANY, notify_access::misuse]
        ["timeout.notified", 2..=ANY, notify_access::late]
        ["notify.flushed_often", 2..=MANY, notify_inline::flushed_often]
        // Payload in lines of its own, where ranks are few and their message buffers large.
        ["notify.long_flushed", 1..=MANY, notify_inline::flushed::<_, 24>]
        ["notify.long_relayed", 3..=MANY, notify_inline::relayed::<_, 24>]
        ["notify.across", 1..=MANY, notify_inline::across]
        ["notify.range_of_bytes", 2..=MANY, notify_inline::range_of_bytes]
        ["notify.long_around", 1..=MANY, notify_long::around::<_, 24>, Model::Separate]
        ["notify.long_around_unified", 1..=MANY, notify_long::around::<_, 24>, Model::Unified]
        ["timeout.long_payload", 2..=MANY, notify_stopped::late]
        ["timeout.long_dropped", 2..=MANY, notify_stopped::dropped]
        ["timeout.long_dropped_over", 2..=MANY, notify_stopped::dropped_over]
        ["notify.long_lengths", 2..=4, notify_long::lengths]
        ["notify.long_streamed", 2..=ANY, notify_long::streamed]
        ["notify.long_crowded", 2..=MANY, notify_long::crowded]
        ["notify.long_beside_word", 2..=MANY, notify_long::beside_word]
        ["notify.kinds", 1..=MANY, complete::mixed]
        ["notify.several", 1..=MANY, notify_request::several]
        ["notify.requests_overlap", 1..=MANY, notify_request::overlap]
        ["notify.probe", 1..=MANY, notify_request::probe]
        ["notify.several_full", 2..=MANY, notify_request::full]
        ["timeout.several", 2..=ANY, notify_request::timeout]
        ["window.free_flooded", 1..=MANY, notify_request::flooded]
        ["small.wait_any", 2..=3, small notify_request::small_any]
        ["notify.long_discarded", 2..=MANY, notify_long::discarded]
        ["small.notify_accumulate", 2..=3, small notify_access::small::accumulate]
        ["small.notify_fetch", 2..=2, small notify_access::small::fetch]
        ["small.notify_get", 2..=2, small notify_access::small::get, |world|
            world.allocate_with::<u32, EpochSlots<'_>>(small::WORDS, Model::Unified)]
    };

    pub(crate) const COUNTED: &'static [Case<P>] = cases! {
        ["counters.ring", 1..=ANY, counters::ring]
        ["counters.everybody", 1..=48, counters::everybody]
        ["counters.differing", 1..=MANY, counters::differing]
        ["counters.again", 1..=MANY, counters::again]
        ["counters.together", 1..=MANY, counters::together]
        ["counters.windows", 1..=48, counters::windows]
        ["counters.freed", 1..=48, counters::freed]
        ["counters.shared_line", 2..=MANY, count_request::shared_line]
        ["counters.any", 1..=ANY, count_request::any]
        ["counters.all", 1..=MANY, count_request::all]
        ["counters.misuse", 1..=MANY, count_request::misuse]
        ["counters.progress", 2..=MANY, count_request::progress]
        ["timeout.counters", 2..=MANY, count_request::late]
        ["counters.rounds", 1..=MANY, count_request::rounds]
        ["signals.compared", 1..=MANY, signals::compared]
        ["signals.wide", 1..=ANY, signals::wide]
        ["timeout.signals", 1..=MANY, signals::looks]
        ["signals.refused", 1..=MANY, signals::refused]
        ["events.ring", 1..=ANY, events::ring]
        ["events.counts", 1..=48, events::counts]
        ["events.orders", 2..=MANY, events::orders]
        ["events.meets", 1..=ANY, events::meets]
        ["events.requests", 1..=ANY, events::requests]
        ["events.misuse", 1..=MANY, events::misuse]
        ["events.together", 1..=MANY, events::together]
        ["timeout.events", 2..=ANY, events::late]
        ["small.counter", 2..=3,
            small counters::small::count, |world| counters::small::counted(world, 2)]
        ["small.counter_reset", 2..=3,
            small counters::small::reset, |world| counters::small::counted(world, 2)]
        ["small.counter_set", 2..=2, small |world, go| {
            let mut window = counters::small::counted(world, 1)?;
            window.set_notify_value(Counter(0), 9.into())?;
            window.set_num_notify(0)?;
            go();
            counters::small::set(window)
        }]
        ["small.signal", 2..=2, small signals::small::put, |world|
            counters::small::counted(world, 1 + <P::Link as Link>::LINE / 4)]
        ["small.signal_set", 2..=2,
            small signals::small::set_and_add, |world| counters::small::counted(world, 1)]
        ["small.event", 2..=3, small |world, go| {
            let events = world.events(1)?;
            go();
            events::small::post(world, &events)
        }]
        ["small.event_ping_pong", 2..=2, epochs 2, small |world, go| {
            let (window, events) = (world.allocate::<u32>(1)?, world.events(1)?);
            go();
            events::small::ping_pong(&window, &events)
        }]
        ["small.event_made", 2..=2, small |world, go| {
            go();
            events::small::made(world)
        }]
    };
}

impl<P: MachinePlatform> crate::cases::Machines<P> {
    /// As [`PROGRESS`](Links::PROGRESS), where peers' memory is used directly.
    pub(crate) const PROGRESS_DIRECT: &'static [Case<P>] = cases! {
        ["progress.polls_by_peer", 2..=MANY, progress::polled, Model::Separate, progress::peer]
    };
}
