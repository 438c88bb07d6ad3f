//! What a figure is, before it is drawn: measured values, and words.

use anyhow::Result;

/// What a curve is about: its colour and marker.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Notified,
    Messages,
    Pscw,
    Fence,
    Third,
    Fourth,
    Bare,
}

/// How a curve is drawn.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Drawn {
    /// Points, joined.
    Line,
    /// The same everywhere, or a model: no points.
    Dashes,
    /// Points alone.
    Points,
}

pub(crate) struct Curve {
    pub(crate) label: String,
    pub(crate) kind: Kind,
    pub(crate) drawn: Drawn,
    pub(crate) points: Vec<(f64, f64)>,
}

impl Curve {
    pub(crate) fn line(kind: Kind, label: &str, points: Vec<(f64, f64)>) -> Self {
        Self {
            label: label.to_owned(),
            kind,
            drawn: Drawn::Line,
            points,
        }
    }

    pub(crate) fn drawn(self, drawn: Drawn) -> Self {
        Self { drawn, ..self }
    }
}

/// A published value.
pub(crate) struct Mark {
    pub(crate) kind: Kind,
    pub(crate) label: String,
    pub(crate) at: (f64, f64),
}

#[derive(Clone, Default)]
pub(crate) struct Axis {
    /// What it shows, with the unit.
    pub(crate) label: String,
    pub(crate) log: bool,
    /// None: what the values take.
    pub(crate) range: Option<(f64, f64)>,
    /// None: round numbers.
    pub(crate) marks: Vec<(f64, String)>,
}

impl Axis {
    pub(crate) fn linear(label: &str) -> Self {
        Self {
            label: label.to_owned(),
            ..Self::default()
        }
    }

    pub(crate) fn log(label: &str) -> Self {
        Self {
            log: true,
            ..Self::linear(label)
        }
    }

    /// With a mark at each of these numbers.
    pub(crate) fn marked(self, at: impl IntoIterator<Item = f64>) -> Self {
        let marks = at.into_iter().map(|at| (at, number(at))).collect();
        Self { marks, ..self }
    }

    /// With a name at each whole number, the first one at the top.
    pub(crate) fn named(names: &[&str]) -> Self {
        let rows = (1..=names.len()).rev().map(|row| row as f64);
        Self {
            range: Some((0.4, names.len() as f64 + 0.6)),
            marks: rows
                .zip(names.iter().map(|&name| name.to_owned()))
                .collect(),
            ..Self::default()
        }
    }

    /// With a mark at each of these sizes.
    pub(crate) fn sizes(self, at: &[usize]) -> Self {
        let text = |at: usize| match at {
            1024.. if at.is_multiple_of(1024) => format!("{} Ki", at / 1024),
            _ => at.to_string(),
        };
        let marks = at.iter().map(|&at| (at as f64, text(at))).collect();
        Self { marks, ..self }
    }

    /// A range that leaves a little room around the values; a linear one begins at 0.
    pub(crate) fn around(&self, values: &[f64]) -> (f64, f64) {
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        match self.log {
            true => {
                let room = (most / least).powf(0.05);
                (least / room, most * room)
            }
            false => (least.min(0.0), most * 1.05),
        }
    }

    /// Marks at round numbers.
    pub(crate) fn usual(&self, (from, to): (f64, f64)) -> Vec<(f64, String)> {
        let mut at = Vec::new();
        if self.log {
            let steps: &[f64] = match to / from {
                ..30.0 => &[1.0, 2.0, 5.0],
                ..1000.0 => &[1.0, 3.0],
                _ => &[1.0],
            };
            for power in -9..15 {
                at.extend(steps.iter().map(|step| round(step * 10f64.powi(power))));
            }
        } else {
            let step = [1.0, 2.0, 5.0]
                .iter()
                .flat_map(|step| (-9..15).map(move |power| step * 10f64.powi(power)));
            let step = step
                .filter(|step| (to - from) / step <= 7.0)
                .fold(f64::INFINITY, f64::min);
            let first = (from / step).ceil() as i64;
            at.extend((first..first + 8).map(|step_no| round(step_no as f64 * step)));
        }
        let inside = at.into_iter().filter(|at| (from..=to).contains(at));
        inside.map(|at| (at, number(at))).collect()
    }
}

/// Without what products of powers of ten leave.
fn round(value: f64) -> f64 {
    format!("{value:.9}").parse().unwrap_or(value)
}

/// A number with commas, and with decimals if it is small.
pub(crate) fn number(value: f64) -> String {
    let text = round(value).to_string();
    let (whole, rest) = text
        .split_once('.')
        .map_or((&text[..], None), |(w, r)| (w, Some(r)));
    let mut grouped = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) && whole.len() > 3 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    match rest {
        Some(rest) => format!("{grouped}.{rest}"),
        None => grouped,
    }
}

#[derive(Default)]
pub(crate) struct Figure {
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) curves: Vec<Curve>,
    pub(crate) published: Vec<Mark>,
    pub(crate) notes: Vec<String>,
    pub(crate) command: String,
    /// Names of curves one below the other, not beside their ends.
    pub(crate) listed: bool,
}

/// Gives the values of a run.
type Run = dyn Fn() -> Result<Vec<f64>> + Send + Sync;

/// One run of the simulator, and about how many milliseconds it takes.
pub(crate) struct Task {
    pub(crate) cost: u64,
    pub(crate) run: Box<Run>,
}

impl Task {
    pub(crate) fn new(
        cost: u64,
        run: impl Fn() -> Result<Vec<f64>> + Send + Sync + 'static,
    ) -> Self {
        Self {
            cost: cost.max(1),
            run: Box::new(run),
        }
    }
}

/// Makes a figure of the values of all tasks, in their order.
pub(crate) type Draw = dyn Fn(&[Vec<f64>]) -> Figure;

/// What is measured for a figure, and how that becomes one.
pub(crate) struct Plan {
    pub(crate) name: &'static str,
    pub(crate) tasks: Vec<Task>,
    pub(crate) figure: Box<Draw>,
}
