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
//! # Invariants
//! * M1. `base` is the first of `shape.total()` bytes that stay mapped, readable and writable, as
//!   long as the segment lives.
//! * M2. Nobody holds a Rust reference to bytes of it, but to atomics: other processes write it at
//!   any time, and no bit pattern of an integer is invalid.
//! * M3. Every access is checked against the shape, which does not come from the memory: whatever a
//!   peer writes here, this rank touches no other bytes of its own address space.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{MemfdFlags, OFlags, SealFlags};
use rustix::io::FdFlags;

use crate::shape::Shape;

/// What a job's memory must be sealed against.
const SEALS: SealFlags = SealFlags::GROW
    .union(SealFlags::SHRINK)
    .union(SealFlags::SEAL);

/// A job's memory, mapped.
#[derive(Debug)]
pub(crate) struct Segment {
    map: MmapRaw,
    shape: Shape,
}

/// Makes the memory of a job: zeros, sealed, without a name. The descriptor is inherited by child
/// processes.
pub(crate) fn create(shape: Shape) -> io::Result<File> {
    let file = File::from(rustix::fs::memfd_create(
        "flagpost",
        MemfdFlags::ALLOW_SEALING,
    )?);
    rustix::fs::ftruncate(&file, shape.total() as u64)?;
    rustix::fs::fcntl_add_seals(&file, SEALS)?;
    Ok(file)
}

/// [`create`], as a file without a name in `directory`.
pub(crate) fn create_in(directory: &Path, shape: Shape) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .mode(0o600)
        .custom_flags(OFlags::TMPFILE.bits().cast_signed())
        .open(directory)?;
    file.set_len(shape.total() as u64)?;
    // Ranks inherit it.
    let flags = rustix::io::fcntl_getfd(&file)?;
    rustix::io::fcntl_setfd(&file, flags.difference(FdFlags::CLOEXEC))?;
    Ok(file)
}

/// Whether `file` is what [`create`] or [`create_in`] makes.
pub(crate) fn is_job(file: &File) -> bool {
    is_sealed(file) || is_nameless(file)
}

/// Whether `file` can neither grow nor shrink any more.
fn is_sealed(file: &File) -> bool {
    rustix::fs::fcntl_get_seals(file).is_ok_and(|seals| seals.contains(SEALS))
}

/// Whether it is a file of this user's alone that has no name.
fn is_nameless(file: &File) -> bool {
    file.metadata().is_ok_and(|here| {
        let own = here.uid() == rustix::process::geteuid().as_raw();
        own && here.is_file() && here.nlink() == 0 && here.mode() & 0o077 == 0
    })
}

impl Segment {
    /// Maps `file`, if it is as large as `shape` says.
    pub(crate) fn map(file: &File, shape: Shape) -> io::Result<Self> {
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
        let map = MmapOptions::new().len(shape.total()).map_raw(file)?;
        Ok(Self { map, shape })
    }

    /// Memory of one process alone, for ranks that are threads.
    pub(crate) fn of_threads(shape: Shape) -> io::Result<Self> {
        Self::map(&create(shape)?, shape)
    }

    /// Its shape.
    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    /// The first byte of the regions; `shape.memory()` bytes per rank follow. M1.
    pub(crate) fn regions(&self) -> NonNull<u8> {
        let base = NonNull::new(self.map.as_mut_ptr()).unwrap_or(NonNull::dangling());
        debug_assert!(self.shape.control() < self.map.len());
        // SAFETY: M1: `control()` lies inside of the mapping, which has `total()` bytes.
        unsafe { base.add(self.shape.control()) }
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
