//! Programs that heed signals.

use std::ffi::OsStr;
use std::process::Command;

/// A command for `program` that ignores and blocks no signal, whatever its starter does: under
/// `nohup`, or in a shell's background, a test ignores some, and so does all that it starts.
pub fn heeding(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("/usr/bin/env");
    command.arg("--default-signal").arg(program);
    command
}
