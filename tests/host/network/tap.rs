//! A network that counts what is begun, and can hold events back.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::panic::Location;
use std::rc::Rc;

use flagpost::{Config as WorldConfig, Error, Rank, World};
use flagpost_hal::CoreId;
use flagpost_hal::fabric::{Event, Fabric, SendQueueFull, Watched, Work};
use flagpost_network::Networked;
use flagpost_sim::{Config, Nic, Preset, Sim};

/// A network, tapped.
pub(crate) struct Tap {
    pub(crate) nic: Nic,
    pub(crate) seen: Rc<Seen>,
}

/// What a tap tells, and is told.
#[derive(Default)]
pub(crate) struct Seen {
    /// How many operations were begun.
    pub(crate) begun: Cell<usize>,
    /// Whose immediates are held back.
    pub(crate) holds: Cell<Option<Rank>>,
    /// What is held.
    pub(crate) held: RefCell<VecDeque<Event>>,
    /// This rank is lost, as is known from now on; what is held comes after so many looks in vain.
    pub(crate) lost: Cell<Option<(Rank, u32)>>,
}

impl Seen {
    fn keeps_back(&self, event: &Event) -> bool {
        matches!(event, Event::Immediate { from, .. } if self.holds.get() == Some(Rank::new(from.get())))
    }
}

impl Fabric for Tap {
    const LISTENS: bool = true;

    fn core(&self) -> CoreId {
        self.nic.core()
    }

    fn cores(&self) -> u16 {
        self.nic.cores()
    }

    fn memory_size(&self) -> usize {
        self.nic.memory_size()
    }

    fn read(&self, at: usize, into: &mut [u8]) {
        self.nic.read(at, into);
    }

    fn write(&self, at: usize, from: &[u8]) {
        self.nic.write(at, from);
    }

    fn post(&self, id: u32, to: CoreId, work: Work<'_>) -> Result<(), SendQueueFull> {
        self.nic.post(id, to, work)?;
        self.seen.begun.set(self.seen.begun.get() + 1);
        Ok(())
    }

    fn poll(&self) -> Option<Event> {
        while let Some(event) = self.nic.poll() {
            if !self.seen.keeps_back(&event) {
                return Some(event);
            }
            self.seen.held.borrow_mut().push_back(event);
        }
        match self.seen.lost.get()? {
            (_, 0) => self.seen.held.borrow_mut().pop_front(),
            (rank, looks) => {
                self.seen.lost.set(Some((rank, looks - 1)));
                None
            }
        }
    }

    #[inline(always)]
    fn called(&self, place: &'static Location<'static>) {
        self.nic.called(place);
    }

    fn lost(&self) -> Option<CoreId> {
        let told = self
            .seen
            .lost
            .get()
            .map(|(rank, _)| CoreId::new(rank.get()));
        told.or(self.nic.lost())
    }

    fn relax(&self, watched: &[Watched]) {
        // The network knows nothing of what is held.
        match self.seen.holds.get() {
            Some(_) => self.nic.pause(),
            None => self.nic.relax(watched),
        }
    }

    fn pause(&self) {
        self.nic.pause();
    }

    fn now(&self) -> u64 {
        self.nic.now()
    }

    fn ticks_per_second(&self) -> u64 {
        self.nic.ticks_per_second()
    }
}

/// Runs `program` on two ranks.
pub(crate) fn tapped(program: impl Fn(&World<'_, Networked<Tap>>, &Seen) -> Result<(), Error>) {
    tapped_on(2, 1, program);
}

/// Runs `program` on `cores` ranks, under so many schedules.
pub(crate) fn tapped_on(
    cores: u16,
    schedules: u64,
    program: impl Fn(&World<'_, Networked<Tap>>, &Seen) -> Result<(), Error>,
) {
    for seed in 0..schedules {
        let config = Config {
            cores,
            memory_size: 16 << 10,
            seed,
            ..Preset::Network.config()
        };
        let report = Sim::new(config).run(|core| {
            let (mut arena, seen) = ([0; 256], Rc::<Seen>::default());
            let tap = Tap {
                nic: Nic::open(core),
                seen: seen.clone(),
            };
            let link = Networked::start_with_queue(tap, 64)?;
            let world = World::start(link, &mut arena, WorldConfig::default())?;
            program(&world, &seen)
        });
        report.assert_done();
    }
}
