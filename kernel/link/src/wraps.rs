//! [`Wraps`]: a link around another one. Its ranks, memory and clock are those of the link inside.
//! Messages pass through its own calls, which may change them, lose them, or write them down. So a
//! test says only what is different.

use crate::{
    Access, Amo, Arrival, Fast, Given, Key, Link, LocalMemory, Op, Place, Rank, Refusal, Slot,
    Slots, Step, Telling, Time, Waiting, Wants, Width, Word,
};

/// A link around another one: a type that has this is a [`Link`]. The default of each call asks the
/// link inside. Its fast paths decline, and it knows of no rank that is gone.
pub trait Wraps {
    /// The link inside.
    type Inner: Link;

    /// The link inside.
    fn inner(&self) -> &Self::Inner;

    /// [`Telling::put_immediate`].
    ///
    /// # Errors
    /// [`Refusal`]: that of the link inside, or one that the wrapper makes up.
    fn sends(
        &self,
        to: Rank,
        place: (Key, usize),
        data: &[u8],
        immediate: u32,
        inline: bool,
        op: &Op,
    ) -> Result<(), Refusal> {
        { self.inner() }.put_immediate(to, place, data, immediate, inline, op)
    }

    /// [`Telling::progress`].
    fn takes(&self, wants: Wants) -> Option<Arrival> {
        self.inner().progress(wants)
    }

    /// [`Waiting::step`].
    fn steps(&self, step: Step<'_>) {
        self.inner().step(step);
    }
}

impl<T: Wraps> Link for T {
    type Word = <T::Inner as Link>::Word;

    const SLOTS: u32 = T::Inner::SLOTS;
    const LINE: usize = T::Inner::LINE;
    const UPDATE: usize = T::Inner::UPDATE;
    const UPDATE_SMALL: usize = T::Inner::UPDATE_SMALL;
    const DIRECT: bool = T::Inner::DIRECT;
    const PASSIVE: bool = T::Inner::PASSIVE;

    fn rank(&self) -> Rank {
        self.inner().rank()
    }

    fn size(&self) -> u16 {
        self.inner().size()
    }
}

impl<T: Wraps> LocalMemory for T {
    fn allocate(&self, bytes: usize, place: Place) -> Result<Key, Refusal> {
        self.inner().allocate(bytes, place)
    }

    fn withdraw(&self, given: impl Into<Given>) {
        self.inner().withdraw(given);
    }

    fn allocate_slots(&self, wanted: Slots) -> Result<Slot, Refusal> {
        self.inner().allocate_slots(wanted)
    }

    fn renew_slots(&self, first: Slot, count: u32) -> Result<(), Refusal> {
        self.inner().renew_slots(first, count)
    }

    fn scratch(&self) -> (Key, usize) {
        self.inner().scratch()
    }

    fn read_local(&self, key: Key, offset: usize, into: &mut [u8]) -> Result<(), Refusal> {
        self.inner().read_local(key, offset, into)
    }

    fn write_local(&self, key: Key, offset: usize, from: &[u8]) -> Result<(), Refusal> {
        self.inner().write_local(key, offset, from)
    }

    fn publish(&self, key: Key, offset: usize, bytes: usize) -> Result<(), Refusal> {
        self.inner().publish(key, offset, bytes)
    }

    fn refresh(&self, key: Key, offset: usize, bytes: usize) -> Result<(), Refusal> {
        self.inner().refresh(key, offset, bytes)
    }
}

impl<T: Wraps> Access for T {
    fn connect(&self, to: Rank) -> Result<(), Refusal> {
        self.inner().connect(to)
    }

    fn put(&self, to: Rank, key: Key, offset: usize, data: &[u8]) -> Result<(), Refusal> {
        self.inner().put(to, key, offset, data)
    }

    fn get(
        &self,
        from: Rank,
        key: Key,
        offset: usize,
        into: &mut [u8],
        op: &Op,
    ) -> Result<(), Refusal> {
        self.inner().get(from, key, offset, into, op)
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
        self.inner().amo(to, key, offset, amo, width, op)
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
        self.inner().update(to, key, offset, len, change, op)
    }

    fn fence(&self) -> Result<(), Refusal> {
        self.inner().fence()
    }

    fn flush(&self, to: Option<Rank>) -> Result<(), Refusal> {
        self.inner().flush(to)
    }
}

impl<T: Wraps> Telling for T {
    fn put_immediate(
        &self,
        to: Rank,
        place: (Key, usize),
        data: &[u8],
        immediate: u32,
        inline: bool,
        op: &Op,
    ) -> Result<(), Refusal> {
        self.sends(to, place, data, immediate, inline, op)
    }

    fn signal(&self, to: Rank, slot: Slot, value: u32) -> Result<(), Refusal> {
        self.inner().signal(to, slot, value)
    }

    fn reached(&self, slot: Slot, value: u32) -> Result<bool, Refusal> {
        self.inner().reached(slot, value)
    }

    fn watch<W: Word>(
        &self,
        key: Key,
        offset: usize,
        arrived: impl Fn(W) -> bool,
        op: &Op,
    ) -> Result<Option<W>, Refusal> {
        self.inner().watch(key, offset, arrived, op)
    }

    fn progress(&self, wants: Wants) -> Option<Arrival> {
        self.takes(wants)
    }

    fn attend(&self) {
        self.inner().attend();
    }
}

impl<T: Wraps> Waiting for T {
    fn relax(&self) {
        self.inner().relax();
    }

    fn step(&self, step: Step<'_>) {
        self.steps(step);
    }

    fn now(&self) -> Time {
        self.inner().now()
    }
}

impl<T: Wraps> Fast for T {}
