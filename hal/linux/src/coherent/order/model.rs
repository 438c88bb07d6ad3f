//! The operations in all orders that the language allows (`loom`): right with all fences, and wrong
//! without any one of them.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, fence};
use loom::thread;

use super::*;

/// What a scenario is to be tried without.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Without {
    Nothing,
    Drain,
    Acquire,
    Settle,
    /// The order of the register's swap, or of the store that clears it.
    Swap,
    Clear,
}

impl Fences for Without {
    fn fence(&self, order: Ordering) {
        let without = match self {
            Self::Drain => Some(Release),
            Self::Acquire => Some(Acquire),
            Self::Settle => Some(SeqCst),
            _ => None,
        };
        if without != Some(order) {
            fence(order);
        }
    }
}

shared!(AtomicU8: u8, AtomicU32: u32, AtomicU64: u64);

/// Bytes of which no two ranks' accesses may be at the same time: a read that is under way while
/// the next rank stores is wrong, though it was begun before.
struct Plain<T>(UnsafeCell<T>);

// SAFETY: the model stops at two accesses, one of them a store, of which neither comes before the
// other.
unsafe impl<T: Send> Sync for Plain<T> {}

impl<T: Copy + PartialEq> Shared for Plain<T> {
    type Number = T;

    fn get(&self) -> T {
        // SAFETY: as above; nothing keeps the pointer.
        self.0.with(|value| unsafe { *value })
    }

    fn set(&self, value: T) {
        // SAFETY: as above.
        self.0.with_mut(|place| unsafe { *place = value });
    }
}

impl<T: Copy + PartialEq> Claimed for Plain<T> {
    fn exchange(&self, from: T, _: T) -> bool {
        self.get() == from
    }
}

fn plain<T>(value: T) -> Plain<T> {
    Plain(UnsafeCell::new(value))
}

fn zero() -> AtomicU64 {
    AtomicU64::new(0)
}

/// A record in memory.
struct Entry<L> {
    words: [AtomicU32; 2],
    body: [L; 2],
}

impl<L> Entry<L> {
    fn new(zero: impl Fn() -> L) -> Self {
        Self {
            words: [AtomicU32::new(0), AtomicU32::new(0)],
            body: [zero(), zero()],
        }
    }

    fn at(&self) -> Record<'_, AtomicU32, L> {
        (self.words.each_ref(), self.body.each_ref())
    }
}

/// The owner takes `entry`, whose words are 1 and 2 and whose body is 3 and 4: 4 goes to `place`.
fn take<L: Claimed<Number = u64>>(
    owner: Without,
    entry: &Entry<L>,
    (place, last): (&L, &AtomicU32),
) -> Option<bool> {
    let claimed = |head| head;
    take_record(&owner, entry.at(), 1, claimed, |second, body| {
        assert_eq!((second, body), (2, [3, 4]));
        Some(((place, body[1]), (last, 1)))
    })
}

/// An entry that is there, a place, and the word that says that the entry was taken.
fn stored<L: Claimed<Number = u64>>(zero: impl Fn() -> L) -> (Entry<L>, L, AtomicU32) {
    let entry = Entry::new(&zero);
    store_record(&Without::Nothing, entry.at(), [1, 2], [3, 4]);
    (entry, zero(), AtomicU32::new(0))
}

/// Two ranks, in all orders.
fn two<S: Send + Sync + 'static, A: 'static>(
    shared: impl Fn() -> S + Sync + Send + 'static,
    first: impl Fn(&S) -> A + Copy + Send + Sync + 'static,
    second: impl Fn(&S) -> A + Copy + Send + Sync + 'static,
    judge: impl Fn(&S, A, A) + Copy + Send + Sync + 'static,
) {
    loom::model(move || {
        let shared = Arc::new(shared());
        let other = Arc::clone(&shared);
        let other = thread::spawn(move || first(&other));
        let here = second(&shared);
        let there = other.join().expect("it ends");
        judge(&shared, there, here);
    });
}

