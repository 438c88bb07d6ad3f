//! What the cores of a hung image are doing.
//!
//! The cores are halted through QEMU's monitor. Each one's word in `FLAGPOST_STATUS` says what it
//! is at: 0 not booted, 1 waiting at the machine's barrier or finished, 2 + k running the k-th
//! case begun. For the first cores that still run something the stack is walked along the frame
//! pointers (return address at s0 - 8, caller's s0 at s0 - 16) and named from debug information.

use std::ops::Range;
use std::path::Path;

use anyhow::{Context, Result};

use crate::monitor::{Monitor, Registers};
use crate::run::Run;
use crate::symbols::{self, Symbols};

/// The image's array of 512 words.
const STATUS: &str = "FLAGPOST_STATUS";
const WAITING: u64 = 1;
/// Stacks shown, and frames of each.
const CORES_SHOWN: usize = 8;
const FRAMES_SHOWN: usize = 8;
/// The machine's memory, to tell a frame pointer from anything else.
const RAM: Range<u64> = 0x8000_0000..0x9000_0000;
/// Where code can be: flash, or RAM.
const CODE: Range<u64> = 0x2000_0000..0x9000_0000;

/// Describes the state of the machine behind `socket`, some lines of text.
pub(crate) fn describe(socket: &Path, elf: &Path, run: &Run) -> String {
    match look(socket, elf, run) {
        Ok(text) => text,
        Err(why) => format!("no core could be looked at: {why:#}"),
    }
}

fn look(socket: &Path, elf: &Path, run: &Run) -> Result<String> {
    let mut monitor = Monitor::connect(socket)?;
    monitor.stop()?;
    let registers = monitor.registers()?;
    let symbols = Symbols::open(elf)?;
    let status = match symbols::address(elf, STATUS) {
        Some(address) => monitor.words(address, registers.len(), 'w')?,
        None => vec![WAITING; registers.len()],
    };
    // Without any core in a case, those that wait are the ones to look at.
    let in_case = |&core: &usize| status.get(core).is_some_and(|s| *s > WAITING);
    let all = 0..registers.len();
    let mut shown: Vec<usize> = all.clone().filter(in_case).collect();
    let running = shown.len();
    if shown.is_empty() {
        shown = all.clone().collect();
    }
    shown.truncate(CORES_SHOWN);

    let mut lines = Vec::new();
    for &core in &shown {
        let what = activity(status[core], run);
        let stack = stack(&mut monitor, registers[core], &symbols);
        lines.push(format!("core {core} {what}: {stack}"));
    }
    let count = |wanted: &dyn Fn(u64) -> bool| {
        all.clone()
            .filter(|core| !shown.contains(core) && wanted(status[*core]))
            .count()
    };
    for (number, what) in [
        (running.saturating_sub(CORES_SHOWN), "still run the case"),
        (
            count(&|s| s == WAITING),
            "have finished it or wait at the machine's barrier",
        ),
        (count(&|s| s == 0), "have not booted"),
    ] {
        if number > 0 {
            lines.push(format!("{number} other cores {what}"));
        }
    }
    Ok(lines.join("\n  "))
}

/// What a status word says.
fn activity(status: u64, run: &Run) -> String {
    match status {
        0 => "has not booted".to_owned(),
        WAITING => "waits at the machine's barrier".to_owned(),
        status => match run.nth_begun(status as usize - 2) {
            Some(case) if run.running().is_some_and(|now| now.name != case.name) => {
                format!("still runs case {}", case.name)
            }
            _ => "still runs".to_owned(),
        },
    }
}

/// The places on a core's stack, innermost first.
fn stack(monitor: &mut Monitor, registers: Registers, symbols: &Symbols) -> String {
    let mut places = vec![symbols.place(registers.pc)];
    let mut frame = registers.s0;
    while places.len() < FRAMES_SHOWN {
        match caller(monitor, frame) {
            Ok(Some((outer, back))) => {
                // The call is the instruction before the one returned to.
                let place = symbols.place(back - 1);
                if place.starts_with("0x") {
                    break; // the boot code
                }
                places.push(place);
                if outer <= frame {
                    break;
                }
                frame = outer;
            }
            _ => break,
        }
    }
    places.join(" <- ")
}

/// The caller's frame pointer and the return address, if `frame` is one.
fn caller(monitor: &mut Monitor, frame: u64) -> Result<Option<(u64, u64)>> {
    if !frame.is_multiple_of(8) || !RAM.contains(&frame) {
        return Ok(None);
    }
    let words = monitor
        .words(frame - 16, 2, 'g')
        .context("cannot read the stack")?;
    Ok(CODE.contains(&words[1]).then_some((words[0], words[1])))
}
