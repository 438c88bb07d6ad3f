//! What was taken is given back. Each maker is called while one resource is nearly used up: nothing
//! is left of it, then a little more each time, so that each of its steps is refused in turn, until
//! it succeeds. After each call, failed or freed, as much of everything can be taken as before.

use flagpost::{DynamicOptions, Error, Events, Link, MatchingList, Memory, Part, Room, World};
use flagpost_link::{Given, Place, Refusal, Slots};
use flagpost_sim::Wire;

use crate::{costs::run, network};

/// A maker: what it makes, of the world or over this memory, is given back.
type Maker<L> = for<'w> fn(&'w World<'w, L>, &'w Memory<'w, L>) -> Result<(), Error>;

/// More words, or bytes, than are left of anything here.
const MANY: u32 = 1 << 16;

/// The most of each resource that can be taken in one piece.
#[derive(Debug, PartialEq, Eq)]
struct Stock {
    bytes: u32,
    /// How many pieces of memory.
    pieces: usize,
    slots: u32,
    windows: u32,
    /// Of the arena.
    words: u32,
}

/// The largest number that can be taken, if `take` gives it back.
fn most(mut take: impl FnMut(u32) -> bool) -> u32 {
    let (mut fits, mut beyond) = (0, MANY);
    while beyond - fits > 1 {
        let middle = u32::midpoint(fits, beyond);
        if take(middle) {
            fits = middle;
        } else {
            beyond = middle;
        }
    }
    fits
}

fn part<'w, L: Link>(world: &'w World<'_, L>, windows: u32) -> Result<Part<'w, L>, Error> {
    let windows = u16::try_from(windows).unwrap_or(u16::MAX);
    world.split(None, 0, Room { bytes: 0, windows })
}

impl Stock {
    fn of<L: Link>(world: &World<'_, L>) -> Self {
        let link = world.link();
        let bytes = |count| link.allocate(count as usize, Place::Own);
        let slots = |count| link.allocate_slots(Slots::Count(count));
        let pieces: Vec<_> = std::iter::from_fn(|| bytes(1).ok()).collect();
        pieces.iter().for_each(|key| link.withdraw(*key));
        Self {
            bytes: most(|count| bytes(count).map(|key| link.withdraw(key)).is_ok()),
            pieces: pieces.len(),
            slots: most(|count| slots(count).map(|slot| link.withdraw(slot)).is_ok()),
            windows: most(|count| part(world, count).and_then(Part::free).is_ok()),
            words: most(|count| world.events(count).and_then(Events::free).is_ok()),
        }
    }
}

/// All of a resource but a little.
#[derive(Default)]
struct Hog<'w, L> {
    given: Vec<Given>,
    part: Option<Part<'w, L>>,
    events: Option<Events<'w, L>>,
}

impl<'w, L: Link> Hog<'w, L> {
    /// Takes all of resource `number` but for `left`.
    fn new(
        world: &'w World<'_, L>,
        stock: &Stock,
        number: usize,
        left: u32,
    ) -> Result<Self, Error> {
        let link = world.link();
        let rest = |all: u32| all.saturating_sub(left);
        let of = |one: Result<Given, Refusal>| one.map(|one| vec![one]).unwrap_or_default();
        let (mut given, mut windows, mut events) = (Vec::new(), None, None);
        match number {
            0 => {
                let bytes = rest(stock.bytes / 32) as usize * 32;
                given = of(link.allocate(bytes, Place::Own).map(Given::from));
            }
            1 => {
                let pieces = (0..stock.pieces.saturating_sub(left as usize)).map(|_| {
                    let one = link.allocate(1, Place::Own);
                    one.map(Given::from)
                });
                given = pieces.collect::<Result<_, _>>()?;
            }
            // A network has no end of them.
            2 if stock.slots + 1 == MANY => (),
            // Slots may lie in memory: a little of that is left, and no slot elsewhere.
            2 => {
                let kept = link.allocate(left as usize * 32, Place::Symmetric)?;
                for _ in 0..3 {
                    let slots = |count| link.allocate_slots(Slots::Count(count));
                    let all = most(|count| slots(count).map(|slot| link.withdraw(slot)).is_ok());
                    if all > 0 {
                        given.push(slots(all)?.into());
                    }
                }
                link.withdraw(kept);
            }
            3 => windows = Some(part(world, rest(stock.windows))?),
            _ => events = Some(world.events(rest(stock.words))?),
        }
        Ok(Self {
            given,
            part: windows,
            events,
        })
    }

    fn free(self, world: &World<'_, L>) -> Result<(), Error> {
        self.given
            .into_iter()
            .for_each(|given| world.link().withdraw(given));
        self.part.map_or(Ok(()), Part::free)?;
        self.events.map_or(Ok(()), Events::free)
    }
}

fn makers<L: Link>() -> [(&'static str, Maker<L>); 9] {
    const ROOM: Room = Room {
        bytes: 40,
        windows: 2,
    };
    [
        ("split", |world, _| world.split(Some(0), 0, ROOM)?.free()),
        ("spare", |world, _| world.spare(ROOM)?.free()),
        ("allocate", |world, _| world.allocate::<u32>(9)?.free()),
        ("allocate, by a list", |world, _| {
            world.allocate_with::<u32, MatchingList<'_>>(9, 2)?.free()
        }),
        ("create", |world, memory| {
            world.create::<u32>(memory, 0..32, 4)?.free()
        }),
        ("create, by a list", |world, memory| {
            let made = world.create_with::<u32, MatchingList<'_>>(memory, 0..32, 4, 2)?;
            made.free()
        }),
        ("dynamic", |world, _| {
            let options = DynamicOptions {
                regions: 2,
                kept: 2,
                ..DynamicOptions::default()
            };
            world.dynamic(options)?.free()
        }),
        ("events", |world, _| world.events(9)?.free()),
        ("set_num_notify", |world, _| {
            let mut window = world.allocate::<u32>(1)?;
            let set = window.set_num_notify(9);
            window.local().set(0, 1)?;
            window.free()?;
            set
        }),
    ]
}

/// Calls each maker; the last rank alone lacks what it can take by itself, or all ranks do.
fn all_comes_back<L: Link>(world: &World<'_, L>) -> Result<(), Error> {
    /// More than a maker takes of anything, in steps of 32 bytes of memory.
    const MOST: u32 = 120;
    let memory = world.reserve(32)?;
    let before = Stock::of(world);
    assert_eq!(Stock::of(world), before);
    assert_eq!(before.windows, u32::from(world.limits().windows));
    for (name, make) in makers() {
        for (number, alone) in (0..5)
            .map(|number| (number, false))
            .chain((0..3).map(|number| (number, true)))
        {
            let lacks = !alone || world.rank().get() == world.size() - 1;
            let mut refused = 0;
            let mut last = Ok(());
            for left in 0..MOST {
                let hog = lacks.then(|| Hog::new(world, &before, number, left));
                last = make(world, &memory);
                hog.transpose()?.map_or(Ok(()), |hog| hog.free(world))?;
                if last.is_ok() {
                    break;
                }
                refused += 1;
            }
            // What any of these attempts has kept is missing now.
            assert_eq!(Stock::of(world), before, "{name}: {last:?}, {number}");
            assert!(alone || refused < MOST, "{name}: {number}");
        }
    }
    Ok(())
}

#[test]
fn after_each_maker_all_is_as_before() {
    for ranks in [1, 2] {
        run(ranks, 256, &all_comes_back);
    }
}

#[test]
fn after_each_maker_over_a_network_all_is_as_before() {
    network::runs(1, Wire::default(), all_comes_back);
}
