//! Calls that are forbidden, and ranks that die, as the launcher sees them.

use std::cell::RefCell;
use std::io::Read as _;

use super::*;
use crate::ended::ended;

/// Forbids a system call to this thread, and to what it starts, as a container may: if its
/// argument of this number is this.
fn forbid(call: libc::c_long, (number, value): (u32, u32)) {
    let instruction = |code, k, (jt, jf)| libc::sock_filter { code, jt, jf, k };
    let (load, equal, end) = (0x20, 0x15, 0x06);
    let mut filter = [
        // The number of the call stands first, its arguments of 8 bytes from 16 on.
        instruction(load, 0, (0, 0)),
        instruction(equal, call as u32, (0, 3)),
        instruction(load, 16 + 8 * number, (0, 0)),
        instruction(equal, value, (0, 1)),
        instruction(end, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32, (0, 0)),
        instruction(end, libc::SECCOMP_RET_ALLOW, (0, 0)),
    ];
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    rustix::thread::set_no_new_privs(true).expect("it may give them up");
    // SAFETY: the filter and its head live during the call, which copies both. From then on one
    // call fails in this thread, as it may anyway.
    let done = unsafe {
        let (set, filter) = (libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER);
        libc::prctl(set, libc::c_ulong::from(filter), &raw const program)
    };
    assert_eq!(done, 0, "{}", io::Error::last_os_error());
}

/// A job of one, where a call is forbidden.
fn launch_without(call: libc::c_long, argument: (u32, u32)) -> io::Result<Vec<Ended>> {
    let launch = move || {
        forbid(call, argument);
        let job = Job {
            shape: Shape::new(1, 1 << 16).expect("it makes sense"),
            mode: "coherent".to_owned(),
            bind: Bind::None,
            directory: None,
            grace: GRACE,
        };
        launch(&job, &mut |_| Command::new("true"), &mut |_| ())
    };
    std::thread::spawn(launch).join().expect("no panic")
}

#[test]
fn calls_that_a_container_forbids_are_named() {
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    for (call, argument, name) in [
        (
            libc::SYS_memfd_create,
            (1, libc::MFD_ALLOW_SEALING),
            "memfd_create",
        ),
        (libc::SYS_prctl, (0, libc::PR_SET_PDEATHSIG as u32), "prctl"),
        (libc::SYS_waitid, (3, options as u32), "waitid"),
        (
            libc::SYS_ftruncate,
            (
                1,
                Shape::new(1, 1 << 16).expect("it makes sense").total() as u32,
            ),
            "ftruncate",
        ),
        (
            libc::SYS_fcntl,
            (1, libc::F_ADD_SEALS as u32),
            "fcntl for seals",
        ),
    ] {
        let line = launch_without(call, argument).expect_err(name).to_string();
        let told = format!("the system refuses {name} (");
        assert!(line.starts_with(&told), "{line}");
        assert!(
            line.ends_with("filter of system calls must permit it"),
            "{line}"
        );
    }
    // What is not used is not asked for.
    let unused = launch_without(libc::SYS_prctl, (0, libc::PR_GET_PDEATHSIG as u32));
    assert!(unused.expect("it starts").iter().all(Ended::is_well));
}

/// A job of three, whose ranks have joined; those that are marked as lost.
struct Three(RefCell<Vec<u16>>);

impl Register for Three {
    fn ranks(&self) -> u16 {
        3
    }

    fn state_of(&self, _rank: u16) -> State {
        State::Here
    }

    fn mark_lost(&self, rank: u16) {
        self.0.borrow_mut().push(rank);
    }

    fn first_lost(&self) -> Option<u16> {
        self.0.borrow().first().copied()
    }

    fn ask(&self) {}

    fn has_answered(&self, _: u16) -> bool {
        true
    }
}

/// The time of those that are left is counted from the first death.
#[test]
fn a_second_death_gives_the_others_no_more_time() {
    let register = Three(RefCell::default());
    let mut watch = watch(&register, Keeper::start(None));
    let mut deadlines = Vec::new();
    for (rank, status, unfinished) in [(0, 0, false), (1, 9, true), (2, 9, true)] {
        let told = Instant::now();
        watch.tell(Ended {
            unfinished,
            ..ended(rank, status)
        });
        deadlines.push(watch.deadline);
        while Instant::now() == told {}
    }
    assert!(deadlines[0].is_none() && deadlines[1].is_some());
    assert_eq!(deadlines[1], deadlines[2]);
    assert_eq!(*register.0.borrow(), [1, 2]);
}

/// Its number may be another process's from then on.
#[test]
fn the_keeper_forgets_a_rank_that_has_ended() {
    let (keeper, mut heard) = Keeper::heard();
    let register = Three(RefCell::default());
    let child = Command::new("true").spawn().expect("it runs");
    let group = Group::new(child, false);
    let forgotten = format!("- {}\n", group.number());
    let process = Process {
        rank: 0,
        group,
        killed: false,
    };
    let mut watch = Watch {
        processes: vec![process],
        ..watch(&register, keeper)
    };
    while !watch.processes.is_empty() {
        watch.reap().expect("it is mine");
    }
    drop(watch);
    let mut told = String::new();
    heard.read_to_string(&mut told).expect("text");
    assert_eq!(told, forgotten + ".\n");
}

/// Over ranks that are not there yet.
fn watch<'a>(register: &'a Three, keeper: Keeper) -> Watch<'a> {
    Watch {
        register,
        processes: Vec::new(),
        keeper,
        signals: None,
        seen: Box::leak(Box::new(|_: &Ended| ())),
        ended: Vec::new(),
        strangers: Vec::new(),
        followers: Vec::new(),
        starved: 0,
        grace: GRACE,
        deadline: None,
    }
}
