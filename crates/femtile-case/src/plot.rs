//! The history of residuals as a picture.

use std::path::Path;

use femtile_fem::functionals::Line;
use femtile_mesh::MeshError;
use femtile_mesh::io::write_atomically;
use femtile_report::short;
use plotters::prelude::*;

/// The label below values along a line.
pub(crate) const DISTANCE: &str = "distance along the line";

const SIZE: (u32, u32) = (760, 460);
const INK: RGBColor = RGBColor(38, 50, 56);
const CURVE: RGBColor = RGBColor(0, 105, 146);
const GOAL: RGBColor = RGBColor(190, 80, 30);
const GRID: RGBColor = RGBColor(225, 229, 232);

/// Returns the SVG that a function draws; nothing if it fails.
fn drawn(draw: impl FnOnce(&mut String) -> Result<(), DrawingAreaErrorKind<std::io::Error>>) -> String {
    let mut svg = String::new();
    match draw(&mut svg) {
        Ok(()) => svg,
        Err(_) => String::new(),
    }
}

/// An SVG of the relative residual after each iteration, on a logarithmic scale, and of the tolerance.
pub fn residual_plot(residuals: &[f64], tolerance: f64) -> String {
    drawn(|svg| draw(svg, residuals, tolerance))
}

/// Writes the picture of [`residual_plot`] to a file, which appears only when it is complete.
///
/// # Errors
/// [`MeshError::Io`] with the path.
pub fn save_residual_plot(path: &Path, residuals: &[f64], tolerance: f64) -> Result<(), MeshError> {
    write_atomically(path, |out| out.write_all(residual_plot(residuals, tolerance).as_bytes()))
}

fn draw(
    svg: &mut String,
    residuals: &[f64],
    tolerance: f64,
) -> Result<(), DrawingAreaErrorKind<std::io::Error>> {
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let positive = || residuals.iter().copied().filter(|r| *r > 0.0 && r.is_finite());
    let low = positive().chain([tolerance]).fold(f64::INFINITY, f64::min).max(1e-300);
    let high = positive().chain([1.0]).fold(0.0, f64::max);
    // Whole decades, so that the labels are powers of ten.
    let decades = low.log10().floor()..(high.log10() + 0.01).ceil();
    let last = residuals.len().saturating_sub(1).max(1) as f64;
    let mut chart = ChartBuilder::on(&root)
        .margin(14)
        .margin_right(24)
        .caption(
            format!("{} iterations", residuals.len().saturating_sub(1)),
            ("sans-serif", 17).with_color(INK),
        )
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..last, decades.clone())?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(INK)
        .label_style(("sans-serif", 14).with_color(INK))
        .axis_desc_style(("sans-serif", 15).with_color(INK))
        .x_desc("iteration")
        .y_desc("relative residual")
        .x_labels(8)
        .y_labels(((decades.end - decades.start) as usize + 1).min(14))
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| format!("1e{y:.0}"))
        .draw()?;
    let goal = tolerance.log10();
    chart.draw_series(DashedLineSeries::new([(0.0, goal), (last, goal)], 6, 4, GOAL.stroke_width(1)))?;
    // The label stands above its line, whatever the scale.
    let label = Text::new("tolerance", (6, -15), ("sans-serif", 13).into_font().color(&GOAL));
    chart.draw_series([EmptyElement::at((0.0, goal)) + label])?;
    let points = residuals.iter().enumerate().filter(|(_, r)| **r > 0.0 && r.is_finite());
    let curve = points.map(|(i, r)| (i as f64, r.log10()));
    chart.draw_series(LineSeries::new(curve, CURVE.stroke_width(2)))?;
    root.present()
}

/// An SVG of functions along a line, a curve for each, with gaps where a function has no value.
pub(crate) fn line_plot(name: &str, lines: &[Line]) -> String {
    drawn(|svg| draw_lines(svg, name, lines))
}

