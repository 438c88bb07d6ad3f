//! Which job this process belongs to: read from the environment.
//!
//! | started by | rank, ranks | memory |
//! |---|---|---|
//! | `flagpost-run` | `FLAGPOST_RANK`, `FLAGPOST_RANKS` | the memfd that it inherited as `FLAGPOST_FD` |
//! | Open MPI's `mpiexec` | `OMPI_COMM_WORLD_RANK`, `_SIZE` | a named segment, see [`named`](crate::named) |
//! | `srun` | `SLURM_PROCID`, `SLURM_STEP_NUM_TASKS` | the same |
//! | MPICH's `mpiexec` | `PMI_RANK`, `PMI_SIZE` | the same |
//! | nothing of these | one rank, alone | its own |
//!
//! `FLAGPOST_MEMORY` is the memory per rank in bytes, `FLAGPOST_MODE` the mode, and `FLAGPOST_PROCESSORS` how many processors the ranks
//! have between them; the launcher sets them, the others' users may.

use std::fmt;
use std::fs::OpenOptions;
use std::sync::Arc;

use crate::Coherent;
use crate::machine::Mode;
use crate::named;
use crate::segment::{self, Segment};
use crate::shape::Shape;

/// Memory per rank, unless asked for otherwise. Pages that nobody touches cost nothing.
pub const DEFAULT_MEMORY: u64 = 16 << 20;

pub(crate) const FD: &str = "FLAGPOST_FD";
pub(crate) const RANK: &str = "FLAGPOST_RANK";
pub(crate) const RANKS: &str = "FLAGPOST_RANKS";
pub(crate) const MEMORY: &str = "FLAGPOST_MEMORY";
pub(crate) const MODE: &str = "FLAGPOST_MODE";
pub(crate) const PROCESSORS: &str = "FLAGPOST_PROCESSORS";

/// Why this process cannot join its job, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinError(pub(crate) String);

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for JoinError {}

/// Where the memory of the job is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// An inherited descriptor.
    Descriptor(u32),
    /// A segment of this name.
    Named(String),
    /// Nowhere yet: a job of one.
    Own,
}

/// What the environment says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spec {
    pub(crate) rank: u16,
    pub(crate) shape: Shape,
    pub(crate) place: Place,
    pub(crate) mode: String,
    pub(crate) processors: usize,
}

/// A rank's part in its job.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) segment: Arc<Segment>,
    pub(crate) rank: u16,
    pub(crate) crowded: bool,
    pub(crate) mode: String,
    /// Whether ranks have to notice by themselves that one is gone.
    pub(crate) alone: bool,
}

/// A number from the environment.
fn number(name: &str, text: &str) -> Result<u64, JoinError> {
    let what = || {
        JoinError(format!(
            "{name}={text} is not a number: start the program with flagpost-run, or unset it"
        ))
    };
    text.trim().parse().map_err(|_| what())
}

/// A job's name that other jobs of this user do not have.
fn name_of(job: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    job.chars().map(allowed).take(100).collect()
}

