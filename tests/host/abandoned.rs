//! Runs that end while handles are held: each destructor of a handle waits without a budget, and
//! the end is reported all the same.

use flagpost::{Config, Error, Link, Rank, Session, Tag, Window, World};
use flagpost_explore::Mock;
use flagpost_link::Refusal;
use flagpost_mapped::Mapped;
use flagpost_sim::{Config as Chip, End, Nic, Sim, SimCore, Wire};

const ZERO: Rank = Rank::new(0);
const ONE: Rank = Rank::new(1);

type Words<'w, L> = Window<'w, u32, L>;

/// Waits for ever.
fn nothing_comes<L: Link>(window: &Words<'_, L>) -> Result<(), Error> {
    let mut request = window.expect(0..0, Tag(9))?.from(ONE)?;
    request.start()?;
    request.wait()?;
    Ok(())
}

/// A queued lock and a wait for it.
fn queued<L: Link>(window: &Words<'_, L>, me: Rank) -> Result<(), Error> {
    let held = window.lock_queued(ZERO)?;
    nothing_comes(window)?;
    let _ = me;
    held.unlock()
}

/// An exclusive lock and one of all pieces.
fn locked<L: Link>(window: &Words<'_, L>, me: Rank) -> Result<(), Error> {
    let held = match me {
        ZERO => window.lock_exclusive(ZERO),
        _ => window.lock_all(),
    };
    nothing_comes(window)?;
    held?.unlock()
}

/// An epoch that was started, and one that was not posted.
fn started<L: Link>(window: &Words<'_, L>, me: Rank) -> Result<(), Error> {
    let peers = [Rank::new(1 - me.get())];
    let group = window.world().group(&peers)?;
    let exposure = match me {
        ZERO => Some(window.post(&group)?),
        _ => None,
    };
    let access = window.start(&group)?;
    nothing_comes(window)?;
    drop(access);
    drop(exposure);
    Ok(())
}

fn stalls<L: Link>(
    link: fn(SimCore) -> Result<L, Refusal>,
    program: fn(&Words<'_, L>, Rank) -> Result<(), Error>,
) {
    for seed in 0..20 {
        let chip = Chip {
            memory_size: 16 << 10,
            network: Some(Wire::default()),
            seed,
            ..Chip::default()
        };
        let report = Sim::new(chip).run(|core| -> Result<(), Error> {
            let mut arena = [0; 512];
            let world = World::start(link(core)?, &mut arena, Config::default())?;
            let window = world.allocate::<u32>(4)?;
            program(&window, world.rank())
        });
        assert!(
            matches!(report.end, End::Deadlock | End::Livelock),
            "{report}"
        );
    }
}

fn mapped(core: SimCore) -> Result<Mapped<SimCore>, Refusal> {
    Mapped::start(core, Session::FIRST)
}

fn mock(core: SimCore) -> Result<Mock, Refusal> {
    Mock::start(Nic::open(core))
}

#[test]
fn handles_that_are_held_do_not_keep_a_run_from_its_end() {
    for program in [queued, locked, started] {
        stalls(mapped, program);
    }
    for program in [queued, locked, started] {
        stalls(mock, program);
    }
}
