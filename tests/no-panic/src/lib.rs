//! Shows that no call into Flagpost can reach a panic.
//!
//! [`go`] calls everything, with arguments that the optimizer knows nothing about, over a machine of
//! which it knows nothing either. The panic handler calls a function that does not exist. After the
//! optimizer has removed what cannot happen, that function must not be asked for: `cargo xtask ci`
//! builds this and looks.
//!
//! Over load/store machines only. `flagpost_network` is left out: it is for hosts, and has a heap. Each growth of its vectors can
//! end in the allocator's handler, and each borrow of its `RefCell`s in a panic, both of which the optimizer has to leave
//! in. What the kernel does with a link's answers is the same over every link, and is looked at here. Left out as well are
//! `fmt::Display` and `fmt::Debug` of errors: nothing in the library formats.
#![no_std]

use flagpost::epoch::{Assert, Strategy};
use flagpost::notify::wait_any_count;
use flagpost::rma::{Block, Element, Gather, Integer, Layout, Operation, Scatter, wait_any};
use flagpost::{
    Budget, Compare, Config, Counter, Displacement, DynamicOptions, Error, Group, Link,
    MatchVector, MatchingList, Model, Notice, Options, Rank, Request, Rma, Signal, Source, Tag,
    TagFilter, Validation, VectorLink, Window, World, notify,
};
use flagpost_hal::{
    Address, Atomic, CachedMemory, Clock, Coherence, CoreId, Lines, MessageBuffer, NativeAtomics,
    Position, Relax, TestAndSet, Topology, UncachedMemory, Watch, WithSoftwareLock,
};
use flagpost_mapped::{Mapped, Ring};

// SAFETY: nobody links or calls these: the library is only looked at.
unsafe extern "C" {
    safe fn flagpost_can_panic() -> !;
    /// Some number that follows from anything.
    safe fn unknown(a: u32, b: u32) -> u64;
    /// Reads or changes `len` bytes at `start`.
    safe fn bytes(start: *const u8, len: usize, at: u32);
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    flagpost_can_panic()
}

/// A machine of which nothing is known.
struct Unknown;

impl UncachedMemory for Unknown {
    const PUBLISH: usize = 4;

    fn load_u8(&self, at: Address) -> u8 {
        unknown(at.offset, 0) as u8
    }

    fn store_u8(&self, at: Address, value: u8) {
        unknown(at.offset, value.into());
    }

    fn load_u32(&self, at: Address) -> u32 {
        unknown(at.offset, 1) as u32
    }

    fn store_u32(&self, at: Address, value: u32) {
        unknown(at.offset, value);
    }

    fn store_bytes(&self, at: Address, from: &[u8]) {
        bytes(from.as_ptr(), from.len(), at.offset);
    }
}

impl CachedMemory for Unknown {
    fn read(&self, at: Address, into: &mut [u8]) {
        bytes(into.as_ptr(), into.len(), at.offset);
    }

    fn write(&self, at: Address, from: &[u8]) {
        bytes(from.as_ptr(), from.len(), at.offset);
    }
}

// SAFETY: nothing runs.
unsafe impl Coherence for Unknown {
    const LINE: usize = 32;
    const INVALIDATE_WRITES_BACK: bool = false;

    fn write_back(&self, spans: &[Lines]) {
        for lines in spans {
            unknown(lines.start(), lines.end());
        }
    }

    fn invalidate(&self, spans: &[Lines]) {
        self.write_back(spans);
    }

    fn drain(&self) {
        unknown(0, 2);
    }

    fn acquire(&self) {
        unknown(0, 3);
    }
}

impl TestAndSet for Unknown {
    fn test_and_set(&self, of: CoreId) -> bool {
        unknown(of.get().into(), 4) != 0
    }

    fn clear(&self, of: CoreId) {
        unknown(of.get().into(), 5);
    }
}

impl MessageBuffer for Unknown {
    fn message_buffer_size(&self) -> u32 {
        unknown(0, 6) as u32
    }
}

impl Topology for Unknown {
    fn cores(&self) -> u16 {
        unknown(0, 7) as u16
    }

    fn core(&self) -> CoreId {
        CoreId::new(unknown(0, 8) as u16)
    }

    fn position(&self, core: CoreId) -> Position {
        let x = core.get();
        Position { x, y: x }
    }

    fn memory_size(&self) -> u32 {
        unknown(0, 9) as u32
    }
}

