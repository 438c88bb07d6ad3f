//! The boards: for each, what its image is built of, and how QEMU emulates it.
//!
//! | board | cores | processor | log |
//! |---|---|---|---|
//! | `virt` | 1 to 512 | riscv64, caches in software | defmt on the UART |
//! | `scc` | 2 to 48 | Pentium, the SCC's own port | text on the debug port |
//! | `an521` | 2 | Cortex-M33, no cache | text on the UART |

use std::path::Path;
use std::process::Command;

use crate::image::Image;
use crate::toolchain::Part;
use crate::tools::{self, Emulator};

/// A board that QEMU emulates, and that an image of the cases exists for.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Board {
    #[default]
    Virt,
    Scc,
    An521,
}

/// Package, binary and features of a program.
pub type Bin = [&'static str; 3];

/// What a board is built of, and how many cores it has.
pub struct Facts {
    pub name: &'static str,
    pub emulator: Emulator,
    pub target: &'static str,
    pub part: Part,
    pub cases: Bin,
    /// Words that its start-up code takes, besides those of the cases: each name, and its values.
    pub words: &'static [(&'static str, &'static [&'static str])],
    /// The program that QEMU starts, where it is not the image of the cases.
    pub monitor: Option<Bin>,
    /// Fewest and most.
    pub cores: [u32; 2],
}

const VIRT: Facts = Facts {
    name: "virt",
    emulator: tools::RISCV,
    target: Part::BOARD.name(),
    part: Part::BOARD,
    cases: ["flagpost-qemu", "flagpost-cases", "cases"],
    words: &[],
    monitor: None,
    cores: [1, 512],
};

const SCC: Facts = Facts {
    name: "scc",
    emulator: tools::X86,
    target: "linker/i586-scc-none.json",
    part: Part::Sources,
    cases: ["flagpost-scc-cases", "flagpost-scc-cases", ""],
    words: &[
        ("lines", &["0", "1"]),
        ("interrupts", &["0", "1"]),
        ("fault", &["page", "register", "lock", "cl1invmb", "drain"]),
    ],
    monitor: Some(["flagpost-scc-monitor", "flagpost-scc-monitor", ""]),
    cores: [2, 48],
};

const AN521: Facts = Facts {
    name: "an521",
    emulator: tools::ARM,
    target: "thumbv8m.main-none-eabihf",
    part: Part::Target("thumbv8m.main-none-eabihf"),
    cases: ["flagpost-an521", "flagpost-an521", ""],
    words: &[],
    monitor: None,
    cores: [2, 2],
};

impl Board {
    pub const ALL: [Self; 3] = [Self::Virt, Self::Scc, Self::An521];

    pub const fn facts(self) -> &'static Facts {
        match self {
            Self::Virt => &VIRT,
            Self::Scc => &SCC,
            Self::An521 => &AN521,
        }
    }

    /// What cargo needs to link an image. The SCC's code has no frame pointers: it is the code that
    /// would run on the chip.
    pub(crate) const fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Virt => &["-Cforce-frame-pointers=yes"],
            Self::Scc | Self::An521 => &[],
        }
    }

    /// The machine and its image on QEMU's command line: for `cores` cores, with the words
    /// `append`.
    pub(crate) fn emulate(self, command: &mut Command, image: &Image, cores: u32, append: &str) {
        let cores = cores.to_string();
        match self {
            Self::Virt => {
                command.args(["-M", "virt", "-m", "256M", "-smp", &cores, "-bios", "none"]);
                command.args(["-serial", "stdio", "-append", append]);
            }
            Self::Scc => {
                command.args(["-M", "pc", "-cpu", "pentium,+umip", "-m", "640"]);
                command.args(["-smp", &cores]);
                command.args(["-net", "none", "-no-reboot", "-serial", "none"]);
                command.args(["-parallel", "none", "-debugcon", "stdio"]);
                command.args(["-device", "isa-debug-exit,iobase=0xf4,iosize=4"]);
                command.arg("-initrd").arg(&image.elf);
                command.args(["-append", append]);
            }
            Self::An521 => {
                command.args(["-M", "mps2-an521", "-serial", "stdio"]);
                // Else only core 1 has an FPU.
                command.args(["-global", "sse-200.CPU0_FPU=on"]);
                let config = "enable=on,target=native,arg=cases";
                let words = append.split_whitespace().map(|word| format!(",arg={word}"));
                let config = words.fold(config.to_owned(), |line, word| line + &word);
                command.args(["-semihosting-config", &config]);
            }
        }
        let first: &Path = image.monitor.as_deref().unwrap_or(&image.elf);
        command.arg("-kernel").arg(first);
    }

    /// The status of a machine that ended itself, as the image meant it; QEMU's own otherwise.
    pub(crate) fn status(self, status: Option<i32>) -> Option<i32> {
        match (self, status) {
            // Its device for that gives 2 v + 1, so that no end is 0: v = 0 is a run that passed,
            // and a reset, of which the machine dies, ends with 0.
            (Self::Scc, Some(0)) => Some(1),
            (Self::Scc, Some(status)) => Some(status / 2),
            (_, status) => status,
        }
    }
}
