//! The number that tells images of two ranks apart that were built otherwise.
//!
//! Ranks may run images of their own, as the unequal cores of a chip do. They find each other's
//! words by computing the same offsets, and read each other's entries. So all that decides these
//! goes into one number, the *build*. Each rank stores its own beside its session number before it
//! says that it has arrived, and compares those of all others before it stores anything there.

use flagpost_hal::{Coherence as _, CoreId, Region, Topology as _, UncachedMemory as _};
use flagpost_link::{Link as _, Rank, Refusal};

use crate::{Atomics as _, LoadStore, Mail, Ring, layout::Layout};

/// Where it is in each rank's memory, whatever the layout: after the two session numbers.
pub(crate) const BUILD: usize = 8;

/// The version of this crate: entries and the fixed part may differ in another.
const VERSION: &str = env!("CARGO_PKG_VERSION");

impl<W: Mail, const PIECES: usize> LoadStore<W, PIECES> {
    /// The build of a rank with this layout.
    pub(crate) fn build_of(machine: &W::Machine, layout: &Layout) -> u32 {
        let kind = match layout.ring {
            Ring::Shared { .. } => 0,
            Ring::Pairs { .. } => 1,
            Ring::Bells { .. } => 2,
        };
        let are = [
            W::COHERENT,
            W::Machine::COHERENT,
            W::FAST,
            W::Atomics::NATIVE,
            W::Atomics::WIDE,
        ];
        let numbers = [
            Self::LINE as u32,
            W::PEERS as u32,
            PIECES as u32,
            machine.cores().into(),
            kind,
            layout.ring.entries(),
            layout.end,
            layout.buffer_end,
        ];
        number(are, numbers)
    }

    /// `Ok` if all ranks, which have arrived, were built like this one.
    ///
    /// # Errors
    /// [`Refusal::OtherBuild`], with the first rank that was not.
    pub(crate) fn all_alike(&self) -> Result<(), Refusal> {
        let own = Self::build_of(self.machine(), &self.base().layout);
        for rank in (0..self.machine().cores()).map(Rank::new) {
            let at = Region::memory(CoreId::new(rank.get())).at(BUILD);
            if self.machine().load_u32(at) != own {
                return Err(Refusal::OtherBuild(rank));
            }
        }
        Ok(())
    }
}

/// Of what is true of an image, and its sizes.
fn number(are: [bool; 5], numbers: [u32; 8]) -> u32 {
    let bits = { are.into_iter() }.fold(0, |bits, is| bits << 1 | u32::from(is));
    { numbers.into_iter() }.fold(mixed(const { of_version() }, bits), mixed)
}

const fn of_version() -> u32 {
    let (mut hash, mut rest) = (0x811C_9DC5, VERSION.as_bytes());
    while let [byte, others @ ..] = rest {
        (hash, rest) = (mixed(hash, *byte as u32), others);
    }
    hash
}

/// A step of the hash FNV-1a, by words.
const fn mixed(hash: u32, word: u32) -> u32 {
    (hash ^ word).wrapping_mul(0x0100_0193)
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::{collections::BTreeSet, vec};

    /// Each fact alone makes another number; so do two that change places.
    #[test]
    fn each_fact_alone_changes_the_number() {
        let (are, numbers) = ([false; 5], core::array::from_fn(|index| 16 << index));
        let mut all = vec![number(are, numbers), number(are, [0; 8])];
        for index in 0..are.len() {
            let mut other = are;
            other[index] = true;
            all.push(number(other, numbers));
        }
        for index in 0..numbers.len() {
            let mut other = numbers;
            other[index] ^= 1;
            all.push(number(are, other));
            other.rotate_left(1);
            all.push(number(are, other));
        }
        let different: BTreeSet<_> = all.iter().collect();
        assert_eq!(different.len(), all.len());
    }
}
