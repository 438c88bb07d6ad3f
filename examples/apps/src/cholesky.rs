//! A Cholesky factorization by tiles: a symmetric matrix A becomes L with L Lᵀ = A.
//!
//! The columns of tiles are dealt out to ranks, cyclically. Each rank makes its own tiles one after
//! the other, looking to the left: a tile takes what stands left of it in its own row, and in the
//! row of its column's diagonal tile. A finished tile goes to all ranks that read it. So the order
//! in which tiles come to a rank depends on the work of all others.
//!
//! ```text
//!   column     0   1   2   3        L(3,2) = (A(3,2) - L(3,0) L(2,0)ᵀ - L(3,1) L(2,1)ᵀ) / L(2,2)ᵀ
//!   rank       0   1   0   1
//!            ┌───┐                  kernels: module `tile`
//!            │ ■ │                    on the diagonal   syrk for each tile to the left, then potrf
//!            ├───┼───┐                below it          gemm for each tile to the left, then trsm
//!            │   │ ■ │
//!            ├───┼───┼───┐
//!            │ ► │ ► │ ■ │ ◄ row 2
//!            ├───┼───┼───┼───┐
//!            │ ► │ ► │ ? │ ■ │ ◄ row 3
//!            └───┴───┴───┴───┘
//! ```
//! | variant | a tile comes to its readers |
//! |---|---|
//! | `messages` | down a tree, by way of a mailbox for each sender |
//! | `fence` | with its column, in a fence of all ranks |
//! | `pscw` | with its column, in an epoch of its maker and the column's readers |
//! | `notified` | down the same tree into its own place; its tag is its number |
//!
//! Messages and notified puts are waited for by one request for any source and any tag. Work: two
//! floating-point operations for each product, one for each division or root. The serial run knows
//! no tiles, and finds the same bits.
//!
//! Source: [NA] VI-C and its Fig. 5, where tiles have 32 x 32 elements.
//!
//! [NA]: flagpost#sources

pub mod tiles;

use flagpost::{Link, Rank, Rma, World, epoch::Assert};

use self::tiles::{Shape, Tile, Tiles};
use crate::tile::{gemm, potrf, root, syrk, trsm};
use crate::{
    Compute, Job, Outcome, Program, Size, Variant, Wrong, check, product, sum, take, timed,
};

/// Readers of a column in an epoch, at most.
const MOST: usize = 1024;

/// Its row of the table.
pub fn program<L: Link>() -> Program<L> {
    Program {
        name: "cholesky",
        unit: "flop",
        variants: &Variant::USUAL,
        published: Some((1.95, "[NA] Fig. 5")),
        small: Size { side: 4, steps: 7 },
        memory: |ranks, size| {
            let shape = shape(ranks, size);
            let rows = rows(shape);
            sum([shape.memory(), shape.area(), product([rows, rows])])
        },
        run,
    }
}

fn shape(ranks: u16, size: Size) -> Shape {
    Shape {
        side: size.side.max(1) as usize,
        tiles: size.steps,
        ranks,
    }
}

/// Rows of the matrix.
const fn rows(shape: Shape) -> usize {
    shape.side.saturating_mul(shape.tiles as usize)
}

/// Side: elements along each side of a tile. Steps: tiles along each side of the matrix.
fn run<L: Link>(world: &World<'_, L>, job: Job<'_>) -> Result<Outcome, Wrong> {
    let (variant, size, mut memory, compute) = (job.variant, job.size, job.memory, job.compute);
    let shape = shape(world.size(), size);
    let len = shape.window_len(variant);
    let window = world.allocate::<f64>(len)?;
    // Tiles are long: stored in their places, they cost the target no copy out of its ring.
    window.set_inline(false);
    let mut tiles = Tiles::new(&window, variant, shape, &mut memory)?;
    let work = &mut Work {
        tile: take(&mut memory, shape.area())?,
        compute,
    };
    let outcome = timed(world, || match variant {
        Variant::Fence => by_fences(&mut tiles, work),
        Variant::Pscw => by_epochs(&mut tiles, work),
        _ => in_any_order(&mut tiles, work),
    })?;
    compare(&tiles, &mut memory)?;
    let work = (0..rows(shape) as u64)
        .map(|column| (rows(shape) as u64 - column) * (2 * column + 1))
        .sum();
    Ok(Outcome { work, ..outcome })
}

/// The tile that a rank makes.
struct Work<'a> {
    tile: &'a mut [f64],
    compute: Compute<'a>,
}

/// Makes one tile, of tiles that are here or come.
fn make<L: Link>(
    tiles: &mut Tiles<'_, '_, L>,
    tile: Tile,
    work: &mut Work<'_>,
) -> Result<(), Wrong> {
    let Tile { row, column } = tile;
    let side = tiles.shape.side;
    let (rows, cube) = (rows(tiles.shape), (side * side * side) as u64);
    for (at, element) in work.tile.iter_mut().enumerate() {
        let (row, column) = place(tile, at, side);
        *element = first(row, column, rows);
    }
    for left in 0..column {
        let [ours, diagonals] = [row, column].map(|row| Tile { row, column: left });
        tiles.fetch(ours)?;
        tiles.fetch(diagonals)?;
        if row == column {
            syrk(work.tile, tiles.get(ours), side);
            (work.compute)(cube);
        } else {
            gemm(work.tile, tiles.get(ours), tiles.get(diagonals), side);
            (work.compute)(2 * cube);
        }
        tiles.progress()?;
    }
    if row == column {
        potrf(work.tile, side);
        (work.compute)(cube / 3);
    } else {
        let row = column;
        trsm(work.tile, tiles.get(Tile { row, column }), side);
        (work.compute)(cube);
    }
    tiles.keep(tile, work.tile);
    Ok(())
}

