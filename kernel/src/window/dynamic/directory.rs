//! The shared words of a dynamic window, at each rank. The owner writes down there which memory has
//! which name; peers read it, and note that they keep a copy. Every word is a cell, which is
//! changed and read in one step. [`super`] says which rank changes what.

use core::cell::Cell;

use flagpost_link::{Amo, Key, Link, Rank, Width};

use super::DynamicWindow;
use crate::Error;

/// Bytes of a cell.
const CELL: usize = 8;

/// Where the cells lie.
#[derive(Copy, Clone, Debug)]
pub(super) struct Directory {
    regions: u16,
    ranks: u16,
}

/// The subject of an attach or a detach: a region, for some memory.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Attach(u16, Key),
    Detach(u16, Key),
}

/// A cell of the directory.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Field {
    /// Detaches so far.
    Count,
    /// How often peers have said that a descriptor is out of date.
    Told,
    /// Name of a region.
    Name(u16),
    /// Key of a region.
    Key(u16),
    /// A block of 64 ranks that keep descriptors.
    Readers(u16),
}

impl Directory {
    pub(super) fn new(regions: u16, ranks: u16) -> Self {
        Self { regions, ranks }
    }

    /// Blocks of readers.
    pub(super) fn readers(self) -> u16 {
        self.ranks.div_ceil(u64::BITS as u16)
    }

    pub(super) fn regions(self) -> u16 {
        self.regions
    }

    /// Bytes of all cells.
    pub(super) fn bytes(self) -> usize {
        self.offset(Field::Readers(self.readers()))
    }

    fn offset(self, field: Field) -> usize {
        let regions = usize::from(self.regions);
        let cell = match field {
            Field::Count => 0,
            Field::Told => 1,
            Field::Name(region) => usize::from(region).saturating_mul(2).saturating_add(2),
            Field::Key(region) => usize::from(region).saturating_mul(2).saturating_add(3),
            Field::Readers(block) => regions
                .saturating_mul(2)
                .saturating_add(2)
                .saturating_add(block.into()),
        };
        cell.saturating_mul(CELL)
    }

    fn width(field: Field) -> Width {
        match field {
            Field::Count | Field::Told | Field::Key(_) => Width::Half,
            Field::Name(_) | Field::Readers(_) => Width::Whole,
        }
    }
}

/// The value of a region's name cell: never 0.
pub(super) fn name(number: u32, bytes: u32) -> u64 {
    u64::from(number).wrapping_shl(u32::BITS) | u64::from(bytes)
}

impl<'w, L: Link, S> DynamicWindow<'w, L, S> {
    /// Changes or reads a cell at `rank`.
    pub(super) fn change(&self, rank: Rank, field: Field, amo: Amo) -> Result<u64, Error> {
        let core = &self.window.core;
        let world = core.world;
        let (offset, width) = (self.directory.offset(field), Directory::width(field));
        world
            .wait()
            .ask(|op| world.link().amo(rank, core.own.key, offset, amo, width, op))
    }

    /// Changes a cell of this rank.
    pub(super) fn own(&self, field: Field, amo: Amo) -> Result<(), Error> {
        self.set(self.window.core.world.rank(), field, amo)
    }

    /// Changes a cell at `rank`, once. One that was begun when a budget ran out comes first:
    /// nothing that is late lands on what is changed here. If that was this one, it is done.
    /// Readers that are taken are remembered.
    pub(super) fn set(&self, rank: Rank, field: Field, amo: Amo) -> Result<(), Error> {
        let this = (rank, field, amo);
        match self.begun.get() {
            Some(begun) if begun == this => self.go_on(this),
            Some(begun) => self.go_on(begun).and_then(|()| self.go_on(this)),
            None => self.go_on(this),
        }
    }

    fn go_on(&self, change: (Rank, Field, Amo)) -> Result<(), Error> {
        let (rank, field, amo) = change;
        let core = &self.window.core;
        let (world, op) = (core.world, &self.changing);
        let (offset, width) = (self.directory.offset(field), Directory::width(field));
        let old = world
            .wait()
            .retry(|| world.link().amo(rank, core.own.key, offset, amo, width, op));
        // BUDGET: it may have had its effect.
        let begun = matches!(old, Err(Error::Timeout(_))) && op.is_under_way();
        self.begun.set(begun.then_some(change));
        if let (Field::Readers(block), Ok(bits)) = (field, &old) {
            self.remember(block, *bits);
        }
        old.map(drop)
    }

    /// Does step `number`, unless as many have been `done` by an earlier call of the same attach or
    /// detach.
    pub(super) fn step(
        done: &Cell<u16>,
        number: u16,
        run: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Error> {
        if number >= done.get() {
            run()?;
            done.set(number.saturating_add(1));
        }
        Ok(())
    }

    /// Attach or detach `change` of a region begins, or continues where its budget ran out.
    pub(super) fn enter(&self, change: Change) {
        if self.change.replace(Some(change)) != Some(change) {
            self.named.set(0);
            self.outdated.set(0);
        }
    }

    /// It is done.
    pub(super) fn leave(&self) {
        self.change.set(None);
    }

    /// Ranks of a block of readers that must be told.
    fn remember(&self, block: u16, bits: u64) {
        let first = block.saturating_mul(u64::BITS as u16);
        let set = |bit: &u16| bits.wrapping_shr((*bit).into()) & 1 != 0;
        for bit in (0..u64::BITS as u16).filter(set) {
            self.to_tell.insert(first.saturating_add(bit));
        }
    }

    /// The value of this rank's `told`, if not `seen`.
    pub(super) fn told_since(&self, seen: u32) -> Result<Option<u32>, Error> {
        let core = &self.window.core;
        let world = core.world;
        let offset = self.directory.offset(Field::Told);
        world.wait().ask(|op| {
            let changed = |told| told != seen;
            world.link().watch(core.own.key, offset, changed, op)
        })
    }
}
