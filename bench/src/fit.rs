//! A straight line through measured points.

/// `base + slope * x`, and how well it fits.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Line {
    /// The value at 0.
    pub base: f64,
    /// By how much it grows per unit of x.
    pub slope: f64,
    /// The share of the points' variance that the line explains: 1 if it goes through all of them.
    pub r2: f64,
    /// The largest distance of a point from the line, in % of the point.
    pub worst: f64,
}

impl Line {
    /// The line with the least sum of squares of relative distances: so that small values count as
    /// much as large ones. Points without a value are taken as 1. One point gives a constant.
    pub fn fit(points: &[(f64, f64)]) -> Self {
        let weight = |y: f64| 1.0 / (y * y).max(1.0);
        let sum = |term: &dyn Fn(f64, f64) -> f64| -> f64 {
            points.iter().map(|&(x, y)| weight(y) * term(x, y)).sum()
        };
        let all = sum(&|_, _| 1.0);
        let (x_mean, y_mean) = (sum(&|x, _| x) / all, sum(&|_, y| y) / all);
        let spread = sum(&|x, _| (x - x_mean).powi(2));
        let slope = match spread > 0.0 {
            true => sum(&|x, y| (x - x_mean) * (y - y_mean)) / spread,
            false => 0.0,
        };
        let mut line = Self {
            base: y_mean - slope * x_mean,
            slope,
            r2: 1.0,
            worst: 0.0,
        };
        let mean = points.iter().map(|(_, y)| y).sum::<f64>() / points.len() as f64;
        let squares = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
            points.iter().map(|&(x, y)| of(x, y).powi(2)).sum()
        };
        let whole = squares(&|_, y| y - mean);
        if whole > 0.0 {
            line.r2 = 1.0 - squares(&|x, y| y - line.at(x)) / whole;
        }
        let off = |&(x, y): &(f64, f64)| 100.0 * (y - line.at(x)).abs() / y.max(1.0);
        line.worst = points.iter().map(off).fold(0.0, f64::max);
        line
    }

    /// The line's value.
    pub fn at(&self, x: f64) -> f64 {
        self.base + self.slope * x
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_of_a_line_give_that_line() {
        let line = Line::fit(&[(1.0, 5.0), (2.0, 7.0), (10.0, 23.0)]);
        assert!((line.base - 3.0).abs() < 1e-9 && (line.slope - 2.0).abs() < 1e-9);
        assert!((line.r2 - 1.0).abs() < 1e-9 && line.worst < 1e-9);
        assert_eq!(Line::fit(&[(4.0, 9.0)]).at(100.0), 9.0);
    }

    /// Twice as far off at a point twice as large counts as much.
    #[test]
    fn distances_are_relative() {
        let line = Line::fit(&[(0.0, 100.0), (0.0, 200.0)]);
        assert!((line.base - 120.0).abs() < 1e-9, "{line:?}");
        assert!((line.worst - 40.0).abs() < 1e-9, "{line:?}");
    }
}
