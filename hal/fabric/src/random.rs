//! Random numbers that nobody can foresee: the system's.

use std::io::{self, Read as _};

/// Some random bytes.
///
/// # Errors
/// The system's.
pub(crate) fn random<const BYTES: usize>() -> io::Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}
