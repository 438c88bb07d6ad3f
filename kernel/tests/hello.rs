//! The program that `cargo run --example hello` runs.

use std::process::Command;

#[test]
fn each_core_hears_from_its_neighbour() {
    let own = std::env::current_exe().expect("this program");
    // `cargo test` puts examples beside the directory of this program.
    let target = own.ancestors().nth(2).expect("target directory");
    let hello = target.join("examples/hello");
    // `--test hello` alone does not build it.
    assert!(hello.exists(), "cargo test -p flagpost builds it");
    let output = Command::new(hello).output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    let told = String::from_utf8(output.stdout).expect("text");
    let mut lines: Vec<&str> = told.lines().collect();
    lines.sort_unstable();
    let line = |me: u32| {
        let left = (me + 3) % 4;
        format!("hello from rank {me}: rank {left} has put {}", 100 + left)
    };
    assert_eq!(lines, [0, 1, 2, 3].map(line));
}
