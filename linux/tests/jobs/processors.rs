//! Where ranks run, and how many processors they are told to have, under each form of `--bind`.

use rustix::thread::{CpuSet, sched_getaffinity};

use super::{ended, ours};

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
    let ended = ended(&[command.output().expect("it runs")]);
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
    let list = std::fs::read_to_string("/proc/self/status").expect("it can be read");
    let list = { list.lines() }.find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let free = (list.expect("a list").trim().to_owned(), all.len());
    let (first, last) = (all[0], all[all.len() - 1]);
    let both = 1 + usize::from(first != last);
    let on = |cpu: usize, count: usize| (cpu.to_string(), count);
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
    assert_eq!(ended(&[command.output().expect("it runs")]).out, "77\n");
}
