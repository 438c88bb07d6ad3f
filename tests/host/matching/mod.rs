//! Random programs of notified puts, requests, probes: the same matches in the same order as in a
//! model with an unbounded list. `FLAGPOST_PROGRAMS=n` changes how many programs run.
//!
//! The model knows in which order notifications came by looking at what the link gives (`link`); so
//! it can say of each call what it must answer, and that no call takes more from the link than it
//! needs. Per source the order is that of sending, which is checked on its own.

#![allow(
    clippy::result_large_err,
    reason = "what is made goes back to its user, without a heap"
)]

mod link;
mod model;
mod program;

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use flagpost::{
    Budget, Config as WorldConfig, EpochSlots, Error, Link, Model as Memory, Rank, Request,
    Session, Source, Status, Tag, TagFilter, Unfinished, Window, World, test_any,
};
use flagpost_link::Wants;
use flagpost_mapped::Mapped;
use flagpost_sim::{Config, Profile, Schedule, Sim, SimCore};

use crate::groups;
use link::{Log, Recorded};
use model::{Answer, Filter, Model, Note, Wanted};
use program::{Call, Program, REGION, Send, WINDOWS, generate};

/// Programs of a deep run.
const PROGRAMS: u64 = 3_000;

const RECEIVER: Rank = Rank::new(0);

type Windows<'w, L> = [Window<'w, u32, L>; WINDOWS];

/// What an immediate says (docs of `Limits`): source, window (6 bits), tag.
fn note(world_tag: u32, immediate: u32) -> Note {
    let bits = world_tag.count_ones();
    let high = immediate >> bits;
    Note {
        window: (high & 63) as usize,
        source: (high >> 6) as u16,
        tag: immediate & world_tag,
    }
}

fn source(filter: &Filter) -> Source {
    filter
        .source
        .map_or(Source::Any, |rank| Rank::new(rank).into())
}

fn tag(filter: &Filter) -> TagFilter {
    filter.tag.map_or(TagFilter::Any, |tag| Tag(tag).into())
}

/// What a rank has put last to each element of its region of a window.
type Regions = [[u32; REGION]; WINDOWS];

/// Puts; `number` is the rank's, for the values.
fn send<L: Link>(
    windows: &Windows<'_, L>,
    what: &Send,
    number: u32,
    put: &mut Regions,
    budget: Budget,
) -> Result<(), Error> {
    let window = &windows[what.window];
    let me = window.world().rank();
    let mut data = [0; REGION];
    data[..what.len].fill(number);
    let index = me.index() * REGION + what.first;
    let sending = window
        .to(RECEIVER, index)
        .notify(Tag(what.tag))
        .put(&data[..what.len])?;
    let sent = sending.wait_within(budget);
    sent.map_err(Unfinished::give_up)?;
    put[what.window][what.first..what.first + what.len].fill(number);
    Ok(())
}

/// Rank 0, which compares all that it sees with the model.
struct Receiver<'r, 'w, L> {
    world: &'w World<'w, L>,
    windows: &'r Windows<'w, L>,
    log: &'r Log,
    model: Model,
    /// All that came, in order.
    came: Vec<Note>,
}

