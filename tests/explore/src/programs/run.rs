//! One rank's part of a program: its windows, and phase after phase.

use flagpost::{
    Config, DynamicOptions, EpochSlots, Error, Link, MatchVector, MatchingList, Memory, Options,
    VectorLink, World,
    epoch::Strategy,
    rma::{Bool, Complex, Placed},
};

use super::element::Element;
use super::generate::NOTICES;
use super::part::Part;
use super::pieces::{Attached, Elements};
use super::wrong::Wrong;
use super::{Made, Pieces, Program, Scalar, Signalling};

/// Carries out the part of `link`'s rank.
///
/// # Errors
/// [`Wrong`].
pub fn run<L: VectorLink>(program: &Program, link: L) -> Result<(), Wrong> {
    let mut arena = [0; 1024];
    let world = World::start(link, &mut arena, Config::default())?;
    let memories = memories(program, &world)?;
    match program.signalling {
        Signalling::Vector => with_strategy::<L, MatchVector<'_>>(program, &world, &memories, ()),
        _ => without_vectors(program, &world, &memories),
    }
}

/// [`run`] on a link without match vectors: slots stand for them.
///
/// # Errors
/// [`Wrong`].
pub fn run_without_vectors<L: Link>(program: &Program, link: L) -> Result<(), Wrong> {
    let mut arena = [0; 1024];
    let world = World::start(link, &mut arena, Config::default())?;
    let memories = memories(program, &world)?;
    without_vectors(program, &world, &memories)
}

fn without_vectors<'w, L: Link>(
    program: &Program,
    world: &'w World<'w, L>,
    memories: &'w [Memory<'w, L>],
) -> Result<(), Wrong> {
    match program.signalling {
        Signalling::List => {
            with_strategy::<L, MatchingList<'_>>(program, world, memories, program.ranks)
        }
        _ => with_strategy::<L, EpochSlots<'_>>(program, world, memories, ()),
    }
}

/// [`run`] in a part of a larger world: few kinds of elements, so that less is compiled.
pub(super) fn run_in_part<L: Link>(program: &Program, link: L) -> Result<(), Wrong> {
    let mut arena = [0; 1024];
    let world = World::start(link, &mut arena, Config::default())?;
    let memories = memories(program, &world)?;
    match program.scalar {
        Scalar::U16 => with_elements::<u16, L, EpochSlots<'_>>(program, &world, &memories, ()),
        _ => with_elements::<i64, L, MatchingList<'_>>(program, &world, &memories, program.ranks),
    }
}

/// Where the own piece begins in memory that the program has reserved.
fn base<L: Link>(world: &World<'_, L>) -> usize {
    L::LINE * (world.rank().index() % 3)
}

/// For each window that is not allocated, memory of its own.
fn memories<'w, L: Link>(
    program: &Program,
    world: &'w World<'w, L>,
) -> Result<Vec<Memory<'w, L>>, Error> {
    let own = |made: &&Made| !matches!(made.pieces, Pieces::Allocated);
    let windows = program.windows.iter().filter(own);
    let bytes = windows.map(|made| base(world) + made.len * size_of::<u64>());
    bytes.map(|bytes| world.reserve(bytes)).collect()
}

fn with_strategy<'w, L: Link, S: Strategy<'w, L>>(
    program: &Program,
    world: &'w World<'w, L>,
    memories: &'w [Memory<'w, L>],
    options: S::Options,
) -> Result<(), Wrong> {
    match program.scalar {
        Scalar::U8 => with_elements::<u8, L, S>(program, world, memories, options),
        Scalar::U16 => with_elements::<u16, L, S>(program, world, memories, options),
        Scalar::U32 => with_elements::<u32, L, S>(program, world, memories, options),
        Scalar::U64 => with_elements::<u64, L, S>(program, world, memories, options),
        Scalar::I8 => with_elements::<i8, L, S>(program, world, memories, options),
        Scalar::I16 => with_elements::<i16, L, S>(program, world, memories, options),
        Scalar::I32 => with_elements::<i32, L, S>(program, world, memories, options),
        Scalar::I64 => with_elements::<i64, L, S>(program, world, memories, options),
        Scalar::F32 => with_elements::<f32, L, S>(program, world, memories, options),
        Scalar::F64 => with_elements::<f64, L, S>(program, world, memories, options),
        Scalar::Bool => with_elements::<Bool, L, S>(program, world, memories, options),
        Scalar::Complex => with_elements::<Complex<f32>, L, S>(program, world, memories, options),
        Scalar::Placed => with_elements::<Placed<i32>, L, S>(program, world, memories, options),
    }
}

/// A window of a program.
enum Opened<'w, T, L, S> {
    Elements(Elements<'w, T, L, S>),
    Attached(Attached<'w, T, L, S>),
}

fn with_elements<'w, T: Element, L: Link, S: Strategy<'w, L>>(
    program: &Program,
    world: &'w World<'w, L>,
    memories: &'w [Memory<'w, L>],
    strategy: S::Options,
) -> Result<(), Wrong> {
    let (mut memories, unit) = (memories.iter(), size_of::<T>());
    let events = world.events(NOTICES)?;
    let mut windows = Vec::new();
    for &Made { len, pieces, model } in &program.windows {
        let options = Options { strategy, model };
        let memory = match pieces {
            Pieces::Allocated => None,
            Pieces::Created | Pieces::Attached { .. } => memories.next(),
        };
        windows.push(match (memory, pieces) {
            (Some(memory), Pieces::Attached { validation, kept }) => {
                let options = DynamicOptions {
                    regions: 2,
                    kept,
                    validation,
                };
                let mut dynamic = world.dynamic_with::<S>(options, strategy)?;
                dynamic.set_num_notify(NOTICES)?;
                let attached = Attached::new(world, dynamic, memory, base(world))?;
                Opened::Attached(attached)
            }
            (Some(memory), _) => {
                let range = base(world)..base(world) + len * unit;
                let mut window = world.create_with::<T, S>(memory, range, unit, options)?;
                window.set_num_notify(NOTICES)?;
                Opened::Elements(Elements(window))
            }
            (None, _) => {
                let mut window = world.allocate_with::<T, S>(len, options)?;
                window.set_num_notify(NOTICES)?;
                Opened::Elements(Elements(window))
            }
        });
    }
    for (number, phase) in program.phases.iter().enumerate() {
        match &windows[phase.window] {
            Opened::Elements(elements) => {
                Part::new((world, &events), elements, number, phase).run()?
            }
            Opened::Attached(attached) => {
                Part::new((world, &events), attached, number, phase).run()?
            }
        }
    }
    world.barrier()?;
    for window in windows {
        match window {
            Opened::Elements(Elements(window)) => window.free()?,
            Opened::Attached(attached) => attached.free()?,
        }
    }
    Ok(events.free()?)
}
