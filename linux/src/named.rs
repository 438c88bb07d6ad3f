//! Memory with a name, for jobs that another launcher has started: no descriptor can be inherited
//! there.
//!
//! # Steps
//! * Sweep: each rank removes segments of this user that no process has locked. They are left over
//!   from jobs that were killed.
//! * Open: each rank makes or opens `flagpost-<user>-<job>` in `/dev/shm`, mode 0600.
//! * Check: each rank checks that the segment is this user's, and that no other user may open it.
//! * Lock: each rank takes a shared lock; then the name must still mean this file.
//! * Size: each rank grows the segment to its size, which is the same for all.
//! * Reserve: each rank takes room for the control words and its own region, or says what is
//!   missing.
//! * Map: each rank maps the segment, and says that it has arrived; or that it is lost, if there
//!   was no room.
//! * Unlink: the last rank to arrive removes the name. From here on the memory is gone with the
//!   last process.
//!
//! A job that is killed before its last rank has arrived leaves its segment behind, until the next
//! start of any job of this user, in whatever way: `flagpost-run` sweeps as well, and a job of one.
//! The lock (`flock`) is the processes' and ends with them. A sweeper holds it alone while it
//! removes. Between opening a file and locking it the name may come to mean another one: sweepers,
//! and ranks that have just made a segment, look at the name once they have the lock.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use flagpost_fabric::Apart;
use flagpost_hal_linux::segment::{self, Segment};
use flagpost_hal_linux::{Shape, State};

/// Where segments are: memory, on every Linux.
const DIRECTORY: &str = "/dev/shm";

/// How names are opened that may be others' links or pipes.
const SAFELY: i32 = OFlags::NOFOLLOW
    .union(OFlags::NONBLOCK)
    .bits()
    .cast_signed();

/// How long a sweeper may take to remove a segment: it may have to wait for a processor.
const PATIENCE: Duration = Duration::from_secs(60);

fn prefix() -> String {
    format!("flagpost-{}-", rustix::process::geteuid().as_raw())
}

/// Removes what jobs have left behind that were killed. It is for those after them: nobody fails if
/// it cannot be done.
pub(crate) fn sweep_leftovers() {
    let _ = sweep(Path::new(DIRECTORY));
}

/// Joins the job `name` as `rank`. All ranks give the same shape.
pub(crate) fn join(name: &str, shape: Shape, rank: u16) -> io::Result<Segment> {
    join_in(Path::new(DIRECTORY), name, shape, rank)
}

fn join_in(directory: &Path, name: &str, shape: Shape, rank: u16) -> io::Result<Segment> {
    let _ = sweep(directory);
    let path = directory.join(format!("{}{name}", prefix()));
    let file = open(&path)?;
    segment::check_limit(shape)?;
    if file.metadata()?.len() < shape.total() as u64 {
        file.set_len(shape.total() as u64)?;
    }
    let no_room = |why: io::Error| {
        let what = format!("no memory in {}: {why}", directory.display());
        io::Error::new(why.kind(), what)
    };
    let (control, own) = (0..shape.control() as u64, shape.region_of(rank));
    segment::reserve(&file, control, shape).map_err(no_room)?;
    let reserved = segment::reserve(&file, own, shape).map_err(no_room);
    let segment = Segment::map(&file, shape)?;
    if reserved.is_err() {
        segment.mark_lost(rank);
    }
    reserved?;
    match segment.arrive(rank) {
        Some(arrived) if arrived == u32::from(shape.ranks()) => std::fs::remove_file(&path)?,
        Some(_) => {}
        None => return Err(io::Error::other(Apart::Again(rank))),
    }
    // The lock is the open file's: it is to last as long as this process.
    std::mem::forget(file);
    Ok(segment.named(path))
}

