//! The clocks of all cores, and the servers they meet at.

use flagpost_hal::{CoreId, Kind};
use flagpost_scc::Position;

use super::agenda::Agenda;
use super::links::Links;
use super::{Costs, Trip};
use crate::config::Config;
use crate::machine::Machine;
use crate::machine::traffic::Traffic;
use crate::machine::waits::Watched;
use crate::op::{Access, Op};
use crate::plan::hops;
use crate::shape::Shape;

/// Picoseconds of a second.
const SECOND: u128 = 1_000_000_000_000;

/// Picoseconds that pass when time budgets expire: an hour.
const JUMP: u64 = 3600 * 1_000_000_000_000;

/// An access that is under way.
#[derive(Copy, Clone)]
struct Flight {
    /// Where it goes; none if it stays inside the core.
    server: Option<u32>,
    /// How long it is served, how long it takes back, and how much of that each hop.
    service: u64,
    back: u64,
    hop: u64,
}

/// What stays inside the core.
const INSIDE: Flight = Flight {
    server: None,
    service: 0,
    back: 0,
    hop: 0,
};

/// A core that waits for words: since when, and how long its loop takes for a turn.
#[derive(Copy, Clone)]
struct Parked {
    since: u64,
    turn: u64,
}

/// Most lines that a turn of a loop fetches.
const FETCHED: usize = 64;

/// A core: its time, its place, and what it is doing.
struct Core {
    /// When its last access came back.
    time: u64,
    flight: Flight,
    parked: Parked,
    /// Bytes of message buffers whose lines it has fetched since it paused last; and between the
    /// two pauses before.
    fetched: [Vec<u32>; 2],
    position: Position,
    /// The servers of its tile and of its memory.
    tile: u32,
    controller: u32,
}

/// A place that serves one access at a time.
struct Server {
    position: Position,
    /// When it has served all that have arrived.
    free: u64,
}

/// Virtual time of a run.
pub(crate) struct Clocks {
    costs: Costs,
    cores: Vec<Core>,
    /// Tiles, then memory controllers.
    servers: Vec<Server>,
    links: Links,
    agenda: Agenda,
    /// When the last access arrived: none arrives or departs before.
    arrived: u64,
    /// When it has its effect.
    now: u64,
}

impl Clocks {
    /// All clocks at 0, if `config` is about time.
    pub(crate) fn new(config: &Config, shape: &Shape) -> Option<Self> {
        if !shape.timed {
            return None;
        }
        let plan = &shape.plan;
        let ids = || (0..shape.cores).map(CoreId::new);
        let mut places: Vec<Position> = Vec::new();
        for core in ids() {
            if usize::from(plan.tile(core)) == places.len() {
                places.push(plan.position(core));
            }
        }
        let tiles = places.len() as u32;
        places.extend_from_slice(plan.controllers());
        let core = |core| Core {
            time: 0,
            flight: INSIDE,
            parked: Parked { since: 0, turn: 1 },
            fetched: [const { Vec::new() }; 2],
            position: plan.position(core),
            tile: u32::from(plan.tile(core)),
            controller: tiles + u32::from(plan.controller(core)),
        };
        let server = |position| Server { position, free: 0 };
        let costs = config.latencies.costs();
        Some(Self {
            links: Links::new(plan.mesh(), costs.packet),
            costs,
            cores: ids().map(core).collect(),
            servers: places.into_iter().map(server).collect(),
            agenda: Agenda::new(usize::from(shape.cores)),
            arrived: 0,
            now: 0,
        })
    }

    /// Sends a core's next access off.
    #[inline]
    pub(crate) fn issue(&mut self, core: u16, op: &Op, machine: &Machine) {
        let traffic = machine.traffic(core, op);
        let inside = self.inside(op, traffic);
        let mut arrival = self.cores[usize::from(core)].time + inside;
        let mut flight = INSIDE;
        if let Some((trip, server)) = self.route(core, traffic, &machine.shape) {
            let here = self.cores[usize::from(core)].position;
            let there = self.servers[server as usize].position;
            let hops = hops(here, there);
            let (out, hop) = (trip.out(hops), trip.hop / 2);
            let departure = arrival + out - hop * u64::from(hops);
            arrival += out + self.links.send(here, there, departure, hop, self.arrived);
            flight = Flight {
                server: Some(server),
                service: trip.service,
                back: trip.unloaded(hops) - trip.service - out,
                hop,
            };
        }
        let asking = &mut self.cores[usize::from(core)];
        asking.flight = flight;
        match (op.access, traffic) {
            (Access::Relax, _) => {
                asking.fetched.swap(0, 1);
                asking.fetched[0].clear();
            }
            (_, Traffic::Fetch(at)) if machine.shape.address(at).region.kind != Kind::Memory => {
                let [fetched, _] = &mut asking.fetched;
                if fetched.len() < FETCHED && !fetched.contains(&at) {
                    fetched.push(at);
                }
            }
            _ => {}
        }
        self.agenda.enter(arrival, core);
    }

