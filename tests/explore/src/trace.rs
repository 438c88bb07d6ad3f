//! A failing run as a file: what `explore` writes and `replay` reads.
//!
//! What is read may be anything. A value that the simulator could not be built with, or that would
//! take all of the host's memory, is an error of one line; what `explore` never writes (a mesh,
//! virtual time) is one, too.

use flagpost_explore::{Chip, Setting};
use flagpost_sim::{Config, Report, Schedule};
use serde_json::{Value, json};

/// What tells one version of the code from another in a trace: the commit, from `cargo xtask`,
/// which has just built this program of it; else the package's version.
pub(crate) fn code() -> String {
    std::env::var("FLAGPOST_CODE").unwrap_or_else(|_| env!("CARGO_PKG_VERSION").into())
}

/// Bytes of simulated memory that a trace may ask for: several times what any setting has.
const MEMORY: u64 = 256 << 20;

/// The trace of a run of `setting`.
pub(crate) fn write(setting: &Setting, report: &Report) -> Value {
    json!({
        "case": setting.case.name,
        "cores": report.config.cores,
        "chip": setting.chip.to_string(),
        "code": code(),
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
    /// The code that ran then; empty if the trace does not say.
    pub(crate) code: String,
}

/// Reads a trace.
pub(crate) fn read(text: &str) -> Result<Trace, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
    let word = |name: &str| {
        let word = value[name].as_str();
        word.ok_or_else(|| format!("not a trace: it has no {name:?}"))
    };
    let config: Config = word("config")?.parse()?;
    let setting = format!("{}/{}/{}", word("case")?, config.cores, word("chip")?);
    let setting: Setting = setting.parse()?;
    check(&config, setting.chip)?;
    Ok(Trace {
        setting,
        hash: word("hash")?.to_owned(),
        code: value["code"].as_str().unwrap_or_default().to_owned(),
        config,
    })
}

/// Whether a run on `chip` can be made of `config`.
fn check(config: &Config, chip: Chip) -> Result<(), String> {
    let of_chip = chip.config();
    let (line, publish) = (config.line, config.publish);
    if line != of_chip.line {
        return Err(format!(
            "line={line}: {chip} has lines of {} bytes",
            of_chip.line
        ));
    }
    if config.profile != of_chip.profile {
        let (profile, its) = (config.profile, of_chip.profile);
        return Err(format!(
            "profile={profile}: the memory of {chip} behaves as {its}"
        ));
    }
    // A search puts registers where there are none, and none away.
    if of_chip.registers && !config.registers {
        return Err(format!("registers=false: {chip} has registers"));
    }
    if config.network.is_some() != chip.is_network() {
        return Err(match config.network {
            Some(wire) => format!("network={wire}: {chip} is on no network"),
            None => format!("no network=: {chip} is one"),
        });
    }
    if chip.is_network() && config.buffer_size < line {
        let size = config.buffer_size;
        return Err(format!("buffer={size}: {chip} counts events in it"));
    }
    let (buffer, its) = (config.buffer_size, of_chip.buffer_size);
    if chip.mapping().is_some() && buffer != its {
        return Err(format!(
            "buffer={buffer}: {chip} has registers in it, {its} bytes in all"
        ));
    }
    for (name, size) in [
        ("memory", config.memory_size),
        ("buffer", config.buffer_size),
    ] {
        if !size.is_multiple_of(line) {
            return Err(format!(
                "{name}={size} is not a multiple of the line's {line} bytes"
            ));
        }
    }
    let each = u64::from(config.memory_size) + u64::from(config.buffer_size);
    if u64::from(config.cores) * each > MEMORY {
        let (cores, most) = (config.cores, MEMORY >> 20);
        return Err(format!(
            "{cores} cores of {each} bytes: more than {most} MiB of memory"
        ));
    }
    if !publish.is_power_of_two() || !(4..=line.min(32)).contains(&publish) {
        return Err(format!(
            "publish={publish} is not 4, 8, 16 or 32, and at most the line's {line}"
        ));
    }
    if u32::try_from(config.pct_length).is_err() {
        return Err(format!(
            "pct_length={} is longer than any run",
            config.pct_length
        ));
    }
    if config.schedule == Schedule::Timed {
        return Err("schedule=timed: traces are of runs without virtual time".into());
    }
    if config.mesh.is_some() || config.controllers.is_some() {
        return Err("mesh and controllers count in virtual time only: no trace has them".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use flagpost_explore::{cases, preset_settings_of, settings_of};

    fn some() -> impl Iterator<Item = Setting> {
        let case = |name| cases().find(move |case| case.name == name);
        let case = case("small.notify").expect("it is in the table");
        settings_of(case).chain(preset_settings_of(case))
    }

    /// On every chip: seeded runs, and runs that are lists of choices.
    #[test]
    fn traces_replay_exactly() {
        for setting in some() {
            let seeded = setting.run(Config {
                seed: 7,
                ..setting.config()
            });
            let listed = format!("{} set_up=true choices=1*5,0*2", seeded.config);
            let mut listed: Config = listed.parse().expect("a config");
            listed.registers = true; // as in a search
            let listed = setting.run(listed);
            for report in [seeded, listed] {
                let text = write(&setting, &report).to_string();
                let trace = read(&text).unwrap_or_else(|error| panic!("{setting}: {error}"));
                assert_eq!(trace.setting.to_string(), setting.to_string());
                assert_eq!(trace.code, code());
                let again = trace.setting.run(trace.config);
                assert_eq!(format!("{:016x}", again.hash), trace.hash, "{setting}");
            }
        }
    }

    /// Each of these ends with one line that names what is wrong.
    #[test]
    fn garbage_is_named_in_one_line() {
        let setting = some().next().expect("one at least");
        let report = setting.run(setting.config());
        let good = write(&setting, &report);
        let line = report.config.to_string();
        for (old, new, named) in [
            ("line=32", "line=7", "line=7"),
            ("line=32", "line=0", "line=0"),
            ("line=32", "line=16", "line=16"),
            ("cores=2", "cores=0", "cores"),
            ("cores=2", "cores=65535", "cores"),
            ("cores=2", "cores=-1", "cores=-1"),
            ("cores=2", "cores=99999999999999999999", "cores"),
            ("memory=8192", "memory=8191", "memory=8191"),
            ("memory=8192", "memory=4294967264", "memory"),
            ("buffer=512", "buffer=4294967264", "memory"),
            ("buffer=512", "buffer=3", "buffer=3"),
            ("buffer=512", "buffer=512 ring=3", "ring"),
            ("profile=scc", "profile=weak", "profile=weak"),
            ("profile=scc", "profile=sc", "\"sc\""),
            ("schedule=mixed", "schedule=timed", "timed"),
            ("schedule=mixed", "schedule=pct:999", "schedule"),
            (
                "pct_length=0",
                "pct_length=18446744073709551615",
                "pct_length",
            ),
            ("timeline=16", "timeline=70000", "timeline"),
            ("timeline=16", "timeline=16 publish=0", "publish=0"),
            ("timeline=16", "timeline=16 publish=64", "publish=64"),
            ("timeline=16", "timeline=16 registers=false", "registers"),
            ("timeline=16", "timeline=16 network=16:64:1", "network"),
            ("timeline=16", "timeline=16 network=0:64:1", "network"),
            ("timeline=16", "timeline=16 mesh=1x1x1", "mesh"),
            ("timeline=16", "timeline=16 controllers=0", "controllers"),
            ("timeline=16", "timeline=16 choices=é", "é"),
            ("timeline=16", "timeline=16 choices=0*99999999", "choice"),
            ("timeline=16", "timeline", "timeline"),
        ] {
            assert!(line.contains(old), "{line} has no {old}");
            let mut bad = good.clone();
            bad["config"] = line.replace(old, new).into();
            one_line(&bad.to_string(), named);
        }
        for (field, value, named) in [
            ("config", json!(7), "config"),
            ("config", Value::Null, "config"),
            ("case", json!("no.such"), "no.such"),
            ("chip", json!("z80"), "z80"),
            ("chip", json!("et"), "line=32"),
            ("chip", json!("network"), "network"),
            ("chip", json!("arm-m7"), "profile=scc"),
            ("chip", json!("scc-wb"), "buffer="),
            ("hash", json!([]), "hash"),
        ] {
            let mut bad = good.clone();
            bad[field] = value;
            one_line(&bad.to_string(), named);
        }
        for bad in ["", "[]", "7", "{", "{}", "cores=2", "\u{0}"] {
            one_line(bad, "not");
        }
    }

    fn one_line(bad: &str, named: &str) {
        let error = read(bad).err().expect(bad);
        assert!(error.contains(named), "{bad}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }

    /// Chips that are odd, but can be built: the run may fail, and nothing else.
    #[test]
    fn odd_chips_make_runs() {
        for (preset, words) in [
            ("scc", "memory=0 buffer=0"),
            ("scc", "memory=32"),
            ("scc", "evictions=65535 wakes=65535 leaves=65535"),
            ("scc", "max_steps=0 quiet_turns=0"),
            ("scc", "quiet_turns=18446744073709551615"),
            ("scc", "schedule=pct:0"),
            ("scc", "schedule=pct:255 pct_length=4294967295"),
            ("scc", "choices=9"),
            ("scc", "choices=e0:4294967295,0/4294967295"),
            ("scc", "choices=a65535:1.255,l9:255,x99,t"),
            ("cxl", "memory=64"),
            ("cxl", "registers=true"),
            ("scc-wt", "memory=0"),
            ("scc-wb", "memory=32 caches=through"),
            ("network", "network=1:1:0 memory=32"),
            ("network", "choices=d0:0.0,d1:4294967295.65535"),
            ("weak+fill", "budgets=4294967295 drains=0"),
        ] {
            let setting = some().find(|setting| setting.chip.to_string() == preset);
            let setting = setting.expect("a chip");
            let config = format!("{} max_steps=100000 {words}", setting.config());
            let trace = json!({
                "case": setting.case.name, "chip": preset, "hash": "", "config": config,
            });
            let trace = read(&trace.to_string()).unwrap_or_else(|error| panic!("{words}: {error}"));
            trace.setting.run(trace.config);
        }
    }
}
