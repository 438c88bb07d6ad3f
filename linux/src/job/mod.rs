//! Which job this process belongs to: read from the environment.
//!
//! | started by | rank, ranks | memory |
//! |---|---|---|
//! | `flagpost-run` | `FLAGPOST_RANK`, `FLAGPOST_RANKS` | the inherited memfd `FLAGPOST_FD` |
//! | Open MPI's `mpiexec` | `OMPI_COMM_WORLD_RANK`, `_SIZE` | [`named`](crate::named) |
//! | `srun` | `SLURM_PROCID`, `SLURM_STEP_NUM_TASKS` | the same |
//! | MPICH's `mpiexec` | `PMI_RANK`, `PMI_SIZE` | the same |
//! | nothing of these | one rank, alone | its own |
//!
//! MPICH's names come before Slurm's where they say another thing, and of several ranks: its
//! `mpiexec` has `srun` start one process per host, whose names its ranks inherit. A part of these
//! names is refused, as what does not tell who the others are.
//!
//! Over a network, the ranks of MPICH's `mpiexec` meet by [`pmi`](crate::pmi), those of Open MPI
//! and Slurm by [`pmix`](crate::pmix). `FLAGPOST_LINK` says
//! what connects ranks that `flagpost-run` has not started: see `Choice`.
//!
//! `FLAGPOST_MEMORY` is the memory per rank in bytes, `FLAGPOST_MODE` the mode, and
//! `FLAGPOST_PROCESSORS` how many processors the ranks have between them; the launcher sets them,
//! the others' users may. Where nothing says the last, a rank counts the processors that it may use
//! itself, and those of all ranks once they have come.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::sync::Arc;

use flagpost_fabric::Apart;
use flagpost_hal_linux::segment::{self, Segment};
use flagpost_hal_linux::{Coherent, Linux, Mode, Noticed, Shape};

use crate::inherited::may_open_its_files;
use crate::named;

mod words;

use words::Words;
pub(crate) use words::{
    ENDS, FABRIC, FD, HUB, MEMORY, MODE, Meets, PROCESSORS, RANK, RANKS, SECRET, mode, of_network,
    of_outer_jobs, variable,
};

/// Memory per rank, unless asked for otherwise. Pages that nobody touches cost nothing.
pub const DEFAULT_MEMORY: u64 = 16 << 20;

/// Why this process cannot join its job, in one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct JoinError(pub(crate) String);

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
    /// Where it is noticed that a rank is gone.
    pub(crate) noticed: Noticed,
}

fn named(job: &str) -> Place {
    Place::Named(name_of(job))
}

/// A job's name that other jobs of this user do not have.
fn name_of(job: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    job.chars().map(allowed).take(100).collect()
}

impl Spec {
    /// Reads the environment through `get`. `starter` is for jobs that bear no name: the process
    /// that has started all of their ranks, by the variables that each rank has values of its own
    /// of.
    pub(crate) fn read(
        get: impl Fn(&str) -> Option<OsString>,
        starter: impl Fn(&[&str]) -> String,
    ) -> Result<Self, JoinError> {
        let words = Words(get);
        let (numbers, place) = words.job(starter)?;
        let (rank, shape) = words.shape(numbers)?;
        let processors = match words.number(PROCESSORS)? {
            Some(number) => usize::try_from(number).unwrap_or(1),
            None => crate::bind::processors(),
        };
        let mode = words.text(MODE)?;
        Ok(Self {
            rank,
            shape,
            place,
            mode: mode.unwrap_or_else(|| Coherent::NAME.to_owned()),
            processors,
        })
    }
}

/// What tells this process's namespace of processes from others. Those may have the same
/// `/dev/shm`, and their processes the same numbers.
fn namespace() -> String {
    let link = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let digits = |c: &char| c.is_ascii_digit();
    link.to_string_lossy().chars().filter(digits).collect()
}

/// The process that has started all ranks, told apart from all others: its number and when it
/// started. It is the nearest ancestor that was not started with this process's values of
/// `variables`: those that were are between, such as a shell.
fn starter(variables: &[&str]) -> String {
    let own = variables.iter().filter_map(|name| {
        let mut word = OsString::from(name);
        word.push("=");
        word.push(std::env::var_os(name)?);
        Some(word)
    });
    let own: Vec<OsString> = own.collect();
    let is_between = |pid: u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
        let has = |word: &OsString| {
            let mut words = environment.split(|byte| *byte == 0);
            words.any(|other| other == word.as_encoded_bytes())
        };
        Some(own.iter().all(has))
    };
    // The first word behind the state.
    let parent = |pid| stat(pid).get(1).and_then(|word| word.parse().ok());
    let pid = starter_of(std::os::unix::process::parent_id(), is_between, parent);
    let words = stat(pid);
    let start = words.get(19).map_or("", String::as_str);
    format!("parent-{pid}-{start}")
}

