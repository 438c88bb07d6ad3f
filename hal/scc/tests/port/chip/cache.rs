//! A set-associative cache of four ways.

use flagpost_common::Dice;
use flagpost_scc::Physical;

use super::Line;

/// Which way is replaced when all are in use.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// Three bits per set, a tree: each points away from what was touched last.
    PseudoLru,
    Random,
}

#[derive(Copy, Clone)]
pub(crate) struct Entry {
    pub(crate) at: Physical,
    pub(crate) bytes: Line,
    pub(crate) dirty: bool,
    /// Tagged as message data.
    pub(crate) message: bool,
}

pub(crate) struct Cache {
    sets: Vec<([Option<Entry>; 4], [bool; 3])>,
    policy: Policy,
    dice: Dice,
}

impl Cache {
    pub(crate) fn new(sets: usize, policy: Policy, seed: u64) -> Self {
        Self {
            sets: vec![([None; 4], [false; 3]); sets],
            policy,
            dice: Dice::new(seed),
        }
    }

    fn set(&mut self, at: Physical) -> &mut ([Option<Entry>; 4], [bool; 3]) {
        let number = (at.get() / 32) as usize % self.sets.len();
        &mut self.sets[number]
    }

    /// The line's entry, touched.
    pub(crate) fn find(&mut self, at: Physical) -> Option<&mut Entry> {
        let (ways, tree) = self.set(at);
        let way = ways
            .iter()
            .position(|way| way.is_some_and(|e| e.at == at.line()))?;
        touch(tree, way);
        ways[way].as_mut()
    }

    /// Adds a line that is not here; returns what it replaced.
    pub(crate) fn insert(&mut self, entry: Entry) -> Option<Entry> {
        let random = self.dice.below(4);
        let policy = self.policy;
        let (ways, tree) = self.set(entry.at);
        let unused = ways.iter().position(Option::is_none);
        let way = unused.unwrap_or(match policy {
            Policy::Random => random,
            Policy::PseudoLru => victim(tree),
        });
        touch(tree, way);
        ways[way].replace(entry)
    }

    /// Takes out the lines that `which` wants.
    pub(crate) fn take(&mut self, which: impl Fn(&Entry) -> bool) -> Vec<Entry> {
        let ways = self.sets.iter_mut().flat_map(|(ways, _)| ways);
        ways.filter_map(|way| way.take_if(|entry| which(entry)))
            .collect()
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.sets.iter().flat_map(|(ways, _)| ways).flatten()
    }
}

/// Points the tree away from `way`. Bit 0: is the left half older? Bits 1, 2: is the left one of
/// the pair?
pub(crate) fn touch(tree: &mut [bool; 3], way: usize) {
    tree[0] = way >= 2;
    tree[1 + way / 2] = way % 2 == 1;
}

pub(crate) fn victim(tree: &[bool; 3]) -> usize {
    let pair = usize::from(!tree[0]);
    2 * pair + usize::from(!tree[1 + pair])
}
