//! Send and receive over message buffers: that they deliver, and what they take.

use std::cell::RefCell;

use flagpost_bench::pscw::{self, Strategy};
use flagpost_bench::two_sided::{Channel, Shape};
use flagpost_hal::{CoreId, Topology as _};
use flagpost_sim::{Config, Oracles, Schedule, Sim};

/// Lengths round the ends of lines, chunks, cells and rings.
const LENGTHS: [usize; 18] = [
    0, 1, 4, 27, 28, 29, 32, 60, 61, 100, 252, 256, 1000, 3999, 4096, 5001, 9999, 20000,
];

fn message(number: usize, len: usize) -> Vec<u8> {
    (0..len)
        .map(|byte| (byte * 7 + byte / 251 + number * 31) as u8)
        .collect()
}

/// Small rings and large ones, whatever the cores' speeds and whatever caches lose: in
/// both directions, and several messages ahead of the receiver.
#[test]
fn messages_arrive() {
    let large = Shape {
        cells: 2,
        lines: 60,
    };
    let shapes = [Shape::PAIR, large, Shape::LINES];
    for (seed, shape) in shapes.into_iter().cycle().take(9).enumerate() {
        let config = Config {
            buffer_size: 8 << 10,
            publish: 32,
            schedule: if seed < 3 {
                Schedule::Timed
            } else {
                Schedule::Random
            },
            seed: seed as u64,
            evictions: 200,
            oracles: Oracles::ALL,
            ..Config::default()
        };
        let arrived = RefCell::new(0);
        let report = Sim::new(config).run(|core| {
            let first = core.core() == CoreId::new(0);
            let peer = CoreId::new(first.into());
            let channel = Channel::open(&core, peer, shape, [0, 0]);
            let send = |number: usize, len| channel.send(&message(number, len));
            let receive = |number, len| {
                let mut whole = vec![0; len];
                channel.receive(len, |start, piece| {
                    whole[start..start + piece.len()].copy_from_slice(piece);
                });
                if whole != message(number, len) {
                    return Err(format!("message {number} of {len} bytes is another one"));
                }
                *arrived.borrow_mut() += 1;
                Ok(())
            };
            for (number, &len) in LENGTHS.iter().enumerate() {
                if first {
                    send(number, len);
                    receive(number + 100, len)?;
                } else {
                    receive(number, len)?;
                    send(number + 100, len);
                }
            }
            // One direction only: nothing brings back what was taken but the receiver's word.
            for number in 0..100 {
                if first {
                    send(number, number);
                } else {
                    receive(number, number)?;
                }
            }
            Ok::<_, String>(())
        });
        report.assert_done();
        assert_eq!(arrived.into_inner(), 2 * LENGTHS.len() + 100);
    }
}

/// What fits the ring is sent without a receiver.
#[test]
fn short_messages_are_eager() {
    let config = Config {
        buffer_size: 8 << 10,
        publish: 32,
        schedule: Schedule::Timed,
        ..Config::default()
    };
    let report = Sim::new(config).run(|core| {
        let first = core.core() == CoreId::new(0);
        let channel = Channel::open(&core, CoreId::new(first.into()), Shape::PAIR, [0, 0]);
        if first {
            (0..32).for_each(|number| channel.send(&message(number, 8)));
        }
        Ok::<_, String>(())
    });
    report.assert_done();
}

/// Nanoseconds that [PSCW-SCC] V-C gives for 13 targets with messages.
const PUBLISHED: u64 = 115_200;

fn over_messages(software_cycles: u32) -> u64 {
    let setup = pscw::Setup {
        strategy: Strategy::Messages,
        software_cycles,
        ..pscw::Setup::new(13)
    };
    let measured = pscw::measure(&setup);
    let measured = measured.unwrap_or_else(|report| panic!("{report}"));
    measured.origin().nanoseconds()
}

/// Messages alone explain 3 % of the publication; 2,300 cycles of software per message, the rest.
#[test]
fn pscw_over_messages() {
    assert_eq!(over_messages(0), 3_259);
    let fitted = over_messages(2_300);
    assert!(fitted.abs_diff(PUBLISHED) * 100 < PUBLISHED, "{fitted} ns");
}
