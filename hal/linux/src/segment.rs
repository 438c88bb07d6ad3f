//! The memory that the ranks of a job share: a file that each maps whole.
//!
//! # Who may map it
//! A *memfd* has no name: it is reached by its descriptor, which only the launcher's children
//! inherit, and is gone with the last process that has it. It is sealed against growing and
//! shrinking, so that no rank can take pages away under another.
//!
//! A *file without a name* in a directory of the user's choice (a file system on DAX memory, say)
//! is the same but for the seals, which only memfds have: a rank that shrinks it ends those that
//! then touch what is gone.
//!
//! # Where memory is limited
//! A file system has a size, and a process that touches a page for which there is no room is ended
//! (SIGBUS). So all of a file in a directory is reserved before a rank maps it, which takes about 8
//! ms for 16 MiB of a tmpfs. A memfd has no such size. It is not reserved, and its pages cost
//! nothing until a rank touches them. Then the host's memory counts, and the limits of control
//! groups. Only pages of a memfd are given back: those of another file would lose their place.
//!
//! # Invariants
//! * M1. `base` is the first of `shape.total()` bytes that stay mapped, readable and writable, as
//!   long as the segment lives.
//! * M2. Nobody holds a Rust reference to bytes of it, but to atomics: other processes write it at
//!   any time, and no bit pattern of an integer is invalid.
//! * M3. Every access is checked against the shape, which does not come from the memory: whatever a
//!   peer writes here, this rank touches no other bytes of its own address space.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;

use memmap2::{MmapOptions, MmapRaw, UncheckedAdvice};
use rustix::fs::{FallocateFlags, MemfdFlags, OFlags, SealFlags};
use rustix::io::{Errno, FdFlags};
use rustix::process::{Resource, getrlimit};

use crate::shape::Shape;

/// What a job's memory must be sealed against.
const SEALS: SealFlags = SealFlags::GROW
    .union(SealFlags::SHRINK)
    .union(SealFlags::SEAL);

/// A job's memory, mapped.
#[derive(Debug)]
pub struct Segment {
    map: MmapRaw,
    shape: Shape,
    /// Its pages are reserved, and must not be given back.
    reserved: bool,
    /// Where ranks meet that nothing else leads here.
    name: Option<PathBuf>,
}

/// Makes the memory of a job: zeros, sealed, without a name. The descriptor is inherited by child
/// processes.
///
/// # Errors
/// What the system refused: descriptors or memory, say.
pub fn create(shape: Shape) -> io::Result<File> {
    check_limit(shape)?;
    let file = rustix::fs::memfd_create("flagpost", MemfdFlags::ALLOW_SEALING);
    let file = File::from(file.map_err(|why| refused("memfd_create", why))?);
    let sized = rustix::fs::ftruncate(&file, shape.total() as u64);
    sized.map_err(|why| refused("ftruncate", why))?;
    let sealed = rustix::fs::fcntl_add_seals(&file, SEALS);
    sealed.map_err(|why| refused("fcntl for seals", why))?;
    Ok(file)
}

/// The system has refused `call`: names it, so that somebody can permit it.
pub fn refused(call: &str, why: Errno) -> io::Error {
    let kind = io::Error::from(why).kind();
    let advice = match why {
        Errno::PERM | Errno::ACCESS | Errno::NOSYS => {
            ": a container's filter of system calls must permit it"
        }
        _ => "",
    };
    io::Error::new(kind, format!("the system refuses {call} ({why}){advice}"))
}

/// [`create`], as a file without a name in `directory`.
///
/// # Errors
/// What the system refused, or that there is no room for all of it.
pub fn create_in(directory: &Path, shape: Shape) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .mode(0o600)
        .custom_flags(OFlags::TMPFILE.bits().cast_signed())
        .open(directory)?;
    check_limit(shape)?;
    reserve(&file, 0..shape.total() as u64, shape)?;
    // Ranks inherit it.
    let flags = rustix::io::fcntl_getfd(&file)?;
    rustix::io::fcntl_setfd(&file, flags.difference(FdFlags::CLOEXEC))?;
    Ok(file)
}

/// Refuses what is larger than this process's files may be: to grow one past that ends a process
/// (SIGXFSZ).
///
/// # Errors
/// That the limit is lower, with both numbers: ask for less, or raise the limit.
pub fn check_limit(shape: Shape) -> io::Result<()> {
    match getrlimit(Resource::Fsize).current {
        Some(limit) if limit < shape.total() as u64 => Err(no_room(
            shape,
            &format!("files may have {limit} (ulimit -f)"),
        )),
        _ => Ok(()),
    }
}

/// Takes room in its file system for the bytes `part` of `file`, which grows to hold them. Where
/// the system cannot do that, at least there is room now.
///
/// # Errors
/// That there is no room, with what is free: ask for less; or what else the system refused.
pub fn reserve(file: &File, part: Range<u64>, shape: Shape) -> io::Result<()> {
    let len = part.end.saturating_sub(part.start);
    let free = || {
        let room =
            rustix::fs::fstatvfs(file).map(|room| room.f_bavail.saturating_mul(room.f_frsize));
        room.unwrap_or(0)
    };
    let full = |free| Err(no_room(shape, &format!("{free} are free")));
    loop {
        return match rustix::fs::fallocate(file, FallocateFlags::empty(), part.start, len) {
            Ok(()) => Ok(()),
            Err(Errno::INTR) => continue,
            Err(Errno::NOSPC | Errno::DQUOT) => full(free()),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) if free() < len => full(free()),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                let size = file.metadata()?.len();
                file.set_len(size.max(part.end))
            }
            Err(why) => Err(why.into()),
        };
    }
}

