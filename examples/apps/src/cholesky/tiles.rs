//! The tiles that a rank has, and how finished ones come to it.
//!
//! Tile (row, column) of the lower half is made by the owner of its column. The owners of the
//! columns right of it, as far as its row, read it. They stand in a ring of ranks, at distances
//! 1, 2, ... from the maker, and form a binary tree, in which each passes the tile on.
//!
//! ```text
//!   distance     0              children of distance d: 2 d + 1, 2 d + 2
//!              ╱   ╲            `readers(tile)` distances, the maker not counted
//!            1       2
//!           ╱ ╲     ╱ ╲         the rank that needs the tile first has distance 1
//!          3   4   5   6
//! ```
//! A rank cannot know which tile comes next, nor from which parent. It takes what comes, keeps it,
//! and passes it on; until it has what it needs.

use flagpost::{Budget, Error, Link, Rank, Request, Rma, Status, Tag, TagFilter, Window};

use crate::{Variant, Wrong, product, sum, take};

/// How long a rank waits for room before it makes room itself: by far longer than a put takes.
const LONG: Budget = Budget::microseconds(1_000);

/// A tile of the lower half.
#[derive(Copy, Clone, Debug)]
pub struct Tile {
    /// Tiles above it in the matrix.
    pub row: u32,
    /// Tiles to its left.
    pub column: u32,
}

impl Tile {
    /// Its number, row by row: its tag.
    pub const fn number(self) -> usize {
        let (row, column) = (self.row as usize, self.column as usize);
        row * (row + 1) / 2 + column
    }

    /// The one with this number.
    fn of(number: u32) -> Self {
        let mut row = 0;
        while (row + 1) * (row + 2) / 2 <= number {
            row += 1;
        }
        let column = number - row * (row + 1) / 2;
        Self { row, column }
    }
}

/// How a matrix of tiles is dealt out: by columns, cyclically.
#[derive(Copy, Clone, Debug)]
pub struct Shape {
    /// Elements along each side of a tile.
    pub side: usize,
    /// Tiles along each side of the matrix.
    pub tiles: u32,
    /// How many ranks there are.
    pub ranks: u16,
}

impl Shape {
    /// Tiles of the lower half.
    pub const fn count(&self) -> usize {
        let tiles = self.tiles as usize;
        tiles.saturating_mul(tiles.saturating_add(1)) / 2
    }

    /// Elements of a tile.
    pub const fn area(&self) -> usize {
        self.side.saturating_mul(self.side)
    }

    /// Elements of the memory of [`Tiles`].
    pub fn memory(&self) -> usize {
        let tiles = product([self.count(), self.area().saturating_add(1)]);
        sum([tiles, self.ranks.into()])
    }

    /// Elements of the window: a place for each tile, or for messages one for each sender.
    pub fn window_len(&self, variant: Variant) -> usize {
        let places = match variant {
            Variant::Messages => self.ranks.into(),
            _ => self.count(),
        };
        product([places, self.area()])
    }

    /// The rank that makes this column.
    pub fn maker(&self, column: u32) -> Rank {
        Rank::new((column % u32::from(self.ranks)) as u16)
    }

    /// How many ranks other than its maker read a tile.
    pub fn readers(&self, tile: Tile) -> u16 {
        (tile.row - tile.column).min(u32::from(self.ranks) - 1) as u16
    }

    /// How far a rank is from a column's maker, round the ring.
    pub fn distance(&self, rank: Rank, column: u32) -> u16 {
        rank.ahead(self.ranks - self.maker(column).get(), self.ranks)
            .get()
    }

    /// The rank at this distance.
    pub fn at(&self, distance: u16, column: u32) -> Rank {
        self.maker(column).ahead(distance, self.ranks)
    }

    /// All tiles of a column, from the diagonal down.
    pub fn column(&self, column: u32) -> impl Iterator<Item = Tile> + use<> {
        (column..self.tiles).map(move |row| Tile { row, column })
    }

    /// True if this rank makes or reads the tile.
    pub fn has(&self, rank: Rank, tile: Tile) -> bool {
        self.distance(rank, tile.column) <= self.readers(tile)
    }
}

/// The tiles of a rank.
pub struct Tiles<'a, 'w, L: Link> {
    /// How the matrix is dealt out.
    pub shape: Shape,
    /// This rank.
    pub me: Rank,
    variant: Variant,
    /// Where tiles come in.
    pub window: &'a Window<'w, f64, L>,
    /// Any source, any tag: for what comes to any place.
    any: Request<'a, L>,
    /// All tiles of the lower half, as far as they are here.
    data: &'a mut [f64],
    /// Their numbers, in the order in which they have come; and how many they are.
    order: &'a mut [u32],
    come: usize,
    /// How many of these have been passed on.
    passed: usize,
    /// For each tile: is it here?
    here: &'a mut [u32],
    /// For each rank: is a message of this rank on its way there? Then its mailbox is in use.
    sent: &'a mut [u32],
}

impl<'a, 'w, L: Link> Tiles<'a, 'w, L> {
    /// None yet.
    pub fn new(
        window: &'a Window<'w, f64, L>,
        variant: Variant,
        shape: Shape,
        memory: &mut &'a mut [f64],
    ) -> Result<Self, Wrong> {
        let data = take(memory, shape.count() * shape.area())?;
        let lists = flagpost::bytemuck::cast_slice_mut(take(memory, shape.count())?);
        let (order, here) = lists.split_at_mut(shape.count());
        let sent = flagpost::bytemuck::cast_slice_mut(take(memory, shape.ranks.into())?);
        here.fill(0);
        sent.fill(0);
        Ok(Self {
            shape,
            me: window.world().rank(),
            variant,
            window,
            any: window.expect(0..window.len(), TagFilter::Any)?,
            data,
            order,
            come: 0,
            passed: 0,
            here,
            sent,
        })
    }