fn draw_lines(
    svg: &mut String,
    name: &str,
    lines: &[Line],
) -> Result<(), DrawingAreaErrorKind<std::io::Error>> {
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let length = lines.iter().flat_map(|line| line.arc_lengths.last()).copied().fold(0.0, f64::max);
    let finite = || lines.iter().flat_map(|line| line.values.iter().flatten()).filter(|u| u.is_finite());
    let (low, high) = (
        finite().copied().fold(f64::INFINITY, f64::min),
        finite().copied().fold(f64::NEG_INFINITY, f64::max),
    );
    let mut chart = ChartBuilder::on(&root)
        .margin(14)
        .margin_right(24)
        .caption(name, ("sans-serif", 17).with_color(INK))
        .x_label_area_size(44)
        .y_label_area_size(72)
        .build_cartesian_2d(0.0..if length > 0.0 { length } else { 1.0 }, range(low, high))?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(INK)
        .label_style(("sans-serif", 14).with_color(INK))
        .axis_desc_style(("sans-serif", 15).with_color(INK))
        .x_desc(DISTANCE)
        .y_desc("u")
        .x_labels(8)
        .y_labels(10)
        .x_label_formatter(&|x| short(*x))
        .y_label_formatter(&|u| short(*u))
        .draw()?;
    for (k, line) in lines.iter().enumerate() {
        let colour = if k == 0 { CURVE.to_rgba() } else { Palette99::pick(k).to_rgba() };
        let points: Vec<(f64, Option<f64>)> =
            line.arc_lengths.iter().copied().zip(line.values.iter().copied()).collect();
        for piece in points.chunk_by(|a, b| a.1.is_some() == b.1.is_some()) {
            let curve = piece.iter().filter_map(|&(s, u)| Some((s, u.filter(|u| u.is_finite())?)));
            chart.draw_series(LineSeries::new(curve, colour.stroke_width(2)))?;
        }
    }
    root.present()
}

/// An SVG of numbers over time, a curve for each name.
pub(crate) fn trace_plot(names: &[String], rows: &[(f64, Vec<f64>)]) -> String {
    drawn(|svg| draw_traces(svg, names, rows))
}

fn draw_traces(
    svg: &mut String,
    names: &[String],
    rows: &[(f64, Vec<f64>)],
) -> Result<(), DrawingAreaErrorKind<std::io::Error>> {
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let finite = || rows.iter().flat_map(|(_, values)| values).copied().filter(|value| value.is_finite());
    let (low, high) = (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max));
    let (first, last) = match (rows.first(), rows.last()) {
        (Some((first, _)), Some((last, _))) if last > first => (*first, *last),
        _ => (0.0, 1.0),
    };
    let mut chart = ChartBuilder::on(&root)
        .margin(14)
        .margin_right(24)
        .x_label_area_size(44)
        .y_label_area_size(72)
        .build_cartesian_2d(first..last, range(low, high))?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(INK)
        .label_style(("sans-serif", 14).with_color(INK))
        .axis_desc_style(("sans-serif", 15).with_color(INK))
        .x_desc("time")
        .x_labels(8)
        .y_labels(10)
        .x_label_formatter(&|t| short(*t))
        .y_label_formatter(&|value| short(*value))
        .draw()?;
    for (k, name) in names.iter().enumerate() {
        let colour = if k == 0 { CURVE.to_rgba() } else { Palette99::pick(k).to_rgba() };
        let curve = rows.iter().map(|(t, values)| (*t, values[k])).filter(|(_, value)| value.is_finite());
        let drawn = chart.draw_series(LineSeries::new(curve, colour.stroke_width(2)))?;
        drawn
            .label(visible(name))
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
    }
    if names.len() > 1 {
        chart
            .configure_series_labels()
            .label_font(("sans-serif", 14).with_color(INK))
            .background_style(WHITE.mix(0.8))
            .border_style(GRID)
            .draw()?;
    }
    root.present()
}

/// Errors that fall with a size, positive both.
pub(crate) struct Convergent {
    /// The name in the legend.
    pub name: String,
    /// Pairs of size and error.
    pub points: Vec<(f64, f64)>,
}

/// An SVG of errors by size, the largest of which is one, with both axes logarithmic.
pub(crate) fn convergence_plot(size: &str, curves: &[Convergent]) -> String {
    drawn(|svg| draw_convergence(svg, size, curves))
}

