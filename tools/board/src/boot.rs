//! Boots an image in QEMU and follows its log to the end.
//!
//! By default all cores share one host thread and time is counted in instructions
//! (`thread=single`, `-icount`): the same image, arguments and seed give the same run,
//! instruction by instruction. `sleep=off` is part of that: by QEMU's manual guest time otherwise
//! follows the host's clock while it finds the cores asleep, and without it whole runs of 48 and of
//! 512 cores gave other instruction counts each time (QEMU 7.2). With `parallel` each core has a
//! host thread of its own.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::board::Board;
use crate::children::Running;
use crate::console::{Console, out};
use crate::hang;
use crate::image::Image;
use crate::log::{Decoder, Line};
use crate::report;
use crate::run::{Exit, Run};
use crate::symbols::Symbols;

/// How to boot.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    pub cores: u32,
    pub seed: u32,
    pub filter: Option<String>,
    /// Further boot arguments, `name=value` each.
    pub arguments: Vec<String>,
    pub list: bool,
    /// The image does not speak the protocol: its exit status alone decides.
    pub plain: bool,
    pub parallel: bool,
    /// A run hangs once the image has told nothing of its cases for so long a host time.
    pub timeout: Duration,
    /// Print the object of each case on standard output when the case is over.
    pub json: bool,
    /// Show log lines of every level and progress, not only warnings.
    pub verbose: bool,
}

impl Setup {
    pub fn new(cores: u32, seed: u32) -> Self {
        Self {
            cores,
            seed,
            timeout: Duration::from_secs(120),
            ..Self::default()
        }
    }

    /// The image's command line.
    fn append(&self) -> String {
        let mut words = vec![format!("seed={}", self.seed)];
        words.extend(self.filter.iter().map(|name| format!("filter={name}")));
        words.extend(self.list.then(|| "list=1".to_owned()));
        words.extend(self.arguments.iter().cloned());
        words.join(" ")
    }

    fn command(&self, qemu: &Path, image: &Image, socket: &Path) -> Command {
        let mut command = Command::new(qemu);
        let append = self.append();
        image
            .board
            .emulate(&mut command, image, self.cores, &append);
        command.args(["-display", "none", "-monitor", "none"]);
        if self.parallel {
            command.args(["-accel", "tcg,thread=multi"]);
        } else {
            command.args(["-accel", "tcg,thread=single"]);
            command.args(["-icount", "shift=0,sleep=off"]);
        }
        command
            .arg("-qmp")
            .arg(format!("unix:{},server=on,wait=off", socket.display()));
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

/// A name for a socket: short, since 108 bytes are the limit, and not used by another boot.
fn socket() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let (process, number) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    std::env::temp_dir().join(format!("flagpost-{process}-{number}.qmp"))
}

/// Everything a pipe delivers, piece by piece.
fn pieces(mut pipe: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut buffer = [0; 65536];
        while let Ok(read @ 1..) = pipe.read(&mut buffer) {
            if send.send(buffer[..read].to_vec()).is_err() {
                break;
            }
        }
    });
    receive
}

/// Boots `image` and judges what it says.
///
/// # Errors
/// Only if QEMU cannot be run; what goes wrong inside is in [`Run::errors`].
pub fn boot(console: &Console, qemu: &Path, image: &Image, setup: &Setup) -> Result<Run> {
    let socket = socket();
    let mut command = setup.command(qemu, image, &socket);
    let mut machine = Running::start_with(&mut command, Some(socket.clone()))
        .with_context(|| format!("cannot run {}", qemu.display()))?;
    let serial = pieces(machine.child.stdout.take().context("no pipe from QEMU")?);
    let stderr = pieces(machine.child.stderr.take().context("no pipe from QEMU")?);

    let mut follower = Follower::new(console, image, setup);
    let mut deadline = Instant::now() + setup.timeout;
    let exit = loop {
        match serial.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(bytes) => {
                if follower.take(&bytes) {
                    deadline = Instant::now() + setup.timeout;
                }
            }
            Err(RecvTimeoutError::Timeout) => {
                let state = match image.board {
                    Board::Virt => hang::describe(&socket, &image.elf, &follower.run),
                    other => format!("what its cores do is not known on {}", other.facts().name),
                };
                let seconds = setup.timeout.as_secs();
                let progress = follower.run.progress();
                break Exit::Hung(format!(
                    "no case began or ended for {seconds} s (--timeout), at {progress}\n  {state}"
                ));
            }
            Err(RecvTimeoutError::Disconnected) => {
                let status = image.board.status(machine.wait()?.code());
                let stderr: Vec<u8> = stderr.iter().flatten().collect();
                let stderr = String::from_utf8_lossy(&stderr).into_owned();
                break Exit::Ended { status, stderr };
            }
        }
    };
    drop(machine);
    follower.run.finish(&exit, follower.decoder.broken);
    follower.tell();
    Ok(follower.run)
}

/// Feeds the log to the [`Run`], and shows people what is for them.
struct Follower<'a> {
    console: &'a Console,
    image: &'a Image,
    setup: &'a Setup,
    decoder: Decoder<'a>,
    run: Run,
    /// How many cases [`Follower::tell`] has told of.
    told: usize,
}

impl<'a> Follower<'a> {
    fn new(console: &'a Console, image: &'a Image, setup: &'a Setup) -> Self {
        if setup.verbose {
            console.step(format!("booting {} cores", setup.cores));
        }
        let decoder = Decoder::new(image.table.as_ref());
        let run = Run {
            plain: setup.plain || setup.list,
            parallel: setup.parallel,
            ..Run::new(setup.cores, setup.seed)
        };
        Self {
            console,
            image,
            setup,
            decoder,
            run,
            told: 0,
        }
    }

    /// Takes a piece of the log in. True if the image has told something of its cases.
    fn take(&mut self, bytes: &[u8]) -> bool {
        let mut records = false;
        for line in self.decoder.feed(bytes) {
            if line.text.starts_with('@') {
                self.protocol(&line.text);
                records = true;
            } else {
                self.show(&line);
            }
        }
        records
    }

    /// Prints the objects of the cases that are over since the last call. Standard output is
    /// flushed at each line.
    fn tell(&mut self) {
        while let Some(case) = self.run.cases.get(self.told).filter(|case| case.over) {
            if self.setup.json {
                let run = &self.run;
                out(&report::object(case, &run.notes, run.cores, run.seed));
            }
            self.told += 1;
        }
    }

    fn protocol(&mut self, text: &str) {
        let elf = &self.image.elf;
        let place = |pc| match Symbols::open(elf) {
            Ok(symbols) => symbols.place(pc),
            Err(_) => "an unknown place".to_owned(),
        };
        if let Err(why) = self.run.record(text, &place) {
            return self.run.errors.push(format!("the image sent an {why}"));
        }
        if self.run.plan.is_some() && !self.run.matched_nothing() {
            self.console.release();
        }
        self.tell();
        if let (true, Some(case)) = (self.setup.verbose, self.run.running()) {
            let total = self.run.plan.map_or(0, |(cases, _)| cases);
            self.console.step(format!(
                "case {}/{total}: {}",
                self.run.cases.len(),
                case.name
            ));
        }
    }

    fn show(&self, line: &Line) {
        let level = line.level.unwrap_or("print");
        if !self.setup.verbose && !["warn", "error"].contains(&level) {
            return;
        }
        let core = line.core.map_or("?".to_owned(), |core| core.to_string());
        self.console
            .hold(format!("core {core:>3} {level:<5} {}", line.text));
    }
}
