//! As `both`, on cores whose caches nothing keeps in step.
#![cfg_attr(target_os = "none", no_std, no_main)]

flagpost_sizes::program!(flagpost_sizes::Small<false>; [notify, epoch]);
