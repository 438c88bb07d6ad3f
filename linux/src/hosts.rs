//! Ranks on other hosts: which ones, and how a program is started there.
//!
//! The launcher runs `COMMAND HOST /bin/sh`, where COMMAND is `ssh` or the user's own. All else
//! goes to the standard input of that shell: the environment with the job's secret, the working
//! directory, the program and its arguments. So nothing of it stands in a command line, where `ps`
//! shows it, and nothing is taken apart by a shell on the way. It is at most what a pipe takes of a
//! writer that does not wait: 64 KiB.
//!
//! The shell's input stays open as long as the launcher lives. When it ends, for the launcher has
//! ended or COMMAND has been killed, the shell kills the rank and its group. The rank itself reads
//! nothing. The shell ends as the rank does: with its status, or 128 + N for signal N.
//!
//! | of the environment | goes along |
//! |---|---|
//! | `FLAGPOST_…` | the job's, and those of the launcher |
//! | `FI_…`, `LD_LIBRARY_PATH` | what libfabric is told, and where it is |
//! | `RUST_BACKTRACE` | how a panic is told |
//!
//! What the launcher takes away from its ranks is taken away there, too: COMMAND may be `srun`,
//! which sets variables of a job of its own.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::net::{IpAddr, Ipv6Addr};
use std::os::unix::ffi::OsStrExt as _;
use std::process::{Command, Stdio};

/// Which host each rank runs on, and how a program is started there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts {
    /// Of each rank; none for this host.
    others: Vec<Option<String>>,
    command: Vec<String>,
}

impl Hosts {
    /// Deals `ranks` ranks out to the hosts of `list`, in blocks: `a,b` evenly, the first ones with
    /// one more if need be; `a:2,b:3` as many as it says. `command` starts a program on another
    /// host: words between blanks, to which the name of the host is added.
    ///
    /// `localhost`, addresses such as 127.0.0.1, and the name of this host are this host, where
    /// ranks are started without `command`.
    ///
    /// ```
    /// let hosts = flagpost_linux::Hosts::new("localhost,b", 3, "ssh").unwrap();
    /// let other = [0, 1, 2].map(|rank| hosts.other(rank));
    /// assert_eq!(other, [None, None, Some("b")]);
    /// ```
    ///
    /// # Errors
    /// A line that says what to change.
    pub fn new(list: &str, ranks: u16, command: &str) -> Result<Self, String> {
        let own = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let command: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
        if command.is_empty() {
            return Err("no command for other hosts is named".to_owned());
        }
        let mut others = Vec::new();
        for (name, count) in deal(list, ranks)? {
            let other = (!is_here(name, own.trim())).then(|| name.to_owned());
            others.extend(std::iter::repeat_n(other, usize::from(count)));
        }
        Ok(Self { others, command })
    }

    /// The host of `rank`; none for this host.
    pub fn other(&self, rank: u16) -> Option<&str> {
        self.others.get(usize::from(rank))?.as_deref()
    }

    /// Whether all ranks are on this host.
    pub fn are_here(&self) -> bool {
        self.others.iter().all(Option::is_none)
    }

    /// If `rank` is on another host, makes `command` the one that starts it there, and returns what
    /// that reads.
    pub(crate) fn send(&self, command: &mut Command, rank: u16) -> Option<Vec<u8>> {
        let host = self.other(rank)?;
        let script = script(command, std::env::vars_os());
        let (first, rest) = self.command.split_first()?;
        *command = Command::new(first);
        command.args(rest).args([host, "/bin/sh"]);
        command.stdin(Stdio::piped());
        Some(script)
    }
}

/// The hosts of `list`, with the number of ranks of each.
fn deal(list: &str, ranks: u16) -> Result<Vec<(&str, u16)>, String> {
    let hosts: Vec<(&str, Option<&str>)> = list.split(',').map(name_and_count).collect();
    // What begins with a dash would be an option.
    let bad =
        |name: &str| name.is_empty() || name.starts_with('-') || name.contains([' ', '[', ']']);
    if let Some((name, _)) = hosts.iter().find(|(name, _)| bad(name)) {
        return Err(format!("{name:?} is no host: write a,b or a:2,b:2"));
    }
    let counts: Option<Vec<&str>> = hosts.iter().map(|(_, count)| *count).collect();
    let counts: Vec<u16> = match counts {
        Some(counts) => {
            let counts: Result<_, _> = counts.iter().map(|count| count.parse()).collect();
            counts.map_err(|_| format!("{list:?} has no number after a colon: write a:2,b:2"))?
        }
        None if hosts.iter().any(|(_, count)| count.is_some()) => {
            return Err(format!(
                "{list:?} says for some hosts only how many ranks they have"
            ));
        }
        None => {
            let (all, ranks) = (hosts.len(), usize::from(ranks));
            let of = |host| ranks / all + usize::from(host < ranks % all);
            (0..all).map(|host| of(host) as u16).collect()
        }
    };
    let sum: u32 = counts.iter().map(|count| u32::from(*count)).sum();
    if sum != u32::from(ranks) {
        return Err(format!("{list:?} are {sum} ranks, and the job has {ranks}"));
    }
    Ok(hosts.iter().map(|(name, _)| *name).zip(counts).collect())
}

