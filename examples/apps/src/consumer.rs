//! Buffers that a consumer manages: each rank makes data in buffers of its own, and the next rank
//! fetches them.
//!
//! The consumer has no inbox and takes data when it wants them. Its notified get is all the
//! synchronization that the producer needs: the notification says that the buffer has been read.
//! There are two buffers, so that one is filled while the other is read.
//!
//! ```text
//!   producer                     consumer
//!   fill buffer n % 2
//!     │ notify(FULL) ──────────────► │
//!     │            ◄──────────── get_notify(EMPTY)
//!   fill it again                  use the data
//! ```
//! | variant | data go by | a buffer may be filled again after |
//! |---|---|---|
//! | `messages` | a send into the consumer's mailbox | the send: there is a copy |
//! | `pscw` | a get in the consumer's epoch | the exposure's wait |
//! | `notified` | a notified get | the notification that came with the get |
//!
//! Each rank is the producer of its next rank, and the consumer of its previous one. Work: an
//! element handed on. Source: [NA] VI-B, on notified reads.
//!
//! [NA]: flagpost#sources

use flagpost::epoch::pscw::Exposure;
use flagpost::{Error, Link, Rank, Rma as _, Tag, Window, World};

use crate::messages::Mailboxes;
use crate::{Compute, Job, Outcome, Program, Size, Variant, Wrong, check, product, take, timed};

/// Its row of the table.
pub fn program<L: Link>() -> Program<L> {
    Program {
        name: "consumer",
        unit: "element",
        variants: &[Variant::Messages, Variant::Pscw, Variant::Notified],
        published: None,
        small: Size { side: 20, steps: 7 },
        memory: |_, size| product([3, size.side as usize]),
        run,
    }
}

/// Buffers of a producer.
const BUFFERS: usize = 2;

/// The notice of a producer: this buffer is full.
const FULL: Tag = Tag(0);

/// The notice of a consumer's get: this buffer has been read.
const EMPTY: Tag = Tag(1);

/// What a rank works with.
struct Place<'m> {
    me: Rank,
    /// The rank whose data it uses.
    producer: Rank,
    /// The rank that uses its data.
    consumer: Rank,
    /// Data on their way into a buffer, and out of one.
    data: &'m mut [f64],
    /// What the consumer makes of all data.
    used: &'m mut [f64],
    compute: Compute<'m>,
}

impl Place<'_> {
    fn consume(&mut self) {
        consume(self.data, self.used);
        (self.compute)(2 * self.data.len() as u64);
    }
}

/// Side: elements of a buffer. Steps: how many buffers each rank fills.
fn run<L: Link>(world: &World<'_, L>, job: Job<'_>) -> Result<Outcome, Wrong> {
    let (Size { side, steps }, mut memory, compute) = (job.size, job.memory, job.compute);
    let len = side as usize;
    let (used, expected) = (take(&mut memory, len)?, take(&mut memory, len)?);
    used.fill(0.0);
    expected.fill(0.0);
    let mut place = Place {
        me: world.rank(),
        producer: world.rank().prev(world.size()),
        consumer: world.rank().next(world.size()),
        data: take(&mut memory, len)?,
        used,
        compute,
    };
    let outcome = match job.variant {
        Variant::Messages => {
            let window = world.allocate(BUFFERS * len)?;
            timed(world, || Ok(by_messages(&window, &mut place, steps)?))?
        }
        // Each buffer is a window: no two share a line.
        Variant::Pscw => {
            let buffers = [world.allocate(len)?, world.allocate(len)?];
            timed(world, || Ok(by_epochs(&buffers, &mut place, steps)?))?
        }
        _ => {
            let buffers = [world.allocate(len)?, world.allocate(len)?];
            timed(world, || Ok(by_notified_gets(&buffers, &mut place, steps)?))?
        }
    };
    for step in 0..steps {
        produce(place.producer, step, place.data);
        consume(place.data, expected);
    }
    for (&found, &expected) in place.used.iter().zip(&*expected) {
        check("element", found, expected)?;
    }
    Ok(Outcome {
        work: u64::from(world.size()) * u64::from(side) * u64::from(steps),
        ..outcome
    })
}

fn by_messages<L: Link>(
    window: &Window<'_, f64, L>,
    place: &mut Place<'_>,
    steps: u32,
) -> Result<(), Error> {
    let mailboxes = Mailboxes::new(window, BUFFERS as u32, place.data.len());
    for step in 0..steps {
        let lane = step % BUFFERS as u32;
        produce(place.me, step, place.data);
        mailboxes.send(place.consumer, lane, place.data, step < BUFFERS as u32)?;
        mailboxes.receive(place.producer, lane, place.data)?;
        place.consume();
    }
    Ok(())
}

fn by_epochs<L: Link>(
    buffers: &[Window<'_, f64, L>; BUFFERS],
    place: &mut Place<'_>,
    steps: u32,
) -> Result<(), Error> {
    let mut exposures = [None, None];
    for step in 0..steps {
        let at = step as usize % BUFFERS;
        let buffer = &buffers[at];
        exposures[at].take().map_or(Ok(()), Exposure::wait)?;
        produce(place.me, step, place.data);
        buffer.local().copy_in(0, place.data)?;
        exposures[at] = Some(buffer.post([place.consumer])?);

        let access = buffer.start([place.producer])?;
        access.get(place.producer, 0, place.data)?;
        access.complete()?;
        place.consume();
    }
    for exposure in exposures.into_iter().flatten() {
        exposure.wait()?;
    }
    Ok(())
}

fn by_notified_gets<L: Link>(
    buffers: &[Window<'_, f64, L>; BUFFERS],
    place: &mut Place<'_>,
    steps: u32,
) -> Result<(), Error> {
    let (producer, consumer) = (place.producer, place.consumer);
    let full = |at: usize| buffers[at].expect(0..0, FULL)?.from(producer);
    let empty = |at: usize| {
        buffers[at]
            .expect(0..buffers[at].len(), EMPTY)?
            .from(consumer)
    };
    let (mut full, mut empty) = ([full(0)?, full(1)?], [empty(0)?, empty(1)?]);
    for step in 0..steps {
        let at = step as usize % BUFFERS;
        let (buffer, full, empty) = (&buffers[at], &mut full[at], &mut empty[at]);
        if empty.is_started() {
            empty.wait()?;
        }
        produce(place.me, step, place.data);
        buffer.local().copy_in(0, place.data)?;
        empty.start()?; // the consumer sees what was copied in before
        buffer.notify(consumer, FULL)?;

        full.start()?;
        full.wait()?;
        buffer.get_notify(producer, 0, place.data, EMPTY)?;
        place.consume();
    }
    for empty in empty.iter_mut().filter(|empty| empty.is_started()) {
        empty.wait()?;
    }
    Ok(())
}

/// Makes the data of `producer`'s step: anything.
fn produce(producer: Rank, step: u32, data: &mut [f64]) {
    let seed = u32::from(producer.get()) << 16 ^ step;
    for (value, index) in data.iter_mut().zip(0_u32..) {
        *value = f64::from((seed.wrapping_add(index << 8)).wrapping_mul(0x9E37_79B9) >> 8);
    }
}

/// Uses data, so that each step leaves its mark.
fn consume(data: &[f64], used: &mut [f64]) {
    for (used, value) in used.iter_mut().zip(data) {
        *used = *used * 0.5 + value;
    }
}
