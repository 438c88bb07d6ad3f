//! Flagpost on Linux: one process per rank, over memory that all of them map, or a network.
//!
//! A program calls [`run_in_mode!`] in its `main`, and `flagpost-run -n 4 program` starts four
//! ranks of it; `mpiexec` and `srun` start ranks, too. Each rank gets its
//! [`World`](flagpost::World), and all calls of the kernel work as on a chip. [`threads`] runs the
//! same function on threads of one process, for unit tests. Programs that run this way are in
//! `examples/linux`.
//!
//! # A program
//! Each rank puts a number into the memory of the next rank.
//! ```no_run
//! use flagpost::{Error, Link, Tag, World};
//!
//! fn hello<L: Link>(world: &World<'_, L>) -> Result<(), Error> {
//!     let (me, size) = (world.rank(), world.size());
//!     let window = world.allocate::<u32>(1)?;
//!     let mut arrived = window.expect(0..1, Tag(0))?;
//!     arrived.start()?;
//!     world.barrier()?; // every rank is ready to receive
//!     window.put_notify(me.next(size), 0, &[u32::from(me.get())], Tag(0))?;
//!     let sender = arrived.wait()?.source;
//!     println!("rank {me}: rank {sender} has put {}", window.local().get(0)?);
//!     Ok(())
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     flagpost_linux::run_in_mode!(hello)
//! }
//! ```
//! [`run_in_mode!`] lets the user of the program choose what connects the ranks, see [`Choice`]. A
//! program that calls [`run`] is for shared memory.
//!
//! # Modes
//! | mode | for | shared words |
//! |---|---|---|
//! | [`Coherent`] | one host | atomics; no cache instructions |
//! | [`SoftwareCoherent`] | hosts that share memory, without coherence | past the caches |
//! | [`Emulated`] | tests | as [`Coherent`]; cached accesses go to a private image per rank |
//!
//! [`SoftwareCoherent`] goes past the caches by cache instructions. It has no atomics, by type.
//!
//! # What ranks may do to each other
//! * The memory is reached by the processes that the launcher has started, or, where it has a name,
//!   by processes of the same user: mode 0600, owner and mode checked, no symbolic link followed.
//! * A rank knows the number of ranks and the size of their memory from its start. It compares them
//!   with the size of the file, and never reads them from the memory.
//! * Other sizes and offsets are the peers' to say, so they are read from the memory: where the
//!   piece of a created window lies, where attached memory lies, lengths and places in the entries
//!   of rings. The link refuses what does not lie in the memory of the rank that is named. After
//!   that each address is checked against what is mapped.
//! * A hostile rank can store anything in the memory: data, lengths, tickets, locks. Others then
//!   have wrong data, errors, and budgets that run out. They access nothing outside of the memory,
//!   do not stop, and leave each call when its budget ends. A call without a budget may wait for
//!   ever.
//!
//! `linux/tests/hostile` tries it in all modes, and `linux/tests/queue_ring.rs` has what chance did
//! not find.
//!
//! # When a rank ends
//! | what happens | what the others see | what `flagpost-run` says |
//! |---|---|---|
//! | a signal ends it | `PeerLost` | rank, process, signal; status 128 + signal |
//! | another status than 0, or a panic | `PeerLost` | rank, process, status; that status |
//! | its program returns an error | `PeerLost` | the same: status 1 |
//! | 0 after it has joined, before it has left | `PeerLost` | that it has not left; status 1 |
//! | 0 before it has joined, and others have | `PeerLost` | that it has not joined; status 1 |
//! | 0 after [`run`] has returned | `PeerLeft`, where a call needs it | nothing |
//! | the launcher dies | they are killed | |
//!
//! A rank that waits is told within microseconds, or within 0.8 ms if it sleeps. Under `mpiexec`
//! and `srun` the ranks that wait look at their peers' processes, every 20 ms. What a rank has
//! started ends with it; a process that has gone to a session of its own (a daemon), and has not
//! joined the job, outlives it. The launcher's keeper, which kills what its ranks have started when
//! the launcher is killed, is a shell: without `/bin/sh` the ranks themselves are killed alone.
//!
//! # Want of memory
//! | memory | what happens |
//! |---|---|
//! | a file (`--mem-in`) | the launcher reserves all of it, or says what is free: status 2 |
//! | a name in `/dev/shm` (`mpiexec`, `srun`) | each rank reserves its part, or says so: status 2 |
//! | a memfd (`flagpost-run`) | not reserved: pages that no rank touches cost nothing |
//! | `ulimit -f`, `ulimit -v` | refused, with the limit: status 2 |
//!
//! A rank of a memfd that is ended for want of memory is named with how much memory the job has.
//! A file under `--mem-in` is not sealed: a rank that shrinks it ends the others.
//!
//! # What a rank inherits
//! | of | a rank of `flagpost-run` has |
//! |---|---|
//! | ignored signals (`nohup`, `&`) | the same, as the launcher; never SIGCHLD or SIGPIPE |
//! | blocked signals | none, and nor has the launcher |
//! | alarms and timers | none; an alarm of the launcher's ends the job |
//! | limits (`ulimit`) | those that the launcher was started with |
//! | descriptors | the launcher's that stay open over `exec`; standard input on rank 0 alone |
//! | terminal | none: a session of its own |
//! | mask for files (`umask`) | the launcher's; one that takes this user's own rights is refused |
//! | priority, scheduling, directory | the launcher's |
//! | processors (`taskset`) | one of the launcher's, or all of them: see [`Bind`] |
//! | environment | the launcher's, without what an outer job has set |
//!
//! On another host the rank has what that host's shell gives, the launcher's directory, and its
//! variables that begin with `FLAGPOST_` or `FI_`. A rank of `mpiexec` or `srun` has what those
//! leave: one that ignores SIGCHLD, say, cannot wait for programs that it starts.
//!
//! # `unsafe`
//! Stands in `launch`, for what happens between fork and exec; in `inherited`, for signals; in
//! `pmi`, for a descriptor that was inherited; and in `pmix`, for a library. The machine below, in
//! [`flagpost_hal_linux`], has more.

pub mod bind;
pub mod choice;
mod descriptors;
mod ended;
pub mod fabric;
mod group;
mod hosts;
pub mod inherited;
mod job;
pub mod launch;
mod named;
mod pmi;
mod pmix;
mod run;

pub use bind::Bind;
pub use choice::Choice;
pub use flagpost_hal_linux::{
    BadShape, Coherent, Emulated, Linux, MAX_MEMORY, MAX_RANKS, MIN_MEMORY, MODES, Mode, Shape,
    SoftwareCoherent,
};
pub use hosts::Hosts;
pub use job::{DEFAULT_MEMORY, JoinError};
pub use launch::{Ended, launch};
pub use run::{
    HostLink, Linked, RunError, Setup, join, machines_with, mode_of_job, run, run_with, threads,
    threads_with,
};
