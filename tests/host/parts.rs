//! A part's link promises what every link does: its cases run over one, and so does an error.

use flagpost::{Config as WorldConfig, Error, PartLink, Room, World};
use flagpost_link::{
    Access as _, Link as _, LocalMemory as _, Op, Place, Refusal, Session, Telling as _,
};
use flagpost_mapped::{Mapped, Ring};
use flagpost_sim::{Config, Sim, SimCore, sweep};
use flagpost_tests::{Args, Context, Platform, mapped, own_link_cases};

use crate::groups;

/// The ranks of a part of all.
struct Parted;

impl Platform for Parted {
    type Machine = SimCore;
    type Link = PartLink<'static, Mapped<SimCore>>;

    fn link(
        machine: &SimCore,
        session: Session,
        ring: Option<Ring>,
    ) -> Result<Self::Link, Refusal> {
        let words = vec![0; 4096].leak();
        let world = World::start(
            mapped(machine, session, ring)?,
            words,
            WorldConfig::default(),
        );
        let world = Box::leak(Box::new(world.expect("it starts")));
        let room = Room {
            bytes: 8192,
            windows: 8,
        };
        let part = Box::leak(Box::new(world.split(Some(0), 0, room).expect("it fits")));
        Ok(part.link().expect("each rank is in it"))
    }
}

fn chip(cores: u16) -> Config {
    Config {
        cores,
        memory_size: 64 << 10,
        ..Config::default()
    }
}

#[test]
fn links_of_parts_keep_the_promises_of_all_links() {
    for cores in [1, 2, 3, 48] {
        let seeds = if cores == 48 { 1 } else { groups::seeds(60) };
        let mut runs = sweep(0..seeds);
        // In `link.answered` immediates are numbers, and a part has notifications alone.
        let any = |name| name != "link.answered";
        for case in own_link_cases::<Parted>().filter(|case| case.admits(cores) && any(case.name)) {
            runs = runs.case(case.name, chip(cores), move |core| {
                (case.run)(&mut Context::<Parted> {
                    machine: core,
                    session: Session::FIRST,
                    args: Args::default(),
                    arena: &mut vec![0; Context::<Parted>::arena_words(cores)],
                    report: &mut |_, _| (),
                })
            });
        }
        runs.run().assert_done();
    }
}

/// The last byte of a part's share can be had, and the one after it cannot, though the larger world
/// has it.
#[test]
fn the_share_of_a_part_has_an_end() {
    let report = Sim::new(chip(1)).run(|core| {
        let link = Parted::link(&core, Session::FIRST, None)?;
        let me = link.rank();
        let Err(Refusal::NoRoom { bytes, windows: 0 }) = link.allocate(usize::MAX, Place::Own)
        else {
            panic!("there is an end");
        };
        let len = usize::MAX - bytes;
        let missing = Refusal::NoRoom {
            bytes: 1,
            windows: 0,
        };
        assert_eq!(link.allocate(len + 1, Place::Own), Err(missing));
        let key = link.allocate(len, Place::Own)?;
        let mut word = [0; 4];
        assert_eq!(link.put(me, key, len - 4, &[7; 4]), Ok(()));
        let offset = len - 3;
        let all = [
            link.put(me, key, offset, &[7; 4]),
            link.get(me, key, offset, &mut word, &Op::new()),
            link.write_local(key, offset, &[8; 4]),
            link.read_local(key, offset, &mut word),
            link.publish(key, offset, 4),
            link.refresh(key, offset, 4),
            link.zero(key, offset, 4).map(drop),
            link.update(me, key, offset, 4, &mut |_| (), &Op::new()),
        ];
        for (number, done) in all.into_iter().enumerate() {
            let refused = matches!(done, Err(Refusal::OutOfRange { .. }));
            assert!(refused, "{number}: {done:?}");
        }
        let notified = link.put_immediate(me, (key, len - 3), &[7; 4], 0, true, &Op::new());
        assert!(
            matches!(notified, Err(Refusal::OutOfRange { .. })),
            "{notified:?}"
        );
        Ok::<(), Refusal>(())
    });
    report.assert_done();
}

/// The call that has failed in a part's world is the last one of the larger world, too.
#[test]
fn an_error_in_a_part_is_at_its_call() {
    let report = Sim::new(chip(2)).run(|core| {
        let mut words = [0; 512];
        let link = mapped(&core, Session::FIRST, None)?;
        let world = World::start(link, &mut words, WorldConfig::default())?;
        let room = Room {
            bytes: 64,
            windows: 1,
        };
        let part = world.split(Some(0), 0, room)?;
        let link = part.link().expect("each rank is in it");
        let mut line = 0;
        let told = World::run(link, &mut [0; 128], WorldConfig::default(), |mine| {
            line = line!() + 1;
            mine.allocate::<u32>(1000).map(drop)
        });
        let Err(Error::RoomFull { .. }) = told else {
            panic!("{told:?}");
        };
        let text = told.unwrap_err().to_string();
        assert!(
            text.contains("`Room`") && text.contains("`bytes`"),
            "{text}"
        );
        assert_eq!(world.last_call().map(|place| place.line()), Some(line));
        Ok::<(), Error>(())
    });
    report.assert_done();
}

/// A part's notifications go through the queue of the larger world, which must be there.
#[test]
fn a_world_without_a_queue_has_no_parts_with_windows() {
    let report = Sim::new(chip(2)).run(|core| {
        let mut words = [0; 512];
        let link = mapped(&core, Session::FIRST, None)?;
        let world = World::start(link, &mut words, WorldConfig { unexpected: 0 })?;
        let room = |windows| Room { bytes: 64, windows };
        let part = world.split(Some(0), 0, room(1)).map(drop);
        assert_eq!(part.err(), Some(Error::QueueFull { capacity: 0 }));
        world.split(Some(0), 0, room(0))?.free()
    });
    report.assert_done();
}
