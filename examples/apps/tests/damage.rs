//! A value that is damaged on its way, or lost, is found: each program ends with [`Wrong::Value`].

use std::cell::{Cell, RefCell};

use flagpost::{Config as WorldConfig, Session, World};
use flagpost_apps::{Job, Variant, Wrong, programs};
use flagpost_link::{
    Access, Amo, Arrival, Fast, Given, Key, Link, LocalMemory, Op, Place, Rank, Refusal, Slot,
    Slots, Step, Telling, Time, Waiting, Wants, Width, Word,
};
use flagpost_mapped::Mapped;
use flagpost_sim::{Config, Sim, SimCore};

/// A link that damages or loses the data of a rank's first notified put.
struct Damaging<L> {
    link: L,
    /// The rank, until it has done so.
    rank: Cell<Option<Rank>>,
    /// The notification comes, and the data do not.
    loses: bool,
}

/// The byte of an element that is damaged, and its bit: the upper one of a number's fraction.
const BYTE: usize = 6;
const BIT: u8 = 1 << 3;

impl<L: Link> Telling for Damaging<L> {
    fn put_immediate(
        &self,
        to: Rank,
        place: (Key, usize),
        data: &[u8],
        immediate: u32,
        inline: bool,
        op: &Op,
    ) -> Result<(), Refusal> {
        let mut data = data.to_vec();
        let is_damaged = self.rank.get() == Some(self.rank()) && data.len() > BYTE;
        if is_damaged {
            data[BYTE] ^= BIT;
        }
        if is_damaged && self.loses {
            data.clear();
        }
        self.link
            .put_immediate(to, place, &data, immediate, inline, op)?;
        if is_damaged {
            self.rank.set(None);
        }
        Ok(())
    }

    fn signal(&self, to: Rank, slot: Slot, value: u32) -> Result<(), Refusal> {
        self.link.signal(to, slot, value)
    }

    fn reached(&self, slot: Slot, value: u32) -> Result<bool, Refusal> {
        self.link.reached(slot, value)
    }

    fn watch<W: Word>(
        &self,
        key: Key,
        offset: usize,
        arrived: impl Fn(W) -> bool,
        op: &Op,
    ) -> Result<Option<W>, Refusal> {
        self.link.watch(key, offset, arrived, op)
    }

    fn progress(&self, wants: Wants) -> Option<Arrival> {
        self.link.progress(wants)
    }

    fn attend(&self) {
        self.link.attend();
    }
}

impl<L: Link> Link for Damaging<L> {
    type Word = L::Word;

    const SLOTS: u32 = L::SLOTS;
    const LINE: usize = L::LINE;
    const UPDATE: usize = L::UPDATE;
    const UPDATE_SMALL: usize = L::UPDATE_SMALL;
    const DIRECT: bool = L::DIRECT;
    const PASSIVE: bool = L::PASSIVE;

    fn rank(&self) -> Rank {
        self.link.rank()
    }

    fn size(&self) -> u16 {
        self.link.size()
    }
}

impl<L: Link> LocalMemory for Damaging<L> {
    fn allocate(&self, bytes: usize, place: Place) -> Result<Key, Refusal> {
        self.link.allocate(bytes, place)
    }

    fn withdraw(&self, given: impl Into<Given>) {
        self.link.withdraw(given);
    }

    fn allocate_slots(&self, wanted: Slots) -> Result<Slot, Refusal> {
        self.link.allocate_slots(wanted)
    }

    fn renew_slots(&self, first: Slot, count: u32) -> Result<(), Refusal> {
        self.link.renew_slots(first, count)
    }

    fn scratch(&self) -> (Key, usize) {
        self.link.scratch()
    }

    fn read_local(&self, key: Key, offset: usize, into: &mut [u8]) -> Result<(), Refusal> {
        self.link.read_local(key, offset, into)
    }

