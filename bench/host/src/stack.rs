//! `flagpost-bench-stack`: how much stack a small program takes. `cargo xtask bench stack` builds
//! and calls it.
//!
//! A program of its own: with more calls in one program, the compiler would inline others, and
//! `bench instructions` would count that.
//!
//! The program runs on a stack of its own, which is painted before: what is no longer painted
//! afterwards was used. The figures are of this processor, optimised; others differ by their
//! pointers and registers. The link and the world lie on the stack, too. `World::run`
//! makes it: what `World::start` gives moves, and takes more.

use std::mem::size_of_val;
use std::process::ExitCode;
use std::sync::Mutex;

use anyhow::{Result, bail};
use corosensei::stack::{DefaultStack, Stack as _};
use corosensei::{Coroutine, CoroutineResult};
use flagpost::{Config, Error, Link, Rma as _, Session, Tag, World};
use flagpost_coherent::RecordMail;
use flagpost_common::{say, table};
use flagpost_link::Refusal;
use flagpost_linux::{Coherent, HostLink, Linux, RunError, machines_with};
use flagpost_mapped::LoadStore;

/// Bytes of the stack that is painted: far more than the program takes.
const SIZE: usize = 256 << 10;
/// What no frame is full of.
const PAINT: u8 = 0xA5;
const RANKS: u16 = 2;

/// As the host's link, with small tables.
type Small = LoadStore<RecordMail<Linux<Coherent>, 2>, 16>;

/// Bytes of the link, of the world, and of the whole stack.
#[derive(Copy, Clone, Debug, Default)]
struct Bytes {
    link: usize,
    world: usize,
    stack: usize,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            say(&format!("error: {why:#}"));
            ExitCode::from(2)
        }
    }
}

/// Measures and prints.
fn run() -> Result<()> {
    let usual = most(|machine| HostLink::start(machine, Session::FIRST))?;
    let small = most(|machine| Small::start(machine, Session::FIRST))?;
    let row = |what: &str, of: fn(&Bytes) -> usize| {
        let [usual, small] = [&usual, &small].map(|bytes| of(bytes).to_string());
        vec![what.to_owned(), usual, small]
    };
    let rows = [
        row("the link", |bytes| bytes.link),
        row("the world, the link included", |bytes| bytes.world),
        row("stack of the program, the world included", |bytes| {
            bytes.stack
        }),
    ];
    let head = [
        "two ranks, a notified put and an epoch; bytes",
        "default",
        "small",
    ];
    table(&head, &rows);
    Ok(())
}

/// What the rank takes that takes the most, with such links.
fn most<L: Link>(
    start: impl Fn(Linux<Coherent>) -> Result<L, Refusal> + Copy + Sync + 'static,
) -> Result<Bytes> {
    let most = Mutex::new(Bytes::default());
    let ended = machines_with::<Coherent, (), Error>(RANKS, 1 << 20, |machine| {
        let bytes = on_painted_stack(machine, start).map_err(RunError::Program)?;
        let mut most = most.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if bytes.stack > most.stack {
            *most = bytes;
        }
        Ok(())
    });
    if let Err(why) = ended {
        bail!("the program failed: {why}");
    }
    Ok(most
        .into_inner()
        .unwrap_or_else(|poisoned| poisoned.into_inner()))
}

/// Runs the program of one rank.
fn on_painted_stack<L: Link>(
    machine: Linux<Coherent>,
    start: impl Fn(Linux<Coherent>) -> Result<L, Refusal> + 'static,
) -> Result<Bytes, Error> {
    let stack = DefaultStack::new(SIZE).expect("memory for a stack");
    let bottom = (stack.base().get() - SIZE) as *mut u8;
    // SAFETY: the SIZE bytes below the base are the stack's, which nobody else uses yet.
    unsafe { bottom.write_bytes(PAINT, SIZE) };
    let mut rank = Coroutine::<(), (), Result<Bytes, Error>, _>::with_stack(stack, |_, ()| {
        program(machine, start)
    });
    let CoroutineResult::Return(sizes) = rank.resume(()) else {
        unreachable!("the program does not suspend itself");
    };
    let stack = rank.into_stack();
    let bottom = (stack.base().get() - SIZE) as *const u8;
    // SAFETY: as above, and all of it has been written to. The program has returned.
    let bytes = unsafe { std::slice::from_raw_parts(bottom, SIZE) };
    let free = bytes.iter().take_while(|byte| **byte == PAINT).count();
    Ok(Bytes {
        stack: SIZE - free,
        ..sizes?
    })
}

#[inline(never)]
fn program<L: Link>(
    machine: Linux<Coherent>,
    start: impl Fn(Linux<Coherent>) -> Result<L, Refusal>,
) -> Result<Bytes, Error> {
    let mut words = [0; 128];
    World::run(start(machine)?, &mut words, Config::default(), |world| {
        ring(world)?;
        Ok(Bytes {
            link: size_of_val(world.link()),
            world: size_of_val(world),
            stack: 0,
        })
    })
}

/// As in `examples/bare-metal-rust`.
fn ring<L: Link>(world: &World<'_, L>) -> Result<(), Error> {
    let (me, size) = (world.rank(), world.size());
    let (left, right) = (me.prev(size), me.next(size));
    let window = world.allocate::<u64>(64)?;
    let mut arrived = window.expect(0..1, Tag(7))?;
    arrived.start()?;
    window.put_notify(right, 0, &[42 + u64::from(me.get())], Tag(7))?;
    arrived.wait()?;
    let value = window.local().get(0)?;
    let (origins, targets) = ([left], [right]);
    let exposure = window.post(&world.group(&origins)?)?;
    let access = window.start(&world.group(&targets)?)?;
    access.put(right, 1, &[value])?;
    access.complete()?;
    exposure.wait()?;
    Ok(())
}
