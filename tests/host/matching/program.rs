//! Random programs: what the senders send, and what the receiver, rank 0, calls.

use flagpost_common::Dice;
use flagpost_mapped::Ring;

use super::model::{Filter, Wanted};

/// Windows of a program.
pub(crate) const WINDOWS: usize = 2;

/// Elements of a window that belong to one sender.
pub(crate) const REGION: usize = 12;

/// A notified put to rank 0.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Send {
    pub(crate) window: usize,
    pub(crate) tag: u32,
    /// Elements of the sender's region.
    pub(crate) first: usize,
    pub(crate) len: usize,
}

/// What the receiver calls.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Call {
    Start(usize),
    Test(usize),
    /// Of the requests from this one on.
    TestAny(usize),
    Cancel(usize),
    Probe(Filter),
    Discard(usize),
    /// Sends to itself, if its ring has room.
    Own(Send),
    /// Gives the senders time.
    Pause(usize),
}

#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) ranks: u16,
    /// A ring for each pair of ranks, in message buffers, with bells or without: payload travels in
    /// it. Or one that all share.
    pub(crate) ring: Ring,
    pub(crate) unexpected: u16,
    /// Of ranks 1 and up.
    pub(crate) sends: Vec<Vec<Send>>,
    pub(crate) requests: Vec<Wanted>,
    pub(crate) calls: Vec<Call>,
}

fn send(dice: &mut Dice, tags: usize) -> Send {
    let first = dice.below(REGION);
    Send {
        window: dice.below(WINDOWS),
        tag: dice.below(tags) as u32,
        first,
        len: [0, 1, 2, REGION][dice.below(4)].min(REGION - first),
    }
}

fn filter(dice: &mut Dice, ranks: u16, tags: usize) -> Filter {
    let source = dice.below(usize::from(ranks)) as u16;
    let tag = dice.below(tags) as u32;
    Filter {
        window: dice.below(WINDOWS),
        source: (dice.below(2) == 0).then_some(source),
        tag: (dice.below(2) == 0).then_some(tag),
    }
}

/// The program of `seed`.
pub(crate) fn generate(seed: u64) -> Program {
    let mut dice = Dice::new(seed.wrapping_mul(0x2545_F491_4F6C_DD1D));
    let ranks = [1, 2, 2, 3, 3, 4][dice.below(6)];
    let tags = 1 + dice.below(3);
    let most = [4, 12, 30][dice.below(3)];
    let sends = (1..ranks)
        .map(|_| {
            (0..dice.below(most))
                .map(|_| send(&mut dice, tags))
                .collect()
        })
        .collect();
    let requests: Vec<Wanted> = (0..1 + dice.below(5))
        .map(|_| Wanted {
            filter: filter(&mut dice, ranks, tags),
            count: [1, 1, 1, 2, 3, 8][dice.below(6)],
        })
        .collect();
    let calls = (0..dice.below(60))
        .map(|_| {
            let one = dice.below(requests.len());
            match dice.below(20) {
                0..4 => Call::Start(one),
                4..8 => Call::Test(one),
                8..11 => Call::TestAny(one),
                11 => Call::Cancel(one),
                12..14 => Call::Probe(filter(&mut dice, ranks, tags)),
                14 if dice.below(4) == 0 => Call::Discard(dice.below(WINDOWS)),
                14..16 => Call::Own(send(&mut dice, tags)),
                _ => Call::Pause(dice.below(40)),
            }
        })
        .collect();
    let entries = [1, 2, 4, 16][dice.below(4)];
    let ring = match dice.below(3) {
        0 => Ring::Pairs { entries },
        1 => Ring::Bells { entries },
        _ => Ring::Shared { entries },
    };
    Program {
        ranks,
        ring,
        unexpected: [0, 1, 2, 3, 5, 12][dice.below(6)],
        sends,
        requests,
        calls,
    }
}
