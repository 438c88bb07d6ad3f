//! A machine with locks of words is the machine underneath in all else: what that overrides is
//! passed on.

use std::cell::{Cell, RefCell};
use std::panic::Location;

use flagpost_hal::{
    Address, Coherence, CoreId, Expected, Lines, MessageBuffer, Region, Relax, Topology,
    UncachedMemory, Watch, WithSoftwareLock,
};

/// Overrides all that is optional, and keeps an account of what was called.
#[derive(Default)]
struct Rich {
    crowded: Cell<bool>,
    calls: RefCell<Vec<String>>,
}

impl Rich {
    fn called(&self, what: String) {
        self.calls.borrow_mut().push(what);
    }
}

impl UncachedMemory for Rich {
    fn load_u8(&self, _: Address) -> u8 {
        0
    }

    fn store_u8(&self, _: Address, _: u8) {}

    fn load_u32(&self, _: Address) -> u32 {
        0
    }

    fn store_u32(&self, _: Address, _: u32) {}

    fn store_bytes(&self, _: Address, _: &[u8]) {}

    fn load_bytes(&self, at: Address, into: &mut [u8]) {
        self.called(format!("load_bytes {at} {}", into.len()));
    }

    fn loads_lines(&self, region: Region) -> bool {
        region.owner == CoreId::new(1)
    }
}

// SAFETY: one thread, no cache, and no memory.
unsafe impl Coherence for Rich {
    const LINE: usize = 16;

    fn write_back(&self, _: &[Lines]) {}

    fn invalidate(&self, _: &[Lines]) {}

    fn drain(&self) {}

    fn acquire(&self) {}

    fn settle(&self) {
        self.called("settle".to_owned());
    }
}

impl Topology for Rich {
    const LISTENS: bool = true;

    fn cores(&self) -> u16 {
        2
    }

    fn core(&self) -> CoreId {
        CoreId::new(1)
    }

    fn memory_size(&self) -> usize {
        64
    }

    fn called(&self, place: &'static Location<'static>) {
        self.called(format!("called {}", place.line()));
    }

    fn looks(&self, place: &'static Location<'static>) {
        self.called(format!("looks {}", place.line()));
    }

    fn expected(&self, at: Address, len: usize, _: Expected<'_>) {
        self.called(format!("expected {at} {len}"));
    }

    fn lost(&self) -> Option<CoreId> {
        Some(CoreId::new(0))
    }

    fn is_lost(&self, core: CoreId) -> bool {
        core == CoreId::new(1)
    }

    fn has_left(&self, core: Option<CoreId>) -> bool {
        core == Some(CoreId::new(1))
    }
}

impl MessageBuffer for Rich {
    fn message_buffer_size(&self) -> usize {
        32
    }
}

impl Relax for Rich {
    const LOOKS: u32 = 9;

    fn is_crowded(&self) -> bool {
        self.crowded.get()
    }

    fn relax(&self, watched: &[Watch]) {
        self.called(format!("relax {}", watched.len()));
    }

    fn told(&self, core: CoreId) {
        self.called(format!("told {}", core.get()));
    }

    fn ended(&self) {
        self.called("ended".to_owned());
    }
}

#[test]
fn what_a_machine_overrides_is_passed_on() {
    type Locked = WithSoftwareLock<Rich>;
    let locked = Locked::new(Rich::default()).expect("there is room");
    const { assert!(Locked::LISTENS && Locked::LOOKS == 9 && Locked::LINE == 16) };
    for crowded in [true, false] {
        locked.machine().crowded.set(crowded);
        assert_eq!(locked.is_crowded(), crowded);
    }
    let [first, second] = [0, 1].map(CoreId::new);
    assert_eq!(locked.lost(), Some(first));
    let lost = [first, second].map(|core| locked.is_lost(core));
    assert_eq!(lost, [false, true]);
    let left = [None, Some(first), Some(second)].map(|core| locked.has_left(core));
    assert_eq!(left, [false, false, true]);
    let lines = [first, second].map(|core| locked.loads_lines(Region::memory(core)));
    assert_eq!(lines, [false, true]);
    assert_eq!(locked.message_buffer_size(), 32);
    let at = Region::memory(first).at(8);
    locked.load_bytes(at, &mut [0; 3]);
    locked.settle();
    let place = Location::caller();
    Topology::called(&locked, place);
    locked.looks(place);
    locked.expected(at, 3, Expected::Starts);
    locked.relax(&[Watch { at, seen: 0 }; 2]);
    locked.told(second);
    locked.ended();
    let [told, looks] = ["called", "looks"].map(|how| format!("{how} {}", place.line()));
    let expected = format!("expected {at} 3");
    let load = format!("load_bytes {at} 3");
    let calls = locked.machine().calls.take();
    assert_eq!(
        calls,
        [
            &load, "settle", &told, &looks, &expected, "relax 2", "told 1", "ended"
        ]
    );
}
