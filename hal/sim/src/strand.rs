//! A core's thread of control: a stackful coroutine. All the unsafe code of the simulator but one
//! `unsafe impl`.
//!
//! # Guarantee
//! G1. A [`Port`] suspends its own coroutine or does nothing; it never touches a coroutine that is
//!     finished, suspended, or running on another thread.
//! G2. When a [`Strand`] is gone, no code of its body runs any more, so the body may borrow.
//!
//! # How
//! Every strand has an identity that no other strand of the process ever had. `RUNNING` holds, per
//! host thread, the identity of the strand that is being resumed right now. A port compares its own
//! identity with it before it uses the yielder.
//!
//! # Panics and abandoned cores
//! A panic inside a core unwinds that core's stack only; it is caught at that stack's bottom, with
//! the message and place that the panic hook noted. A core that is left suspended at the end of a
//! run (deadlock) is unwound by force. *While a stack unwinds, accesses have no effect and do not
//! suspend*: a core that panics stops as it stands, with its locks held, like a crashed core. Also,
//! suspending there would let other cores run while the thread counts as panicking, where a second
//! panic aborts.
//!
//! Destructors that wait come to an end there: registers are free, an hour passes between two looks
//! at the clock, and whoever asks whether a core is lost (waits without a budget do) is told that
//! it is. One that polls on all the same cannot be left: the process ends, and says at which line.
//!
//! Without unwinding (`panic = "abort"`, as in release images) an abandoned stack is leaked
//! instead.
#![expect(
    unsafe_code,
    reason = "a port outlives, in type, the yielder it points to"
)]

use std::cell::{Cell, RefCell};
use std::io::{self, Write as _};
use std::marker::PhantomData;
use std::panic::{self, AssertUnwindSafe};
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{process, thread};

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

use crate::op::{Access, Desk, Op};

/// Bytes of a core's stack; only what is touched costs memory. Formatting a panic message in a
/// debug build needs some 20 KiB, and some cases, not optimised, more than 256. A guard page lies
/// below.
const STACK: usize = 1024 * 1024;

/// Accesses that a core may make while its stack unwinds.
const AFTERLIFE: u64 = 1_000_000;

thread_local! {
    /// Identity of the strand that runs on this thread now; 0 if none does.
    static RUNNING: Cell<u64> = const { Cell::new(0) };
    /// Message and place of the last panic of a strand on this thread.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
    /// Stacks of finished strands, for the next ones: making one costs 10 us, reusing it 10 ns.
    static STACKS: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
}

/// A core's way to its engine.
#[derive(Clone)]
pub(crate) struct Port {
    yielder: NonNull<Yielder<(), ()>>,
    identity: u64,
    desk: Rc<Desk>,
}

impl Port {
    /// Hands `op` to the engine and waits for its reply.
    ///
    /// # Panics
    /// If another core, or the host after the run, uses this handle.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn call(&self, op: Op) -> u64 {
        if thread::panicking() {
            return self.unwinding(&op);
        }
        assert!(
            RUNNING.get() == self.identity,
            "a core's handle was used outside of that core"
        );
        self.desk.op.set(op);
        // SAFETY: `RUNNING` equals our identity only while `Strand::resume` on this thread has this
        // very strand running (identities are never reused). So we are called from within the
        // coroutine that the yielder belongs to: the yielder, which lies on that coroutine's stack,
        // is alive, and suspending it suspends the caller. `NonNull` keeps the port on its thread.
        unsafe { self.yielder.as_ref() }.suspend(());
        self.desk.reply.get()
    }

    /// Where the bytes of accesses are.
    #[inline]
    pub(crate) fn desk(&self) -> &Desk {
        &self.desk
    }

    /// Whether the run is over for this core, and its stack unwinds.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        thread::panicking()
    }

    /// Answers without the engine, so that destructors on a dying stack come to an end.
    #[cold]
    fn unwinding(&self, op: &Op) -> u64 {
        let asked = self.desk.afterlife.get() + 1;
        self.desk.afterlife.set(asked);
        if asked == AFTERLIFE {
            // Not a panic: that would end the process without these words.
            let _ = writeln!(
                io::stderr(),
                "flagpost-sim: a run is over, but a destructor polls on without end, at {}. Let it give up when its budget \
                 is spent, or when `Topology::lost` names a core.",
                op.place
            );
            process::abort();
        }
        match op.access {
            Access::TestAndSet(_) => 1,
            Access::Cycles => asked * 3_600_000_000_000,
            _ => 0,
        }
    }
}

