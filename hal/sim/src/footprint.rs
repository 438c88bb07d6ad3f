//! What a transition touches, and so which transitions commute.
//!
//! Two transitions are independent in a state if both orders lead to the same state and neither
//! enables or disables the other. Here, on the safe side: transitions of one core (its cache's and
//! buffers' included) never commute; nor do two that share a line which one of them changes, in
//! memory *or in its own cache* (an oracle compares the two); nor two that use the same register or
//! bell, or the same budget.

use crate::choices::Transition;

/// What a transition touches.
#[derive(Clone, Debug)]
pub(crate) struct Footprint {
    what: Transition,
    reads: Vec<u32>,
    writes: Vec<u32>,
    /// A register's or bell's number.
    cell: Option<(bool, u16)>,
    /// Everything: nothing commutes with it.
    all: bool,
}

impl Footprint {
    pub(crate) const fn new(what: Transition) -> Self {
        Self {
            what,
            reads: Vec::new(),
            writes: Vec::new(),
            cell: None,
            all: false,
        }
    }

    pub(crate) fn read(&mut self, lines: &[u32]) {
        self.reads.extend_from_slice(lines);
    }

    pub(crate) fn write(&mut self, line: u32) {
        self.writes.push(line);
    }

    pub(crate) fn register(&mut self, number: u16) {
        self.cell = Some((true, number));
    }

    pub(crate) fn bell(&mut self, number: u16) {
        self.cell = Some((false, number));
    }

    pub(crate) fn everything(&mut self) {
        self.all = true;
    }

    /// Whether the order of the two does not matter.
    pub(crate) fn commutes(&self, other: &Self) -> bool {
        let meets = |some: &[u32], others: &[u32]| some.iter().any(|line| others.contains(line));
        let budget = |what: Transition| match what {
            Transition::Run(_) | Transition::Arrive { .. } | Transition::Deliver { .. } => None,
            other => Some(std::mem::discriminant(&other)),
        };
        let shared_budget = budget(self.what).is_some() && budget(self.what) == budget(other.what);
        let shared_cell = self.cell.is_some() && self.cell == other.cell;
        !(self.all
            || other.all
            || self.what.core() == other.what.core()
            || shared_budget
            || shared_cell
            || meets(&self.writes, &other.writes)
            || meets(&self.writes, &other.reads)
            || meets(&self.reads, &other.writes))
    }
}
