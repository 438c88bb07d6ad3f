//! PMIx: what Open MPI's `mpirun` and Slurm's `srun --mpi=pmix` let their ranks tell each other.
//!
//! The library is `libpmix.so.2`, loaded when a rank needs it. Rank 0 puts one word under a key:
//! where the ranks of the job meet, and their secret. After a fence the others get it. Then the
//! library's part is over: the ranks' own meeting begins.
//!
//! # Layouts
//! | type of `pmix_common.h` | here |
//! |---|---|
//! | `pmix_proc_t` | 256 bytes of name, then a rank of 4 bytes |
//! | `pmix_value_t` | a type of 2 bytes; at 8 a union, here a string; 32 bytes in version 4 |
//! | `pmix_status_t` | an `int`, 0 for success |
//!
//! # `unsafe`
//! All calls of the library stand in [`exchange`]. They are those of versions 2 to 5 of PMIx, whose
//! binary interface has the name `.so.2`.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{NonNull, null, null_mut};

/// What to do where there is no library.
const INSTALL: &str = "install PMIx (Debian: apt-get install libpmix2)";

/// The key of the job's word.
const KEY: &CStr = c"flagpost";

/// The type of a string, and the scope of what all ranks may get.
const STRING: u16 = 3;
const GLOBAL: u8 = 3;

/// A process.
#[repr(C)]
struct Process {
    name: [u8; 256],
    rank: u32,
}

/// A value that is a string. Larger than the library's own.
#[repr(C)]
struct Value {
    kind: u16,
    string: *mut c_char,
    rest: [u64; 6],
}

type Init = unsafe extern "C" fn(*mut Process, *const c_void, usize) -> c_int;
type Put = unsafe extern "C" fn(u8, *const c_char, *mut Value) -> c_int;
type Commit = unsafe extern "C" fn() -> c_int;
type Fence = unsafe extern "C" fn(*const Process, usize, *const c_void, usize) -> c_int;
type Get = unsafe extern "C" fn(
    *const Process,
    *const c_char,
    *const c_void,
    usize,
    *mut *mut Value,
) -> c_int;
type Finalize = unsafe extern "C" fn(*const c_void, usize) -> c_int;

// As in `pmix_common.h`.
const _: () = assert!(size_of::<Process>() == 260 && std::mem::offset_of!(Process, rank) == 256);
const _: () = assert!(size_of::<Value>() > 32 && std::mem::offset_of!(Value, string) == 8);

/// The library's functions.
struct Library {
    init: Init,
    put: Put,
    commit: Commit,
    fence: Fence,
    get: Get,
    finalize: Finalize,
}

impl Library {
    fn load() -> Result<Self, String> {
        // SAFETY: the name is a C string. The library's constructors run: it is made to be loaded
        // at any time.
        let opened = unsafe { libc::dlopen(c"libpmix.so.2".as_ptr(), libc::RTLD_NOW) };
        let library = NonNull::new(opened).ok_or(format!("no libpmix.so.2: {INSTALL}"))?;
        let find = |name: &CStr| {
            // SAFETY: the handle is that of a library that is open; the name is a C string.
            let found = unsafe { libc::dlsym(library.as_ptr(), name.as_ptr()) };
            NonNull::new(found).ok_or(format!("libpmix.so.2 lacks {name:?}"))
        };
        // SAFETY: symbols of these names are functions of these types (`pmix.h`). The library is
        // never closed, so they stay.
        Ok(unsafe {
            Self {
                init: std::mem::transmute::<NonNull<c_void>, Init>(find(c"PMIx_Init")?),
                put: std::mem::transmute::<NonNull<c_void>, Put>(find(c"PMIx_Put")?),
                commit: std::mem::transmute::<NonNull<c_void>, Commit>(find(c"PMIx_Commit")?),
                fence: std::mem::transmute::<NonNull<c_void>, Fence>(find(c"PMIx_Fence")?),
                get: std::mem::transmute::<NonNull<c_void>, Get>(find(c"PMIx_Get")?),
                finalize: std::mem::transmute::<NonNull<c_void>, Finalize>(find(c"PMIx_Finalize")?),
            }
        })
    }
}

/// What the library says to a call.
fn done(status: c_int, call: &str) -> Result<(), String> {
    match status {
        0 => Ok(()),
        status => Err(format!("PMIx_{call} fails with status {status}")),
    }
}

/// The word that rank 0 has for all: it gives `own`, the others none. Blocks until all ranks of the
/// job call it; `rank` is this one.
///
/// # Errors
/// A line that says what has failed.
pub(crate) fn exchange(rank: u16, own: Option<&str>) -> Result<String, String> {
    let library = Library::load()?;
    let mut process = Process {
        name: [0; 256],
        rank: 0,
    };
    // SAFETY: it fills in a process, which lives; no directives are given.
    done(unsafe { (library.init)(&mut process, null(), 0) }, "Init")?;
    if process.rank != u32::from(rank) {
        return Err(format!("PMIx has rank {}, and not {rank}", process.rank));
    }
    if let Some(own) = own {
        let word = CString::new(own).map_err(|_| "a word with a zero byte".to_owned())?;
        let mut value = Value {
            kind: STRING,
            string: word.as_ptr().cast_mut(),
            rest: [0; 6],
        };
        // SAFETY: key and value live during the call, which copies both and changes neither; the
        // value is a string, as its type says.
        let put = unsafe { (library.put)(GLOBAL, KEY.as_ptr(), &mut value) };
        done(put, "Put")?;
        // SAFETY: it takes nothing.
        done(unsafe { (library.commit)() }, "Commit")?;
    }
    // SAFETY: no processes stand for all of the job's; no directives are given.
    done(unsafe { (library.fence)(null(), 0, null(), 0) }, "Fence")?;
    process.rank = 0;
    let mut found: *mut Value = null_mut();
    // SAFETY: process and key live during the call; it stores a value of its own, or none.
    let got = unsafe { (library.get)(&process, KEY.as_ptr(), null(), 0, &mut found) };
    done(got, "Get")?;
    // SAFETY: after success it points to a value that is the caller's. At least its first 16 bytes
    // are there, and only those are read: type and string.
    let (kind, string) = unsafe {
        match NonNull::new(found) {
            Some(found) => ((*found.as_ptr()).kind, (*found.as_ptr()).string),
            None => (0, null_mut()),
        }
    };
    if kind != STRING || string.is_null() {
        return Err("PMIx_Get brings no string".to_owned());
    }
    // SAFETY: a value of this type has a C string, or null. The value is never freed: a few bytes,
    // once in a job.
    let word = unsafe { CStr::from_ptr(string) };
    let word = word.to_string_lossy().into_owned();
    // SAFETY: no directives are given.
    done(unsafe { (library.finalize)(null(), 0) }, "Finalize")?;
    Ok(word)
}
