//! Cases of PSCW by each strategy.

use core::convert::identity;

use crate::cases::{
    ANY, Links, MANY, Machines, case, created, dynamic, join, locks, matching_list, pscw,
    pscw_timeout, small, told,
};
use crate::{Case, MachinePlatform, Platform};
use flagpost::{EpochSlots, MatchVector, MatchingList};

impl<P: Platform> Links<P> {
    pub(crate) const SLOTS: &'static [Case<P>] = pscw_cases!("", EpochSlots);

    pub(crate) const LIST: &'static [Case<P>] = pscw_cases!("list.", MatchingList);

    /// What differs between slots and lists.
    pub(crate) const SIGNALLED: &'static [Case<P>] = cases! {
        ["pscw.list.options", 1..=MANY, matching_list::options]
        ["pscw.list.reuse", 2..=ANY, matching_list::reuse]
        ["pscw.looks_full_ring", 2..=ANY, pscw_timeout::looks_full_ring::<_, EpochSlots<'_>>]
        ["pscw.list.looks_full_ring", 2..=ANY, pscw_timeout::looks_full_ring::<_, MatchingList<'_>>]
        ["timeout.missing", 4..=ANY, pscw_timeout::several::<_, EpochSlots<'_>>, true]
        ["timeout.list.missing", 4..=ANY, pscw_timeout::several::<_, MatchingList<'_>>, false]
        ["timeout.list.full", 3..=ANY, matching_list::full]
        ["pscw.list.one_entry", 2..=2, small |world, go| matching_list::small_full(world, go)]
    };
}

impl<P: MachinePlatform> Machines<P> {
    pub(crate) const VECTOR: &'static [Case<P>] = pscw_cases!("vector.", MatchVector);

    pub(crate) const VECTOR_LOCKS: &'static [Case<P>] =
        lock_cases!("vector.", MatchVector, identity);

    pub(crate) const LIST_LOCKS: &'static [Case<P>] = lock_cases!("list.", MatchingList, locks);
}
