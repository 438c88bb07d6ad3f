//! One core: its caches, its write-combining buffer, its instructions.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use flagpost_hal::CoreId;
use flagpost_scc::bus::State;
use flagpost_scc::{Attribute, Bus, Fault, Physical, Processor};

use super::cache::{Cache, Entry, Policy};
use super::{Board, Line};

/// Something that a test lets happen, and before how many accesses still.
type Planned = (u32, Box<dyn FnOnce()>);

/// What belongs to one core.
pub(crate) struct Private {
    l1: RefCell<Cache>,
    l2: RefCell<Cache>,
    /// The write-combining buffer: line, bytes, which of them.
    combining: Cell<Option<(Physical, Line, u32)>>,
    state: State,
    interrupts: Cell<bool>,
    /// What happens before a later uncached access or relaxation: how a test lets others run in
    /// between.
    between: RefCell<Option<Planned>>,
}

impl Private {
    pub(crate) fn new(policy: Policy, seed: u64) -> Self {
        Self {
            l1: RefCell::new(Cache::new(128, policy, seed)),
            l2: RefCell::new(Cache::new(2048, policy, !seed)),
            combining: Cell::new(None),
            state: State::new(),
            interrupts: Cell::new(true),
            between: RefCell::new(None),
        }
    }
}

/// A core, as a bus for the port.
#[derive(Clone)]
pub(crate) struct Core {
    board: Rc<Board>,
    own: Rc<Private>,
    number: CoreId,
}

impl Core {
    pub(crate) fn new(board: Rc<Board>, number: CoreId) -> Self {
        let own = board.cores[number.index()].clone();
        Self { board, own, number }
    }

    /// Lets `act` happen before this core's `count`th uncached access or relaxation from now on.
    pub(crate) fn before(&self, count: u32, act: impl FnOnce() + 'static) {
        *self.own.between.borrow_mut() = Some((count, Box::new(act)));
    }

    fn between(&self) {
        let due = self.own.between.borrow_mut().take_if(|(count, _)| {
            *count -= 1;
            *count == 0
        });
        if let Some((_, act)) = due {
            act();
        }
    }

    /// Whether it takes interrupts.
    pub(crate) fn admits_interrupts(&self) -> bool {
        self.own.interrupts.get()
    }

    /// Dirty lines in its caches that `which` wants.
    pub(crate) fn dirty(&self, which: impl Fn(Physical) -> bool) -> usize {
        let count = |cache: &Cache| {
            let entries = cache.entries();
            entries.filter(|e| e.dirty && which(e.at)).count()
        };
        count(&self.own.l1.borrow()) + count(&self.own.l2.borrow())
    }

    /// Evicts the line from both caches, as may happen at any moment.
    pub(crate) fn evict(&self, at: Physical) {
        let here = |e: &Entry| e.at == at.line();
        let gone = self.own.l1.borrow_mut().take(here);
        gone.into_iter().for_each(|entry| self.leaves_l1(entry));
        let gone = self.own.l2.borrow_mut().take(here);
        gone.into_iter().for_each(|entry| self.leaves_l2(entry));
    }

    fn leaves_l1(&self, entry: Entry) {
        if !entry.dirty {
            return;
        }
        if !entry.message
            && let Some(below) = self.own.l2.borrow_mut().find(entry.at)
        {
            (below.bytes, below.dirty) = (entry.bytes, true);
            return;
        }
        self.leaves_l2(entry);
    }

    fn leaves_l2(&self, entry: Entry) {
        if entry.dirty {
            self.board.put(self.number, entry.at, &entry.bytes, !0);
        }
    }

    fn add_to_l1(&self, at: Physical, bytes: Line, message: bool) {
        let entry = Entry {
            at: at.line(),
            bytes,
            dirty: false,
            message,
        };
        let gone = self.own.l1.borrow_mut().insert(entry);
        gone.into_iter().for_each(|entry| self.leaves_l1(entry));
    }

    /// The line, as a cached load sees it.
    fn cached(&self, at: Physical, message: bool) -> Line {
        let find = |cache: &RefCell<Cache>| cache.borrow_mut().find(at).map(|entry| entry.bytes);
        if let Some(bytes) = find(&self.own.l1) {
            return bytes;
        }
        if !message && let Some(bytes) = find(&self.own.l2) {
            self.add_to_l1(at, bytes, false);
            return bytes;
        }
        let bytes = self.board.fetch(self.number, at);
        if !message {
            let entry = Entry {
                at: at.line(),
                bytes,
                dirty: false,
                message,
            };
            let gone = self.own.l2.borrow_mut().insert(entry);
            gone.into_iter().for_each(|entry| self.leaves_l2(entry));
        }
        self.add_to_l1(at, bytes, message);
        bytes
    }

