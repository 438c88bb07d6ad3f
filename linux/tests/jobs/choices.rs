//! What the user chooses by options, and by variables of the environment.

use std::process::Command;

use super::{Ended, limit, ours};

/// The launcher with the options of a line, which variables may stand before, and with `rest`.
fn launch(line: &str, rest: &[&str]) -> Ended {
    let is_variable = |word: &&str| word.starts_with("FLAGPOST_");
    let (variables, options): (Vec<_>, Vec<_>) = line.split_whitespace().partition(is_variable);
    let mut command = Command::new(env!("CARGO_BIN_EXE_flagpost-run"));
    command.envs(variables.iter().filter_map(|word| word.split_once('=')));
    command.args(options);
    limit::output(command.args(rest))
}

/// Variables that choose something else than the defaults.
const ALL: &str = "FLAGPOST_MODE=emulated FLAGPOST_MEMORY=1M FLAGPOST_PROVIDER=x FLAGPOST_HELPER=7 \
                   FLAGPOST_ADDRESS=127.0.0.2";

/// Options, behind variables, and what a rank hears: mode, memory, provider, helper and hub.
const CHOSEN: &str = "
    => coherent 16777216
    ALL => emulated 1048576 x 7
    ALL --mode coherent --mem 2M => coherent 2097152
    ALL --link fabric => fabric 1048576 x 7 127.0.0.2:
    ALL --link fabric --provider y --helper 8 --address 127.0.0.1 => fabric 1048576 y 8 127.0.0.1:
    --link fabric => fabric 16777216 tcp 0 127.0.0.1:
    FLAGPOST_LINK=fabric => fabric 16777216 tcp 0 127.0.0.1:
    FLAGPOST_LINK=shm --link fabric => fabric 16777216 tcp 0 127.0.0.1:
    FLAGPOST_LINK=fabric --link shm => coherent 16777216
    FLAGPOST_LINK=tcp --link auto => coherent 16777216
    --hosts LOCALHOST --address 127.0.0.1 --provider tcp --helper 8 => coherent 16777216
";

/// One rule for all: an option wins over its variable, and the variable over the default. What
/// memory has no use for is not looked at; nor what a network has none for. A line for several
/// hosts that names this one needs no network.
#[test]
fn options_win_over_variables_and_these_over_defaults() {
    const WORDS: &str =
        "echo $FLAGPOST_MODE $FLAGPOST_MEMORY $FLAGPOST_PROVIDER $FLAGPOST_HELPER $FLAGPOST_HUB";
    let rank = ["-n", "1", "sh", "-c", WORDS];
    for row in CHOSEN.trim().lines() {
        let (line, starts) = row.split_once("=> ").expect("a row");
        let ended = launch(&line.replace("ALL", ALL), &rank);
        // The ranks of a network join nothing, so they end badly.
        assert!(ended.out.starts_with(starts), "{row}: {ended:?}");
    }
    // In a rank they are its job's: a launcher that is started there has the defaults.
    let launcher = ours(&[]);
    let launcher = launcher.get_program().to_str().expect("text");
    let nested = [&["-n", "1", launcher][..], &rank].concat();
    let ended = launch("--mode emulated --mem 1M", &nested);
    assert!(ended.out.starts_with("coherent 16777216"), "{ended:?}");
}

/// Options, behind variables, and the words of the line that refuses them.
const REFUSED: &str = r#"
    -n 0                                           => ask for 1 to 1024
    -n two                                         => invalid value 'two'
    -n 2 --mem 1X                                  => write 65536, 64K, 16M or 1G
    -n 2 --mem 4K                                  => ask for 16K
    -n 2 --bind x                                  => write none, auto, or 0,2,4-7
    -n 2 --bind 1023                               => cannot be used here
    -n 2 --mode fast                               => software-coherent
    -n 2 --mem-in /dev/null/none                   => no memory in /dev/null/none
    -n 2 /dev/null/program                         => cannot start /dev/null/program
    -n 2 --provider shm                            => are for --link fabric
    -n 2 --address 127.0.0.1                       => are for --link fabric
    -n 2 --helper 50                               => are for --link fabric
    -n 2 --link fabric --address 0.0.0.0           => one address of this host
    -n 2 --link fabric --address ::                => one address of this host
    -n 2 --link fabric --address 192.0.2.1         => cannot listen at 192.0.2.1 (
    -n 2 --rsh x                                   => --hosts <LIST>
    -n 2 --hosts a:1                               => are 1 ranks
    -n 2 --hosts a,b                               => takes --address
    -n 2 --hosts a --link shm                      => shared memory reaches one host
    -n 2 --hosts a --mode emulated                 => takes --address
    => --ranks <N>
    FLAGPOST_MODE=fast -n 1                        => FLAGPOST_MODE: "fast" is no mode
    FLAGPOST_MEMORY=1X -n 1                        => FLAGPOST_MEMORY: "1X" is no size
    FLAGPOST_HELPER=x -n 1 --link fabric           => FLAGPOST_HELPER: "x" is no number
    FLAGPOST_ADDRESS=x -n 1 --link fabric          => FLAGPOST_ADDRESS: "x" is no address
    FLAGPOST_LINK=tcp -n 1                         => FLAGPOST_LINK: "tcp" is no link: write shm, fabric or auto
    FLAGPOST_LINK=fabric -n 1 --mode emulated      => --mode and --mem-in are for --link shm
    FLAGPOST_ADDRESS=:: -n 1 --link fabric         => --address (FLAGPOST_ADDRESS) takes one address
    FLAGPOST_PROVIDER=shm -n 1 --hosts a --address 127.0.0.1 => --provider (FLAGPOST_PROVIDER) shm reaches one host
    FLAGPOST_LINK=shm -n 1 --hosts a               => with --link (FLAGPOST_LINK) fabric or auto
"#;

#[test]
fn wrong_arguments_are_one_line_that_says_what_to_change() {
    for row in REFUSED.trim().lines() {
        let (line, expected) = row.split_once("=> ").expect("a row");
        let ended = launch(line, &["true"]);
        assert_eq!(ended.codes, [2], "{line}: {ended:?}");
        assert!(ended.err.contains(expected), "{line}: {ended:?}");
        assert_eq!(ended.err.lines().count(), 1, "{line}: {ended:?}");
    }
}

/// What starts ranks on other hosts may set variables of a job of its own, as `srun` does. The
/// ranks are the launcher's.
#[test]
fn ranks_on_other_hosts_are_of_no_job_of_what_starts_them() {
    const WORDS: &str = "echo $FLAGPOST_RANK $SLURM_PROCID $SLURM_STEP_NUM_TASKS";
    let srun = "env SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1";
    let rest = ["--rsh", srun, "sh", "-c", WORDS];
    let ended = launch("-n 2 --hosts A=a:2 --address 127.0.0.1", &rest);
    let mut told: Vec<&str> = ended.out.lines().collect();
    told.sort_unstable();
    assert_eq!(told, ["0", "1"], "{ended:?}");
}
