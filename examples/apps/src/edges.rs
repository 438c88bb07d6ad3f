//! Edges between neighbours: in each step a rank sends something in each direction, and gets what
//! its neighbours send in the opposite ones.
//!
//! Direction `d` and `d ^ 1` are opposite. What travels in direction `d` comes into inbox `d` of
//! its target.
//!
//! # Why an inbox can be written again
//! There are two of each, for odd and even steps. A rank that writes into a neighbour's inbox of
//! step n has got that neighbour's edge of step n - 1. That one was sent after the neighbour had
//! read its inboxes of step n - 2.

use flagpost::{Error, Link, Rank, Request, Rma as _, Tag, Window, epoch::Assert};

use crate::messages::Mailboxes;
use crate::{Variant, Wrong};

/// The edges of a rank, in `D` directions.
#[derive(Debug)]
pub struct Edges<'a, 'w, L: Link, const D: usize> {
    window: &'a Window<'w, f64, L>,
    variant: Variant,
    /// Whom this rank sends to in each direction, if there is one.
    to: [Option<Rank>; D],
    /// These, each once, in order; and how many they are.
    group: [Rank; D],
    neighbours: usize,
    /// Elements of an edge, at most.
    len: usize,
    step: u32,
    /// Requests for all edges of an even step, and of an odd one: notifications are counted.
    all: [Option<Request<'a, L>>; 2],
}

/// What a rank sends in each direction, or gets from it.
pub type Sent<'s, const D: usize> = [&'s [f64]; D];

/// See [`Sent`].
pub type Got<'s, const D: usize> = [&'s mut [f64]; D];

impl<'a, 'w, L: Link, const D: usize> Edges<'a, 'w, L, D> {
    /// Elements that the window must have on each rank, for edges of at most `len`.
    pub const fn window_len(len: usize) -> usize {
        2 * D * len
    }

    /// Edges to these neighbours.
    ///
    /// # Errors
    /// Those of [`Window::expect`].
    pub fn new(
        window: &'a Window<'w, f64, L>,
        variant: Variant,
        to: [Option<Rank>; D],
        len: usize,
    ) -> Result<Self, Error> {
        let (mut group, mut neighbours) = ([Rank::new(0); D], 0);
        for rank in to.into_iter().flatten() {
            if !group[..neighbours].contains(&rank) {
                group[neighbours] = rank;
                neighbours += 1;
            }
        }
        group[..neighbours].sort_unstable();
        let mut edges = Self {
            window,
            variant,
            to,
            group,
            neighbours,
            len,
            step: 0,
            all: [None, None],
        };
        let count = edges.incoming().count();
        if variant == Variant::Notified && count > 0 {
            let all = |step: usize| {
                let inboxes = step * D * len..(step + 1) * D * len;
                window
                    .expect(inboxes, Tag(step as u32))?
                    .times(count as u16)
            };
            edges.all = [Some(all(0)?), Some(all(1)?)];
        }
        Ok(edges)
    }

    /// Where the inboxes of this step begin.
    const fn inboxes(&self) -> usize {
        (self.step % 2) as usize * D * self.len
    }

    /// Where inbox `direction` of this step is.
    const fn inbox(&self, direction: usize) -> usize {
        self.inboxes() + direction * self.len
    }

    /// Sends `edges`, and waits for those of the neighbours.
    ///
    /// # Errors
    /// Any of Flagpost.
    pub fn exchange(&mut self, edges: Sent<'_, D>, mut got: Got<'_, D>) -> Result<(), Wrong> {
        match self.variant {
            Variant::Messages => self.by_messages(edges, &mut got)?,
            Variant::Fence => {
                let fence = self.window.fence(Assert::empty())?;
                for (direction, to, edge) in self.outgoing(edges) {
                    fence.put(to, self.inbox(direction), edge)?;
                }
                fence.end()?;
                self.take(&mut got)?;
            }
            Variant::Pscw => {
                let group = &self.group[..self.neighbours];
                let exposure = self.window.post(group)?;
                let access = self.window.start(group)?;
                for (direction, to, edge) in self.outgoing(edges) {
                    access.put(to, self.inbox(direction), edge)?;
                }
                access.complete()?;
                exposure.wait()?;
                self.take(&mut got)?;
            }
            _ => {
                let parity = self.step % 2;
                let mut all = self.all[parity as usize].take();
                if let Some(all) = &mut all {
                    all.start()?;
                }
                for (direction, to, edge) in self.outgoing(edges) {
                    let at = self.inbox(direction);
                    self.window.put_notify(to, at, edge, Tag(parity))?;
                }
                if let Some(all) = &mut all {
                    all.wait()?;
                }
                self.all[parity as usize] = all;
                self.take(&mut got)?;
            }
        }
        self.step += 1;
        Ok(())
    }

    fn by_messages(&self, edges: Sent<'_, D>, got: &mut Got<'_, D>) -> Result<(), Error> {
        let mailboxes = Mailboxes::new(self.window, 2 * D as u32, self.len);
        let lane = |direction: usize| 2 * direction as u32 + self.step % 2;
        for (direction, to, edge) in self.outgoing(edges) {
            mailboxes.send(to, lane(direction), edge, self.step < 2)?;
        }
        for direction in self.incoming() {
            if let Some(from) = self.to[direction ^ 1] {
                mailboxes.receive(from, lane(direction), got[direction])?;
            }
        }
        Ok(())
    }

    /// Copies the edges that have come out of their inboxes.
    fn take(&self, got: &mut Got<'_, D>) -> Result<(), Error> {
        for direction in self.incoming() {
            let at = self.inbox(direction);
            self.window.local().copy_out(at, got[direction])?;
        }
        Ok(())
    }

    /// The directions in which there is a neighbour, with it and what it gets.
    fn outgoing<'s>(&self, edges: Sent<'s, D>) -> impl Iterator<Item = (usize, Rank, &'s [f64])> {
        let to = self.to;
        (0..D).filter_map(move |direction| Some((direction, to[direction]?, edges[direction])))
    }

    /// The directions in which edges come here.
    fn incoming(&self) -> impl Iterator<Item = usize> + use<L, D> {
        let to = self.to;
        (0..D).filter(move |direction| to[direction ^ 1].is_some())
    }
}