impl Clock for Unknown {
    fn cycles(&self) -> u64 {
        unknown(0, 10)
    }

    fn hertz(&self) -> u64 {
        unknown(0, 11)
    }
}

impl Relax for Unknown {
    fn relax(&self, watched: &[Watch]) {
        for watch in watched {
            unknown(watch.at.offset, watch.seen);
        }
    }
}

impl NativeAtomics for Unknown {
    fn atomic_u32(&self, at: Address, _: Atomic) -> u32 {
        unknown(at.offset, 14) as u32
    }
}

/// A number of which nothing is known.
fn any() -> u32 {
    unknown(0, 12) as u32
}

fn ring() -> Ring {
    let entries = any();
    match any() {
        0 => Ring::Pairs { entries },
        _ => Ring::Shared { entries },
    }
}

fn index() -> usize {
    unknown(0, 13) as usize
}

fn rank() -> Rank {
    Rank::new(any() as u16)
}

/// Every call of the library.
fn everything<L: VectorLink>(link: L, arena: &mut [u32]) -> Result<(), Error> {
    let config = Config {
        unexpected: any() as u16,
        ..Config::default()
    };
    let world = World::start(link, arena, config)?;
    world.barrier()?;
    let mut sum = 0_u64;
    world.allgather_with([unknown(0, 0); 3], |_, element| {
        sum = sum.wrapping_add(element[0])
    })?;
    let mut all = [0_u16; 9];
    world.allgather(any() as u16, &mut all)?;
    unknown(sum as u32, all[0].into());

    #[cfg(feature = "panics")]
    assert!(any() != 0);
    let ranks = [rank(), rank(), rank()];
    let group = world.group(&ranks)?;
    let words = world.allocate::<u64>(index())?;
    epochs(&words, &group)?;
    world.set_budget(Budget::microseconds(unknown(0, 15)));
    let (size, limits) = (world.size(), world.limits());
    unknown(
        rank().next(size).get().into(),
        rank().prev(size).get().into(),
    );
    unknown(limits.tag, limits.windows.into());
    passive(&words)?;
    fences(&words)?;
    let listed = world.allocate_with::<u64, MatchingList<'_>>(index(), any() as u16)?;
    epochs(&listed, &group)?;
    let published = world.allocate_with::<u64, MatchVector<'_>>(index(), ())?;
    epochs(&published, &group)?;
    notifications(&words)?;
    counted(&world)?;
    let odd = world.allocate::<[u8; 3]>(index())?;
    odd.put_notify(rank(), index(), &[[1, 2, 3]; 7], Tag(any()))?;
    odd.local().set(index(), [0; 3])?;
    let floats = world.allocate::<f32>(index())?;
    let access = floats.start(&group)?;
    anywhere(&access)?;
    access.complete()?;
    let bytes = world.allocate::<i8>(index())?;
    let access = bytes.start(&group)?;
    combined(&access)?;
    access.complete()?;
    collectives(&world)?;
    created(&world)?;
    dynamic(&world, &group)?;
    let empty = world.allocate::<()>(index())?;
    empty.local().get(index())?;
    Ok(())
}

fn counted<L: Link>(world: &World<'_, L>) -> Result<(), Error> {
    let mut window = world.allocate::<u64>(index())?;
    window.set_num_notify(any())?;
    window.set_num_notify(any())?;
    let events = world.events(any())?;
    let compare = match any() {
        0 => Compare::Eq,
        1 => Compare::Gt,
        _ => Compare::Le,
    };
    window.notify(rank(), Counter(any()))?;
    window.put_notify(rank(), index(), &[1; 9], Signal::set(any(), any()))?;
    window.notify(rank(), Signal::add(any(), any()))?;
    window.set_notify_value(any(), any())?;
    let mut value = window.notify_value(any())?;
    value ^= window.reset_notify_value(any())?;
    value ^= window.num_notify(rank())?;
    value ^= window.signal_fetch(any())?;
    value ^= window.signal_wait_until(index()..index(), any(), compare, any())?;
    if let Err(late) = events.post(rank(), any()) {
        if let Some(post) = late.handle {
            post.go_on()?;
        }
    }
    value ^= events.query(any())?;
    events.wait(any(), any())?;
    let bound = events.bind(&window, index()..index(), any())?;
    bound.put(rank(), index(), &[1; 9])?;
    bound.wait(any())?;
    window.put_event(rank(), index(), &[1; 9], &events, any())?;
    let mut requests = [
        window.expect_count(index()..index(), any(), any())?,
        window.expect_event(index()..index(), &events, any(), any())?,
        bound.expect(any())?,
    ];
    for request in &mut requests {
        request.start()?;
    }
    while let Some((done, counted)) = wait_any_count(&mut requests)? {
        unknown(done as u32, counted);
    }
    let [mut one, other, _] = requests;
    one.test()?;
    one.wait()?;
    one.cancel()?;
    other.free()?;
    unknown(value ^ bound.query()?, 0);
    if let Err(late) = events.free() {
        late.handle.free()?;
    }
    if let Err(late) = window.free() {
        late.handle.free()?;
    }
    Ok(())
}

