//! How many operations an access is on a network: short pieces are packed as long as the target's
//! run goes on.

use flagpost::rma::{BUFFER, Gather, Layout, Scatter};
use flagpost::{Rank, Rma as _};

use crate::network::tap::tapped;

#[test]
fn short_pieces_travel_together() {
    const COUNT: usize = 64;
    const OPERATIONS: usize = COUNT * size_of::<u64>() / BUFFER;
    tapped(|world, seen| {
        let window = world.allocate::<u64>(COUNT)?;
        if world.rank() == Rank::new(0) {
            let lock = window.lock_all()?;
            let (to, whole) = (Rank::new(1), Layout::Contiguous { count: COUNT });
            let stripes = Layout::Vector {
                blocks: COUNT,
                block_len: 1,
                stride: 2,
            };
            let mut data = [7_u64; 2 * COUNT];
            seen.begun.set(0);
            lock.to(to, 0)
                .layout(whole)
                .put(Gather::new(&data, stripes))?
                .wait()?;
            assert_eq!(seen.begun.get(), OPERATIONS, "put");
            lock.flush(to)?;
            seen.begun.set(0);
            lock.to(to, 0)
                .layout(whole)
                .get(Scatter::new(&mut data, stripes))?
                .wait()?;
            assert_eq!(seen.begun.get(), OPERATIONS, "get");
            lock.unlock()?;
        }
        world.barrier()
    });
}
