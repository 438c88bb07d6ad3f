//! Lines for the host, whole ones, and the end of the run.

use core::fmt::{self, Write};
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

use spin::Mutex;

use crate::machine;

static PORT: Mutex<Port> = Mutex::new(Port);

/// QEMU ends with twice this, plus 1: a triple fault, which ends it with 0, is no success.
const WELL: u8 = 0;
const BADLY: u8 = 1;

struct Port;

impl Write for Port {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.bytes()
            .for_each(|byte| machine::out8(machine::DEBUG, byte));
        Ok(())
    }
}

/// Prints a line.
pub(crate) fn line(text: fmt::Arguments<'_>) {
    // `Port` takes all that it is given.
    let _ = writeln!(PORT.lock(), "{text}");
}

/// Prints a line of an image.
pub(crate) fn bytes(line: &[AtomicU8]) {
    let _port = PORT.lock();
    for byte in line {
        machine::out8(machine::DEBUG, byte.load(Relaxed));
    }
    machine::out8(machine::DEBUG, b'\n');
}

/// Ends the run.
pub(crate) fn end(well: bool) -> ! {
    machine::out8(machine::EXIT, if well { WELL } else { BADLY });
    loop {
        machine::halt();
    }
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    let (file, at) = info.location().map_or(("?", 0), |l| (l.file(), l.line()));
    let core = machine::core().get();
    line(format_args!(
        "@panic core={core} case=? at={file}:{at} what=monitor: {}",
        info.message()
    ));
    end(false)
}
