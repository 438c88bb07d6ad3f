//! Matching as MPI defines it, on a list without bounds: what arrives is appended; a request takes
//! the oldest that it matches.
//!
//! The model is fed with what the link gave during a call, and says what the call must answer. Only
//! two things come from the library's bounds: that it takes nothing more from the link than a call
//! needs, and that it takes nothing while the list is as long as the unexpected queue has places.

use std::collections::VecDeque;

/// A notification.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) window: usize,
    pub(crate) source: u16,
    pub(crate) tag: u32,
}

/// What a request, or a probe, is for. None stands for any.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Filter {
    pub(crate) window: usize,
    pub(crate) source: Option<u16>,
    pub(crate) tag: Option<u32>,
}

impl Filter {
    fn matches(&self, note: &Note) -> bool {
        self.window == note.window
            && self.source.is_none_or(|source| source == note.source)
            && self.tag.is_none_or(|tag| tag == note.tag)
    }
}

/// A request as the program made it.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) filter: Filter,
    pub(crate) count: u16,
}

/// What a call answers.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer<T> {
    Is(T),
    Nothing,
    Full,
    Refused,
}

/// How it stands with a request.
struct Standing {
    wanted: Wanted,
    started: bool,
    /// What it has matched since it was started.
    matched: Vec<Note>,
}

pub(crate) struct Model {
    list: VecDeque<Note>,
    requests: Vec<Standing>,
    places: usize,
    /// What the link gave and the model was not told of yet.
    given: VecDeque<Option<Note>>,
    /// All that was matched or dropped.
    pub(crate) gone: usize,
}

impl Model {
    pub(crate) fn new(requests: &[Wanted], unexpected: u16) -> Self {
        let standing = |&wanted: &Wanted| Standing {
            wanted,
            started: false,
            matched: Vec::new(),
        };
        Self {
            list: VecDeque::new(),
            requests: requests.iter().map(standing).collect(),
            places: usize::from(unexpected) + 1,
            given: VecDeque::new(),
            gone: 0,
        }
    }

    /// The link has given these during the call that comes next.
    pub(crate) fn give(&mut self, given: impl IntoIterator<Item = Option<Note>>) {
        assert!(
            self.given.is_empty(),
            "more taken than needed: {:?}",
            self.given
        );
        self.given.extend(given);
    }

    /// Behind a call: all that was taken was needed.
    pub(crate) fn settle(&mut self) {
        self.give([]);
    }

    /// A call took notifications only to make room.
    pub(crate) fn absorb(&mut self) {
        for note in self.given.drain(..).flatten() {
            self.list.push_back(note);
        }
        assert!(self.list.len() <= self.places, "more than the queue holds");
    }

    /// The next one from the link, where the library must ask for one; nothing if the list has no
    /// place for it.
    fn next(&mut self) -> Answer<Note> {
        if self.list.len() == self.places {
            return Answer::Full;
        }
        match self.given.pop_front() {
            Some(Some(note)) => Answer::Is(note),
            Some(None) => Answer::Nothing,
            None => panic!("the link was not asked for more"),
        }
    }

    pub(crate) fn start(&mut self, index: usize) -> Answer<()> {
        let request = &mut self.requests[index];
        if request.started {
            return Answer::Refused;
        }
        request.started = true;
        request.matched.clear();
        Answer::Is(())
    }

    pub(crate) fn cancel(&mut self, index: usize) -> Answer<()> {
        let request = &mut self.requests[index];
        if !request.started {
            return Answer::Refused;
        }
        request.started = false;
        Answer::Is(())
    }

    /// What the request matched last since it was started.
    pub(crate) fn status(&self, index: usize) -> Option<Note> {
        self.requests[index].matched.last().copied()
    }

    /// Counts a note if the request wants it.
    fn offer(&mut self, index: usize, note: &Note) -> bool {
        let request = &mut self.requests[index];
        let takes = request.wanted.filter.matches(note);
        if takes {
            request.matched.push(*note);
            self.gone += 1;
        }
        takes
    }

    fn is_complete(&self, index: usize) -> bool {
        let request = &self.requests[index];
        request.matched.len() == usize::from(request.wanted.count)
    }

    pub(crate) fn test(&mut self, index: usize) -> Answer<Note> {
        if !self.requests[index].started {
            return Answer::Refused;
        }
        self.take_listed(index);
        while !self.is_complete(index) {
            match self.next() {
                Answer::Is(note) => {
                    if !self.offer(index, &note) {
                        self.list.push_back(note);
                    }
                }
                other => return other,
            }
        }
        self.requests[index].started = false;
        self.status(index).map_or(Answer::Nothing, Answer::Is)
    }

    /// Requests `from..`: which is complete first.
    pub(crate) fn test_any(&mut self, from: usize) -> Answer<(usize, Note)> {
        let all = from..self.requests.len();
        let started: Vec<_> = all.filter(|&index| self.requests[index].started).collect();
        if started.is_empty() {
            return Answer::Nothing;
        }
        for &index in &started {
            self.take_listed(index);
            if self.is_complete(index) {
                return self.end(index, from);
            }
        }
        loop {
            let note = match self.next() {
                Answer::Is(note) => note,
                Answer::Nothing => return Answer::Nothing,
                _ => return Answer::Full,
            };
            match started.iter().find(|&&index| self.offer(index, &note)) {
                None => self.list.push_back(note),
                Some(&index) if self.is_complete(index) => return self.end(index, from),
                Some(_) => {}
            }
        }
    }

    fn end(&mut self, index: usize, from: usize) -> Answer<(usize, Note)> {
        self.requests[index].started = false;
        let last = self.status(index);
        last.map_or(Answer::Nothing, |note| Answer::Is((index - from, note)))
    }

    /// Takes from the list what a request wants.
    fn take_listed(&mut self, index: usize) {
        let filter = self.requests[index].wanted.filter;
        while !self.is_complete(index)
            && let Some(place) = self.list.iter().position(|note| filter.matches(note))
            && let Some(note) = self.list.remove(place)
        {
            self.offer(index, &note);
        }
    }

    pub(crate) fn probe(&mut self, filter: &Filter) -> Answer<Note> {
        if let Some(note) = self.list.iter().find(|note| filter.matches(note)) {
            return Answer::Is(*note);
        }
        loop {
            match self.next() {
                Answer::Is(note) => {
                    self.list.push_back(note);
                    if filter.matches(&note) {
                        return Answer::Is(note);
                    }
                }
                other => return other,
            }
        }
    }

    pub(crate) fn discard(&mut self, window: usize) -> Answer<u32> {
        let before = self.list.len();
        self.list.retain(|note| note.window != window);
        let mut count = before - self.list.len();
        let answer = loop {
            match self.next() {
                Answer::Is(note) if note.window == window => count += 1,
                Answer::Is(note) => self.list.push_back(note),
                Answer::Nothing => break Answer::Is(count as u32),
                _ => break Answer::Full,
            }
        };
        self.gone += count;
        answer
    }

    /// How many have arrived and are not matched.
    pub(crate) fn left(&self) -> usize {
        self.list.len()
    }
}