/// The starter, from this process's parent on. `is_between` is none for a process that does not let
/// itself be looked into, such as one that runs as another user (`sg`, `sudo`): it is between if
/// one above it is.
fn starter_of(
    parent: u32,
    is_between: impl Fn(u32) -> Option<bool>,
    parent_of: impl Fn(u32) -> Option<u32>,
) -> u32 {
    /// More than anybody puts between.
    const MOST: usize = 64;
    let (mut starter, mut pid) = (parent, parent);
    for _ in 0..MOST {
        let (between, above) = (is_between(pid), parent_of(pid));
        let (false, Some(above)) = (between == Some(false), above) else {
            break;
        };
        if between == Some(true) {
            starter = above;
        }
        pid = above;
    }
    starter
}

/// The words of `pid`'s `stat` from its state on: parent, group, session. The name of the program
/// before it, in parentheses, may hold anything.
pub(crate) fn stat(pid: u32) -> Vec<String> {
    words_of(&std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default())
}

fn words_of(stat: &str) -> Vec<String> {
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    rest.split_ascii_whitespace().map(str::to_owned).collect()
}

impl Job {
    /// Joins the job that the environment names.
    pub(crate) fn join() -> Result<Self, JoinError> {
        let spec = Spec::read(|name| std::env::var_os(name), starter)?;
        let failed = |why: std::io::Error| JoinError(format!("cannot join the job: {why}"));
        let (memory, noticed) = match &spec.place {
            Place::Own => {
                named::sweep_leftovers();
                (
                    Segment::of_threads(spec.shape).map_err(failed)?,
                    Noticed::Elsewhere,
                )
            }
            Place::Descriptor(fd) => {
                let memory = inherited(*fd, spec.shape)?;
                end_with_parent().map_err(failed)?;
                (memory, Noticed::Elsewhere)
            }
            Place::Named(name) => {
                may_open_its_files().map_err(JoinError)?;
                let name = format!("{name}-{}", namespace());
                let memory = named::join(&name, spec.shape, spec.rank).map_err(failed)?;
                (memory, Noticed::ByRanks)
            }
        };
        if noticed == Noticed::Elsewhere && memory.arrive(spec.rank).is_none() {
            return Err(JoinError(Apart::Again(spec.rank).to_string()));
        }
        Ok(Self {
            segment: Arc::new(memory),
            rank: spec.rank,
            crowded: usize::from(spec.shape.ranks()) > spec.processors,
            mode: spec.mode,
            noticed,
        })
    }
}

/// All ranks of `machine` have come: their processors are counted, unless the environment says how
/// many they have.
pub(crate) fn count_processors<M: Mode>(machine: &Linux<M>) {
    if variable(PROCESSORS).is_none() {
        machine.count_processors();
    }
}

/// The launcher's child is killed with it; if that is a shell, say, and this process its child,
/// this one is, too.
fn end_with_parent() -> std::io::Result<()> {
    let signal = Some(rustix::process::Signal::KILL);
    Ok(rustix::process::set_parent_process_death_signal(signal)?)
}

