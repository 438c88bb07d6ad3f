//! Write-back by displacement, on real geometry: it cleans every dirty line; and each step that is
//! left out leaves some (so that these tests can fail).

use std::collections::HashSet;

use crate::chip::cache::{touch, victim};
use crate::chip::{Chip, Core, Policy};
use flagpost_common::Dice;
use flagpost_hal::{CachedMemory, Coherence, CoreId, Lines, Region, UncachedMemory};
use flagpost_scc::bus::State;
use flagpost_scc::displace::clean;
use flagpost_scc::{Attribute, Bus, Fault, Mapping, Physical, Processor, Scc};

const NORMAL: Attribute = Attribute::Normal;
const AREA: u32 = 0x2800_0000;
const WAY: u32 = 64 << 10;

/// What is left out.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Omit {
    Nothing,
    Wbinvd,
    FourthRead,
    /// Reads 32 KiB apart.
    Stride,
    /// Reading everything twice at first.
    FirstPass,
}

/// A core whose displacement leaves something out, by changing what arrives at its bus.
struct Without {
    core: Core,
    omit: Omit,
    calls: std::cell::Cell<u32>,
    reads: std::cell::Cell<u32>,
}

impl Without {
    fn new(core: Core, omit: Omit) -> Self {
        Self {
            core,
            omit,
            calls: 0.into(),
            reads: 0.into(),
        }
    }
}

impl Processor for Without {
    fn cl1invmb(&self) {
        self.core.cl1invmb();
    }
    fn wbinvd(&self) {
        assert!(!self.core.admits_interrupts(), "before `wbinvd`");
        self.calls.set(self.calls.get() + 1);
        self.reads.set(0);
        if self.omit != Omit::Wbinvd {
            self.core.wbinvd();
        }
    }
    fn rdtsc(&self) -> u64 {
        self.core.rdtsc()
    }
    fn hertz(&self) -> u64 {
        self.core.hertz()
    }
    fn stop(&self, fault: Fault) -> ! {
        self.core.stop(fault)
    }
    fn set_interrupts(&self, admitted: bool) -> bool {
        self.core.set_interrupts(admitted)
    }
}

impl Bus for Without {
    fn load_u8(&self, at: Physical, attribute: Attribute) -> u8 {
        self.core.load_u8(at, attribute)
    }

    fn load_u32(&self, at: Physical, attribute: Attribute) -> u32 {
        let Some(offset) = at.get().checked_sub(AREA).filter(|o| *o < 4 * WAY) else {
            return self.core.load_u32(at, attribute);
        };
        assert!(!self.core.admits_interrupts(), "between two reads");
        self.reads.set(self.reads.get() + 1);
        let (way, rest) = (offset / WAY, offset % WAY);
        let offset = match self.omit {
            Omit::FourthRead if way == 3 => return 0,
            Omit::FirstPass if self.reads.get() > 8192 => return 0,
            Omit::Stride => way * WAY / 2 + rest,
            _ => offset,
        };
        self.core.load_u32(Physical::new(AREA + offset), attribute)
    }

    fn store_u8(&self, at: Physical, attribute: Attribute, value: u8) {
        self.core.store_u8(at, attribute, value);
    }
    fn store_u32(&self, at: Physical, attribute: Attribute, value: u32) {
        self.core.store_u32(at, attribute, value);
    }
    fn state(&self) -> &State {
        self.core.state()
    }
}

/// Loads and stores all over 1 MiB of private memory, four times what the L2 holds.
fn work(core: &Core, dice: &mut Dice, accesses: u32) {
    let mut below = |bound| dice.below(bound) as u32;
    for _ in 0..accesses {
        let at = Physical::new(below(1 << 18) * 4);
        if below(2) == 0 {
            core.load_u32(at, NORMAL);
        } else {
            core.store_u32(at, NORMAL, below(u32::MAX as usize));
        }
    }
}

/// Dirty lines that several rounds of work and cleaning *everything* leave, all together.
fn left_of_all(policy: Policy, omit: Omit) -> usize {
    let chip = Chip::new(policy);
    let mut left = 0;
    for seed in 0..4 {
        let bus = Without::new(chip.bus(seed), omit);
        let mut dice = Dice::new(seed.into());
        // Much between two cleanings: everything in the caches is new. Little: most of it is what
        // the last cleaning read.
        for accesses in [20_000, 1_000, 20_000, 1_000, 1_000] {
            work(&bus.core, &mut dice, accesses);
            assert!(bus.core.dirty(|_| true) > 0, "nothing to clean");
            clean(&bus, [(Physical::new(0), WAY)].into_iter());
            left += bus.core.dirty(|_| true);
        }
    }
    left
}

