//! PMI-1: what MPICH's `mpiexec` tells its ranks, and what they tell each other by it.
//!
//! Each rank inherits a descriptor, `PMI_FD`, on which it writes a line and reads a line, in turn.
//! The launcher keeps words under keys for all ranks. Rank 0 puts one word there: where the ranks
//! of the job meet, and their secret. After a barrier the others get it. That is all that this
//! module does; the ranks' own meeting begins then.
//!
//! | line | answer |
//! |---|---|
//! | `cmd=init pmi_version=1 pmi_subversion=1` | `cmd=response_to_init … rc=0` |
//! | `cmd=get_my_kvsname` | `cmd=my_kvsname kvsname=NAME` |
//! | `cmd=put kvsname=NAME key=KEY value=VALUE` | `cmd=put_result rc=0 …` |
//! | `cmd=barrier_in` | `cmd=barrier_out`, when all ranks have sent it |
//! | `cmd=get kvsname=NAME key=KEY` | `cmd=get_result rc=0 … value=VALUE` |
//! | `cmd=finalize` | `cmd=finalize_ack` |
//!
//! # Bounds
//! No more than a line of 4 KiB is kept of what the launcher says. A wait for it has no end: the
//! launcher is what ends its ranks.
//!
//! # Source
//! The lines were read from what MPICH 4.0's `mpiexec` answers. Slurm's `--mpi=pmi2` is another
//! language.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{BorrowedFd, RawFd};

/// Bytes of a line, its end included.
const MOST: usize = 4096;

/// The key of the job's word.
const KEY: &str = "flagpost";

/// The launcher closes a rank's descriptor after it has finished.
const CLOSED: &str = "the launcher's PMI is closed: a job over a network is run once";

/// The launcher's end of descriptor `fd`.
///
/// # Errors
/// A line that says why there is none.
pub(crate) fn connect(fd: RawFd) -> Result<File, String> {
    // The first three are for people.
    if fd <= 2 {
        return Err(format!("PMI_FD={fd} is no descriptor of a launcher's"));
    }
    // SAFETY: `fd` is not -1. It must be open while it is borrowed, which is for one call. The
    // launcher has opened it before this process began, and this crate never closes it. If the
    // environment names one that is not there, the call fails, and nothing else is done with it.
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    let own = borrowed.try_clone_to_owned();
    own.map(File::from)
        .map_err(|why| format!("PMI_FD={fd}: {why}"))
}

/// The word that rank 0 has for all: it gives `own`, the others none.
///
/// # Errors
/// A line that says what the launcher has not said as it should.
pub(crate) fn exchange<S: Read + Write>(stream: S, own: Option<&str>) -> Result<String, String> {
    let mut client = Client {
        stream,
        come: Vec::new(),
    };
    client.ask("init pmi_version=1 pmi_subversion=1", "response_to_init")?;
    let name = client.ask("get_my_kvsname", "my_kvsname")?;
    let name = value_of(&name, "kvsname")?;
    if let Some(own) = own {
        let put = format!("put kvsname={name} key={KEY} value={own}");
        client.ask(&put, "put_result")?;
    }
    client.ask("barrier_in", "barrier_out")?;
    let found = client.ask(&format!("get kvsname={name} key={KEY}"), "get_result")?;
    let found = value_of(&found, "value")?;
    client.ask("finalize", "finalize_ack")?;
    Ok(found)
}

struct Client<S> {
    stream: S,
    /// What has come of the next line.
    come: Vec<u8>,
}

impl<S: Read + Write> Client<S> {
    /// Sends a command, and returns its answer.
    fn ask(&mut self, command: &str, answer: &str) -> Result<String, String> {
        let line = format!("cmd={command}\n");
        let sent = self.stream.write_all(line.as_bytes());
        sent.map_err(|why| match why.kind() {
            ErrorKind::BrokenPipe => CLOSED.to_owned(),
            _ => format!("the launcher's PMI: {why}"),
        })?;
        let line = self.line()?;
        let is_good = value_of(&line, "cmd")? == answer
            && value_of(&line, "rc").is_ok_and(|code| code == "0") | !line.contains(" rc=");
        if is_good {
            return Ok(line);
        }
        let command = command.split(' ').next().unwrap_or_default();
        let line = told(&line);
        Err(format!("the launcher's PMI answers {line:?} to {command}"))
    }

    fn line(&mut self) -> Result<String, String> {
        let failed = |what: &str| Err(format!("the launcher's PMI: {what}"));
        loop {
            if let Some(end) = self.come.iter().position(|byte| *byte == b'\n') {
                let rest = self.come.split_off(end + 1);
                let mut line = std::mem::replace(&mut self.come, rest);
                line.pop();
                return String::from_utf8(line).or_else(|_| failed("a line that is no text"));
            }
            if self.come.len() >= MOST {
                return failed("a line without end");
            }
            let mut bytes = [0; MOST];
            let room = MOST - self.come.len();
            match self.stream.read(&mut bytes[..room]) {
                Ok(0) => return Err(CLOSED.to_owned()),
                Ok(count) => self.come.extend(&bytes[..count]),
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) => return failed(&why.to_string()),
            }
        }
    }
}

/// The value of `key` among the words of a line.
fn value_of(line: &str, key: &str) -> Result<String, String> {
    let value = |word: &str| Some(word.strip_prefix(key)?.strip_prefix('=')?.to_owned());
    let found = line.split(' ').find_map(value);
    found.ok_or_else(|| format!("the launcher's PMI has no {key} in {:?}", told(line)))
}