/// Tests of a scenario: as it is, and without what is named, at one of two ranks.
macro_rules! needs {
    ($scenario:ident: $($test:ident = $first:ident, $second:ident;)*) => {
        mod $scenario {
            use super::Without;

            #[test]
            fn holds() {
                super::$scenario(Without::Nothing, Without::Nothing);
            }

            $(
                #[test]
                #[should_panic]
                fn $test() {
                    super::$scenario(Without::$first, Without::$second);
                }
            )*
        }
    };
}

/// Message passing: the rest of a record is seen by who sees its first word.
fn record(producer: Without, owner: Without) {
    two(
        || (Entry::new(zero), zero(), AtomicU32::new(0)),
        move |(entry, ..)| {
            store_record(&producer, entry.at(), [1, 2], [3, 4]);
        },
        move |(entry, place, last)| {
            take(owner, entry, (place, last));
        },
        |_, (), ()| {},
    );
}

needs!(record:
    needs_the_drain = Drain, Nothing;
    needs_the_acquire = Nothing, Acquire;
);

/// Give-back: who finds that its record was taken finds what was stored for it.
fn given_back(producer: Without, owner: Without) {
    two(
        || stored(zero),
        move |(_, place, last)| {
            if has_come(&producer, last, 1) {
                assert_eq!(place.get(), 4);
            }
        },
        move |(entry, place, last)| {
            assert_eq!(take(owner, entry, (place, last)), Some(true));
        },
        |_, (), ()| {},
    );
}

needs!(given_back:
    needs_the_acquire = Acquire, Nothing;
    needs_the_drain = Nothing, Drain;
);

/// Give-back: the next record is not stored over one that is still read, nor its payload over
/// payload.
fn overwritten(producer: Without, owner: Without) {
    two(
        || stored(|| plain(0)),
        move |(entry, _, last)| {
            if has_come(&producer, last, 1) {
                store_record(&producer, entry.at(), [5, 6], [7, 8]);
            }
        },
        move |(entry, place, last)| {
            assert_eq!(take(owner, entry, (place, last)), Some(true));
        },
        |_, (), ()| {},
    );
}

needs!(overwritten:
    needs_the_acquire = Acquire, Nothing;
    needs_the_drain = Nothing, Drain;
);

/// A flush meets the owner that takes the record: one of them stores the data, and both find them
/// in their place afterwards.
fn one_rank_claims(producer: Without, owner: Without) {
    const BUSY: u64 = 8;
    const DONE: u64 = 9;
    two(
        || {
            let entry = Entry::new(zero);
            store_record(&Without::Nothing, entry.at(), [1, 2], [3, 4]);
            (entry, plain(0), AtomicU32::new(0))
        },
        move |(entry, place, last)| {
            let [head, _] = &entry.body;
            if head.exchange(3, BUSY) {
                place.set(4);
                producer.drain();
                head.set(DONE);
            } else if has_come(&producer, last, 1) {
                assert_eq!(place.get(), 4);
            }
        },
        move |(entry, place, last)| {
            let ([first, _], [head, _]) = entry.at();
            if !has_come(&owner, first, 1) {
                return;
            }
            if head.exchange(3, 7) {
                place.set(4);
                announce(&owner, last, 1);
            } else if head.get() == DONE {
                owner.acquire();
                assert_eq!(place.get(), 4);
            }
        },
        |_, (), ()| {},
    );
}

needs!(one_rank_claims:
    needs_the_drain_of_the_flush = Drain, Nothing;
    needs_the_acquire_of_the_flush = Acquire, Nothing;
    needs_the_drain_of_the_owner = Nothing, Drain;
    needs_the_acquire_of_the_owner = Nothing, Acquire;
);

