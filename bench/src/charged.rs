//! A strategy that charges for software.
//!
//! The simulator charges for accesses, not for instructions. What a library executes besides
//! (translating ranks, computing addresses, the calls themselves) is charged here: a number of core
//! cycles for each target that a loop of `post` or `complete` treats, whatever the number of
//! attempts that its lock takes.

use std::cell::Cell;

use flagpost::{Error, Group, Missing, Rank, Waiting, World, epoch::Strategy};
use flagpost_link::Refusal;
use flagpost_mapped::Mapped;
use flagpost_sim::SimCore;

type Link = Mapped<SimCore>;

/// `S`, and some core cycles for each `post`, `retire` and `complete` that it carries out.
#[derive(Debug)]
pub struct Charged<S> {
    strategy: S,
    cycles: u32,
    /// An attempt has been charged that was refused for the moment.
    again: Cell<bool>,
}

impl<S> Charged<S> {
    fn charge(
        &self,
        link: &Link,
        step: impl FnOnce() -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        if !self.again.replace(true) && self.cycles > 0 {
            link.machine().spend(self.cycles);
        }
        step().inspect(|()| self.again.set(false))
    }
}

impl<'w, S: Strategy<'w, Link>> Strategy<'w, Link> for Charged<S> {
    /// Cycles, and the strategy's own.
    type Options = (u32, S::Options);

    const FULL: Waiting = S::FULL;

    fn prepare(world: &'w World<'w, Link>, options: Self::Options) -> Result<Self, Error> {
        let (cycles, options) = options;
        Ok(Self {
            strategy: S::prepare(world, options)?,
            cycles,
            again: Cell::new(false),
        })
    }

    fn clear(&self, world: &World<'w, Link>) -> Result<(), Error> {
        self.strategy.clear(world)
    }

    fn discard(&self, world: &World<'w, Link>) {
        self.strategy.discard(world);
    }

    fn offer(&self) -> u32 {
        self.strategy.offer()
    }

    fn admitted(&self, target: Rank) -> bool {
        self.strategy.admitted(target)
    }

    fn posted(&self, link: &Link, target: Rank) -> Result<bool, Refusal> {
        self.strategy.posted(link, target)
    }

    fn retire(&self, link: &Link, target: Rank) -> Result<(), Refusal> {
        self.charge(link, || self.strategy.retire(link, target))
    }

    fn order(&self, link: &Link) -> Result<(), Refusal> {
        self.strategy.order(link)
    }

    fn complete(&self, link: &Link, target: Rank) -> Result<(), Refusal> {
        self.charge(link, || self.strategy.complete(link, target))
    }

    fn expect(&self, link: &Link, origins: &Group<'_>) -> Result<(), Refusal> {
        self.strategy.expect(link, origins)
    }

    fn post(&self, link: &Link, origin: Rank, nth: u16) -> Result<(), Refusal> {
        self.charge(link, || self.strategy.post(link, origin, nth))
    }

    fn completed(
        &self,
        link: &Link,
        origins: &Group<'_>,
        done: &Cell<u16>,
    ) -> Result<bool, Refusal> {
        self.strategy.completed(link, origins, done)
    }

    fn missing(&self, link: &Link, origins: &Group<'_>, done: u16) -> Missing {
        self.strategy.missing(link, origins, done)
    }
}
