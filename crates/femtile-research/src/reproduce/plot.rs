//! Figures as pictures: curves over numbers, bars beside names, a chart for each precision.

use std::ops::Range;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{Cell, Column, Figure, INTENSITY, Quantity, Table, UNKNOWNS};

const CHART: (u32, u32) = (760, 480);
const BAR: u32 = 9;
/// Space for the names of bars.
const NAMES: u32 = 210;
const INK: RGBColor = RGBColor(38, 50, 56);
const GRID: RGBColor = RGBColor(225, 229, 232);
/// Colours that are distinguishable with colour blindness too.
const CURVES: [RGBColor; 10] = [
    RGBColor(0, 105, 146),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 80, 160),
    RGBColor(150, 110, 20),
    RGBColor(90, 90, 90),
    RGBColor(86, 180, 233),
    RGBColor(160, 30, 40),
    RGBColor(120, 150, 40),
];

type DrawError = DrawingAreaErrorKind<std::io::Error>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Points = Vec<(f64, f64)>;

/// The scale of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scale {
    Linear,
    Logarithmic,
}

impl Scale {
    fn of(quantity: Quantity) -> Self {
        use Quantity::{Iterations, Microseconds, Milliseconds, Nanoseconds, Products};
        match quantity {
            Nanoseconds | Microseconds | Milliseconds | Products | Iterations => Self::Logarithmic,
            _ => Self::Linear,
        }
    }

    /// Returns the place of a value on the axis.
    fn place(self, value: f64) -> f64 {
        if self == Self::Logarithmic { value.max(1e-300).log10() } else { value }
    }

    /// Returns the label of a place.
    fn label(self, place: f64) -> String {
        let value = if self == Self::Logarithmic { 10f64.powf(place) } else { place };
        match value.abs() {
            0.0 => "0".into(),
            1e-2..1e5 => format!("{value:.2}").trim_end_matches('0').trim_end_matches('.').into(),
            _ => format!("{value:.1e}"),
        }
    }

    /// From the least place to the most with some room, with zero on a linear scale.
    fn span(self, places: impl Iterator<Item = f64>) -> Range<f64> {
        let ends = if self == Self::Linear { (0.0, 0.0) } else { (f64::INFINITY, f64::NEG_INFINITY) };
        let (low, high) = places.fold(ends, |(low, high): (f64, f64), at| (low.min(at), high.max(at)));
        let room = 0.03 * (high - low);
        if low < high { low - room..high + room } else { low.min(0.0)..high.max(low.min(0.0) + 1.0) }
    }
}

/// A column of a figure: places of its points, and of a line.
struct Curve {
    label: String,
    points: Points,
    line: Points,
}

/// A chart; without names its points lie over numbers.
struct Chart {
    caption: String,
    names: Option<Vec<String>>,
    scales: [Scale; 2],
    curves: Vec<Curve>,
}

/// Returns an SVG of curves, or of the bars of a table; empty if there is nothing to draw.
pub fn svg(figure: &Figure) -> String {
    let charts = match &figure.table {
        Some(table) => vec![of_table(figure, table)],
        None => figure.precisions().into_iter().map(|precision| of_precision(figure, precision)).collect(),
    };
    let mut svg = String::new();
    if draw(&mut svg, figure, &charts).is_err() {
        svg.clear();
    }
    svg
}

fn of_precision(figure: &Figure, precision: &str) -> Chart {
    let names = figure.abscissas(precision);
    let is_number = matches!(figure.abscissa, "length" | "block");
    let place = |name: &String| match is_number {
        true => name.parse().unwrap_or(0.0),
        false => names.iter().position(|other| other == name).unwrap_or(0) as f64,
    };
    let scale = Scale::Logarithmic;
    let curves = figure.series(precision).into_iter().map(|series| {
        let point = |(name, value): &(String, f64)| (place(name), scale.place(*value));
        let mut points: Points = series.points.iter().map(point).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        Curve { label: series.label, line: points.clone(), points }
    });
    Chart {
        caption: format!("{}, {precision}", figure.item),
        curves: curves.collect(),
        names: (!is_number).then_some(names),
        scales: [Scale::Linear, scale],
    }
}

fn of_table(figure: &Figure, table: &Table) -> Chart {
    let (caption, scale) = (figure.title.clone(), Scale::of(figure.quantity));
    let place = |scale: Scale, cell: &Cell| cell.number().map(|value| scale.place(value));
    if figure.abscissa == INTENSITY {
        let scale = Scale::Logarithmic;
        // Of three columns the first is the abscissa, the second gives points and the third a line.
        let curves = table.columns.chunks_exact(3).map(|group| {
            let over = |column: &Column| -> Points {
                let pairs = group[0].cells.iter().zip(&column.cells);
                pairs.filter_map(|(x, y)| place(scale, x).zip(place(scale, y))).collect()
            };
            let mut line = over(&group[2]);
            line.sort_by(|a, b| a.0.total_cmp(&b.0));
            Curve { label: group[1].name.clone(), points: over(&group[1]), line }
        });
        return Chart { caption, curves: curves.collect(), names: None, scales: [scale; 2] };
    }
    let is_number = figure.abscissa == UNKNOWNS;
    let at = |(row, name): (usize, &String)| match is_number {
        true => name.parse().map_or(f64::NAN, f64::log10),
        false => row as f64,
    };
    let places: Vec<f64> = table.rows.iter().enumerate().map(at).collect();
    let curves = table.columns.iter().filter(|column| column.is_drawn).map(|column| {
        let cells = places.iter().zip(&column.cells).filter(|(x, _)| x.is_finite());
        let points: Points = cells.filter_map(|(&x, cell)| Some((x, place(scale, cell)?))).collect();
        Curve { label: column.name.clone(), line: points.clone(), points }
    });
    Chart {
        caption,
        curves: curves.collect(),
        names: (!is_number).then(|| table.rows.clone()),
        scales: [Scale::Logarithmic, scale],
    }
}

