//! Cases of whole programs.

use crate::cases::apps::{MOST, run};
use crate::cases::{Links, case};
use crate::{Case, Platform};
use flagpost_apps as apps;

impl<P: Platform> Links<P> {
    pub(crate) const APPS: &'static [Case<P>] = &[
        case("apps.stencil", 2, MOST, |c| {
            run(c, apps::stencil::program(), 3, 2)
        }),
        case("apps.halo", 2, MOST, |c| {
            run(c, apps::halo::program(), 1, 3)
        }),
        case("apps.hydro", 2, MOST, |c| {
            run(c, apps::hydro::program(), 1, 3)
        }),
        case("apps.lattice", 2, MOST, |c| {
            run(c, apps::lattice::program(), 1, 3)
        }),
        case("apps.tree", 2, MOST, |c| {
            run(c, apps::tree::program(), 1, 2)
        }),
        case("apps.consumer", 2, MOST, |c| {
            run(c, apps::consumer::program(), 2, 3)
        }),
        case("apps.cholesky", 2, MOST, |c| {
            run(c, apps::cholesky::program(), 2, 3)
        }),
        case("apps.hashtable", 2, MOST, |c| {
            run(c, apps::hashtable::program(), 2, 4)
        }),
        case("apps.sparse", 2, MOST, |c| {
            run(c, apps::sparse::program(), 1, 3)
        }),
        case("apps.fft", 2, MOST, |c| run(c, apps::fft::program(), 4, 1)),
    ];
}