/// What is told where ranks have not come to `segment` in time; none if all have.
pub(crate) fn not_come(segment: &Segment) -> Option<String> {
    /// Names that are listed; there may be more.
    const FEW: usize = 8;
    let ranks = segment.shape().ranks();
    let missing = (0..ranks).filter(|rank| segment.state_of(*rank) == State::Expected);
    let missing = list(missing.map(|rank| rank.to_string()), FEW)?;
    let first = format!("not all ranks have joined the job in time; missing of {ranks}: {missing}");
    let Some(name) = segment.name() else {
        return Some(format!("{first}; each must call run"));
    };
    let own = name.file_name().unwrap_or_default();
    let there = std::fs::read_dir(name.parent().unwrap_or(name));
    let there = { there.into_iter().flatten() }.filter_map(|entry| Some(entry.ok()?.file_name()));
    let others = there.filter(|other| *other != own);
    let others = others.map(|other| other.to_string_lossy().into_owned());
    let others = list(others.filter(|other| other.starts_with(&prefix())), FEW);
    let others = others.map(|others| format!(", or meet there as {others}"));
    Some(format!(
        "{first}; ranks meet in {}: the others have not been started, or have failed already, or are in another job or container, or on another host{}",
        name.display(),
        others.unwrap_or_default()
    ))
}

/// Up to `most` of `names`, and whether there are more; none if there are none.
fn list(mut names: impl Iterator<Item = String>, most: usize) -> Option<String> {
    let first: Vec<String> = names.by_ref().take(most).collect();
    let more = if names.next().is_some() { ", …" } else { "" };
    (!first.is_empty()).then(|| format!("{}{more}", first.join(", ")))
}

/// Opens the segment at `path`, made if need be, and locks it.
fn open(path: &Path) -> io::Result<File> {
    loop {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(SAFELY)
            .open(path)?;
        // First of all: what is others' may be locked for ever.
        if !segment::is_private(&file.metadata()?) {
            let why = format!("{} is not this user's alone: remove it", path.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        lock(&file, path, PATIENCE)?;
        // Swept between making and locking it: once more.
        if is_at(path, &file)? {
            return Ok(file);
        }
    }
}

/// Whether the name `path` still means `file`.
fn is_at(path: &Path, file: &File) -> io::Result<bool> {
    let here = file.metadata()?;
    match std::fs::symlink_metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (here.dev(), here.ino())),
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(why) => Err(why),
    }
}

/// Locks `file` shared. Who sweeps holds it alone for a moment; nobody does for `patience`.
fn lock(file: &File, path: &Path, patience: Duration) -> io::Result<()> {
    let end = Instant::now() + patience;
    loop {
        match flock(file, FlockOperation::NonBlockingLockShared) {
            Err(Errno::WOULDBLOCK) if Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(Errno::WOULDBLOCK) => {
                let why = format!("another process has locked {}", path.display());
                return Err(io::Error::new(io::ErrorKind::WouldBlock, why));
            }
            other => return Ok(other?),
        }
    }
}

/// Removes the segments of this user in `directory` that no process has.
fn sweep(directory: &Path) -> io::Result<()> {
    let prefix = prefix();
    for entry in std::fs::read_dir(directory)?.flatten() {
        if entry.file_name().to_string_lossy().starts_with(&prefix) {
            let path = entry.path();
            let file = OpenOptions::new()
                .read(true)
                .custom_flags(SAFELY)
                .open(&path);
            let _ = file.map(|file| sweep_opened(&path, &file));
        }
    }
    Ok(())
}