/// What was asked for, and what there is.
fn no_room(shape: Shape, there_is: &str) -> io::Error {
    let (total, ranks, each) = (shape.total(), shape.ranks(), shape.memory());
    let why = format!(
        "{ranks} ranks with {each} bytes of memory each need {total} bytes, and {there_is}: ask for less"
    );
    io::Error::new(io::ErrorKind::StorageFull, why)
}

/// Whether `file` is what [`create`] or [`create_in`] makes.
pub fn is_job(file: &File) -> bool {
    is_sealed(file) || is_nameless(file)
}

/// Whether `file` can neither grow nor shrink any more.
fn is_sealed(file: &File) -> bool {
    rustix::fs::fcntl_get_seals(file).is_ok_and(|seals| seals.contains(SEALS))
}

/// Whether it is a file of this user's alone that has no name.
fn is_nameless(file: &File) -> bool {
    { file.metadata() }.is_ok_and(|here| is_private(&here) && here.nlink() == 0)
}

/// Whether this is a file of this user's alone.
pub fn is_private(file: &Metadata) -> bool {
    let own = file.uid() == rustix::process::geteuid().as_raw();
    own && file.is_file() && file.mode() & 0o077 == 0
}

impl Segment {
    /// Maps `file`, if it is as large as `shape` says.
    ///
    /// # Errors
    /// `InvalidData`: it has another size. `StorageFull`: the host has no room for it.
    pub fn map(file: &File, shape: Shape) -> io::Result<Self> {
        let size = file.metadata()?.len();
        if size != shape.total() as u64 {
            let why = format!(
                "the job's memory has {size} bytes, not the {} of {} ranks with {} bytes each",
                shape.total(),
                shape.ranks(),
                shape.memory()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        let map = MmapOptions::new().len(shape.total()).map_raw(file);
        let map = map.map_err(|why| no_room(shape, &format!("they cannot be mapped ({why})")))?;
        Ok(Self {
            map,
            shape,
            name: None,
            reserved: !is_sealed(file),
        })
    }

    /// This segment, as that of the file `name`.
    pub fn named(self, name: PathBuf) -> Self {
        let name = Some(name);
        Self { name, ..self }
    }

    /// Its file's name, if it has had one.
    pub fn name(&self) -> Option<&Path> {
        self.name.as_deref()
    }

    /// Memory of one process alone, for ranks that are threads.
    ///
    /// # Errors
    /// What the system refused.
    pub fn of_threads(shape: Shape) -> io::Result<Self> {
        Self::map(&create(shape)?, shape)
    }

    /// Its shape.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The first byte of the regions; `shape.memory()` bytes per rank follow. M1.
    pub(crate) fn regions(&self) -> NonNull<u8> {
        let base = NonNull::new(self.map.as_mut_ptr()).unwrap_or(NonNull::dangling());
        debug_assert!(self.shape.control() < self.map.len());
        // SAFETY: M1: `control()` lies inside of the mapping, which has `total()` bytes.
        unsafe { base.add(self.shape.control()) }
    }

    /// Makes whole pages zeros that nothing holds, from `start` of the regions on. False if the
    /// system cannot do that with this file.
    pub(crate) fn clear(&self, start: usize, len: usize) -> bool {
        if self.reserved {
            return false;
        }
        let start = self.shape.control() + start;
        // SAFETY: the bytes stay mapped (M1), and are zeros then. To this process and others that
        // is a store as any other: no reference to them is there (B2 of `bytes`).
        let cleared = unsafe {
            self.map
                .unchecked_advise_range(UncheckedAdvice::Remove, start, len)
        };
        cleared.is_ok()
    }

    /// A control word.
    ///
    /// # Panics
    /// If `offset` is not that of a word in front of the regions: all callers compute it from the
    /// shape.
    pub(crate) fn control(&self, offset: usize) -> &AtomicU32 {
        assert!(
            offset.is_multiple_of(4) && offset < self.shape.control(),
            "no control word is at {offset}"
        );
        let word = self.map.as_mut_ptr().wrapping_add(offset).cast();
        // SAFETY: M1: the word is mapped for as long as `self` is borrowed; it is aligned, since
        // the mapping starts at a page; M2: it is only ever accessed as an atomic.
        unsafe { AtomicU32::from_ptr(word) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> Shape {
        Shape::new(3, 1 << 16).expect("it makes sense")
    }

    #[test]
    fn memory_is_sealed_and_of_the_right_size() {
        let file = create(shape()).expect("a memfd");
        assert!(is_sealed(&file));
        assert!(file.set_len(1).is_err(), "nobody can shrink it");
        assert!(file.set_len(1 << 30).is_err(), "nobody can let it grow");
        assert!(Segment::map(&file, shape()).is_ok());
    }

    #[test]
    fn files_without_a_name_are_private() {
        let file = create_in(&std::env::temp_dir(), shape()).expect("a file");
        assert!(is_job(&file) && !is_sealed(&file));
        assert!(Segment::map(&file, shape()).is_ok());
        let named = std::env::temp_dir().join(format!("flagpost-named-{}", std::process::id()));
        let other = File::create(&named).expect("a file");
        assert!(!is_job(&other), "it has a name");
        std::fs::remove_file(named).expect("it can go");
        assert!(!is_job(&other), "others may have opened it");
    }

    #[test]
    fn another_size_is_refused() {
        let file = create(shape()).expect("a memfd");
        let other = Shape::new(4, 1 << 16).expect("it makes sense");
        let error = Segment::map(&file, other).expect_err("it is smaller");
        assert!(error.to_string().contains("4 ranks"), "{error}");
    }

    #[test]
    #[should_panic(expected = "no control word")]
    fn regions_are_no_control_words() {
        let segment = Segment::of_threads(shape()).expect("memory");
        segment.control(shape().control());
    }
}