fn draw_convergence(
    svg: &mut String,
    size: &str,
    curves: &[Convergent],
) -> Result<(), DrawingAreaErrorKind<std::io::Error>> {
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let is_shown = |(h, e): &&(f64, f64)| *h > 0.0 && *e > 0.0 && h.is_finite() && e.is_finite();
    let all = || curves.iter().flat_map(|curve| &curve.points).filter(is_shown);
    let largest = all().map(|(h, _)| *h).fold(0.0, f64::max);
    let place = |(h, e): &(f64, f64)| ((h / largest).log2(), e.log10());
    let span = |of: fn((f64, f64)) -> f64, least: f64| {
        let (low, high) =
            all().map(|point| of(place(point))).fold((0.0_f64, f64::NEG_INFINITY), |(low, high), x| {
                (if high.is_finite() { low.min(x) } else { x }, high.max(x))
            });
        if high.is_finite() { low - 0.05..high.max(low + least) + 0.05 } else { -1.0..0.0 }
    };
    let (across, up) = (span(|(x, _)| x, 0.3), span(|(_, y)| y, 0.3));
    let up = up.start.floor()..up.end.ceil();
    let mut chart = ChartBuilder::on(&root)
        .margin(14)
        .margin_right(24)
        .x_label_area_size(44)
        .y_label_area_size(72)
        .build_cartesian_2d(across.clone(), up.clone())?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(INK)
        .label_style(("sans-serif", 14).with_color(INK))
        .axis_desc_style(("sans-serif", 15).with_color(INK))
        .x_desc(size)
        .y_desc("error")
        .x_labels(((across.end - across.start) as usize + 1).min(10))
        .y_labels(((up.end - up.start) as usize + 1).min(14))
        .x_label_formatter(&|x| short(x.exp2()))
        .y_label_formatter(&|y| format!("1e{y:.0}"))
        .draw()?;
    for (k, curve) in curves.iter().enumerate() {
        let colour = if k == 0 { CURVE.to_rgba() } else { Palette99::pick(k).to_rgba() };
        let points: Vec<(f64, f64)> = curve.points.iter().filter(is_shown).map(place).collect();
        let drawn = chart.draw_series(LineSeries::new(points.clone(), colour.stroke_width(2)))?;
        drawn
            .label(visible(&curve.name))
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
        chart.draw_series(points.into_iter().map(|point| Circle::new(point, 3, colour.filled())))?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .label_font(("sans-serif", 14).with_color(INK))
        .background_style(WHITE.mix(0.8))
        .border_style(GRID)
        .draw()?;
    root.present()
}

/// Returns a name without control characters, which XML cannot have.
fn visible(name: &str) -> String {
    let shown = |c: char| if c.is_whitespace() { ' ' } else { '?' };
    name.chars().map(|c| if c.is_control() { shown(c) } else { c }).collect()
}

/// A range of numbers with room around them.
fn range(low: f64, high: f64) -> std::ops::Range<f64> {
    let margin = 0.05 * (high - low);
    // Rounding of a constant is no curve.
    let least = 1e-6 * low.abs().max(high.abs());
    match margin.is_finite() {
        true if margin > least => low - margin..high + margin,
        true if least > 0.0 => low - 1e5 * least..high + 1e5 * least,
        _ => -1.0..1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_history_gives_a_picture() {
        for residuals in [&[][..], &[0.0], &[1.0], &[1.0, 0.1, 1e-3], &[1.0, f64::NAN, 0.0], &[1e-300, 1e300]]
        {
            let svg = residual_plot(residuals, 1e-10);
            assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{residuals:?}");
        }
    }

    #[test]
    fn every_table_of_errors_gives_a_picture_with_a_point_for_each_error() {
        let curve = |points: &[(f64, f64)]| Convergent { name: "e < 1".into(), points: points.to_vec() };
        for (points, n_points) in [
            (&[][..], 0),
            (&[(1.0, 0.0)], 0),
            (&[(1.0, 1.0)], 1),
            (&[(1.0, 1e-3), (0.5, 2.5e-4), (0.25, f64::NAN), (0.125, f64::INFINITY)], 2),
            (&[(4.0, 1e300), (1.0, 1e-300)], 2),
        ] {
            let svg = convergence_plot("size", &[curve(points)]);
            assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{points:?}");
            assert_eq!(svg.matches("<circle").count(), n_points, "{points:?}: {svg}");
        }
    }

    #[test]
    fn names_of_traces_are_text_of_xml() {
        let names = ["c\nd", "e\u{1b}[31m", "<f> & \u{9b}g"].map(String::from);
        let svg = trace_plot(&names, &[(0.0, vec![0.0, 1.0, 2.0]), (1.0, vec![1.0, 2.0, 3.0])]);
        let is_stray = |c: char| c.is_control() && c != '\n';
        assert!(!svg.contains(is_stray), "{svg}");
        for shown in ["c d", "e?[31m", "&lt;f&gt; &amp; ?g"] {
            assert!(svg.contains(&format!("\n{shown}\n")), "{shown}: {svg}");
        }
    }

    #[test]
    fn every_line_gives_a_picture_with_a_curve_for_each_piece_inside_the_mesh() {
        let line = |values: &[Option<f64>]| Line {
            points: vec![[0.0; 3]; values.len()],
            arc_lengths: (0..values.len()).map(|i| i as f64).collect(),
            values: values.to_vec(),
        };
        for (values, n_curves) in [
            (&[Some(0.0), Some(0.0)][..], 1),
            (&[Some(1e-300), Some(1.0), None, None, Some(3.0), Some(2.0)], 2),
            (&[None, Some(7.0), Some(7.0 + 1e-15), None], 1),
            (&[Some(f64::NAN), Some(1e300), Some(-1e300)], 1),
            (&[Some(f64::NAN); 3], 0),
        ] {
            let svg = line_plot("a < b", &[line(values)]);
            assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{values:?}");
            let colour = "stroke=\"#006992\"";
            assert_eq!(svg.matches(colour).count(), n_curves, "{values:?}: {svg}");
        }
    }
}
