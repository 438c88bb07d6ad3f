//! What a factorization does with tiles: square blocks of a matrix, row by row in memory.
//!
//! The names are LAPACK's. Each element is made by subtractions in the order of the columns, one by
//! one. So the result has the same bits as without tiles.
//!
//! | kernel | makes | flop, about |
//! |---|---|---|
//! | [`gemm`] | C - A Bᵀ | 2 b³ |
//! | [`syrk`] | C - A Aᵀ, the lower half | b³ |
//! | [`trsm`] | X with X Lᵀ = A | b³ |
//! | [`potrf`] | L with L Lᵀ = A, the lower half | b³ / 3 |

/// Element (row, column) of a tile less the products of the rows `a` and `b`.
fn less_products(element: f64, a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).fold(element, |rest, (a, b)| rest - a * b)
}

/// C := C - A Bᵀ.
pub fn gemm(c: &mut [f64], a: &[f64], b: &[f64], side: usize) {
    for (c, a) in c.chunks_exact_mut(side).zip(a.chunks_exact(side)) {
        for (element, b) in c.iter_mut().zip(b.chunks_exact(side)) {
            *element = less_products(*element, a, b);
        }
    }
}

/// C := C - A Aᵀ, on and below the diagonal.
pub fn syrk(c: &mut [f64], a: &[f64], side: usize) {
    for (row, c) in c.chunks_exact_mut(side).enumerate() {
        let of_row = &a[row * side..(row + 1) * side];
        for (element, of_column) in c[..=row].iter_mut().zip(a.chunks_exact(side)) {
            *element = less_products(*element, of_row, of_column);
        }
    }
}

/// The row x with x Lᵀ = `row`, as far as `l` has rows.
fn solve(row: &mut [f64], l: &[f64], side: usize) {
    for (column, l) in l.chunks_exact(side).enumerate() {
        let (before, rest) = row.split_at_mut(column);
        rest[0] = less_products(rest[0], before, l) / l[column];
    }
}

/// A := X with X Lᵀ = A. Of `l` the lower half counts.
pub fn trsm(a: &mut [f64], l: &[f64], side: usize) {
    for row in a.chunks_exact_mut(side) {
        solve(row, l, side);
    }
}

/// A := L with L Lᵀ = A, on and below the diagonal.
pub fn potrf(a: &mut [f64], side: usize) {
    for row in 0..side {
        let (above, from) = a.split_at_mut(row * side);
        solve(from, above, side);
        let (before, rest) = from.split_at_mut(row);
        rest[0] = root(less_products(rest[0], before, before));
    }
}

/// The square root of a number of ordinary size: Newton's iteration. `core` has none.
pub fn root(square: f64) -> f64 {
    // Half the exponent: at most 7 % off. Each turn doubles the bits that are right.
    let mut root = f64::from_bits((square.to_bits() >> 1) + (1023 << 51));
    for _ in 0..5 {
        root = (root + square / root) * 0.5;
    }
    root
}
