//! Signals: a window's counters as words that peers set or add to, and that this rank compares.
//!
//! A signal *is* a [counter](super::counters): [`Window::set_num_notify`] makes them, and
//! `Signal(i).add(1)` is what a notification of counter `i` does. What differs is who decides on
//! the value: the peer.
//!
//! | OpenSHMEM | here, of a window |
//! |---|---|
//! | `shmem_put_signal(…, sig, v, SHMEM_SIGNAL_SET, pe)` | `put_notify(pe, …, Signal(i).set(v))` |
//! | `shmem_put_signal(…, sig, v, SHMEM_SIGNAL_ADD, pe)` | `put_notify(pe, …, Signal(i).add(v))` |
//! | `shmemx_signal_set`, `shmemx_signal_add` | `notify(pe, Signal(i).set(v))`, `add` |
//! | `shmem_signal_fetch(sig)` | [`signal_fetch(Signal(i))`](Window::signal_fetch) |
//! | `shmem_signal_wait_until(sig, cmp, v)` | [`signal_wait_until(range, Signal(i), cmp, v)`] |
//!
//! [`signal_wait_until(range, Signal(i), cmp, v)`]: Window::signal_wait_until
//!
//! OpenSHMEM's words have 64 bits; [these have 32](super::counters#values). It has caches that are
//! kept coherent, or none; here a wait says which elements it is about, as a request does.
//!
//! # Guarantee
//! G1. When a wait returns, the data of the signals whose effect is in the value can be read in its
//!     range; so can earlier puts of the same ranks there, but for data that
//!     [travel inline](super#inline-data) with an earlier tag. A signal that was overwritten by
//!     another rank's `set` before it was seen tells nothing.
//!
//! # Steps
//! | call | core | in order | remote accesses |
//! |---|---|---|---|
//! | signal | origin | the access; fence; add to the cell, or swap it | see below |
//! | `signal_fetch` | target | read the cell | none |
//! | `signal_wait_until` | target | publish the lines; watch the cell; refresh the lines | none |
//!
//! A signal takes the remote accesses of the access, and 1 atomic operation.
//!
//! # Evidence
//! Cases `counters.signal*` and `small.signal*`.

use core::ops::Range;

use bytemuck::Pod;
use flagpost_link::Link;

use super::{Counter, Signal, awaited::Awaited};
use crate::{
    Error, Window,
    window::{Core, Lines},
};

/// How a signal is compared with a value: `signal … value`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Compare {
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
}

impl Compare {
    /// Whether it is true of `signal` and `value`, as unsigned numbers.
    pub const fn holds(self, signal: u32, value: u32) -> bool {
        match self {
            Self::Eq => signal == value,
            Self::Ne => signal != value,
            Self::Gt => signal > value,
            Self::Ge => signal >= value,
            Self::Lt => signal < value,
            Self::Le => signal <= value,
        }
    }
}

impl<T: Pod, L: Link, S> Window<'_, T, L, S> {
    /// The value of this rank's `signal`: [`Window::notify_value`] of its word.
    ///
    /// # Errors
    /// [`Error::NoSuchCounter`]; [`Error::Timeout`] where a network does not answer for own memory;
    /// [`Error::PeerLost`] in one of 64 calls, if a rank is lost.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::Signal;
    ///
    /// let mut window = world.allocate::<u32>(1)?;
    /// let peer = world.rank().next(world.size());
    /// window.set_num_notify(1)?;
    /// window.notify(peer, Signal(0).set(5))?;
    /// world.barrier()?;
    /// assert_eq!(window.signal_fetch(Signal(0))?, 5);
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn signal_fetch(&self, signal: Signal) -> Result<u32, Error> {
        called!(self.core.world);
        self.notify_value(Counter(signal.0))
    }

    /// Waits until this rank's `signal` compares with `value` as `compare` says, and gives it. Then
    /// the data that came before it can be read in the elements `range` of the own piece (an empty
    /// range: no data, or data that are never cached).
    ///
    /// Own stores to these lines are written back first. Peers put there only if none is left that
    /// is not: as with a [request](super#rule-for-cached-lines).
    ///
    /// # Errors
    /// [`Error::NoSuchCounter`], [`Error::OutOfRange`]; [`Error::Timeout`], which names no rank, as
    /// any may set it: call again.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::{Compare, Signal};
    ///
    /// let mut window = world.allocate::<u32>(1)?;
    /// let peer = world.rank().next(world.size());
    /// window.set_num_notify(1)?;
    /// window.put_notify(peer, 0, &[7], Signal(0).set(3))?;
    /// assert_eq!(window.signal_wait_until(0..1, Signal(0), Compare::Ge, 2)?, 3);
    /// assert_eq!(window.local().get(0)?, 7);
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn signal_wait_until(
        &self,
        range: Range<usize>,
        signal: Signal,
        compare: Compare,
        value: u32,
    ) -> Result<u32, Error> {
        called!(self.core.world);
        let core = &self.core;
        let lines = self.lines(range)?;
        let cell = Awaited::new(core.world, core.own_counter(signal.0)?);
        let arrived = |found| compare.holds(found, value);
        core.await_cell(lines, &cell, arrived, |_| 1)
    }
}

impl<L: Link> Core<'_, L> {
    /// Waits until an own cell's value is as it should be; then what came before it can be read in
    /// `lines`. `left` says of a value how many notifications it lacks.
    pub(super) fn await_cell(
        &self,
        lines: Lines,
        cell: &Awaited<'_, L>,
        arrived: impl Fn(u32) -> bool,
        left: impl Fn(u32) -> u32,
    ) -> Result<u32, Error> {
        // PUBLISH: no dirty line is left to be evicted over what arrives, nor dropped below.
        point!("signals.wait.publish", self.publish(lines)?);
        Ok(order!(
            "signals.wait.watch<refresh",
            cell.wait(arrived, left)?,
            // REFRESH: G1: after the cell was read; a core may fetch lines ahead before.
            point!("signals.wait.refresh", self.refresh(lines)?)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::Compare;

    #[test]
    fn comparisons_are_of_the_signal_with_the_value() {
        let all = [
            (Compare::Eq, [false, true, false]),
            (Compare::Ne, [true, false, true]),
            (Compare::Gt, [false, false, true]),
            (Compare::Ge, [false, true, true]),
            (Compare::Lt, [true, false, false]),
            (Compare::Le, [true, true, false]),
        ];
        for (compare, expected) in all {
            for value in [1, 7, u32::MAX - 1] {
                let found =
                    [value - 1, value, value + 1].map(|signal| compare.holds(signal, value));
                assert_eq!(found, expected, "{compare:?} {value}");
            }
        }
    }
}
