//! The network by itself: what it delays, reorders, refuses and loses; and that searches see all of
//! it.

use std::collections::BTreeSet;

use flagpost_hal::fabric::{Event, Fabric, SendQueueFull, Work};
use flagpost_hal::{Amo, CoreId, Topology};
use flagpost_sim::{Bounds, Config, End, Explored, Method, Nic, Preset, Sim, SimCore, Wire};

const SECOND: CoreId = CoreId::new(1);

fn config(cores: u16, wire: Wire) -> Config {
    Config {
        cores,
        memory_size: 256,
        network: Some(wire),
        ..Preset::Network.config()
    }
}

fn event(nic: &Nic) -> Event {
    loop {
        match nic.poll() {
            Some(event) => return event,
            None => nic.relax(&[]),
        }
    }
}

fn put(at: usize, data: &[u8], immediate: Option<u32>) -> Work<'_> {
    Work::Put {
        at,
        data,
        immediate,
        confirmed: true,
    }
}

const fn tell(immediate: u32) -> Work<'static> {
    Work::Put {
        at: 0,
        data: &[],
        immediate: Some(immediate),
        confirmed: true,
    }
}

/// Opens all ends; then rank 1's memory holds zeros, and the search begins.
fn begin(core: &SimCore) -> Nic {
    let nic = Nic::open(core.clone());
    nic.write(0, &[0; 128]);
    core.mark("go");
    nic
}

fn explore(
    config: Config,
    method: Method,
    program: impl Fn(SimCore) -> Result<(), &'static str>,
) -> Explored {
    Sim::new(config).explore(&Bounds::default(), method, true, program)
}

/// Rank 0 puts, and tells rank 1, which looks: told behind the put's completion, or at once.
fn told(core: SimCore, wait: bool) -> Result<(), &'static str> {
    let nic = begin(&core);
    if core.core() == CoreId::new(0) {
        nic.post(1, SECOND, put(0, &[7; 4], None))
            .map_err(|_| "full")?;
        if wait {
            event(&nic);
        }
        return nic.post(2, SECOND, tell(9)).map_err(|_| "full");
    }
    event(&nic);
    let mut seen = [0; 4];
    nic.read(0, &mut seen);
    if seen == [7; 4] {
        Ok(())
    } else {
        Err("overtaken")
    }
}

#[test]
fn an_immediate_overtakes_puts_that_are_not_done() {
    let config = config(2, Wire::default());
    let explored = explore(config.clone(), Method::States, |core| told(core, false));
    assert!(explored.complete, "{explored}");
    assert_eq!(explored.verdicts.len(), 2, "{:?}", explored.verdicts);
    // What the search found can be repeated.
    let report = explored.failure.expect("a failure");
    let again = Sim::new(report.config.clone()).run(|core| told(core, false));
    assert_eq!((again.end, again.hash), (report.end, report.hash));
    let text: Config = report.config.to_string().parse().unwrap();
    assert_eq!(text, report.config);
    // And seeds find it.
    let mut ends = BTreeSet::new();
    for seed in 0..50 {
        let mut sim = Sim::new(config.clone());
        let report = sim.reseed(seed).run(|core| told(core, false));
        ends.insert(report.is_done());
    }
    assert_eq!(ends.len(), 2);
}

#[test]
fn an_immediate_overtakes_nothing_that_is_done() {
    explore(config(2, Wire::default()), Method::States, |core| {
        told(core, true)
    })
    .assert_done();
}

/// The parts of one put come in any order, its own immediate behind all of them.
#[test]
fn an_immediate_comes_behind_its_own_data() {
    let program = |core: SimCore| {
        let nic = begin(&core);
        if core.core() == CoreId::new(0) {
            let posted = nic.post(1, SECOND, put(20, &[7; 64], Some(9)));
            return posted.map_err(|_| "full");
        }
        let (mut early, mut seen) = ([0; 64], [0; 64]);
        nic.read(20, &mut early);
        let told = event(&nic);
        let from = CoreId::new(0);
        assert_eq!(told, Event::Immediate { from, immediate: 9 });
        nic.read(20, &mut seen);
        assert_eq!(seen, [7; 64]);
        match (early[0], early[63]) {
            (0, 7) => Err("the last part came first"),
            _ => Ok(()),
        }
    };
    let explored = explore(config(2, Wire::default()), Method::States, program);
    let verdicts: Vec<_> = explored.verdicts.iter().collect();
    assert_eq!(verdicts.len(), 2, "{verdicts:?}");
    assert!(verdicts.iter().any(|how| how.contains("came first")));
}

