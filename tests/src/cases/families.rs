//! Cases that come in families: the same with another strategy, other rings, another setting.

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

/// The cases of PSCW, with epochs signalled as `$strategy` does. `$options` makes its options of
/// how many posts can be under way to a rank at the same time.
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
            case(concat!("pscw.", $prefix, "strangers"), 3, MANY, |c| {
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
            case(concat!("pscw.", $prefix, "misuse"), 1, MANY, |c| {
                let world = join(c)?;
                pscw::misuse::<_, $strategy<'_>>(&world, $options(1))
            }),
            case(concat!("pscw.", $prefix, "created"), 1, MANY, |c| {
                let world = join(c)?;
                let memory = created::memory(&world)?;
                created::anywhere::<_, $strategy<'_>>(&world, &memory, || $options(1))
            }),
            case(concat!("pscw.", $prefix, "dynamic"), 1, MANY, |c| {
                let world = join(c)?;
                dynamic::with::<_, $strategy<'_>>(&world, || $options(1))
            }),
            case(concat!("told.", $prefix, "by_post"), 3, ANY, |c| {
                let world = join(c)?;
                told::by_post::<_, $strategy<'_>>(&world, $options(1))
            }),
            case(concat!("told.", $prefix, "by_complete"), 3, ANY, |c| {
                let world = join(c)?;
                told::by_complete::<_, $strategy<'_>>(&world, $options(1))
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
            case(concat!("timeout.", $prefix, "dropped"), 3, MANY, |c| {
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
            epochs(
                2,
                case(concat!("small.", $prefix, "fan_out_twice"), 2, 3, |c| {
                    small!(
                        c,
                        $strategy,
                        $options,
                        |size| size - 1,
                        small::fan_out::<_, _, 2>
                    )
                }),
            ),
            case(concat!("small.", $prefix, "fan_in"), 3, 3, |c| {
                small!(c, $strategy, $options, |_| 1, small::fan_in::<_, _, 1>)
            }),
            epochs(
                2,
                case(concat!("small.", $prefix, "fan_in_twice"), 3, 3, |c| {
                    small!(c, $strategy, $options, |_| 1, small::fan_in::<_, _, 2>)
                }),
            ),
            epochs(
                2,
                case(concat!("small.", $prefix, "switch"), 3, 3, |c| {
                    small!(c, $strategy, $options, |_| 2, small::switch)
                }),
            ),
            case(concat!("small.", $prefix, "ring"), 2, MANY, |c| {
                small!(c, $strategy, $options, |_| 1, small::ring::<_, _, 1>)
            }),
            epochs(
                2,
                case(concat!("small.", $prefix, "ring_twice"), 2, MANY, |c| {
                    small!(c, $strategy, $options, |_| 1, small::ring::<_, _, 2>)
                }),
            ),
            case(concat!("small.", $prefix, "get"), 2, 2, |c| {
                small!(c, $strategy, $options, |_| 1, small::get)
            }),
        ]
    };
}

/// The cases of notified accesses, with rings as `$join` makes them, for up to `$most` cores.
macro_rules! notify_cases {
    ($prefix:literal, $join:ident, $most:expr) => {
        &[
            case(concat!("notify.", $prefix, "ring"), 1, ANY, |c| {
                notify::ring(&$join(c)?)
            }),
            case(concat!("notify.", $prefix, "sizes"), 2, MANY, |c| {
                notify::sizes(&$join(c)?)
            }),
            case(concat!("notify.", $prefix, "tags"), 2, $most, |c| {
                notify::tags(&$join(c)?)
            }),
            case(concat!("notify.", $prefix, "any_source"), 2, $most, |c| {
                notify::any_source(&$join(c)?)
            }),
            case(concat!("notify.", $prefix, "mutual"), 1, MANY, |c| {
                notify::mutual(&$join(c)?)
            }),
            case(concat!("notify.", $prefix, "mutual_tested"), 1, MANY, |c| {
                notify::mutual_tested(&$join(c)?)
            }),
            case(concat!("notify.", $prefix, "sources"), 2, $most, |c| {
                notify::sources(&$join(c)?)
            }),
            case(concat!("notify.", $prefix, "flood"), 2, MANY, |c| {
                notify::flood(&$join(c)?)
            }),
            case(concat!("notify.", $prefix, "order"), 2, $most, |c| {
                notify::order(&$join(c)?)
            }),
            case(concat!("notify.", $prefix, "shared_line"), 2, MANY, |c| {
                notify::shared_line(&$join(c)?)
            }),
            case(concat!("notify.", $prefix, "queue_full"), 2, $most, |c| {
                notify::queue_full(&$join(c)?)
            }),
            case(concat!("notify.", $prefix, "windows"), 2, MANY, |c| {
                notify::windows(&$join(c)?)
            }),
            case(concat!("notify.", $prefix, "overlap"), 1, MANY, |c| {
                notify::overlap(&$join(c)?)
            }),
            case(concat!("notify.", $prefix, "barrier"), 2, $most, |c| {
                notify::barrier(&$join(c)?)
            }),
            case(concat!("notify.", $prefix, "count"), 1, $most, |c| {
                notify::count(&$join(c)?)
            }),
            case(
                concat!("notify.", $prefix, "queue_just_full"),
                2,
                MANY,
                |c| notify::queue_just_full(&$join(c)?),
            ),
            case(concat!("notify.", $prefix, "cancel"), 1, MANY, |c| {
                notify::cancel(&$join(c)?)
            }),
            case(concat!("notify.", $prefix, "misuse"), 1, MANY, |c| {
                notify::misuse(&$join(c)?)
            }),
            case(concat!("notify.", $prefix, "flushed"), 1, $most, |c| {
                notify_inline::flushed::<_, 2>(&$join(c)?)
            }),
            case(concat!("notify.", $prefix, "fenced"), 1, MANY, |c| {
                notify_inline::fenced::<_, 1>(&$join(c)?)
            }),
            case(concat!("notify.", $prefix, "forwarded"), 3, MANY, |c| {
                notify_inline::forwarded::<_, 1>(&$join(c)?)
            }),
            case(concat!("notify.", $prefix, "relayed"), 3, MANY, |c| {
                notify_inline::relayed::<_, 1>(&$join(c)?)
            }),
            case(concat!("notify.", $prefix, "around"), 1, $most, |c| {
                notify_inline::around(&$join(c)?, Model::Separate)
            }),
            case(
                concat!("notify.", $prefix, "around_unified"),
                1,
                MANY,
                |c| notify_inline::around(&$join(c)?, Model::Unified),
            ),
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
            epochs(
                2,
                case(concat!("small.", $prefix, "notify_twice"), 2, 3, |c| {
                    small_ring!(c, $ring, small::notify::<_, _, 2>)
                }),
            ),
            epochs(
                2,
                case(concat!("small.", $prefix, "ping_pong"), 2, 2, |c| {
                    small_ring!(c, $ring, small::ping_pong)
                }),
            ),
            case(concat!("small.", $prefix, "notify_flushed"), 2, 2, |c| {
                small_ring!(c, $ring, notify_inline::small_flushed)
            }),
        ]
    };
}

/// Cases of strategies that take locks.
macro_rules! lock_cases {
    ($prefix:literal, $strategy:ident, $options:expr, $needs:path) => {
        &[
            $needs(case(
                concat!("timeout.", $prefix, "rest_of_post"),
                3,
                ANY,
                |c| {
                    let machine = c.machine.clone();
                    let world = join(c)?;
                    pscw_timeout::rest_of_post::<_, _, $strategy<'_>>(&machine, &world, $options(2))
                },
            )),
            $needs(case(
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
            )),
        ]
    };
}
