//! A world and a window.
#![cfg_attr(target_os = "none", no_std, no_main)]

flagpost_sizes::program!(flagpost_sizes::Small<true>; []);