impl Spec {
    /// Reads the environment through `get`; `parent` tells apart jobs that bear no name.
    pub(crate) fn read(
        get: impl Fn(&str) -> Option<String>,
        parent: impl Fn() -> String,
    ) -> Result<Self, JoinError> {
        let need = |name: &str| {
            let missing = || JoinError(format!("{name} is not set: start the program again"));
            get(name).ok_or_else(missing)
        };
        let pair = |rank: &str, ranks: &str| {
            Ok((number(rank, &need(rank)?)?, number(ranks, &need(ranks)?)?))
        };
        let ((rank, ranks), place) = if let Some(fd) = get(FD) {
            let fd = u32::try_from(number(FD, &fd)?).unwrap_or(u32::MAX);
            (pair(RANK, RANKS)?, Place::Descriptor(fd))
        } else if get("OMPI_COMM_WORLD_RANK").is_some() {
            let numbers = pair("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")?;
            if let Some(local) = get("OMPI_COMM_WORLD_LOCAL_SIZE") {
                one_host(number("OMPI_COMM_WORLD_LOCAL_SIZE", &local)?, numbers.1)?;
            }
            let job = get("PMIX_NAMESPACE").unwrap_or_else(&parent);
            (numbers, Place::Named(name_of(&job)))
        } else if get("SLURM_PROCID").is_some() && get("SLURM_STEP_NUM_TASKS").is_some() {
            let numbers = pair("SLURM_PROCID", "SLURM_STEP_NUM_TASKS")?;
            if let Some(nodes) = get("SLURM_STEP_NUM_NODES") {
                one_host(2 - number("SLURM_STEP_NUM_NODES", &nodes)?.min(2), 1)?;
            }
            let part = |name| get(name).unwrap_or_default();
            let job = format!("slurm-{}-{}", part("SLURM_JOB_ID"), part("SLURM_STEP_ID"));
            (numbers, Place::Named(name_of(&job)))
        } else if get("PMI_RANK").is_some() {
            let numbers = pair("PMI_RANK", "PMI_SIZE")?;
            if let Some(local) = get("MPI_LOCALNRANKS") {
                one_host(number("MPI_LOCALNRANKS", &local)?, numbers.1)?;
            }
            (numbers, Place::Named(name_of(&parent())))
        } else {
            ((0, 1), Place::Own)
        };
        let memory = match get(MEMORY) {
            Some(text) => number(MEMORY, &text)?,
            None => DEFAULT_MEMORY,
        };
        let ranks = u32::try_from(ranks).unwrap_or(u32::MAX);
        let shape = Shape::new(ranks, memory).map_err(|bad| JoinError(bad.to_string()))?;
        let rank = u16::try_from(rank).ok();
        let rank = rank.filter(|rank| *rank < shape.ranks());
        let processors = match get(PROCESSORS) {
            Some(text) => usize::try_from(number(PROCESSORS, &text)?).unwrap_or(1),
            None => online(),
        };
        Ok(Self {
            rank: rank.ok_or_else(|| JoinError(format!("there is no such rank among {ranks}")))?,
            shape,
            place,
            mode: get(MODE).unwrap_or_else(|| Coherent::NAME.to_owned()),
            processors,
        })
    }
}

fn one_host(local: u64, all: u64) -> Result<(), JoinError> {
    if local == all {
        return Ok(());
    }
    Err(JoinError(
        "the job's ranks are on several hosts, and shared memory reaches one: start it on one host"
            .to_owned(),
    ))
}

/// How many processors are online.
fn online() -> usize {
    let list = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    crate::bind::parse_list(list.trim()).map_or(1, |list| list.len())
}

/// What tells this parent process from all others: its number and when it started.
fn parent() -> String {
    let pid = std::os::unix::process::parent_id();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name of the program, in parentheses, may hold anything; the start is the 20th word behind it.
    let start = stat.rsplit_once(')').map_or("", |(_, rest)| {
        rest.split_ascii_whitespace().nth(19).unwrap_or_default()
    });
    format!("parent-{pid}-{start}")
}

impl Job {
    /// Joins the job that the environment names.
    pub(crate) fn join() -> Result<Self, JoinError> {
        let spec = Spec::read(|name| std::env::var(name).ok(), parent)?;
        let failed = |why: std::io::Error| JoinError(format!("cannot join the job: {why}"));
        let (memory, alone) = match &spec.place {
            Place::Own => (Segment::of_threads(spec.shape).map_err(failed)?, false),
            Place::Descriptor(fd) => (inherited(*fd, spec.shape)?, false),
            Place::Named(name) => {
                let memory = named::join(name, spec.shape, spec.rank).map_err(failed)?;
                (memory, true)
            }
        };
        if !alone {
            memory.arrive(spec.rank);
        }
        Ok(Self {
            segment: Arc::new(memory),
            rank: spec.rank,
            crowded: usize::from(spec.shape.ranks()) > spec.processors,
            mode: spec.mode,
            alone,
        })
    }
}

