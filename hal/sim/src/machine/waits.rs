//! Which cores wait for which words.
//!
//! Per line, a list of its watchers, so that a store wakes those that wait there and costs the
//! others nothing. The lists are threaded through one table of nodes.

use crate::shape::Shape;

/// A word that a core waits on, and the value it goes on from.
#[derive(Copy, Clone)]
pub(crate) struct Watched {
    pub(crate) at: u32,
    pub(crate) seen: u32,
}

/// A watcher in its line's list.
struct Node {
    core: u16,
    watched: Watched,
    /// Next in the list, or in the list of free nodes.
    next: u32,
}

/// End of a list: node numbers are kept one higher than they are.
const END: u32 = 0;

/// All watchers.
pub(crate) struct Waits {
    shape: Shape,
    /// First node of each line.
    heads: Vec<u32>,
    nodes: Vec<Node>,
    free: u32,
    /// What each core has asked to watch.
    words: Vec<Vec<Watched>>,
    /// Watched lines that changed since the engine last looked.
    changed: Vec<u32>,
}

impl Waits {
    pub(crate) fn new(shape: Shape) -> Self {
        Self {
            shape,
            heads: vec![END; shape.lines()],
            nodes: Vec::new(),
            free: END,
            words: (0..shape.cores).map(|_| Vec::new()).collect(),
            changed: Vec::new(),
        }
    }

    /// Forgets all watchers.
    pub(crate) fn reset(&mut self) {
        // Only lines of remembered words can have a list: no need to visit all lines.
        for watched in self.words.iter_mut().flat_map(|words| words.drain(..)) {
            self.heads[self.shape.split(watched.at).0 as usize] = END;
        }
        self.nodes.clear();
        self.free = END;
        self.changed.clear();
    }

    /// Adds a word to what `core` will wait for.
    pub(crate) fn watch(&mut self, core: u16, watched: Watched) {
        self.words[usize::from(core)].push(watched);
    }

    /// What `core` waits for, or is about to.
    pub(crate) fn words(&self, core: u16) -> &[Watched] {
        &self.words[usize::from(core)]
    }

    /// Puts `core` into the lists of its words.
    pub(crate) fn block(&mut self, core: u16) {
        for &watched in &self.words[usize::from(core)] {
            let head = &mut self.heads[self.shape.split(watched.at).0 as usize];
            let node = Node {
                core,
                watched,
                next: *head,
            };
            if self.free == END {
                self.nodes.push(node);
                *head = self.nodes.len() as u32;
            } else {
                let slot = &mut self.nodes[self.free as usize - 1];
                *head = std::mem::replace(&mut self.free, slot.next);
                *slot = node;
            }
        }
    }

    /// Forgets the words of a core that does not wait after all.
    pub(crate) fn forget(&mut self, core: u16) {
        self.words[usize::from(core)].clear();
    }

    /// Takes `core` out of all lists, if it is in any, and forgets its words.
    pub(crate) fn unblock(&mut self, core: u16) {
        let mut words = std::mem::take(&mut self.words[usize::from(core)]);
        for watched in words.drain(..) {
            self.unlink(core, self.shape.split(watched.at).0 as usize);
        }
        // Give the allocation back for the next wait.
        self.words[usize::from(core)] = words;
    }

    /// Removes `core`'s nodes from a line's list.
    fn unlink(&mut self, core: u16, line: usize) {
        let (mut kept, mut node) = (END, self.heads[line]);
        while node != END {
            let slot = &mut self.nodes[node as usize - 1];
            let next = slot.next;
            if slot.core == core {
                slot.next = std::mem::replace(&mut self.free, node);
            } else {
                slot.next = std::mem::replace(&mut kept, node);
            }
            node = next;
        }
        self.heads[line] = kept;
    }

    /// Notes that a line's bytes changed.
    #[inline]
    pub(crate) fn changed(&mut self, line: u32) {
        if self.heads[line as usize] != END {
            self.changed.push(line);
        }
    }

    /// Whether there is a watched line that changed.
    #[inline]
    pub(crate) fn any_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// A watched line that changed, once for each change.
    #[inline]
    pub(crate) fn take_changed(&mut self) -> Option<u32> {
        self.changed.pop()
    }

    /// Appends the watchers of a line to `into`, in order of cores.
    pub(crate) fn watchers(&self, line: u32, into: &mut Vec<(u16, Watched)>) {
        let mut node = self.heads[line as usize];
        while node != END {
            let slot = &self.nodes[node as usize - 1];
            into.push((slot.core, slot.watched));
            node = slot.next;
        }
        into.sort_unstable_by_key(|(core, watched)| (*core, watched.at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cores(waits: &Waits, line: u32) -> Vec<u16> {
        let mut found = Vec::new();
        waits.watchers(line, &mut found);
        found.into_iter().map(|(core, _)| core).collect()
    }

    #[test]
    fn lists_hold_exactly_those_who_wait() {
        let mut waits = Waits::new(Shape::of(3, 64, 0, 32));
        for core in 0..3 {
            waits.watch(core, Watched { at: 0, seen: 0 });
            waits.watch(core, Watched { at: 36, seen: 0 });
            waits.block(core);
        }
        assert_eq!(cores(&waits, 0), [0, 1, 2]);
        waits.unblock(1);
        assert_eq!(cores(&waits, 0), [0, 2]);
        assert_eq!(cores(&waits, 1), [0, 2]);
        waits.watch(1, Watched { at: 40, seen: 0 });
        waits.block(1);
        assert_eq!(cores(&waits, 0), [0, 2]);
        assert_eq!(cores(&waits, 1), [0, 1, 2]);
        waits.reset();
        assert!(cores(&waits, 0).is_empty());
        assert!(cores(&waits, 1).is_empty());
    }

    #[test]
    fn only_watched_lines_are_reported_as_changed() {
        let mut waits = Waits::new(Shape::of(1, 64, 0, 32));
        waits.changed(0);
        assert_eq!(waits.take_changed(), None);
        waits.watch(0, Watched { at: 0, seen: 0 });
        waits.block(0);
        waits.changed(0);
        waits.changed(1);
        assert_eq!(waits.take_changed(), Some(0));
        assert_eq!(waits.take_changed(), None);
    }
}