/// Ranks add to one cell: each finds what another left, and no two the same.
fn adds(core: SimCore) -> Result<(), &'static str> {
    let nic = begin(&core);
    let amo = Work::Amo {
        at: 8,
        amo: Amo::Add(1),
    };
    nic.post(1, SECOND, amo).map_err(|_| "full")?;
    match event(&nic) {
        Event::Done { value: 0 | 1, .. } => Ok(()),
        _ => Err("lost"),
    }
}

#[test]
fn both_searches_agree() {
    let one_way = |core: SimCore| told(core, false);
    for program in [
        &adds as &dyn Fn(SimCore) -> Result<(), &'static str>,
        &one_way,
    ] {
        let search = |method| explore(config(2, Wire::default()), method, program);
        let states = search(Method::States);
        assert!(states.complete);
        let all = search(Method::Unreduced);
        assert_eq!(all.verdicts, states.verdicts);
        assert_eq!(all.outcomes, states.outcomes);
        assert!(states.outcomes.len() > 1);
    }
}

#[test]
fn a_full_send_queue_refuses() {
    let wire = Wire {
        sends: 2,
        ..Wire::default()
    };
    let program = |core: SimCore| {
        let nic = begin(&core);
        if core.core() == CoreId::new(0) {
            let mut sent = 0;
            for id in 0..2 {
                nic.post(id, SECOND, tell(id)).map_err(|_| "early")?;
            }
            for id in 2..5 {
                // However long it waits: what is done counts until it is taken.
                core.mark("waits");
                assert_eq!(nic.post(id, SECOND, tell(id)), Err(SendQueueFull));
                event(&nic);
                sent += 1;
                nic.post(id, SECOND, tell(id)).map_err(|_| "no room")?;
            }
            assert_eq!(sent, 3);
            return Ok(());
        }
        let mut all = BTreeSet::new();
        while all.len() < 5 {
            if let Event::Immediate { immediate, .. } = event(&nic) {
                all.insert(immediate);
            }
        }
        Ok(())
    };
    for seed in 0..50 {
        let mut sim = Sim::new(config(2, wire));
        sim.reseed(seed).run::<&str>(program).assert_done();
    }
}

/// Rank 1 takes `takes` of five immediates; rank 0 waits until all have arrived.
fn crowd(core: SimCore, takes: usize) -> Result<(), &'static str> {
    let nic = begin(&core);
    if core.core() == CoreId::new(0) {
        for id in 0..5 {
            nic.post(id, SECOND, tell(id)).map_err(|_| "full")?;
        }
        for _ in 0..5 {
            event(&nic);
        }
        return Ok(());
    }
    let mut all = BTreeSet::new();
    for _ in 0..takes {
        let Event::Immediate { immediate, .. } = event(&nic) else {
            return Err("not an immediate");
        };
        assert!(all.insert(immediate), "twice");
    }
    Ok(())
}

#[test]
fn a_full_completion_queue_makes_senders_wait_and_loses_nothing() {
    let wire = Wire {
        queue: 2,
        ..Wire::default()
    };
    for seed in 0..50 {
        let mut sim = Sim::new(config(2, wire));
        sim.reseed(seed).run(|core| crowd(core, 3)).assert_done();
        let report = sim.run(|core| crowd(core, 2));
        assert_eq!(report.end, End::Deadlock, "{report}");
        assert_eq!(report.waiting[0].core, CoreId::new(0));
    }
}