/// Removes `path`, which has been opened as `file`, if no process has the segment.
fn sweep_opened(path: &Path, file: &File) {
    let own =
        { file.metadata() }.is_ok_and(|here| here.uid() == rustix::process::geteuid().as_raw());
    let free = || flock(file, FlockOperation::NonBlockingLockExclusive).is_ok();
    // Between opening and locking it another process may have removed the name, and the next job
    // may have made a segment of the same name, in which its ranks meet.
    if own && free() && is_at(path, file).unwrap_or(false) {
        let _ = std::fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn directory(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("flagpost-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory");
        path
    }

    fn shape() -> Shape {
        Shape::new(2, 1 << 16).expect("it makes sense")
    }

    fn segments(directory: &Path) -> usize {
        std::fs::read_dir(directory).expect("it is there").count()
    }

    #[test]
    fn ranks_meet_and_leave_no_name_behind() {
        let directory = directory("meet");
        let first = join_in(&directory, "job", shape(), 0).expect("rank 0");
        assert_eq!(segments(&directory), 1);
        assert_eq!(first.state_of(1), State::Expected);
        let again = join_in(&directory, "job", shape(), 0).expect_err("it has come");
        let told = "rank 0 has been in this job before";
        assert!(again.to_string().contains(told), "{again}");
        let second = join_in(&directory, "job", shape(), 1).expect("rank 1");
        assert_eq!(segments(&directory), 0, "unlinked once all are here");
        second.mark_lost(1);
        assert_eq!(first.lost(), Some(1), "both map the same memory");
        std::fs::remove_dir_all(directory).expect("it can go");
    }

    #[test]
    fn leftovers_are_swept_and_segments_in_use_are_not() {
        let directory = directory("sweep");
        let left = directory.join(format!("{}killed", prefix()));
        std::fs::write(&left, [0; 100]).expect("a file");
        let used = join_in(&directory, "used", shape(), 0).expect("rank 0");
        assert!(!left.exists(), "nobody had it");
        sweep(&directory).expect("it can be read");
        assert_eq!(segments(&directory), 1, "one is in use");
        drop(used);
        std::fs::remove_dir_all(directory).expect("it can go");
    }

    /// A sweeper is stopped between opening and locking a segment. Meanwhile another one removes
    /// the name, and a job makes it anew.
    #[test]
    fn a_late_sweeper_leaves_the_next_segment_of_the_name() {
        let directory = directory("late");
        let path = directory.join(format!("{}job", prefix()));
        let late = File::create(&path).expect("a leftover");
        let first = join_in(&directory, "job", shape(), 0).expect("rank 0, which sweeps");
        sweep_opened(&path, &late);
        join_in(&directory, "job", shape(), 1).expect("rank 1");
        assert_eq!(first.state_of(1), State::Here, "both are in one segment");
        std::fs::remove_dir_all(directory).expect("it can go");
    }

    #[test]
    fn ranks_that_have_not_come_are_named() {
        let directory = directory("missing");
        let shape = Shape::new(13, 1 << 16).expect("it makes sense");
        let here = [0, 2].map(|rank| join_in(&directory, "job", shape, rank).expect("a rank"));
        let other = join_in(&directory, "other", shape, 1).expect("rank 1");
        let told = not_come(&here[0]).expect("not all have come");
        let job = directory.join(format!("{}job", prefix()));
        for expected in [
            "missing of 13: 1, 3, 4, 5, 6, 7, 8, 9, …",
            &format!("meet in {}", job.display()),
            &format!("or meet there as {}other", prefix()),
        ] {
            assert!(told.contains(expected), "{told}");
        }
        drop(other);
        for rank in [1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12] {
            assert!(not_come(&here[1]).is_some());
            join_in(&directory, "job", shape, rank).expect("a rank");
        }
        assert_eq!(not_come(&here[0]), None);
        std::fs::remove_dir_all(directory).expect("it can go");
    }

    #[test]
    fn locks_are_not_waited_for_in_vain() {
        let directory = directory("locked");
        let path = directory.join("segment");
        let held = File::create(&path).expect("a file");
        flock(&held, FlockOperation::LockExclusive).expect("a lock");
        let other = File::open(&path).expect("it is mine");
        let error = lock(&other, &path, Duration::from_millis(5)).expect_err("it is locked");
        assert!(error.to_string().contains("another process"), "{error}");
        std::fs::remove_dir_all(directory).expect("it can go");
    }

    #[test]
    fn what_others_could_open_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = directory("private");
        let path = directory.join(format!("{}open", prefix()));
        let held = File::create(&path).expect("a file");
        // Looked at before it is waited for: whoever may open it may lock it.
        flock(&held, FlockOperation::LockExclusive).expect("a lock");
        let open = std::fs::Permissions::from_mode(0o666);
        std::fs::set_permissions(&path, open).expect("they are mine");
        let error = join_in(&directory, "open", shape(), 0).expect_err("anybody may open it");
        assert!(error.to_string().contains("remove it"), "{error}");
        std::fs::remove_dir_all(directory).expect("it can go");
    }
}