impl<'r, L: Link> Receiver<'r, '_, L> {
    /// What the link has given since the last call goes to the model.
    fn feed(&mut self) {
        let max = self.world.limits().tag;
        let given: Vec<_> = self.log.take();
        let given = given
            .into_iter()
            .map(|immediate| Some(note(max, immediate?)));
        let given: Vec<_> = given.collect();
        self.came.extend(given.iter().flatten());
        self.model.give(given);
    }

    fn agree<T: PartialEq + std::fmt::Debug>(
        &mut self,
        what: &str,
        found: Answer<T>,
        model: Answer<T>,
    ) {
        assert_eq!(found, model, "{what}");
        self.model.settle();
    }

    fn request(&self, wanted: &Wanted) -> Result<Request<'r, L>, Error> {
        let Wanted { filter, count } = wanted;
        let request = self.windows[filter.window].expect(0..0, tag(filter))?;
        request.from(source(filter))?.times(*count)
    }

    fn call(
        &mut self,
        requests: &mut [Request<'r, L>],
        call: &Call,
    ) -> Result<Option<Send>, Error> {
        match call {
            Call::Start(index) => {
                let found = answer(requests[*index].start().map(Some), |()| ());
                self.feed();
                let model = self.model.start(*index);
                self.agree("start", found, model);
            }
            Call::Cancel(index) => {
                let found = answer(requests[*index].cancel().map(Some), |()| ());
                self.feed();
                let model = self.model.cancel(*index);
                self.model.absorb();
                self.agree("cancel", found, model);
            }
            Call::Test(index) => self.test(&mut requests[*index], *index),
            Call::TestAny(from) => self.test_any(requests, *from),
            Call::Probe(filter) => {
                let window = &self.windows[filter.window];
                let found = window.probe(source(filter), tag(filter));
                let found = answer(found, |status| noted(filter.window, status));
                self.feed();
                let model = self.model.probe(filter);
                self.agree("probe", found, model);
            }
            Call::Discard(window) => {
                let found = self.windows[*window].discard_notifications();
                let found = answer(found.map(Some), |count| count);
                self.feed();
                let model = self.model.discard(*window);
                self.agree("discard", found, model);
            }
            Call::Own(what) => return Ok(Some(*what)),
            Call::Pause(steps) => {
                for _ in 0..*steps {
                    self.world.link().now();
                }
            }
        }
        for (index, request) in requests.iter().enumerate() {
            let last = self.model.status(index);
            let window = last.map_or(0, |note| note.window);
            let found = request.status().map(|status| noted(window, status));
            assert_eq!(found, last, "status of {index}");
        }
        Ok(None)
    }

    fn test(&mut self, request: &mut Request<'r, L>, index: usize) {
        let found = request.test();
        self.feed();
        let model = self.model.test(index);
        let window = match model {
            Answer::Is(note) => note.window,
            _ => 0,
        };
        let found = answer(found, |status| noted(window, status));
        self.agree("test", found, model);
    }

    fn test_any(&mut self, requests: &mut [Request<'r, L>], from: usize) {
        let found = test_any(&mut requests[from..]);
        self.feed();
        let model = self.model.test_any(from);
        let window = match model {
            Answer::Is((_, note)) => note.window,
            _ => 0,
        };
        let found = answer(found, |index| {
            let status = requests[from + index].status();
            (index, noted(window, status.expect("it is complete")))
        });
        self.agree("test_any", found, model);
    }
}

fn noted(window: usize, status: Status) -> Note {
    Note {
        window,
        source: status.source.get(),
        tag: status.tag.0,
    }
}

fn answer<T, U>(result: Result<Option<T>, Error>, is: impl FnOnce(T) -> U) -> Answer<U> {
    match result {
        Ok(Some(found)) => Answer::Is(is(found)),
        Ok(None) => Answer::Nothing,
        Err(Error::QueueFull { .. }) => Answer::Full,
        Err(Error::RequestActive | Error::RequestInactive) => Answer::Refused,
        Err(other) => panic!("{other}"),
    }
}

/// Rank 0's part. Gives what it has put to itself, and all that came.
fn receive<'w, L: Link>(
    program: &Program,
    world: &'w World<'w, L>,
    windows: &Windows<'w, L>,
    log: &Log,
) -> Result<(Regions, Vec<Note>), Error> {
    let mut put = Regions::default();
    let mut sent = program.sends.iter().map(Vec::len).sum::<usize>();
    // Two more, for the end: anything, in each window.
    let any = |window| Wanted {
        filter: Filter {
            window,
            source: None,
            tag: None,
        },
        count: 1,
    };
    let mut all = program.requests.clone();
    all.extend((0..WINDOWS).map(any));
    let mut receiver = Receiver {
        world,
        windows,
        log,
        model: Model::new(&all, program.unexpected),
        came: Vec::new(),
    };
    // Senders may have begun while the windows were made.
    receiver.feed();
    receiver.model.absorb();
    let made: Result<Vec<_>, _> = all.iter().map(|wanted| receiver.request(wanted)).collect();
    let mut requests = made?;
    let first = program.requests.len();
    for (number, call) in (1..).zip(&program.calls) {
        let Some(own) = receiver.call(&mut requests, call)? else {
            continue;
        };
        match send(windows, &own, number, &mut put, Budget::microseconds(0)) {
            Ok(()) => sent += 1,
            Err(Error::Timeout(_)) => {}
            Err(error) => return Err(error),
        }
        receiver.feed();
        receiver.model.absorb();
    }
    for index in 0..first {
        if requests[index].is_started() {
            receiver.call(&mut requests, &Call::Cancel(index))?;
        }
    }
    // Whatever was sent comes, once.
    while receiver.model.gone < sent {
        for index in first..all.len() {
            if !requests[index].is_started() {
                receiver.call(&mut requests, &Call::Start(index))?;
            }
        }
        let before = receiver.model.gone;
        receiver.call(&mut requests, &Call::TestAny(first))?;
        if receiver.model.gone == before {
            world.link().relax();
        }
    }
    assert_eq!((receiver.model.gone, receiver.model.left()), (sent, 0));
    Ok((put, receiver.came))
}

