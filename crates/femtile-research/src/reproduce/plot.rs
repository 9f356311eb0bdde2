//! Figures as pictures: a chart for each precision, side by side as in papers.

use plotters::prelude::*;

use super::{Figure, INTENSITY, Series, UNKNOWNS, table_curves, table_plot, table_roofs};

const CHART: (u32, u32) = (560, 440);
pub(super) const INK: RGBColor = RGBColor(38, 50, 56);
pub(super) const GRID: RGBColor = RGBColor(225, 229, 232);
/// Colours that are distinguishable with colour blindness too.
pub(super) const CURVES: [RGBColor; 10] = [
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

pub(super) type DrawError = DrawingAreaErrorKind<std::io::Error>;

/// Returns an SVG of curves, or of the bars of a table; empty if there is nothing to draw.
pub fn svg(figure: &Figure) -> String {
    let mut svg = String::new();
    let drawn = match &figure.table {
        Some(table) if figure.abscissa == UNKNOWNS => table_curves::draw(&mut svg, figure, table),
        Some(table) if figure.abscissa == INTENSITY => table_roofs::draw(&mut svg, figure, table),
        Some(table) => table_plot::draw(&mut svg, figure, table),
        None => draw(&mut svg, figure),
    };
    if drawn.is_err() {
        svg.clear();
    }
    svg
}

fn draw(svg: &mut String, figure: &Figure) -> Result<(), DrawError> {
    let precisions = figure.precisions();
    let size = (CHART.0 * precisions.len().max(1) as u32, CHART.1);
    let root = SVGBackend::with_string(svg, size).into_drawing_area();
    root.fill(&WHITE)?;
    for (area, precision) in root.split_evenly((1, precisions.len().max(1))).iter().zip(precisions) {
        let series: Vec<_> = figure.series(precision).into_iter().filter(|s| !s.points.is_empty()).collect();
        let caption = format!("{}, {precision}", figure.item);
        if matches!(figure.abscissa, "length" | "block") {
            curves(area, figure, &caption, &series)?;
        } else {
            bars(area, figure, &caption, &figure.abscissas(precision), &series)?;
        }
    }
    root.present()
}

/// Whole decades around all positive values.
fn decades(series: &[Series]) -> std::ops::Range<f64> {
    let values = series.iter().flat_map(|series| &series.points).map(|point| point.1);
    let positive = values.filter(|value| *value > 0.0 && value.is_finite()).map(f64::log10);
    let (low, high) = positive.fold((0.0_f64, 0.0_f64), |(low, high), v| (low.min(v), high.max(v)));
    low.floor()..(high + 0.05).ceil()
}

pub(super) fn value_label(value: f64) -> String {
    if value.abs() < 4.0 { format!("{}", 10f64.powf(value)) } else { format!("1e{value:.0}") }
}

fn curves<B: DrawingBackend<ErrorType = std::io::Error>>(
    area: &DrawingArea<B, plotters::coord::Shift>,
    figure: &Figure,
    caption: &str,
    series: &[Series],
) -> Result<(), DrawError> {
    let number = |point: &(String, f64)| (point.0.parse::<f64>().unwrap_or(0.0), point.1.max(1e-300).log10());
    let last = series.iter().flat_map(|s| &s.points).map(|p| number(p).0).fold(1.0, f64::max);
    let y = decades(series);
    let mut chart = builder(area, caption).build_cartesian_2d(0.0..last, y.clone())?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(INK)
        .label_style(("sans-serif", 13).with_color(INK))
        .x_desc(x_label(figure))
        .y_desc(figure.quantity.label())
        .y_labels((y.end - y.start) as usize + 1)
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| value_label(*y))
        .draw()?;
    for (k, series) in series.iter().enumerate() {
        let style = CURVES[k % CURVES.len()].stroke_width(2);
        let mut points: Vec<_> = series.points.iter().map(number).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        chart
            .draw_series(LineSeries::new(points, style))?
            .label(&series.label)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], style));
    }
    legend(&mut chart, SeriesLabelPosition::UpperRight)
}

fn bars<B: DrawingBackend<ErrorType = std::io::Error>>(
    area: &DrawingArea<B, plotters::coord::Shift>,
    figure: &Figure,
    caption: &str,
    names: &[String],
    series: &[Series],
) -> Result<(), DrawError> {
    let y = decades(series);
    let groups = names.len().max(1) as f64;
    let mut chart = builder(area, caption).build_cartesian_2d(0.0..groups, y.clone())?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(INK)
        .label_style(("sans-serif", 13).with_color(INK))
        .x_desc(format!("{}: {}", x_label(figure), names.join(" | ")))
        .y_desc(figure.quantity.label())
        .x_labels(1)
        .y_labels((y.end - y.start) as usize + 1)
        .x_label_formatter(&|_| String::new())
        .y_label_formatter(&|y| value_label(*y))
        .draw()?;
    let width = 0.9 / series.len().max(1) as f64;
    for (k, series) in series.iter().enumerate() {
        let style = CURVES[k % CURVES.len()].filled();
        let bar = |point: &(String, f64)| {
            let group = names.iter().position(|name| *name == point.0).unwrap_or(0) as f64;
            let left = group + 0.05 + k as f64 * width;
            Rectangle::new([(left, y.start), (left + width, point.1.max(1e-300).log10())], style)
        };
        chart
            .draw_series(series.points.iter().map(bar))?
            .label(&series.label)
            .legend(move |(x, y)| Rectangle::new([(x, y - 4), (x + 16, y + 4)], style));
    }
    legend(&mut chart, SeriesLabelPosition::UpperRight)
}

fn builder<'a, 'b, B: DrawingBackend>(
    area: &'a DrawingArea<B, plotters::coord::Shift>,
    caption: &str,
) -> ChartBuilder<'a, 'b, B> {
    let mut builder = ChartBuilder::on(area);
    builder
        .margin(12)
        .margin_right(20)
        .caption(caption, ("sans-serif", 16).with_color(INK))
        .x_label_area_size(40)
        .y_label_area_size(58);
    builder
}

pub(super) fn legend<'a, B: DrawingBackend<ErrorType = std::io::Error> + 'a, C: CoordTranslate>(
    chart: &mut ChartContext<'a, B, C>,
    position: SeriesLabelPosition,
) -> Result<(), DrawError> {
    chart
        .configure_series_labels()
        .position(position)
        .background_style(WHITE.mix(0.85))
        .border_style(GRID)
        .label_font(("sans-serif", 11).with_color(INK))
        .draw()
}

fn x_label(figure: &Figure) -> &'static str {
    match figure.abscissa {
        "block" => "rows of a block",
        "axis" => "axis",
        "systems" => "systems",
        _ => "unknowns of a system",
    }
}
