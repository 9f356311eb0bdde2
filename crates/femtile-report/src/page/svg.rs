//! Charts as SVG in the colours of the page.

use std::fmt::Write;

use super::html::escape;
use crate::number::short;

/// Width of charts in their own units.
const WIDTH: f64 = 640.0;
/// Room for numbers to the left of and below a chart.
const LEFT: f64 = 62.0;
const BELOW: f64 = 40.0;
const ABOVE: f64 = 12.0;
const RIGHT: f64 = 14.0;

/// A chart with axes; places are in units of the axes, logarithms where an axis is logarithmic.
pub(super) struct Chart {
    svg: String,
    height: f64,
    x: [f64; 2],
    y: [f64; 2],
}

impl Chart {
    /// Creates a chart of a height with the ranges and the names of its axes, and a description for readers that do not see it.
    pub fn new(height: f64, [x, y]: [[f64; 2]; 2], names: [&str; 2], description: &str) -> Self {
        let description = escape(description);
        let mut svg = format!(
            "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{description}\"><title>{description}</title>"
        );
        let middle = LEFT + 0.5 * (WIDTH - LEFT - RIGHT);
        let _ = write!(
            svg,
            "<text class=\"name\" x=\"{middle}\" y=\"{}\">{}</text>\
             <text class=\"name\" transform=\"translate(13 {}) rotate(-90)\">{}</text>",
            height - 4.0,
            escape(names[0]),
            0.5 * (height - BELOW),
            escape(names[1])
        );
        Self { svg, height, x, y }
    }

    fn at(&self, x: f64, y: f64) -> [f64; 2] {
        let share = |value: f64, [low, high]: [f64; 2]| (value - low) / (high - low);
        let bottom = self.height - BELOW;
        [LEFT + share(x, self.x) * (WIDTH - LEFT - RIGHT), bottom - share(y, self.y) * (bottom - ABOVE)]
    }

    /// Draws a line of the grid across the first axis with its number.
    pub fn mark_x(&mut self, x: f64, number: &str) {
        let ([left, bottom], [_, top]) = (self.at(x, self.y[0]), self.at(x, self.y[1]));
        let _ = write!(
            self.svg,
            "<path class=\"grid\" d=\"M{left:.1} {top:.1}V{bottom:.1}\"/>\
             <text class=\"mark-x\" x=\"{left:.1}\" y=\"{:.1}\">{number}</text>",
            bottom + 15.0
        );
    }

    /// Draws a line of the grid across the second axis with its number.
    pub fn mark_y(&mut self, y: f64, number: &str) {
        let ([left, at], [right, _]) = (self.at(self.x[0], y), self.at(self.x[1], y));
        let _ = write!(
            self.svg,
            "<path class=\"grid\" d=\"M{left:.1} {at:.1}H{right:.1}\"/>\
             <text class=\"mark-y\" x=\"{:.1}\" y=\"{:.1}\">{number}</text>",
            left - 6.0,
            at + 4.0
        );
    }

    /// Draws a curve of a class through points.
    pub fn curve(&mut self, class: &str, points: impl Iterator<Item = [f64; 2]>) {
        let places: Vec<String> =
            points.map(|[x, y]| self.at(x, y)).map(|[x, y]| format!("{x:.1} {y:.1}")).collect();
        if places.len() > 1 {
            let _ = write!(self.svg, "<path class=\"{class}\" d=\"M{}\"/>", places.join("L"));
        }
    }

    /// Draws a point.
    pub fn point(&mut self, [x, y]: [f64; 2], title: &str) {
        let [x, y] = self.at(x, y);
        let _ = write!(
            self.svg,
            "<circle class=\"point\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\"><title>{}</title></circle>",
            escape(title)
        );
    }

    /// Writes beside a place; `class` says on which side.
    pub fn label(&mut self, [x, y]: [f64; 2], [dx, dy]: [f64; 2], class: &str, text: &str) {
        let [x, y] = self.at(x, y);
        let _ = write!(
            self.svg,
            "<text class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            x + dx,
            y + dy,
            escape(text)
        );
    }

    /// Ends the chart.
    pub fn finish(mut self) -> String {
        self.svg += "</svg>";
        self.svg
    }
}

/// Marks powers of ten of an axis, at most about ten.
pub(super) fn decades([low, high]: [f64; 2]) -> impl Iterator<Item = (f64, String)> {
    let (first, last) = (low.ceil() as i32, high.floor() as i32);
    let step = ((last - first) / 8 + 1).max(1) as usize;
    (first..=last).step_by(step).map(|exponent| {
        let number = match exponent {
            -2..=4 => short(10_f64.powi(exponent)),
            _ => format!("1e{exponent}"),
        };
        (f64::from(exponent), number)
    })
}

/// Draws relative residuals by iteration, with the tolerance; none of fewer than two positive ones.
pub(super) fn convergence(residuals: &[f64], tolerance: f64) -> Option<String> {
    let points: Vec<[f64; 2]> = residuals
        .iter()
        .enumerate()
        .filter(|(_, r)| **r > 0.0 && r.is_finite())
        .map(|(i, r)| [i as f64, r.log10()])
        .collect();
    if points.len() < 2 {
        return None;
    }
    let goal = (tolerance > 0.0).then(|| tolerance.log10());
    let all = || points.iter().map(|point| point[1]).chain(goal);
    let y = [all().fold(f64::INFINITY, f64::min).floor(), all().fold(0.0, f64::max).ceil().max(0.0)];
    let last = (residuals.len() - 1) as f64;
    let description = format!("Relative residual after each of {last} iterations");
    let mut chart = Chart::new(260.0, [[0.0, last], y], ["iteration", "relative residual"], &description);
    decades(y).for_each(|(y, number)| chart.mark_y(y, &number));
    let step = (last / 8.0).ceil().max(1.0) as usize;
    (0..=last as usize).step_by(step).for_each(|i| chart.mark_x(i as f64, &i.to_string()));
    if let Some(goal) = goal {
        chart.curve("goal", [[0.0, goal], [last, goal]].into_iter());
        chart.label([last, goal], [-4.0, -5.0], "left", "tolerance");
    }
    chart.curve("curve", points.into_iter());
    Some(chart.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_history_gives_a_chart_inside_its_frame_or_none() {
        for (residuals, is_drawn) in [
            (&[][..], false),
            (&[1.0], false),
            (&[1.0, 0.1, 1e-3], true),
            (&[1.0, f64::NAN, 0.0, 1e-9], true),
            (&[1e-300, 1e300], true),
        ] {
            let chart = convergence(residuals, 1e-10);
            assert_eq!(chart.is_some(), is_drawn, "{residuals:?}");
            assert!(chart.is_none_or(|svg| !svg.contains("NaN") && !svg.contains("inf")));
        }
    }

    #[test]
    fn marks_of_decades_are_few() {
        for range in [[-300.0, 300.0], [0.0, 1.0], [-12.0, 0.0]] {
            let n = decades(range).count();
            assert!((1..=14).contains(&n), "{range:?}: {n}");
        }
    }
}
