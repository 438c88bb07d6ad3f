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

use flagpost::{Rank, World};
use flagpost_apps::tree::{Place, Tree, window};
use flagpost_common::median;
use flagpost_hal::{Clock as _, CoreId, Topology as _};
use flagpost_sim::{Latencies, Report, SimCore};

use crate::micro::Row;
use crate::two_sided::{Channel, Shape};
use crate::{Chip, Failure, in_world, run};

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

/// Cycles from the common beginning until core 0 has the sum.
///
/// # Errors
/// The account of a run that failed.
pub fn measure(cores: u16, latencies: Latencies) -> Result<Row, Box<Report>> {
    let memory = (16 << 10) + 128 * u32::from(cores);
    let cycles = |program: fn(SimCore) -> Result<(), Failure>| {
        let report = run(crate::scc(cores, memory, latencies), program)?;
        let ends = (1..).zip(&report.marks);
        let cycles = ends.map(|(round, mark)| mark.cycles - round * PERIOD);
        Ok::<u64, Box<Report>>(median(cycles.skip(WARM).map(|cycles| cycles as f64)) as u64)
    };
    Ok(vec![
        (
            "notified",
            cycles(|core| in_world(core.clone(), |world| notified(&core, world)))?,
        ),
        ("two-sided", cycles(|core| two_sided(&core))?),
    ])
}

/// Rounds that begin together: `reduce` gives the sum of what is below and the own number.
fn rounds(
    core: &SimCore,
    mut reduce: impl FnMut(f64) -> Result<f64, Failure>,
) -> Result<(), Failure> {
    let (me, cores) = (core.core().get(), f64::from(core.cores()));
    for round in 1..=ROUNDS {
        let left = (round * PERIOD).checked_sub(core.cycles());
        let left = left.filter(|&left| left > 0).ok_or(Failure::Late)?;
        core.spend(left as u32);
        let sum = reduce(f64::from(me) + round as f64)?;
        if me == 0 {
            core.mark(DONE);
            if sum != cores * round as f64 + cores * (cores - 1.0) / 2.0 {
                return Err(Failure::Data);
            }
        }
    }
    Ok(())
}

fn notified(core: &SimCore, world: &World<'_, Chip>) -> Result<(), Failure> {
    let window = window(world)?;
    let mut tree = Tree::new(&window, flagpost_apps::Variant::Notified)?;
    rounds(core, |own| Ok(tree.add_up(own, false)?))
}

fn two_sided(core: &SimCore) -> Result<(), Failure> {
    let place = Place::of(Rank::new(core.core().get()), core.cores());
    let open =
        |peer: Rank, places| Channel::open(core, CoreId::new(peer.get()), Shape::LINES, places);
    // Area 0 is the parent's; the children's lie behind it.
    let parent = place
        .parent
        .map(|parent| open(parent, [0, 1 + place.nth()]));
    let child = |(child, nth)| open(child, [1 + nth, 0]);
    let children: Vec<_> = place.children().map(child).collect();
    rounds(core, |own| {
        let mut sum = own;
        for child in &children {
            let mut bytes = [0; 8];
            child.receive(bytes.len(), |_, piece| bytes.copy_from_slice(piece));
            sum += f64::from_le_bytes(bytes);
        }
        if let Some(parent) = &parent {
            parent.send(&sum.to_le_bytes());
        }
        Ok(sum)
    })
}
