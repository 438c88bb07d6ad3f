//! The discrete Fourier transform of a line of complex numbers, by Cooley and Tukey's radix 2.
//!
//! A number is two neighbouring elements: its real and its imaginary part. A line has a power of
//! two of them. The line is put into the order of reversed bits; then pairs, fours, eights, ...
//! are made of their halves.

use crate::tile::root;

/// Fills the table for lines of `turns.len()` numbers: exp(-2 π i k / len), k below len / 2.
/// A quarter of the circle is halved again and again; so each angle is a sum of known ones.
pub fn turns(turns: &mut [f64]) {
    let len = turns.len();
    let [mut cosine, mut sine] = [0.0, -1.0];
    if len > 1 {
        turns[..2].copy_from_slice(&[1.0, 0.0]);
    }
    let mut step = len / 4;
    while step > 0 {
        for k in (0..len / 2).step_by(2 * step) {
            let turned = product([turns[2 * k], turns[2 * k + 1]], [cosine, sine]);
            turns[2 * (k + step)..][..2].copy_from_slice(&turned);
        }
        let half = root((1.0 + cosine) * 0.5);
        [cosine, sine] = [half, sine / (2.0 * half)];
        step /= 2;
    }
}

/// The product of two complex numbers.
fn product([a, b]: [f64; 2], [c, d]: [f64; 2]) -> [f64; 2] {
    [a * c - b * d, a * d + b * c]
}

/// Transforms a line in its place, with the table for lines of its length.
pub fn transform(line: &mut [f64], turns: &[f64]) {
    let len = line.len() / 2;
    reverse(line, len);
    let mut half = 1;
    while half < len {
        for start in (0..len).step_by(2 * half) {
            for k in 0..half {
                let [lower, upper] = [start + k, start + k + half].map(|number| 2 * number);
                let turn = 2 * k * (len / (2 * half));
                let turned = product(
                    [line[upper], line[upper + 1]],
                    [turns[turn], turns[turn + 1]],
                );
                for (part, turned) in turned.into_iter().enumerate() {
                    let value = line[lower + part];
                    line[lower + part] = value + turned;
                    line[upper + part] = value - turned;
                }
            }
        }
        half *= 2;
    }
}

/// Numbers whose places have opposite bits change places.
fn reverse(line: &mut [f64], len: usize) {
    let bits = len.trailing_zeros();
    for place in 0..len {
        let other = place.reverse_bits() >> (usize::BITS - bits).min(usize::BITS - 1);
        if place < other {
            line.swap(2 * place, 2 * other);
            line.swap(2 * place + 1, 2 * other + 1);
        }
    }
}

/// Transforms the line of the numbers `start`, `start + stride`, ... of `data`, by way of `line`,
/// which is as long.
pub fn along(data: &mut [f64], start: usize, stride: usize, line: &mut [f64], turns: &[f64]) {
    let places = |nth: usize| 2 * (start + nth * stride)..2 * (start + nth * stride) + 2;
    for (nth, number) in line.chunks_exact_mut(2).enumerate() {
        number.copy_from_slice(&data[places(nth)]);
    }
    transform(line, turns);
    for (nth, number) in line.chunks_exact(2).enumerate() {
        data[places(nth)].copy_from_slice(number);
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::{f64::consts::TAU, vec, vec::Vec};

    use super::*;

    #[test]
    fn a_transform_is_the_sum_that_defines_it() {
        for len in [1, 2, 4, 8, 64, 256] {
            let mut table = vec![0.0; len];
            turns(&mut table);
            let line: Vec<f64> = (0..2 * len).map(|n| ((n * n) % 7) as f64 - 3.0).collect();
            let mut found = line.clone();
            transform(&mut found, &table);
            for k in 0..len {
                let mut sum = [0.0, 0.0];
                for n in 0..len {
                    let angle = -TAU * ((k * n) % len) as f64 / len as f64;
                    let turned =
                        product([line[2 * n], line[2 * n + 1]], [angle.cos(), angle.sin()]);
                    sum = [sum[0] + turned[0], sum[1] + turned[1]];
                }
                for part in 0..2 {
                    assert!((sum[part] - found[2 * k + part]).abs() < 1e-11 * len as f64);
                }
            }
        }
    }
}