fn draw(svg: &mut String, figure: &Figure, charts: &[Chart]) -> Result<(), DrawError> {
    let n_bars =
        |chart: &Chart| chart.names.as_ref().map_or(0, |names| names.len() * (chart.curves.len() + 1));
    let height = 130 + BAR * charts.iter().map(n_bars).max().unwrap_or(0) as u32;
    let n_charts = charts.len().max(1);
    let root =
        SVGBackend::with_string(svg, (CHART.0 * n_charts as u32, height.max(CHART.1))).into_drawing_area();
    root.fill(&WHITE)?;
    for (area, chart) in root.split_evenly((1, n_charts)).iter().zip(charts) {
        match &chart.names {
            Some(names) => bars(area, figure, chart, names)?,
            None => curves(area, figure, chart)?,
        }
    }
    root.present()
}

/// Where the points of a chart lie, on the axis of their abscissas and on the other one.
fn span(chart: &Chart, axis: usize) -> Range<f64> {
    let points = chart.curves.iter().flat_map(|curve| curve.points.iter().chain(&curve.line));
    chart.scales[axis].span(points.map(|point| if axis == 0 { point.0 } else { point.1 }))
}

fn curves(area: &Area<'_>, figure: &Figure, chart: &Chart) -> Result<(), DrawError> {
    let mut drawn = builder(area, chart, 64).build_cartesian_2d(span(chart, 0), span(chart, 1))?;
    drawn
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(INK)
        .label_style(("sans-serif", 13).with_color(INK))
        .x_desc(figure.abscissa)
        .y_desc(figure.quantity.label())
        .x_label_formatter(&|x| chart.scales[0].label(*x))
        .y_label_formatter(&|y| chart.scales[1].label(*y))
        .draw()?;
    for (k, curve) in chart.curves.iter().enumerate() {
        let colour = CURVES[k % CURVES.len()];
        drawn.draw_series(LineSeries::new(curve.line.clone(), colour.stroke_width(2)))?;
        drawn
            .draw_series(curve.points.iter().map(|point| Circle::new(*point, 3, colour.filled())))?
            .label(&curve.label)
            .legend(move |(x, y)| Circle::new((x + 8, y), 4, colour.filled()));
    }
    legend(&mut drawn)
}

/// The bars of a name beneath each other, name under name.
fn bars(area: &Area<'_>, figure: &Figure, chart: &Chart, names: &[String]) -> Result<(), DrawError> {
    let (across, n_names) = (span(chart, 1), names.len().max(1) as f64);
    let mut drawn = builder(area, chart, NAMES).build_cartesian_2d(across.clone(), n_names..0.0)?;
    drawn
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(INK)
        .label_style(("sans-serif", 13).with_color(INK))
        .x_desc(figure.quantity.label())
        .x_label_formatter(&|x| chart.scales[1].label(*x))
        .draw()?;
    let style = ("sans-serif", 13).with_color(INK).into_text_style(area);
    let style = style.pos(Pos::new(HPos::Right, VPos::Center));
    for (row, name) in names.iter().enumerate() {
        let name = Text::new(name.clone(), (-8, 0), style.clone());
        drawn.plotting_area().draw(&(EmptyElement::at((across.start, row as f64 + 0.5)) + name))?;
    }
    let base = if chart.scales[1] == Scale::Linear { 0.0 } else { across.start };
    let height = 0.9 / chart.curves.len().max(1) as f64;
    for (k, curve) in chart.curves.iter().enumerate() {
        let colour = CURVES[k % CURVES.len()];
        let bar = |&(row, value): &(f64, f64)| {
            let top = row + 0.05 + k as f64 * height;
            Rectangle::new([(base, top), (value, top + height)], colour.filled())
        };
        drawn
            .draw_series(curve.points.iter().map(bar))?
            .label(&curve.label)
            .legend(move |(x, y)| Rectangle::new([(x, y - 4), (x + 16, y + 4)], colour.filled()));
    }
    legend(&mut drawn)
}

fn builder<'a, 'b, 'c>(area: &'a Area<'b>, chart: &Chart, left: u32) -> ChartBuilder<'a, 'c, SVGBackend<'b>> {
    let mut builder = ChartBuilder::on(area);
    builder
        .margin(12)
        .margin_right(24)
        .caption(&chart.caption, ("sans-serif", 16).with_color(INK))
        .x_label_area_size(40)
        .y_label_area_size(left);
    builder
}

fn legend<'a, B: DrawingBackend<ErrorType = std::io::Error> + 'a, C: CoordTranslate>(
    chart: &mut ChartContext<'a, B, C>,
) -> Result<(), DrawError> {
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .background_style(WHITE.mix(0.85))
        .border_style(GRID)
        .label_font(("sans-serif", 11).with_color(INK))
        .draw()
}