/// `a`, `a:2`; `::1`, `[::1]` and `[::1]:2`, since an IPv6 address has colons itself.
fn name_and_count(word: &str) -> (&str, Option<&str>) {
    let is_address = |name: &str| name.parse::<Ipv6Addr>().is_ok();
    let bracketed = { word.strip_prefix('[') }.and_then(|rest| rest.split_once(']'));
    if let Some((name, rest)) = bracketed.filter(|(name, _)| is_address(name)) {
        return match rest {
            "" => (name, None),
            // What has no colon is refused as a number.
            rest => (name, Some(rest.strip_prefix(':').unwrap_or("no colon"))),
        };
    }
    if is_address(word) {
        return (word, None);
    }
    match word.split_once(':') {
        Some((name, count)) => (name, Some(count)),
        None => (word, None),
    }
}

fn is_here(name: &str, own: &str) -> bool {
    let is_loopback = name
        .parse()
        .is_ok_and(|address: IpAddr| address.is_loopback());
    // Names are the same in large and in small letters, and with the dot of the root.
    let name = name.strip_suffix('.').unwrap_or(name);
    [own, "localhost"]
        .iter()
        .any(|here| name.eq_ignore_ascii_case(here))
        || is_loopback
}

/// Shell words that do what `command` says, where the launcher has the environment `inherited`.
fn script(command: &Command, inherited: impl Iterator<Item = (OsString, OsString)>) -> Vec<u8> {
    const ALONG: [&str; 2] = ["LD_LIBRARY_PATH", "RUST_BACKTRACE"];
    let goes_along = |name: &OsStr| {
        let bytes = name.as_bytes();
        bytes.starts_with(b"FLAGPOST_")
            || bytes.starts_with(b"FI_")
            || ALONG.iter().any(|known| name == *known)
    };
    // None: what COMMAND or the host sets is not the rank's.
    let mut variables: BTreeMap<OsString, Option<OsString>> = { inherited }
        .filter(|(name, _)| goes_along(name))
        .map(|(name, value)| (name, Some(value)))
        .collect();
    for (name, value) in command.get_envs() {
        variables.insert(name.to_owned(), value.map(OsStr::to_owned));
    }
    // In braces: all of it is read before any of it is done, and what comes after is for the
    // watcher.
    let mut script = b"{\n".to_vec();
    // Others' names may be what is no name to a shell.
    let is_name = |name: &OsStr| {
        let letter = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        name.as_bytes().iter().all(letter)
    };
    for (name, value) in variables.iter().filter(|(name, _)| is_name(name)) {
        script.extend(match value {
            Some(_) => &b"export "[..],
            None => b"unset ",
        });
        script.extend(name.as_bytes());
        if let Some(value) = value {
            script.push(b'=');
            quote(&mut script, value);
        }
        script.push(b'\n');
    }
    let own = std::env::current_dir().unwrap_or_default();
    let directory = command.get_current_dir().unwrap_or(&own);
    script.extend(b"cd ");
    quote(&mut script, directory.as_os_str());
    script.extend(b" || exit 127\nexec 3<&0 </dev/null\n");
    for word in std::iter::once(command.get_program()).chain(command.get_args()) {
        quote(&mut script, word);
        script.push(b' ');
    }
    script.extend(WATCH);
    script
}

/// The rank is in the background; what watches it ends it when the input ends.
const WATCH: &[u8] = b"3<&- &
rank=$!
{ while read -r _; do :; done; kill -KILL 0; } <&3 >/dev/null 2>&1 &
watcher=$!
exec 3<&-
wait $rank 2>/dev/null
status=$?
kill -KILL $watcher
exit $status
}
";

