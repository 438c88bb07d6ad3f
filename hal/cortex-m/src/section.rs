//! Critical sections that keep the other cores out: for the crate `critical-section`.
#![expect(unsafe_code, reason = "implements an unsafe trait")]

use core::marker::PhantomData;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use critical_section::{Impl, RawRestoreState};

use crate::chip::{Chip, Lock};
use crate::instructions;

/// An implementation for chip `C`, with its lock 0. An image names it once:
/// `critical_section::set_impl!(flagpost_cortex_m::Section<MyChip>);`
///
/// All cores run one image. Where each has an image of its own, they share no `static`, and the
/// crate `cortex-m` has all that is needed.
#[derive(Debug)]
pub struct Section<C>(PhantomData<C>);

/// The word of lock 0, for chips whose locks are words.
static WORD: AtomicU32 = AtomicU32::new(0);

/// The core that is inside, plus 1; else 0. Only a core that is inside stores its number, and it
/// takes it away before it leaves: so a core that reads its own number is inside.
static INSIDE: AtomicU32 = AtomicU32::new(0);

/// What [`Impl::acquire`] gives to [`Impl::release`]: this core was inside before; interrupts were
/// masked before.
const NESTED: RawRestoreState = 2;
const MASKED: RawRestoreState = 1;

impl<C: Chip> Section<C> {
    /// For a core that is reset alone: it is in no section any more. Called before its first one.
    pub fn release_at_start() {
        let me = u32::from(C::core()).wrapping_add(1);
        if INSIDE.load(Relaxed) == me {
            INSIDE.store(0, Relaxed);
            C::barrier();
            C::clear(lock());
        }
    }
}

fn lock() -> Lock<'static> {
    Lock {
        number: 0,
        word: &WORD,
    }
}

// SAFETY: one core at a time is inside, as the lock says, with interrupts masked. What it has done
// there is seen by the next, for a barrier stands after the lock is taken and before it is freed.
unsafe impl<C: Chip> Impl for Section<C> {
    unsafe fn acquire() -> RawRestoreState {
        let me = u32::from(C::core()).wrapping_add(1);
        let masked = instructions::is_masked();
        loop {
            instructions::mask();
            // ORDERING: Relaxed: see `INSIDE`. With interrupts masked no handler comes between.
            if INSIDE.load(Relaxed) == me {
                return NESTED;
            }
            if C::test_and_set(lock()) {
                break;
            }
            if !masked {
                instructions::unmask();
            }
            C::relax();
        }
        C::barrier();
        INSIDE.store(me, Relaxed);
        RawRestoreState::from(masked)
    }

    unsafe fn release(state: RawRestoreState) {
        if state == NESTED {
            return;
        }
        INSIDE.store(0, Relaxed);
        C::barrier();
        C::clear(lock());
        if state != MASKED {
            instructions::unmask();
        }
    }
}
