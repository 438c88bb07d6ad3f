//! A world, a window, and an epoch with its post, start, complete and wait.
#![cfg_attr(target_os = "none", no_std, no_main)]

flagpost_sizes::program!(flagpost_sizes::Small<true>; [epoch]);