/// Two records of one producer: who takes the second, and does not find the first behind that,
/// overtakes.
fn in_turn(producer: Without, owner: Without) {
    let entry = || Entry::new(zero);
    two(
        move || [entry(), entry()],
        move |[facing, ring]| {
            store_record(&producer, facing.at(), [1, 0], [0, 0]);
            store_record(&producer, ring.at(), [1, 0], [0, 0]);
        },
        move |[facing, ring]| {
            let answer = |_, _| {
                assert_eq!(load_record(facing.at()), 1);
                None
            };
            take_record(&owner, ring.at(), 1, |head| head, answer);
        },
        |_, (), ()| {},
    );
}

needs!(in_turn:
    needs_the_drain = Drain, Nothing;
    needs_the_acquire = Nothing, Acquire;
);

/// Store buffering: of two ranks that put, flush and get, one sees the other's.
fn settled(first: Without, second: Without) {
    let act = |fences: Without, own: &AtomicU64, other: &AtomicU64| {
        own.set(1);
        fences.settle();
        other.get()
    };
    two(
        || [zero(), zero()],
        move |[a, b]| act(first, a, b),
        move |[a, b]| act(second, b, a),
        |_, first, second| assert_ne!((first, second), (0, 0)),
    );
}

needs!(settled:
    needs_both = Settle, Nothing;
    needs_both_indeed = Nothing, Settle;
);

/// A register whose orders are left out.
struct Weak<'r>(Without, &'r AtomicU32);

impl Register for Weak<'_> {
    fn load(&self, order: Ordering) -> u32 {
        self.1.load(order)
    }

    fn swap(&self, value: u32, order: Ordering) -> u32 {
        let relaxed = self.0 == Without::Swap;
        self.1.swap(value, if relaxed { Relaxed } else { order })
    }

    fn store(&self, value: u32, order: Ordering) {
        let relaxed = self.0 == Without::Clear;
        self.1.store(value, if relaxed { Relaxed } else { order });
    }
}

/// Mutual exclusion: what is changed under a register is changed by one rank at a time.
fn exclusive(first: Without, second: Without) {
    let act = |without: Without, (register, data): &(AtomicU32, Plain<u32>)| {
        let register = Weak(without, register);
        let entered = test_and_set(&register);
        if entered {
            data.set(data.get() + 1);
            clear(&register);
        }
        u32::from(entered)
    };
    two(
        || (AtomicU32::new(0), plain(0)),
        move |shared| act(first, shared),
        move |shared| act(second, shared),
        |(_, data), first, second| assert_eq!(data.get(), first + second),
    );
}

needs!(exclusive:
    needs_the_order_of_the_swap = Swap, Nothing;
    needs_the_order_of_the_clear = Clear, Nothing;
);

/// Bytes 7 to 16 of something: one, an element of 8, one.
struct Bulk {
    ends: [AtomicU8; 2],
    long: AtomicU64,
}

impl Span for Bulk {
    type Byte = AtomicU8;
    type Long = AtomicU64;

    fn head(&self, _: usize) -> usize {
        1
    }

    fn byte(&self, index: usize) -> &AtomicU8 {
        &self.ends[usize::from(index != 0)]
    }

    fn long(&self, index: usize) -> &AtomicU64 {
        assert_eq!(index, 1);
        &self.long
    }
}

/// Bulk data, and a word that announces them.
fn bulk(producer: Without, consumer: Without) {
    const DATA: [u8; 10] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
    let empty = || Bulk {
        ends: [AtomicU8::new(0), AtomicU8::new(0)],
        long: AtomicU64::new(0),
    };
    two(
        move || (empty(), AtomicU32::new(0)),
        move |(data, flag)| {
            copy_in(data, &DATA);
            announce(&producer, flag, 1);
        },
        move |(data, flag)| {
            if has_come(&consumer, flag, 1) {
                let mut seen = [0; 10];
                copy_out(data, &mut seen);
                assert_eq!(seen, DATA);
            }
        },
        |_, (), ()| {},
    );
}

needs!(bulk:
    needs_the_drain = Drain, Nothing;
    needs_the_acquire = Nothing, Acquire;
);
