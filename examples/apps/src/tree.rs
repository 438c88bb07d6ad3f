//! A tree of ranks with sixteen children each: a number per rank is added up at rank 0.
//!
//! ```text
//!   rank r has the children 16 r + 1 ..= 16 r + 16, as far as there are ranks;
//!   a leaf sends what it has, an inner rank waits for all its children, adds, and sends
//! ```
//! | variant | a child sends by | its parent waits by |
//! |---|---|---|
//! | `messages` | a send | a receive from each child in turn |
//! | `fence` | [`World::reduce`], the library's own | the same |
//! | `pscw` | an epoch | one exposure to all its children |
//! | `notified` | a notified put | one request that counts its children |
//!
//! Work: one addition per rank and round. Source: [NA] VI-B, its Fig. 4c.
//!
//! [NA]: flagpost#sources

use core::ops::Range;

use flagpost::{Error, Link, Rank, Request, Rma as _, Tag, Window, World};

use crate::messages::Mailboxes;
use crate::{Job, Outcome, Program, Size, Variant, Wrong, check, timed};

/// Children of a rank, at most.
const ARITY: u16 = 16;

/// Its row of the table.
pub fn program<L: Link>() -> Program<L> {
    Program {
        name: "tree",
        unit: "addition",
        variants: &Variant::USUAL,
        published: None,
        small: Size { side: 1, steps: 3 },
        memory: |_, _| 0,
        run,
    }
}

/// A rank's place in the tree.
#[derive(Clone, Debug)]
pub struct Place {
    /// The rank.
    pub me: Rank,
    /// The rank that it sends to.
    pub parent: Option<Rank>,
    children: Range<u16>,
}

impl Place {
    /// The place of `me` among `size` ranks.
    pub fn of(me: Rank, size: u16) -> Self {
        let child = |nth: u16| me.get().saturating_mul(ARITY).saturating_add(nth).min(size);
        Self {
            me,
            parent: me
                .get()
                .checked_sub(1)
                .map(|before| Rank::new(before / ARITY)),
            children: child(1)..child(ARITY + 1),
        }
    }

    /// Which child of its parent it is.
    pub const fn nth(&self) -> usize {
        (self.me.get().saturating_sub(1) % ARITY) as usize
    }

    /// Its children, each with its number.
    pub fn children(&self) -> impl Iterator<Item = (Rank, usize)> {
        self.children.clone().map(Rank::new).zip(0..)
    }
}

/// Steps: rounds.
fn run<L: Link>(world: &World<'_, L>, job: Job<'_>) -> Result<Outcome, Wrong> {
    let window = window(world)?;
    let mut tree = Tree::new(&window, job.variant)?;
    let (ranks, mut sum) = (f64::from(world.size()), 0.0);
    let outcome = timed(world, || {
        for round in 0..job.size.steps {
            let own = f64::from(tree.place.me.get()) + f64::from(round);
            sum = tree.add_up(own, round == 0)?;
            if tree.place.parent.is_none() {
                let expected = ranks * f64::from(round) + ranks * (ranks - 1.0) / 2.0;
                check("sum", sum, expected)?;
            }
            (job.compute)(tree.place.children.len() as u64);
            // The next round begins when this one has ended.
            world.barrier()?;
        }
        Ok(())
    })?;
    Ok(Outcome {
        work: u64::from(world.size()) * u64::from(job.size.steps),
        ..outcome
    })
}

/// A window with an element for each child.
///
/// # Errors
/// Those of [`World::allocate`].
pub fn window<'w, L: Link>(world: &'w World<'w, L>) -> Result<Window<'w, f64, L>, Error> {
    world.allocate(ARITY.into())
}

/// A rank of the tree.
#[derive(Debug)]
pub struct Tree<'a, 'w, L: Link> {
    window: &'a Window<'w, f64, L>,
    variant: Variant,
    place: Place,
    /// One request for all children: of notified access alone.
    arrived: Option<Request<'a, L>>,
}

impl<'a, 'w, L: Link> Tree<'a, 'w, L> {
    /// This rank of the tree, over a [`window`].
    ///
    /// # Errors
    /// Those of [`Window::expect`].
    pub fn new(window: &'a Window<'w, f64, L>, variant: Variant) -> Result<Self, Error> {
        let world = window.world();
        let place = Place::of(world.rank(), world.size());
        let count = place.children.len();
        let arrived = match variant == Variant::Notified && count > 0 {
            true => Some(window.expect(0..count, Tag(1))?.times(count as u16)?),
            false => None,
        };
        Ok(Self {
            window,
            variant,
            place,
            arrived,
        })
    }

    /// The sum of what is below this rank, and its own. Sends it to the parent. `first`: in the
    /// first round.
    ///
    /// # Errors
    /// Those of the calls by which the variant sends and waits.
    pub fn add_up(&mut self, own: f64, first: bool) -> Result<f64, Error> {
        let (window, place) = (self.window, &self.place);
        let mut sum = own;
        let mut parts = [0.0; ARITY as usize];
        let parts = &mut parts[..place.children.len()];
        match self.variant {
            Variant::Fence => {
                let mut all = [own];
                window
                    .world()
                    .reduce(Rank::new(0), &mut all, |a: f64, b| a + b)?;
                return Ok(all[0]);
            }
            Variant::Messages => {
                let mailboxes = Mailboxes::new(window, ARITY.into(), 1);
                for (child, nth) in place.children() {
                    mailboxes.receive(child, nth as u32, &mut parts[nth..=nth])?;
                }
                sum += parts.iter().sum::<f64>();
                if let Some(parent) = place.parent {
                    mailboxes.send(parent, place.nth() as u32, &[sum], first)?;
                }
            }
            Variant::Pscw => {
                let mut origins = [Rank::new(0); ARITY as usize];
                for (child, nth) in place.children() {
                    origins[nth] = child;
                }
                let exposure = window.post(&origins[..place.children.len()])?;
                exposure.wait()?;
                window.local().copy_out(0, parts)?;
                sum += parts.iter().sum::<f64>();
                if let Some(parent) = place.parent {
                    let access = window.start([parent])?;
                    access.put(parent, place.nth(), &[sum])?;
                    access.complete()?;
                }
            }
            _ => {
                if let Some(all) = &mut self.arrived {
                    all.start()?;
                    all.wait()?;
                    window.local().copy_out(0, parts)?;
                    sum += parts.iter().sum::<f64>();
                }
                if let Some(parent) = place.parent {
                    window.put_notify(parent, place.nth(), &[sum], Tag(1))?;
                }
            }
        }
        Ok(sum)
    }
}