/// The launcher's memory. Opened anew, so that no number from the environment is taken for a descriptor of this process.
fn inherited(fd: u32, shape: Shape) -> Result<Segment, JoinError> {
    let failed = |why: String| {
        JoinError(format!(
            "descriptor {fd} is not the memory of a job ({why}): start the program with flagpost-run"
        ))
    };
    let path = format!("/proc/self/fd/{fd}");
    let file = OpenOptions::new().read(true).write(true).open(path);
    let file = file.map_err(|why| failed(why.to_string()))?;
    if !segment::is_job(&file) {
        return Err(failed("others could change its size".to_owned()));
    }
    Segment::map(&file, shape).map_err(|why| failed(why.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[(&str, &str)]) -> Result<Spec, String> {
        let get = |name: &str| {
            let found = words.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Spec::read(get, || "parent-7-99".to_owned()).map_err(|error| error.to_string())
    }

    #[test]
    fn starters_are_told_apart() {
        let alone = read(&[]).expect("alone");
        assert_eq!((alone.rank, alone.shape.ranks()), (0, 1));
        assert_eq!(alone.place, Place::Own);
        let ours = read(&[(FD, "3"), (RANK, "1"), (RANKS, "4"), (MEMORY, "65536")]);
        let ours = ours.expect("ours");
        assert_eq!((ours.rank, ours.shape.memory()), (1, 65_536));
        assert_eq!(ours.place, Place::Descriptor(3));
        let hydra = read(&[("PMI_RANK", "2"), ("PMI_SIZE", "3")]).expect("hydra");
        assert_eq!((hydra.rank, hydra.shape.ranks()), (2, 3));
        assert_eq!(hydra.place, Place::Named("parent-7-99".to_owned()));
        let open = read(&[
            ("OMPI_COMM_WORLD_RANK", "0"),
            ("OMPI_COMM_WORLD_SIZE", "2"),
            ("PMIX_NAMESPACE", "../etc/x.1"),
        ]);
        let place = open.expect("open").place;
        assert_eq!(place, Place::Named("---etc-x-1".to_owned()));
        let slurm = read(&[
            ("SLURM_PROCID", "1"),
            ("SLURM_STEP_NUM_TASKS", "2"),
            ("SLURM_STEP_NUM_NODES", "1"),
            ("SLURM_JOB_ID", "12"),
            ("SLURM_STEP_ID", "0"),
        ]);
        let place = slurm.expect("slurm").place;
        assert_eq!(place, Place::Named("slurm-12-0".to_owned()));
        // A batch script's own shell is no step.
        let batch = read(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "8")]).expect("batch");
        assert_eq!(batch.place, Place::Own);
    }

    #[test]
    fn what_makes_no_sense_is_one_line_that_says_so() {
        for (words, expected) in [
            (&[(FD, "x")][..], "FLAGPOST_FD=x is not a number"),
            (&[(FD, "3")], "FLAGPOST_RANK is not set"),
            (
                &[(FD, "3"), (RANK, "4"), (RANKS, "4")],
                "no such rank among 4",
            ),
            (
                &[(FD, "3"), (RANK, "0"), (RANKS, "0")],
                "0 ranks: ask for 1",
            ),
            (&[(MEMORY, "12")], "12 bytes of memory per rank"),
            (
                &[
                    ("PMI_RANK", "0"),
                    ("PMI_SIZE", "8"),
                    ("MPI_LOCALNRANKS", "4"),
                ],
                "several hosts",
            ),
            (
                &[
                    ("SLURM_PROCID", "0"),
                    ("SLURM_STEP_NUM_TASKS", "4"),
                    ("SLURM_STEP_NUM_NODES", "2"),
                ],
                "several hosts",
            ),
        ] {
            let error = read(words).expect_err("it makes no sense");
            assert!(error.contains(expected), "{error}");
            assert_eq!(error.lines().count(), 1);
        }
    }

    #[test]
    fn a_descriptor_that_is_no_job_is_refused() {
        let shape = Shape::new(2, 1 << 16).expect("it makes sense");
        let error = inherited(0, shape).expect_err("it is standard input");
        assert!(error.0.contains("start the program with flagpost-run"));
    }
}