fn collectives<L: Link>(world: &World<'_, L>) -> Result<(), Error> {
    let mut words = [any(); 9];
    world.broadcast(rank(), &mut words)?;
    world.reduce(rank(), &mut words, u32::wrapping_add)?;
    world.allreduce(&mut words, u32::wrapping_add)?;
    let from = words;
    world.alltoall(&from, &mut words)?;
    let mut bytes = [[any() as u8; 3]; 9];
    world.broadcast(rank(), &mut bytes)?;
    world.allreduce(&mut bytes, |one, other| [one[0], other[1], one[2]])?;
    world.allreduce(&mut [(); 5], |(), ()| ())?;
    unknown(words[0], bytes[0][0].into());
    Ok(())
}

fn created<L: Link>(world: &World<'_, L>) -> Result<(), Error> {
    let memory = world.reserve(index())?;
    let mut data = [0_u64; 9];
    memory.write(index(), &data)?;
    memory.read(index(), &mut data)?;
    let options = Options {
        strategy: any() as u16,
        model: match any() {
            0 => Model::Separate,
            _ => Model::Unified,
        },
    };
    let (range, unit) = (index()..index(), index());
    let listed = world.create_with::<u64, MatchingList<'_>>(&memory, range, unit, options)?;
    listed.set_inline(any() == 0);
    if let Err(late) = listed.free() {
        late.handle.free()?;
    }
    let window = world.create::<u64>(&memory, index()..index(), index())?;
    window.put_notify(rank(), index(), &data, Tag(any()))?;
    window.local().copy_in(index(), &data)?;
    let sizes = [
        window.len_of(rank())?,
        window.bytes_of(rank())?,
        window.unit_of(rank())?,
        window.len(),
    ];
    let peer = window.peer(rank())?;
    peer.set(index(), peer.get(index())?)?;
    unknown(window.kind() as u32, window.is_empty().into());
    if let Err(late) = window.free() {
        late.handle.free()?;
    }
    unknown(memory.is_empty().into(), memory.len() as u32);
    memory.release()?;
    unknown(sizes[0] as u32, data[0] as u32);
    Ok(())
}

fn dynamic<L: Link>(world: &World<'_, L>, group: &Group<'_>) -> Result<(), Error> {
    let options = DynamicOptions {
        regions: any() as u16,
        kept: any() as u16,
        validation: match any() {
            0 => Validation::Counter,
            _ => Validation::Invalidation,
        },
    };
    let published = world.dynamic_with::<MatchingList<'_>>(options, any() as u16)?;
    published.window().post(group)?.wait()?;
    published.window().start(group)?.complete()?;
    if let Err(late) = published.free() {
        late.handle.free()?;
    }
    let mut window = world.dynamic(options)?;
    window.set_num_notify(any())?;
    let memory = world.reserve(index())?;
    let here = window.attach(&memory)?;
    let there = Displacement::new(unknown(0, 14)).plus(any());
    let mut data = [0_u64; 9];
    window.write(there, &data)?;
    window.read(here.plus(any()), &mut data)?;
    let exposure = window.window().post(group)?;
    let access = window.window().start(group)?;
    window.put(&access, rank(), there, &data)?;
    window.get(&access, rank(), there, &mut data)?;
    access.complete()?;
    exposure.wait()?;
    window.detach(&memory)?;
    if let Err(late) = window.free() {
        late.handle.free()?;
    }
    unknown(data[0] as u32, here.get() as u32);
    Ok(())
}