/// All of this rank's tiles, each as soon as those have come that it takes.
fn in_any_order<L: Link>(tiles: &mut Tiles<'_, '_, L>, work: &mut Work<'_>) -> Result<(), Wrong> {
    let shape = tiles.shape;
    for column in 0..shape.tiles {
        if shape.maker(column) == tiles.me {
            for tile in shape.column(column) {
                make(tiles, tile, work)?;
                tiles.share(tile)?;
            }
        }
    }
    tiles.finish()
}

/// Column by column, with a fence after each.
fn by_fences<L: Link>(tiles: &mut Tiles<'_, '_, L>, work: &mut Work<'_>) -> Result<(), Wrong> {
    let (shape, window) = (tiles.shape, tiles.window);
    let mut fence = window.fence(Assert::empty())?;
    for column in 0..shape.tiles {
        make_column(tiles, column, &fence, work)?;
        fence = fence.fence(Assert::empty())?;
        take_column(tiles, column)?;
    }
    Ok(fence.end()?)
}

/// Column by column, in an epoch of the ranks that make or read it.
fn by_epochs<L: Link>(tiles: &mut Tiles<'_, '_, L>, work: &mut Work<'_>) -> Result<(), Wrong> {
    let (shape, window) = (tiles.shape, tiles.window);
    let mut group = [Rank::new(0); MOST];
    for column in 0..shape.tiles {
        let last = Tile {
            row: shape.tiles - 1,
            column,
        };
        let readers = shape.readers(last);
        let maker = shape.maker(column);
        if maker == tiles.me {
            let group = group.get_mut(..readers.into());
            let group = group.ok_or(Wrong::Variant(Variant::Pscw))?;
            for (rank, distance) in group.iter_mut().zip(1..) {
                *rank = shape.at(distance, column);
            }
            group.sort_unstable();
            let access = window.start(&*group)?;
            make_column(tiles, column, &access, work)?;
            access.complete()?;
        } else if shape.has(tiles.me, last) {
            window.post([maker])?.wait()?;
            take_column(tiles, column)?;
        }
    }
    Ok(())
}

/// If the column is this rank's: makes its tiles, and puts each to its readers.
fn make_column<'w, L: Link + 'w>(
    tiles: &mut Tiles<'_, 'w, L>,
    column: u32,
    epoch: &impl Rma<'w, f64, L>,
    work: &mut Work<'_>,
) -> Result<(), Wrong> {
    let shape = tiles.shape;
    if shape.maker(column) == tiles.me {
        for tile in shape.column(column) {
            make(tiles, tile, work)?;
            for distance in 1..=shape.readers(tile) {
                tiles.put(epoch, shape.at(distance, column), tile)?;
            }
        }
    }
    Ok(())
}

/// Takes the tiles of another rank's column that this one reads.
fn take_column<L: Link>(tiles: &mut Tiles<'_, '_, L>, column: u32) -> Result<(), Wrong> {
    let (shape, me) = (tiles.shape, tiles.me);
    if shape.maker(column) != me {
        for tile in shape.column(column).filter(|&tile| shape.has(me, tile)) {
            tiles.take(tile)?;
        }
    }
    Ok(())
}

/// What the matrix holds on and below the diagonal: anything, with much on the diagonal.
fn first(row: usize, column: usize, rows: usize) -> f64 {
    let (upper, lower) = (row.min(column), row.max(column));
    let any = ((lower * rows + upper) as u32).wrapping_mul(0x9E37_79B9) >> 16;
    let more = if row == column { rows } else { 0 };
    f64::from(any) / f64::from(1 << 16) + more as f64
}

/// The factor of the whole matrix, row by row, without tiles or communication.
fn serial<'a>(rows: usize, memory: &mut &'a mut [f64]) -> Result<&'a [f64], Wrong> {
    let factor = take(memory, rows * rows)?;
    for row in 0..rows {
        for column in 0..=row {
            let mut element = first(row, column, rows);
            for left in 0..column {
                element -= factor[row * rows + left] * factor[column * rows + left];
            }
            factor[row * rows + column] = match row == column {
                true => root(element),
                false => element / factor[column * rows + column],
            };
        }
    }
    Ok(factor)
}

/// This rank's tiles have what the serial run finds, and with it L Lᵀ is A.
fn compare<L: Link>(tiles: &Tiles<'_, '_, L>, memory: &mut &mut [f64]) -> Result<(), Wrong> {
    let (shape, rows) = (tiles.shape, rows(tiles.shape));
    let factor = serial(rows, memory)?;
    let of_factor = |row: usize, len: usize| &factor[row * rows..row * rows + len];
    let columns = 0..shape.tiles;
    for tile in columns.flat_map(|column| shape.column(column)) {
        if shape.maker(tile.column) != tiles.me {
            continue;
        }
        for (at, &value) in tiles.get(tile).iter().enumerate() {
            let (row, column) = place(tile, at, shape.side);
            if row < column {
                continue;
            }
            check("element of L", value, of_factor(row, rows)[column])?;
            let pairs = of_factor(row, column + 1)
                .iter()
                .zip(of_factor(column, column + 1));
            let found = pairs.map(|(a, b)| a * b).sum::<f64>();
            let expected = first(row, column, rows);
            if (found - expected).abs() > 1e-12 * rows as f64 * rows as f64 {
                return Err(Wrong::Value {
                    what: "element of L Lᵀ",
                    found,
                    expected,
                });
            }
        }
    }
    Ok(())
}

/// Row and column of an element of a tile in the whole matrix.
const fn place(tile: Tile, at: usize, side: usize) -> (usize, usize) {
    let (row, column) = (tile.row as usize, tile.column as usize);
    (row * side + at / side, column * side + at % side)
}
