//! Cores that wait: for words, bells, registers, time; and what wakes them.

use flagpost_hal::CoreId;

use super::{JUMP, Run, Running, State};
use crate::machine::waits::Watched;
use crate::op::Op;
use crate::report::End;
use crate::trace::{Note, Verb};

impl Run<'_, '_> {
    /// Notes since when `core` gets nowhere.
    pub(super) fn polls_in_vain(&mut self, core: u16) {
        let vain = &mut self.cores[usize::from(core)].vain;
        *vain = vain.or(Some(self.steps));
    }

    /// Why the run is cut off: somebody has got nowhere for more than half of it, or there is just
    /// too much to do.
    pub(super) fn cut_off(&self) -> End {
        let starves = |running: &Running<'_>| {
            let since = running.vain.filter(|_| running.state != State::Ended);
            since.is_some_and(|since| self.steps - since > self.config.max_steps / 2)
        };
        match self.cores.iter().position(starves) {
            Some(core) => End::Starvation(CoreId::new(core as u16)),
            None => End::StepBound,
        }
    }

    /// `core` polled in vain.
    pub(super) fn turn(&mut self, core: u16) {
        self.polls_in_vain(core);
        self.quiet += 1;
        self.picker.yields(core);
    }

    /// Waits for a watched word to differ; or just a turn.
    pub(super) fn relax(&mut self, core: u16, op: &Op) -> Option<u64> {
        self.machine.count(core).relaxes += 1;
        let number = self.machine.waits.words(core).len();
        let mut differs = number == 0;
        for word in 0..number {
            let Watched { at, seen } = self.machine.waits.words(core)[word];
            differs |= self.machine.peek(core, at) != seen;
        }
        if differs {
            self.record(core, op, 0, Note::None);
            self.machine.waits.forget(core);
            self.turn(core);
            Some(0)
        } else {
            self.record(core, op, 0, Note::Waits);
            self.polls_in_vain(core);
            self.machine.waits.block(core);
            if let Some(clocks) = &mut self.clocks {
                clocks.park(core, self.machine);
            }
            self.block(core, State::Waits);
            None
        }
    }

    pub(super) fn wait_for_ring(&mut self, core: u16, op: &Op) -> Option<u64> {
        let bell = &mut self.machine.bells[usize::from(core)];
        if std::mem::take(bell) {
            self.record(core, op, 0, Note::None);
            Some(0)
        } else {
            self.record(core, op, 0, Note::Waits);
            self.polls_in_vain(core);
            self.block(core, State::WaitsForRing);
            None
        }
    }

    /// Rings a bell. Its owner goes on at once if it waits; else the bell remembers.
    pub(super) fn ring(&mut self, core: u16, of: u16, op: &Op) -> Option<u64> {
        self.machine.count(core).rings += 1;
        self.record(core, op, 0, Note::None);
        self.quiet = 0;
        if self.cores[usize::from(of)].state == State::WaitsForRing {
            self.unblock(of);
        } else {
            self.machine.bells[usize::from(of)] = true;
        }
        Some(0)
    }

    pub(super) fn block(&mut self, core: u16, state: State) {
        self.cores[usize::from(core)].state = state;
        self.picker.disable(core);
    }

    /// A waiting core goes on.
    pub(super) fn unblock(&mut self, core: u16) {
        self.machine.waits.unblock(core);
        if let Some(clocks) = &mut self.clocks {
            match self.cores[usize::from(core)].state {
                State::WaitsForRing => clocks.wake_by_bell(core),
                _ => clocks.wake(core),
            }
        }
        self.cores[usize::from(core)].state = State::Ready;
        self.picker.enable(core);
        self.note(core, Verb::Wake);
        self.advance(core, 0);
    }

    /// Wakes the cores for which a watched word differs now.
    #[inline]
    pub(super) fn wake(&mut self) {
        if self.machine.waits.any_changed() {
            self.wake_watchers();
        }
    }

    pub(super) fn wake_watchers(&mut self) {
        while let Some(line) = self.machine.waits.take_changed() {
            let mut woken = std::mem::take(&mut self.woken);
            woken.clear();
            self.machine.waits.watchers(line, &mut woken);
            for &(core, Watched { at, seen }) in &woken {
                let waits = self.cores[usize::from(core)].state == State::Waits;
                if waits && self.machine.peek(core, at) != seen {
                    self.unblock(core);
                }
            }
            self.woken = woken;
        }
    }

    /// Perhaps wakes some core for no reason.
    #[cold]
    pub(super) fn wake_for_no_reason(&mut self) {
        let core = self.rng.below(self.cores.len());
        let waits = matches!(self.cores[core].state, State::Waits | State::WaitsForRing);
        if waits && self.rng.next() & 1023 < u64::from(self.config.wakes) {
            self.unblock(core as u16);
        }
    }

    /// Late stores arrive, or something on a network. Returns whether there was any.
    pub(super) fn settle(&mut self) -> bool {
        let any = self.machine.settle(self.steps, self.trace);
        self.wake();
        any
    }

    /// Late stores of the chip itself arrive. Returns whether there were any.
    pub(super) fn settle_stores(&mut self) -> bool {
        let any = self.machine.settle_stores();
        self.wake();
        any
    }

    /// Lets a time budget run out, if one is left: time jumps, and everybody who waits looks again.
    pub(super) fn expire(&mut self) -> bool {
        let Some(left) = self.expiries.checked_sub(1) else {
            return false;
        };
        self.expiries = left;
        self.offset += JUMP;
        if let Some(clocks) = &mut self.clocks {
            clocks.jump();
        }
        for core in 0..self.config.cores {
            if matches!(
                self.cores[usize::from(core)].state,
                State::Waits | State::WaitsForRing
            ) {
                self.note(core, Verb::BudgetsExpire);
                self.unblock(core);
            }
        }
        true
    }
}
