//! A 16-ary tree reduces a number per core to one at core 0: [NA] VI-B, its Fig. 4c.
//!
//! ```text
//!   core r has the children 16 r + 1 ..= 16 r + 16, as far as there are cores;
//!   a leaf sends what it has, an inner core waits for all its children, adds, and sends
//! ```
//! | variant | a child sends by | its parent waits by |
//! |---|---|---|
//! | `notified` | `put_notify` into its element at the parent | one request for all children |
//! | `two-sided` | [`Channel::send`] | [`Channel::receive`] from each child in turn |
//!
//! All cores begin at the same time (in timed mode all clocks show the same), long after the last
//! round. What counts is the time until core 0 has the sum: the median of the rounds. Cores are
//! laid out as on the SCC, two to a tile; the message buffers have its 8 KiB. The sum is checked.
//!
//! [NA]: flagpost#sources

use std::fmt;

use flagpost::{Config as WorldConfig, Rank, Session, Tag, World};
use flagpost_hal::{Clock as _, CoreId, Topology as _};
use flagpost_mapped::Mapped;
use flagpost_sim::{Latencies, Report, Sim, SimCore};

use crate::Failure;
use crate::two_sided::{Channel, Shape};
use flagpost_common::median;

/// Children of a core, at most.
pub const ARITY: u16 = 16;

/// Cores of the default trees: one level; the SCC; two levels and three.
pub const CORES: [u16; 4] = [17, 48, 256, 1024];

/// Rounds; the first two warm up.
const ROUNDS: u64 = 11;
const WARM: usize = 2;

/// Cycles from the beginning of a run to its first round, which start-up must not exceed, and from
/// round to round.
const PERIOD: u64 = 1 << 26;

/// Label of the marks at the end of a round.
const DONE: &str = "done";

/// How a child tells its parent.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Variant {
    /// Notified access with a counting request.
    Notified,
    /// Send and receive over message buffers.
    TwoSided,
}

impl Variant {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Notified, Self::TwoSided];
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Notified => "notified",
            Self::TwoSided => "two-sided",
        })
    }
}

/// Cycles from the common beginning until core 0 has the sum.
///
/// # Errors
/// The account of a run that failed.
pub fn measure(variant: Variant, cores: u16, latencies: Latencies) -> Result<u64, Box<Report>> {
    let memory = (16 << 10) + 128 * u32::from(cores);
    let config = crate::scc(cores, memory, latencies);
    let report = Sim::new(config).run(|core| {
        let place = Place::of(&core);
        match variant {
            Variant::Notified => place.notified(),
            Variant::TwoSided => place.two_sided(),
        }
    });
    if !report.is_done() {
        return Err(Box::new(report));
    }
    let ends = (1..).zip(&report.marks);
    let cycles = ends.map(|(round, mark)| mark.cycles - round * PERIOD);
    Ok(median(cycles.skip(WARM).map(|cycles| cycles as f64)) as u64)
}

/// A core's place in the tree.
struct Place<'c> {
    core: &'c SimCore,
    number: u16,
    parent: Option<u16>,
    children: std::ops::Range<u16>,
}

impl<'c> Place<'c> {
    fn of(core: &'c SimCore) -> Self {
        let (number, cores) = (core.core().get(), u32::from(core.cores()));
        let child = |nth: u16| {
            let child = u32::from(number) * u32::from(ARITY) + u32::from(nth);
            child.min(cores) as u16
        };
        Self {
            core,
            number,
            parent: number.checked_sub(1).map(|before| before / ARITY),
            children: child(1)..child(ARITY + 1),
        }
    }

    /// Which child of its parent it is.
    const fn nth(&self) -> u16 {
        (self.number - 1) % ARITY
    }

    /// Rounds that begin together: `reduce` gives the sum of what is below and the own number.
    fn rounds(&self, mut reduce: impl FnMut(u64) -> Result<u64, Failure>) -> Result<(), Failure> {
        for round in 1..=ROUNDS {
            let left = (round * PERIOD).checked_sub(self.core.cycles());
            let left = left.filter(|&left| left > 0).ok_or(Failure::Late)?;
            self.core.spend(left as u32);
            let own = u64::from(self.number) + round;
            let sum = reduce(own)?;
            if self.parent.is_none() {
                self.core.mark(DONE);
                let cores = u64::from(self.core.cores());
                if sum != cores * round + cores * (cores - 1) / 2 {
                    return Err(Failure::Data);
                }
            }
        }
        Ok(())
    }

    fn notified(&self) -> Result<(), Failure> {
        let link = Mapped::start(self.core.clone(), Session::FIRST)?;
        let mut arena = vec![0; 256 + 4 * usize::from(self.core.cores())];
        let world = World::start(link, &mut arena, WorldConfig::default())?;
        let window = world.allocate::<u64>(ARITY.into())?;
        let children = self.children.len();
        let mut request = match children {
            0 => None,
            count => Some(window.expect(0..count, Tag(1))?.times(count as u16)?),
        };
        let mut parts = vec![0; children];
        self.rounds(|own| {
            let mut sum = own;
            if let Some(request) = &mut request {
                request.start()?;
                request.wait()?;
                window.local().copy_out(0, &mut parts)?;
                sum += parts.iter().sum::<u64>();
            }
            if let Some(parent) = self.parent {
                window.put_notify(Rank::new(parent), self.nth().into(), &[sum], Tag(1))?;
            }
            Ok(sum)
        })
    }

    fn two_sided(&self) -> Result<(), Failure> {
        let open = |peer, places| Channel::open(self.core, CoreId::new(peer), Shape::LINES, places);
        // Area 0 is the parent's; behind it the children's.
        let parent = self
            .parent
            .map(|parent| open(parent, [0, 1 + usize::from(self.nth())]));
        let child = |(child, place)| open(child, [place, 0]);
        let children: Vec<_> = self.children.clone().zip(1..).map(child).collect();
        self.rounds(|own| {
            let mut sum = own;
            for child in &children {
                let mut bytes = [0; 8];
                child.receive(bytes.len(), |_, piece| bytes.copy_from_slice(piece));
                sum += u64::from_le_bytes(bytes);
            }
            if let Some(parent) = &parent {
                parent.send(&sum.to_le_bytes());
            }
            Ok(sum)
        })
    }
}
