//! Where there is not enough memory: one line says what was asked for and what there is, and nobody
//! is ended by SIGBUS.
//!
//! File systems are made small in a mount namespace of the test's own. Where that is not permitted,
//! the tests say so and are skipped.

use std::process::{Command, ExitCode};

use flagpost::{Error, World};
use flagpost_linux::{HostLink, run};

use super::shared::apart;
use super::{Ended, PART, limit, ours, words};

/// Touches all memory that a rank can get.
pub(super) fn rank() -> ExitCode {
    run(|world: &World<'_, HostLink>| {
        let window = world.allocate::<u64>(100_000)?;
        window.local().copy_in(0, &[7; 100_000])?;
        world.barrier()?;
        println!("touched");
        Ok::<(), Error>(())
    })
}

/// How a namespace of mounts is made here, if it can be.
pub(super) fn namespace() -> Option<Command> {
    const MOUNT: &str = "mount -t tmpfs tmpfs /dev/shm";
    { ["-m", "-rm"].into_iter() }.find_map(|option| apart(&[option], MOUNT))
}

/// What `script` does where `/dev/shm` has `size` bytes.
fn in_small(size: &str, script: &str) -> Option<Ended> {
    let mount = format!("mount -t tmpfs -o size={size} tmpfs /dev/shm || exit 99; {script}");
    let mut command = namespace()?;
    command.args(["sh", "-c", &mount]).env(PART, "memory");
    Some(limit::output(&mut command))
}

fn launcher() -> String {
    let launcher = ours(&[]);
    let path = launcher.get_program().to_str().expect("text");
    format!("'{path}' --grace 600")
}

#[test]
fn a_full_file_system_is_told() {
    let script = format!(
        "exec {} -n 2 --mem 1M --mem-in /dev/shm {}",
        launcher(),
        words()
    );
    let Some(small) = in_small("1536K", &script) else {
        return;
    };
    let told = "no memory in /dev/shm: 2 ranks with 1048576 bytes of memory each need 2138112 \
                bytes, and 1572864 are free: ask for less\n";
    assert_eq!(small.codes, [2], "{small:?}");
    assert!(small.err.ends_with(told), "{small:?}");
    assert_eq!(small.err.lines().count(), 1, "{small:?}");
    let large = in_small("4M", &script).expect("it was possible");
    assert_eq!(large.codes, [0], "{large:?}");
    assert_eq!(large.out.matches("touched").count(), 2, "{large:?}");
}

/// Of two ranks one at least finds no room. The other does not wait for it in vain.
#[test]
fn a_full_dev_shm_is_told() {
    let rank = |rank| format!("PMI_RANK={rank} PMI_SIZE=2 {}", words());
    let script = format!(
        "export FLAGPOST_MEMORY=1048576; {} & {}; second=$?; wait $!; echo statuses $? $second",
        rank(0),
        rank(1)
    );
    let Some(small) = in_small("1536K", &script) else {
        return;
    };
    let (no_room, lost) = (
        "error: cannot join the job: no memory in /dev/shm: 2 ranks with 1048576 bytes of memory \
         each need 2138112 bytes, and ",
        " does not answer any more",
    );
    let lines = |what: &str| small.err.lines().filter(|line| line.contains(what)).count();
    assert!(lines(no_room) > 0, "{small:?}");
    assert_eq!(lines(no_room) + lines(lost), 2, "{small:?}");
    assert_eq!(small.err.lines().count(), 2, "{small:?}");
    let statuses = ["statuses 2 2\n", "statuses 1 2\n", "statuses 2 1\n"];
    let known = { statuses.iter() }.any(|statuses| small.out.contains(statuses));
    assert!(known, "{small:?}");
    let large = in_small("4M", &script).expect("it was possible");
    assert!(large.out.contains("statuses 0 0\n"), "{large:?}");
}

#[test]
fn memory_can_be_a_file_of_a_directory() {
    let script = format!("{} -n 2 --mem 1M --mem-in \"$0\" {}", launcher(), words());
    let mut command = Command::new("sh");
    command.args(["-c", &script]).arg(std::env::temp_dir());
    let ended = limit::output(command.env(PART, "memory"));
    assert_eq!(ended.codes, [0], "{ended:?}");
    assert_eq!(ended.out.matches("touched").count(), 2, "{ended:?}");
}

/// A program that asks for more than `--mem`.
#[test]
fn the_option_for_more_memory_is_named() {
    let script = format!("exec {} -n 1 --mem 64K {}", launcher(), words());
    let mut command = Command::new("sh");
    command.args(["-c", &script]).env(PART, "memory");
    let ended = limit::output(&mut command);
    let told = ended.err.lines().next().unwrap_or_default();
    assert!(
        told.starts_with("rank 0: shared memory needs "),
        "{ended:?}"
    );
    assert!(told.contains(" (flagpost-run: --mem; "), "{ended:?}");
    assert_eq!(ended.codes, [1], "{ended:?}");
}

#[test]
fn limits_of_processes_are_told() {
    let (launcher, words) = (launcher(), words());
    for (script, told) in [
        (
            format!("ulimit -f 100; exec {launcher} -n 2 --mem 1M true"),
            "need 2138112 bytes, and files may have 102400 (ulimit -f): ask for less",
        ),
        (
            format!("ulimit -v 1500000; exec {launcher} -n 2 --mem 1G true"),
            "need 2147524608 bytes, and they cannot be mapped (",
        ),
        (
            format!("exec {launcher} -n 1 --mem 1G sh -c \"ulimit -v 900000; exec {words}\""),
            "error: cannot join the job: 1 ranks with 1073741824 bytes of memory each need",
        ),
    ] {
        let mut command = Command::new("bash");
        command.args(["-c", &script]).env(PART, "memory");
        let ended = limit::output(&mut command);
        assert_eq!(ended.codes, [2], "{script}: {ended:?}");
        let lines = ended.err.lines().filter(|line| line.contains(told));
        assert_eq!(lines.count(), 1, "{script}: {ended:?}");
    }
}
