//! The image of cases, built, and the QEMU to boot it in: what every command that runs cases needs.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;

use crate::boot::{self, Setup};
use crate::console::Console;
use crate::image::{self, Image};
use crate::run::Run;
use crate::tools;

/// Ready to boot.
pub struct Session {
    qemu: PathBuf,
    image: Image,
}

impl Session {
    /// Finds or installs what is needed, and builds the image.
    pub fn open(console: &Console) -> Result<Self> {
        Self::with(console, image::CASES, false)
    }

    /// [`Session::open`], for the image whose instructions count.
    pub fn measured(console: &Console) -> Result<Self> {
        Self::with(console, image::PROFILE, false)
    }

    /// [`Session::open`], for the image that holds all mutants.
    pub fn mutants(console: &Console) -> Result<Self> {
        Self::with(console, image::CASES, true)
    }

    fn with(console: &Console, profile: &str, mutants: bool) -> Result<Self> {
        let qemu = tools::qemu(console)?;
        let image = image::cases(console, profile, mutants)?;
        Ok(Self { qemu, image })
    }

    /// Boots once.
    pub fn run(&self, console: &Console, setup: &Setup) -> Result<Run> {
        boot::boot(console, &self.qemu, &self.image, setup)
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
        let host = std::thread::available_parallelism().map_or(1, |n| n.get());
        let workers = if setups.iter().any(|setup| setup.parallel) {
            1
        } else {
            host.min(setups.len())
        };
        let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let work = || -> Result<()> {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(setup) = setups.get(number) else {
                    break;
                };
                let setup = Setup {
                    verbose: false,
                    ..setup.clone()
                };
                let run = self.run(console, &setup)?;
                let mut done = done.lock().unwrap_or_else(|e| e.into_inner());
                done.push((number, run));
                let failed = done.iter().filter(|(_, run)| !run.ok()).count();
                let (count, total) = (done.len(), setups.len());
                console.step(format!(
                    "{} cores, run {count}/{total}, {failed} failed",
                    setup.cores
                ));
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
            let join = |worker: std::thread::ScopedJoinHandle<'_, Result<()>>| {
                worker
                    .join()
                    .unwrap_or_else(|_| Err(anyhow::anyhow!("a worker panicked")))
            };
            workers
                .into_iter()
                .map(join)
                .collect::<Vec<_>>()
                .into_iter()
                .collect::<Result<()>>()
        })?;
        let mut runs = done.into_inner().unwrap_or_else(|e| e.into_inner());
        runs.sort_by_key(|(number, _)| *number);
        Ok(runs.into_iter().map(|(_, run)| run).collect())
    }
}
