//! Ranks whose images were built otherwise do not meet, whichever fact of a build differs.

use flagpost::{Config as WorldConfig, Error, Rank, Session, World};
use flagpost_explore::coherent::Coherent;
use flagpost_explore::forward;
use flagpost_hal::{Address, Amo, Coherence, CoreId, Lines, NativeAtomics, Topology as _, Watch};
use flagpost_link::{Link, Refusal};
use flagpost_mapped::{LineMail, LoadStore, Mapped, MappedNative, UnderLock};
use flagpost_sim::{Config, Sim, SimCore};

/// A core that has atomic operations on 8 bytes, too.
struct Wide(SimCore);

// SAFETY: `SimCore` keeps the promises; each call here is one of its own.
#[expect(unsafe_code, reason = "the trait is unsafe to implement")]
unsafe impl Coherence for Wide {
    const LINE: usize = <SimCore as Coherence>::LINE;

    forward!(in Coherence => 0:
        write_back(spans: &[Lines]); invalidate(spans: &[Lines]); drain(); acquire());
}

forward!(UncachedMemory, CachedMemory, TestAndSet, MessageBuffer, Clock for Wide => 0);

forward!(Topology for Wide => 0 {});

impl flagpost_hal::Relax for Wide {
    forward!(in Relax => 0: relax(watched: &[Watch]); told(core: CoreId));
}

impl NativeAtomics for Wide {
    type Word = u64;

    forward!(in NativeAtomics => 0: atomic_u32(at: Address, operation: Amo<u32>) -> u32);
}

/// Rank 0 has a link of the first kind, rank 1 one of the second: each is told of the other.
fn differ<A: Link, B: Link>(
    what: &str,
    first: impl Fn(SimCore) -> Result<A, Refusal>,
    second: impl Fn(SimCore) -> Result<B, Refusal>,
) {
    fn joins<L: Link>(link: Result<L, Refusal>) -> Option<Error> {
        World::start(
            link.expect("it fits"),
            &mut [0; 256],
            WorldConfig::default(),
        )
        .err()
    }
    let chip = Config {
        cores: 2,
        ..Config::default()
    };
    let report = Sim::new(chip).run(|core: SimCore| {
        let other = Rank::new(u16::from(core.core().get() == 0));
        let told = match other.get() {
            1 => joins(first(core)),
            _ => joins(second(core)),
        };
        assert_eq!(told, Some(Error::OtherBuild(other)), "{what}");
        Ok::<(), Error>(())
    });
    report.assert_done();
}

/// Links with places for so many peers and pieces.
type Tables<const PEERS: usize, const PIECES: usize> =
    LoadStore<LineMail<SimCore, UnderLock, PEERS>, PIECES>;

#[test]
fn each_fact_of_a_build_is_in_its_number() {
    let now = Session::FIRST;
    differ(
        "changes words by atomic operations",
        |core| Mapped::start(core, now),
        |core| MappedNative::start(core, now),
    );
    differ(
        "has atomic operations on 8 bytes",
        |core| MappedNative::start(core, now),
        |core| MappedNative::start(Wide(core), now),
    );
    differ(
        "has coherent caches",
        |core| Mapped::start(core, now),
        |core| Mapped::start(Coherent::new(core), now),
    );
    differ(
        "remembers other numbers of peers",
        |core| Tables::<2, 16>::start(core, now),
        |core| Tables::<3, 16>::start(core, now),
    );
    differ(
        "remembers other numbers of pieces",
        |core| Tables::<2, 16>::start(core, now),
        |core| Tables::<2, 17>::start(core, now),
    );
}
