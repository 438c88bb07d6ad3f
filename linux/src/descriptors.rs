//! Descriptors: how many a job takes, and the system's limit of them.
//!
//! A process has a soft limit, which it may raise up to its hard limit. A network over connections
//! takes some for each peer. A rank raises its limit before it opens its network, whatever has
//! started it; where the hard limit is too low, `flagpost-run` refuses before any rank is there.
//! Beyond the limit, libfabric waits for connections that never come.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What a rank over `tcp` has open for each peer with libfabric 1.17, at most; and besides, with
/// some for its program: for itself alone it opens 26.
const PER_PEER: u64 = 3;
const BESIDE: u64 = 40;

/// What a hub has open besides a connection for each rank: its socket, and a stranger.
const OF_HUB: u64 = 2;

/// What the launcher has open besides those for its ranks.
const BESIDE_RANKS: u64 = 64;

/// Descriptors of a rank among `ranks`, whose network is of this kind.
pub(crate) fn of_rank(provider: &str, ranks: u16) -> u64 {
    // Within one host memory connects the ranks.
    let each = if provider == "shm" { 0 } else { PER_PEER };
    BESIDE + each * u64::from(ranks.saturating_sub(1))
}

/// Descriptors of a hub for `ranks` ranks.
pub(crate) fn of_hub(ranks: u16) -> u64 {
    OF_HUB + u64::from(ranks)
}

/// Descriptors of a launcher that has `each` open for each of `ranks` ranks.
pub(crate) fn of_launcher(ranks: u16, each: u64) -> u64 {
    BESIDE_RANKS + each * u64::from(ranks)
}

/// Raises this process's soft limit to `needed`, if it is lower, or as far as it may be.
///
/// # Errors
/// A line: the hard limit is lower.
pub(crate) fn raise(needed: u64) -> Result<(), String> {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(u64::MAX);
    if limit.current.is_some_and(|current| current < needed) {
        let raised = Rlimit {
            current: Some(needed.min(most)),
            maximum: limit.maximum,
        };
        setrlimit(Resource::Nofile, raised).map_err(|why| format!("setrlimit: {why}"))?;
    }
    is_possible(needed)
}

/// Whether the hard limit of this process, and of those that it starts, admits `needed`.
///
/// # Errors
/// A line: it does not.
pub(crate) fn is_possible(needed: u64) -> Result<(), String> {
    match getrlimit(Resource::Nofile).maximum {
        Some(most) if most < needed => Err(format!(
            "a process of the job needs {needed} descriptors, and may have {most} (ulimit -Hn): \
             raise that, or take fewer ranks"
        )),
        _ => Ok(()),
    }
}
