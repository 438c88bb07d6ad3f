//! A rank that polls while another one is lost, which the network knows of.

use crate::network::tap::tapped;
use crate::survivor::{LOST, polls};

#[test]
fn polls_tell_that_a_rank_is_lost() {
    tapped(|world, seen| {
        let known = || seen.lost.set(Some((LOST, 0)));
        match polls(world, || (), known, 10_000) {
            Ok(()) => Ok(()),
            Err(why) => panic!("{why:?}"),
        }
    });
}