/// Dirty lines *in the spans* that many cleanings of single lines leave.
fn left_of_spans(policy: Policy, omit: Omit) -> usize {
    let chip = Chip::new(policy);
    let bus = Without::new(chip.bus(0), omit);
    let mut dice = Dice::new(7);
    work(&bus.core, &mut dice, 20_000);
    let mut left = 0;
    let mut below = |bound| dice.below(bound) as u32;
    for _ in 0..1000 {
        // Few sets, so that each is cleaned again and again.
        let line = Physical::new(below(16) * WAY + below(4) * 32);
        bus.core.load_u32(line, NORMAL); // so that the store hits and makes it dirty
        bus.core.store_u32(line, NORMAL, 1);
        // Others in its set, and in the set of L1 only: it is the youngest in neither cache.
        for _ in 0..below(8) {
            let others = [below(6) * WAY, 4096 * below(16)];
            for other in others {
                bus.core
                    .load_u32(Physical::new((line.get() ^ other) % (16 * WAY)), NORMAL);
            }
        }
        clean(&bus, [(line, 32)].into_iter());
        left += bus.core.dirty(|at| at == line);
    }
    left
}

#[test]
fn every_dirty_line_is_cleaned() {
    assert_eq!(left_of_all(Policy::PseudoLru, Omit::Nothing), 0);
    assert_eq!(left_of_spans(Policy::PseudoLru, Omit::Nothing), 0);
}

/// For the whole cache, and for single lines.
#[test]
fn each_step_is_needed() {
    for omit in [Omit::Wbinvd, Omit::FourthRead, Omit::Stride] {
        for left_of in [left_of_all, left_of_spans] {
            let left = left_of(Policy::PseudoLru, omit);
            assert!(left > 0, "{omit:?} leaves nothing dirty");
        }
    }
}

/// Ways that were never used are filled first, and that makes four reads too few: the first time
/// only.
#[test]
fn a_cold_cache_needs_two_passes() {
    for (omit, left) in [(Omit::Nothing, 0), (Omit::FirstPass, 1)] {
        let bus = Without::new(Chip::new(Policy::PseudoLru).bus(0), omit);
        // Two ways in use, the second one touched last and dirty.
        for line in [0, WAY] {
            bus.core.load_u32(Physical::new(line), NORMAL);
        }
        bus.core.store_u32(Physical::new(WAY), NORMAL, 1);
        clean(&bus, [(Physical::new(0), 2 * WAY)].into_iter());
        assert_eq!(bus.core.dirty(|_| true), left, "{omit:?}");
    }
}

/// One set of the L2: which lines are in its ways, and the tree. Lines 0 to 3 are the area's.
type Set = ([Option<u8>; 4], [bool; 3]);

fn access((mut ways, mut tree): Set, line: u8) -> Set {
    let hit = ways.iter().position(|way| *way == Some(line));
    let way = hit
        .or_else(|| ways.iter().position(Option::is_none))
        .unwrap_or_else(|| victim(&tree));
    ways[way] = Some(line);
    touch(&mut tree, way);
    (ways, tree)
}

/// Goes through all states of a set that its owner's accesses to five lines, `reads` (whole, as
/// often as one likes) and accesses to the lines `disturbed` can lead to. Returns how many there
/// are, and in how many of those that are `cold` or not `reads` would leave a line of the owner's.
fn states(reads: &[u8], disturbed: &[u8], cold: bool) -> (usize, usize) {
    let cleaned = |set| reads.iter().fold(set, |set, line| access(set, *line));
    let mut seen = HashSet::from([([None; 4], [false; 3])]);
    let mut open: Vec<Set> = seen.iter().copied().collect();
    let mut left = 0;
    while let Some(set) = open.pop() {
        let dirty = cleaned(set).0.iter().flatten().any(|line| *line >= 10);
        left += usize::from(dirty && set.0.contains(&None) == cold);
        let lines = disturbed.iter().copied().chain(10..15);
        let after = lines.map(|line| access(set, line)).chain([cleaned(set)]);
        open.extend(after.filter(|next| seen.insert(*next)));
    }
    (seen.len(), left)
}

