//! The link over a network that does what a test says. The test decides when posted operations are
//! done, and which events come. It sees what the link posts, and how the link answers events.

use alloc::{collections::VecDeque, vec::Vec};
use core::cell::{Cell, RefCell};

use flagpost_hal::CoreId;
use flagpost_hal::fabric::{Event, Fabric, SendQueueFull, Watched, Work};
use flagpost_link::{
    Access as _, LocalMemory as _, Op, Rank, Refusal, Telling as _, Waiting as _, Wants,
};

use crate::{Networked, control::Said};

/// The rank whose link it is. It has a peer before it and one after it.
const ME: Rank = Rank::new(1);
const PEERS: [Rank; 2] = [Rank::new(0), Rank::new(2)];
const RANKS: u16 = 3;

/// A network.
#[derive(Default)]
struct Script {
    orders: bool,
    /// It takes no operation now.
    refuses: Cell<bool>,
    /// Operations of which an event is to tell, and where they are.
    under_way: RefCell<VecDeque<(u32, Rank)>>,
    /// The immediates that each rank was told.
    told: [RefCell<Vec<Said>>; RANKS as usize],
    events: RefCell<VecDeque<Event>>,
    /// How many words each relaxing has watched; none where it was a pause.
    relaxed: RefCell<Vec<Option<usize>>>,
}

impl Fabric for Script {
    fn core(&self) -> CoreId {
        CoreId::new(ME.get())
    }

    fn cores(&self) -> u16 {
        RANKS
    }

    fn memory_size(&self) -> usize {
        1 << 14
    }

    fn orders_puts(&self) -> bool {
        self.orders
    }

    fn read(&self, _: usize, into: &mut [u8]) {
        into.fill(0);
    }

    fn write(&self, _: usize, _: &[u8]) {}

    fn post(&self, id: u32, to: CoreId, work: Work<'_>) -> Result<(), SendQueueFull> {
        if self.refuses.get() {
            return Err(SendQueueFull);
        }
        let to = Rank::new(to.get());
        let (immediate, confirmed) = match work {
            Work::Put {
                immediate,
                confirmed,
                ..
            } => (immediate, confirmed),
            _ => (None, true),
        };
        let told = immediate.map(Said::unpack);
        self.told[to.index()].borrow_mut().extend(told);
        if confirmed {
            self.under_way.borrow_mut().push_back((id, to));
        }
        Ok(())
    }

    fn poll(&self) -> Option<Event> {
        self.events.borrow_mut().pop_front()
    }

    fn relax(&self, watched: &[Watched]) {
        self.relaxed.borrow_mut().push(Some(watched.len()));
    }

    fn pause(&self) {
        self.relaxed.borrow_mut().push(None);
    }

    fn now(&self) -> u64 {
        0
    }

    fn ticks_per_second(&self) -> u64 {
        1
    }
}

impl Script {
    fn link(entries: u32, orders: bool) -> Networked<Self> {
        let script = Self {
            orders,
            ..Self::default()
        };
        Networked::start_with_queue(script, entries).unwrap()
    }

    /// All that is in flight is done.
    fn settle(&self) {
        let done = |(id, _)| Event::Done { id, value: 0 };
        let all = self.under_way.take().into_iter().map(done);
        self.events.borrow_mut().extend(all);
    }

    /// `from` tells something.
    fn hear(&self, from: Rank, said: Said) {
        self.events.borrow_mut().push_back(Event::Immediate {
            from: CoreId::new(from.get()),
            immediate: said.pack(),
        });
    }

    /// How many credits a rank was given back.
    fn given(&self, to: Rank) -> u32 {
        let told = self.told[to.index()].borrow();
        let credits = told.iter().map(|said| match said {
            Said::Credits(count) => *count,
            _ => 0,
        });
        credits.sum()
    }
}

/// One notification, with whatever came before it done.
fn notify(link: &Networked<Script>, to: Rank) -> Result<(), Refusal> {
    link.fabric().settle();
    let scratch = link.scratch().0;
    link.put_immediate(to, (scratch, 0), &[], 7, false, &Op::new())
}

/// Tells `to` as often as there is room, so often; then no more, however often it is tried.
fn fills(link: &Networked<Script>, to: Rank, room: u32) {
    for nth in 0..room {
        assert_eq!(notify(link, to), Ok(()), "{nth} of {room} to rank {to}");
    }
    for _ in 0..3 {
        assert_eq!(
            notify(link, to),
            Err(Refusal::Full(to)),
            "{room} to rank {to}"
        );
    }
}

/// A peer's queue has room for what was agreed, and for what the peer gives back: no more, and for
/// each peer by itself.
#[test]
fn a_peer_is_told_as_often_as_it_has_room() {
    for (orders, entries) in [true, false].into_iter().zip([1, 2, 3, 8, 64]).chain([
        (true, 64),
        (false, 1),
        (false, 3),
        (true, 2),
    ]) {
        let link = Script::link(entries, orders);
        for to in PEERS {
            fills(&link, to, entries);
        }
        for lap in 0..2 * entries {
            // Of different numbers, one after the other, and in turn.
            let back = lap % entries + 1;
            let [to, other] = [0, 1].map(|nth| PEERS[(lap as usize + nth) % 2]);
            link.fabric().hear(to, Said::Credits(back));
            assert_eq!(notify(&link, other), Err(Refusal::Full(other)));
            fills(&link, to, back);
        }
    }
}

