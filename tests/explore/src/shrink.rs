//! The simplest run that fails like one that was found.
//!
//! Not by leaving things out of the failing run, which mostly breaks it, but by searching anew: few
//! cores before many, no eviction before one, no preemption before one. Whoever fails first in that
//! order is simplest.

use flagpost_explore::Setting;
use flagpost_sim::{Bounds, Config, End, Report};

/// Runs that each of the searches may take.
const RUNS: u64 = 20_000;

/// Evictions (and prefetches), and preemptions, in the order in which they are allowed.
const ALLOWED: [(u8, u8); 8] = [
    (0, 0),
    (0, 1),
    (1, 0),
    (1, 1),
    (0, 2),
    (1, 2),
    (2, 1),
    (2, 2),
];

/// A run that fails in the same way as `found`, with bounds as small as can be; none if the
/// searches end without one.
pub(crate) fn shrink(setting: &Setting, found: &Report) -> Option<(Report, Bounds)> {
    let fewest = setting.case.min_cores;
    for cores in fewest..=setting.cores.min(fewest + 2) {
        let with =
            |set_up| ALLOWED.map(|(evictions, preemptions)| (set_up, evictions, preemptions));
        for (set_up, evictions, preemptions) in with(true).into_iter().chain(with(false)) {
            let bounds = Bounds {
                evictions,
                fills: evictions,
                expiries: found.config.budgets_expire.min(2) as u8,
                preemptions: Some(preemptions),
                set_up,
                max_runs: RUNS,
                ..Bounds::default()
            };
            let config = Config {
                cores,
                schedule: flagpost_sim::Schedule::Random,
                choices: Default::default(),
                ..found.config.clone()
            };
            let setting = Setting { cores, ..*setting };
            let explored = setting.explore(&bounds, config);
            if let Some(mut report) = explored.failure
                && alike(&report.end, &found.end)
            {
                report.case = setting.to_string();
                return Some((report, bounds));
            }
        }
    }
    None
}

/// Whether two runs went wrong in the same way.
fn alike(one: &End, other: &End) -> bool {
    match (one, other) {
        (End::Oracle(one), End::Oracle(other)) => one.oracle == other.oracle,
        _ => std::mem::discriminant(one) == std::mem::discriminant(other),
    }
}