/// One rank's part.
fn run(program: &Program, core: SimCore, arrived: &RefCell<Vec<Note>>) -> Result<(), Error> {
    let log = Log::default();
    let link = Mapped::start_with_ring(core, Session::FIRST, Some(program.ring))?;
    let link = Recorded {
        link,
        log: &log,
        asked: Cell::new(Wants::Other),
    };
    let config = WorldConfig {
        unexpected: program.unexpected,
    };
    let mut words = [0; 128];
    let world = World::start(link, &mut words, config)?;
    let len = usize::from(program.ranks) * REGION;
    // Not cached: what was put can be read without a request for it.
    let make = || world.allocate_with::<u32, EpochSlots<'_>>(len, Memory::Unified);
    let windows = [make()?, make()?];
    let mut put = Regions::default();
    if world.rank() == RECEIVER {
        let (own, came) = receive(program, &world, &windows, &log)?;
        put = own;
        *arrived.borrow_mut() = came;
    } else {
        let sends = &program.sends[world.rank().index() - 1];
        for (number, what) in (1..).zip(sends) {
            send(&windows, what, number, &mut put, Budget::UNLIMITED)?;
        }
    }
    // What each rank has put last is there.
    for (window, put) in windows.iter().zip(put) {
        let mut all = [[0; REGION]; 4];
        let all = &mut all[..usize::from(program.ranks)];
        world.allgather_of(put, all)?;
        let mut seen = [0; 4 * REGION];
        window.local().copy_out(0, &mut seen[..len])?;
        if world.rank() == RECEIVER {
            assert_eq!(seen[..len], *all.as_flattened(), "data");
        }
    }
    for window in windows {
        window.free()?;
    }
    Ok(())
}

/// Elements that are too long for one allgather.
trait Gather {
    fn allgather_of(&self, mine: [u32; REGION], all: &mut [[u32; REGION]]) -> Result<(), Error>;
}

impl<L: Link> Gather for World<'_, L> {
    fn allgather_of(&self, mine: [u32; REGION], all: &mut [[u32; REGION]]) -> Result<(), Error> {
        let mut part = [[0; 4]; 4];
        for from in (0..REGION).step_by(4) {
            let own: [u32; 4] = mine[from..from + 4].try_into().unwrap();
            self.allgather(own, &mut part[..all.len()])?;
            for (to, part) in all.iter_mut().zip(part) {
                to[from..from + 4].copy_from_slice(&part);
            }
        }
        Ok(())
    }
}

/// Runs the program of `seed` on all profiles, with that seed for the chip as well; gives the
/// steps.
fn check(seed: u64) -> u64 {
    let program = generate(seed);
    let on = |profile| {
        let config = Config {
            cores: program.ranks,
            profile,
            schedule: Schedule::Mixed,
            memory_size: 8 * 1024,
            buffer_size: 8 * 1024,
            ..Config::default()
        };
        let arrived = RefCell::new(Vec::new());
        let report = Sim::new(config)
            .reseed(seed)
            .run(|core| run(&program, core, &arrived));
        assert!(
            report.is_done(),
            "seed {seed} on {profile}: {program:?}\n{report}"
        );
        // Per source, in the order of sending.
        for (source, sends) in (1..).zip(&program.sends) {
            let came = arrived.borrow();
            let came = came.iter().filter(|note| note.source == source);
            let came: Vec<_> = came.map(|note| (note.window, note.tag)).collect();
            let sent: Vec<_> = sends.iter().map(|send| (send.window, send.tag)).collect();
            assert_eq!(came, sent, "seed {seed} on {profile}, order of {source}");
        }
        report.steps
    };
    Profile::ALL.into_iter().map(on).sum()
}

#[test]
fn the_same_matches_in_the_same_order() {
    let count = groups::programs(PROGRAMS);
    let (next, steps) = (AtomicU64::new(0), AtomicU64::new(0));
    // ORDERING: Relaxed: the numbers stand for nothing else.
    let work = || loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= count {
            return;
        }
        steps.fetch_add(check(seed), Ordering::Relaxed);
    };
    thread::scope(|scope| {
        scope.spawn(work);
        work();
    });
    let (runs, steps) = (count * Profile::ALL.len() as u64, steps.into_inner());
    println!("{count} programs, {runs} runs, {steps} steps");
}
