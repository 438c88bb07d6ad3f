//! What the user chooses by options, and by variables of the environment.

use std::process::Command;

use super::limit;

/// One rule for all: an option wins over its variable, and the variable over the default.
#[test]
fn options_win_over_variables_and_these_over_defaults() {
    const WORDS: &str =
        "echo $FLAGPOST_MODE $FLAGPOST_MEMORY $FLAGPOST_PROVIDER $FLAGPOST_HELPER $FLAGPOST_HUB";
    let run = |variables: &[(&str, &str)], options: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flagpost-run"));
        command.envs(variables.iter().copied()).args(["-n", "1"]);
        command.args(options).args(["sh", "-c", WORDS]);
        let output = limit::output(&mut command);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let told = text(&output.stdout) + &text(&output.stderr);
        (output.status.code(), told)
    };
    let mode = ("FLAGPOST_MODE", "emulated");
    let memory = ("FLAGPOST_MEMORY", "1M");
    let (provider, helper) = (("FLAGPOST_PROVIDER", "x"), ("FLAGPOST_HELPER", "7"));
    let address = ("FLAGPOST_ADDRESS", "127.0.0.2");
    let all = [mode, memory, provider, helper, address];
    let fabric = ["--link", "fabric"];
    let link = |link| [("FLAGPOST_LINK", link)];
    for (variables, options, starts) in [
        (&[][..], &[][..], "coherent 16777216"),
        // What memory has no use for is not looked at; nor what a network has none for.
        (&all, &[], "emulated 1048576 x 7\n"),
        (
            &all,
            &["--mode", "coherent", "--mem", "2M"],
            "coherent 2097152",
        ),
        (&all, &fabric, "fabric 1048576 x 7 127.0.0.2:"),
        (&[], &fabric, "fabric 16777216 tcp 0 127.0.0.1:"),
        (&link("fabric"), &[], "fabric 16777216 tcp 0 127.0.0.1:"),
        (&link("shm"), &fabric, "fabric 16777216 tcp 0 127.0.0.1:"),
        (&link("fabric"), &["--link", "shm"], "coherent 16777216"),
        (&link("tcp"), &["--link", "auto"], "coherent 16777216"),
        // The same line as for several hosts: this one needs no network.
        (
            &[],
            &[
                &["--hosts", "LOCALHOST", "--address", "127.0.0.1"][..],
                &["--provider", "tcp", "--helper", "8"],
            ]
            .concat(),
            "coherent 16777216",
        ),
        (
            &all,
            &[
                &fabric[..],
                &["--provider", "y", "--helper", "8"],
                &["--address", "127.0.0.1"],
            ]
            .concat(),
            "fabric 1048576 y 8 127.0.0.1:",
        ),
    ] {
        let (code, told) = run(variables, options);
        // Its ranks join nothing, so a network's end badly.
        assert!(
            code.is_some() && told.starts_with(starts),
            "{options:?}: {told}"
        );
    }
    for (variable, options, refused) in [
        (
            ("FLAGPOST_MODE", "fast"),
            &[][..],
            "FLAGPOST_MODE: \"fast\" is no mode",
        ),
        (
            ("FLAGPOST_MEMORY", "1X"),
            &[],
            "FLAGPOST_MEMORY: \"1X\" is no size",
        ),
        (
            ("FLAGPOST_HELPER", "x"),
            &fabric,
            "FLAGPOST_HELPER: \"x\" is no number",
        ),
        (
            ("FLAGPOST_ADDRESS", "x"),
            &fabric,
            "FLAGPOST_ADDRESS: \"x\" is no address",
        ),
        (
            ("FLAGPOST_LINK", "tcp"),
            &[],
            "FLAGPOST_LINK: \"tcp\" is no link: write shm, fabric or auto",
        ),
        (
            ("FLAGPOST_LINK", "fabric"),
            &["--mode", "emulated"],
            "--mode and --mem-in are for --link shm",
        ),
        // Nobody has given an option.
        (
            ("FLAGPOST_ADDRESS", "::"),
            &fabric,
            "--address (FLAGPOST_ADDRESS) takes one address",
        ),
        (
            ("FLAGPOST_PROVIDER", "shm"),
            &["--hosts", "a", "--address", "127.0.0.1"],
            "--provider (FLAGPOST_PROVIDER) shm reaches one host",
        ),
        (
            ("FLAGPOST_LINK", "shm"),
            &["--hosts", "a"],
            "with --link (FLAGPOST_LINK) fabric or auto",
        ),
    ] {
        let (code, told) = run(&[variable], options);
        assert!(
            code == Some(2) && told.contains(refused),
            "{variable:?}: {told}"
        );
    }
    // In a rank they are its job's: a launcher that is started there has the defaults.
    let launcher = env!("CARGO_BIN_EXE_flagpost-run");
    let nested = ["--mode", "emulated", "--mem", "1M", launcher, "-n", "1"];
    let (_, told) = run(&[], &nested);
    assert!(told.starts_with("coherent 16777216"), "{told}");
}

/// What starts ranks on other hosts may set variables of a job of its own, as `srun` does. The
/// ranks are the launcher's.
#[test]
fn ranks_on_other_hosts_are_of_no_job_of_what_starts_them() {
    const WORDS: &str = "echo $FLAGPOST_RANK $SLURM_PROCID $SLURM_STEP_NUM_TASKS";
    let srun = "env SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1";
    let mut command = Command::new(env!("CARGO_BIN_EXE_flagpost-run"));
    command.args(["-n", "2", "--hosts", "A=a:2", "--rsh", srun]);
    command.args(["--address", "127.0.0.1", "sh", "-c", WORDS]);
    let output = limit::output(&mut command);
    let told = String::from_utf8_lossy(&output.stdout);
    let mut told: Vec<&str> = told.lines().collect();
    told.sort_unstable();
    assert_eq!(told, ["0", "1"], "{output:?}");
}
