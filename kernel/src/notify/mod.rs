//! Notified access: an access that tells its target; a put with a tag in the same message.
//!
//! # Guarantee
//! G1. When a request completes, the data of the notifications that it matched can be read at the
//!     target, as far as they lie in the request's range; so can earlier puts of the same sources
//!     there.
//! G2. A notification is matched by the first test that asks for it; among those that match a
//!     request, the oldest first. Notifications of one source are matched in the order in which
//!     they were sent.
//! G3. None is lost: with a full unexpected queue the target takes no more from its ring, and with
//!     a full ring its senders wait. A window with some that are not matched is not
//!     [freed](crate::Window::free). Dropped are only those that no rank of this world sends: of a
//!     window that there is not, in the name of a rank that there is not, or in another one's where
//!     the link knows whose they are (on coherent machines a request that takes its notification
//!     immediately does not ask).
//!
//! # Parts
//! All accesses, and what the target may take from being told: [`access`]. How it is told, by a
//! tag or by the change of a word: [`notice`]. Tags are matched by requests, as below. A counter or
//! signal is a word of a window ([`words`]), an event one of the world ([`events`]); a target waits
//! for either by a [`WordRequest`].
//! ```text
//!   origin                                  target
//!   win.put_notify(to, index, data, tag)    let mut r = win.expect(range, tag)?
//!                                           loop { r.start()?; … r.wait()? … }
//! ```
//! A request is persistent: made once, started for each use. It is 32 bytes, owned by the user, and
//! there is no list of requests: a notification waits in the unexpected queue until a request asks.
//! [`test_any`](crate::test_any), [`wait_any`](crate::wait_any) and
//! [`wait_all`](crate::wait_all) ask for several; [`probe`](crate::Window::probe) looks without
//! matching.
//!
//! # Steps
//! | call         | core   | in order                                                             |
//! |--------------|--------|----------------------------------------------------------------------|
//! | `put_notify` | origin | data, then notification: see the link                                |
//! | others       | origin | the access, then notification: see [`notice`]                        |
//! | `start`      | target | publish the request's lines: no dirty one may travel over the data   |
//! | `test`       | target | search the unexpected queue; then take from the link until a match,  |
//! |              |        | queueing what does not match; when complete: refresh the lines       |
//! | `wait`       | target | test until complete                                                  |
//! | `probe`      | target | as test, but what matches is queued as well                          |
//!
//! # Rule for cached lines
//! From `start` to completion the target does not store to the request's lines
//! ([`Error::Exposed`](crate::Error::Exposed)). Before the first start and between two uses nobody
//! is told: there the origin must know, by the program's own logic, that the target leaves the
//! lines alone (a target that only ever reads them always does).
//!
//! # Inline data
//! Data of a `put_notify` with a tag travel inside of the notification or with it, as far as the
//! link can do so and the window does not forbid it ([`set_inline`](crate::Window::set_inline)).
//! How many bytes that can be depends on the link, its machine and the number of ranks. The
//! target's own calls put them in their place when they have read the notification from the link,
//! matched or not. So they are in place
//! * for the target, when a request has matched the notification, or a later one of the same
//!   source;
//! * for whomever the target tells anything after that, and whomever the origin tells anything
//!   after it has taken an answer;
//! * for everybody, when the origin's flush, unlock or [`fence`](crate::Window::fence) has
//!   returned. On links that are not passive these wait for the target's progress then: it must be
//!   in a call that waits or tests, or make up to 16 others. On coherent machines they need no call
//!   of the target. They cost nothing more while no inline data are in flight.
//!
//! A store of the owner through its cache notifies no rank: see
//! [there](crate::epoch::lock#this-ranks-own-piece).
//!
//! A barrier, a PSCW epoch, or a notice by a counter or signal does not place them: what follows
//! may overtake them. A later notified put of the same bytes with a tag does not.
//!
//! # Source
//! [NA] III (interface), IV-B (matching with one unexpected queue). The range of a request is ours:
//! chips without coherence need to know what to invalidate.
//!
//! [NA]: crate#sources

pub mod access;
pub mod events;
mod expect;
pub mod notice;
pub(crate) mod queue;
mod request;
mod word_request;
pub mod words;

pub use events::{EventPost, Events, Syncing};
pub use expect::{Source, TagFilter};
pub use notice::{AnyWord, Changed, Counter, Event, Notice, Signal};
pub use request::{Request, Status};
pub use word_request::{Compare, WordRequest};

pub use crate::immediate::{Limits, Tag};
