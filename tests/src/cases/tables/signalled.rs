//! Cases of PSCW by each strategy.

use core::convert::identity;

use crate::cases::{
    ANY, Links, MANY, Machines, case, created, dynamic, epochs, join, locks, matching_list, pscw,
    pscw_timeout, small, told,
};
use crate::{Case, MachinePlatform, Platform};
use flagpost::{EpochSlots, MatchVector, MatchingList};

impl<P: Platform> Links<P> {
    pub(crate) const SLOTS: &'static [Case<P>] = pscw_cases!("", EpochSlots, |_: u16| ());

    pub(crate) const LIST: &'static [Case<P>] =
        pscw_cases!("list.", MatchingList, |posts: u16| posts);

    /// What differs between slots and lists.
    pub(crate) const SIGNALLED: &'static [Case<P>] = &[
        case("pscw.list.options", 1, MANY, |c| {
            matching_list::options(&join(c)?)
        }),
        case("pscw.list.reuse", 2, ANY, |c| {
            matching_list::reuse(&join(c)?)
        }),
        case("pscw.looks_full_ring", 2, ANY, |c| {
            pscw_timeout::looks_full_ring::<_, EpochSlots<'_>>(&join(c)?, ())
        }),
        case("pscw.list.looks_full_ring", 2, ANY, |c| {
            pscw_timeout::looks_full_ring::<_, MatchingList<'_>>(&join(c)?, 1)
        }),
        case("timeout.who", 3, ANY, |c| {
            pscw_timeout::who::<_, EpochSlots<'_>>(&join(c)?, (), true)
        }),
        case("timeout.list.who", 3, ANY, |c| {
            pscw_timeout::who::<_, MatchingList<'_>>(&join(c)?, 1, false)
        }),
        case("timeout.missing", 4, ANY, |c| {
            pscw_timeout::several::<_, EpochSlots<'_>>(&join(c)?, (), true)
        }),
        case("timeout.list.missing", 4, ANY, |c| {
            pscw_timeout::several::<_, MatchingList<'_>>(&join(c)?, 1, false)
        }),
        case("timeout.list.full", 3, ANY, |c| {
            matching_list::full(&join(c)?)
        }),
        case("pscw.list.one_entry", 2, 2, |c| {
            let machine = c.machine.clone();
            matching_list::small_full(&small::join(c)?, || P::go(&machine))
        }),
    ];
}

impl<P: MachinePlatform> Machines<P> {
    pub(crate) const VECTOR: &'static [Case<P>] = pscw_cases!("vector.", MatchVector, |_: u16| ());

    pub(crate) const VECTOR_LOCKS: &'static [Case<P>] =
        lock_cases!("vector.", MatchVector, |_: u16| (), identity);

    pub(crate) const LIST_LOCKS: &'static [Case<P>] =
        lock_cases!("list.", MatchingList, |posts: u16| posts, locks);
}
