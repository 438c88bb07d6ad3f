//! The SCC port over the simulator: message data under every mapping, the bell, the registers.

use flagpost_hal::{
    Address, CachedMemory, Coherence, CoreId, Lines, Region, Relax, TestAndSet, Topology,
    UncachedMemory,
};
use flagpost_scc::{Attribute, Bus, Counter, Map, Mapping, Processor, Scc};
use flagpost_sim::{Config, End, Oracle, Oracles, Profile, SCC_BUFFER, SccBus, Sim, SimCore};

type Port = Scc<SccBus>;

const ALL: [Mapping; 3] = [Mapping::Normal, Mapping::Mpbt, Mapping::MpbtWriteThrough];

fn chip(cores: u16, seed: u64) -> Config {
    Config {
        cores,
        seed,
        buffer_size: SCC_BUFFER,
        ..Config::default()
    }
}

fn own(core: u16, offset: usize) -> Address {
    Region::memory(CoreId::new(core)).at(offset)
}

fn lines(at: Address, len: usize) -> Lines {
    Lines::covering::<Port>(at, len)
}

fn read(scc: &Port, at: Address) -> u32 {
    let mut bytes = [0; 4];
    scc.read(at, &mut bytes);
    u32::from_le_bytes(bytes)
}

/// Runs `program` on one core, without evictions.
fn alone(oracles: Oracles, program: impl Fn(SimCore) + Sync) -> End {
    let config = Config {
        evictions: 0,
        oracles,
        ..chip(1, 1)
    };
    let run = |core| {
        program(core);
        Ok::<(), String>(())
    };
    Sim::new(config).run(run).end
}

// ---- H2, both mappings ----

/// By raw accesses, without the port's care: a store that hits under PMB stays in L1, and CL1INVMB
/// discards it.
fn store_then_invalidate(core: SimCore, attribute: Attribute) -> u32 {
    let scc = core.scc(Mapping::MpbtWriteThrough);
    let (bus, map) = (scc.bus(), scc.map());
    let at = map.physical(own(0, 0), 4).unwrap();
    scc.store_u32(own(0, 0), 1);
    bus.load_u32(at, attribute);
    bus.store_u32(at, attribute, 2);
    bus.store_u32(map.dummy_line(CoreId::new(0)), attribute, 0);
    assert_eq!(bus.load_u32(at, attribute), 2, "own copy");
    bus.cl1invmb();
    bus.load_u32(at, attribute)
}

#[test]
fn a_store_that_hits_is_lost_under_pmb_and_seen_as_lost() {
    let end = alone(Oracles::NONE, |core| {
        assert_eq!(store_then_invalidate(core, Attribute::Mpbt), 1);
    });
    assert!(matches!(end, End::Done), "{end:?}");
    let end = alone(Oracles::ALL, |core| {
        store_then_invalidate(core, Attribute::Mpbt);
    });
    assert!(
        matches!(&end, End::Oracle(alarm) if alarm.oracle == Oracle::LostStore),
        "{end:?}"
    );
}

#[test]
fn a_store_that_hits_goes_out_under_write_through() {
    let end = alone(Oracles::ALL, |core| {
        assert_eq!(store_then_invalidate(core, Attribute::MpbtWriteThrough), 2);
    });
    assert!(matches!(end, End::Done), "{end:?}");
}

// ---- The port ----

/// Core 0 writes through its cache and publishes; core 1 looks, stores past the caches and says so;
/// core 0 refreshes and looks. `skip` leaves out one of the actions.
fn exchange(scc: &Port, skip: &str) -> Result<(), String> {
    let (data, flags) = (own(0, 64), [own(0, 512), own(1, 512)]);
    let wait = |at: Address, value: u32| {
        loop {
            match scc.load_u32(at) {
                seen if seen == value => return,
                seen => scc.relax(&[flagpost_hal::Watch { at, seen }]),
            }
        }
    };
    let me = scc.core().get();
    let check = |found: u32, expected: u32| match found == expected {
        true => Ok(()),
        false => Err(format!("core {me} found {found}, not {expected}")),
    };
    for round in 1..4 {
        if me == 0 {
            read(scc, data);
            scc.write(data, &u32::to_le_bytes(round));
            if skip != "write_back" {
                scc.write_back(&[lines(data, 4)]);
            }
            if skip != "drain" {
                scc.drain();
            }
            if skip == "invalidate" {
                // A copy again: write-back may have dropped it. (Not always: the port drains before
                // it.)
                read(scc, data);
            }
            scc.store_u32(flags[1], round);
            wait(flags[0], round);
            if skip != "invalidate" {
                scc.invalidate(&[lines(data, 4)]);
            }
            check(read(scc, data), round + 100)?;
        } else {
            wait(flags[1], round);
            let mut found = [0; 4];
            scc.load_bytes(data, &mut found);
            check(u32::from_le_bytes(found), round)?;
            scc.store_bytes(data, &(round + 100).to_le_bytes());
            scc.drain();
            scc.store_u32(flags[0], round);
        }
    }
    Ok(())
}

