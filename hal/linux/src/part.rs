//! A rank's part in a job: from its handle of the machine to what the others are told at its end.
//!
//! Only the process that has joined may tell an end. A child that it forks has a copy of its part,
//! and may return or panic: that is no end of the rank.

use std::sync::Arc;

use crate::machine::{Linux, Mode};
use crate::segment::Segment;

/// Tells the others how this rank ended, however it ends.
struct Part {
    segment: Arc<Segment>,
    rank: u16,
    /// The process that has joined.
    process: u32,
    well: bool,
}

impl Drop for Part {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            return;
        }
        if self.well {
            self.segment.leave(self.rank);
        } else {
            self.segment.mark_lost(self.rank);
        }
    }
}

/// Where it is noticed that a rank has ended without having said so.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Noticed {
    /// In the process that has started the ranks.
    Elsewhere,
    /// In each rank.
    ByRanks,
}

/// Runs `program` as rank `rank` of `segment`, where it has [arrived](Segment::arrive) there.
/// `crowded` if the ranks are more than their processors.
///
/// The others learn that the rank has left if `program` returns `Ok`; else, that it is lost.
///
/// # Errors
/// The program's.
pub fn take_part<M: Mode, T, E>(
    segment: Arc<Segment>,
    rank: u16,
    crowded: bool,
    noticed: Noticed,
    program: impl FnOnce(Linux<M>) -> Result<T, E>,
) -> Result<T, E> {
    let mut part = Part {
        segment: Arc::clone(&segment),
        rank,
        process: std::process::id(),
        well: false,
    };
    let alone = noticed == Noticed::ByRanks;
    let result = program(Linux::new(segment, rank, crowded, alone));
    part.well = result.is_ok();
    result
}

/// Runs `program` on a thread per rank of `segment`, which is new. Returns what each returned.
///
/// # Panics
/// If a thread does, after all have ended.
pub fn on_threads<M: Mode, T: Send, E: Send>(
    segment: &Arc<Segment>,
    crowded: bool,
    program: impl Fn(Linux<M>) -> Result<T, E> + Sync,
) -> Vec<Result<T, E>> {
    let program = &program;
    let rank = |rank: u16| {
        // Each rank of this segment is one thread, and this is it.
        let _ = segment.arrive(rank);
        let segment = Arc::clone(segment);
        take_part(segment, rank, crowded, Noticed::Elsewhere, program)
    };
    let results = std::thread::scope(|scope| {
        let rank = &rank;
        let threads: Vec<_> = (0..segment.shape().ranks())
            .map(|number| scope.spawn(move || rank(number)))
            .collect();
        // Panics continue once all have ended.
        let results: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        results
    });
    let result = |ended: std::thread::Result<_>| {
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    };
    results.into_iter().map(result).collect()
}

/// What `program` returns on each rank of a job of its own: for tests of the modes.
#[cfg(test)]
pub(crate) fn on_ranks<M: Mode, T: Send>(
    ranks: u32,
    program: impl Fn(Linux<M>) -> T + Sync,
) -> Vec<T> {
    let shape = crate::Shape::new(ranks, 1 << 16).expect("it makes sense");
    let segment = Arc::new(Segment::of_threads(shape).expect("there is memory"));
    let results = on_threads(&segment, false, |machine: Linux<M>| {
        Ok::<T, std::convert::Infallible>(program(machine))
    });
    results.into_iter().map(|Ok(value)| value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Coherent, Emulated, SoftwareCoherent};
    use flagpost_hal::{Coherence, CoreId, Region, UncachedMemory};

    fn copies_arrive<M: Mode>()
    where
        Linux<M>: UncachedMemory + Coherence,
    {
        on_ranks(1, |machine: Linux<M>| {
            let at = Region::memory(CoreId::new(0)).at(0);
            for len in (0..70).chain([255, 256, 257, 1000]) {
                for start in 0..17 {
                    machine.store_bytes(at, &[0xEE; 2048]);
                    let data: Vec<u8> = (1..=len).map(|value| value as u8).collect();
                    machine.store_bytes(at.plus(start), &data);
                    machine.drain();
                    let (mut seen, mut back) = (vec![0; 2048], vec![0; len]);
                    machine.load_bytes(at, &mut seen);
                    let mut expected = vec![0xEE; 2048];
                    expected[start..start + len].copy_from_slice(&data);
                    assert_eq!(seen, expected, "{len} bytes at {start}");
                    machine.load_bytes(at.plus(start), &mut back);
                    assert_eq!(back, data, "{len} bytes from {start}");
                }
            }
        });
    }

    #[test]
    fn copies_of_all_lengths_and_alignments_arrive_and_touch_nothing_else() {
        copies_arrive::<Coherent>();
        copies_arrive::<SoftwareCoherent>();
        copies_arrive::<Emulated>();
    }
}