    /// A tile that is here.
    pub fn get(&self, tile: Tile) -> &[f64] {
        let at = tile.number() * self.shape.area();
        &self.data[at..at + self.shape.area()]
    }

    /// Keeps a tile that this rank has made.
    pub fn keep(&mut self, tile: Tile, data: &[f64]) {
        self.place(tile).copy_from_slice(data);
    }

    /// Takes a tile out of the window, where an epoch has brought it.
    pub fn take(&mut self, tile: Tile) -> Result<(), Wrong> {
        self.copy_out(tile, tile.number())
    }

    /// The place of a tile, which is here from now on.
    fn place(&mut self, tile: Tile) -> &mut [f64] {
        let at = tile.number() * self.shape.area();
        self.here[tile.number()] = 1;
        &mut self.data[at..at + self.shape.area()]
    }

    /// Copies a tile out of a place in the window.
    fn copy_out(&mut self, tile: Tile, place: usize) -> Result<(), Wrong> {
        let (window, at) = (self.window, place * self.shape.area());
        Ok(window.local().copy_out(at, self.place(tile))?)
    }

    /// Puts a tile to its place on `to`, in an epoch.
    pub fn put(&self, epoch: &impl Rma<'w, f64, L>, to: Rank, tile: Tile) -> Result<(), Wrong>
    where
        L: 'w,
    {
        Ok(epoch.put(to, tile.number() * self.shape.area(), self.get(tile))?)
    }

    // ---- Tiles that come in any order: by messages, or by notified puts ----

    /// Waits until a tile is here, and passes on what comes meanwhile.
    pub fn fetch(&mut self, tile: Tile) -> Result<(), Wrong> {
        while self.here[tile.number()] == 0 {
            self.receive()?;
            self.pass_on()?;
        }
        Ok(())
    }

    /// Passes on what has come: other ranks need it while this one computes.
    pub fn progress(&mut self) -> Result<(), Wrong> {
        match self.variant {
            Variant::Messages | Variant::Notified => {
                while self.poll()? {}
                self.pass_on()
            }
            _ => Ok(()),
        }
    }

    /// Sends a tile that this rank has kept on its way.
    pub fn share(&mut self, tile: Tile) -> Result<(), Wrong> {
        self.note(tile);
        self.pass_on()
    }

    /// Waits until all tiles of this rank have come, and its messages are taken.
    pub fn finish(&mut self) -> Result<(), Wrong> {
        let (shape, me) = (self.shape, self.me);
        let columns = 0..shape.tiles;
        let all = columns.flat_map(|column| shape.column(column));
        let expected = all.filter(|&tile| shape.has(me, tile)).count();
        while self.come < expected || self.sent.contains(&1) {
            self.receive()?;
            self.pass_on()?;
        }
        Ok(())
    }

    fn note(&mut self, tile: Tile) {
        self.order[self.come] = tile.number() as u32;
        self.come += 1;
    }

    /// Sends what has come to this rank's children.
    fn pass_on(&mut self) -> Result<(), Wrong> {
        while self.passed < self.come {
            let tile = Tile::of(self.order[self.passed]);
            self.passed += 1;
            let child = 2 * self.shape.distance(self.me, tile.column) + 1;
            for distance in child..=(child + 1).min(self.shape.readers(tile)) {
                self.send(self.shape.at(distance, tile.column), tile)?;
            }
        }
        Ok(())
    }

    /// Sends a tile. If there is no room for long, its reader may be waiting for room here: then
    /// what has come is taken.
    fn send(&mut self, to: Rank, tile: Tile) -> Result<(), Wrong> {
        let place = match self.variant {
            Variant::Messages => {
                while self.sent[to.index()] == 1 {
                    self.receive()?;
                }
                self.sent[to.index()] = 1;
                self.me.index()
            }
            _ => tile.number(),
        };
        let at = place * self.shape.area();
        let tag = Tag(tile.number() as u32);
        let (window, world) = (self.window, self.window.world());
        loop {
            let put = || window.put_notify(to, at, self.get(tile), tag);
            match world.within(LONG, put) {
                Err(Error::Timeout(_)) => while self.poll()? {},
                other => return Ok(other?),
            }
        }
    }

    /// Waits for whatever comes next.
    fn receive(&mut self) -> Result<(), Wrong> {
        if !self.any.is_started() {
            self.any.start()?;
        }
        let status = self.any.wait()?;
        self.accept(status)
    }

    /// Takes what has come, if anything has.
    fn poll(&mut self) -> Result<bool, Wrong> {
        if !self.any.is_started() {
            self.any.start()?;
        }
        let Some(status) = self.any.test()? else {
            return Ok(false);
        };
        self.accept(status)?;
        Ok(true)
    }

    /// Keeps the tile that has come. A message's mailbox is free then: its sender is told.
    fn accept(&mut self, Status { source, tag, .. }: Status) -> Result<(), Wrong> {
        let free = Tag(self.shape.count() as u32);
        if tag == free {
            self.sent[source.index()] = 0;
            return Ok(());
        }
        let tile = Tile::of(tag.0);
        match self.variant {
            Variant::Messages => {
                self.copy_out(tile, source.index())?;
                self.window.notify(source, free)?;
            }
            _ => self.take(tile)?,
        }
        self.note(tile);
        Ok(())
    }
}
