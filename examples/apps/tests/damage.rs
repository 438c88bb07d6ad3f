//! A value that is damaged on its way, or lost, is found: each program ends with [`Wrong::Value`].

use std::cell::{Cell, RefCell};

use flagpost::{Config as WorldConfig, Session, World};
use flagpost_apps::{Job, Variant, Wrong, programs};
use flagpost_link::{Key, Link, Op, Rank, Refusal, Wraps};
use flagpost_mapped::Mapped;
use flagpost_sim::{Config, Sim, SimCore};

/// A link that damages or loses the data of a rank's first notified put.
struct Damaging<L> {
    link: L,
    /// The rank, until it has done so.
    rank: Cell<Option<Rank>>,
    /// The notification comes, and the data do not.
    loses: bool,
}

/// The byte of an element that is damaged, and its bit: the upper one of a number's fraction.
const BYTE: usize = 6;
const BIT: u8 = 1 << 3;

impl<L: Link> Wraps for Damaging<L> {
    type Inner = L;

    fn inner(&self) -> &L {
        &self.link
    }

    fn sends(
        &self,
        to: Rank,
        place: (Key, usize),
        data: &[u8],
        immediate: u32,
        inline: bool,
        op: &Op,
    ) -> Result<(), Refusal> {
        let mut data = data.to_vec();
        let is_damaged = self.rank.get() == Some(self.rank()) && data.len() > BYTE;
        if is_damaged {
            data[BYTE] ^= BIT;
        }
        if is_damaged && self.loses {
            data.clear();
        }
        self.link
            .put_immediate(to, place, &data, immediate, inline, op)?;
        if is_damaged {
            self.rank.set(None);
        }
        Ok(())
    }
}

#[test]
fn a_damaged_value_is_found_by_each_program() {
    each_program_finds(false);
}

#[test]
fn a_lost_value_is_found_by_each_program() {
    each_program_finds(true);
}

/// What the ranks of a program find, with the first number damaged or lost that rank 1 sends.
fn each_program_finds(loses: bool) {
    const RANKS: u16 = 4;
    let by_puts = [Variant::Messages, Variant::Notified];
    for program in programs() {
        let mut variants = program.variants.iter();
        let variant = *variants.find(|variant| by_puts.contains(variant)).unwrap();
        let mut size = program.small;
        if program.name == "fft" {
            size.steps = 1; // of several rounds the last one is compared
        }
        let chip = Config {
            cores: RANKS,
            memory_size: 64 << 10,
            ..Config::default()
        };
        let wrong = RefCell::new(Vec::new());
        // The others may wait for a rank that has ended: how they end does not matter.
        let _ = Sim::new(chip).run(|core: SimCore| {
            let link = Damaging {
                link: Mapped::start(core, Session::FIRST).map_err(flagpost::Error::from)?,
                rank: Cell::new(Some(Rank::new(1))),
                loses,
            };
            let mut arena = [0; WorldConfig::DEFAULT.words(RANKS, 2)];
            let world = World::start(link, &mut arena, WorldConfig::DEFAULT)?;
            let job = Job {
                variant,
                size,
                memory: &mut vec![0.0; program.memory(RANKS, size)?],
                compute: &|_| {},
            };
            let outcome = program.run(&world, job);
            wrong.borrow_mut().extend(outcome.err());
            outcome.map(|_| ())
        });
        let wrong = wrong.into_inner();
        let is_value = |wrong: &Wrong| matches!(wrong, Wrong::Value { .. });
        assert!(wrong.iter().any(is_value), "{}: {wrong:?}", program.name);
    }
}
