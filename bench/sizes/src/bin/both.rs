//! A world, a window, a notified put and an epoch.
#![cfg_attr(target_os = "none", no_std, no_main)]

flagpost_sizes::program!(flagpost_sizes::Small<true>; [notify, epoch]);
