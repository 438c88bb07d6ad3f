//! The shared words of a dynamic window, at each rank.

use flagpost_link::{Amo, Link, Op, Rank, Width};

use super::DynamicWindow;
use crate::Error;

/// Bytes of a cell.
const CELL: u32 = 8;

/// Where the cells lie.
#[derive(Copy, Clone, Debug)]
pub(super) struct Directory {
    regions: u16,
    ranks: u16,
}

/// A cell of the directory.
#[derive(Copy, Clone, Debug)]
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
    pub(super) fn bytes(self) -> u32 {
        self.offset(Field::Readers(self.readers()))
    }

    fn offset(self, field: Field) -> u32 {
        let regions = u32::from(self.regions);
        let cell = match field {
            Field::Count => 0,
            Field::Told => 1,
            Field::Name(region) => u32::from(region).saturating_mul(2).saturating_add(2),
            Field::Key(region) => u32::from(region).saturating_mul(2).saturating_add(3),
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

/// What a region's name cell holds: never 0.
pub(super) fn name(number: u32, bytes: u32) -> u64 {
    u64::from(number).wrapping_shl(u32::BITS) | u64::from(bytes)
}

impl<'w, L: Link, S> DynamicWindow<'w, L, S> {
    /// Changes or reads a cell at `rank`.
    pub(super) fn change(&self, rank: Rank, field: Field, amo: Amo) -> Result<u64, Error> {
        let core = &self.window.core;
        let (world, op) = (core.world, Op::new());
        let (offset, width) = (self.directory.offset(field), Directory::width(field));
        world.retry(|| world.link().amo(rank, core.key, offset, amo, width, &op))
    }

    /// Changes an own cell. One that was begun when a budget ran out comes first: nothing that is late lands on what is
    /// changed here. Readers that are taken are remembered.
    pub(super) fn own(&self, field: Field, amo: Amo) -> Result<(), Error> {
        if let Some((field, amo)) = self.begun.get() {
            self.change_own(field, amo)?;
        }
        self.change_own(field, amo)
    }

    fn change_own(&self, field: Field, amo: Amo) -> Result<(), Error> {
        let core = &self.window.core;
        let (world, op) = (core.world, &self.changing);
        let (offset, width) = (self.directory.offset(field), Directory::width(field));
        let link = world.link();
        let old = world.retry(|| link.amo(world.rank(), core.key, offset, amo, width, op));
        // BUDGET: it may have had its effect.
        let begun = op.is_under_way().then_some((field, amo));
        self.begun.set(begun);
        if let (Field::Readers(block), Ok(bits)) = (field, &old) {
            self.remember(block, *bits);
        }
        old.map(drop)
    }

    /// Ranks of a block of readers that must be told.
    fn remember(&self, block: u16, bits: u64) {
        let first = block.saturating_mul(u64::BITS as u16);
        let set = |bit: &u16| bits.wrapping_shr((*bit).into()) & 1 != 0;
        for bit in (0..u64::BITS as u16).filter(set) {
            self.to_tell.insert(first.saturating_add(bit));
        }
    }

    /// What the own `told` holds, if not `seen`.
    pub(super) fn told_since(&self, seen: u32) -> Result<Option<u32>, Error> {
        let core = &self.window.core;
        let (world, op) = (core.world, Op::new());
        let offset = self.directory.offset(Field::Told);
        world.retry(|| {
            let changed = |told| told != seen;
            world.link().watch(core.key, offset, changed, &op)
        })
    }
}
