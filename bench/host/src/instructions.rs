//! How many instructions a call takes.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use clap::Args;

use crate::callgrind::{self, Counted};
use crate::subjects;
use flagpost_common::{Json, table};

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// One JSON object per call, a line each
    #[arg(long)]
    json: bool,
}

/// Counts and prints; false if a figure is above its limit.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let file = count()?;
    let functions = callgrind::functions(&file);
    let mut rows = Vec::new();
    let mut kept = true;
    for subject in &subjects::ALL {
        let found = functions
            .iter()
            .find(|(name, _)| name.ends_with(&format!("::{}", subject.function)));
        let Some((
            _,
            Counted {
                calls,
                instructions,
            },
        )) = found
        else {
            bail!("callgrind saw no call of {}", subject.function);
        };
        if *calls != subjects::CALLS {
            bail!("callgrind saw {calls} calls of {}", subject.function);
        }
        let each = instructions.div_ceil(*calls);
        kept &= each <= subject.limit;
        if arguments.json {
            let object = Json::new().text("name", subject.name);
            let object = object.number("instructions", each);
            object.number("limit", subject.limit).print();
        }
        rows.push(vec![
            subject.name.to_owned(),
            each.to_string(),
            subject.limit.to_string(),
        ]);
    }
    if !arguments.json {
        table(&["call", "instructions", "limit"], &rows);
    }
    Ok(kept)
}

/// What callgrind writes of a run of the subjects.
fn count() -> Result<String> {
    let own = std::env::current_exe().context("this program has no path")?;
    let name = format!("flagpost-callgrind.{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let run = callgrind(&own, &path);
    let file = std::fs::read_to_string(&path);
    let _ = std::fs::remove_file(&path);
    run?;
    file.context("callgrind wrote no file")
}

fn callgrind(own: &Path, path: &Path) -> Result<()> {
    let mut out_file = std::ffi::OsString::from("--callgrind-out-file=");
    out_file.push(path);
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--compress-pos=no"])
        .arg(out_file)
        .arg(own)
        .arg("subjects")
        .stdin(Stdio::null())
        .output()
        .context("cannot run valgrind: install it (apt install valgrind)")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("valgrind failed: {}", said.trim());
    }
    Ok(())
}