    /// The core whose access arrives next; it is served, and the core's clock set to when it will
    /// be back.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<u16> {
        let (arrival, number) = self.agenda.next()?;
        let core = &mut self.cores[usize::from(number)];
        let Flight {
            server,
            service,
            back,
            hop,
        } = core.flight;
        self.arrived = arrival;
        self.now = arrival;
        core.time = arrival;
        if let Some(server) = server {
            let Server { position, free } = &mut self.servers[server as usize];
            self.now = arrival.max(*free);
            *free = self.now + service;
            let served = *free;
            let delay = self
                .links
                .send(*position, core.position, served, hop, arrival);
            core.time = served + back + delay;
        }
        Some(number)
    }

    /// What of an access happens inside the core, before anything leaves it.
    fn inside(&self, op: &Op, traffic: Traffic) -> u64 {
        let costs = &self.costs;
        let words = |len: u8| u64::from(len).div_ceil(4);
        match op.access {
            Access::Read { len } | Access::Write { len, .. } => costs.hit * words(len),
            // Only what has room in the buffer goes in; the rest asks again.
            Access::Combine { len, .. } if traffic == Traffic::None => costs.combine * words(len),
            Access::WriteBack { .. } if traffic == Traffic::None => costs.scan,
            Access::Invalidate { .. } => costs.scan,
            Access::Drain => costs.drain,
            Access::Acquire => costs.acquire,
            Access::Cycles => costs.clock,
            Access::Relax => costs.relax,
            Access::Spend(cycles) => self.picoseconds(u64::from(cycles)),
            _ => 0,
        }
    }

    /// What it costs outside, and where.
    #[inline]
    fn route(&self, core: u16, traffic: Traffic, shape: &Shape) -> Option<(Trip, u32)> {
        let costs = &self.costs;
        let tile = |of: u16| self.cores[usize::from(of)].tile;
        match traffic {
            Traffic::None => None,
            Traffic::Register(of) => Some((costs.register, tile(of))),
            Traffic::Bell(of) => Some((costs.ring, tile(of))),
            Traffic::Word(at) | Traffic::Fetch(at) | Traffic::Line(at) => {
                let region = shape.address(at).region;
                let owner = region.owner.get();
                if region.kind == Kind::Memory {
                    let trip = match traffic {
                        Traffic::Word(_) => costs.word,
                        Traffic::Fetch(_) => costs.fetch,
                        _ => costs.line,
                    };
                    return Some((trip, self.cores[usize::from(owner)].controller));
                }
                let own = tile(owner) == tile(core);
                let trip = match (matches!(traffic, Traffic::Line(_)), own) {
                    (false, false) => costs.buffer_word,
                    (false, true) => costs.own_buffer_word,
                    (true, false) => costs.buffer_line,
                    (true, true) => costs.own_buffer_line,
                };
                Some((trip, tile(owner)))
            }
        }
    }

    /// `core` waits from now on, polling its watched words one by one; but those of lines of
    /// message buffers that it has, by fetching the lines that it fetched in the turn before.
    pub(crate) fn park(&mut self, core: u16, machine: &Machine) {
        let shape = &machine.shape;
        let mut turn = self.costs.clock + self.costs.relax;
        let of_line = |at| {
            let is_near = shape.address(at).region.kind == Kind::MessageBuffer;
            is_near && machine.has_line(core, shape.split(at).0)
        };
        let watched = machine.waits.words(core).iter().map(|watched| watched.at);
        let words = watched.filter(|at| !of_line(*at)).map(Traffic::Word);
        let [_, fetched] = &self.cores[usize::from(core)].fetched;
        let is_watched = |at: &u32| {
            let same = |watched: &Watched| shape.split(watched.at).0 == shape.split(*at).0;
            machine.waits.words(core).iter().any(same)
        };
        let lines = fetched.iter().copied().filter(is_watched);
        for traffic in words.chain(lines.map(Traffic::Fetch)) {
            if let Some((trip, server)) = self.route(core, traffic, shape) {
                let here = self.cores[usize::from(core)].position;
                turn += trip.unloaded(hops(here, self.servers[server as usize].position));
            }
        }
        let core = &mut self.cores[usize::from(core)];
        core.parked = Parked {
            since: core.time,
            turn: turn.max(1),
        };
    }

    /// `core` goes on at the end of the first turn that is not before now.
    pub(crate) fn wake(&mut self, core: u16) {
        let core = &mut self.cores[usize::from(core)];
        let Parked { since, turn } = core.parked;
        core.time = since + self.now.saturating_sub(since).div_ceil(turn) * turn;
    }

    /// `core` goes on because its bell was rung now.
    pub(crate) fn wake_by_bell(&mut self, core: u16) {
        let core = &mut self.cores[usize::from(core)];
        core.time = core.time.max(self.now + self.costs.wake);
    }

    /// An hour passes.
    pub(crate) fn jump(&mut self) {
        let latest = self.cores.iter().map(|core| core.time).max();
        self.now = self.now.max(latest.unwrap_or(0)).saturating_add(JUMP);
    }

    /// What `core`'s clock shows, in cycles, rounded to the nearest.
    pub(crate) fn cycles(&self, core: u16) -> u64 {
        let time = u128::from(self.cores[usize::from(core)].time);
        let scaled = time * u128::from(self.costs.hertz) + SECOND / 2;
        (scaled / SECOND) as u64
    }

    /// Cycles of a core as picoseconds, rounded to the nearest.
    fn picoseconds(&self, cycles: u64) -> u64 {
        let hertz = u128::from(self.costs.hertz);
        ((u128::from(cycles) * SECOND + hertz / 2) / hertz) as u64
    }
}
