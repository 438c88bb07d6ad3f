//! A link that charges for software.
//!
//! The simulator charges for accesses, not for instructions. What a library executes besides (translating ranks,
//! computing addresses, the calls themselves) is charged here: a number of core cycles for each target that a
//! loop of `post` or `complete` treats, whatever the number of attempts that its lock takes.

use std::cell::Cell;

use flagpost_link::{Key, Link, MatchVector, Rank, Refusal, Slot};
use flagpost_sim::SimCore;

/// `L`, and `cycles` core cycles for each `post`, `retire` and `complete` that it carries out.
#[derive(Debug)]
pub struct Charged<L> {
    link: L,
    core: SimCore,
    cycles: u32,
    /// An attempt has been charged that was refused for the moment.
    again: Cell<bool>,
}

impl<L> Charged<L> {
    /// Charges `core` for what `link` does.
    pub fn new(link: L, core: SimCore, cycles: u32) -> Self {
        Self {
            link,
            core,
            cycles,
            again: Cell::new(false),
        }
    }

    fn charge(&self, step: impl FnOnce() -> Result<(), Refusal>) -> Result<(), Refusal> {
        if !self.again.replace(true) && self.cycles > 0 {
            self.core.spend(self.cycles);
        }
        step().inspect(|()| self.again.set(false))
    }
}

impl<L: MatchVector> MatchVector for Charged<L> {
    fn sync_bytes(&self) -> u32 {
        self.link.sync_bytes()
    }

    fn reset(&self, sync: Key) -> Result<(), Refusal> {
        self.link.reset(sync)
    }

    fn post(&self, sync: Key, origin: Rank) -> Result<(), Refusal> {
        self.charge(|| self.link.post(sync, origin))
    }

    fn posted(&self, sync: Key, word: u16) -> u32 {
        self.link.posted(sync, word)
    }

    fn retire(&self, sync: Key, target: Rank) -> Result<(), Refusal> {
        self.charge(|| self.link.retire(sync, target))
    }

    fn expect(&self, sync: Key, origins: u16) {
        self.link.expect(sync, origins);
    }

    fn complete(&self, sync: Key, target: Rank) -> Result<(), Refusal> {
        self.charge(|| self.link.complete(sync, target))
    }

    fn missing(&self, sync: Key) -> u32 {
        self.link.missing(sync)
    }
}

impl<L: Link> Link for Charged<L> {
    const SLOTS: u8 = L::SLOTS;
    const LINE: u32 = L::LINE;

    fn rank(&self) -> Rank {
        self.link.rank()
    }

    fn size(&self) -> u16 {
        self.link.size()
    }

    fn connect(&self, to: Rank) -> Result<(), Refusal> {
        self.link.connect(to)
    }

    fn allocate(&self, bytes: u32) -> Result<Key, Refusal> {
        self.link.allocate(bytes)
    }

    fn withdraw(&self, key: Key) {
        self.link.withdraw(key);
    }

    fn scratch(&self) -> (Key, u32) {
        self.link.scratch()
    }

    fn read_local(&self, key: Key, offset: u32, into: &mut [u8]) -> Result<(), Refusal> {
        self.link.read_local(key, offset, into)
    }

    fn write_local(&self, key: Key, offset: u32, from: &[u8]) -> Result<(), Refusal> {
        self.link.write_local(key, offset, from)
    }

    fn publish(&self, key: Key, offset: u32, bytes: u32) -> Result<(), Refusal> {
        self.link.publish(key, offset, bytes)
    }

    fn refresh(&self, key: Key, offset: u32, bytes: u32) -> Result<(), Refusal> {
        self.link.refresh(key, offset, bytes)
    }

    fn put(&self, to: Rank, key: Key, offset: u32, data: &[u8]) -> Result<(), Refusal> {
        self.link.put(to, key, offset, data)
    }

    fn get(&self, from: Rank, key: Key, offset: u32, into: &mut [u8]) -> Result<(), Refusal> {
        self.link.get(from, key, offset, into)
    }

    fn put_immediate(
        &self,
        to: Rank,
        key: Key,
        offset: u32,
        data: &[u8],
        immediate: u32,
    ) -> Result<(), Refusal> {
        self.link.put_immediate(to, key, offset, data, immediate)
    }

    fn fence(&self) {
        self.link.fence();
    }

    fn signal(&self, to: Rank, slot: Slot, value: u32) -> Result<(), Refusal> {
        self.link.signal(to, slot, value)
    }

    fn reached(&self, slot: Slot, value: u32) -> Result<bool, Refusal> {
        self.link.reached(slot, value)
    }

    fn progress(&self) -> Option<u32> {
        self.link.progress()
    }

    fn relax(&self) {
        self.link.relax();
    }

    fn now(&self) -> u64 {
        self.link.now()
    }

    fn ticks_per_second(&self) -> u64 {
        self.link.ticks_per_second()
    }
}