/// How many of 200 seeds fail.
fn failures(mapping: Mapping, skip: &str) -> u32 {
    let mut failed = 0;
    for seed in 0..200 {
        let config = Config {
            oracles: Oracles::NONE,
            ..chip(2, seed)
        };
        let program = |core: SimCore| exchange(&core.scc(mapping), skip);
        failed += u32::from(!Sim::new(config).run(program).is_done());
    }
    failed
}

#[test]
fn publishing_and_refreshing_work_with_every_mapping() {
    for mapping in ALL {
        assert_eq!(failures(mapping, ""), 0, "{mapping:?}");
    }
}

/// What each mapping needs of the three actions, shown by leaving them out.
#[test]
fn what_is_left_out_shows() {
    for (mapping, skip) in [
        (Mapping::Normal, "write_back"),
        (Mapping::Normal, "invalidate"),
        (Mapping::Mpbt, "drain"),
        (Mapping::Mpbt, "invalidate"),
        (Mapping::MpbtWriteThrough, "drain"),
        (Mapping::MpbtWriteThrough, "invalidate"),
    ] {
        let failed = failures(mapping, skip);
        assert!(failed > 0, "{mapping:?} does not need {skip}");
    }
}

/// And no oracle finds anything, on any seed, prefetching cores included.
#[test]
fn oracles_are_silent() {
    for mapping in ALL {
        for seed in 0..100 {
            let fill = seed % 2 == 1 && mapping != Mapping::Mpbt;
            let config = Config {
                profile: if fill { Profile::SccFill } else { Profile::Scc },
                ..chip(2, seed)
            };
            let report = Sim::new(config).run(|core| exchange(&core.scc(mapping), ""));
            report.assert_done();
        }
    }
}

// ---- Bell, counters, lock ----

#[test]
fn no_ring_is_lost_and_a_silent_bell_is_a_deadlock() {
    for seed in 0..100 {
        let ring = |core: SimCore| {
            let scc = core.scc(Mapping::default());
            scc.release_at_start(scc.core());
            meet(&scc);
            if scc.core().get() == 0 {
                scc.wait_for_ring();
            } else {
                scc.ring(CoreId::new(0));
            }
            Ok::<(), String>(())
        };
        Sim::new(chip(4, seed)).run(ring).assert_done();
    }
    let silent = |core: SimCore| {
        let scc = core.scc(Mapping::default());
        scc.release_at_start(scc.core());
        scc.wait_for_ring();
        Ok::<(), String>(())
    };
    let end = Sim::new(chip(2, 0)).run(silent).end;
    assert!(matches!(end, End::Deadlock), "{end:?}");
}

/// All cores have started: each sets its word, and waits for all words.
fn meet(scc: &Port) {
    let word = |core| own(core, 1024);
    scc.store_u32(word(scc.core().get()), 0x4D45_4554);
    for core in 0..scc.cores() {
        loop {
            match scc.load_u32(word(core)) {
                0x4D45_4554 => break,
                seen => scc.relax(&[flagpost_hal::Watch {
                    at: word(core),
                    seen,
                }]),
            }
        }
    }
}

#[test]
fn fpga_counters_count_every_core_once() {
    for seed in 0..100 {
        let program = |core: SimCore| {
            let scc = core.scc(Mapping::default());
            let counter = Counter::new(3).unwrap();
            if scc.core().get() == 0 {
                scc.fpga().set(counter, 0);
            }
            meet(&scc); // behind which the counter is set
            let number = scc.fpga().increment(counter);
            while scc.fpga().get(counter) < u32::from(scc.cores()) {
                scc.relax(&[]);
            }
            let before = scc.fpga().time();
            match number < 4 && scc.fpga().time() >= before {
                true => Ok(()),
                false => Err(format!("number {number}")),
            }
        };
        Sim::new(chip(4, seed)).run(program).assert_done();
    }
}

/// A core whose chip has no room for the registers is told.
#[test]
fn the_port_needs_its_buffer_size() {
    let config = Config {
        buffer_size: 512,
        ..chip(1, 0)
    };
    let end = Sim::new(config)
        .run(|core| {
            core.scc(Mapping::default());
            Ok::<(), String>(())
        })
        .end;
    assert!(matches!(end, End::Panicked), "{end:?}");
}

/// The port's regions end where the map says: the dummy line and the registers are in none.
#[test]
fn the_lines_behind_the_buffer_are_in_no_region() {
    let end = Sim::new(chip(1, 0))
        .run(|core| {
            let scc = core.scc(Mapping::default());
            scc.load_u32(Region::message_buffer(CoreId::new(0)).at(8156));
            assert_eq!(scc.map(), &Map::SCC.with_cores(1).with_memory(4096));
            scc.load_u32(Region::message_buffer(CoreId::new(0)).at(8160));
            Ok::<(), String>(())
        })
        .end;
    assert!(matches!(end, End::Panicked), "{end:?}");
}
