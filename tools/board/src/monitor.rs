//! QEMU's monitor: a machine protocol (QMP) on a Unix socket, through which the commands for
//! people are sent, and their answers read.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// A connection.
pub(crate) struct Monitor {
    lines: BufReader<UnixStream>,
}

/// Where a core is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Registers {
    pub(crate) pc: u64,
    /// The frame pointer.
    pub(crate) s0: u64,
}

impl Monitor {
    pub(crate) fn connect(socket: &Path) -> Result<Self> {
        let stream = UnixStream::connect(socket).context("cannot reach QEMU's monitor")?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        stream.set_write_timeout(Some(Duration::from_secs(10)))?;
        let mut monitor = Self {
            lines: BufReader::new(stream),
        };
        monitor.line()?;
        monitor.execute(&json!({"execute": "qmp_capabilities"}))?;
        Ok(monitor)
    }

    /// Halts all cores.
    pub(crate) fn stop(&mut self) -> Result<()> {
        self.execute(&json!({"execute": "stop"})).map(drop)
    }

    /// The registers of every core, by core number.
    pub(crate) fn registers(&mut self) -> Result<Vec<Registers>> {
        Ok(parse_registers(&self.ask("info registers -a")?))
    }

    /// `count` words of guest memory, of a size as QEMU names them: `w` of 32 bits, `g` of 64.
    pub(crate) fn words(&mut self, address: u64, count: usize, size: char) -> Result<Vec<u64>> {
        let command = format!("xp /{count}x{size} {address:#x}");
        let words = parse_memory(&self.ask(&command)?);
        if words.len() != count {
            bail!("QEMU's monitor gave {} words for `{command}`", words.len());
        }
        Ok(words)
    }

    /// The answer to a command for people.
    fn ask(&mut self, line: &str) -> Result<String> {
        let command = json!({
            "execute": "human-monitor-command", "arguments": {"command-line": line}
        });
        Ok(self
            .execute(&command)?
            .as_str()
            .unwrap_or_default()
            .to_owned())
    }

    fn execute(&mut self, command: &Value) -> Result<Value> {
        self.lines
            .get_mut()
            .write_all(format!("{command}\n").as_bytes())?;
        loop {
            let mut answer = self.line()?;
            if let Some(value) = answer.get_mut("return") {
                return Ok(value.take());
            }
            if let Some(error) = answer.get("error") {
                bail!("QEMU's monitor refused {command}: {error}");
            }
            // Anything else is an event.
        }
    }

    fn line(&mut self) -> Result<Value> {
        let mut line = String::new();
        let read = self
            .lines
            .read_line(&mut line)
            .context("QEMU's monitor does not answer")?;
        if read == 0 {
            bail!("QEMU's monitor is closed");
        }
        serde_json::from_str(&line).context("QEMU's monitor does not speak QMP")
    }
}

/// The words of `xp` output: `0000000080005000: 0x00000002 0x00000001`.
fn parse_memory(text: &str) -> Vec<u64> {
    let values = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(_, values)| values);
    values
        .flat_map(str::split_whitespace)
        .filter_map(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok())
        .collect()
}

/// `pc` and `s0` of each block of `info registers -a`; blocks begin with `CPU#N`.
fn parse_registers(text: &str) -> Vec<Registers> {
    let mut cores: Vec<Registers> = Vec::new();
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        if word.starts_with("CPU#") {
            cores.push(Registers::default());
        }
        let Some(core) = cores.last_mut() else {
            continue;
        };
        if word == "pc" || word == "x8/s0" {
            let value = words.next().map(|hex| u64::from_str_radix(hex, 16));
            let value = value.and_then(Result::ok).unwrap_or(0);
            match word {
                "pc" => core.pc = value,
                _ => core.s0 = value,
            }
        }
    }
    cores
}
