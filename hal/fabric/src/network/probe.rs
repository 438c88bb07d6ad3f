//! Whether a provider does what is needed: its own statements, and a probe.

use std::time::{Duration, Instant};

use flagpost_hal::fabric::{Event, Fabric as _, Work};
use flagpost_hal::{Amo, CoreId};

use super::{Network, OpenError, PROBED};
use crate::end::End;

/// Bytes of an immediate, its number and its sender.
const IMMEDIATE: usize = 8;

/// How long a network may take to show that it works.
const PROBE: Duration = Duration::from_secs(20);

/// Each operation on cells, in an order in which each one's answer differs from the others'.
const AMOS: [Amo; 9] = [
    Amo::Read,
    Amo::Add(u64::MAX),
    Amo::Add(0x1234),
    Amo::Or(0xff00_0000_0000_0000),
    Amo::And(0xf000_0000_0000_1111),
    Amo::Xor(0x0101),
    Amo::CompareSwap {
        expected: 1,
        new: 2,
    },
    Amo::Swap(7),
    Amo::CompareSwap {
        expected: 7,
        new: 9,
    },
];

/// What the provider says that it cannot do, if anything.
pub(super) fn lacks(end: &End) -> Option<&'static str> {
    if end.abilities().immediate_bytes < IMMEDIATE {
        return Some("immediates of 8 bytes");
    }
    let all = AMOS.iter().all(|amo| end.does(*amo));
    (!all).then_some("atomic operations on 8 bytes")
}

impl Network {
    /// Does each kind of operation once, in own memory.
    pub(super) fn probe(&self) -> Result<(), OpenError> {
        const PUT: usize = 0;
        const CELL: usize = 8;
        const COPY: usize = 16;
        let own = CoreId::new(self.0.rank);
        let number = 0x0123_4567_89ab_cdef_u64;
        let data = number.to_le_bytes();
        let mut told = None;
        let mut done = |work: Work<'_>, what: &str| self.probe_one(own, work, what, &mut told);
        let immediate = Some(0x8765_4321);
        let at = PUT;
        let put = Work::Put {
            at,
            data: &data,
            immediate,
            confirmed: true,
        };
        done(put, "a write with an immediate")?;
        let get = Work::Get {
            at,
            into: COPY,
            len: 8,
        };
        done(get, "a read")?;
        let mut cell = 0;
        for amo in AMOS {
            let found = done(Work::Amo { at: CELL, amo }, "an atomic operation")?;
            if found != cell {
                return Err(self.fails(&format!("{amo:?} found {found} and not {cell}")));
            }
            cell = amo.apply(cell);
        }
        let mut copy = [0; 8];
        self.read(COPY, &mut copy);
        if copy != data {
            return Err(self.fails("a read brought other bytes than were written"));
        }
        let end = Instant::now() + PROBE;
        while told.is_none() && Instant::now() < end {
            if let Some(Event::Immediate { from, immediate }) = self.poll() {
                told = Some((from, immediate));
            }
        }
        if told != immediate.map(|immediate| (own, immediate)) {
            return Err(self.fails(&format!("an immediate arrived as {told:?}")));
        }
        self.write(0, &[0; PROBED]);
        Ok(())
    }

    /// Does `work` to this rank, and returns its answer. Keeps what was told meanwhile.
    fn probe_one(
        &self,
        own: CoreId,
        work: Work<'_>,
        what: &str,
        told: &mut Option<(CoreId, u32)>,
    ) -> Result<u64, OpenError> {
        let end = Instant::now() + PROBE;
        let mut begun = false;
        while Instant::now() < end {
            begun = begun || self.post(1, own, work).is_ok();
            match self.poll() {
                Some(Event::Done { value, .. }) => return Ok(value),
                Some(Event::Failed { .. }) => return Err(self.fails(&format!("{what} failed"))),
                Some(Event::Immediate { from, immediate }) => *told = Some((from, immediate)),
                None => std::thread::yield_now(),
            }
        }
        Err(self.fails(&format!("{what} was not done in {PROBE:?}")))
    }

    fn fails(&self, what: &str) -> OpenError {
        let provider = self.abilities().provider;
        let why = self.failure().map(|why| format!(" ({why})"));
        let why = why.unwrap_or_default();
        OpenError::from(format!("provider {provider} does not work: {what}{why}"))
    }
}
