//! Verbs, layouts and notices combine freely: in each kind of epoch, without one, and on attached
//! memory in both.

use flagpost::{
    Compare, Counter, Displacement, DynamicOptions, DynamicWindow, Events, Link, Memory, Notice,
    Request, Rma as _, Signal, Tag, Window, World,
    epoch::Assert,
    notify::AnyWord,
    rma::{Block, Layout},
};
use flagpost_verbs::{Verb, begin};

use super::dynamic::next_of;
use super::steps::neighbours;
use crate::{Result, context::check};

const LEN: usize = 8;
const DATA: [u64; 2] = [5, 6];

/// What each piece holds: element 1 is what is compared with, element 4 is not.
const BEFORE: [u64; LEN] = [9, 0, 20, 30, 40, 50, 60, 70];

/// One element, and two that do not lie together; accesses are from element 1 on.
const ALONE: Layout<'static> = Layout::Indexed {
    blocks: &[Block { at: 3, len: 1 }],
};
const APART: Layout<'static> = Layout::Vector {
    blocks: 2,
    block_len: 1,
    stride: 3,
};

/// The elements that an access is about.
fn places(verb: Verb, apart: bool) -> &'static [usize] {
    match (verb, apart) {
        (Verb::FetchAndOp | Verb::CompareAndSwap, false) => &[1],
        (Verb::FetchAndOp | Verb::CompareAndSwap, true) => &[4],
        (_, false) => &[1, 2],
        (_, true) => &[1, 4],
    }
}

/// What an element is after the access.
fn after(verb: Verb, before: u64, data: u64) -> u64 {
    match verb {
        Verb::Put => data,
        Verb::Get => before,
        Verb::Accumulate | Verb::GetAccumulate => before + data,
        Verb::FetchAndOp => before + 1,
        Verb::CompareAndSwap if before == 0 => 1,
        Verb::CompareAndSwap => before,
    }
}

/// Makes the access by what reaches the peer, and checks what it found.
macro_rules! access {
    ($reach:expr, $next:expr, $verb:expr, $apart:expr, $notice:expr) => {{
        let (verb, apart) = ($verb, $apart);
        let reach = &$reach;
        let mut found = [0; 2];
        let target = reach.to($next, 1);
        let target = match (apart, places(verb, apart).len()) {
            (false, _) => target,
            (true, 1) => target.layout(ALONE),
            (true, _) => target.layout(APART),
        };
        let one = begin!(verb, target.notify($notice), &DATA, &mut found)?.wait()?;
        let finds = matches!(verb, Verb::Get | Verb::GetAccumulate);
        let found = match one {
            Some(one) => &[one][..],
            None if finds => &found[..],
            None => &[],
        };
        for (found, place) in found.iter().zip(places(verb, apart)) {
            check(verb.name(), *found, BEFORE[*place])?;
        }
    }};
}

/// How the next rank's memory is reached.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Way {
    Bare,
    Fence,
    Pscw,
    Shared,
    All,
    Attached,
    AttachedBare,
}

/// The own piece, and what is told of it.
struct Own<'a, 'w, L: Link> {
    window: &'a Window<'w, u64, L>,
    dynamic: &'a DynamicWindow<'w, L>,
    events: &'a Events<'w, L>,
    /// Own attached memory; the next rank's.
    here: Displacement,
    there: Displacement,
}