fn epochs<'w, L: Link, S: Strategy<'w, L>>(
    window: &Window<'w, u64, L, S>,
    group: &Group<'_>,
) -> Result<(), Error> {
    let exposure = match window.post(group) {
        Ok(exposure) => exposure,
        Err(late) => late.handle.go_on()?,
    };
    let access = window.start(group)?;
    access.has_posted(rank())?;
    access.await_posts()?;
    let mut data = [0; 9];
    combined(&access)?;
    anywhere(&access)?;
    access.get(rank(), index(), &mut data)?;
    access.put(rank(), index(), &data)?;
    if let Err(late) = access.complete() {
        late.handle.go_on()?;
    }
    if let Err(open) = exposure.test() {
        open.wait()?;
    }
    window.local().copy_in(index(), &data)?;
    window.local().copy_out(index(), &mut data)?;
    unknown(data[0] as u32, 0);
    Ok(())
}

fn passive<L: Link>(window: &Window<'_, u64, L>) -> Result<(), Error> {
    for how in 0..any() {
        let locked = match how {
            0 => window.lock_shared(rank()),
            1 => window.lock_exclusive(rank()),
            2 => window.lock_queued(rank()),
            _ => window.lock_all(),
        };
        let lock = match locked {
            Ok(lock) => lock,
            Err(late) if any() == 0 => {
                late.handle.cancel()?;
                continue;
            }
            Err(late) => late.handle.go_on()?,
        };
        lock.put(rank(), index(), &[1])?;
        lock.flush(rank())?;
        lock.flush_all()?;
        lock.flush_local(rank())?;
        lock.flush_local_all()?;
        if let Err(late) = lock.unlock() {
            late.handle.go_on()?;
        }
    }
    window.sync()
}

fn fences<L: Link>(window: &Window<'_, u64, L>) -> Result<(), Error> {
    let assert = Assert::from_bits_retain(any() as u8);
    let epoch = match window.fence(assert) {
        Ok(epoch) => epoch,
        Err(late) => late.handle.go_on()?,
    };
    epoch.put(rank(), index(), &[1])?;
    if let Err(late) = epoch.fence(assert)?.end() {
        late.handle.go_on()?;
    }
    let origins = [rank()];
    let origins = window.world().group(&origins)?;
    let exposure = window.post_range(index()..index(), &origins)?;
    Ok(exposure.wait()?)
}

/// Everything that changes what is there.
fn combined<'w, T: Integer, L: Link + 'w>(access: &impl Rma<'w, T, L>) -> Result<(), Error> {
    let operations = [
        Operation::SUM,
        Operation::PROD,
        Operation::MIN,
        Operation::MAX,
        Operation::AND,
        Operation::OR,
        Operation::XOR,
        Operation::REPLACE,
        Operation::NO_OP,
    ];
    let mut words = [T::zeroed(); 9];
    for operation in operations {
        if let Err(late) = access.accumulate(rank(), index(), &words, operation) {
            match late.handle {
                Some(request) => request.wait()?,
                None => return Err(late.error),
            }
        }
    }
    let [any_operation, ..] = operations;
    let mut old = words;
    access.get_accumulate(rank(), index(), &words, any_operation, &mut old)?;
    let mut put = access.rput(rank(), index(), &words)?;
    while !put.test()? {}
    access.rget(rank(), index(), &mut words)?.wait()?;
    let data = [T::zeroed(); 5];
    let add = access.raccumulate(rank(), index(), &data, any_operation)?;
    let both = access.rget_accumulate(rank(), index(), &data, any_operation, &mut words)?;
    let mut requests = [add, both];
    while let Some(done) = wait_any(&mut requests)? {
        unknown(done as u32, requests[0].has_begun().into());
    }
    let fetched = match access.fetch_and_op(rank(), index(), data[0], any_operation) {
        Ok(fetched) => fetched,
        Err(late) => match late.handle {
            Some(fetch) => fetch.go_on()?,
            None => return Err(late.error),
        },
    };
    access.compare_and_swap(rank(), index(), fetched, data[0])?;
    Ok(())
}

