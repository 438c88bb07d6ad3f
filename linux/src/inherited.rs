//! Signals and modes that a process inherits from the one that has started it, and what the
//! launcher sets of them.
//!
//! A process is born with the ignored signals and the mask of its parent, and `exec` keeps both.
//! A launcher that ignores SIGCHLD never hears how its ranks end; one that blocks SIGTERM does not
//! end by it. The table of all that a rank inherits is in the crate's documentation.

use std::ptr::{null, null_mut};

/// Whether this process ignores `signal`. No other number than a signal's is ignored.
pub fn is_ignored(signal: i32) -> bool {
    // SAFETY: all zeros are a value of this structure of integers.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: nothing is set, and what is set now is stored in a value of this type.
    let done = unsafe { libc::sigaction(signal, null(), &raw mut action) };
    done == 0 && action.sa_sigaction == libc::SIG_IGN
}

/// Lets all signals through to this thread, and to those that it starts from now on. May be called
/// between fork and exec: it asks the system, and nothing else.
pub fn unblock_signals() {
    let mut none = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the set is stored by the first call, and read by the second one, which stores none.
    unsafe {
        libc::sigemptyset(none.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, none.as_ptr(), null_mut());
    }
}

/// Sees to it that the system keeps how this process's children end until they are waited for.
pub(crate) fn hear_of_children() {
    if is_ignored(libc::SIGCHLD) {
        // SAFETY: the signal is ignored, so that no handler of somebody else's is lost; by default
        // it does nothing to this process.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    }
}

/// Whether this process may open again the files that it makes.
///
/// # Errors
/// A line: its mask for new files takes that away.
pub(crate) fn may_open_its_files() -> Result<(), String> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    match umask(&status) {
        Some(mask) if mask & 0o600 != 0 => Err(format!(
            "umask {mask:03o} forbids this user's own files to him: write umask 077"
        )),
        _ => Ok(()),
    }
}

/// The mask for new files in the `status` of a process.
fn umask(status: &str) -> Option<u32> {
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("Umask:"))?;
    u32::from_str_radix(mask.trim(), 8).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_for_files_are_read() {
        assert_eq!(umask("Name:\tx\nUmask:\t0277\nState:\tR\n"), Some(0o277));
        assert_eq!(umask("Name:\tx\n"), None, "an old system");
        assert!(!is_ignored(libc::SIGUSR2) && !is_ignored(0) && !is_ignored(libc::SIGKILL));
    }
}
