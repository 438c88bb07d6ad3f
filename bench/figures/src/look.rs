//! The look of all figures: colours, markers, axes, and where words stand.
//!
//! A figure is a title that says what it shows, a plot, the names of its curves beside their ends,
//! published values as hollow markers, notes on them, and the command that prints the numbers. All
//! of it is drawn twice as large as it is shown, so that lines fall between pixels, too. Nothing
//! depends on the host: the fonts are the reader's, and places of words come from their length.
//!
//! | kind | colour (Okabe and Ito: told apart by colour-blind readers) | marker |
//! |---|---|---|
//! | notified | blue | circle |
//! | messages | vermilion | diamond |
//! | PSCW | orange | square |
//! | fence | green | triangle |
//! | others | purple, sky, black | triangle on its tip, plus, cross |

use anyhow::Result;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::figure::{Axis, Curve, Drawn, Figure, Kind};

/// Width in pixels, as shown.
const WIDTH: i32 = 720;
/// What is drawn per pixel shown.
const SCALE: i32 = 2;
/// Height of a plot.
const PLOT: i32 = 330;
/// Room at the left edge, and at the right one of the plot, for names of curves.
const MARGIN: i32 = 20;
const NAMES: i32 = 176;
/// Heights of lines of the title, and of other words.
const TITLE_LINE: i32 = 24;
const LINE: i32 = 16;

/// Sizes of letters.
const TITLE: f64 = 18.0;
const WORDS: f64 = 13.0;
const SMALL: f64 = 12.0;
const COMMAND: f64 = 11.0;

const INK: RGBColor = RGBColor(34, 34, 34);
const GREY: RGBColor = RGBColor(96, 96, 96);
const GRID: RGBColor = RGBColor(226, 226, 226);
const PAPER: RGBColor = RGBColor(253, 253, 253);

/// Half of the size of a marker.
const MARKER: i32 = 4;

impl Kind {
    const fn colour(self) -> RGBColor {
        match self {
            Self::Notified => RGBColor(0, 114, 178),
            Self::Messages => RGBColor(213, 94, 0),
            Self::Pscw => RGBColor(230, 159, 0),
            Self::Fence => RGBColor(0, 158, 115),
            Self::Third => RGBColor(204, 121, 167),
            Self::Fourth => RGBColor(86, 180, 233),
            Self::Bare => RGBColor(0, 0, 0),
        }
    }

    /// The corners of the marker around its middle, in [`MARKER`]s; none for a circle.
    const fn corners(self) -> &'static [(f64, f64)] {
        match self {
            Self::Notified => &[],
            Self::Messages => &[(0.0, -1.4), (1.4, 0.0), (0.0, 1.4), (-1.4, 0.0)],
            Self::Pscw => &[(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)],
            Self::Fence => &[(0.0, -1.3), (1.3, 1.0), (-1.3, 1.0)],
            Self::Third => &[(0.0, 1.3), (1.3, -1.0), (-1.3, -1.0)],
            Self::Fourth => &[
                (-0.4, -1.3),
                (0.4, -1.3),
                (0.4, -0.4),
                (1.3, -0.4),
                (1.3, 0.4),
                (0.4, 0.4),
                (0.4, 1.3),
                (-0.4, 1.3),
                (-0.4, 0.4),
                (-1.3, 0.4),
                (-1.3, -0.4),
                (-0.4, -0.4),
            ],
            Self::Bare => &[
                (-1.2, -0.6),
                (-0.6, -1.2),
                (0.0, -0.6),
                (0.6, -1.2),
                (1.2, -0.6),
                (0.6, 0.0),
                (1.2, 0.6),
                (0.6, 1.2),
                (0.0, 0.6),
                (-0.6, 1.2),
                (-1.2, 0.6),
                (-0.6, 0.0),
            ],
        }
    }
}

/// An axis whose places and marks are known.
struct Placed {
    log: bool,
    range: (f64, f64),
    marks: Vec<(f64, String)>,
}

impl Placed {
    fn of(axis: &Axis, values: &[f64]) -> Self {
        let range = axis.range.unwrap_or_else(|| axis.around(values));
        let marks = match &axis.marks[..] {
            [] => axis.usual(range),
            marks => marks.to_vec(),
        };
        Self {
            log: axis.log,
            range,
            marks,
        }
    }

    fn at(&self, value: f64) -> f64 {
        let on = |value: f64| if self.log { value.log10() } else { value };
        let (from, to) = (on(self.range.0), on(self.range.1));
        (on(value) - from) / (to - from)
    }
}

impl Ranged for Placed {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        from + (f64::from(to - from) * self.at(*value)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.marks.iter().map(|(value, _)| *value).collect()
    }

    fn range(&self) -> std::ops::Range<f64> {
        self.range.0..self.range.1
    }
}

