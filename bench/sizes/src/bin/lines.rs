//! As `both`, with rings of lines per pair, and tables for two ranks.
#![cfg_attr(target_os = "none", no_std, no_main)]

flagpost_sizes::program!(flagpost_sizes::Lines; [notify, epoch]);
