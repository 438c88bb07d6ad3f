//! As `both`, over the link that has tables for 64 ranks.
#![cfg_attr(target_os = "none", no_std, no_main)]

flagpost_sizes::program!(flagpost_sizes::Usual; [notify, epoch]);
