//! Which rank stops in which program.

use flagpost::Validation::{Counter, Invalidation};
use flagpost_sim::Profile;

use super::Stop;
use super::programs::How::{All, Exclusive, Queued, Shared};
use super::programs::Program::*;

/// Those that end without a bound, too, within a minute each.
pub const LONG: [&str; 5] = ["22j ", "22k ", "22p ", "22r ", "22y "];

const SCC: &[Profile] = &[Profile::Scc];
const BOTH: &[Profile] = &[Profile::Scc, Profile::Weak];

/// One row per stop: its name; the rank that stops, of how many, on which chips; the program; the
/// most preemptions in a schedule, where it is long.
macro_rules! stops {
    ($($name:literal: $who:literal of $cores:literal on $profiles:ident, $program:expr
        $(, most $most:literal)?;)*) => {
        &[$(Stop {
            name: $name,
            cores: $cores,
            who: $who,
            profiles: $profiles,
            program: $program,
            preemptions: [$($most)?].first().copied(),
        }),*]
    };
}

pub const ALL: &[Stop] = stops! {
    "22a an origin stops": 0 of 2 on BOTH, Slots;
    "22b a target stops": 1 of 2 on BOTH, Slots;
    "22c a notifier stops": 0 of 2 on BOTH, Notified;
    "22d a notified rank stops": 1 of 2 on BOTH, Notified;
    "22e one of two targets stops": 2 of 3 on SCC, Slots;
    "22f an origin stops, match vectors": 0 of 2 on BOTH, Vector;
    "22g a target stops, match vectors": 1 of 2 on BOTH, Vector;
    "22h an origin stops, matching list": 0 of 2 on BOTH, List;
    "22i a target stops, matching list": 1 of 2 on BOTH, List;
    "22j one of two targets stops, matching list": 2 of 3 on SCC, List, most 3;
    "22k rank 0 stops, shared beside exclusive lock": 0 of 2 on BOTH, Lock(Shared, Exclusive), most 3;
    "22k rank 1 stops, shared beside exclusive lock": 1 of 2 on BOTH, Lock(Shared, Exclusive), most 3;
    "22l rank 0 stops, exclusive lock": 0 of 2 on BOTH, Lock(Exclusive, Exclusive), most 2;
    "22l rank 1 stops, exclusive lock": 1 of 2 on BOTH, Lock(Exclusive, Exclusive), most 2;
    "22m rank 0 stops, queued lock": 0 of 2 on BOTH, Lock(Queued, Queued), most 1;
    "22m rank 1 stops, queued lock": 1 of 2 on BOTH, Lock(Queued, Queued), most 1;
    "22n rank 0 stops, lock of all beside an exclusive one": 0 of 2 on BOTH, Lock(All, Exclusive);
    "22n rank 1 stops, lock of all beside an exclusive one": 1 of 2 on BOTH, Lock(All, Exclusive);
    "22o rank 0 stops, fence": 0 of 2 on BOTH, Fence, most 1;
    "22o rank 1 stops, fence": 1 of 2 on BOTH, Fence, most 1;
    "22p rank 0 stops, collectives": 0 of 2 on BOTH, Collective, most 3;
    "22p rank 1 stops, collectives": 1 of 2 on BOTH, Collective, most 3;
    "22q rank 0 stops, accumulates": 0 of 2 on BOTH, Accumulate;
    "22q rank 1 stops, accumulates": 1 of 2 on BOTH, Accumulate;
    "22r rank 0 stops, dynamic window": 0 of 2 on BOTH, Dynamic(Counter), most 2;
    "22r rank 1 stops, dynamic window": 1 of 2 on BOTH, Dynamic(Counter), most 2;
    "22s rank 0 stops, dynamic window, told": 0 of 2 on SCC, Dynamic(Invalidation);
    "22s rank 1 stops, dynamic window, told": 1 of 2 on SCC, Dynamic(Invalidation);
    "22t one of three stops, queued lock": 1 of 3 on SCC, Lock(Queued, Queued), most 1;
    "22u one of three stops, fence": 1 of 3 on SCC, Fence, most 1;
    "22v one of three stops, collectives": 1 of 3 on SCC, Collective, most 2;
    "22w rank 0 stops, broadcast": 0 of 2 on BOTH, Broadcast;
    "22w rank 1 stops, broadcast": 1 of 2 on BOTH, Broadcast;
    "22x rank 0 stops, allgather": 0 of 2 on BOTH, Allgather, most 1;
    "22x rank 1 stops, allgather": 1 of 2 on BOTH, Allgather, most 1;
    "22y rank 0 stops, attach": 0 of 2 on SCC, Attach(Counter), most 3;
    "22y rank 1 stops, attach": 1 of 2 on SCC, Attach(Counter), most 3;
    "22z rank 0 stops, attach, told": 0 of 2 on SCC, Attach(Invalidation), most 3;
    "22z rank 1 stops, attach, told": 1 of 2 on SCC, Attach(Invalidation), most 3;
    "22aa one of three stops, broadcast": 1 of 3 on SCC, Broadcast, most 2;
    "22ab one of three stops, allgather": 1 of 3 on SCC, Allgather, most 1;
};
