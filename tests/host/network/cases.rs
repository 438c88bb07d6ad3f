//! Every conformance case that any link can run.

use flagpost_explore::{Chip, Setting, cases};
use flagpost_sim::{Bounds, Config, Preset, Wire, sweep};

use crate::groups;

/// Seeds per case and size.
const SEEDS: u64 = 30;

/// A network that orders nothing, and one that orders puts.
const NETWORKS: [Preset; 2] = [Preset::Network, Preset::NetworkOrdered];

/// All cases that run on so many ranks of a network.
fn settings(network: Preset, cores: u16) -> impl Iterator<Item = Setting> {
    let setting = move |case| Setting {
        case,
        cores,
        chip: Chip::Preset(network),
    };
    let fits = move |setting: &Setting| setting.case.admits(cores) && setting.fits();
    cases().map(setting).filter(fits)
}

fn ranks(cores: u16, seeds: u64) {
    for network in NETWORKS {
        runs_of(cores, settings(network, cores), seeds, None);
    }
}

fn runs_of(cores: u16, settings: impl Iterator<Item = Setting>, seeds: u64, wire: Option<Wire>) {
    let (mut runs, mut steps) = (0, 0);
    for setting in settings {
        let usual = setting.config();
        let config = Config {
            network: wire.or(usual.network),
            ..usual
        };
        let swept = setting.add_to(sweep(0..seeds), config).run();
        swept.assert_done();
        runs += swept.runs;
        steps += swept.steps;
    }
    println!("{cores} ranks: {runs} runs, {steps} steps");
}

#[test]
fn one_rank() {
    ranks(1, 1);
}

#[test]
fn two_ranks() {
    ranks(2, groups::seeds(SEEDS));
}

#[test]
fn three_ranks() {
    ranks(3, groups::seeds(SEEDS));
}

/// Nearly everything is refused at first, or arrives late, or waits for room at its target. In a
/// quick run each wire has one size, and each of two sizes has two wires.
#[test]
fn narrow_wires() {
    let wires = [(1, 64, 192), (2, 3, 192), (3, 8, 8), (2, 64, 2)];
    for (number, (sends, queue, deliveries)) in wires.into_iter().enumerate() {
        // Each network has a wire of each width, and one of each size.
        let network = NETWORKS[usize::from(number % 2 != number / 2)];
        let wire = Wire {
            sends,
            queue,
            deliveries,
            ordered: network == Preset::NetworkOrdered,
        };
        let sizes = match (groups::is_deep(), number % 2) {
            (true, _) => &[3, 2, 5][..],
            (false, 0) => &[3],
            (false, _) => &[5],
        };
        for &cores in sizes {
            let tried = settings(network, cores);
            runs_of(cores, tried, groups::seeds(SEEDS / 5), Some(wire));
        }
    }
}

#[test]
fn five_ranks() {
    ranks(5, groups::seeds(SEEDS / 3));
}

/// In a quick run every fourth case, none of which `sim` and `scc` have with 48 cores.
#[test]
fn forty_eight_ranks() {
    let skipped = usize::from(!groups::is_deep());
    let names: Vec<_> = cases()
        .skip(skipped)
        .step_by(groups::step(4))
        .map(|case| case.name)
        .collect();
    for (index, network) in NETWORKS.into_iter().enumerate() {
        // In a quick run each case on one of the two.
        let names: Vec<_> = names
            .iter()
            .skip(index * skipped)
            .step_by(1 + skipped)
            .collect();
        let tried = settings(network, 48).filter(|setting| names.contains(&&setting.case.name));
        runs_of(48, tried, 1, None);
    }
}

/// All schedules of small cases, and all orders in which what is under way can arrive. In a quick
/// run with one preemption at the most.
#[test]
fn all_schedules_of_small_cases() {
    for name in [
        "small.notify",
        "small.ping_pong",
        "small.get",
        "small.fan_out",
        "small.list.fan_out",
        "small.notify_get",
        "small.notify_fetch",
        "small.notify_accumulate",
    ] {
        // Of matching lists the network without order shows enough.
        let networks = if name == "small.list.fan_out" { 1 } else { 2 };
        for network in NETWORKS.into_iter().take(networks) {
            let setting = settings(network, 2).find(|setting| setting.case.name == name);
            let setting = setting.expect("any link runs it");
            let bounds = Bounds {
                preemptions: (!groups::is_deep()).then_some(1),
                ..Bounds::default()
            };
            let explored = setting.explore(&bounds, setting.config());
            println!("{setting}: {explored}");
            explored.assert_done();
        }
    }
}
