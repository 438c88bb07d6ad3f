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

    /// Changes or reads an own cell.
    pub(super) fn own(&self, field: Field, amo: Amo) -> Result<u64, Error> {
        self.change(self.window.core.world.rank(), field, amo)
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
