//! A failing run as a file: what `explore` writes and `replay` reads.

use flagpost_explore::Setting;
use flagpost_sim::{Config, Report};
use serde_json::{Value, json};

/// What tells one version of the code from another in a trace.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The trace of a run of `setting`.
pub(crate) fn write(setting: &Setting, report: &Report) -> Value {
    json!({
        "case": setting.case.name,
        "cores": report.config.cores,
        "profile": setting.profile.to_string(),
        "version": VERSION,
        "end": report.end.to_string(),
        "steps": report.steps,
        "hash": format!("{:016x}", report.hash),
        "config": report.config.to_string(),
    })
}

/// A run to repeat, and what came of it then.
pub(crate) struct Trace {
    pub(crate) setting: Setting,
    pub(crate) config: Config,
    pub(crate) hash: String,
}

/// Reads a trace.
pub(crate) fn read(text: &str) -> Result<Trace, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
    let word = |name: &str| {
        let word = value[name].as_str();
        word.ok_or_else(|| format!("not a trace: it has no {name:?}"))
    };
    let config: Config = word("config")?.parse()?;
    let setting = format!("{}/{}/{}", word("case")?, config.cores, config.profile);
    Ok(Trace {
        setting: setting.parse()?,
        hash: word("hash")?.to_owned(),
        config,
    })
}
