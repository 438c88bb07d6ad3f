//! Hazard 15 once more, as the SCC has it: message data (MPBT), through the SCC port. Its
//! `invalidate` is CL1INVMB.

use flagpost_hal::{
    Address, CachedMemory, Coherence, CoreId, Lines, Region, Relax, Topology, UncachedMemory, Watch,
};
use flagpost_scc::{Mapping, Scc};
use flagpost_sim::{Oracle, Profile, SccBus, SimCore};

use crate::hazards::bench::{Acts, CACHES, Hazard, Outcome, anywhere, check};

type Port = Scc<SccBus>;

/// Lines as the chip has them.
pub const ALL: &[Hazard<32>] = &[
    Hazard {
        name: "15 no CL1INVMB on slot reuse, SCC, written through",
        cores: 2,
        memory: 64,
        profiles: &[Profile::Scc, Profile::SccFill],
        program: |core, remedy| slot_reused(core, Mapping::MpbtWriteThrough, remedy),
        most: CACHES,
        consequences: &["old payload"],
        shows: anywhere,
        alarms: &[(Oracle::StaleRead, anywhere)],
    },
    Hazard {
        name: "15 no CL1INVMB on slot reuse, SCC, not written through",
        cores: 2,
        memory: 64,
        profiles: &[Profile::Scc],
        program: |core, remedy| slot_reused(core, Mapping::Mpbt, remedy),
        most: Acts { fills: 0, ..CACHES },
        consequences: &["old payload"],
        shows: anywhere,
        alarms: &[(Oracle::StaleRead, anywhere)],
    },
];

/// Core 1's slot, in its message buffer, and the flag; core 0's acknowledgement.
const SLOT: Address = Region::message_buffer(CoreId::new(1)).at(0);
const FLAG: Address = Region::memory(CoreId::new(1)).at(0);
const ACKNOWLEDGED: Address = Region::memory(CoreId::new(0)).at(0);

/// The port, with the program's words cleared and the set-up at its end.
fn start(core: &SimCore, mapping: Mapping) -> Port {
    let port = core.clone().scc(mapping);
    let own = port.core();
    port.store_u32(Region::memory(own).at(0), 0);
    port.store_u32(Region::message_buffer(own).at(0), 0);
    port.drain();
    core.mark("go");
    port
}

fn wait(port: &Port, at: Address, value: u32) {
    loop {
        match port.load_u32(at) {
            seen if seen == value => return port.acquire(),
            seen => port.relax(&[Watch { at, seen }]),
        }
    }
}

/// One slot, two entries, read through the cache. Remedy: CL1INVMB before.
fn slot_reused(core: &SimCore, mapping: Mapping, remedy: bool) -> Outcome {
    let port = start(core, mapping);
    for number in 1..=2_u32 {
        if port.core().get() == 0 {
            port.store_bytes(SLOT, &number.to_le_bytes());
            port.drain();
            port.store_u32(FLAG, number);
            wait(&port, ACKNOWLEDGED, number);
            continue;
        }
        wait(&port, FLAG, number);
        if remedy {
            port.invalidate(&[Lines::covering::<Port>(SLOT, 4)]);
        }
        let mut found = [0; 4];
        port.read(SLOT, &mut found);
        check(u32::from_le_bytes(found) == number, "old payload")?;
        port.drain();
        port.store_u32(ACKNOWLEDGED, number);
    }
    Ok(())
}