/// A word as a shell reads it back.
fn quote(script: &mut Vec<u8>, word: &OsStr) {
    script.push(b'\'');
    for byte in word.as_bytes() {
        match byte {
            b'\'' => script.extend(br"'\''"),
            other => script.push(*other),
        }
    }
    script.push(b'\'');
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::process::CommandExt as _;

    use super::*;

    #[test]
    fn ranks_are_dealt_out_in_blocks() {
        let dealt = |list, ranks| deal(list, ranks).map_err(|line| line.to_string());
        assert_eq!(dealt("a,b", 4), Ok(vec![("a", 2), ("b", 2)]));
        assert_eq!(dealt("a,b,c", 5), Ok(vec![("a", 2), ("b", 2), ("c", 1)]));
        assert_eq!(dealt("a,b", 1), Ok(vec![("a", 1), ("b", 0)]));
        assert_eq!(dealt("a:1,b:3", 4), Ok(vec![("a", 1), ("b", 3)]));
        assert_eq!(dealt("a:1,a:1", 2), Ok(vec![("a", 1), ("a", 1)]));
        assert_eq!(
            dealt("::1,fe80::7:2", 4),
            Ok(vec![("::1", 2), ("fe80::7:2", 2)])
        );
        let counted = Ok(vec![("::1", 1), ("b", 3)]);
        assert_eq!(dealt("[::1]:1,b:3", 4), counted);
        assert_eq!(dealt("[::1],b", 2), Ok(vec![("::1", 1), ("b", 1)]));
        for (bad, expected) in [
            ("", "\"\" is no host"),
            ("a,,b", "\"\" is no host"),
            ("-oProxyCommand=x,b", "\"-oProxyCommand=x\" is no host"),
            ("a b", "is no host"),
            ("a:2,b", "for some hosts only"),
            ("a:x,b:2", "no number after a colon"),
            ("a:-1,b:5", "no number after a colon"),
            ("a:2,b:3", "are 5 ranks, and the job has 4"),
            ("a:65535,b:65535", "are 131070 ranks"),
            ("[::1]2,b:2", "no number after a colon"),
            ("[a]:2,b:2", "\"[a]\" is no host"),
        ] {
            let line = dealt(bad, 4).expect_err(bad);
            assert!(line.contains(expected), "{bad}: {line}");
        }
    }

    #[test]
    fn this_host_is_known() {
        let names = ["localhost", "LOCALHOST", "localhost.", "own", "Own"];
        for name in ["127.0.0.1", "127.1.2.3", "::1"].iter().chain(&names) {
            assert!(is_here(name, "own"), "{name}");
        }
        assert!(!is_here("other", "own") && !is_here("", "own") && !is_here("10.0.0.1", "own"));
    }

    /// A shell that does what is sent.
    fn shell(command: &Command, inherited: &[(&str, &str)]) -> std::process::Child {
        let inherited = inherited.iter();
        let words = inherited.map(|(name, value)| (name.into(), value.into()));
        let script = script(command, words);
        let mut shell = Command::new("/bin/sh");
        shell.env_clear().env("PATH", "/usr/bin:/bin");
        shell.env("TAKEN_AWAY", "x");
        shell.process_group(0);
        shell.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = shell.spawn().expect("it runs");
        let input = child.stdin.as_mut().expect("a pipe");
        input.write_all(&script).expect("it is read");
        child
    }

    fn output(mut child: std::process::Child) -> (Option<i32>, String) {
        // The input stays open until the end.
        let mut out = String::new();
        let stdout = child.stdout.as_mut().expect("a pipe");
        stdout.read_to_string(&mut out).expect("text");
        let status = child.wait().expect("it ends");
        (status.code(), out)
    }

    #[test]
    fn words_arrive_as_they_are() {
        let strange = [
            "",
            " two  words ",
            "it's",
            "$HOME `x` \\ \"",
            "a\nb",
            "*",
            "-n",
        ];
        let mut command = Command::new("/bin/sh");
        let words = "printf '<%s>' \"$FLAGPOST_A\" \"$FI_B\" \"$OTHER\" \"$TAKEN_AWAY\" \"$PWD\" \"$@\"; cat";
        command.args(["-c", words, "sh"]).args(strange);
        command.env("FLAGPOST_A", "o'ne\ntwo").current_dir("/usr");
        // The shell has it, as of a job of COMMAND's own.
        command.env_remove("TAKEN_AWAY");
        let inherited = [
            ("FLAGPOST_A", "x"),
            ("FI_B", "b"),
            ("OTHER", "c"),
            ("FI_-", "d"),
        ];
        let (code, out) = output(shell(&command, &inherited));
        let all = ["o'ne\ntwo", "b", "", "", "/usr"]
            .into_iter()
            .chain(strange);
        let all: String = all.map(|word| format!("<{word}>")).collect();
        assert_eq!((code, out), (Some(0), all));
    }

    #[test]
    fn what_cannot_be_run_ends_as_in_a_shell() {
        for command in [
            &Command::new("/dev/null/none"),
            Command::new("true").current_dir("/dev/null/none"),
        ] {
            assert_eq!(output(shell(command, &[])).0, Some(127));
        }
    }
}
