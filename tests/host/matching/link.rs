//! A link that writes down what it gave its rank from the queue of immediates, and when it had
//! nothing.

use std::cell::{Cell, RefCell};

use flagpost_link::{Arrival, Link, Step, Wants, Wraps};

/// Answers of [`Telling::progress`](flagpost_link::Telling::progress), in order.
pub(crate) type Log = RefCell<Vec<Option<u32>>>;

/// `L`, and a log if the rank is the one that is looked at.
pub(crate) struct Recorded<'l, L> {
    pub(crate) link: L,
    pub(crate) log: &'l Log,
    /// Whose notification was asked for last.
    pub(crate) asked: Cell<Wants>,
}

impl<L: Link> Wraps for Recorded<'_, L> {
    type Inner = L;

    fn inner(&self) -> &L {
        &self.link
    }

    fn takes(&self, wants: Wants) -> Option<Arrival> {
        let arrival = self.link.progress(wants);
        let immediate = arrival.map(|arrival| arrival.immediate);
        let mut log = self.log.borrow_mut();
        // Where several are waited for, one after the other is asked for: the last answer counts.
        let others = self.asked.replace(wants) != wants;
        if others && log.last() == Some(&None) {
            log.pop();
        }
        log.push(immediate);
        arrival
    }

    fn steps(&self, step: Step<'_>) {
        if matches!(step, Step::Begin | Step::End) {
            self.link.step(step);
        }
    }
}
