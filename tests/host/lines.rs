//! Which lines matching touches, from cold: [NA] V allows two, the request's and the queue head's,
//! besides the ring's.
//!
//! Kernel structures lie in the host's memory, so their accesses are taken from a trace: this
//! program runs itself under `valgrind --tool=lackey`, which prints every load and store. Those of
//! one call of `test` to the request, the world, the window and the arena are then repeated on the
//! simulator's cache, which is cold; its counter of misses is what is checked. Accesses to the
//! link's own state are left out: they are the ring's. Without valgrind nothing is measured, and
//! that is said.
//!
//! [NA]: flagpost

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::hint::black_box;
use std::io::{BufRead, BufReader, Read};
use std::mem::size_of_val;
use std::ops::Range;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use flagpost::{Config as WorldConfig, Error, Link, Rank, Request, Source, Tag, Window, World};
use flagpost_hal::{CachedMemory, CoreId, Region};
use flagpost_link::{
    Access, Amo, Arrival, Fast, Key, LocalMemory, Op, Place, Refusal, Slot, Slots, Telling, Time,
    Waiting, Wants, Width, Word,
};
use flagpost_sim::{Config, Sim};

/// Bytes of a line, as on the SCC.
const LINE: u64 = 32;

/// A rank alone, whose queue of immediates is given.
struct Given {
    memory: Vec<Cell<u8>>,
    used: Cell<usize>,
    immediates: Vec<u32>,
    next: Cell<usize>,
}

impl Given {
    fn new(immediates: &[u32]) -> Self {
        Self {
            memory: vec![Cell::new(0); 4096],
            used: Cell::new(1024),
            immediates: immediates.to_vec(),
            next: Cell::new(0),
        }
    }

    fn at(&self, key: Key, offset: usize, len: usize) -> &[Cell<u8>] {
        let start = key.get() as usize + offset;
        &self.memory[start..start + len]
    }
}

impl Link for Given {
    type Word = u32;

    const SLOTS: u32 = 32;
    const LINE: usize = LINE as usize;
    const UPDATE: usize = 32;
    const DIRECT: bool = true;

    fn rank(&self) -> Rank {
        Rank::new(0)
    }

    fn size(&self) -> u16 {
        1
    }
}

impl LocalMemory for Given {
    fn allocate(&self, bytes: usize, _: Place) -> Result<Key, Refusal> {
        let start = self.used.get();
        self.used.set(start + bytes.next_multiple_of(LINE as usize));
        Ok(Key::new(start as u32))
    }

    fn withdraw(&self, _: impl Into<flagpost_link::Given>) {}

    fn allocate_slots(&self, _: Slots) -> Result<Slot, Refusal> {
        Ok(Slot(32))
    }

    fn renew_slots(&self, _: Slot, _: u32) -> Result<(), Refusal> {
        Ok(())
    }

    fn scratch(&self) -> (Key, usize) {
        (Key::new(0), 64)
    }

    fn read_local(&self, key: Key, offset: usize, into: &mut [u8]) -> Result<(), Refusal> {
        let from = self.at(key, offset, into.len());
        into.iter_mut()
            .zip(from)
            .for_each(|(to, from)| *to = from.get());
        Ok(())
    }

    fn write_local(&self, key: Key, offset: usize, from: &[u8]) -> Result<(), Refusal> {
        let to = self.at(key, offset, from.len());
        to.iter().zip(from).for_each(|(to, from)| to.set(*from));
        Ok(())
    }

    fn publish(&self, _: Key, _: usize, _: usize) -> Result<(), Refusal> {
        Ok(())
    }

    fn refresh(&self, _: Key, _: usize, _: usize) -> Result<(), Refusal> {
        Ok(())
    }
}

impl Access for Given {
    fn connect(&self, _: Rank) -> Result<(), Refusal> {
        Ok(())
    }

    fn put(&self, _: Rank, key: Key, offset: usize, data: &[u8]) -> Result<(), Refusal> {
        self.write_local(key, offset, data)
    }

    fn get(&self, _: Rank, key: Key, at: usize, into: &mut [u8], _: &Op) -> Result<(), Refusal> {
        self.read_local(key, at, into)
    }

