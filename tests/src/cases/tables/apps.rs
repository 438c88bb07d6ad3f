//! Cases of whole programs.

use crate::cases::apps::{MOST, run};
use crate::cases::{Links, case};
use crate::{Case, Platform};
use flagpost_apps as apps;

impl<P: Platform> Links<P> {
    pub(crate) const APPS: &'static [Case<P>] = cases! {
        ["apps.stencil", 2..=MOST, context |c| run(c, apps::stencil::program(), 3, 2)]
        ["apps.halo", 2..=MOST, context |c| run(c, apps::halo::program(), 1, 3)]
        ["apps.hydro", 2..=MOST, context |c| run(c, apps::hydro::program(), 1, 3)]
        ["apps.lattice", 2..=MOST, context |c| run(c, apps::lattice::program(), 1, 3)]
        ["apps.tree", 2..=MOST, context |c| run(c, apps::tree::program(), 1, 2)]
        ["apps.consumer", 2..=MOST, context |c| run(c, apps::consumer::program(), 2, 3)]
        ["apps.cholesky", 2..=MOST, context |c| run(c, apps::cholesky::program(), 2, 3)]
        ["apps.hashtable", 2..=MOST, context |c| run(c, apps::hashtable::program(), 2, 4)]
        ["apps.sparse", 2..=MOST, context |c| run(c, apps::sparse::program(), 1, 3)]
        ["apps.fft", 2..=MOST, context |c| run(c, apps::fft::program(), 4, 1)]
    };
}