/// Whatever is under way to a rank that falls silent fails, and so does all that is sent later;
/// others go on.
#[test]
fn what_is_sent_to_a_lost_rank_fails() {
    let program = |core: SimCore| {
        let nic = begin(&core);
        if core.core() == CoreId::new(1) {
            nic.drop_out();
            return Ok(());
        }
        if core.core() == CoreId::new(2) {
            return match event(&nic) {
                Event::Immediate { immediate: 5, .. } => Ok(()),
                _ => Err("something else"),
            };
        }
        let (into, len) = (0, 40);
        let (amo, immediate) = (Amo::Add(1), Some(1));
        let all = [
            put(0, &[1; 40], immediate),
            Work::Get { at: 0, into, len },
            Work::Amo { at: 8, amo },
        ];
        let (mut done, mut failed) = (0, 0);
        let mut id = 0;
        while failed < 6 {
            for work in all {
                nic.post(id, SECOND, work).map_err(|_| "full")?;
                id += 1;
            }
            for _ in all {
                match event(&nic) {
                    Event::Done { .. } => done += 1,
                    Event::Failed { .. } => failed += 1,
                    Event::Immediate { .. } => return Err("from nowhere"),
                }
            }
        }
        assert_eq!(done + failed, id);
        let third = CoreId::new(2);
        nic.post(id, third, tell(5)).map_err(|_| "full")?;
        if event(&nic) == (Event::Done { id, value: 0 }) {
            Ok(())
        } else {
            Err("not done")
        }
    };
    for seed in 0..100 {
        let mut sim = Sim::new(config(3, Wire::default()));
        sim.reseed(seed).run(program).assert_done();
    }
}

/// Three puts on an ordered network, of which the last is confirmed: each immediate finds the data
/// of its own put and of those before it, and the last one's event comes after all are in place. In
/// every schedule; where the network orders nothing, some schedule shows otherwise.
#[test]
fn an_ordered_network_keeps_the_order_of_puts() {
    let program = |core: SimCore| {
        let nic = begin(&core);
        if core.core() == CoreId::new(0) {
            for number in 1..4_u8 {
                let (at, data) = (32 * usize::from(number), &[number; 4]);
                let confirmed = number == 3;
                let work = Work::Put {
                    at,
                    data,
                    immediate: Some(number.into()),
                    confirmed,
                };
                nic.post(number.into(), SECOND, work).map_err(|_| "full")?;
            }
            while event(&nic) != (Event::Done { id: 3, value: 0 }) {}
            return Ok(());
        }
        for number in 1..4_u8 {
            let Event::Immediate { immediate, .. } = event(&nic) else {
                return Err("not an immediate");
            };
            if immediate != u32::from(number) {
                return Err("out of order");
            }
            for earlier in 1..=number {
                let mut found = [0; 4];
                nic.read(32 * usize::from(earlier), &mut found);
                if found != [earlier; 4] {
                    return Err("data are missing");
                }
            }
        }
        Ok(())
    };
    let wire = |ordered| Wire {
        ordered,
        ..Wire::default()
    };
    let explored = explore(config(2, wire(true)), Method::States, program);
    assert!(explored.complete, "{explored}");
    explored.assert_done();
    let mut sim = Sim::new(config(2, wire(false)));
    let fails = |seed| !sim.reseed(seed).run(program).is_done();
    assert!((0..50).any(fails));
}

/// What is sent before its target has started arrives when it has.
#[test]
fn an_end_that_is_not_open_makes_senders_wait() {
    let program = |core: SimCore| -> Result<(), &'static str> {
        if core.core() == CoreId::new(0) {
            let nic = Nic::open(core.clone());
            nic.post(1, SECOND, tell(1)).map_err(|_| "full")?;
            event(&nic);
            return Ok(());
        }
        for _ in 0..200 {
            core.mark("late");
        }
        let nic = Nic::open(core);
        match nic.poll() {
            Some(_) => Err("before it was open"),
            None => {
                event(&nic);
                Ok(())
            }
        }
    };
    // Nothing arrives between the opening and the first poll: only if nobody can go on.
    let wire = Wire {
        deliveries: 0,
        ..Wire::default()
    };
    Sim::new(config(2, wire)).run(program).assert_done();
}