    fn amo(&self, _: Rank, _: Key, at: usize, _: Amo, _: Width, _: &Op) -> Result<u64, Refusal> {
        Err(Refusal::BadCell { offset: at })
    }

    fn update(
        &self,
        _: Rank,
        _: Key,
        offset: usize,
        _: usize,
        _: &mut dyn FnMut(&mut [u8]),
        _: &Op,
    ) -> Result<(), Refusal> {
        Err(Refusal::BadCell { offset })
    }

    fn fence(&self) -> Result<(), Refusal> {
        Ok(())
    }

    fn flush(&self, _: Option<Rank>) -> Result<(), Refusal> {
        Ok(())
    }
}

impl Telling for Given {
    fn put_immediate(
        &self,
        to: Rank,
        _: (Key, usize),
        _: &[u8],
        _: u32,
        _: bool,
        _: &Op,
    ) -> Result<(), Refusal> {
        Err(Refusal::Full(to))
    }

    fn signal(&self, _: Rank, _: Slot, _: u32) -> Result<(), Refusal> {
        Ok(())
    }

    fn reached(&self, _: Slot, _: u32) -> Result<bool, Refusal> {
        Ok(true)
    }

    fn watch<W: Word>(
        &self,
        _: Key,
        _: usize,
        arrived: impl Fn(W) -> bool,
        _: &Op,
    ) -> Result<Option<W>, Refusal> {
        Ok(arrived(W::default()).then_some(W::default()))
    }

    fn progress(&self, _: Wants) -> Option<Arrival> {
        let next = self.next.get();
        let immediate = self.immediates.get(next).copied();
        self.next.set(next + usize::from(immediate.is_some()));
        let sender = None;
        immediate.map(|immediate| Arrival { immediate, sender })
    }
}

impl Waiting for Given {
    fn relax(&self) {}

    fn now(&self) -> Time {
        Time {
            ticks: 0,
            per_second: 1,
        }
    }
}

impl Fast for Given {}

/// Stored to before and behind the call that is looked at.
static MARK: AtomicU32 = AtomicU32::new(0);

/// Says where `of` lies.
fn region<T>(run: &str, name: &str, of: &T) {
    let start = std::ptr::from_ref(of).addr();
    println!("region {run} {name} {start} {}", size_of_val(of));
}

/// A window, a request for tag 5 with this range, and `immediates` before it is tested for the
/// first time; of them `unexpected` are in the queue already.
fn traced(run: &str, range: Range<usize>, immediates: &[u32], unexpected: usize) {
    let mut words = [0; 64];
    region(run, "arena", &words);
    let config = WorldConfig { unexpected: 16 };
    let world = World::start(Given::new(immediates), &mut words, config).unwrap();
    let window: Window<'_, u32, _> = world.allocate(64).unwrap();
    for (number, tag) in (0..unexpected).zip(immediates) {
        // Of the first window of a world of one, an immediate is its tag.
        let found = window.probe(Source::Any, Tag(*tag)).unwrap();
        assert_eq!(found.map(|status| status.tag), Some(Tag(*tag)), "{number}");
    }
    let mut request: Request<'_, _> = window.expect(range, Tag(5)).unwrap();
    request.start().unwrap();
    region(run, "link", world.link());
    region(run, "world", &world);
    region(run, "window", &window);
    region(run, "request", &request);
    println!("mark {run} {}", MARK.as_ptr().addr());
    // ORDERING: Relaxed: only the trace is of interest.
    MARK.store(1, Ordering::Relaxed);
    let found = black_box(&mut request).test();
    MARK.store(2, Ordering::Relaxed);
    let status: Result<Option<_>, Error> = found;
    assert_eq!(status.unwrap().map(|status| status.tag), Some(Tag(5)));
}

/// What is traced; it must work without a trace as well.
#[test]
fn runs() {
    traced("queue", 0..0, &[5], 1);
    traced("link", 0..0, &[5], 0);
    traced("second", 0..0, &[4, 5], 2);
    traced("third", 0..0, &[3, 4, 5], 3);
    traced("range", 0..8, &[5], 1);
}

