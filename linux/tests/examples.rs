//! The examples, started as `examples/README.md` says: each checks its own result.

use std::path::PathBuf;
use std::process::Command;

mod limit;

/// Where `cargo test` puts examples: beside the directory of this program.
fn example(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("this program");
    let target = own.ancestors().nth(2).expect("target directory");
    let path = target.join("examples").join(name);
    // `--test examples` alone does not build them.
    assert!(path.exists(), "cargo test -p flagpost-linux builds {name}");
    path
}

fn in_all_modes(words: &[&str], ranks: &[u16]) {
    for mode in flagpost_linux::MODES {
        for ranks in ranks {
            let mut command = Command::new(env!("CARGO_BIN_EXE_flagpost-run"));
            command.args(["-n", &ranks.to_string(), "--mem", "1M", "--mode", mode]);
            let ended = limit::output(command.arg(example(words[0])).args(&words[1..]));
            let what = format!("{words:?}, {mode}, {ranks}: {}", ended.err);
            assert_eq!(ended.codes, [0], "{what}");
            assert!(!ended.out.is_empty() || *ranks == 1, "{what}");
        }
    }
}

#[test]
fn examples() {
    in_all_modes(&["pingpong"], &[2]);
    for name in ["hello-linux", "workqueue", "going-on"] {
        in_all_modes(&[name], &[1, 2, 4]);
    }
}

/// Each program of `flagpost-apps` in each variant: no result differs from that of a serial run.
#[test]
fn apps() {
    for program in flagpost_apps::programs::<flagpost_linux::HostLink>() {
        for variant in program.variants {
            in_all_modes(&["app", program.name, variant.name()], &[1, 2, 4]);
        }
    }
}
