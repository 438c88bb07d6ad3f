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
        "config": report.config,
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
    // The error names the field.
    let config: Config = serde_path_to_error::deserialize(&value["config"])
        .map_err(|error| format!("not a config: {error}"))?;
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
        let (has, is) = (config.network.is_some(), chip.is_network());
        return Err(format!("network: {has}, but of {chip} {is}"));
    }
    if config
        .network
        .is_some_and(|wire| wire.sends.min(wire.queue) == 0)
    {
        return Err("network: it has no room for an operation".into());
    }
    if chip.is_network() && config.buffer_size < line {
        let size = config.buffer_size;
        return Err(format!("buffer_size={size}: {chip} counts events in it"));
    }
    let (buffer, its) = (config.buffer_size, of_chip.buffer_size);
    if chip.mapping().is_some() && buffer != its {
        return Err(format!(
            "buffer_size={buffer}: {chip} has registers in it, {its} bytes in all"
        ));
    }
    for (name, size) in [
        ("memory_size", config.memory_size),
        ("buffer_size", config.buffer_size),
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
    use flagpost_sim::Wire;

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
            let mut listed = seeded.config.clone();
            listed.choices =
                serde_json::from_str(r#"[[{"run":1},[],5],[{"run":0},[],2]]"#).unwrap();
            listed.within.set_up = true;
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
        for (field, value, named) in [
            ("line", json!(7), "line=7"),
            ("line", json!(0), "line=0"),
            ("line", json!(16), "line=16"),
            ("cores", json!(0), "cores"),
            ("cores", json!(65535), "cores"),
            ("cores", json!(-1), "cores"),
            ("memory_size", json!(8191), "memory_size=8191"),
            ("memory_size", json!(4294967264_u32), "memory"),
            ("buffer_size", json!(4294967264_u32), "memory"),
            ("buffer_size", json!(3), "buffer_size=3"),
            ("ring", json!(3), "ring"),
            ("profile", json!("weak"), "profile=weak"),
            ("profile", json!("sc"), "profile"),
            ("schedule", json!("timed"), "schedule"),
            ("schedule", json!({"pct": {"depth": 999}}), "schedule"),
            ("pct_length", json!(u64::MAX), "pct_length"),
            ("timeline", json!(70000), "timeline"),
            ("publish", json!(0), "publish=0"),
            ("publish", json!(64), "publish=64"),
            ("registers", json!(false), "registers"),
            ("network", json!(Wire::default()), "network"),
            (
                "mesh",
                json!({"columns": 1, "rows": 1, "cores_per_tile": 1}),
                "mesh",
            ),
            ("controllers", json!(0), "controllers"),
            ("choices", json!([["é", [], 1]]), "choices"),
            ("choices", json!([["elapse", [], 99999999]]), "choices"),
        ] {
            let mut bad = good.clone();
            bad["config"][field] = value;
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
            ("chip", json!("scc-wb"), "buffer_size="),
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
        let choices = |what| json!({"choices": [[what, [], 1]]});
        for (preset, odd) in [
            ("scc", json!({"memory_size": 0, "buffer_size": 0})),
            ("scc", json!({"memory_size": 32})),
            (
                "scc",
                json!({"evictions": 65535, "wakes": 65535, "leaves": 65535}),
            ),
            ("scc", json!({"max_steps": 0, "quiet_turns": 0})),
            ("scc", json!({"quiet_turns": u64::MAX})),
            ("scc", json!({"schedule": {"pct": {"depth": 0}}})),
            (
                "scc",
                json!({"schedule": {"pct": {"depth": 255}}, "pct_length": u32::MAX}),
            ),
            ("scc", choices(json!({"run": 9}))),
            (
                "scc",
                choices(json!({"evict": {"core": 0, "line": u32::MAX}})),
            ),
            ("scc", json!({"choices": [[{"run": 0}, [u32::MAX], 1]]})),
            (
                "scc",
                choices(json!({"arrive": {"core": 65535, "line": 1, "byte": 255}})),
            ),
            ("scc", choices(json!({"leave": {"core": 9, "word": 255}}))),
            ("scc", choices(json!({"expire": 99}))),
            ("scc", choices(json!("elapse"))),
            ("cxl", json!({"memory_size": 64})),
            ("cxl", json!({"registers": true})),
            ("scc-wt", json!({"memory_size": 0})),
            (
                "scc-wb",
                json!({"memory_size": 32, "caching": {"stores": "through"}}),
            ),
            (
                "network",
                json!({"network": Wire { sends: 1, queue: 1, deliveries: 0, ordered: false }}),
            ),
            (
                "network",
                choices(json!({"deliver": {"core": 1, "serial": u32::MAX, "part": 65535}})),
            ),
            (
                "weak+fill",
                json!({"budgets_expire": u32::MAX, "drains": 0}),
            ),
        ] {
            let setting = some().find(|setting| setting.chip.to_string() == preset);
            let setting = setting.expect("a chip");
            let mut config = json!(setting.config());
            config["max_steps"] = json!(100_000);
            for (field, value) in odd.as_object().expect("fields") {
                config[field] = value.clone();
            }
            let trace = json!({
                "case": setting.case.name, "chip": preset, "hash": "", "config": config,
            });
            let trace = read(&trace.to_string()).unwrap_or_else(|error| panic!("{odd}: {error}"));
            trace.setting.run(trace.config);
        }
    }
}