/// A load or store.
#[derive(Copy, Clone)]
struct Touch {
    store: bool,
    at: u64,
    len: u64,
}

/// A line of lackey's, if it is a load or store.
fn touch(line: &str) -> Option<Touch> {
    let (kind, rest) = line.strip_prefix(' ')?.split_at_checked(2)?;
    let (at, len) = rest.split_once(',')?;
    Some(Touch {
        store: match kind.trim() {
            "L" => false,
            "S" | "M" => true,
            _ => return None,
        },
        at: u64::from_str_radix(at, 16).ok()?,
        len: len.trim().parse().ok()?,
    })
}

/// Runs this program's test `runs` under valgrind: what it prints, and what it touches. None if
/// there is no valgrind.
fn trace() -> Option<(String, Vec<Touch>)> {
    let mut child = Command::new("valgrind")
        .args(["--tool=lackey", "--trace-mem=yes", "--basic-counts=no"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "lines::runs", "--nocapture", "--test-threads=1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    let lines = BufReader::new(child.stderr.take()?).lines();
    let touched = lines
        .map_while(Result::ok)
        .filter_map(|line| touch(&line))
        .collect();
    let mut said = String::new();
    child.stdout.take()?.read_to_string(&mut said).ok()?;
    assert!(child.wait().unwrap().success(), "{said}");
    Some((said, touched))
}

/// Misses of these accesses on a cold cache.
fn misses(touched: &[Touch]) -> u64 {
    let report = Sim::new(Config::quiet(1)).run(|core| -> Result<(), Error> {
        let mut lines = BTreeMap::new();
        for touch in touched {
            for line in touch.at / LINE..=(touch.at + touch.len - 1) / LINE {
                let next = lines.len();
                let place = *lines.entry(line).or_insert(next);
                let at = Region::memory(CoreId::new(0)).at(place * LINE as usize);
                if touch.store {
                    core.write(at, &[0]);
                } else {
                    core.read(at, &mut [0]);
                }
            }
        }
        Ok(())
    });
    report.assert_done();
    report.counters[0].misses
}

#[test]
fn matching_touches_the_request_and_the_head_of_the_queue() {
    let Some((said, touched)) = trace() else {
        println!("not measured: there is no valgrind here");
        return;
    };
    let mut regions: BTreeMap<&str, Vec<(&str, Range<u64>)>> = BTreeMap::new();
    let mut runs = Vec::new();
    let number = |word: &str| word.parse::<u64>().unwrap();
    for line in said.lines() {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["region", run, name, start, len] => {
                let start = number(start);
                let range = start..start + number(len);
                regions.entry(run).or_default().push((name, range));
            }
            ["mark", run, at] => runs.push((run, number(at))),
            _ => {}
        }
    }
    // Each run has stored to its mark twice, one run after the other.
    let is_mark = |touch: &Touch| touch.store && touch.at == runs[0].1;
    let mut between = touched.split(is_mark).skip(1).step_by(2);
    for (run, _) in &runs {
        let regions = &regions[run];
        // The link lies in the world; it is the ring's.
        let name = |at: u64| {
            let mut names = regions.iter().filter(|(_, all)| all.contains(&at));
            let first = names.next()?.0;
            (first != "link").then_some(first)
        };
        let mut inside = between.next().expect("a call").to_vec();
        inside.retain(|touch| name(touch.at).is_some());
        let lines = |of| {
            let of_it = inside.iter().filter(|touch| name(touch.at) == Some(of));
            of_it
                .map(|touch| touch.at / LINE)
                .collect::<BTreeSet<_>>()
                .len()
        };
        let (misses, allowed) = (misses(&inside), if *run == "range" { 5 } else { 2 });
        let found = ["request", "world", "window", "arena"].map(|of| (of, lines(of)));
        println!("{run}: {misses} misses, lines {found:?}");
        assert!(misses <= allowed, "{run}: {misses} misses, lines {found:?}");
        assert_eq!((found[0].1, found[1].1), (1, 1), "{run}: the queue's head");
    }
}
