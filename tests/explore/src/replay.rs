//! `replay`: repeats the run of a trace, to the last step, and prints its account.

use std::fs;
use std::path::PathBuf;
use std::process::exit;

use crate::trace;

/// Repeats the run of a trace
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    file: PathBuf,
}

/// Runs the command: `true` if the run is done; one that fails, as it did before or not, is a
/// failure.
pub(crate) fn run(arguments: &Arguments) -> bool {
    let text = fs::read_to_string(&arguments.file).map_err(|error| error.to_string());
    let trace = match text.and_then(|text| trace::read(&text)) {
        Ok(trace) => trace,
        Err(error) => {
            eprintln!("{}: {error}", arguments.file.display());
            exit(2);
        }
    };
    let report = trace.setting.run(trace.config);
    println!("{report}");
    if format!("{:016x}", report.hash) == trace.hash {
        println!("the same run as before");
    } else {
        println!("NOT the same run as before: the code has changed since");
        let (then, now) = (trace.code, trace::code());
        println!("the trace is of {then:?}, this is {now:?}");
    }
    report.is_done()
}
