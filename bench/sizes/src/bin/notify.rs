//! A world, a window, and a notified put.
#![cfg_attr(target_os = "none", no_std, no_main)]

flagpost_sizes::program!(flagpost_sizes::Small<true>; [notify]);