impl<'w, L: Link> Own<'_, 'w, L> {
    fn store(&self, way: Way) -> Result {
        match way {
            Way::Attached | Way::AttachedBare => {
                self.dynamic.write(self.here, &BEFORE)?;
                Ok(self.dynamic.window().sync()?)
            }
            _ => {
                self.window.local().copy_in(0, &BEFORE)?;
                Ok(self.window.sync()?)
            }
        }
    }

    fn load(&self, way: Way) -> Result<[u64; LEN]> {
        let mut found = [0; LEN];
        match way {
            Way::Attached | Way::AttachedBare => self.dynamic.read(self.here, &mut found)?,
            _ => self.window.local().copy_out(0, &mut found)?,
        }
        Ok(found)
    }

    /// Waits for a notice that is no tag; counters and signals have been told `count` times then.
    fn wait(&self, way: Way, kind: usize, count: u32) -> Result {
        let attached = matches!(way, Way::Attached | Way::AttachedBare);
        let (word, until) = match kind {
            1 => (AnyWord::from(Counter(0)), count),
            2 => (Signal(1).into(), count),
            _ => (self.events.event(0)?.into(), 1),
        };
        let (compare, until) = (Compare::Ge, until.into());
        let mut request = match attached {
            false => self.window.expect_word(0..LEN, word, compare, until)?,
            true => self.dynamic.expect_word(word, compare, until)?,
        };
        request.start()?;
        request.wait()?;
        Ok(())
    }

    /// One access to the next rank's piece, of which it is told by `notice`.
    fn access(&self, way: Way, verb: Verb, apart: bool, notice: Notice<'_, L::Word>) -> Result {
        let (window, dynamic, there) = (self.window, self.dynamic, self.there);
        let world = window.world();
        let (_, next, prev) = neighbours(world);
        match way {
            Way::Bare => access!(window, next, verb, apart, notice),
            Way::Fence => {
                let epoch = window.fence(Assert::NO_PRECEDE)?;
                access!(epoch, next, verb, apart, notice);
                epoch.end()?;
            }
            Way::Pscw => {
                let exposure = window.post([prev])?;
                let epoch = window.start([next])?;
                access!(epoch, next, verb, apart, notice);
                epoch.complete()?;
                exposure.wait()?;
            }
            Way::Shared => {
                let lock = window.lock_shared(next)?;
                access!(lock, next, verb, apart, notice);
                lock.unlock()?;
            }
            Way::All => {
                let lock = window.lock_all()?;
                access!(lock, next, verb, apart, notice);
                lock.unlock()?;
            }
            Way::Attached => {
                let lock = dynamic.window().lock_shared(next)?;
                access!(dynamic.at(&lock, there), next, verb, apart, notice);
                lock.unlock()?;
            }
            Way::AttachedBare => {
                let bare = dynamic.at(dynamic.window(), there);
                access!(bare, next, verb, apart, notice);
            }
        }
        Ok(())
    }
}

/// Every verb, in two layouts, by each way; with each kind of notice.
pub(super) fn combine<L: Link>(world: &World<'_, L>) -> Result {
    let (me, size) = (world.rank(), world.size());
    let prev = me.prev(size);
    let mut window = world.allocate::<u64>(LEN)?;
    window.set_num_notify(2)?;
    let mut dynamic = world.dynamic(DynamicOptions::default())?;
    dynamic.set_num_notify(2)?;
    let events = world.events(1)?;
    let memory: Memory<'_, L> = world.reserve(LEN * 8)?;
    let here = dynamic.attach(&memory)?;
    let there = next_of(world, here)?;
    let own = Own {
        window: &window,
        dynamic: &dynamic,
        events: &events,
        here,
        there,
    };
    let ways = [
        Way::Bare,
        Way::Fence,
        Way::Pscw,
        Way::Shared,
        Way::All,
        Way::Attached,
        Way::AttachedBare,
    ];
    // How often each word has been told, of either window.
    let mut told = [[0; 4]; 2];
    let of_window = window.expect(0..LEN, Tag(3))?.from(prev)?;
    let of_dynamic = dynamic.expect(Tag(3))?.from(prev)?;
    let mut tags = [of_window, of_dynamic];
    let accesses = Verb::ALL
        .into_iter()
        .flat_map(|verb| [(verb, false), (verb, true)]);
    for (turn, way) in ways.into_iter().enumerate() {
        let attached = matches!(way, Way::Attached | Way::AttachedBare);
        let side = usize::from(attached);
        // Each access comes with each kind of notice, though not by each way; but the put whose
        // data travel with their tag does so by each.
        let kinds = accesses.clone().enumerate();
        let kinds = kinds.map(|(number, access)| ((turn + number) % 4, access));
        for (kind, (verb, apart)) in kinds.chain([(0, (Verb::Put, false))]) {
            let notice = match kind {
                0 => Notice::from(Tag(3)),
                1 => Counter(0).into(),
                2 => Signal(1).add(1.into()),
                _ => events.event(0)?.into(),
            };
            own.store(way)?;
            let tag: &mut Request<'_, L> = &mut tags[side];
            if kind == 0 {
                tag.start()?;
            }
            world.barrier()?;
            own.access(way, verb, apart, notice)?;
            if kind == 0 {
                check("source", tag.wait()?.source == prev, true)?;
            } else {
                told[side][kind] += 1;
                own.wait(way, kind, told[side][kind])?;
            }
            let mut expected = BEFORE;
            for (place, data) in places(verb, apart).iter().zip(DATA) {
                expected[*place] = after(verb, BEFORE[*place], data);
            }
            check(verb.name(), own.load(way)? == expected, true)?;
            world.barrier()?;
        }
    }
    drop(tags);
    dynamic.detach(&memory)?;
    dynamic.free()?;
    window.free()?;
    events.free()?;
    Ok(memory.release()?)
}
