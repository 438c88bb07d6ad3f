//! Where ranks run, and how many processors they are told to have, under each form of `--bind`.

use std::process::{Command, ExitCode};

use flagpost_hal::{Relax as _, Topology as _};
use flagpost_linux::{Coherent, Linux};
use rustix::thread::{CpuSet, sched_getaffinity};

use super::memory::namespace;
use super::{PART, limit, ours, words};

/// Says whether ranks are more than their processors.
pub(super) fn rank() -> ExitCode {
    let ran = flagpost_linux::join(|linux: Linux<Coherent>| {
        // All are here while one of them counts.
        let here = linux.meet();
        linux.count_processors();
        println!("rank {}: {}", linux.core().get(), linux.is_crowded());
        (here && linux.meet()).then_some(()).ok_or("a rank is lost")
    });
    ran.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS)
}

/// Shell words that give what follows the time of one processor, as far as its control group says.
const QUOTA: &str = "mount -t tmpfs tmpfs /sys/fs/cgroup || exit 99
    while IFS=: read -r _ _ group; do
        for root in /sys/fs/cgroup /sys/fs/cgroup/cpu; do
            mkdir -p $root$group; touch $root$group/cgroup.controllers
        done
    done < /proc/self/cgroup
    cd /sys/fs/cgroup
    echo 100000 100000 > cpu.max; echo 100000 > cpu/cpu.cfs_quota_us
    echo 100000 > cpu/cpu.cfs_period_us; cd /
    ";

/// Each of two ranks of another launcher has a processor to itself. They share it all the same
/// where they have the time of one.
#[test]
fn ranks_that_are_bound_know_of_a_limit_of_their_time() {
    let all = allowed();
    let (first, last) = (all[0], all[all.len() - 1]);
    let rank =
        |rank: u16, cpu: usize| format!("PMI_RANK={rank} PMI_SIZE=2 taskset -c {cpu} {}", words());
    let job = format!("{} & {} && wait $!", rank(0, first), rank(1, last));
    let told = |mut command: Command, script: String| {
        command.args(["sh", "-c", &script]).env(PART, "processors");
        command.env("FLAGPOST_MEMORY", "64K");
        let ended = limit::output(&mut command);
        assert_eq!(ended.codes, [0], "{ended:?}");
        [true, false].map(|crowded| ended.out.matches(&format!(": {crowded}")).count())
    };
    let most = most();
    let free = told(Command::new("env"), job.clone());
    let are_two = all.len() > 1 && most > 1;
    assert_eq!(free, if are_two { [0, 2] } else { [2, 0] });
    if let Some(namespace) = namespace() {
        assert_eq!(told(namespace, format!("{QUOTA}{job}")), [2, 0]);
    }
}

/// How many processors there is time for: a control group may give less than that of all.
fn most() -> usize {
    let most = std::thread::available_parallelism();
    most.expect("it has some").get()
}

/// The processors of this process, which are those of a launcher that it starts.
fn allowed() -> Vec<usize> {
    let own = sched_getaffinity(None).expect("it has some");
    let all = 0..CpuSet::MAX_CPU;
    all.filter(|cpu| own.is_set(*cpu)).collect()
}

/// Each rank's processors, and how many it is told that all ranks have between them.
fn told(ranks: usize, bind: &[&str]) -> Vec<(String, usize)> {
    const WORDS: &str = "echo $FLAGPOST_RANK \
                         $(sed -n 's/Cpus_allowed_list://p' /proc/self/status) \
                         $FLAGPOST_PROCESSORS";
    let mut command = ours(&["-n", &ranks.to_string()]);
    command.args(bind).args(["sh", "-c", WORDS]);
    let ended = limit::output(&mut command);
    assert_eq!(ended.codes, [0], "{bind:?}: {ended:?}");
    let mut lines: Vec<(usize, String, usize)> = { ended.out.lines() }
        .map(|line| match line.split(' ').collect::<Vec<_>>()[..] {
            [rank, own, all] => (
                rank.parse().expect("a rank"),
                own.to_owned(),
                all.parse().expect("a number"),
            ),
            _ => panic!("{line}"),
        })
        .collect();
    lines.sort_unstable();
    let ordered = lines.iter().map(|line| line.0).eq(0..ranks);
    assert!(ordered, "{bind:?}: {lines:?}");
    { lines.into_iter() }.map(|line| (line.1, line.2)).collect()
}

#[test]
fn ranks_run_where_they_are_told_and_know_how_many_processors_they_have() {
    let all = allowed();
    let most = most();
    let list = std::fs::read_to_string("/proc/self/status").expect("it can be read");
    let list = { list.lines() }.find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let free = (list.expect("a list").trim().to_owned(), most);
    let (first, last) = (all[0], all[all.len() - 1]);
    let both = 1 + usize::from(first != last);
    let on = |cpu: usize, count: usize| (cpu.to_string(), count.min(most));
    for auto in [&[][..], &["--bind", "auto"]] {
        // As many as processors, and one more or less.
        let each: Vec<_> = all.iter().map(|cpu| on(*cpu, all.len())).collect();
        assert_eq!(told(all.len(), auto), each);
        assert_eq!(told(all.len() + 1, auto), vec![free.clone(); all.len() + 1]);
        if all.len() > 1 {
            assert_eq!(told(1, auto)[0], free, "another job may be here");
        }
    }
    assert_eq!(told(2, &["--bind", "none"]), [free.clone(), free]);
    let (one, two) = (first.to_string(), format!("{first},{last}"));
    assert_eq!(told(2, &["--bind", &one]), [on(first, 1), on(first, 1)]);
    let (a, b) = (on(first, both), on(last, both));
    // Round and round; and one that is named twice.
    assert_eq!(
        told(3, &["--bind", &two]),
        [a.clone(), b.clone(), a.clone()]
    );
    let again = format!("{first},{first},{last}");
    assert_eq!(told(3, &["--bind", &again]), [a.clone(), a, b]);
    // Of a list, only what is used counts.
    assert_eq!(told(1, &["--bind", &two]), [on(first, 1)]);
    let range = format!("{first}-{first}");
    assert_eq!(told(2, &["--bind", &range]), [on(first, 1), on(first, 1)]);
    // A user's own number stays.
    let mut command = ours(&["-n", "1", "sh", "-c", "echo $FLAGPOST_PROCESSORS"]);
    command.env("FLAGPOST_PROCESSORS", "77");
    assert_eq!(limit::output(&mut command).out, "77\n");
}