/// Layouts of which nothing is known.
fn anywhere<'w, T: Element, L: Link + 'w>(access: &impl Rma<'w, T, L>) -> Result<(), Error> {
    let block = || Block {
        at: index(),
        len: index(),
    };
    let blocks = [block(), block(), block()];
    let layout = || match any() {
        0 => Layout::Contiguous { count: index() },
        1 => Layout::Vector {
            blocks: index(),
            block_len: index(),
            stride: index(),
        },
        2 => Layout::Indexed { blocks: &blocks },
        _ => Layout::Fields {
            records: index(),
            fields: &blocks,
        },
    };
    let (data, mut into) = ([T::zeroed(); 9], [T::zeroed(); 9]);
    let from = || Gather::new(&data, layout());
    access.put_layout(rank(), index(), layout(), from())?;
    access.get_layout(rank(), index(), layout(), Scatter::new(&mut into, layout()))?;
    access.accumulate_layout(rank(), index(), layout(), from(), Operation::SUM)?;
    let into = Scatter::new(&mut into, layout());
    let at = (rank(), index());
    access.get_accumulate_layout(at, layout(), from(), Operation::SUM, into)?;
    Ok(())
}

fn notifications<L: Link>(window: &Window<'_, u64, L>) -> Result<(), Error> {
    window.put_notify(rank(), index(), &[1; 2], Tag(any()))?;
    window.put_notify(rank(), index(), &[1; 20], Tag(any()))?;
    let range = index()..index();
    let mut one = window.expect(range.clone(), rank(), Tag(any()), any() as u16)?;
    let mut other = window.expect(range, Source::Any, TagFilter::Any, any() as u16)?;
    one.start()?;
    other.start()?;
    if other.test()?.is_none() {
        let status = one.wait()?;
        unknown(status.source.get().into(), status.tag.0);
    }
    let mut both = [one, other];
    both.iter_mut().try_for_each(Request::start)?;
    let complete = (notify::test_any(&mut both)?, notify::wait_any(&mut both)?);
    notify::wait_all(&mut both)?;
    for request in both {
        let status = request.status().or(complete.1.map(|(_, status)| status));
        unknown(
            request.is_started().into(),
            status.map_or(0, |status| status.tag.0),
        );
        unknown(complete.0.is_some().into(), 0);
        request.free()?;
    }
    if window.probe(Rank::new(any() as u16), Tag(any()))?.is_none() {
        unknown(window.discard_notifications()?, 0);
    }
    told(window, Tag(any()))?;
    told(window, Counter(any()))?;
    told(window, Signal::set(any(), any()))?;
    told(window, Signal::add(any(), any()))
}

/// All accesses that tell.
fn told<L: Link>(window: &Window<'_, u64, L>, notice: impl Into<Notice>) -> Result<(), Error> {
    let (notice, at, mut old) = (notice.into(), (rank(), index()), [0; 9]);
    let sum = Operation::SUM;
    window.notify(rank(), notice)?;
    if let Err(late) = window.put_notify(rank(), index(), &[1; 3], notice) {
        late.handle.map_or(Ok(()), |handle| handle.wait())?;
    }
    window.get_notify(rank(), index(), &mut old, notice)?;
    window.accumulate_notify(rank(), index(), &[1; 3], sum, notice)?;
    window.get_accumulate_notify(at, &[1; 9], sum, &mut old, notice)?;
    let former = window.fetch_and_op_notify(rank(), index(), 1, sum, notice)?;
    if let Err(late) = window.compare_and_swap_notify(rank(), index(), former, 1, notice) {
        late.handle.map_or(Ok(0), |handle| handle.go_on())?;
    }
    window
        .rput_notify(rank(), index(), &[1; 3], notice)?
        .wait()?;
    window
        .rget_notify(rank(), index(), &mut old, notice)?
        .wait()?;
    let request = window.raccumulate_notify(rank(), index(), &[1; 3], sum, notice)?;
    request.wait()?;
    let request = window.rget_accumulate_notify(at, &[1; 9], sum, &mut old, notice)?;
    Ok(request.wait()?)
}

/// The way in.
///
/// # Safety
/// `arena` is valid for `words` words, and nobody else's.
// SAFETY (`no_mangle`): nothing else in this library has the name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn go(arena: *mut u32, words: usize) -> bool {
    // SAFETY: the caller's promise.
    let arena = unsafe { core::slice::from_raw_parts_mut(arena, words) };
    if any() != 0 {
        return Mapped::start(Unknown, any()).is_ok_and(|link| everything(link, arena).is_ok());
    }
    if any() != 0 {
        let link = Mapped::start_native(Unknown, any(), Some(ring()));
        return link.is_ok_and(|link| everything(link, arena).is_ok());
    }
    match WithSoftwareLock::<_>::new(Unknown) {
        Some(machine) => {
            Mapped::start(machine, any()).is_ok_and(|link| everything(link, arena).is_ok())
        }
        None => false,
    }
}
