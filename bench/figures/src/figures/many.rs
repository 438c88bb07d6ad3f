//! Among many ranks.

use flagpost_bench::tree::{Variant, measure};
use flagpost_sim::Latencies;

use super::{points, ran};
use crate::figure::{Axis, Curve, Figure, Kind, Plan, Task, number};

const CORES: [u16; 7] = [17, 32, 48, 96, 256, 512, 1024];

/// After NA Fig. 4c.
pub(super) fn tree() -> Plan {
    let task = |(variant, cores): (Variant, u16)| {
        let cost = u64::from(cores) * if variant == Variant::Notified { 20 } else { 3 };
        Task::new(cost, move || {
            Ok(vec![ran(measure(variant, cores, Latencies::SccEas))? as f64])
        })
    };
    let all = Variant::ALL
        .into_iter()
        .flat_map(|variant| CORES.map(|cores| (variant, cores)));
    Plan {
        name: "tree",
        tasks: all.map(task).collect(),
        figure: Box::new(|values| {
            let xs = CORES.map(f64::from).to_vec();
            let (notified, messages) = values.split_at(CORES.len());
            let ys = |values: &[Vec<f64>]| points(&xs, values.iter().map(|cycles| cycles[0]));
            Figure {
                title: format!("A tree of 48 cores: {} cycles notified, {} by messages", number(notified[2][0]), number(messages[2][0])),
                x: Axis::log("cores of the chip").marked(xs.clone()),
                y: Axis::log("core cycles until core 0 has the sum"),
                curves: vec![
                    Curve::line(Kind::Notified, "notified, one counting request", ys(notified)),
                    Curve::line(Kind::Messages, "send and receive", ys(messages)),
                ],
                published: Vec::new(),
                notes: vec!["Simulated SCC and larger chips of its kind; 16 children each, 8 bytes. As [NA] Fig. 4c, whose values are not in the text.".to_owned()],
                command: "cargo xtask bench tree --cores 17,32,48,96,256,512,1024".to_owned(),
                listed: false,
            }
        }),
    }
}