/// The launcher's memory. Opened anew, so that no number from the environment is taken for a
/// descriptor of this process.
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
    Segment::map(&file, shape).map_err(|why| match why.kind() {
        std::io::ErrorKind::StorageFull => JoinError(format!("cannot join the job: {why}")),
        _ => failed(why.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The environment that these words are: `NAME=value`, each.
    fn words(words: &str) -> Words<impl Fn(&str) -> Option<OsString>> {
        let words = words.replace("OURS", "FLAGPOST_RANK=1 FLAGPOST_RANKS=4");
        Words(move |name: &str| {
            let mut words = { words.split(' ') }.filter_map(|word| word.split_once('='));
            let found = words.find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        })
    }

    fn read(text: &str) -> Result<Spec, String> {
        let spec = Spec::read(words(text).0, |_| "parent-7-99".to_owned());
        spec.map_err(|error| error.to_string())
    }

    /// An environment, and what it says: rank, ranks, and where the memory is.
    ///
    /// MPICH's processes on each host are a step of Slurm's; its ranks are not. Slurm gives the
    /// same numbers both names. Those of a lone process may be left from before. A batch script's
    /// own shell is no step.
    const STARTERS: &str = r#"
        HOME=x => 0 1 Own
        FLAGPOST_FD=3 OURS => 1 4 Descriptor(3)
        PMI_RANK=2 PMI_SIZE=3 => 2 3 Named("parent-7-99")
        OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 PMIX_NAMESPACE=../etc/x.1 => 0 2 Named("---etc-x-1")
        SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NUM_NODES=1 SLURM_JOB_ID=12 SLURM_STEP_ID=0 => 1 2 Named("slurm-12-0")
        SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 PMI_RANK=1 PMI_SIZE=2 => 1 2 Named("parent-7-99")
        SLURM_PROCID=2 SLURM_STEP_NUM_TASKS=4 PMI_RANK=2 PMI_SIZE=4 => 2 4 Named("slurm--")
        SLURM_PROCID=2 SLURM_STEP_NUM_TASKS=4 PMI_RANK=0 PMI_SIZE=1 => 2 4 Named("slurm--")
        SLURM_PROCID=0 SLURM_NTASKS=8 => 0 1 Own
    "#;

    #[test]
    fn starters_are_told_apart() {
        gives(STARTERS, |words| {
            let spec = Spec::read(words.0, |_| "parent-7-99".to_owned()).expect("a job");
            format!("{} {} {:?}", spec.rank, spec.shape.ranks(), spec.place)
        });
        let sized = read("PMI_RANK=0 PMI_SIZE=2 FLAGPOST_MEMORY=2M").expect("a rank");
        assert_eq!(sized.shape.memory(), 2 << 20);
    }

    #[test]
    fn names_of_programs_are_passed_over() {
        assert_eq!(words_of("7 (a) b) S 1 2 3"), ["S", "1", "2", "3"]);
        assert!(words_of("7 (a").is_empty());
    }

    /// Processes by their numbers: each is the child of the next.
    #[test]
    fn the_starter_is_above_all_that_is_between() {
        let parent_of = |pid: u32| pid.checked_add(1).filter(|pid| *pid < 10);
        for (between, starter) in [
            (&[][..], 2),
            (&[Some(false)], 2),
            (&[Some(true), Some(true), Some(false)], 4),
            // A job in a job: only the inner one's.
            (&[Some(true), Some(false), Some(true)], 3),
            (&[None, Some(true), Some(false)], 4),
            (&[Some(true), None, Some(true), Some(false)], 5),
            // The starter itself is another user's.
            (&[None, Some(false)], 2),
            (&[Some(true), None, None, Some(false)], 3),
            (&[Some(true); 9], 9),
        ] {
            let is_between = |pid| {
                between
                    .get(pid as usize - 2)
                    .copied()
                    .unwrap_or(Some(false))
            };
            assert_eq!(starter_of(2, is_between, parent_of), starter, "{between:?}");
        }
    }

    /// An environment, and a part of the line that refuses it.
    const REFUSED: &str = "
        FLAGPOST_FD=x => FLAGPOST_FD=x is not a number
        FLAGPOST_FD=3 => FLAGPOST_RANK is not set
        FLAGPOST_RANK=0 => FLAGPOST_RANK is set, but FLAGPOST_FD is not
        FLAGPOST_RANKS=2 => FLAGPOST_RANKS is set, but FLAGPOST_FD is not
        PMI_SIZE=2 => PMI_RANK is not set
        PMI_RANK=1 => PMI_SIZE is not set
        PMI_ID=1 => PMI_ID is set, but none of
        OMPI_COMM_WORLD_SIZE=2 => OMPI_COMM_WORLD_RANK is not set
        PMIX_RANK=1 PMIX_NAMESPACE=job => PMIX_RANK is set, but none of
        FLAGPOST_FD=3 FLAGPOST_RANK=4 FLAGPOST_RANKS=4 => no such rank among 4
        FLAGPOST_FD=3 FLAGPOST_RANK=0 FLAGPOST_RANKS=0 => 0 ranks: ask for 1
        FLAGPOST_MEMORY=12 => 12 bytes of memory per rank
        FLAGPOST_MEMORY=1X => FLAGPOST_MEMORY: \"1X\" is no size
        PMI_RANK=0 PMI_SIZE=8 MPI_LOCALNRANKS=4 => several hosts
        SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=4 SLURM_STEP_NUM_NODES=2 => several hosts
        FLAGPOST_LINK=tcp => \"tcp\" is no link
        FLAGPOST_LINK=fabric => the job is over a network
        FLAGPOST_HUB=x OURS => the job is over a network
    ";

    #[test]
    fn what_makes_no_sense_is_one_line_that_says_so() {
        for row in REFUSED.trim().lines() {
            let (text, expected) = row.split_once(" => ").expect("a row");
            let error = read(text.trim()).expect_err(row);
            assert!(error.contains(expected), "{row}: {error}");
            assert_eq!(error.lines().count(), 1, "{row}: {error}");
        }
    }

    /// An environment, and the mode of its job. `PMI` is a rank of MPICH's, `HERE` one with all
    /// ranks on its host, and `APART` one with fewer.
    const MODES: &str = "
        PMI => coherent
        HERE => coherent
        HERE FLAGPOST_LINK=auto => coherent
        HERE FLAGPOST_LINK=shm => coherent
        HERE FLAGPOST_LINK=fabric => fabric
        APART => fabric
        APART FLAGPOST_LINK=auto => fabric
        APART FLAGPOST_LINK=shm => coherent
        APART FLAGPOST_LINK=fabric => fabric
        APART FLAGPOST_MODE=emulated => fabric
        HERE FLAGPOST_MODE=emulated => emulated
        HERE FLAGPOST_LINK=fabric FLAGPOST_MODE=emulated => fabric
        FLAGPOST_LINK=fabric => fabric
        FLAGPOST_LINK=auto => coherent
        FLAGPOST_FD=3 OURS FLAGPOST_LINK=fabric => coherent
        FLAGPOST_HUB=x OURS FLAGPOST_LINK=shm => fabric
        HERE FLAGPOST_LINK=fabric FLAGPOST_FD=3 OURS FLAGPOST_MODE=emulated => fabric
        HERE FLAGPOST_LINK=fabric FLAGPOST_HUB=x OURS FLAGPOST_MODE=emulated => fabric
        FLAGPOST_LINK=tcp => FLAGPOST_LINK: \"tcp\" is no link: write shm, fabric or auto
        FLAGPOST_LINK=Shm => FLAGPOST_LINK: \"Shm\" is no link
        FLAGPOST_LINK= => FLAGPOST_LINK: \"\" is no link
    ";

    /// How ranks meet for a network. Within a rank of `flagpost-run` another launcher was started.
    const MEETINGS: &str = "
        HERE => 1 ByPmi { fd: 7, one_host: true }
        APART => 1 ByPmi { fd: 7, one_host: false }
        HERE FLAGPOST_FD=3 OURS => 1 ByPmi { fd: 7, one_host: true }
        HERE FLAGPOST_HUB=x OURS => 1 ByPmi { fd: 7, one_host: true }
        FLAGPOST_LINK=fabric => 0 Alone
        SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NUM_NODES=2 PMIX_NAMESPACE=job => 1 ByPmix { one_host: false }
        FLAGPOST_HUB=x OURS => 1 AtLauncher
        PMI_RANK=1 PMI_SIZE=4 => PMI_FD is not set
        OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 => speaks PMI-1 or PMIx
        FLAGPOST_FD=3 OURS => start the program with flagpost-run --link fabric
        PMI FLAGPOST_MEMORY=12 => 12 bytes of memory
    ";

    /// Whether each row's environment gives the line behind it.
    fn gives(rows: &str, line: impl Fn(Words<&dyn Fn(&str) -> Option<OsString>>) -> String) {
        for row in rows.trim().lines() {
            let (text, expected) = row.trim().split_once(" => ").expect("a row");
            let text = text.replace("HERE", "PMI MPI_LOCALNRANKS=4");
            let text = text.replace("APART", "PMI MPI_LOCALNRANKS=2");
            let text = format!("{text} ").replace("PMI ", "PMI_RANK=1 PMI_SIZE=4 PMI_FD=7 ");
            let found = line(Words(&words(&text).0));
            assert!(found.contains(expected), "{row}: {found}");
        }
    }

    #[test]
    fn the_link_is_chosen() {
        gives(MODES, |words| {
            words.mode().unwrap_or_else(|error| error.to_string())
        });
        gives(MEETINGS, |words| match words.network() {
            Ok((rank, _, meets)) => format!("{rank} {meets:?}"),
            Err(error) => error.to_string(),
        });
    }

    /// A rank that another launcher has started counts what it may use, not what is there.
    #[test]
    fn processors_are_those_that_a_rank_may_use() {
        let own = crate::bind::allowed();
        let of = |text: &str| read(text).expect("a rank").processors;
        let bound = crate::bind::on(Some(own[0]), || of("PMI_RANK=0 PMI_SIZE=2"));
        assert_eq!(bound, 1, "of {own:?}");
        let told = of("PMI_RANK=0 PMI_SIZE=2 FLAGPOST_PROCESSORS=7");
        assert_eq!(told, 7);
    }

    #[test]
    fn what_is_no_text_is_not_left_out() {
        use std::os::unix::ffi::OsStringExt as _;
        for bad in [FD, MODE, MEMORY, PROCESSORS, "OMPI_COMM_WORLD_RANK"] {
            let get = |name: &str| (name == bad).then(|| OsString::from_vec(vec![0xff]));
            let error = Spec::read(get, |_| String::new()).expect_err("it is no text");
            assert!(error.0.contains(&format!("{bad} is not UTF-8")), "{error}");
        }
    }

    #[test]
    fn a_descriptor_that_is_no_job_is_refused() {
        let shape = Shape::new(2, 1 << 16).expect("it makes sense");
        let error = inherited(0, shape).expect_err("it is standard input");
        assert!(error.0.contains("start the program with flagpost-run"));
    }
}
