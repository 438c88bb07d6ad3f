//! The mesh's links: one of each direction between two routers, each busy for a while with every
//! packet.
//!
//! A packet goes east or west first, then north or south. On every link it takes the first time
//! from its arrival on at which the link is idle for as long as it needs, and reaches the next
//! router a hop later.
//!
//! Packets are sent off in the order in which the engine hears of them, which is not quite that of
//! their times: a later one may have taken its time on a link already. So a link is not one number,
//! when it will be idle, but the times at which it is busy; those before now are forgotten, since
//! nothing departs in the past.

use flagpost_scc::Position;

use crate::plan::Mesh;

/// Directions in which a packet leaves a router.
const EAST: usize = 0;
const WEST: usize = 1;
const NORTH: usize = 2;
const SOUTH: usize = 3;

/// When a link is busy: from, until. In order, and neither overlapping nor touching.
type Busy = Vec<(u64, u64)>;

/// All links of a mesh.
pub(crate) struct Links {
    columns: usize,
    /// By router and direction.
    busy: Vec<[Busy; 4]>,
    /// How long a packet occupies a link; 0 if no link is ever busy.
    packet: u64,
}

impl Links {
    pub(crate) fn new(mesh: Mesh, packet: u64) -> Self {
        let columns = usize::from(mesh.columns);
        let routers = columns * usize::from(mesh.rows);
        Self {
            columns,
            busy: (0..routers).map(|_| Default::default()).collect(),
            packet,
        }
    }

    /// Sends a packet off at `time`, each hop of which takes `hop`: how much later than on an idle
    /// mesh it arrives. Nothing will be sent before `now` any more.
    pub(crate) fn send(
        &mut self,
        from: Position,
        to: Position,
        time: u64,
        hop: u64,
        now: u64,
    ) -> u64 {
        if self.packet == 0 {
            return 0;
        }
        let mut at = from;
        let (mut arrives, mut delay) = (time, 0);
        while at != to {
            let router = usize::from(at.y) * self.columns + usize::from(at.x);
            let direction = step(&mut at, to);
            let starts = take(&mut self.busy[router][direction], arrives, self.packet, now);
            delay += starts - arrives;
            arrives = starts + hop;
        }
        delay
    }
}

/// Goes on to the next router; says in which direction.
fn step(at: &mut Position, to: Position) -> usize {
    if at.x < to.x {
        at.x += 1;
        EAST
    } else if at.x > to.x {
        at.x -= 1;
        WEST
    } else if at.y < to.y {
        at.y += 1;
        NORTH
    } else {
        at.y -= 1;
        SOUTH
    }
}

/// The first time from `at` on when a link is idle for `long`; it is busy then.
fn take(busy: &mut Busy, at: u64, long: u64, now: u64) -> u64 {
    let past = busy.iter().take_while(|(_, until)| *until <= now).count();
    busy.drain(..past);
    let mut start = at;
    let mut place = 0;
    for &(from, until) in busy.iter() {
        if start + long <= from {
            break;
        }
        start = start.max(until);
        place += 1;
    }
    let end = start + long;
    let joins_next = busy.get(place).is_some_and(|(from, _)| *from == end);
    let before = place.checked_sub(1).filter(|i| busy[*i].1 == start);
    match (before, joins_next) {
        (Some(i), true) => {
            busy[i].1 = busy[place].1;
            busy.remove(place);
        }
        (Some(i), false) => busy[i].1 = end,
        (None, true) => busy[place].0 = start,
        (None, false) => busy.insert(place, (start, end)),
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Rng, Stream};

    const fn mesh(columns: u16, rows: u16) -> Mesh {
        Mesh {
            columns,
            rows,
            cores_per_tile: 2,
        }
    }

    const fn at(x: u16, y: u16) -> Position {
        Position { x, y }
    }

    #[test]
    fn two_packets_of_one_link_wait_for_each_other() {
        let mut links = Links::new(mesh(4, 3), 3);
        let (hop, now) = (10, 0);
        assert_eq!(links.send(at(0, 0), at(3, 0), 100, hop, now), 0);
        assert_eq!(
            links.send(at(0, 0), at(3, 2), 101, hop, now),
            2,
            "behind it"
        );
        assert_eq!(
            links.send(at(1, 0), at(2, 0), 110, hop, now),
            6,
            "behind both"
        );
        // The other direction, another row, and the same links later and earlier: idle.
        assert_eq!(links.send(at(3, 0), at(0, 0), 100, hop, now), 0);
        assert_eq!(links.send(at(0, 1), at(3, 1), 100, hop, now), 0);
        assert_eq!(links.send(at(0, 0), at(1, 0), 106, hop, now), 0);
        assert_eq!(links.send(at(0, 0), at(1, 0), 97, hop, now), 0);
        // A gap that is too short: 97 to 109 is busy but for nothing.
        assert_eq!(links.send(at(0, 0), at(1, 0), 95, hop, now), 14);
        assert_eq!(
            links.send(at(2, 2), at(2, 2), 5, hop, now),
            0,
            "no link at all"
        );
    }

    /// East first: a packet to the north-east does not meet one that goes north from the same
    /// router.
    #[test]
    fn packets_go_east_first() {
        let mut links = Links::new(mesh(2, 2), 5);
        assert_eq!(links.send(at(0, 0), at(1, 1), 0, 1, 0), 0);
        assert_eq!(links.send(at(0, 0), at(0, 1), 0, 1, 0), 0);
        assert_eq!(links.send(at(1, 0), at(1, 1), 1, 1, 0), 5);
    }

    /// Against every unit of time by itself.
    #[test]
    fn it_agrees_with_a_calendar() {
        let mut rng = Rng::new(7, Stream::Environment);
        let (mut busy, mut calendar) = (Busy::new(), vec![false; 20_000]);
        let mut now = 0;
        for _ in 0..2_000 {
            now += rng.below(5) as u64;
            let (wanted, long) = (now + rng.below(30) as u64, 1 + rng.below(4) as u64);
            let idle = |from: &u64| (*from..from + long).all(|t| !calendar[t as usize]);
            let expected = (wanted..).find(idle).expect("some time");
            assert_eq!(take(&mut busy, wanted, long, now), expected);
            (expected..expected + long).for_each(|t| calendar[t as usize] = true);
            assert!(
                busy.is_sorted() && busy.windows(2).all(|w| w[0].1 < w[1].0),
                "{busy:?}"
            );
            assert!(busy.len() < 64, "the past is forgotten");
        }
    }
}