    fn write_local(&self, key: Key, offset: usize, from: &[u8]) -> Result<(), Refusal> {
        self.link.write_local(key, offset, from)
    }

    fn publish(&self, key: Key, offset: usize, bytes: usize) -> Result<(), Refusal> {
        self.link.publish(key, offset, bytes)
    }

    fn refresh(&self, key: Key, offset: usize, bytes: usize) -> Result<(), Refusal> {
        self.link.refresh(key, offset, bytes)
    }
}

impl<L: Link> Access for Damaging<L> {
    fn connect(&self, to: Rank) -> Result<(), Refusal> {
        self.link.connect(to)
    }

    fn put(&self, to: Rank, key: Key, offset: usize, data: &[u8]) -> Result<(), Refusal> {
        self.link.put(to, key, offset, data)
    }

    fn get(
        &self,
        from: Rank,
        key: Key,
        offset: usize,
        into: &mut [u8],
        op: &Op,
    ) -> Result<(), Refusal> {
        self.link.get(from, key, offset, into, op)
    }

    fn amo(
        &self,
        to: Rank,
        key: Key,
        offset: usize,
        amo: Amo,
        width: Width,
        op: &Op,
    ) -> Result<u64, Refusal> {
        self.link.amo(to, key, offset, amo, width, op)
    }

    fn update(
        &self,
        to: Rank,
        key: Key,
        offset: usize,
        len: usize,
        change: &mut dyn FnMut(&mut [u8]),
        op: &Op,
    ) -> Result<(), Refusal> {
        self.link.update(to, key, offset, len, change, op)
    }

    fn fence(&self) -> Result<(), Refusal> {
        self.link.fence()
    }

    fn flush(&self, to: Option<Rank>) -> Result<(), Refusal> {
        self.link.flush(to)
    }
}

impl<L: Link> Waiting for Damaging<L> {
    fn relax(&self) {
        self.link.relax();
    }

    fn step(&self, step: Step<'_>) {
        self.link.step(step);
    }

    fn now(&self) -> Time {
        self.link.now()
    }
}

impl<L: Link> Fast for Damaging<L> {}

#[test]
fn a_damaged_value_is_found_by_each_program() {
    each_program_finds(false);
}

#[test]
fn a_lost_value_is_found_by_each_program() {
    each_program_finds(true);
}

/// What the ranks of a program find, with the first number damaged or lost that rank 1 sends.
fn each_program_finds(loses: bool) {
    const RANKS: u16 = 4;
    let by_puts = [Variant::Messages, Variant::Notified];
    for program in programs() {
        let mut variants = program.variants.iter();
        let variant = *variants.find(|variant| by_puts.contains(variant)).unwrap();
        let mut size = program.small;
        if program.name == "fft" {
            size.steps = 1; // of several rounds the last one is compared
        }
        let chip = Config {
            cores: RANKS,
            memory_size: 64 << 10,
            ..Config::default()
        };
        let wrong = RefCell::new(Vec::new());
        // The others may wait for a rank that has ended: how they end does not matter.
        let _ = Sim::new(chip).run(|core: SimCore| {
            let link = Damaging {
                link: Mapped::start(core, Session::FIRST).map_err(flagpost::Error::from)?,
                rank: Cell::new(Some(Rank::new(1))),
                loses,
            };
            let mut arena = [0; WorldConfig::DEFAULT.words(RANKS, 2)];
            let world = World::start(link, &mut arena, WorldConfig::DEFAULT)?;
            let job = Job {
                variant,
                size,
                memory: &mut vec![0.0; program.memory(RANKS, size)?],
                compute: &|_| {},
            };
            let outcome = program.run(&world, job);
            wrong.borrow_mut().extend(outcome.err());
            outcome.map(|_| ())
        });
        let wrong = wrong.into_inner();
        let is_value = |wrong: &Wrong| matches!(wrong, Wrong::Value { .. });
        assert!(wrong.iter().any(is_value), "{}: {wrong:?}", program.name);
    }
}
