//! Cases that fail, each in its own way, to try what watches over the cases.
//!
//! Selected by their full name only. All but `broken.fail` end, or hang, the whole machine. They
//! act on core 1, or on core 0 of a machine of one.

use core::hint::{black_box, spin_loop};

use flagpost::{Config, Tag, World};
use flagpost_hal::{Relax, Topology};
use flagpost_qemu::{Exit, finish, leave, load_from_zero};
use flagpost_tests::{Case, Context, Failure, Platform as _};

use crate::Qemu;

type Result = core::result::Result<(), Failure>;

pub(crate) const CASES: &[Case<Qemu>] = &[
    case("broken.fail", fail),
    case("broken.hang", |context| culprit(context, hang)),
    case("broken.spin", |context| culprit(context, spin)),
    case("broken.trap", |context| culprit(context, trap)),
    case("broken.overflow", |context| culprit(context, overflow)),
    case("broken.silent", |context| culprit(context, silent)),
    case("broken.panic", |context| culprit(context, panic)),
    case("broken.deadlock", deadlock),
    case("broken.leaver", leaver),
    case("broken.stands", stands),
    case("broken.assert", asserts),
];

const fn case(name: &'static str, run: fn(&mut Context<'_, Qemu>) -> Result) -> Case<Qemu> {
    Case {
        name,
        min_cores: 1,
        max_cores: u16::MAX,
        atomics: false,
        lacks: None,
        leftovers: false,
        epochs: 1,
        run,
    }
}

/// Calls `act` on the core that misbehaves; the others return and wait for it.
fn culprit(context: &mut Context<'_, Qemu>, act: fn(&Context<'_, Qemu>)) -> Result {
    let machine = &context.machine;
    if machine.core().get() == machine.cores().min(2) - 1 {
        act(context);
    }
    Ok(())
}

/// The last core returns a failure.
fn fail(context: &mut Context<'_, Qemu>) -> Result {
    let machine = context.machine;
    if machine.core().get() + 1 < machine.cores() {
        return Ok(());
    }
    Err(Failure::Wrong {
        what: "broken on purpose",
        expected: 1,
        found: 2,
    })
}

/// Waits, with good manners, for what never comes.
fn hang(context: &Context<'_, Qemu>) {
    loop {
        context.machine.relax(&[]);
    }
}

/// Keeps its turn while it waits.
fn spin(_: &Context<'_, Qemu>) {
    loop {
        spin_loop();
    }
}

fn trap(_: &Context<'_, Qemu>) {
    load_from_zero();
}

fn overflow(_: &Context<'_, Qemu>) {
    black_box(dig(black_box(u64::MAX)));
}

/// Recurses `depth` times. What is done with the result keeps the compiler from making it a loop.
#[inline(never)]
fn dig(depth: u64) -> u64 {
    let frame = black_box([depth; 16]);
    match depth {
        0 => 0,
        _ => dig(depth - 1) + frame[black_box(0)],
    }
}

/// Ends the machine as if all were well.
fn silent(_: &Context<'_, Qemu>) {
    finish(Exit::Pass);
}

/// The last core waits for a notification that no core sends, and the others for the last core.
fn deadlock(context: &mut Context<'_, Qemu>) -> Result {
    let last = context.machine.core().get() + 1 == context.machine.cores();
    let link = Qemu::link(&context.machine, context.session, None)?;
    World::run(link, context.arena, Config::default(), |world| {
        let window = world.allocate::<u32>(1)?;
        if last {
            let mut never = window.expect(0..1, Tag(1))?;
            never.start()?;
            never.wait()?;
        }
        world.barrier()
    })?;
    Ok(())
}

/// The last core leaves, and the others need it, or one that has left for want of it.
fn leaver(context: &mut Context<'_, Qemu>) -> Result {
    let last = context.machine.core().get() + 1 == context.machine.cores();
    let link = Qemu::link(&context.machine, context.session, None)?;
    let done = World::run(link, context.arena, Config::default(), |world| match last {
        true => Ok(()),
        false => world.barrier(),
    });
    leave(*context.machine.bus(), Exit::Pass);
    Ok(done?)
}

/// The last core fails, and each other one waits for itself.
fn stands(context: &mut Context<'_, Qemu>) -> Result {
    let last = context.machine.core().get() + 1 == context.machine.cores();
    let link = Qemu::link(&context.machine, context.session, None)?;
    let done = World::run(link, context.arena, Config::default(), |world| {
        let window = world.allocate::<u32>(1)?;
        let mut never = window.expect(0..1, Tag(1))?.from(world.rank())?;
        never.start()?;
        match last {
            true => Ok::<(), flagpost::Error>(()),
            false => never.wait().map(drop),
        }
    });
    leave(*context.machine.bus(), Exit::Fail);
    Ok(done?)
}

/// The last core finds by defmt's means that something is wrong.
fn asserts(context: &mut Context<'_, Qemu>) -> Result {
    let last = context.machine.core().get() + 1 == context.machine.cores();
    let link = Qemu::link(&context.machine, context.session, None)?;
    World::run(link, context.arena, Config::default(), |world| {
        world.barrier()?;
        defmt::assert!(!last, "broken on purpose");
        Ok::<(), flagpost::Error>(())
    })?;
    Ok(())
}

fn panic(_: &Context<'_, Qemu>) {
    panic!("broken on purpose");
}
