//! The same, and fences, locks, accumulates, counters and collective calls.
#![cfg_attr(target_os = "none", no_std, no_main)]

flagpost_sizes::program!(flagpost_sizes::Small<true>; [notify, epoch, more]);