    /// A store to the write-combining buffer.
    fn combine(&self, at: Physical, bytes: &[u8]) {
        let held = self.own.combining.take();
        let held = match held {
            Some((line, from, mask)) if line != at.line() => {
                self.board.put(self.number, line, &from, mask);
                None
            }
            held => held,
        };
        let (line, mut into, mut mask) = held.unwrap_or((at.line(), [0; 32], 0));
        blend(&mut into, at, bytes, &mut mask);
        if mask == !0 {
            self.board.put(self.number, line, &into, mask);
        } else {
            self.own.combining.set(Some((line, into, mask)));
        }
    }

    fn load<const N: usize>(&self, at: Physical, attribute: Attribute) -> [u8; N] {
        assert!(at.get().is_multiple_of(N as u32), "{at:x?} is not aligned");
        let line = match attribute {
            Attribute::Uncached => {
                self.between();
                if let Some(word) = self.board.load_register(self.number, at) {
                    return std::array::from_fn(|i| word.to_le_bytes()[i]);
                }
                self.board.fetch(self.number, at)
            }
            Attribute::Normal => self.cached(at, false),
            Attribute::Mpbt | Attribute::MpbtWriteThrough => self.cached(at, true),
        };
        let start = (at.get() % 32) as usize;
        std::array::from_fn(|i| line[start + i])
    }

    fn store(&self, at: Physical, attribute: Attribute, bytes: &[u8]) {
        assert!(at.get().is_multiple_of(bytes.len() as u32));
        let mut all = 0;
        let mut line = [0; 32];
        blend(&mut line, at, bytes, &mut all);
        if attribute == Attribute::Uncached {
            self.between();
            let word = bytes
                .iter()
                .rev()
                .fold(0, |word, b| word << 8 | u32::from(*b));
            if !self.board.store_register(self.number, at, word) {
                self.board.put(self.number, at, &line, all);
            }
            return;
        }
        let mut hit = false;
        if let Some(entry) = self.own.l1.borrow_mut().find(at) {
            blend(&mut entry.bytes, at, bytes, &mut 0);
            entry.dirty |= attribute != Attribute::MpbtWriteThrough;
            hit = true;
        }
        match attribute {
            Attribute::MpbtWriteThrough => self.combine(at, bytes),
            _ if hit => {}
            Attribute::Mpbt => self.combine(at, bytes),
            _ => match self.own.l2.borrow_mut().find(at) {
                Some(entry) => {
                    blend(&mut entry.bytes, at, bytes, &mut 0);
                    entry.dirty = true;
                }
                None => self.board.put(self.number, at, &line, all),
            },
        }
    }
}

/// Puts `bytes` at their place in a line, and sets their bits.
fn blend(line: &mut Line, at: Physical, bytes: &[u8], mask: &mut u32) {
    let start = (at.get() % 32) as usize;
    line[start..start + bytes.len()].copy_from_slice(bytes);
    (start..start + bytes.len()).for_each(|bit| *mask |= 1 << bit);
}

impl Processor for Core {
    fn cl1invmb(&self) {
        self.own.l1.borrow_mut().take(|entry| entry.message);
    }

    fn wbinvd(&self) {
        let gone = self.own.l1.borrow_mut().take(|_| true);
        gone.into_iter().for_each(|entry| self.leaves_l1(entry));
    }

    fn rdtsc(&self) -> u64 {
        self.board.time.get()
    }

    fn hertz(&self) -> u64 {
        533_000_000
    }

    fn stop(&self, fault: Fault) -> ! {
        panic!("{fault}")
    }

    fn set_interrupts(&self, admitted: bool) -> bool {
        self.own.interrupts.replace(admitted)
    }
}

impl Bus for Core {
    fn load_u8(&self, at: Physical, attribute: Attribute) -> u8 {
        self.load::<1>(at, attribute)[0]
    }

    fn load_u32(&self, at: Physical, attribute: Attribute) -> u32 {
        u32::from_le_bytes(self.load(at, attribute))
    }

    fn store_u8(&self, at: Physical, attribute: Attribute, value: u8) {
        self.store(at, attribute, &[value]);
    }

    fn store_u32(&self, at: Physical, attribute: Attribute, value: u32) {
        self.store(at, attribute, &value.to_le_bytes());
    }

    fn state(&self) -> &State {
        &self.own.state
    }

    fn relax(&self, _: impl Iterator<Item = (Physical, u32)> + Clone) {
        let waits = self.own.between.borrow().is_none();
        assert!(!waits, "{} waits for ever", self.number);
        self.between();
    }
}