/// What an error may show of an answer: its kind and its code. A value may hold the job's secret.
fn told(line: &str) -> String {
    let is_plain = |word: &&str| word.starts_with("cmd=") || word.starts_with("rc=");
    let words: Vec<&str> = line.split(' ').filter(is_plain).collect();
    words.join(" ")
}

#[cfg(test)]
#[path = "../tests/shared/mpiexec.rs"]
mod mpiexec;

#[cfg(test)]
mod tests {
    use std::os::fd::{AsRawFd as _, IntoRawFd as _};
    use std::os::unix::net::UnixStream;
    use std::sync::{Barrier, Mutex};

    use super::mpiexec::serve;
    use super::*;

    /// A rank's exchange with a launcher for itself alone.
    fn alone(
        own: Option<&str>,
        broken: impl Fn(&str, String) -> String + Send,
    ) -> Result<String, String> {
        let (rank, launcher) = UnixStream::pair().expect("sockets");
        std::thread::scope(|scope| {
            scope.spawn(|| serve(launcher, &Mutex::default(), &Barrier::new(1), broken));
            exchange(rank, own)
        })
    }

    #[test]
    fn all_ranks_get_what_the_first_gives() {
        let (words, barrier) = (Mutex::default(), Barrier::new(3));
        std::thread::scope(|scope| {
            let start = |own: Option<&'static str>| {
                let (rank, launcher) = UnixStream::pair().expect("sockets");
                scope.spawn(|| serve(launcher, &words, &barrier, |_, answer| answer));
                scope.spawn(move || exchange(rank, own))
            };
            let ranks = [None, Some("[::1]:7,0123"), None].map(start);
            for rank in ranks {
                let found = rank.join().expect("no panic");
                assert_eq!(found, Ok("[::1]:7,0123".to_owned()));
            }
        });
    }

    #[test]
    fn lines_may_come_in_pieces_and_without_codes() {
        let plain = |_: &str, answer: String| answer.replace(" rc=0", "");
        assert_eq!(alone(Some("x"), plain), Ok("x".to_owned()));
        let (rank, mut launcher) = UnixStream::pair().expect("sockets");
        let mut client = Client {
            stream: rank,
            come: Vec::new(),
        };
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for piece in ["cmd=", "a rc=0 x=1", "\ncmd=b\n"] {
                    launcher.write_all(piece.as_bytes()).expect("it is read");
                    std::thread::sleep(std::time::Duration::from_millis(2));
                }
            });
            assert_eq!(client.line(), Ok("cmd=a rc=0 x=1".to_owned()));
            assert_eq!(client.line(), Ok("cmd=b".to_owned()));
            assert!(client.line().is_err_and(|why| why.contains("closed")));
        });
    }

    #[test]
    fn what_makes_no_sense_is_one_line_that_says_so() {
        let long = format!("{}\n", "x".repeat(2 * MOST));
        let endless = "cmd=get_result value=".to_owned() + &"x".repeat(2 * MOST);
        for (at, answer, expected) in [
            ("cmd=init", "", "closed"),
            ("cmd=init", "\n", "no cmd in"),
            ("cmd=init", "cmd=maxes rc=0\n", "answers \"cmd=maxes rc=0\""),
            ("cmd=init", "cmd=response_to_init rc=-1\n", "rc=-1"),
            ("cmd=init", "cmd=response_to_init rc=\n", "rc=\""),
            ("cmd=init", &long, "a line without end"),
            ("cmd=get_my_kvsname", "cmd=my_kvsname\n", "no kvsname in"),
            ("cmd=put", "cmd=put_result rc=-1 value=SECRET\n", "rc=-1"),
            ("cmd=barrier_in", "cmd=barrier_out rc=1\n", "rc=1"),
            (
                "cmd=get",
                "cmd=get_result rc=0 values=SECRET\n",
                "no value in",
            ),
            ("cmd=get", "cmd=get_result rc=1 value=SECRET\n", "rc=1"),
            ("cmd=get", &endless, "a line without end"),
            ("cmd=finalize", "", "closed"),
        ] {
            let broken = |command: &str, whole: String| match command == at {
                true => answer.to_owned(),
                false => whole,
            };
            let line = alone(Some("SECRET"), broken).expect_err(at);
            assert!(line.contains(expected), "{at} {answer:?}: {line}");
            assert!(!line.contains("SECRET"), "{line}");
            assert_eq!(line.lines().count(), 1, "{line}");
        }
        let (rank, launcher) = UnixStream::pair().expect("sockets");
        drop(launcher);
        assert_eq!(exchange(rank, None), Err(CLOSED.to_owned()));
        // Nobody has put it.
        let line = alone(None, |_, answer| answer).expect_err("not there");
        assert!(line.contains("get_result rc=-1"), "{line}");
        let (rank, mut launcher) = UnixStream::pair().expect("sockets");
        launcher.write_all(b"cmd=\xff\n").expect("room");
        let line = exchange(rank, None).expect_err("no text");
        assert!(line.contains("no text"), "{line}");
    }

    #[test]
    fn descriptors_are_copied() {
        let (rank, mut launcher) = UnixStream::pair().expect("sockets");
        let mut copy = connect(rank.as_raw_fd()).expect("it is open");
        copy.write_all(b"x").expect("room");
        launcher.read_exact(&mut [0]).expect("it has come");
        drop(copy);
        (&rank).write_all(b"y").expect("it is still open");
        for bad in [-1, 0, 2, launcher.into_raw_fd() + 100_000] {
            assert!(connect(bad).is_err(), "{bad}");
        }
    }
}
