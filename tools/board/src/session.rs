//! The image of cases, built, and the QEMU to boot it in: what every command that runs cases needs.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;

use crate::board::Board;
use crate::boot::{self, Setup};
use crate::console::Console;
use crate::image::{self, Image};
use crate::run::Run;
use crate::{parallel, tools};

/// Ready to boot.
pub struct Session {
    qemu: PathBuf,
    image: Image,
}

impl Session {
    /// [`Session::with`], for the image as tests build it.
    pub fn of(console: &Console, board: Board) -> Result<Self> {
        Self::with(console, board, image::CASES, false)
    }

    /// Finds or installs what is needed, and builds the image in a profile, all mutants in it or
    /// none.
    pub fn with(console: &Console, board: Board, profile: &str, mutants: bool) -> Result<Self> {
        let qemu = tools::qemu(console, board.facts().emulator)?;
        let image = image::cases(console, board, profile, mutants)?;
        Ok(Self { qemu, image })
    }

    /// Boots once.
    pub fn run(&self, console: &Console, setup: &Setup) -> Result<Run> {
        boot::boot(console, &self.qemu, &self.image, setup)
    }

    /// Boots another image of the same board.
    pub fn run_other(&self, console: &Console, elf: &Path, setup: &Setup) -> Result<Run> {
        let image = Image {
            monitor: self.image.monitor.clone(),
            ..Image::plain(self.image.board, elf)
        };
        boot::boot(console, &self.qemu, &image, setup)
    }

    /// The program of the image.
    pub fn elf(&self) -> &Path {
        &self.image.elf
    }

    /// Boots once per seed.
    pub fn seeds(&self, console: &Console, setup: &Setup, seeds: &[u32]) -> Result<Vec<Run>> {
        let setups: Vec<_> = seeds
            .iter()
            .map(|&seed| Setup {
                seed,
                ..setup.clone()
            })
            .collect();
        self.all(console, &setups)
    }

    /// Boots once per setup; the runs are in their order. Deterministic ones take one host thread
    /// each, so several run at a time, without effect on their outcome; parallel ones have the host
    /// to themselves.
    pub fn all(&self, console: &Console, setups: &[Setup]) -> Result<Vec<Run>> {
        let most = match setups.iter().any(|setup| setup.parallel) {
            true => 1,
            false => setups.len(),
        };
        let failed = AtomicUsize::new(0);
        let run = |setup: &Setup| {
            let quiet = Setup {
                verbose: false,
                ..setup.clone()
            };
            self.run(console, &quiet)
        };
        parallel::each(setups, most, run, |done, run| {
            // ORDERING: Relaxed: a number for people.
            let failed = failed.fetch_add(usize::from(!run.ok()), Ordering::Relaxed);
            let failed = failed + usize::from(!run.ok());
            console.step(format!(
                "{} cores, run {done}/{}, {failed} failed",
                run.cores,
                setups.len()
            ));
        })
    }
}
