//! Errors of a binding count elements from the first one of its range.

use flagpost::{Error, Rank};

#[test]
fn places_of_a_peers_shorter_piece_are_counted_in_the_range() {
    flagpost_guide::simulate(2, |world| {
        let long = world.rank() == Rank::new(0);
        let memory = world.reserve(64)?;
        let bytes = if long { 32 } else { 24 };
        let window = world.create::<u32>(&memory, 0..bytes, 4)?;
        let events = world.events(1)?;
        if long {
            // Elements 4 to 8; the peer has 6.
            let bound = events.bind(&window, 4..8, 0)?;
            let beyond = Error::OutOfRange { end: 4, len: 2 };
            let next = Rank::new(1);
            assert_eq!(bound.put(next, 1, &[7; 3]), Err(beyond));
            assert_eq!(bound.rput(next, 1, &[7; 3]).err(), Some(beyond));
            let outside = Error::OutOfRange { end: 5, len: 4 };
            assert_eq!(bound.put(next, 1, &[7; 4]), Err(outside));
        }
        world.barrier()
    });
}
