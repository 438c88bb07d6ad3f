//! The cases on the simulated network.

use flagpost_network::Networked;
use flagpost_sim::{Nic, SimCore};
use flagpost_tests::{Platform, Refusal, Ring, Session};

/// The kernel's link over the simulated network.
pub type Mock = Networked<Nic>;

/// The simulated network, as the cases see it.
pub struct Network;

impl Platform for Network {
    type Machine = SimCore;
    type Link = Mock;
    const PROGRAMS: bool = true;

    fn link(machine: &SimCore, _session: Session, ring: Option<Ring>) -> Result<Mock, Refusal> {
        let nic = Nic::open(machine.clone());
        match ring {
            Some(ring) => Mock::start_with_queue(nic, ring.entries()),
            None => Mock::start(nic),
        }
    }

    fn go(machine: &SimCore) {
        machine.mark("go");
    }
}