/// The same of what a rank tells itself: what it takes leaves room.
#[test]
fn a_rank_tells_itself_as_often_as_it_has_room() {
    for entries in [1, 2, 3, 8, 64] {
        let link = Script::link(entries, true);
        fills(&link, ME, entries);
        for lap in 0..2 * entries {
            let taken = lap % entries + 1;
            for _ in 0..taken {
                let told = link.progress(Wants::Any).unwrap();
                assert_eq!((told.sender, told.immediate), (Some(ME), 7));
            }
            fills(&link, ME, taken);
        }
        (0..entries).for_each(|_| assert!(link.progress(Wants::Any).is_some()));
        assert_eq!(link.progress(Wants::Any), None);
        // Nobody else has had its room.
        PEERS.into_iter().for_each(|to| fills(&link, to, entries));
    }
}

/// Peers get back what was taken of them, each its own: never more, and so much that less than half
/// is missing. A network that refuses delays it.
#[test]
fn credits_come_back_to_each_peer() {
    for entries in [1, 2, 5, 64] {
        let link = Script::link(entries, true);
        let script = link.fabric();
        let mut taken = [0; 2];
        for lap in 0..6 * entries {
            script.refuses.set(lap % 3 == 1);
            for (nth, from) in PEERS.into_iter().enumerate() {
                // Each sends this much at most, and one of them less often.
                let sends = nth == 0 || lap % 2 == 0;
                if sends && taken[nth] - script.given(from) < entries {
                    script.hear(from, Said::User(5));
                }
            }
            while let Some(told) = link.progress(Wants::Any) {
                let nth = PEERS.iter().position(|peer| Some(*peer) == told.sender);
                taken[nth.unwrap()] += 1;
            }
            for (taken, peer) in taken.iter().zip(PEERS) {
                let owed = taken - script.given(peer);
                assert!(owed <= *taken, "rank {peer} has more than it gave");
                let less_than_half = 2 * owed < entries;
                assert!(
                    less_than_half || script.refuses.get(),
                    "{owed} of rank {peer}"
                );
            }
        }
        assert_eq!(script.given(ME), 0);
    }
}

/// A fence waits for each peer to which a put has left, the first of all ranks and the last; a
/// flush of one for that one.
#[test]
fn a_fence_waits_for_each_peer() {
    let [first, last] = PEERS;
    for orders in [true, false] {
        for to in [&[first][..], &[last], &[first, last], &[last, first]] {
            for flushed in [None, Some(first), Some(last)] {
                let link = Script::link(4, orders);
                let script = link.fabric();
                let wait = || match flushed {
                    None => link.fence(),
                    some => link.flush(some),
                };
                for _ in 0..3 {
                    for to in to {
                        link.put(*to, link.scratch().0, 0, &[1]).unwrap();
                    }
                    for awaited in to.iter().filter(|to| flushed.is_none_or(|one| one == **to)) {
                        assert!(matches!(wait(), Err(Refusal::Busy(_))), "rank {awaited}");
                        // It is asked once.
                        let mut asked = script.under_way.borrow_mut();
                        let mine = asked.iter().filter(|(_, at)| at == awaited);
                        assert_eq!(mine.count(), 1, "rank {awaited}, {orders}");
                        let place = asked.iter().position(|(_, at)| at == awaited);
                        let (id, _) = asked.remove(place.unwrap()).unwrap();
                        script
                            .events
                            .borrow_mut()
                            .push_back(Event::Done { id, value: 0 });
                    }
                    assert_eq!(wait(), Ok(()), "{to:?} {flushed:?} {orders}");
                    assert_eq!(wait(), Ok(()));
                    script.settle();
                    assert!(matches!(link.fence(), Ok(()) | Err(Refusal::Busy(_))));
                    script.settle();
                    assert_eq!(link.fence(), Ok(()));
                }
            }
        }
    }
}

/// A loop that looks at more words than are remembered does not sleep, since nobody would wake it;
/// nor does one that has looked at what no word tells, or has missed an event.
#[test]
fn who_looks_at_more_than_can_be_watched_does_not_sleep() {
    let link = Script::link(4, true);
    let (looks, script) = (&link.looks, link.fabric());
    let relaxed = |words: usize| {
        // Each twice: it is one word.
        (0..words)
            .chain(0..words)
            .for_each(|word| looks.note(8 * word, 1));
        link.relax();
        script.relaxed.borrow_mut().pop().unwrap()
    };
    for round in 0..3 {
        for words in 1..=4 {
            assert_eq!(relaxed(words), Some(words), "{round}");
        }
        assert_eq!(relaxed(5), None, "{round}");
        looks.unwatched();
        assert_eq!(relaxed(1), None);
        looks.mark();
        assert_eq!(relaxed(0), Some(0), "an event would end it");
        looks.mark();
        looks.handled();
        assert_eq!(relaxed(1), None);
        assert_eq!(relaxed(0), None, "nothing was looked at");
    }
}
