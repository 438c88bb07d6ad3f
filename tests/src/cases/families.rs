//! The rows of the tables, and cases that come in families: the same with another strategy, other
//! rings, another setting.

/// Cases, a row in brackets each: `[name, least..=most cores, how to run it]`, as [`case!`] reads
/// it.
macro_rules! cases {
    ($([$($row:tt)+])*) => { &[$(case!($($row)+)),*] };
}

/// The case of a row. How to run it is one of:
///
/// * `function` or `function, argument`: with the case's world;
/// * `|world| expression`, with a name for that world;
/// * `joined join, function`: with a world that `join` makes of the context;
/// * `context function`: with the context, before there is a world;
/// * `small function`: with the window of a small case, or, as `small function, |world| window`,
///   with another one. `small |world, go| expression` says itself when it is set up;
/// * `ringed ring, ..`: a small one, with rings of one's choice;
/// * `epochs 2, ..` and `with locks, ..`: one that has so many epochs, or whatever `locks` adds.
macro_rules! case {
    ($($name:literal)+, $cores:expr, context $run:expr) => {
        case(concat!($($name),+), $cores, $run)
    };
    ($($name:literal)+, $cores:expr, epochs $epochs:literal, $($run:tt)+) => {
        Case { epochs: $epochs, ..case!($($name)+, $cores, $($run)+) }
    };
    ($($name:literal)+, $cores:expr, with $with:path, $($run:tt)+) => {
        $with(case!($($name)+, $cores, $($run)+))
    };
    ($($name:literal)+, $cores:expr, ringed $ring:expr, |$world:ident, $go:ident| $run:expr) => {
        case(concat!($($name),+), $cores, |context| {
            let machine = context.machine.clone();
            let $world = &small::join(context, $ring)?;
            let $go = || P::go(&machine);
            $run
        })
    };
    ($($name:literal)+, $cores:expr, ringed $ring:expr, $run:path, |$world:ident| $made:expr) => {
        case!($($name)+, $cores, ringed $ring, |$world, go| {
            let made = $made?;
            go();
            $run(&made)
        })
    };
    ($($name:literal)+, $cores:expr, ringed $ring:expr, |$window:ident| $run:expr) => {
        case!($($name)+, $cores, ringed $ring, |world, go| {
            let $window = &world.allocate::<u32>(small::WORDS)?;
            go();
            $run
        })
    };
    ($($name:literal)+, $cores:expr, ringed $ring:expr, $run:path) => {
        case!($($name)+, $cores, ringed $ring, |window| $run(window))
    };
    ($($name:literal)+, $cores:expr, small $($run:tt)+) => {
        case!($($name)+, $cores, ringed small::RING, $($run)+)
    };
    ($($name:literal)+, $cores:expr, joined $join:ident, $run:path $(, $argument:expr)*) => {
        case(concat!($($name),+), $cores, |context| $run(&$join(context)?, $($argument),*))
    };
    ($($name:literal)+, $cores:expr, |$world:ident| $run:expr) => {
        case(concat!($($name),+), $cores, |context| {
            let $world = &join(context)?;
            $run
        })
    };
    ($($name:literal)+, $cores:expr, $run:path $(, $argument:expr)*) => {
        case!($($name)+, $cores, joined join, $run $(, $argument)*)
    };
}

