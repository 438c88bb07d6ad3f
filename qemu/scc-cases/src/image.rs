//! The image on one core.

use core::fmt::{self, Write};
use core::sync::atomic::AtomicU32;

use flagpost_conformance::{Args, Bell, Board, Has, Plain, Record, Status, cases, run};
use flagpost_hal::CoreId;
use flagpost_scc::silicon::Silicon;
use flagpost_scc::{Bus as _, Map, Mapping, Scc};
use flagpost_scc_monitor::calls::{self, Boot};
use flagpost_scc_monitor::options::Options;
use heapless::String;

/// Bytes of shared memory per core: what is filled anew before each case.
const MEMORY: u32 = 64 << 10;

/// A core of the chip can ring another.
struct Bells;

impl Has<Scc<Silicon>> for Bells {
    const BELL: Option<Bell<Scc<Silicon>>> = Some((Scc::ring, Scc::wait_for_ring));
}

/// A core, as the runner sees it.
#[derive(Copy, Clone)]
struct Core {
    bus: Silicon,
    map: Map,
    mapping: Mapping,
    stack: &'static [AtomicU32],
}

impl Board for Core {
    type Platform = Plain<Scc<Silicon>, Bells>;

    fn machine(&self) -> Scc<Silicon> {
        Scc::start(self.bus, self.map, self.mapping)
    }

    fn barrier(&self, well: bool) -> bool {
        calls::barrier(well)
    }

    fn reset(&self, garbage: u32) {
        self.bus.state().reset();
        calls::reset(garbage, MEMORY);
    }

    fn log(&self, record: &Record<'_>) {
        log(format_args!("{record}"));
    }

    fn status(&self, _: CoreId, status: Status) {
        calls::status(status.word());
    }

    fn stack(&self) -> &'static [AtomicU32] {
        self.stack
    }
}

/// Jumped to by the monitor, on a stack and with paging on.
// SAFETY (`no_mangle`): the linker looks for this name, and nothing else bears it.
#[expect(unsafe_code, reason = "the image's entry")]
#[unsafe(no_mangle)]
extern "C" fn _start(boot: &'static Boot) -> ! {
    // SAFETY: the monitor fills the page tables from `views`, gives each core this program as its
    // own, and takes the interrupts by handlers that do not use the port.
    let bus = unsafe { Silicon::new() };
    let words = boot.words();
    let args = Args::new(words);
    #[cfg(mutants)]
    flagpost_points::break_point(args.text("mutant"));
    let options = Options::parse(words).expect("the monitor has read the same words");
    let core = Core {
        bus,
        map: Map::SCC.with_cores(boot.cores as u16).with_memory(MEMORY),
        mapping: options.mapping,
        stack: boot.stack(),
    };
    let passed = run(core, cases(), args);
    // Core 0 has the last word.
    calls::barrier(true);
    calls::end(passed)
}

/// A line, as long as lines are.
#[derive(Default)]
struct Line(String<512>);

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut kept = text.chars().map(|c| if c == '\n' { ' ' } else { c });
        kept.try_for_each(|c| self.0.push(c).map_err(|_| fmt::Error))
    }
}

/// Prints a line, the beginning of one that is too long.
fn log(text: fmt::Arguments<'_>) {
    let mut line = Line::default();
    let _ = line.write_fmt(text);
    calls::log(line.0.as_bytes());
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    let (file, at) = info.location().map_or(("?", 0), |l| (l.file(), l.line()));
    let core = calls::core();
    log(format_args!(
        "@panic core={core} case=? at={file}:{at} what={}",
        info.message()
    ));
    calls::end(false)
}
