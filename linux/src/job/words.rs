//! What the environment says of a job: who has started it, and what is to connect its ranks.

use std::ffi::OsString;

use flagpost_hal_linux::{Coherent, Mode as _, Shape};

use super::{DEFAULT_MEMORY, JoinError, Place, named};
use crate::choice::{self, Choice};

pub(crate) const FD: &str = "FLAGPOST_FD";
pub(crate) const RANKS: &str = "FLAGPOST_RANKS";
pub(crate) use crate::choice::{MEMORY, MODE, RANK};
pub(crate) const PROCESSORS: &str = "FLAGPOST_PROCESSORS";
pub(crate) const HUB: &str = "FLAGPOST_HUB";
pub(crate) const SECRET: &str = "FLAGPOST_SECRET";
pub(crate) const ENDS: &str = "FLAGPOST_ENDS";

/// The name of a network, where that of a mode may stand.
pub(crate) const FABRIC: &str = "fabric";

/// What has started this process.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Starter {
    /// `flagpost-run`, with the descriptor of the memory.
    Ours(u32),
    /// `flagpost-run`, for a network.
    OursOnNetwork,
    Open,
    Mpich,
    Slurm,
    Nobody,
}

/// How the ranks of a job meet for their network.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Meets {
    /// At the hub of `flagpost-run`.
    AtLauncher,
    /// At rank 0's, of which they hear by PMI-1 on this descriptor.
    ByPmi { fd: i32, one_host: bool },
    /// The same, by PMIx.
    ByPmix { one_host: bool },
    /// There is one rank.
    Alone,
}

/// A number from the environment.
fn number(name: &str, text: &str) -> Result<u64, JoinError> {
    let what = || JoinError(format!("{name}={text} is not a number: {INSTEAD}"));
    text.trim().parse().map_err(|_| what())
}

/// How to go on where the environment says half of what it should.
const INSTEAD: &str = "start the program with flagpost-run, or unset it";

/// Rank and ranks of Open MPI, Slurm and MPICH.
const OPEN: [&str; 2] = ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"];
const SLURM: [&str; 2] = ["SLURM_PROCID", "SLURM_STEP_NUM_TASKS"];
const PMI: [&str; 2] = ["PMI_RANK", "PMI_SIZE"];

/// The descriptor on which MPICH's `mpiexec` answers.
pub(super) const PMI_FD: &str = "PMI_FD";

/// What `flagpost-run` tells its ranks.
const OURS: [&str; 11] = [
    FD,
    RANK,
    RANKS,
    MEMORY,
    MODE,
    PROCESSORS,
    HUB,
    SECRET,
    ENDS,
    choice::PROVIDER,
    choice::HELPER,
];

/// What others tell theirs.
const THEIRS: [&str; 10] = [
    OPEN[0],
    OPEN[1],
    SLURM[0],
    SLURM[1],
    PMI[0],
    PMI[1],
    PMI_FD,
    "PMI_ID",
    "PMIX_RANK",
    "PMIX_NAMESPACE",
];

/// What says where the ranks of a job meet that the launcher itself is a rank of: no rank of the
/// new one hears it.
pub(crate) fn of_outer_jobs() -> impl Iterator<Item = &'static str> {
    let ours = [FD, HUB, SECRET, ENDS];
    ours.into_iter().chain(THEIRS)
}

/// The environment.
pub(super) struct Words<G>(pub(super) G);