impl ValueFormatter<f64> for Placed {
    fn format_ext(&self, value: &f64) -> String {
        let mut marks = self.marks.iter();
        let mark = marks.find(|(place, _)| place == value);
        mark.map(|(_, text)| text.clone()).unwrap_or_default()
    }
}

type Paper<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// The figure as a file.
pub(crate) fn draw(figure: &Figure) -> Result<String> {
    let title = wrapped(&figure.title, 62);
    let notes = figure.notes.iter().flat_map(|note| wrapped(note, 108));
    let notes: Vec<String> = notes.collect();
    let top = 12 + TITLE_LINE * title.len() as i32 + 26;
    let bottom = top + PLOT;
    let below = bottom + 44 + LINE * (notes.len() as i32 + 1) + 8;
    let mut text = String::new();
    {
        let size = ((WIDTH * SCALE) as u32, (below * SCALE) as u32);
        let paper = SVGBackend::with_string(&mut text, size).into_drawing_area();
        paper.fill(&PAPER)?;
        let mut y = 12 + TITLE_LINE / 2;
        for line in &title {
            words(&paper, line, (MARGIN, y), TITLE, INK, HPos::Left, true)?;
            y += TITLE_LINE;
        }
        words(
            &paper,
            &figure.y.label,
            (MARGIN, y + 2),
            WORDS,
            GREY,
            HPos::Left,
            false,
        )?;
        plot(&paper, figure, (top, bottom))?;
        let mut y = bottom + 48;
        for note in &notes {
            words(&paper, note, (MARGIN, y), SMALL, GREY, HPos::Left, false)?;
            y += LINE;
        }
        let style = ("monospace", COMMAND * f64::from(SCALE) * 1.24).into_font();
        let style = style.color(&GREY).pos(Pos::new(HPos::Left, VPos::Center));
        let command = format!("$ {}", figure.command);
        paper.draw_text(&command, &style, scaled((MARGIN, y + 2)))?;
        paper.present()?;
    }
    // Shown at half of the size that it is drawn in.
    let drawn = format!("width=\"{}\" height=\"{}\"", WIDTH * SCALE, below * SCALE);
    let shown = format!("width=\"{WIDTH}\" height=\"{below}\"");
    Ok(text.replacen(&drawn, &shown, 1))
}

fn plot(paper: &Paper<'_>, figure: &Figure, (top, bottom): (i32, i32)) -> Result<()> {
    let all = || {
        let curves = figure.curves.iter().flat_map(|curve| &curve.points);
        curves.chain(figure.published.iter().map(|mark| &mark.at))
    };
    let xs: Vec<f64> = all().map(|&(x, _)| x).collect();
    let ys: Vec<f64> = all().map(|&(_, y)| y).collect();
    let (x, y) = (Placed::of(&figure.x, &xs), Placed::of(&figure.y, &ys));
    let longest = y.marks.iter().map(|(_, text)| text.chars().count()).max();
    let left = MARGIN + longest.unwrap_or(0) as i32 * 7 + 10;
    let right = WIDTH - NAMES;
    let whole = WIDTH * SCALE;
    // The chart has all of the paper but for its margins; marks on the axes are drawn into these.
    let height = paper.dim_in_pixel().1 as i32;
    let mut chart = ChartBuilder::on(paper)
        .margin_left(0)
        .margin_top(top * SCALE)
        .margin_right(whole - right * SCALE)
        .margin_bottom(height - (bottom + 24) * SCALE)
        .set_label_area_size(LabelAreaPosition::Left, left * SCALE)
        .set_label_area_size(LabelAreaPosition::Bottom, 24 * SCALE)
        .build_cartesian_2d(x, y)?;
    let marks = ("sans-serif", SMALL * f64::from(SCALE) * 1.24)
        .into_font()
        .color(&INK);
    chart
        .configure_mesh()
        .bold_line_style(GRID.stroke_width(SCALE as u32))
        .light_line_style(TRANSPARENT)
        .axis_style(GREY.stroke_width(SCALE as u32))
        .label_style(marks)
        .set_all_tick_mark_size(4 * SCALE)
        .draw()?;
    let middle = (left + right) / 2;
    words(
        paper,
        &figure.x.label,
        (middle, bottom + 30),
        WORDS,
        GREY,
        HPos::Center,
        false,
    )?;
    let mut names = Vec::new();
    for curve in &figure.curves {
        let colour = curve.kind.colour();
        let line = colour.stroke_width(2 * SCALE as u32);
        let points = || curve.points.iter().copied();
        match curve.drawn {
            Drawn::Line => {
                chart.draw_series(LineSeries::new(points(), line))?;
            }
            Drawn::Dashes => {
                let dashes = DashedLineSeries::new(points(), 12, 8, line);
                chart.draw_series(dashes)?;
            }
            Drawn::Points => (),
        }
        if curve.drawn != Drawn::Dashes {
            for point in points() {
                marker(paper, curve.kind, chart.backend_coord(&point), true)?;
            }
        }
        let end = curve
            .points
            .last()
            .map(|end| chart.backend_coord(end).1 / SCALE);
        names.push((end.unwrap_or(top), curve));
    }
    for mark in &figure.published {
        let at = chart.backend_coord(&mark.at);
        marker(paper, mark.kind, at, false)?;
        let beside = (at.0 / SCALE + 9, at.1 / SCALE);
        words(paper, &mark.label, beside, SMALL, INK, HPos::Left, false)?;
    }
    beside(paper, names, (right, top, bottom), figure.listed)
}

