//! The quick tables of the documents are what their commands print.

use std::process::Command;

#[test]
fn documented_tables_are_what_their_commands_print() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flagpost-bench"));
    let output = command.arg("results").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    println!("{text}");
}
