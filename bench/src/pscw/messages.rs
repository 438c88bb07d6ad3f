//! The experiment over messages: a post is an empty message to the origin, a completion one to the
//! target.
//!
//! What an MPI does whose one-sided communication is made of two-sided one, and which [PSCW-SCC]
//! compares with; without its matching, its progress engine, and its software. A start is nothing:
//! `complete` receives the posts, which have usually arrived, and sends.
//!
//! [PSCW-SCC]: flagpost#sources

use flagpost_hal::{CoreId, Topology as _};
use flagpost_sim::SimCore;

use super::{Call, Samples, Setup, spend};
use crate::two_sided::{Channel, Shape};

/// What each core runs.
pub(super) fn epochs(core: &SimCore, setup: &Setup, samples: &Samples) {
    let me = core.core().get();
    if me > setup.targets {
        return;
    }
    let open = |peer, places| Channel::open(core, CoreId::new(peer), Shape::LINES, places);
    let receive = |channel: &Channel<'_, SimCore>| {
        channel.receive(0, |_, _| ());
        spend(core, setup.software_cycles);
    };
    let send = |channel: &Channel<'_, SimCore>| {
        spend(core, setup.software_cycles);
        channel.send(&[]);
    };
    if me == 0 {
        let target = |k: u16| open(1 + k, [k.into(), 0]);
        let targets: Vec<_> = (0..setup.targets).map(target).collect();
        for _ in 0..setup.epochs {
            spend(core, setup.lead);
            samples.time(core, Call::Start, || ());
            samples.time(core, Call::Complete, || {
                targets.iter().for_each(receive);
                targets.iter().for_each(send);
            });
        }
    } else {
        let origin = open(0, [0, usize::from(me) - 1]);
        for _ in 0..setup.epochs {
            spend(core, setup.skew * u32::from(me));
            samples.time(core, Call::Post, || send(&origin));
            samples.time(core, Call::Wait, || receive(&origin));
        }
    }
}