/// Names of curves beside their ends, or one below the other.
fn beside(
    paper: &Paper<'_>,
    mut names: Vec<(i32, &Curve)>,
    (right, top, bottom): (i32, i32, i32),
    listed: bool,
) -> Result<()> {
    let lines: Vec<i32> = names
        .iter()
        .map(|(_, curve)| wrapped(&curve.label, 21).len() as i32 * LINE + 4)
        .collect();
    let mut order: Vec<usize> = (0..names.len()).collect();
    if listed {
        names.iter_mut().for_each(|name| name.0 = top + 8);
    } else {
        order.sort_by_key(|&name| names[name].0);
    }
    // None above the one before, then none below the end.
    let mut places = vec![0; names.len()];
    let mut free = top;
    for &name in &order {
        places[name] = (names[name].0 - LINE / 2).max(free);
        free = places[name] + lines[name];
    }
    let mut end = bottom + 8;
    for &name in order.iter().rev() {
        places[name] = places[name].min(end - lines[name]);
        end = places[name];
    }
    for (&(_, curve), &y) in names.iter().zip(&places) {
        let at = scaled((right + 16, y + LINE / 2));
        match curve.drawn {
            Drawn::Dashes => {
                let colour = curve.kind.colour().stroke_width(2 * SCALE as u32);
                let dash = |x: i32| [(at.0 + x, at.1), (at.0 + x + 7, at.1)];
                for x in [-12, -1, 10] {
                    paper.draw(&PathElement::new(dash(x), colour))?;
                }
            }
            _ => marker(paper, curve.kind, at, true)?,
        }
        for (line, y) in wrapped(&curve.label, 21)
            .iter()
            .zip((y + LINE / 2..).step_by(LINE as usize))
        {
            words(paper, line, (right + 28, y), WORDS, INK, HPos::Left, false)?;
        }
    }
    Ok(())
}

fn scaled((x, y): (i32, i32)) -> (i32, i32) {
    (x * SCALE, y * SCALE)
}

fn words(
    paper: &Paper<'_>,
    text: &str,
    at: (i32, i32),
    size: f64,
    colour: RGBColor,
    side: HPos,
    bold: bool,
) -> Result<()> {
    // The backend divides sizes by this.
    let size = size * f64::from(SCALE) * 1.24;
    let style = if bold {
        FontStyle::Bold
    } else {
        FontStyle::Normal
    };
    let font = FontDesc::new(FontFamily::SansSerif, size, style);
    let style = TextStyle::from(font).color(&colour);
    paper.draw_text(text, &style.pos(Pos::new(side, VPos::Center)), scaled(at))?;
    Ok(())
}

/// A marker, full or hollow.
fn marker(paper: &Paper<'_>, kind: Kind, (x, y): (i32, i32), full: bool) -> Result<()> {
    let size = MARKER * SCALE;
    let line = kind.colour().stroke_width(2 * SCALE as u32);
    // A hollow one covers the grid.
    let inside = if full { kind.colour() } else { PAPER }.filled();
    // Published values are larger.
    let size = if full { size } else { size * 5 / 4 };
    if kind.corners().is_empty() {
        paper.draw(&Circle::new((x, y), size, inside))?;
        if !full {
            paper.draw(&Circle::new((x, y), size, line))?;
        }
        return Ok(());
    }
    let place = |part: f64, at: i32| at + (part * f64::from(size)).round() as i32;
    let corners = kind.corners().iter();
    let mut corners: Vec<_> = corners
        .map(|&(dx, dy)| (place(dx, x), place(dy, y)))
        .collect();
    paper.draw(&Polygon::new(corners.clone(), inside))?;
    if !full {
        corners.extend_from_within(..2);
        paper.draw(&PathElement::new(corners, line))?;
    }
    Ok(())
}

/// Lines of at most so many letters, if no word is longer.
fn wrapped(text: &str, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= most => {
                *line += &format!(" {word}");
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