impl<G: Fn(&str) -> Option<OsString>> Words<G> {
    fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }

    /// What is said of this process's own job. Ranks of `flagpost-run` hear nothing of others'
    /// launchers: where there is both, one of those was started by a rank.
    pub(super) fn value(&self, name: &str) -> Option<OsString> {
        let is = |name: &&str| (self.0)(name).is_some();
        let is_outer = || [FD, HUB].iter().any(is) && THEIRS.iter().any(is);
        (self.0)(name).filter(|_| !(OURS.contains(&name) && is_outer()))
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<String>, JoinError> {
        let bad = |_| JoinError(format!("{name} is not UTF-8: {INSTEAD}"));
        self.value(name)
            .map(OsString::into_string)
            .transpose()
            .map_err(bad)
    }

    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, JoinError> {
        let text = self.text(name)?;
        text.map(|text| number(name, &text)).transpose()
    }

    fn need(&self, name: &str) -> Result<u64, JoinError> {
        let missing = || JoinError(format!("{name} is not set: start the program again"));
        self.number(name)?.ok_or_else(missing)
    }

    /// Rank and ranks.
    fn pair(&self, [rank, ranks]: [&str; 2]) -> Result<(u64, u64), JoinError> {
        Ok((self.need(rank)?, self.need(ranks)?))
    }

    /// What has started this process, with rank and ranks as that says.
    fn starter(&self) -> Result<(Starter, (u64, u64)), JoinError> {
        if let Some(fd) = self.number(FD)? {
            let fd = u32::try_from(fd).unwrap_or(u32::MAX);
            return Ok((Starter::Ours(fd), self.pair([RANK, RANKS])?));
        }
        if self.has(HUB) {
            return Ok((Starter::OursOnNetwork, self.pair([RANK, RANKS])?));
        }
        if let Some(name) = [RANK, RANKS].into_iter().find(|name| self.has(name)) {
            return Err(JoinError(format!(
                "{name} is set, but {FD} is not: {INSTEAD}"
            )));
        }
        let some = |names: [&str; 2]| names.iter().any(|name| self.has(name));
        let all = |names: [&str; 2]| names.iter().all(|name| self.has(name));
        if some(OPEN) {
            return Ok((Starter::Open, self.pair(OPEN)?));
        }
        // A batch script's own shell has the first name only: it is no step.
        let slurm = all(SLURM).then(|| self.pair(SLURM)).transpose()?;
        let is_pmi = if slurm.is_some() { all(PMI) } else { some(PMI) };
        let pmi = is_pmi.then(|| self.pair(PMI)).transpose()?;
        let pmi = pmi.filter(|pmi| slurm.is_none_or(|slurm| pmi.1 > 1 && *pmi != slurm));
        if let Some(numbers) = pmi {
            return Ok((Starter::Mpich, numbers));
        }
        if let Some(numbers) = slurm {
            return Ok((Starter::Slurm, numbers));
        }
        // Of a job, but how large a one is nowhere to be read without its library.
        match ["PMIX_RANK", "PMI_ID"]
            .into_iter()
            .find(|name| self.has(name))
        {
            Some(name) => Err(JoinError(format!(
                "{name} is set, but none of {}, {} and {} is, the number of ranks: {INSTEAD}",
                OPEN[1], SLURM[1], PMI[1]
            ))),
            None => Ok((Starter::Nobody, (0, 1))),
        }
    }

    /// Whether all of `ranks` ranks are on one host, as far as their starter says.
    fn is_one_host(&self, starter: Starter, ranks: u64) -> Result<bool, JoinError> {
        let are_all = |local: Option<u64>| local.is_none_or(|local| local == ranks);
        Ok(match starter {
            Starter::Open => are_all(self.number("OMPI_COMM_WORLD_LOCAL_SIZE")?),
            Starter::Mpich => are_all(self.number("MPI_LOCALNRANKS")?),
            Starter::Slurm => {
                let nodes = self.number("SLURM_STEP_NUM_NODES")?;
                nodes.is_none_or(|nodes| nodes <= 1)
            }
            Starter::Ours(_) | Starter::OursOnNetwork | Starter::Nobody => true,
        })
    }

    /// What the user wants to connect the ranks, where no launcher of ours has chosen.
    fn choice(&self) -> Result<Choice, JoinError> {
        let word = (self.0)(choice::VARIABLE);
        Choice::of_word(word.as_deref()).map_err(JoinError)
    }

    /// Rank, ranks, and where their memory is; `starter` as for [`Spec::read`].
    pub(super) fn job(
        &self,
        starter: impl Fn(&[&str]) -> String,
    ) -> Result<((u64, u64), Place), JoinError> {
        let (started_by, numbers) = self.starter()?;
        let is_ours = matches!(started_by, Starter::Ours(_));
        let is_network =
            started_by == Starter::OursOnNetwork || !is_ours && self.choice()? == Choice::Fabric;
        if is_network {
            return Err(JoinError(
                "the job is over a network, and the program is for shared memory: start it \
                 without --link fabric and FLAGPOST_LINK, or write it for all links \
                 (flagpost_linux::run_in_mode)"
                    .to_owned(),
            ));
        }
        if !self.is_one_host(started_by, numbers.1)? {
            return Err(JoinError(
                "the job's ranks are on several hosts, and shared memory reaches one: start it on \
                 one host, or write it for all links (flagpost_linux::run_in_mode)"
                    .to_owned(),
            ));
        }
        let place = match started_by {
            Starter::Ours(fd) => Place::Descriptor(fd),
            Starter::Open => {
                let name = self.text("PMIX_NAMESPACE")?;
                named(&name.unwrap_or_else(|| starter(&OPEN)))
            }
            Starter::Mpich => {
                let [rank, ranks] = PMI;
                named(&starter(&[rank, ranks, PMI_FD]))
            }
            Starter::Slurm => {
                let part = |name| self.text(name).map(Option::unwrap_or_default);
                let (job, step) = (part("SLURM_JOB_ID")?, part("SLURM_STEP_ID")?);
                named(&format!("slurm-{job}-{step}"))
            }
            Starter::OursOnNetwork | Starter::Nobody => Place::Own,
        };
        Ok((numbers, place))
    }

    /// Rank, shape, and how the ranks meet for their network.
    pub(super) fn network(&self) -> Result<(u16, Shape, Meets), JoinError> {
        let (started_by, numbers) = self.starter()?;
        let meets = match started_by {
            Starter::OursOnNetwork => Meets::AtLauncher,
            Starter::Nobody => Meets::Alone,
            Starter::Mpich => Meets::ByPmi {
                fd: i32::try_from(self.need(PMI_FD)?).unwrap_or(-1),
                one_host: self.is_one_host(started_by, numbers.1)?,
            },
            Starter::Open | Starter::Slurm if self.has("PMIX_NAMESPACE") => Meets::ByPmix {
                one_host: self.is_one_host(started_by, numbers.1)?,
            },
            Starter::Ours(_) | Starter::Open | Starter::Slurm => {
                return Err(JoinError(
                    "for a network, start the program with flagpost-run --link fabric, or with a \
                     launcher that speaks PMI-1 or PMIx (srun --mpi=pmix)"
                        .to_owned(),
                ));
            }
        };
        let (rank, shape) = self.shape(numbers)?;
        Ok((rank, shape, meets))
    }

    pub(super) fn shape(&self, (rank, ranks): (u64, u64)) -> Result<(u16, Shape), JoinError> {
        let memory = self.text(MEMORY)?.map(|text| choice::size(&text));
        let bad = |why| JoinError(format!("{MEMORY}: {why}"));
        let memory = memory.transpose().map_err(bad)?.unwrap_or(DEFAULT_MEMORY);
        let number = u32::try_from(ranks).unwrap_or(u32::MAX);
        let shape = Shape::new(number, memory).map_err(|bad| JoinError(bad.to_string()))?;
        let rank = u16::try_from(rank).ok();
        let rank = rank.filter(|rank| *rank < shape.ranks());
        let none = || JoinError(format!("there is no such rank among {ranks}"));
        Ok((rank.ok_or_else(none)?, shape))
    }

    /// The name of the mode, or of the network.
    pub(super) fn mode(&self) -> Result<String, JoinError> {
        let (started_by, numbers) = self.starter()?;
        let is_network = match started_by {
            Starter::Ours(_) => false,
            Starter::OursOnNetwork => true,
            other => self
                .choice()?
                .is_network(self.is_one_host(other, numbers.1)?),
        };
        // Over a network, the mode of memory is not looked at.
        let mode = self.text(MODE)?.filter(|_| !is_network);
        let default = if is_network { FABRIC } else { Coherent::NAME };
        Ok(mode.unwrap_or_else(|| default.to_owned()))
    }
}

/// What the environment says of this process's own job.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    Words(|name: &str| std::env::var_os(name)).value(name)
}

/// The mode of the job that this process was started for, or the network's name. Where the
/// environment makes no sense, the first mode: who joins is told.
pub(crate) fn mode() -> String {
    let mode = Words(|name: &str| std::env::var_os(name)).mode();
    mode.unwrap_or_else(|_| Coherent::NAME.to_owned())
}

/// Rank, shape, and how the ranks meet for their network.
pub(crate) fn of_network() -> Result<(u16, Shape, Meets), JoinError> {
    Words(|name: &str| std::env::var_os(name)).network()
}