#[test]
fn four_reads_clean_a_set_in_every_state() {
    let (all, left) = states(&[0, 1, 2, 3], &[], false);
    assert!(all > 3000, "only {all} states");
    assert_eq!(left, 0);
    assert_ne!(states(&[0, 1, 2], &[], false).1, 0, "three reads");
    // An interrupt that cleans, too, or a program that uses the area:
    assert_ne!(states(&[0, 1, 2, 3], &[0, 3], false).1, 0, "area disturbed");
}

#[test]
fn two_passes_clean_a_set_with_unused_ways_in_every_state() {
    assert_ne!(states(&[0, 1, 2, 3], &[], true).1, 0, "one pass");
    assert_eq!(states(&[0, 1, 2, 3, 0, 1, 2, 3], &[], true).1, 0);
}

/// With random replacement no four reads, and no eight, are enough: a limit, not a fault of the
/// port.
#[test]
fn random_replacement_defeats_displacement() {
    assert!(left_of_all(Policy::Random, Omit::Nothing) > 0);
    assert!(left_of_spans(Policy::Random, Omit::Nothing) > 0);
}

#[test]
fn interrupts_are_off_meanwhile_and_on_again_after() {
    // It looks at them at each step.
    let bus = Without::new(Chip::new(Policy::PseudoLru).bus(0), Omit::Nothing);
    clean(&bus, [(Physical::new(0), 32)].into_iter());
    assert!(bus.core.admits_interrupts());
    bus.core.set_interrupts(false);
    clean(&bus, [(Physical::new(0), 32)].into_iter());
    assert!(!bus.core.admits_interrupts());
    assert!(bus.reads.get() > 0);
}

/// A span of no lines costs nothing: not even a `wbinvd`.
#[test]
fn nothing_to_clean_is_free() {
    let bus = Without::new(Chip::new(Policy::PseudoLru).bus(0), Omit::Nothing);
    clean(&bus, [(Physical::new(0), 0)].into_iter());
    clean(&bus, std::iter::empty());
    assert_eq!((bus.calls.get(), bus.reads.get()), (0, 0));
}

/// What cleaning costs, in reads: as the module says. More would still be right, and slower.
#[test]
fn reads_are_as_few_as_promised() {
    let bus = Without::new(Chip::new(Policy::PseudoLru).bus(0), Omit::Nothing);
    let reads = |spans: &[(u32, u32)]| {
        let spans = spans.iter().map(|&(at, len)| (Physical::new(at), len));
        clean(&bus, spans);
        bus.reads.get()
    };
    assert_eq!(reads(&[(0, 32)]), 16_384, "the first time");
    assert_eq!(reads(&[(0, 32)]), 4);
    assert_eq!(reads(&[(0, 4096), (WAY, 4096)]), 4 * 256);
    assert_eq!(reads(&[(0, WAY - 32)]), 4 * 2047);
    assert_eq!(reads(&[(0, WAY / 2), (WAY, WAY / 2)]), 8192);
    assert_eq!(reads(&[(0, 16 * WAY)]), 8192, "never more");
}

/// The whole port with normal pages: what one core writes back, the other sees; what it then stores
/// past the caches, the first sees after an invalidate.
#[test]
fn normal_pages_are_published_and_refreshed() {
    let chip = Chip::new(Policy::PseudoLru);
    let scc = [0, 1].map(|core| chip.scc(core, Mapping::Normal));
    let own = Region::memory(CoreId::new(0));
    let mut seen = [0; 100];
    for round in 1..20_u8 {
        let at = own.at(usize::from(round) * 40);
        let lines = Lines::covering::<Scc<Core>>(at, 100);
        scc[0].read(at, &mut seen); // so that the stores hit, and stay
        scc[0].write(at, &[round; 100]);
        scc[1].load_bytes(at, &mut seen);
        assert_ne!(seen, [round; 100], "nothing stayed in the cache");
        scc[0].write_back(&[lines]);
        scc[0].drain();
        scc[1].load_bytes(at, &mut seen);
        assert_eq!(seen, [round; 100]);
        scc[0].read(at, &mut seen);
        scc[1].store_bytes(at, &[round + 100; 100]);
        scc[1].drain();
        scc[0].read(at, &mut seen);
        assert_eq!(seen, [round; 100], "not stale");
        scc[0].invalidate(&[lines]);
        scc[0].read(at, &mut seen);
        assert_eq!(seen, [round + 100; 100]);
    }
}
