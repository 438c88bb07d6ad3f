//! The kernel over the silicon bus, as an image for the SCC: what `cargo xtask ci` builds and links
//! to show that all of it can be had for such a core.
//!
//! It is not a program to run: an image needs start-up code that sets a stack and page tables first
//! (`flagpost_scc::silicon`). On other targets this is an empty program.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(not(target_os = "none"))]
fn main() {}

#[cfg(all(target_os = "none", target_arch = "x86"))]
mod image {
    use flagpost::{Config, Error, Rma as _, Session, Tag, World};
    use flagpost_hal::Topology;
    use flagpost_mapped::Mapped;
    use flagpost_scc::silicon::Silicon;
    use flagpost_scc::{Counter, Map, Mapping, Scc};

    /// Jumped to by start-up code, on a stack and with paging on.
    // SAFETY (`no_mangle`): the linker looks for this name, and nothing else bears it.
    #[unsafe(no_mangle)]
    extern "C" fn _start() -> ! {
        // SAFETY: what `Silicon::new` asks for is the start-up code's to bring about.
        let bus = unsafe { Silicon::new() };
        let scc = Scc::start(bus, Map::SCC, Mapping::default());
        let _ = ring(&scc);
        loop {
            scc.wait_for_ring();
        }
    }

    /// One notified put and one epoch, round the ring of all cores; then everybody is counted and
    /// rung.
    fn ring(scc: &Scc<Silicon>) -> Result<(), Error> {
        let mut words = [0; 512];
        let world = World::start(
            Mapped::start(*scc, Session::FIRST)?,
            &mut words,
            Config::default(),
        )?;
        let (me, size) = (world.rank(), world.size());
        let (left, right) = (me.prev(size), me.next(size));
        let window = world.allocate::<u64>(2)?;
        let mut arrived = window.expect(0..1, Tag(7))?;
        arrived.start()?;
        // No barrier: the window is new, and a notification waits for its request.
        window.put_notify(right, 0, &[scc.fpga().time()], Tag(7))?;
        arrived.wait()?;
        let exposure = window.post([left])?;
        let access = window.start([right])?;
        access.put(right, 1, &[u64::from(me.get())])?;
        access.complete()?;
        exposure.wait()?;
        if let Some(counter) = Counter::new(0) {
            scc.fpga().increment(counter);
        }
        scc.ring(scc.core());
        Ok(())
    }

    #[panic_handler]
    fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
        loop {
            core::hint::spin_loop();
        }
    }
}
