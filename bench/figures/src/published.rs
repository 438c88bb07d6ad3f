//! Values that the sources state, each with the place where it stands.
//!
//! Values of the SCC may be compared with simulated ones as they are. Those of other machines are
//! compared by ratio and shape alone. Sources are listed in `docs/hardware.md`.

/// A published value.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Published {
    /// Name here and in the figures.
    pub(crate) id: &'static str,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    /// What it is of.
    pub(crate) what: &'static str,
    /// Source, and place in it.
    pub(crate) place: &'static str,
}

const fn published(
    id: &'static str,
    value: f64,
    unit: &'static str,
    what: &'static str,
    place: &'static str,
) -> Published {
    Published {
        id,
        value,
        unit,
        what,
        place,
    }
}

pub(crate) const P1: Published = published(
    "P1",
    25.8,
    "us",
    "epoch on one side, k = 13, match vectors, on an SCC",
    "[PSCW-SCC] V-C, Fig. 5",
);
pub(crate) const P2: Published = published(
    "P2",
    115.2,
    "us",
    "the same over RCKMPI's messages",
    "[PSCW-SCC] V-C, Fig. 5",
);
pub(crate) const N14: Published = published(
    "N14",
    0.5,
    "of the time",
    "small notified puts take under half of an epoch's time, on Piz Daint",
    "[NA] V-A, Fig. 3a",
);
pub(crate) const N19: &str = "N19: notified access hides a high share at every size, messages hardly any of small ones, on Piz Daint: [NA] V-A, Fig. 4a.";
pub(crate) const N26: Published = published(
    "N26",
    2.17,
    "times as fast as messages",
    "the stencil with notified puts, weak scaling, on Piz Daint",
    "[NA] VI-A, Fig. 4b",
);
pub(crate) const N30: Published = published(
    "N30",
    1.95,
    "times as fast as messages",
    "Cholesky with notified puts, weak scaling, on Piz Daint",
    "[NA] VI-C, Fig. 5",
);
pub(crate) const F7: Published = published(
    "F7",
    2.9,
    "us x log2 p",
    "a fence of p processes, on Blue Waters",
    "[foMPI] 3.2, Fig. 8a",
);
pub(crate) const F12: Published = published(
    "F12",
    0.7,
    "us x k + 2.5 us",
    "post, start, complete and wait with k neighbours, on Blue Waters",
    "[foMPI] 3.2",
);
pub(crate) const F13: &str = "F13: on a ring (k = 2) foMPI's epochs are constant in p but for noise, on Blue Waters: [foMPI] 3.2, Fig. 8b.";

impl Published {
    /// A note for a figure.
    pub(crate) fn note(self) -> String {
        let Self {
            id,
            value,
            unit,
            what,
            place,
        } = self;
        format!("{id}: {value} {unit}: {what}: {place}.")
    }
}
