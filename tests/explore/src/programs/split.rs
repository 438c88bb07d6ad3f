//! Programs in parts of a larger world: one or two at the same time, each in a part of its own.
//! The larger world has a window, and each rank of it tells the next one of a put meanwhile.

use std::fmt;

use flagpost::{Config, Link, Rank, Room, Tag, World};
use flagpost_common::Dice;

use super::generate::generate_of;
use super::run::run_in_part;
use super::{Program, Scalar, Wrong};

/// What the elements of such programs are.
const SCALARS: [Scalar; 2] = [Scalar::U16, Scalar::I64];

/// Memory and windows of a part.
const ROOM: Room = Room {
    bytes: 4096,
    windows: 3,
};

/// Programs in parts of a larger world.
#[derive(Clone, Debug)]
pub struct Split {
    /// The programs; their numbers are the colors.
    programs: Vec<Program>,
    /// Per rank of the larger world: its color and key, if it is in a part.
    places: Vec<Option<(usize, u32)>>,
    /// The part is made of a list, the other ranks being in none.
    listed: bool,
}

impl Split {
    /// Those of `seed`.
    pub fn generate(seed: u64) -> Self {
        let mut dice = Dice::new(seed.wrapping_mul(0x9E6C_63D0_876A_68DE));
        let programs: Vec<Program> = (0..1 + dice.below(2))
            .map(|_| generate_of(dice.roll(), &SCALARS))
            .collect();
        let mut places: Vec<Option<(usize, u32)>> = vec![None; dice.below(3)];
        for (color, program) in programs.iter().enumerate() {
            for _ in 0..program.ranks {
                let at = dice.below(places.len() + 1);
                places.insert(at, Some((color, dice.below(4) as u32)));
            }
        }
        let listed = programs.len() == 1 && dice.one_in(2);
        Self {
            programs,
            places,
            listed,
        }
    }

    /// Ranks of the larger world.
    pub fn ranks(&self) -> u16 {
        self.places.len() as u16
    }

    /// Carries out the part of `link`'s rank.
    ///
    /// # Errors
    /// [`Wrong`].
    pub fn run<L: Link>(&self, link: L) -> Result<(), Wrong> {
        let mut arena = [0; 1024];
        let world = World::start(link, &mut arena, Config::default())?;
        let place = self.places[world.rank().index()];
        let window = world.allocate::<u32>(1)?;
        let mut told = window.expect(0..1, Tag(0))?;
        told.start()?;
        let part = if self.listed {
            let all = (0..self.ranks()).rev().zip(self.places.iter().rev());
            let ranks = all.filter(|(_, place)| place.is_some());
            let ranks: Vec<Rank> = ranks.map(|(rank, _)| Rank::new(rank)).collect();
            world.part(&ranks, ROOM)?
        } else {
            let key = place.map_or(0, |(_, key)| key);
            world.split(place.map(|(color, _)| color as u32), key, ROOM)?
        };
        let (own, ranks) = (u32::from(world.rank().get()), u32::from(world.size()));
        window.put_notify(world.rank().next(world.size()), 0, &[own], Tag(0))?;
        if let (Some(link), Some((color, _))) = (part.link(), place) {
            run_in_part(&self.programs[color], link)?;
        }
        let source = told.wait()?.source;
        let (found, expected) = (window.local().get(0)?, (own + ranks - 1) % ranks);
        if (found, u32::from(source.get())) != (expected, expected) {
            return Err(Wrong::Source(source));
        }
        part.free()?;
        Ok(window.free()?)
    }
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?}, listed: {}", self.places, self.listed)?;
        self.programs.iter().try_for_each(|one| one.fmt(f))
    }
}