/// The cases of PSCW, with epochs signalled as `$strategy` does.
macro_rules! pscw_cases {
    ($prefix:literal, $strategy:ident) => {
        cases! {
            ["pscw." $prefix "ring", 1..=ANY, pscw::ring::<_, $strategy<'_>>]
            ["pscw." $prefix "get", 2..=ANY, pscw::get::<_, $strategy<'_>>]
            ["pscw." $prefix "fan_in", 2..=ANY, pscw::fan_in::<_, $strategy<'_>>]
            ["pscw." $prefix "fan_out", 2..=ANY, pscw::fan_out::<_, $strategy<'_>>]
            ["pscw." $prefix "all_to_all", 2..=48, pscw::all_to_all::<_, $strategy<'_>>]
            ["pscw." $prefix "switch", 3..=ANY, pscw::switch::<_, $strategy<'_>>]
            ["pscw." $prefix "early_posts", 3..=ANY, pscw::early_posts::<_, $strategy<'_>>]
            ["pscw." $prefix "windows", 2..=ANY, pscw::windows::<_, $strategy<'_>>]
            ["pscw." $prefix "test", 2..=ANY, pscw::test::<_, $strategy<'_>>]
            ["pscw." $prefix "immediate", 3..=ANY, pscw::immediate::<_, $strategy<'_>>]
            ["pscw." $prefix "strangers", 3..=MANY, pscw::strangers::<_, $strategy<'_>>]
            ["pscw." $prefix "full_ring", 2..=ANY, pscw::full_ring::<_, $strategy<'_>>]
            ["pscw." $prefix "groups", 1..=48, pscw::groups::<_, $strategy<'_>>]
            ["pscw." $prefix "misuse", 1..=MANY, pscw::misuse::<_, $strategy<'_>>]
            ["pscw." $prefix "created", 1..=MANY, |world| {
                let memory = created::memory(world)?;
                created::anywhere::<_, $strategy<'_>>(world, &memory)
            }]
            ["pscw." $prefix "dynamic", 1..=MANY, dynamic::with::<_, $strategy<'_>>]
            ["told." $prefix "by_post", 3..=ANY, told::by_post::<_, $strategy<'_>>]
            ["timeout." $prefix "post", 2..=ANY, pscw_timeout::post::<_, $strategy<'_>>]
            ["timeout." $prefix "wait", 2..=ANY, pscw_timeout::wait::<_, $strategy<'_>>]
            ["timeout." $prefix "every_call", 1..=48, pscw_timeout::every_call::<_, $strategy<'_>>]
            ["timeout." $prefix "dropped", 3..=MANY, pscw_timeout::dropped::<_, $strategy<'_>>]
            ["small." $prefix "fan_out", 2..=4, small small::fan_out::<_, _, 1>, |world|
                small::window::<_, $strategy<'_>>(world, world.size() - 1)]
            ["small." $prefix "fan_out_twice", 2..=3, epochs 2,
                small small::fan_out::<_, _, 2>, |world|
                small::window::<_, $strategy<'_>>(world, world.size() - 1)]
            ["small." $prefix "fan_in", 3..=3, small small::fan_in::<_, _, 1>, |world|
                small::window::<_, $strategy<'_>>(world, 1)]
            ["small." $prefix "fan_in_twice", 3..=3, epochs 2,
                small small::fan_in::<_, _, 2>, |world|
                small::window::<_, $strategy<'_>>(world, 1)]
            ["small." $prefix "switch", 3..=3, epochs 2, small small::switch, |world|
                small::window::<_, $strategy<'_>>(world, 2)]
            ["small." $prefix "ring", 2..=MANY, small small::ring::<_, _, 1>, |world|
                small::window::<_, $strategy<'_>>(world, 1)]
            ["small." $prefix "ring_twice", 2..=MANY, epochs 2,
                small small::ring::<_, _, 2>, |world|
                small::window::<_, $strategy<'_>>(world, 1)]
            ["small." $prefix "get", 2..=2, small small::get, |world|
                small::window::<_, $strategy<'_>>(world, 1)]
        }
    };
}

/// The cases of notified accesses, with rings as `$join` makes them, for up to `$most` cores.
macro_rules! notify_cases {
    ($prefix:literal, $join:ident, $most:expr) => {
        cases! {
            ["notify." $prefix "ring", 1..=ANY, joined $join, notify::ring]
            ["notify." $prefix "sizes", 2..=MANY, joined $join, notify::sizes]
            ["notify." $prefix "tags", 2..=$most, joined $join, notify::tags]
            ["notify." $prefix "any_source", 2..=$most, joined $join, notify::any_source]
            ["notify." $prefix "mutual", 1..=MANY, joined $join, notify::mutual]
            ["notify." $prefix "mutual_tested", 1..=MANY, joined $join, notify::mutual_tested]
            ["notify." $prefix "sources", 2..=$most, joined $join, notify::sources]
            ["notify." $prefix "flood", 2..=MANY, joined $join, notify::flood]
            ["notify." $prefix "order", 2..=$most, joined $join, notify::order]
            ["notify." $prefix "shared_line", 2..=MANY, joined $join, notify::shared_line]
            ["notify." $prefix "queue_full", 2..=$most, joined $join, notify::queue_full]
            ["notify." $prefix "windows", 2..=MANY, joined $join, notify::windows]
            ["notify." $prefix "overlap", 1..=MANY, joined $join, notify::overlap]
            ["notify." $prefix "barrier", 2..=$most, joined $join, notify::barrier]
            ["notify." $prefix "count", 1..=$most, joined $join, notify::count]
            ["notify." $prefix "queue_just_full", 2..=MANY, joined $join, notify::queue_just_full]
            ["notify." $prefix "cancel", 1..=MANY, joined $join, notify::cancel]
            ["notify." $prefix "misuse", 1..=MANY, joined $join, notify::misuse]
            ["notify." $prefix "flushed", 1..=$most, joined $join, notify_inline::flushed::<_, 2>]
            ["notify." $prefix "fenced", 1..=MANY, joined $join, notify_inline::fenced]
            ["notify." $prefix "forwarded", 3..=MANY,
                joined $join, notify_inline::forwarded]
            ["notify." $prefix "relayed", 3..=MANY, joined $join, notify_inline::relayed::<_, 1>]
            ["notify." $prefix "around", 1..=$most,
                joined $join, notify_inline::around, Model::Separate]
            ["notify." $prefix "around_unified", 1..=MANY,
                joined $join, notify_inline::around, Model::Unified]
        }
    };
}

/// Notified accesses in small cases, with rings as `$ring` says.
macro_rules! small_notify_cases {
    ($prefix:literal, $ring:expr) => {
        cases! {
            ["small." $prefix "notify", 2..=3, ringed $ring, small::notify::<_, _, 1>]
            ["small." $prefix "notify_twice", 2..=3,
                epochs 2, ringed $ring, small::notify::<_, _, 2>]
            ["small." $prefix "ping_pong", 2..=2, epochs 2, ringed $ring, small::ping_pong]
            ["small." $prefix "notify_flushed", 2..=2, ringed $ring, notify_inline::small_flushed]
        }
    };
}

/// Cases of strategies that take locks.
macro_rules! lock_cases {
    ($prefix:literal, $strategy:ident, $needs:path) => {
        cases! {
            ["timeout." $prefix "rest_of_post", 3..=ANY, with $needs, context |c| {
                let machine = c.machine.clone();
                pscw_timeout::rest_of_post::<_, _, $strategy<'_>>(&machine, &join(c)?)
            }]
            ["timeout." $prefix "rest_of_complete", 3..=ANY, with $needs, context |c| {
                let machine = c.machine.clone();
                pscw_timeout::rest_of_complete::<_, _, $strategy<'_>>(&machine, &join(c)?)
            }]
        }
    };
}
