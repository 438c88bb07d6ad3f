//! The search itself: one path of choices, extended and taken back.

use std::collections::HashMap;

use super::count::Count;
use super::{Explored, Method};
use crate::chance::Pick;
use crate::choices::{Bounds, Choice, Choices, Transition};
use crate::config::Config;
use crate::engine::piloted::{Choosing, Pilot};
use crate::report::{End, Report};

/// A choice on the present path, and what is known of it.
enum Node {
    /// What happens next.
    State {
        digest: u128,
        options: Vec<Transition>,
        chosen: usize,
        count: Count,
    },
    /// What the chip decides within it.
    Pick { chosen: u32, of: u32, count: Count },
}

/// Depth first.
struct Search {
    method: Method,
    path: Vec<Node>,
    /// How much of the path this run has followed.
    depth: usize,
    /// States that are done with, and how many schedules there are from each.
    known: HashMap<u128, Count>,
    /// Schedules behind the point where this run was broken off, if it was.
    behind: Option<Count>,
    total: Count,
    max_states: u64,
    full: bool,
}

/// Explores `program`, given as something that makes one piloted run: none if it was broken off.
pub(crate) fn explore(
    config: &Config,
    bounds: &Bounds,
    method: Method,
    keep_going: bool,
    mut run: impl FnMut(&mut dyn Pilot) -> (Option<Report>, u64, u128),
) -> Explored {
    let mut search = Search {
        method,
        path: Vec::new(),
        depth: 0,
        known: HashMap::new(),
        behind: None,
        total: Count::default(),
        max_states: bounds.max_states,
        full: false,
    };
    let mut explored = Explored {
        method,
        cores: config.cores,
        profile: config.profile,
        bounds: bounds.clone(),
        complete: true,
        states: 0,
        runs: 0,
        steps: 0,
        schedules: Count::default(),
        verdicts: Default::default(),
        outcomes: Default::default(),
        failure: None,
    };
    loop {
        search.depth = 0;
        search.behind = None;
        let (report, steps, heard) = run(&mut search);
        explored.runs += 1;
        explored.steps += steps;
        if let Some(mut report) = report {
            explored.complete &= report.end != End::StepBound;
            if explored.verdicts.len() < 1000 {
                explored.verdicts.insert(verdict(&report));
            }
            if report.is_done() {
                explored.outcomes.insert(heard);
            } else if explored.failure.is_none() {
                report.config.choices = search.choices();
                // How far the search went does not matter to a run.
                report.config.within = Bounds {
                    max_states: Bounds::ANY.max_states,
                    max_runs: Bounds::ANY.max_runs,
                    ..bounds.clone()
                };
                explored.failure = Some(report);
                if !keep_going {
                    explored.complete = false;
                    break;
                }
            }
        }
        if search.full || explored.runs >= bounds.max_runs {
            explored.complete = false;
            break;
        }
        if !search.turn_back() {
            break;
        }
    }
    if method == Method::States {
        explored.states = search.known.len() as u64;
        if explored.complete {
            explored.schedules = search.total;
        }
    }
    explored
}

/// How a run ended, without what differs between orders of independent steps.
fn verdict(report: &Report) -> String {
    match &report.end {
        End::Oracle(alarm) => format!("{:?} at {}", alarm.oracle, alarm.at),
        end => {
            let mut failures: Vec<_> = report.failures.iter().map(ToString::to_string).collect();
            failures.sort();
            let waiting = report.waiting.iter().map(|waiting| waiting.core.get());
            format!(
                "{end} {failures:?} waiting: {:?}",
                waiting.collect::<Vec<_>>()
            )
        }
    }
}

impl Search {
    /// The path as choices.
    fn choices(&self) -> Choices {
        let mut choices: Vec<Choice> = Vec::new();
        for node in &self.path {
            match node {
                Node::State {
                    options, chosen, ..
                } => choices.push(Choice {
                    what: options[*chosen],
                    picks: Vec::new(),
                }),
                Node::Pick { chosen, .. } => {
                    if let Some(last) = choices.last_mut() {
                        last.picks.push(*chosen);
                    }
                }
            }
        }
        Choices(choices)
    }

    /// Takes the run back to the last choice with an alternative, and chooses that. False if none
    /// is left.
    fn turn_back(&mut self) -> bool {
        // A run that ended is one schedule; one that was broken off at a known state, as many as
        // that has.
        let mut below = self.behind.take().unwrap_or(Count::ONE);
        loop {
            match self.path.last_mut() {
                None => {
                    self.total += below;
                    return false;
                }
                Some(Node::Pick { chosen, of, count }) => {
                    *count += below;
                    if *chosen + 1 < *of {
                        *chosen += 1;
                        return true;
                    }
                    below = *count;
                }
                Some(Node::State {
                    digest,
                    options,
                    chosen,
                    count,
                }) => {
                    *count += below;
                    *chosen += 1;
                    if *chosen < options.len() {
                        return true;
                    }
                    below = *count;
                    if self.method == Method::States {
                        self.known.insert(*digest, below);
                    }
                }
            }
            self.path.pop();
        }
    }

    /// What the node at `depth` and the picks behind it say.
    fn follow(&mut self) -> Option<(Transition, Vec<u32>)> {
        let Some(Node::State {
            options, chosen, ..
        }) = self.path.get(self.depth)
        else {
            return None;
        };
        let what = options[*chosen];
        let picks = self.path[self.depth + 1..]
            .iter()
            .map_while(|node| match node {
                Node::Pick { chosen, .. } => Some(*chosen),
                Node::State { .. } => None,
            });
        let picks: Vec<u32> = picks.collect();
        self.depth += 1;
        Some((what, picks))
    }
}

impl Pilot for Search {
    fn known(&mut self) -> Option<(Transition, Vec<u32>)> {
        self.follow()
    }

    fn choose(&mut self, state: &mut Choosing<'_, '_, '_>) -> Option<(Transition, Vec<u32>)> {
        let mut digest = 0;
        if self.method == Method::States {
            digest = state.digest();
            if let Some(known) = self.known.get(&digest) {
                self.behind = Some(*known);
                return None;
            }
            if self.known.len() as u64 >= self.max_states {
                self.full = true;
                return None;
            }
        }
        self.path.push(Node::State {
            digest,
            options: state.options.clone(),
            chosen: 0,
            count: Count::default(),
        });
        self.follow()
    }

    fn decided(&mut self, picks: &[Pick]) {
        // Those that were prescribed are on the path already.
        let known = self.path[self.depth..].iter();
        let known = known
            .take_while(|node| matches!(node, Node::Pick { .. }))
            .count();
        self.depth += known;
        for pick in picks.iter().skip(known) {
            self.path.push(Node::Pick {
                chosen: pick.chosen,
                of: pick.of,
                count: Count::default(),
            });
            self.depth += 1;
        }
    }
}

/// Repeats a list of choices.
pub(crate) struct Follow {
    pub(crate) rest: std::vec::IntoIter<Choice>,
}

impl Pilot for Follow {
    fn choose(&mut self, state: &mut Choosing<'_, '_, '_>) -> Option<(Transition, Vec<u32>)> {
        match self.rest.next() {
            Some(choice) => Some((choice.what, choice.picks)),
            // Behind the list: whatever comes first.
            None => state.options.first().map(|&option| (option, Vec::new())),
        }
    }

    fn decided(&mut self, _: &[Pick]) {}
}