/// The last that a strand did.
pub(crate) enum Last {
    /// Its body returned.
    Returned(Result<(), String>),
    /// Its body panicked: message and place.
    Panicked(String),
}

/// A core's coroutine, over a body that may borrow for `'body`.
pub(crate) struct Strand<'body> {
    /// Absent once finished.
    coroutine: Option<Coroutine<(), (), Last>>,
    identity: u64,
    desk: Rc<Desk>,
    body: PhantomData<&'body ()>,
}

impl<'body> Strand<'body> {
    /// A strand that will run `body`.
    ///
    /// # Panics
    /// If the host has no room for another stack.
    pub(crate) fn new(body: impl FnOnce(Port) -> Result<(), String> + 'body) -> Self {
        static IDENTITIES: AtomicU64 = AtomicU64::new(1);
        install_hook();
        // ORDERING: Relaxed: only uniqueness counts, and that is the increment's own atomicity.
        let identity = IDENTITIES.fetch_add(1, Ordering::Relaxed);
        let stack = STACKS
            .with_borrow_mut(Vec::pop)
            .unwrap_or_else(|| DefaultStack::new(STACK).expect("no room for another core's stack"));
        let desk = Rc::new(Desk::new());
        let of_port = Rc::clone(&desk);
        let start = move |yielder: &Yielder<(), ()>, ()| {
            let port = Port {
                yielder: NonNull::from(yielder),
                identity,
                desk: of_port,
            };
            // Here and not around each resume: that costs time. It also ends a forced unwind, which
            // is well.
            match panic::catch_unwind(AssertUnwindSafe(|| body(port))) {
                Ok(result) => Last::Returned(result),
                Err(_) => {
                    let message = PANIC.take();
                    Last::Panicked(message.unwrap_or_else(|| "a panic without a message".into()))
                }
            }
        };
        // SAFETY: what `body` borrows must stay valid until the coroutine has finished. `'body` in
        // our type keeps the borrow alive as long as the strand; our `Drop` finishes the coroutine,
        // or leaks its stack, never to be run again. This module lets nobody forget a strand.
        let coroutine = unsafe { Coroutine::with_stack_unchecked(stack, start) };
        Self {
            coroutine: Some(coroutine),
            identity,
            desk,
            body: PhantomData,
        }
    }

    /// Where its next access is, and the bytes of its accesses.
    #[inline]
    pub(crate) fn desk(&self) -> &Desk {
        &self.desk
    }

    /// Runs the strand up to its next access, which then lies on its desk; or to its return or its
    /// panic.
    ///
    /// # Panics
    /// If it has already returned or panicked.
    #[inline(always)]
    pub(crate) fn resume(&mut self, reply: u64) -> Option<Last> {
        let coroutine = self
            .coroutine
            .as_mut()
            .expect("a finished core was resumed");
        self.desk.reply.set(reply);
        let outer = RUNNING.replace(self.identity);
        let result = coroutine.resume(());
        RUNNING.set(outer);
        match result {
            CoroutineResult::Yield(()) => None,
            CoroutineResult::Return(last) => {
                self.recycle();
                Some(last)
            }
        }
    }

    /// Keeps the stack of a finished coroutine for the next strand.
    fn recycle(&mut self) {
        if let Some(coroutine) = self.coroutine.take() {
            STACKS.with_borrow_mut(|stacks| stacks.push(coroutine.into_stack()));
        }
    }
}

impl Drop for Strand<'_> {
    fn drop(&mut self) {
        let Some(coroutine) = &mut self.coroutine else {
            return;
        };
        // `RUNNING` is not ours here, so no destructor on that stack can suspend it.
        let unwound = cfg!(panic = "unwind")
            && panic::catch_unwind(AssertUnwindSafe(|| coroutine.force_unwind())).is_ok();
        if unwound || coroutine.done() {
            self.recycle();
        } else {
            std::mem::forget(self.coroutine.take());
        }
    }
}

/// Makes panics of strands silent and remembers what they said; other panics are reported as
/// before.
fn install_hook() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if RUNNING.get() == 0 || cfg!(panic = "abort") {
                return previous(info);
            }
            let payload = info.payload();
            let text = payload
                .downcast_ref::<&str>()
                .copied()
                .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
                .unwrap_or("a panic whose payload is no text");
            let place = info
                .location()
                .map_or(String::new(), |l| format!(", at {l}"));
            PANIC.set(Some(format!("{text}{place}")));
        }));
    });
}
