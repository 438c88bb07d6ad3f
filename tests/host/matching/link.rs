//! A link that writes down what it gave its rank from the queue of immediates, and when it had
//! nothing.

use std::cell::{Cell, RefCell};

use flagpost_link::{
    Access, Amo, Arrival, Fast, Given, Key, Link, LocalMemory, Op, Place, Rank, Refusal, Slot,
    Slots, Step, Telling, Time, Waiting, Wants, Width, Word,
};

/// Answers of [`Telling::progress`](flagpost_link::Telling::progress), in order.
pub(crate) type Log = RefCell<Vec<Option<u32>>>;

/// `L`, and a log if the rank is the one that is looked at.
pub(crate) struct Recorded<'l, L> {
    pub(crate) link: L,
    pub(crate) log: &'l Log,
    /// Whose notification was asked for last.
    pub(crate) asked: Cell<Wants>,
}

impl<L: Link> Link for Recorded<'_, L> {
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

impl<L: Link> LocalMemory for Recorded<'_, L> {
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

impl<L: Link> Access for Recorded<'_, L> {
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

impl<L: Link> Telling for Recorded<'_, L> {
    fn put_immediate(
        &self,
        to: Rank,
        (key, offset): (Key, usize),
        data: &[u8],
        immediate: u32,
        inline: bool,
        op: &Op,
    ) -> Result<(), Refusal> {
        self.link
            .put_immediate(to, (key, offset), data, immediate, inline, op)
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
        let arrival = self.link.progress(wants);
        let immediate = arrival.map(|arrival| arrival.immediate);
        let mut log = self.log.borrow_mut();
        // Where several are waited for, one after the other is asked for: the last answer counts.
        let others = self.asked.replace(wants) != wants;
        if others && log.last() == Some(&None) {
            log.pop();
        }
        log.push(immediate);
        arrival
    }

    fn attend(&self) {
        self.link.attend();
    }
}

impl<L: Link> Waiting for Recorded<'_, L> {
    fn relax(&self) {
        self.link.relax();
    }

    fn step(&self, step: Step<'_>) {
        if matches!(step, Step::Begin | Step::End) {
            self.link.step(step);
        }
    }

    fn now(&self) -> Time {
        self.link.now()
    }
}

impl<L: Link> Fast for Recorded<'_, L> {}
